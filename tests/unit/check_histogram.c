/* SPDX-License-Identifier: Apache-2.0
 * Places of values, walked to and looked up. */
#include "base/histogram.h"

#include <check.h>
#include <stdlib.h>

#include "base/attr.h"

START_TEST(sizes_are_looked_up_as_they_are_walked_to)
{
	ck_assert_uint_eq(histogram_sizes[0], HISTOGRAM_SMALL);
	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t low = UINT64_C(1) << bit,
		         size[] = { low, low + 1, low * 3 / 2, low + (low - 1) };

		for (size_t i = 0; i < COUNT_OF(size); i++)
			ck_assert_uint_eq(histogram_size_place(size[i]),
			    histogram_place(histogram_sizes, size[i]));
	}
	for (unsigned i = 0; histogram_sizes[i] != 0; i++)
		for (uint64_t size = histogram_sizes[i] - 1; size <= histogram_sizes[i] + 1; size++)
			ck_assert_uint_eq(
			    histogram_size_place(size), histogram_place(histogram_sizes, size));
}
END_TEST

START_TEST(a_bound_belongs_to_what_is_below_it)
{
	struct histogram h = { .sum = 0 };

	histogram_add(&h, histogram_us, 0, 2);
	histogram_add(&h, histogram_us, 100, 1);
	histogram_add(&h, histogram_us, 101, 1);
	histogram_add(&h, histogram_us, 10000000, 1);
	histogram_add(&h, histogram_us, 10000001, 1);
	ck_assert_uint_eq(h.count[0], 3);
	ck_assert_uint_eq(h.count[1], 1);
	ck_assert_uint_eq(h.count[13], 1);
	ck_assert_uint_eq(h.count[14], 1);
	ck_assert_uint_eq(h.sum, 20000202);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("histogram");
	TCase *t = tcase_create("histogram");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, sizes_are_looked_up_as_they_are_walked_to);
	tcase_add_test(t, a_bound_belongs_to_what_is_below_it);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
