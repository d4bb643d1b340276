/* SPDX-License-Identifier: Apache-2.0
 * Takers of a queue against a list that is searched: highest priority first, equals in turn. */
#include <check.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "broker/session.h"
#include "broker/takers.h"

enum { CONSUMERS = 200, STEPS = 20000 };

static struct takers t;
static struct consumer consumer[CONSUMERS];
static uint64_t added[CONSUMERS]; /* when it was put behind its equals; 0: no taker */
static bool joined[CONSUMERS];

static uint32_t
rnd(uint32_t below)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 16) % below;
}

static struct consumer *
expected(void)
{
	int best = -1;

	for (int i = 0; i < CONSUMERS; i++) {
		if (added[i] == 0)
			continue;
		if (best < 0 || consumer[i].priority > consumer[best].priority ||
		    (consumer[i].priority == consumer[best].priority && added[i] < added[best]))
			best = i;
	}
	return best < 0 ? NULL : &consumer[best];
}

static void
take_out(int i)
{
	takers_remove(&t, &consumer[i]);
	ck_assert(!consumer[i].is_ready);
	added[i] = 0;
}

static void
leave(int i)
{
	if (added[i] != 0)
		take_out(i);
	takers_leave(&t, &consumer[i]);
	joined[i] = false;
}

/* So many different priorities, 0 among them; now many consumers, now few. */
static const uint32_t priorities[] = { 1, 2, 3, 10, 1000, UINT32_MAX };

START_TEST(as_a_list_would)
{
	uint32_t different = priorities[_i];

	takers_init(&t);
	for (uint64_t step = 1; step <= STEPS; step++) {
		int i = (int)rnd(step / 1000 % 2 == 0 ? CONSUMERS : 5);

		if (!joined[i]) {
			consumer[i] = (struct consumer){ .priority = (int32_t)(rnd(different) -
				                                               different / 2) };
			takers_join(&t, &consumer[i]);
			joined[i] = true;
		} else if (rnd(4) == 0) {
			leave(i);
		} else if (added[i] == 0) {
			takers_add(&t, &consumer[i]);
			ck_assert(consumer[i].is_ready);
			added[i] = step;
		} else {
			take_out(i);
		}
		/* held for a while: nobody is found, whatever is done meanwhile */
		if (step % 97 == 0)
			takers_hold(&t, !t.is_held);
		ck_assert_ptr_eq(takers_first(&t), t.is_held ? NULL : expected());
		ck_assert(takers_any(&t) == (expected() != NULL));
	}
	takers_hold(&t, false);
	for (int i = 0; i < CONSUMERS; i++) {
		if (joined[i])
			leave(i);
		ck_assert_ptr_eq(takers_first(&t), expected());
	}
	takers_fini(&t);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("takers");
	TCase *c = tcase_create("takers");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, as_a_list_would, 0, COUNT_OF(priorities));
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
