/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/message.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/table.h"
#include "broker/tap.h"
#include "mgmt/acting.h"
#include "mgmt/json_brief.h"
#include "mgmt/json_out.h"
#include "mgmt/json_table.h"
#include "mgmt/table_out.h"
#include "mgmt/request.h"

enum {
	FRAME_HEAD = 7,
	CONTENT_HEAD = 12,
	FRAME_END = 0xCE,
	PIECE = 128 << 10,
	PROPS_MAX = JSON_TABLE_MAX + 4096 /* the strings */
};

/* In the order in which they stand in a message. */
static const struct property {
	const char *name;
	uint16_t flag;
	char kind; /* s: short string, F: table, 1 and 8: number of so many bytes */
} properties[] = {
	{ "content_type", PROP_CONTENT_TYPE, 's' },
	{ "content_encoding", PROP_CONTENT_ENCODING, 's' },
	{ "headers", PROP_HEADERS, 'F' },
	{ "delivery_mode", PROP_DELIVERY_MODE, '1' },
	{ "priority", PROP_PRIORITY, '1' },
	{ "correlation_id", PROP_CORRELATION_ID, 's' },
	{ "reply_to", PROP_REPLY_TO, 's' },
	{ "expiration", PROP_EXPIRATION, 's' },
	{ "message_id", PROP_MESSAGE_ID, 's' },
	{ "timestamp", PROP_TIMESTAMP, '8' },
	{ "type", PROP_TYPE, 's' },
	{ "user_id", PROP_USER_ID, 's' },
	{ "app_id", PROP_APP_ID, 's' },
	{ "cluster_id", PROP_CLUSTER_ID, 's' },
};

/* ---- from JSON ---- */

static json_t *
problem_with(const char *what, const char *name)
{
	return json_pack("[s, s]", what, name);
}

static json_t *
put_string(struct table_writer *w, const struct property *p, const json_t *v)
{
	struct span s = json_span(v);
	uint8_t n = (uint8_t)s.n;

	if (s.p == NULL)
		return problem_with("not_string", p->name);
	if (s.n > 255)
		return problem_with("longer_than_255_bytes", p->name);
	table_put_raw(w, span_of(&n, 1));
	table_put_raw(w, s);
	return NULL;
}

static json_t *
put_integer(struct table_writer *w, const struct property *p, const json_t *v)
{
	uint8_t wide[8];
	json_int_t n = json_integer_value(v);

	if (!json_is_integer(v))
		return problem_with("not_int", p->name);
	if (p->kind == '1' && (n < 0 || n > UINT8_MAX))
		return problem_with("not_a_byte", p->name);
	put_be64(wide, (uint64_t)n);
	table_put_raw(w, p->kind == '1' ? span_of(wide + 7, 1) : span_of(wide, 8));
	return NULL;
}

static json_t *
put_table(struct table_writer *w, const json_t *v)
{
	struct table *t = NULL;
	const char *why = arguments_of_json(v, &t);
	uint8_t length[4];

	if (why != NULL)
		return json_string(why);
	put_be32(length, t != NULL ? t->n : 0);
	table_put_raw(w, span_of(length, 4));
	table_put_raw(w, table_span(t));
	table_free(&t);
	return NULL;
}

/* Flags and values; what has an unknown name is passed over. */
static json_t *
write_properties(struct table_writer *w, const json_t *from)
{
	uint8_t flags[2] = { 0 };
	json_t *problem = NULL;
	uint16_t set = 0;

	if (!json_is_object(from) && !(json_is_array(from) && json_array_size(from) == 0))
		return json_string("properties is no object");
	table_put_raw(w, span_of(flags, 2));
	for (size_t i = 0; i < COUNT_OF(properties) && problem == NULL; i++) {
		const struct property *p = &properties[i];
		const json_t *v = json_object_get(from, p->name);

		if (v == NULL)
			continue;
		set |= p->flag;
		if (p->kind == 's')
			problem = put_string(w, p, v);
		else if (p->kind == 'F')
			problem = put_table(w, v);
		else
			problem = put_integer(w, p, v);
	}
	if (problem == NULL && w->failed)
		problem = json_string("the properties are too large");
	if (problem == NULL)
		put_be16(w->p, set);
	return problem;
}

static uint8_t *
put_bytes(uint8_t *to, struct span s)
{
	if (s.n > 0)
		memcpy(to, s.p, s.n);
	return to + s.n;
}

static uint8_t *
put_frame_head(uint8_t *to, uint8_t type, size_t size)
{
	to[0] = type;
	put_be16(to + 1, 0);
	put_be32(to + 3, (uint32_t)size);
	return to + FRAME_HEAD;
}

/* As a client would have sent it, see msg.h; of a long body only what stands before it. */
static struct msg *
put_together(struct span exchange, struct span key, struct span props, struct span body)
{
	size_t in_wire = body.n <= PIECE ? body.n : 0;
	uint32_t names = (uint32_t)(exchange.n + key.n + 3);
	uint32_t meta = names + FRAME_HEAD + CONTENT_HEAD + (uint32_t)props.n + 1;
	struct msg *m = msg_try_new(msg_wire_size(meta, in_wire));
	uint8_t *to;

	if (m == NULL)
		return NULL;
	m->names_len = (uint16_t)names;
	m->meta_len = meta;
	m->body_size = body.n;
	m->rest = NULL;
	to = put_short_string(put_short_string(m->wire, exchange), key);
	*to++ = FRAME_END;
	to = put_frame_head(to, 2, CONTENT_HEAD + props.n);
	put_be32(to, 60u << 16);
	put_be64(to + 4, body.n);
	to = put_bytes(to + CONTENT_HEAD, props);
	*to++ = FRAME_END;
	if (in_wire == 0)
		return m;
	to = put_bytes(put_frame_head(to, 3, body.n), body);
	*to = FRAME_END;
	return m;
}

static json_t *
read_payload(struct message_draft *d, const json_t *body)
{
	json_t *text = json_object_get(body, "payload"),
	       *encoding = json_object_get(body, "payload_encoding");
	size_t n;

	d->payload = json_span(text);
	if (!json_is_string(encoding) ||
	    (!span_is(json_span(encoding), "string") && !span_is(json_span(encoding), "base64")))
		return json_pack("[s, o]", "unsupported_encoding", json_brief(encoding));
	if (d->payload.p == NULL)
		return json_string("payload_not_string");
	if (span_is(json_span(encoding), "string"))
		return NULL;
	d->decoded = xmalloc(d->payload.n + 1);
	n = base64_decode((const char *)d->payload.p, d->payload.n, d->decoded);
	if (n == 0 && d->payload.n > 0)
		return json_pack("[s, o]", "not_base64", json_brief(text));
	d->payload = span_of(d->decoded, n);
	return NULL;
}

static json_t *
no_memory(void)
{
	return json_string("no memory for the message");
}

static json_t *
begin(struct message_draft *d, const json_t *body, struct span exchange, struct span key)
{
	struct table_writer w;
	json_t *problem;

	table_writer_init(&w, PROPS_MAX);
	problem = write_properties(&w, json_object_get(body, "properties"));
	if (problem == NULL) {
		d->m = put_together(exchange, key, span_of(w.p, w.n), d->payload);
		problem = d->m == NULL ? no_memory() : NULL;
	}
	table_writer_fini(&w);
	return problem;
}

json_t *
message_begin(struct message_draft *d, const json_t *body, struct span exchange, struct span key)
{
	json_t *problem;

	*d = (struct message_draft){ 0 };
	problem = read_payload(d, body);
	if (problem == NULL)
		problem = begin(d, body, exchange, key);
	if (problem != NULL)
		message_drop(d);
	else if (d->payload.n <= PIECE)
		d->copied = d->payload.n;
	else
		problem = message_go_on(d); /* what has no piece yet is no message (msg.h) */
	return problem;
}

json_t *
message_go_on(struct message_draft *d)
{
	size_t left = d->payload.n - d->copied, n = left < PIECE ? left : PIECE;

	if (msg_try_append(d->m, &d->last, d->payload.p + d->copied, n, left)) {
		d->copied += n;
		return NULL;
	}
	message_drop(d);
	return no_memory();
}

bool
message_is_whole(const struct message_draft *d)
{
	return d->copied == d->payload.n;
}

struct msg *
message_end(struct message_draft *d)
{
	struct msg *m = d->m;

	d->m = NULL;
	message_drop(d);
	return m;
}

void
message_drop(struct message_draft *d)
{
	if (d->m != NULL)
		msg_unref(&d->m);
	free(d->decoded);
	*d = (struct message_draft){ 0 };
}

struct msg *
message_of_json(const json_t *body, struct span exchange, struct span key, json_t **problem)
{
	struct message_draft d;

	*problem = message_begin(&d, body, exchange, key);
	while (*problem == NULL && !message_is_whole(&d))
		*problem = message_go_on(&d);
	return *problem == NULL ? message_end(&d) : NULL;
}

/* ---- to JSON ---- */

static void
out_base64(struct json_out *o, struct span s)
{
	char *text = xmalloc(BASE64_SIZE(s.n));

	base64_encode(s.p, s.n, text);
	out_text(o, span_str(text));
	free(text);
}

/* All of the body in one piece; *owned: to be freed. */
static struct span
whole_body(const struct msg *m, uint64_t max, char **owned)
{
	size_t n = m->body_size < max ? (size_t)m->body_size : (size_t)max, at = 0;

	*owned = NULL;
	if (m->rest == NULL)
		return span_of(m->body_size > 0 ? msg_body(m) : NULL, n);
	*owned = xmalloc(n + 1);
	for (const struct msg_piece *p = m->rest; p != NULL && at < n; p = p->next) {
		size_t part = p->n < n - at ? p->n : n - at;

		memcpy(*owned + at, p->d, part);
		at += part;
	}
	return span_of(*owned, n);
}

static void
put_body(struct json_out *o, struct span body, uint64_t size, bool base64)
{
	base64 |= !utf8_valid(body.p, body.n);
	OUT_INT(o, "payload_bytes", size);
	OUT_PUT(o, "payload_encoding", out_text, span_str(base64 ? "base64" : "string"));
	if (base64)
		OUT_PUT(o, "payload", out_base64, body);
	else
		OUT_SPAN(o, "payload", body);
}

static void
put_payload(struct json_out *o, const struct msg *m, const struct payload_form *form)
{
	char *owned;
	struct span body = whole_body(m, form->truncate, &owned);

	put_body(o, body, m->body_size, form->base64);
	free(owned);
}

/* With what a delivery of a quorum queue has in front. */
static void
put_headers(struct json_out *o, struct span raw, int64_t count)
{
	struct field f;

	if (count < 0 || table_find(raw, "x-delivery-count", &f)) {
		out_table(o, raw);
		return;
	}
	out_begin(o, '{');
	OUT_INT(o, "x-delivery-count", (uint64_t)count);
	out_fields_of(o, raw);
	out_end(o, '}');
}

static void
put_properties(struct json_out *o, struct span raw, int64_t count)
{
	struct span v;
	bool any = get_be16(raw.p) != 0 || count >= 0, there;

	/* as RabbitMQ writes an empty one */
	out_begin(o, any ? '{' : '[');
	for (size_t i = 0; i < COUNT_OF(properties); i++) {
		const struct property *p = &properties[i];

		v = span_of(NULL, 0);
		there = props_find(raw, p->flag, &v);
		if ((!there && !(p->kind == 'F' && count >= 0)) ||
		    !out_key_span(o, span_str(p->name)))
			continue;
		if (p->kind == 's')
			out_text(o, v);
		else if (p->kind == 'F')
			put_headers(o, v, count);
		else
			out_uint(o, p->kind == '1' ? v.p[0] : get_be64(v.p));
	}
	out_end(o, any ? '}' : ']');
}

void
message_write_fields(
    struct json_out *o, const struct entry *e, int64_t count, const struct payload_form *form)
{
	const struct msg *m = e->m;

	put_payload(o, m, form);
	OUT_TRUTH(o, "redelivered", (e->seq_flags & ENTRY_REDELIVERED) != 0);
	OUT_SPAN(o, "exchange", msg_exchange(m));
	OUT_SPAN(o, "routing_key", msg_key(m));
	if (out_key(o, "properties"))
		put_properties(o, msg_props(m), count);
}

void
message_write(struct json_out *o, const struct entry *e, uint32_t left, int64_t count,
    const struct payload_form *form)
{
	out_begin(o, '{');
	message_write_fields(o, e, count, form);
	OUT_INT(o, "message_count", left);
	out_end(o, '}');
}

/* Without the character that the cut left in part, if there is one at its end. */
static struct span
without_part(struct span text)
{
	struct span whole = text;
	size_t n = 0;

	while (n < 3 && whole.n > 0 && (whole.p[whole.n - 1] & 0xC0) == 0x80) {
		whole.n--;
		n++;
	}
	if (whole.n > 0 && whole.p[whole.n - 1] >= 0xC0)
		whole.n--;
	return utf8_valid(whole.p, whole.n) ? whole : text;
}

void
message_write_tapped(struct json_out *o, const struct tapped *m)
{
	struct span body = m->body;

	if (body.n < m->body_size && !utf8_valid(body.p, body.n))
		body = without_part(body);
	out_begin(o, '{');
	put_body(o, body, m->body_size, false);
	OUT_SPAN(o, "exchange", m->exchange);
	OUT_SPAN(o, "routing_key", m->key);
	OUT_INT(o, "at_ms", m->at_ms);
	if (out_key(o, "properties"))
		put_properties(o, m->props, -1);
	out_end(o, '}');
}
