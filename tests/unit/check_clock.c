/* SPDX-License-Identifier: Apache-2.0
 * The node's clock: the wall clock at its start plus monotonic time. The test stands in for the kernel's clocks. */
#include "base/clock.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What the clocks show, in nanoseconds; only within a test, for the library looks at the time, too. */
static bool faked;
static uint64_t wall_ns, mono_ns, boot_ns;

int
clock_gettime(clockid_t id, struct timespec *t)
{
	uint64_t ns;

	if (!faked)
		return (int)syscall(SYS_clock_gettime, id, t);
	ns = id == CLOCK_REALTIME ? wall_ns : id == CLOCK_BOOTTIME ? boot_ns : mono_ns;

	t->tv_sec = (time_t)(ns / 1000000000);
	t->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

static void
stand_in(void)
{
	faked = true;
	wall_ns = 1700000000123456789;
	mono_ns = 5000000000;
	boot_ns = UINT64_C(4000000000) * 1000000000; /* after any process began */
}

START_TEST(begins_with_the_wall_clock)
{
	stand_in();
	clock_init();
	ck_assert_uint_eq(clock_now_ms(), 1700000000123);
	ck_assert_uint_eq(clock_mono_us(), 5000000);
	faked = false;
}
END_TEST

START_TEST(goes_on_with_monotonic_time)
{
	stand_in();
	clock_init();
	mono_ns += 1500999;
	ck_assert_uint_eq(clock_now_ms(), 1700000000124);
	ck_assert_uint_eq(clock_mono_us(), 5001500);
	mono_ns += UINT64_C(400) * 24 * 3600 * 1000000000;
	ck_assert_uint_eq(clock_now_ms(), 1700000000124 + UINT64_C(400) * 24 * 3600 * 1000);
	faked = false;
}
END_TEST

/* A day ahead, a day back, to 1970, to before that. */
static const int64_t jumps_s[] = { 86400, -86400, -1700000000, 1000000000 };

START_TEST(a_jump_of_the_wall_clock_changes_nothing)
{
	uint64_t before;

	stand_in();
	clock_init();
	before = clock_now_ms();
	wall_ns = (uint64_t)((int64_t)wall_ns + jumps_s[_i] * 1000000000);
	ck_assert_uint_eq(clock_now_ms(), before);
	mono_ns += 10000000;
	ck_assert_uint_eq(clock_now_ms(), before + 10);
	faked = false;
}
END_TEST

/* Milliseconds are not rounded twice: with time in steps of 0.3 ms the clock never stands still for two. */
START_TEST(never_goes_back)
{
	uint64_t last;

	stand_in();
	clock_init();
	last = clock_now_ms();
	for (int i = 0; i < 10000; i++) {
		uint64_t now;

		mono_ns += 300000;
		now = clock_now_ms();
		ck_assert(now == last || now == last + 1);
		last = now;
	}
	ck_assert_uint_eq(last, 1700000000123 + 3000);
	faked = false;
}
END_TEST

START_TEST(starts_by_itself)
{
	stand_in();
	ck_assert_uint_eq(clock_now_ms(), 1700000000123);
	faked = false;
}
END_TEST

/* By the kernel's record; a clock that is behind it gives 0 and not 600,000 years. */
START_TEST(since_the_start)
{
	uint64_t first;

	stand_in();
	clock_init();
	first = clock_since_start_us();
	ck_assert_uint_gt(first, 0);
	boot_ns += 2500000;
	ck_assert_uint_eq(clock_since_start_us(), first + 2500);
	boot_ns = 0;
	ck_assert_uint_eq(clock_since_start_us(), 0);
	faked = false;
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("clock");
	TCase *t = tcase_create("clock");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, begins_with_the_wall_clock);
	tcase_add_test(t, goes_on_with_monotonic_time);
	tcase_add_loop_test(t, a_jump_of_the_wall_clock_changes_nothing, 0,
	    (int)(sizeof jumps_s / sizeof *jumps_s));
	tcase_add_test(t, never_goes_back);
	tcase_add_test(t, starts_by_itself);
	tcase_add_test(t, since_the_start);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
