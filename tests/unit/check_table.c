/* SPDX-License-Identifier: Apache-2.0
 * Field tables: form and depth, every truncation, comparison, words for refusals, the way from rabbitmq-c. */
#include "broker/table.h"

#include <amqp.h>
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

#define RAW(s) SPAN_LIT(s)

/* One field of every type, with what is to be read from it. */
static const struct {
	struct span raw;
	int64_t integer;
	double number;
	const char *type, *text;
} kinds[] = {
	{ RAW("\1kt\1"), 0, 0, "bool", "true" },
	{ RAW("\1kt\0"), 0, 0, "bool", "false" },
	{ RAW("\1kb\x80"), -128, 0, "byte", "-128" },
	{ RAW("\1kB\xff"), 255, 0, "unsignedbyte", "255" },
	{ RAW("\1ks\x80\0"), -32768, 0, "short", "-32768" },
	{ RAW("\1ku\xff\xff"), 65535, 0, "unsignedshort", "65535" },
	{ RAW("\1kI\xff\xff\xff\xff"), -1, 0, "signedint", "-1" },
	{ RAW("\1ki\xff\xff\xff\xff"), 4294967295, 0, "unsignedint", "4294967295" },
	{ RAW("\1kl\x80\0\0\0\0\0\0\0"), INT64_MIN, 0, "long", "-9223372036854775808" },
	{ RAW("\1kL\0\0\0\0\0\0\0\5"), 5, 0, "long", "5" },
	{ RAW("\1kf\x3f\xc0\0\0"), 0, 1.5, "float", "1.5" },
	{ RAW("\1kd\x7f\xe1\xcc\xf3\x85\xeb\xc8\xa0"), 0, 1e308, "double", "1.0e308" },
	{ RAW("\1kd\0\0\0\0\0\0\0\0"), 0, 0, "double", "0.0" },
	{ RAW("\1kD\2\0\0\1\x3a"), 0, 0, "decimal", "{2,314}" },
	{ RAW("\1kT\xff\xff\xff\xff\xff\xff\xff\xff"), -1, 0, "timestamp", "18446744073709551615" },
	{ RAW("\1kV"), 0, 0, "void", "undefined" },
	{ RAW("\1kS\0\0\0\3abc"), 0, 0, "longstr", "abc" },
	{ RAW("\1kx\0\0\0\2ab"), 0, 0, "binary", "ab" },
	{ RAW("\1kA\0\0\0\x0bI\0\0\0\1S\0\0\0\1x"), 0, 0, "array",
	    "[{signedint,1},{longstr,<<\"x\">>}]" },
	{ RAW("\1kF\0\0\0\7\1aI\0\0\0\1"), 0, 0, "table", "[{<<\"a\">>,signedint,1}]" },
};

START_TEST(test_kind)
{
	struct field f;
	char text[100];

	ck_assert_int_eq(table_check(kinds[_i].raw, TABLE_DEPTH_MAX), 0);
	ck_assert(table_find(kinds[_i].raw, "k", &f));
	ck_assert_int_eq(f.integer, kinds[_i].integer);
	ck_assert_double_eq(f.number, kinds[_i].number);
	ck_assert_str_eq(field_type_name(&f), kinds[_i].type);
	ck_assert_str_eq(field_text(&f, text, sizeof text), kinds[_i].text);
	ck_assert(field_equal(&f, &f));
}
END_TEST

/* Cut at every byte, in a buffer of exactly that size, it is refused, and walking it ends. */
START_TEST(test_truncated)
{
	struct span raw = kinds[_i].raw;
	struct field f;
	uint8_t *copy;
	size_t n, at;

	for (n = 1; n < raw.n; n++) {
		copy = xmalloc(n);
		memcpy(copy, raw.p, n);
		ck_assert_int_eq(table_check(span_of(copy, n), TABLE_DEPTH_MAX), -EINVAL);
		at = 0;
		ck_assert(!table_next(span_of(copy, n), &at, &f));
		free(copy);
	}
}
END_TEST

/* What the writer makes of a field is the field. */
START_TEST(test_writer_round_trip)
{
	struct table_writer w;
	struct field f;
	size_t at = 0;

	table_writer_init(&w, 1000);
	ck_assert(table_next(kinds[_i].raw, &at, &f));
	table_put_field(&w, &f);
	ck_assert(!w.failed && span_eq(span_of(w.p, w.n), kinds[_i].raw));
	table_writer_fini(&w);
}
END_TEST

static const struct {
	struct span raw;
	int rc;
} forms[] = {
	{ RAW(""), 0 },
	{ RAW("\0V"), 0 },
	{ RAW("\1aV\1aV"), 0 },
	{ RAW("\0"), -EINVAL },
	{ RAW("\1a"), -EINVAL },
	{ RAW("\1aZ\0"), -EINVAL },
	{ RAW("\1a\0"), -EINVAL },
	{ RAW("\1aV\0"), -EINVAL },
	{ RAW("\1aS\xff\xff\xff\xff"), -EINVAL },
	{ RAW("\1aF\0\0\0\2\1a"), -EINVAL },
	{ RAW("\1aF\0\0\0\3\1aZ"), -EINVAL },
	{ RAW("\1aA\0\0\0\1I"), -EINVAL },
	{ RAW("\1aA\0\0\0\2\1a"), -EINVAL },
};

START_TEST(test_form)
{
	ck_assert_int_eq(table_check(forms[_i].raw, TABLE_DEPTH_MAX), forms[_i].rc);
}
END_TEST

/* n tables within each other, the outermost counted. */
static struct span
nested(unsigned n, uint8_t *buf, size_t cap)
{
	struct span s = { buf + cap, 0 };

	while (--n > 0) {
		buf = (uint8_t *)(uintptr_t)s.p - 6;
		buf[0] = 0;
		buf[1] = 'F';
		put_be32(buf + 2, (uint32_t)s.n);
		s = span_of(buf, s.n + 6);
	}
	return s;
}

START_TEST(test_depth)
{
	static uint8_t buf[600000];

	ck_assert_int_eq(table_check(nested(TABLE_DEPTH_MAX, buf, sizeof buf), TABLE_DEPTH_MAX), 0);
	ck_assert_int_eq(
	    table_check(nested(TABLE_DEPTH_MAX + 1, buf, sizeof buf), TABLE_DEPTH_MAX), -E2BIG);
	ck_assert_int_eq(table_check(nested(100000, buf, sizeof buf), TABLE_DEPTH_MAX), -E2BIG);
}
END_TEST

static const struct {
	struct span a, b;
	bool equal;
} pairs[] = {
	{ RAW(""), RAW(""), true },
	{ RAW("\1aV\1bt\1"), RAW("\1bt\1\1aV"), true },
	{ RAW("\1aV\1bt\1"), RAW("\1bt\0\1aV"), false },
	{ RAW("\1aV"), RAW(""), false },
	{ RAW("\1aB\1"), RAW("\1ab\1"), false },
	{ RAW("\1aB\1\1aB\2"), RAW("\1aB\2\1aB\1"), false },
	{ RAW("\1aB\1\1bB\2\1aB\3"), RAW("\1bB\2\1aB\1\1aB\3"), true },
	{ RAW("\2abV\1aV"), RAW("\1aV\2abV"), true },
};

START_TEST(test_equal)
{
	struct table *a = table_from_raw(pairs[_i].a), *b = table_from_raw(pairs[_i].b);

	ck_assert_int_eq(table_equal(a, b), pairs[_i].equal);
	ck_assert_int_eq(table_equal(b, a), pairs[_i].equal);
	table_free(&a);
	table_free(&b);
	ck_assert_ptr_null(a);
}
END_TEST

START_TEST(test_equal_without_memory)
{
	struct table *a = table_from_raw(RAW("\1aV\1bV")), *b = table_from_raw(RAW("\1bV\1aV"));
	unsigned long n;

	for (n = 1; n <= 2; n++) {
		mem_fail_try(n, 0);
		ck_assert(!table_equal(a, b));
	}
	mem_fail_try(0, 0);
	ck_assert(table_equal(a, b));
	table_free(&a);
	table_free(&b);
}
END_TEST

static char name_a[] = "a", name_b[] = "b", name_t[] = "t", xyz[] = "xyz";

START_TEST(test_from_amqp)
{
	amqp_table_entry_t inner = { { 1, name_b }, { AMQP_FIELD_KIND_I32, { .i32 = 7 } } };
	amqp_table_entry_t e[] = {
		{ { 1, name_a }, { AMQP_FIELD_KIND_UTF8, { .bytes = { 3, xyz } } } },
		{ { 1, name_t }, { AMQP_FIELD_KIND_TABLE, { .table = { 1, &inner } } } },
	};
	amqp_table_t empty = { 0, NULL }, full = { 2, e };
	struct table *t = (struct table *)&full;

	ck_assert_int_eq(table_from_amqp(&empty, &t), 0);
	ck_assert_ptr_null(t);
	ck_assert_int_eq(table_from_amqp(&full, &t), 0);
	ck_assert(span_eq(table_span(t), RAW("\1aS\0\0\0\3xyz\1tF\0\0\0\7\1bI\0\0\0\7")));
	table_free(&t);
}
END_TEST

/* Larger than the first buffer, and too large for the last one. */
START_TEST(test_from_amqp_large)
{
	static char text[1 << 20];
	amqp_table_entry_t e = { { 1, name_a },
		{ AMQP_FIELD_KIND_UTF8, { .bytes = { 100000, text } } } };
	amqp_table_t in = { 1, &e };
	struct table *t = NULL;

	ck_assert_int_eq(table_from_amqp(&in, &t), 0);
	ck_assert_uint_eq(t->n, 100000 + 7);
	table_free(&t);
	e.value.value.bytes.len = sizeof text;
	ck_assert_int_eq(table_from_amqp(&in, &t), -E2BIG);
	ck_assert_ptr_null(t);
	mem_fail_try(1, 0);
	ck_assert_int_eq(table_from_amqp(&in, &t), -ENOMEM);
}
END_TEST

START_TEST(test_from_amqp_too_deep)
{
	static amqp_table_entry_t e[TABLE_DEPTH_MAX];
	amqp_table_t in = { 1, &e[0] };
	struct table *t = NULL;
	unsigned i;

	for (i = 0; i < TABLE_DEPTH_MAX; i++) {
		e[i].key = (amqp_bytes_t){ 1, name_a };
		e[i].value.kind = AMQP_FIELD_KIND_TABLE;
		if (i + 1 < TABLE_DEPTH_MAX)
			e[i].value.value.table = (amqp_table_t){ 1, &e[i + 1] };
	}
	ck_assert_int_eq(table_from_amqp(&in, &t), -E2BIG);
	e[0].value.value.table.num_entries = 0;
	ck_assert_int_eq(table_from_amqp(&in, &t), 0);
	table_free(&t);
}
END_TEST

START_TEST(test_writer)
{
	struct table_writer w;
	uint32_t mark;

	table_writer_init(&w, 40);
	table_put_string(&w, "s", "v");
	mark = table_begin(&w, "t");
	table_put_bool(&w, "b", true);
	table_end(&w, mark);
	ck_assert(!w.failed);
	ck_assert(span_eq(span_of(w.p, w.n), RAW("\1sS\0\0\0\1v\1tF\0\0\0\4\1bt\1")));
	table_put_string(&w, "long", "0123456789012345678901234567890");
	ck_assert(w.failed);
	table_put_bool(&w, "b", true);
	ck_assert(w.failed);
	table_end(&w, mark);
	table_writer_fini(&w);
}
END_TEST

START_TEST(test_writer_without_memory)
{
	struct table_writer w;

	table_writer_init(&w, 1000);
	mem_fail_try(1, 0);
	table_end(&w, table_begin(&w, "t"));
	ck_assert(w.failed);
	table_writer_fini(&w);
}
END_TEST

static const struct {
	struct span raw;
	size_t room;
	const char *text, *term;
} texts[] = {
	{ RAW("\1kS\0\0\0\3a\"b"), 100, "a\"b", "<<\"a\\\"b\">>" },
	{ RAW("\1kS\0\0\0\2a\n"), 100, "a\n", "<<97,10>>" },
	{ RAW("\1kS\0\0\0\0"), 100, "", "<<>>" },
	{ RAW("\1kS\0\0\0\4h\xc3\xa9l"), 3, "h", "<<" },
	{ RAW("\1kI\0\0\x30\x39"), 4, "123", "123" },
	{ RAW("\1kd\x3f\xb9\x99\x99\x99\x99\x99\x9a"), 100, "0.1", "0.1" },
	{ RAW("\1kd\x7f\xf8\0\0\0\0\0\0"), 100, "nan", "nan" },
};

START_TEST(test_text)
{
	struct field f;
	char buf[100];

	ck_assert(table_find(texts[_i].raw, "k", &f));
	ck_assert_str_eq(field_text(&f, buf, texts[_i].room), texts[_i].text);
	ck_assert_str_eq(field_term(&f, buf, texts[_i].room), texts[_i].term);
}
END_TEST

START_TEST(test_check_headers)
{
	bool cc;

	ck_assert_int_eq(table_check_headers(RAW("\2CCV"), 2, &cc), 0);
	ck_assert(cc);
	ck_assert_int_eq(table_check_headers(RAW("\1aV\3BCCV"), 2, &cc), 0);
	ck_assert(cc);
	ck_assert_int_eq(table_check_headers(RAW("\2ccV\1aF\0\0\0\4\2CCV"), 2, &cc), 0);
	ck_assert(!cc);
	ck_assert_int_eq(table_check_headers(RAW("\2CC"), 2, &cc), -EINVAL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("table");
	TCase *t = tcase_create("table");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, test_kind, 0, COUNT_OF(kinds));
	tcase_add_loop_test(t, test_truncated, 0, COUNT_OF(kinds));
	tcase_add_loop_test(t, test_writer_round_trip, 0, COUNT_OF(kinds));
	tcase_add_loop_test(t, test_form, 0, COUNT_OF(forms));
	tcase_add_loop_test(t, test_equal, 0, COUNT_OF(pairs));
	tcase_add_loop_test(t, test_text, 0, COUNT_OF(texts));
	tcase_add_test(t, test_depth);
	tcase_add_test(t, test_equal_without_memory);
	tcase_add_test(t, test_from_amqp);
	tcase_add_test(t, test_from_amqp_large);
	tcase_add_test(t, test_from_amqp_too_deep);
	tcase_add_test(t, test_writer);
	tcase_add_test(t, test_writer_without_memory);
	tcase_add_test(t, test_check_headers);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
