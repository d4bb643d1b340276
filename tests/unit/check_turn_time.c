/* SPDX-License-Identifier: Apache-2.0 */
#include "base/turn_time.h"

#include <check.h>
#include <stdlib.h>

enum { SECOND = 1000 * 1000 };

START_TEST(longest)
{
	struct turn_time t = { 0 };
	uint64_t at = 77 * SECOND, cpu = 9 * SECOND;

	turn_time_note(&t, at, cpu); /* the start does not count */
	ck_assert_uint_eq(t.max_us, 0);
	ck_assert(!turn_time_is_due(&t, at + TURN_TIME_LEAST_US - 1));
	ck_assert(turn_time_is_due(&t, at + TURN_TIME_LEAST_US));
	turn_time_note(&t, at += SECOND, cpu += 700);
	turn_time_note(&t, at += SECOND, cpu += 300);
	ck_assert_uint_eq(t.max_us, 700);
	ck_assert_uint_eq(turn_time_lately(&t, at), 700);
	turn_time_note(&t, at += 60 * SECOND, cpu += 100);
	ck_assert_uint_eq(turn_time_lately(&t, at), 700);
	turn_time_note(&t, at += 60 * SECOND, cpu += 200);
	ck_assert_uint_eq(turn_time_lately(&t, at), 200);
	ck_assert_uint_eq(turn_time_lately(&t, at + 60 * SECOND), 200);
	ck_assert_uint_eq(turn_time_lately(&t, at + 121 * SECOND), 0);
	ck_assert_uint_eq(t.max_us, 700);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("turn_time");
	TCase *t = tcase_create("turn_time");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, longest);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
