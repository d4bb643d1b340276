/* SPDX-License-Identifier: Apache-2.0
 * Channels that publish faster than the store takes messages out of memory: each waits for its own queue, whatever its
 * messages are and however they come. The store does nothing until store_world_step(). */
#include <check.h>

#include "tests/unit/channel_world.h"
#include "tests/unit/store_world.h"

enum { BOUND = 100 /* messages of a queue in memory; it lags at twice as many */ };

static struct world w;
static struct peer p, other;

static const struct span persistent = { (const uint8_t *)"\20\0\2", 3 };

static void
open_peer(struct peer *to)
{
	peer_init(to, &w);
	peer_reach(to, CONN_OPEN);
	peer_channel(to, 1);
}

static void
setup(void)
{
	world_init(&w);
	store_world_init(&w);
	store_world.store->cfg.lane_entries = BOUND;
	memory_init(&w.b->memory, 1 << 30);
	open_peer(&p);
	open_peer(&other);
	(void)store_world_queue(&w, "a");
	(void)store_world_queue(&w, "b");
	store_world_step(&w);
}

static void
teardown(void)
{
	peer_fini(&p);
	peer_fini(&other);
	ck_assert(TAILQ_EMPTY(&w.a->parked[PARK_LAG]));
	store_world_fini(&w);
	world_fini(&w);
	world_held_nothing();
}

static bool
waits(struct peer *of)
{
	const struct channel *ch = connection_channel(of->c, 1);

	ck_assert(!ch->is_parked || ch->parked_for == PARK_LAG);
	return ch->is_parked;
}

static void
publish(struct peer *of, const char *queue, unsigned n, bool is_persistent)
{
	struct publish what = { .key = queue, .body = SPAN_LIT("m") };

	if (is_persistent)
		what.props = persistent;
	while (n-- > 0)
		peer_publish(of, 1, &what);
}

static uint64_t
ready(const char *name)
{
	return queue_find(vhost_find(w.b, SPAN_LIT("/")), span_str(name))->ready;
}

/* One more than fit, and one that shows it. */
static void
flood(struct peer *of, const char *queue, bool is_persistent)
{
	publish(of, queue, 2 * BOUND, is_persistent);
	ck_assert(!waits(of));
	publish(of, queue, 2, is_persistent);
	ck_assert(waits(of));
	ck_assert_uint_eq(ready(queue), 2 * BOUND + 1);
}

START_TEST(goes_on_when_there_is_room)
{
	flood(&p, "a", _i == 0);
	publish(&other, "b", 10, true);
	ck_assert(!waits(&other));
	for (int i = 0; i < 10 && waits(&p); i++)
		store_world_step(&w);
	ck_assert(!waits(&p));
	ck_assert_uint_eq(ready("a"), 2 * BOUND + 2);
}
END_TEST

START_TEST(each_waits_for_its_own)
{
	uint32_t messages;

	flood(&p, "a", true);
	flood(&other, "b", true);
	ck_assert_ptr_null(queue_delete(
	    queue_find(vhost_find(w.b, SPAN_LIT("/")), SPAN_LIT("a")), false, false, &messages));
	world_turns(&w, 3);
	ck_assert(!waits(&p) && waits(&other));
	for (int i = 0; i < 10 && waits(&other); i++)
		store_world_step(&w);
	ck_assert(!waits(&other));
}
END_TEST

/* A commit cannot be held back; what comes after it is. */
START_TEST(a_transaction)
{
	peer_method(&p, 1, AMQP_TX_SELECT_METHOD, NULL, 0);
	publish(&p, "a", 3 * BOUND, true);
	publish(&p, "b", 1, true);
	ck_assert(!waits(&p));
	peer_method(&p, 1, AMQP_TX_COMMIT_METHOD, NULL, 0);
	ck_assert_uint_eq(ready("a"), 3 * BOUND);
	for (int i = 0; i < 2; i++) { /* the commit is durable; the spill has not entered yet */
		while (journal_step(store_world.store->journal))
			;
		(void)store_events(store_world.store);
		world_turns(&w, 1);
		if (i == 0)
			(void)store_turn(store_world.store, w.b->next_id, w.b->now_ms);
	}
	publish(&p, "a", 1, false);
	ck_assert(waits(&p));
	for (int i = 0; i < 10 && waits(&p); i++)
		store_world_step(&w);
	ck_assert(!waits(&p));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("park_lag");
	TCase *t = tcase_create("park_lag");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, goes_on_when_there_is_room, 0, 2);
	tcase_add_test(t, each_waits_for_its_own);
	tcase_add_test(t, a_transaction);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
