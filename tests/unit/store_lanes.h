/* SPDX-License-Identifier: Apache-2.0
 * On top of lane_world.h: a store with lanes of two queues, which is killed and started again, and one message that all
 * places of a test may hold. */
#ifndef TESTS_STORE_LANES_H
#define TESTS_STORE_LANES_H

#include "store/store.h"
#include "tests/unit/lane_world.h"

enum { QUEUE = 5, OTHER = 6, MANY = 5000 };

static struct lane *l, *other;
static struct entries found;

/* Lanes of two queues, after a start. */
static inline void
link_lanes(void)
{
	l = lane_open(w.s, QUEUE, 0, true, &w);
	lane_each(l, take_entry, &found);
	other = lane_open(w.s, OTHER, 0, true, &w);
	store_linked(w.s);
}

static inline void
setup(void)
{
	world_init();
	link_lanes();
	store_put(w.s, OBJECT_QUEUE, QUEUE, SPAN_LIT("queue"));
	store_put(w.s, OBJECT_QUEUE, OTHER, SPAN_LIT("other"));
	found.n = 0;
}

static inline void
teardown(void)
{
	entries_fini(&found);
	world_fini();
	ck_assert_int_eq(items_alive, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

/* Killed, started; what the lane has is in `found`. */
static inline void
kill_and_link(void)
{
	entries_fini(&found);
	world_kill();
	link_lanes();
}

static inline uint64_t
records(void)
{
	struct store_stats st;

	store_stats(w.s, &st);
	return st.journal_records;
}

static struct item *one; /* the test's own reference is in every lane's slot */

/* Publishes persistent messages first..last, all the same item. */
static inline void
publish_many(struct lane *lane, uint64_t first, uint64_t last)
{
	for (uint64_t seq = first; seq <= last; seq++)
		(void)publish(lane, seq, one);
}

static inline void
make_one(void)
{
	setup();
	one = item_of("hello");
}

static inline void
drop_one(void)
{
	item_unref(one);
	teardown();
}

#endif
