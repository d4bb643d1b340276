/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/table_out.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "broker/map.h"
#include "broker/table.h"
#include "mgmt/json_out.h"

/* A scale octet and 32 bits with sign. */
static double
decimal(const struct field *f)
{
	double v = (double)(int32_t)get_be32(f->bytes.p + 1);

	for (unsigned i = f->bytes.p[0]; i > 0; i--)
		v /= 10;
	return v;
}

/* ---- names ----
 * A name may stand in a table more than once: of those only the last is shown, as RabbitMQ does, for in JSON it is left to
 * chance which one a reader takes. Few names are compared with each other, many are looked up. */

enum { FEW = 16 };

struct last {
	size_t at; /* behind the field */
	UT_hash_handle hh;
};

struct lasts {
	struct last *all, *by_name; /* NULL: there are few */
};

static size_t
count(struct span raw)
{
	struct field f;
	size_t n = 0;

	for (size_t at = 0; table_next(raw, &at, &f);)
		n++;
	return n;
}

static void
lasts_init(struct lasts *l, struct span raw)
{
	size_t n = count(raw), at = 0;
	struct last *old, *one;
	struct field f;

	*l = (struct lasts){ 0 };
	if (n <= FEW || (one = l->all = try_malloc(n * sizeof *one)) == NULL)
		return;
	while (table_next(raw, &at, &f)) {
		HASH_FIND(hh, l->by_name, f.name.p, f.name.n, old);
		if (old != NULL) {
			old->at = at;
			continue;
		}
		one->at = at;
		HASH_ADD_KEYPTR(hh, l->by_name, f.name.p, f.name.n, one);
		one++;
	}
}

static void
lasts_fini(struct lasts *l)
{
	HASH_CLEAR(hh, l->by_name);
	free(l->all);
}

/* `at`: behind the field of this name. */
static bool
is_last(const struct lasts *l, struct span raw, size_t at, struct span name)
{
	struct last *last;
	struct field f;

	if (l->all != NULL) {
		HASH_FIND(hh, l->by_name, name.p, name.n, last);
		return last->at == at;
	}
	for (unsigned i = 0; i < FEW && table_next(raw, &at, &f); i++) {
		if (f.name.n == name.n && memcmp(f.name.p, name.p, name.n) == 0)
			return false;
	}
	return true;
}

/* ---- values ---- */

static void out_array(struct json_out *o, struct span raw);

static void
out_value(struct json_out *o, const struct field *f)
{
	switch (f->kind) {
	case 't': out_truth(o, f->truth); break;
	case 'L': out_uint(o, (uint64_t)f->integer); break;
	case 'T': out_uint(o, (uint64_t)f->integer); break;
	case 'f':
	case 'd': out_number(o, f->number); break;
	case 'D': out_number(o, decimal(f)); break;
	case 'S':
	case 'x': out_text(o, f->bytes); break;
	case 'A': out_array(o, f->bytes); break;
	case 'F': out_table(o, f->bytes); break;
	case 'V': out_null(o); break;
	default: out_int(o, f->integer); break;
	}
}

static void
out_array(struct json_out *o, struct span raw)
{
	struct field f;
	size_t at = 0;

	out_begin(o, '[');
	while (array_next(raw, &at, &f))
		out_value(o, &f);
	out_end(o, ']');
}

void
out_table(struct json_out *o, struct span raw)
{
	out_begin(o, '{');
	out_fields_of(o, raw);
	out_end(o, '}');
}

void
out_fields_of(struct json_out *o, struct span raw)
{
	struct lasts lasts;
	struct field f;
	size_t at = 0;

	lasts_init(&lasts, raw);
	while (table_next(raw, &at, &f)) {
		if (is_last(&lasts, raw, at, f.name) && out_key_span(o, f.name))
			out_value(o, &f);
	}
	lasts_fini(&lasts);
}
