/* SPDX-License-Identifier: Apache-2.0
 * What hermes bench tells of a run: percentiles, and which messages came; and tables that a broker sends. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "cli/bench_histogram.h"
#include "cli/bench_verify.h"
#include "cli/bench_wire.h"

START_TEST(percentiles_are_a_little_too_high_at_most)
{
	static const uint64_t at[] = { 0, 1, 63, 64, 65, 127, 128, 1000, 999999, 123456789,
		UINT64_C(1) << 62 };
	struct bench_histogram *h = xcalloc(1, sizeof *h);

	ck_assert_uint_eq(bench_histogram_quantile(h, 0.5), 0);
	for (size_t i = 0; i < COUNT_OF(at); i++) {
		memset(h, 0, sizeof *h);
		bench_histogram_add(h, (int64_t)at[i]);
		bench_histogram_add(h, INT64_MAX);
		ck_assert_uint_ge(bench_histogram_quantile(h, 0.5), at[i]);
		ck_assert_uint_le(bench_histogram_quantile(h, 0.5), at[i] + at[i] / 60);
		ck_assert_uint_eq(bench_histogram_quantile(h, 1), INT64_MAX);
	}
	free(h);
}
END_TEST

START_TEST(a_percentile_is_that_share_of_all)
{
	struct bench_histogram *h = xcalloc(1, sizeof *h);

	for (int i = 1; i <= 100; i++)
		bench_histogram_add(h, i);
	bench_histogram_add(h, -5); /* as zero */
	ck_assert_uint_eq(bench_histogram_quantile(h, 0), 0);
	ck_assert_uint_eq(bench_histogram_quantile(h, 0.5), 50);
	ck_assert_uint_eq(bench_histogram_quantile(h, 0.99), 99);
	ck_assert_uint_eq(bench_histogram_quantile(h, 1), 100);
	ck_assert_uint_eq(h->max, 100);
	ck_assert(bench_histogram_mean(h) > 49.9 && bench_histogram_mean(h) < 50.1);
	free(h);
}
END_TEST

START_TEST(each_number_once)
{
	struct bench_verify *v = bench_verify_new(2);

	ck_assert_uint_eq(bench_verify_missing(v, 1, 9, 5), 5); /* nothing came */
	ck_assert(bench_verify_arrived(v, 0, 0, 0));
	ck_assert(bench_verify_arrived(v, 0, 0, 1));
	ck_assert(!bench_verify_arrived(v, 0, 0, 1));
	ck_assert(bench_verify_arrived(v, 0, 0, 4)); /* early */
	ck_assert(!bench_verify_arrived(v, 0, 0, 4));
	ck_assert_uint_eq(bench_verify_missing(v, 0, 0, 5), 2);
	ck_assert_uint_eq(bench_verify_missing(v, 0, 0, 7), 4);
	ck_assert(bench_verify_arrived(v, 0, 0, 3));
	ck_assert(bench_verify_arrived(v, 0, 0, 2));
	ck_assert_uint_eq(bench_verify_missing(v, 0, 0, 5), 0);
	ck_assert(!bench_verify_arrived(v, 0, 0, 3));
	/* other publishers and queues have numbers of their own */
	ck_assert(bench_verify_arrived(v, 0, 7, 0));
	ck_assert(bench_verify_arrived(v, 1, 0, 0));
	ck_assert_uint_eq(bench_verify_missing(v, 0, 7, 1), 0);
	ck_assert_uint_eq(bench_verify_missing(v, 0, 3, 1), 1);
	bench_verify_free(&v);
	ck_assert_ptr_null(v);
	bench_verify_free(&v);
}
END_TEST

START_TEST(what_is_far_behind_is_lost)
{
	struct bench_verify *v = bench_verify_new(1);
	const uint64_t w = BENCH_VERIFY_WINDOW;

	ck_assert(bench_verify_arrived(v, 0, 0, 1));
	ck_assert(bench_verify_arrived(v, 0, 0, w)); /* 0 is lost by it */
	ck_assert(!bench_verify_arrived(v, 0, 0, 0));
	ck_assert(bench_verify_arrived(v, 0, 0, w - 1));
	ck_assert_uint_eq(bench_verify_missing(v, 0, 0, w + 1), w - 2);
	/* far ahead: nothing of the window is left */
	ck_assert(bench_verify_arrived(v, 0, 0, 10 * w));
	ck_assert_uint_eq(bench_verify_missing(v, 0, 0, 10 * w + 1), 10 * w + 1 - 4);
	ck_assert(bench_verify_arrived(v, 0, 0, 10 * w + 1));
	ck_assert(!bench_verify_arrived(v, 0, 0, 10 * w));
	ck_assert_uint_eq(bench_verify_missing(v, 0, 0, 10 * w + 2), 10 * w + 2 - 5);
	bench_verify_free(&v);
}
END_TEST

START_TEST(a_number_is_found_in_a_table)
{
	uint8_t room[256];
	struct wire_out w = { .p = room, .room = sizeof room };
	int64_t value = 0;
	size_t mark = wire_table_begin(&w);
	struct span table;

	wire_entry_text(&w, "text", "long");
	wire_entry_bool(&w, "s", true); /* another kind than is looked for */
	wire_entry_number(&w, "t", -7);
	wire_entry_number(&w, "s", INT64_MAX);
	wire_table_end(&w, mark);
	ck_assert(!w.failed);
	table = span_of(room + 4, w.n - 4);
	ck_assert_uint_eq(get_be32(room), table.n);
	ck_assert(wire_find_number(table, "t", &value));
	ck_assert_int_eq(value, -7);
	ck_assert(wire_find_number(table, "s", &value));
	ck_assert_int_eq(value, INT64_MAX);
	ck_assert(!wire_find_number(table, "u", &value));
	/* cut anywhere, in memory of its own */
	for (size_t n = 0; n < table.n; n++) {
		uint8_t *cut = xmalloc(n > 0 ? n : 1);

		memcpy(cut, table.p, n);
		ck_assert(!wire_find_number(span_of(cut, n), "s", &value));
		free(cut);
	}
}
END_TEST

START_TEST(what_does_not_fit_is_not_written)
{
	uint8_t room[12];
	struct wire_out w = { .p = room, .room = sizeof room };
	char name[300];
	size_t mark = wire_method_begin(&w, 1, 7);

	ck_assert(!w.failed);
	wire_put8(&w, 1);
	wire_frame_end(&w, mark); /* 13 bytes */
	ck_assert(w.failed);
	w = (struct wire_out){ .p = room, .room = sizeof room };
	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	wire_put_short(&w, name);
	ck_assert(w.failed);
	ck_assert_uint_eq(w.n, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("bench");
	TCase *t = tcase_create("bench");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, percentiles_are_a_little_too_high_at_most);
	tcase_add_test(t, a_percentile_is_that_share_of_all);
	tcase_add_test(t, each_number_once);
	tcase_add_test(t, what_is_far_behind_is_lost);
	tcase_add_test(t, a_number_is_found_in_a_table);
	tcase_add_test(t, what_does_not_fit_is_not_written);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
