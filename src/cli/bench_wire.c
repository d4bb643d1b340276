/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_wire.h"

#include <amqp.h>
#include <string.h>

void
wire_put(struct wire_out *w, const void *p, size_t n)
{
	if (w->failed || n > w->room - w->n) {
		w->failed = true;
		return;
	}
	if (n > 0)
		memcpy(w->p + w->n, p, n);
	w->n += n;
}

void
wire_put8(struct wire_out *w, uint8_t v)
{
	wire_put(w, &v, 1);
}

void
wire_put16(struct wire_out *w, uint16_t v)
{
	uint8_t b[2];

	put_be16(b, v);
	wire_put(w, b, sizeof b);
}

void
wire_put32(struct wire_out *w, uint32_t v)
{
	uint8_t b[4];

	put_be32(b, v);
	wire_put(w, b, sizeof b);
}

void
wire_put64(struct wire_out *w, uint64_t v)
{
	uint8_t b[8];

	put_be64(b, v);
	wire_put(w, b, sizeof b);
}

void
wire_put_short(struct wire_out *w, const char *s)
{
	size_t n = strlen(s);

	if (n > UINT8_MAX) {
		w->failed = true;
		return;
	}
	wire_put8(w, (uint8_t)n);
	wire_put(w, s, n);
}

void
wire_put_long(struct wire_out *w, const void *p, size_t n)
{
	wire_put32(w, (uint32_t)n);
	wire_put(w, p, n);
}

size_t
wire_table_begin(struct wire_out *w)
{
	size_t mark = w->n;

	wire_put32(w, 0);
	return mark;
}

void
wire_table_end(struct wire_out *w, size_t mark)
{
	if (!w->failed)
		put_be32(w->p + mark, (uint32_t)(w->n - mark - 4));
}

void
wire_entry_text(struct wire_out *w, const char *key, const char *value)
{
	wire_put_short(w, key);
	wire_put8(w, AMQP_FIELD_KIND_UTF8);
	wire_put_long(w, value, strlen(value));
}

void
wire_entry_number(struct wire_out *w, const char *key, int64_t value)
{
	wire_put_short(w, key);
	wire_put8(w, AMQP_FIELD_KIND_I64);
	wire_put64(w, (uint64_t)value);
}

void
wire_entry_bool(struct wire_out *w, const char *key, bool value)
{
	wire_put_short(w, key);
	wire_put8(w, AMQP_FIELD_KIND_BOOLEAN);
	wire_put8(w, value);
}

size_t
wire_frame_begin(struct wire_out *w, uint8_t type, uint16_t channel)
{
	size_t mark = w->n;

	wire_put8(w, type);
	wire_put16(w, channel);
	wire_put32(w, 0);
	return mark;
}

size_t
wire_method_begin(struct wire_out *w, uint16_t channel, uint32_t method)
{
	size_t mark = wire_frame_begin(w, AMQP_FRAME_METHOD, channel);

	wire_put32(w, method);
	return mark;
}

void
wire_frame_end(struct wire_out *w, size_t mark)
{
	if (!w->failed)
		put_be32(w->p + mark + 3, (uint32_t)(w->n - mark - WIRE_HEAD));
	wire_put8(w, AMQP_FRAME_END);
}

static const uint8_t *
take(struct wire_in *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->failed || n > r->n) {
		r->failed = true;
		return NULL;
	}
	r->p += n;
	r->n -= n;
	return p;
}

uint8_t
wire_get8(struct wire_in *r)
{
	const uint8_t *p = take(r, 1);

	return p != NULL ? *p : 0;
}

uint16_t
wire_get16(struct wire_in *r)
{
	const uint8_t *p = take(r, 2);

	return p != NULL ? get_be16(p) : 0;
}

uint32_t
wire_get32(struct wire_in *r)
{
	const uint8_t *p = take(r, 4);

	return p != NULL ? get_be32(p) : 0;
}

uint64_t
wire_get64(struct wire_in *r)
{
	const uint8_t *p = take(r, 8);

	return p != NULL ? get_be64(p) : 0;
}

struct span
wire_get_short(struct wire_in *r)
{
	size_t n = wire_get8(r);
	const uint8_t *p = take(r, n);

	return span_of(p, p != NULL ? n : 0);
}

struct span
wire_get_long(struct wire_in *r)
{
	size_t n = wire_get32(r);
	const uint8_t *p = take(r, n);

	return span_of(p, p != NULL ? n : 0);
}

static bool
skip_value(struct wire_in *r, uint8_t kind)
{
	switch (kind) {
	case 't':
	case 'b':
	case 'B': return take(r, 1) != NULL;
	case 's':
	case 'u': return take(r, 2) != NULL;
	case 'I':
	case 'i':
	case 'f': return take(r, 4) != NULL;
	case 'D': return take(r, 5) != NULL;
	case 'l':
	case 'L':
	case 'd':
	case 'T': return take(r, 8) != NULL;
	case 'S':
	case 'x':
	case 'F':
	case 'A': (void)wire_get_long(r); return !r->failed;
	case 'V': return true;
	default: return false;
	}
}

bool
wire_find_number(struct span table, const char *key, int64_t *value)
{
	struct wire_in r = { .p = table.p, .n = table.n };

	while (r.n > 0) {
		struct span name = wire_get_short(&r);
		uint8_t kind = wire_get8(&r);

		if (!r.failed && kind == AMQP_FIELD_KIND_I64 && span_is(name, key)) {
			uint64_t v = wire_get64(&r);

			if (!r.failed)
				*value = (int64_t)v;
			return !r.failed;
		}
		if (r.failed || !skip_value(&r, kind))
			return false;
	}
	return false;
}
