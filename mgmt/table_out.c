/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/table_out.h"

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

static void out_fields(struct json_out *o, struct span raw, bool named);

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
	case 'A': out_fields(o, f->bytes, false); break;
	case 'F': out_fields(o, f->bytes, true); break;
	case 'V': out_null(o); break;
	default: out_int(o, f->integer); break;
	}
}

static void
out_fields(struct json_out *o, struct span raw, bool named)
{
	struct field f;
	size_t at = 0;

	out_begin(o, named ? '{' : '[');
	while (named ? table_next(raw, &at, &f) : array_next(raw, &at, &f)) {
		if (!named || out_key_span(o, f.name))
			out_value(o, &f);
	}
	out_end(o, named ? '}' : ']');
}

void
out_table(struct json_out *o, struct span raw)
{
	out_fields(o, raw, true);
}

void
out_fields_of(struct json_out *o, struct span raw)
{
	struct field f;
	size_t at = 0;

	while (table_next(raw, &at, &f)) {
		if (out_key_span(o, f.name))
			out_value(o, &f);
	}
}
