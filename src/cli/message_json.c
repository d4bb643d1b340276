/* SPDX-License-Identifier: Apache-2.0
 * Properties, headers and body as JSON. Bytes that are no UTF-8 are shown as base64; for the body payload_encoding
 * says so. Depth: the library that decoded the tables has bounded it. */
#include "cli/message_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/mem.h"

static json_t *
base64(amqp_bytes_t b)
{
	char *text = try_malloc(BASE64_SIZE(b.len));
	json_t *j;

	if (text == NULL)
		return NULL;
	base64_encode(b.bytes, b.len, text);
	j = json_string(text);
	free(text);
	return j;
}

/* What does not fit a number of JSON's library is shown by its digits. */
static json_t *
unsigned_json(uint64_t v)
{
	return v <= INT64_MAX ? json_integer((json_int_t)v) : json_sprintf("%" PRIu64, v);
}

/* *coded: it became base64. */
static json_t *
bytes_json(amqp_bytes_t b, bool *coded)
{
	json_t *j = json_stringn(b.len > 0 ? b.bytes : "", b.len); /* NULL where it is no UTF-8 */

	*coded = j == NULL;
	return j != NULL ? j : base64(b);
}

static json_t *table_json(const amqp_table_t *t);
static json_t *array_json(const amqp_array_t *a);

static json_t *
value_json(const amqp_field_value_t *v)
{
	bool coded;

	switch (v->kind) {
	case AMQP_FIELD_KIND_BOOLEAN: return json_boolean(v->value.boolean);
	case AMQP_FIELD_KIND_I8: return json_integer(v->value.i8);
	case AMQP_FIELD_KIND_U8: return json_integer(v->value.u8);
	case AMQP_FIELD_KIND_I16: return json_integer(v->value.i16);
	case AMQP_FIELD_KIND_U16: return json_integer(v->value.u16);
	case AMQP_FIELD_KIND_I32: return json_integer(v->value.i32);
	case AMQP_FIELD_KIND_U32: return json_integer(v->value.u32);
	case AMQP_FIELD_KIND_I64: return json_integer(v->value.i64);
	case AMQP_FIELD_KIND_U64:
	case AMQP_FIELD_KIND_TIMESTAMP: return unsigned_json(v->value.u64);
	case AMQP_FIELD_KIND_F32:
		return json_real((double)v->value.f32); /* NULL for what JSON has not */
	case AMQP_FIELD_KIND_F64: return json_real(v->value.f64);
	case AMQP_FIELD_KIND_UTF8:
	case AMQP_FIELD_KIND_BYTES: return bytes_json(v->value.bytes, &coded);
	case AMQP_FIELD_KIND_TABLE: return table_json(&v->value.table);
	case AMQP_FIELD_KIND_ARRAY: return array_json(&v->value.array);
	default: return json_null();
	}
}

static json_t *
array_json(const amqp_array_t *a)
{
	json_t *j = json_array();

	for (int i = 0; j != NULL && i < a->num_entries; i++) {
		json_t *v = value_json(&a->entries[i]);

		(void)json_array_append_new(j, v != NULL ? v : json_null());
	}
	return j;
}

static json_t *
table_json(const amqp_table_t *t)
{
	json_t *j = json_object();

	for (int i = 0; j != NULL && i < t->num_entries; i++) {
		const amqp_table_entry_t *e = &t->entries[i];
		json_t *v = value_json(&e->value), *key;
		bool coded;

		key = bytes_json(e->key, &coded);
		(void)json_object_set_new(j, json_string_value(key), v != NULL ? v : json_null());
		json_decref(key);
	}
	return j;
}

static void
put_bytes(json_t *j, const char *name, amqp_bytes_t b)
{
	bool coded;

	(void)json_object_set_new(j, name, bytes_json(b, &coded));
}

static json_t *
properties_json(const amqp_basic_properties_t *p)
{
	json_t *j = json_object();

#define TEXT(field, flag)                         \
	if (p->_flags & AMQP_BASIC_##flag##_FLAG) \
	put_bytes(j, #field, p->field)
#define NUMBER(field, flag)                       \
	if (p->_flags & AMQP_BASIC_##flag##_FLAG) \
	(void)json_object_set_new(j, #field, unsigned_json(p->field))
	TEXT(content_type, CONTENT_TYPE);
	TEXT(content_encoding, CONTENT_ENCODING);
	if (p->_flags & AMQP_BASIC_HEADERS_FLAG)
		(void)json_object_set_new(j, "headers", table_json(&p->headers));
	NUMBER(delivery_mode, DELIVERY_MODE);
	NUMBER(priority, PRIORITY);
	TEXT(correlation_id, CORRELATION_ID);
	TEXT(reply_to, REPLY_TO);
	TEXT(expiration, EXPIRATION);
	TEXT(message_id, MESSAGE_ID);
	NUMBER(timestamp, TIMESTAMP);
	TEXT(type, TYPE);
	TEXT(user_id, USER_ID);
	TEXT(app_id, APP_ID);
#undef TEXT
#undef NUMBER
	return j;
}

json_t *
message_json(const struct message_way *way, const amqp_message_t *m)
{
	json_t *j = json_object();
	bool coded;

	if (j == NULL)
		return NULL;
	put_bytes(j, "exchange", way->exchange);
	put_bytes(j, "routing_key", way->routing_key);
	(void)json_object_set_new(j, "redelivered", json_boolean(way->redelivered));
	if (way->consumer_tag == NULL)
		(void)json_object_set_new(j, "message_count", json_integer(way->message_count));
	else
		put_bytes(j, "consumer_tag", *way->consumer_tag);
	(void)json_object_set_new(j, "properties", properties_json(&m->properties));
	(void)json_object_set_new(j, "payload_bytes", json_integer((json_int_t)m->body.len));
	(void)json_object_set_new(j, "payload", bytes_json(m->body, &coded));
	(void)json_object_set_new(j, "payload_encoding", json_string(coded ? "base64" : "string"));
	return j;
}
