/* SPDX-License-Identifier: Apache-2.0
 * Sets of ranges against a bitmap. */
#include "base/rangeset.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/rnd.h"

enum { NUMBERS = 200, STEPS_MODEL = 4000 };

static bool model[NUMBERS];

/* ck_assert writes to a file at each call. */
#define REQUIRE(ok)                                      \
	do {                                             \
		if (!(ok))                               \
			ck_abort_msg("not so: %s", #ok); \
	} while (0)

static uint64_t
model_set(uint64_t first, uint64_t last, bool to)
{
	uint64_t changed = 0;

	for (uint64_t n = first; n <= last; n++) {
		changed += model[n] != to;
		model[n] = to;
	}
	return changed;
}

static void
compare(const struct rangeset *s)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		REQUIRE(s->r[i].first <= s->r[i].last);
		REQUIRE(i == 0 || s->r[i].first > s->r[i - 1].last + 1);
	}
	for (uint64_t n = 0; n < NUMBERS; n++) {
		uint32_t at = rangeset_find(s, n);

		REQUIRE(rangeset_has(s, n) == model[n]);
		REQUIRE(at == s->n || s->r[at].last >= n);
		REQUIRE(at == 0 || s->r[at - 1].last < n);
		count += model[n];
	}
	REQUIRE(s->count == count);
}

START_TEST(against_a_bitmap)
{
	struct rnd r = rnd_of((uint64_t)_i);
	struct rangeset s = { 0 };

	memset(model, 0, sizeof model);
	for (int i = 0; i < STEPS_MODEL; i++) {
		uint64_t first = rnd(&r, NUMBERS), last = first + rnd(&r, 1 + (uint64_t)_i % 20);
		uint64_t had = 0;

		if (last >= NUMBERS)
			last = NUMBERS - 1;
		for (uint64_t n = first; n <= last; n++)
			had += model[n];
		REQUIRE(rangeset_overlap(&s, first, last) == had);
		if (rnd_chance(&r, 50))
			REQUIRE(rangeset_add(&s, first, last) == model_set(first, last, true));
		else
			REQUIRE(rangeset_remove(&s, first, last) == model_set(first, last, false));
		if (i % 16 == 0)
			compare(&s);
	}
	compare(&s);
	rangeset_fini(&s);
}
END_TEST

START_TEST(ends_of_the_numbers)
{
	struct rangeset s = { 0 };

	ck_assert_uint_eq(rangeset_add(&s, UINT64_MAX, UINT64_MAX), 1);
	ck_assert_uint_eq(rangeset_add(&s, 0, 0), 1);
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(rangeset_add(&s, UINT64_MAX - 1, UINT64_MAX), 1);
	ck_assert_uint_eq(rangeset_add(&s, 0, 1), 1);
	ck_assert_uint_eq(s.n, 2);
	ck_assert_uint_eq(rangeset_overlap(&s, 0, UINT64_MAX), 4);
	ck_assert_uint_eq(rangeset_remove(&s, 0, 0), 1);
	ck_assert_uint_eq(rangeset_remove(&s, UINT64_MAX, UINT64_MAX), 1);
	ck_assert(rangeset_has(&s, 1) && rangeset_has(&s, UINT64_MAX - 1) && s.count == 2);
	rangeset_fini(&s);
}
END_TEST

/* Acknowledgements of two consumers in turn: what touches becomes one. */
START_TEST(touching_ones_merge)
{
	struct rangeset s = { 0 };

	for (uint64_t n = 1; n < 1000; n += 2)
		rangeset_add(&s, n, n);
	ck_assert_uint_eq(s.n, 500);
	for (uint64_t n = 998; n > 0; n -= 2)
		rangeset_add(&s, n, n);
	ck_assert_uint_eq(s.n, 1);
	ck_assert(s.r[0].first == 1 && s.r[0].last == 999 && s.count == 999);
	rangeset_clear(&s);
	ck_assert(s.n == 0 && s.count == 0 && s.r == NULL);
	rangeset_add(&s, 7, 8);
	rangeset_clear(&s);
	ck_assert(s.n == 0 && s.count == 0 && !rangeset_has(&s, 7));
	rangeset_fini(&s);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rangeset");
	TCase *t = tcase_create("rangeset");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, against_a_bitmap, 0, 40);
	tcase_add_test(t, ends_of_the_numbers);
	tcase_add_test(t, touching_ones_merge);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
