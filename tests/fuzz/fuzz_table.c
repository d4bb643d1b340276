/* SPDX-License-Identifier: Apache-2.0
 * Field tables of any bytes. What passes the check is walked, printed, compared and copied without a surprise. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "broker/exchange_type/headers.h"
#include "broker/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The writer makes the same of each field, but for booleans, which become 0 or 1. */
static void
copy(struct span raw)
{
	struct table_writer w, v;
	struct field f;
	size_t at = 0;

	table_writer_init(&w, 1 << 20);
	table_writer_init(&v, 1 << 20);
	while (table_next(raw, &at, &f))
		table_put_field(&w, &f);
	assert(!w.failed && w.n == raw.n);
	assert(table_check(span_of(w.p, w.n), TABLE_DEPTH_MAX) == 0);
	for (at = 0; table_next(span_of(w.p, w.n), &at, &f);)
		table_put_field(&v, &f);
	assert(span_eq(span_of(w.p, w.n), span_of(v.p, v.n)));
	table_writer_fini(&w);
	table_writer_fini(&v);
}

/* A table as a binding's arguments and as a message's headers. */
static void
match(struct span raw, const struct table *t)
{
	struct message_headers *h = message_headers_new();
	struct headers_match *m;

	message_headers_set(h, raw);
	if (headers_match_check(t) == NULL) {
		m = headers_match_new(t);
		(void)headers_match_is(m, h, &(uint32_t){ 0 });
		message_headers_set(h, span_of(NULL, 0));
		(void)headers_match_is(m, h, &(uint32_t){ 0 });
		headers_match_free(&m);
	}
	message_headers_free(&h);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span raw = span_of(data, n);
	struct table *t;
	struct field f, first;
	size_t at = 0, fields = 0;
	char text[64];

	if (n > 1 << 16)
		return 0;
	while (table_next(raw, &at, &f))
		fields++;
	(void)table_find(raw, "x-match", &f);
	if (table_check(raw, TABLE_DEPTH_MAX) != 0)
		return 0;
	assert(at == n);
	t = table_from_raw(raw);
	assert((t == NULL) == (fields == 0) && table_equal(t, t));
	for (at = 0; table_next(raw, &at, &f);) {
		(void)field_text(&f, text, sizeof text);
		(void)field_term(&f, text, 1 + n % sizeof text);
		assert(field_type_name(&f)[0] != 'u' || f.kind == 'B' || f.kind == 'u' ||
		       f.kind == 'i');
		if (fields > 0 && table_next(raw, &(size_t){ 0 }, &first))
			assert(field_equal(&f, &first) == field_equal(&first, &f));
	}
	copy(raw);
	match(raw, t);
	table_free(&t);
	return 0;
}
