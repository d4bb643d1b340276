/* SPDX-License-Identifier: Apache-2.0
 * Tables as JSON and back: see the header. */
#include "mgmt/json_table.h"

#include <math.h>
#include <string.h>

#include "broker/table.h"
#include "mgmt/request.h"

/* ---- to JSON ---- */

static json_t *
real(double d)
{
	return isfinite(d) ? json_real(d) : json_null();
}

/* Scale, then the unscaled value. */
static json_t *
decimal(struct span bytes)
{
	double d = (double)(int32_t)get_be32(bytes.p + 1);

	for (unsigned i = 0; i < bytes.p[0]; i++)
		d /= 10;
	return real(d);
}

static json_t *array_json(struct span raw);

static json_t *
field_json(const struct field *f)
{
	switch (f->kind) {
	case 't': return json_boolean(f->truth);
	case 'V': return json_null();
	case 'f':
	case 'd': return real(f->number);
	case 'D': return decimal(f->bytes);
	case 'S':
	case 'x': return json_text(f->bytes);
	case 'F': return json_of_table(f->bytes);
	case 'A': return array_json(f->bytes);
	default: return json_integer(f->integer);
	}
}

static json_t *
array_json(struct span raw)
{
	json_t *j = json_array();
	struct field f;

	for (size_t at = 0; array_next(raw, &at, &f);)
		(void)json_array_append_new(j, field_json(&f));
	return j;
}

json_t *
json_of_table(struct span raw)
{
	json_t *j = json_object(), *name;
	struct field f;

	for (size_t at = 0; table_next(raw, &at, &f);) {
		name = json_text(f.name);
		(void)json_object_setn_new(
		    j, json_string_value(name), json_string_length(name), field_json(&f));
		json_decref(name);
	}
	return j;
}

/* ---- from JSON ---- */

const char json_table_too_large[] = "more than 131072 bytes as a table";

static void
put_byte(struct table_writer *w, uint8_t b)
{
	table_put_raw(w, span_of(&b, 1));
}

static void
put_number(struct table_writer *w, uint8_t kind, uint64_t bits)
{
	uint8_t b[9];

	b[0] = kind;
	put_be64(b + 1, bits);
	table_put_raw(w, span_of(b, sizeof b));
}

/* Kind and a place for the length, which end_long() fills. */
static uint32_t
begin_long(struct table_writer *w, uint8_t kind)
{
	uint8_t b[5] = { kind };

	table_put_raw(w, span_of(b, sizeof b));
	return w->n;
}

static void
end_long(struct table_writer *w, uint32_t from)
{
	if (!w->failed)
		put_be32(w->p + from - 4, w->n - from);
}

static const char *put_fields(struct table_writer *w, const json_t *object);

static const char *put_items(struct table_writer *w, const json_t *array);

static const char *
put_value(struct table_writer *w, const json_t *v)
{
	const char *wrong = NULL;
	double d;
	uint64_t bits;
	uint32_t at;

	if (w->failed)
		return json_table_too_large;
	switch (json_typeof(v)) {
	case JSON_TRUE:
	case JSON_FALSE:
		put_byte(w, 't');
		put_byte(w, json_is_true(v));
		break;
	case JSON_NULL: put_byte(w, 'V'); break;
	case JSON_INTEGER: put_number(w, 'l', (uint64_t)json_integer_value(v)); break;
	case JSON_REAL:
		d = json_real_value(v);
		memcpy(&bits, &d, sizeof bits);
		put_number(w, 'd', bits);
		break;
	case JSON_STRING:
		at = begin_long(w, 'S');
		table_put_raw(w, json_span(v));
		end_long(w, at);
		break;
	case JSON_ARRAY:
		at = begin_long(w, 'A');
		wrong = put_items(w, v);
		end_long(w, at);
		break;
	case JSON_OBJECT:
		at = begin_long(w, 'F');
		wrong = put_fields(w, v);
		end_long(w, at);
		break;
	}
	return wrong;
}

static const char *
put_items(struct table_writer *w, const json_t *array)
{
	const char *wrong = NULL;
	const json_t *v;
	size_t i;

	json_array_foreach(array, i, v)
	{
		if ((wrong = put_value(w, v)) != NULL)
			break;
	}
	return wrong;
}

static const char *
put_fields(struct table_writer *w, const json_t *object)
{
	const char *name, *wrong = NULL;
	json_t *v;
	size_t n;

	/* The library's walk takes no const. */
	json_object_keylen_foreach((json_t *)(uintptr_t)object, name, n, v)
	{
		if (n > 255)
			return "the name of a field is longer than 255 bytes";
		put_byte(w, (uint8_t)n);
		table_put_raw(w, span_of(name, n));
		if ((wrong = put_value(w, v)) != NULL)
			break;
	}
	return wrong;
}

const char *
json_to_table(const json_t *object, struct table **out)
{
	const char *wrong;
	struct table_writer w;

	*out = NULL;
	if (!json_is_object(object))
		return "no JSON object";
	table_writer_init(&w, JSON_TABLE_MAX);
	wrong = put_fields(&w, object);
	if (wrong == NULL && w.failed)
		wrong = json_table_too_large;
	if (wrong == NULL && table_check(span_of(w.p, w.n), TABLE_DEPTH_MAX) != 0)
		wrong = "nested too deeply";
	if (wrong == NULL && table_try_copy(span_of(w.p, w.n), out) != 0)
		wrong = "no memory for it";
	table_writer_fini(&w);
	return wrong;
}
