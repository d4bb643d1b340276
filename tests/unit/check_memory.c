/* SPDX-License-Identifier: Apache-2.0
 * The memory alarm: states by what is held, with their lower marks on the way down. */
#include <check.h>
#include <stdlib.h>

#include "base/attr.h"
#include "broker/memory.h"

static const struct {
	uint64_t held;
	enum memory_state state;
} steps[] = {
	/* limit 1000: hard 1100, clear 950 */
	{ 0, MEMORY_FINE },
	{ 999, MEMORY_FINE },
	{ 1000, MEMORY_HIGH },
	{ 1099, MEMORY_HIGH },
	{ 999, MEMORY_HIGH },
	{ 950, MEMORY_HIGH },
	{ 949, MEMORY_FINE },
	{ 999, MEMORY_FINE },
	{ 1100, MEMORY_HARD },
	{ 1099, MEMORY_HARD },
	{ 1000, MEMORY_HARD },
	{ 999, MEMORY_HIGH },
	{ 1099, MEMORY_HIGH },
	{ 5000, MEMORY_HARD },
	{ 900, MEMORY_FINE },
};

START_TEST(states)
{
	uint64_t base = mem_held[MEM_OUTPUT];
	enum memory_state was = MEMORY_FINE;
	uint64_t alarms = 0;
	struct memory m;

	memory_init(&m, 1000);
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		mem_held[MEM_OUTPUT] = base + steps[i].held;
		ck_assert_int_eq(memory_check(&m, i), was != steps[i].state);
		ck_assert_int_eq(m.state, steps[i].state);
		ck_assert_int_eq(memory_short(&m), steps[i].state != MEMORY_FINE);
		alarms += was == MEMORY_FINE && steps[i].state != MEMORY_FINE;
		ck_assert_uint_eq(m.alarms, alarms);
		ck_assert(!memory_check(&m, i));
		was = steps[i].state;
	}
	mem_held[MEM_OUTPUT] = base;
}
END_TEST

START_TEST(all_kinds_count)
{
	struct memory m;

	for (int kind = 0; kind < MEM_KINDS; kind++) {
		memory_init(&m, 1000);
		mem_add((enum mem_kind)kind, 1000);
		ck_assert(memory_check(&m, 1));
		mem_sub((enum mem_kind)kind, 1000);
		ck_assert(memory_check(&m, 2));
	}
}
END_TEST

START_TEST(topology_has_half)
{
	struct memory m;
	const struct error *e;

	memory_init(&m, 1000);
	mem_add(MEM_OUTPUT, 5000);
	mem_add(MEM_TOPOLOGY, 499);
	ck_assert_ptr_null(memory_check_topology(&m, "declare queue", SPAN_LIT("q"), "/"));
	mem_add(MEM_TOPOLOGY, 1);
	e = memory_check_topology(&m, "declare queue", SPAN_LIT("q"), "/");
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 406);
	ck_assert_str_eq(e->text,
	    "PRECONDITION_FAILED - cannot declare queue 'q' in vhost '/': queues, exchanges, "
	    "bindings and consumers take half of memory.limit");
	memory_init(&m, 0);
	ck_assert_ptr_null(memory_check_topology(&m, "declare queue", SPAN_LIT("q"), "/"));
	mem_sub(MEM_TOPOLOGY, 500);
	mem_sub(MEM_OUTPUT, 5000);
}
END_TEST

START_TEST(no_limit)
{
	struct memory m;

	memory_init(&m, 0);
	mem_add(MEM_OUTPUT, 1 << 30);
	ck_assert(!memory_check(&m, 1));
	ck_assert(!memory_short(&m));
	mem_sub(MEM_OUTPUT, 1 << 30);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("memory");
	TCase *t = tcase_create("memory");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, states);
	tcase_add_test(t, all_kinds_count);
	tcase_add_test(t, topology_has_half);
	tcase_add_test(t, no_limit);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
