/* SPDX-License-Identifier: Apache-2.0
 * Tables that Hermes makes or changes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/table.h"

void
table_writer_init(struct table_writer *w, uint32_t max)
{
	*w = (struct table_writer){ .max = max };
}

void
table_writer_fini(struct table_writer *w)
{
	free(w->p);
	*w = (struct table_writer){ .max = w->max };
}

/* Room for n more bytes, or NULL and `failed`. */
static uint8_t *
writer_room(struct table_writer *w, size_t n)
{
	size_t cap = w->cap;
	uint8_t *p;

	if (w->failed || n > w->max - w->n) {
		w->failed = true;
		return NULL;
	}
	if (n > cap - w->n) {
		cap = cap == 0 ? 128 : cap * 2;
		if (cap < w->n + n)
			cap = w->n + n;
		if (cap > w->max)
			cap = w->max;
		p = try_realloc(w->p, cap);
		if (p == NULL) {
			w->no_memory = true;
			w->failed = true;
			return NULL;
		}
		w->p = p;
		w->cap = (uint32_t)cap;
	}
	p = w->p + w->n;
	w->n += (uint32_t)n;
	return p;
}

void
table_put_raw(struct table_writer *w, struct span bytes)
{
	uint8_t *p = writer_room(w, bytes.n);

	if (p != NULL && bytes.n > 0)
		memcpy(p, bytes.p, bytes.n);
}

static void
put_name(struct table_writer *w, struct span name, uint8_t kind)
{
	uint8_t *p;

	assert(name.n <= 255);
	p = writer_room(w, name.n + 2);
	if (p == NULL)
		return;
	p[0] = (uint8_t)name.n;
	if (name.n > 0)
		memcpy(p + 1, name.p, name.n);
	p[1 + name.n] = kind;
}

static void
put_number(struct table_writer *w, uint64_t v, size_t width)
{
	uint8_t *p = writer_room(w, width), all[8];

	put_be64(all, v);
	if (p != NULL)
		memcpy(p, all + 8 - width, width);
}

static void
put_bytes(struct table_writer *w, struct span bytes)
{
	assert(bytes.n <= UINT32_MAX);
	put_number(w, bytes.n, 4);
	table_put_raw(w, bytes);
}

static void
put_value(struct table_writer *w, const struct field *f)
{
	float single = (float)f->number;
	uint32_t bits;
	uint64_t wide;

	switch (f->kind) {
	case 't': put_number(w, f->truth, 1); break;
	case 'b':
	case 'B': put_number(w, (uint64_t)f->integer, 1); break;
	case 's':
	case 'u': put_number(w, (uint64_t)f->integer, 2); break;
	case 'I':
	case 'i': put_number(w, (uint64_t)f->integer, 4); break;
	case 'l':
	case 'L':
	case 'T': put_number(w, (uint64_t)f->integer, 8); break;
	case 'f':
		memcpy(&bits, &single, sizeof bits);
		put_number(w, bits, 4);
		break;
	case 'd':
		memcpy(&wide, &f->number, sizeof wide);
		put_number(w, wide, 8);
		break;
	case 'D': table_put_raw(w, f->bytes); break;
	case 'V': break;
	default:
		assert(strchr("SxAF", f->kind) != NULL);
		put_bytes(w, f->bytes);
		break;
	}
}

void
table_put_field(struct table_writer *w, const struct field *f)
{
	put_name(w, f->name, f->kind);
	put_value(w, f);
}

void
table_put_item(struct table_writer *w, const struct field *f)
{
	put_number(w, f->kind, 1);
	put_value(w, f);
}

void
table_put_string(struct table_writer *w, const char *name, const char *value)
{
	put_name(w, span_str(name), 'S');
	put_bytes(w, span_str(value));
}

void
table_put_text(struct table_writer *w, const char *name, struct span value)
{
	put_name(w, span_str(name), 'S');
	put_bytes(w, value);
}

void
table_put_number(struct table_writer *w, const char *name, uint64_t value)
{
	bool is_short = value <= INT32_MAX;

	put_name(w, span_str(name), is_short ? 'I' : 'l');
	put_number(w, value, is_short ? 4 : 8);
}

void
table_put_bool(struct table_writer *w, const char *name, bool value)
{
	put_name(w, span_str(name), 't');
	put_number(w, value, 1);
}

uint32_t
table_begin(struct table_writer *w, const char *name)
{
	put_name(w, span_str(name), 'F');
	put_number(w, 0, 4);
	return w->n;
}

uint32_t
table_begin_array(struct table_writer *w, const char *name)
{
	put_name(w, span_str(name), 'A');
	put_number(w, 0, 4);
	return w->n;
}

void
table_put_item_text(struct table_writer *w, struct span value)
{
	put_number(w, 'S', 1);
	put_bytes(w, value);
}

void
table_end(struct table_writer *w, uint32_t mark)
{
	if (!w->failed)
		put_be32(w->p + mark - 4, w->n - mark);
}
