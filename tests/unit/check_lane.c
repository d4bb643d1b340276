/* SPDX-License-Identifier: Apache-2.0
 * The ring of a lane, its states and what it holds of the journal; against a model. */
#include "store/lane.h"

#include "tests/sim/rnd.h"
#include "tests/unit/lane_world.h"

/* ck_assert writes to a file at each call. */
#define REQUIRE(ok)                                      \
	do {                                             \
		if (!(ok))                               \
			ck_abort_msg("not so: %s", #ok); \
	} while (0)

enum { QUEUE = 5 };

static struct lane *l;

static void
setup(void)
{
	world_init();
	store_linked(w.s);
	w.cfg.lane_entries = w.s->cfg.lane_entries = UINT64_MAX; /* nothing is spilled here */
	w.s->cfg.lane_bytes = UINT64_MAX;
	store_put(w.s, OBJECT_QUEUE, QUEUE, SPAN_LIT("queue"));
	l = lane_open(w.s, QUEUE, 0, true, &w);
	ck_assert_ptr_eq(lane_owner(l), &w);
}

static void
teardown(void)
{
	world_fini();
	ck_assert_int_eq(items_alive, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

static uint64_t
holds(void)
{
	struct journal_file_info i;

	ck_assert(journal_file(w.s->journal, journal_current(w.s->journal), &i));
	return i.live;
}

START_TEST(grows_and_goes)
{
	struct item *i = item_of("0123456789");
	uint64_t before = holds();

	ck_assert_uint_eq(lane_next_seq(l), 1);
	for (uint64_t seq = 1; seq <= 1000; seq++)
		lane_put_slot(l, seq * 3, i, seq % 2 == 0 ? journal_end(w.s->journal) : 0);
	ck_assert_uint_eq(lane_next_seq(l), 3001);
	ck_assert(l->live == 1000 && l->journalled == 500 && l->bytes == 10000);
	ck_assert_uint_eq(w.s->stats.journal_live_bytes, 5000);
	ck_assert_uint_eq(holds(), before + 500);
	ck_assert(lane_slot(l, 3)->item == i && lane_slot(l, 4) == NULL && lane_slot(l, 0) == NULL);
	ck_assert(
	    lane_slot(l, 3000) != NULL && lane_slot(l, 3001) == NULL && lane_slot(l, 1) == NULL);
	lane_clear_slot(l, 4);
	ck_assert_uint_eq(l->live, 1000);
	lane_clear_slot(l, 6);
	ck_assert_uint_eq(l->low, 3);
	lane_clear_slot(l, 3);
	ck_assert_uint_eq(l->low, 9);
	lane_clear_through(l, 2980);
	ck_assert_uint_eq(l->low, 2982);
	ck_assert_uint_gt(l->mask, 1000);
	lane_shrink(l);
	ck_assert_uint_lt(l->mask, 1000);
	ck_assert(l->live == 7 && lane_slot(l, 2982) != NULL && lane_slot(l, 3000) != NULL);
	lane_clear_through(l, 3000);
	ck_assert(l->live == 0 && l->ring == NULL && l->bytes == 0 && l->journalled == 0);
	ck_assert_uint_eq(holds(), before);
	ck_assert_uint_eq(w.s->stats.journal_live_bytes, 0);
	/* Copies of older ones may come after newer ones. */
	lane_put_slot(l, 5000, i, 0);
	lane_put_slot(l, 4900, i, 0);
	ck_assert(l->low == 4900 && lane_slot(l, 5000) != NULL && lane_next_seq(l) == 5001);
	lane_clear_through(l, 5000);
	item_unref(i);
}
END_TEST

/* Puts, clears, states, holds at random; the model is an array. */
START_TEST(against_a_model)
{
	enum { SEQS = 3000 };
	static struct {
		bool alive, durable;
		struct op_state state;
	} m[SEQS + 1];
	struct rnd r = rnd_of((uint64_t)_i);
	struct item *item = item_of("abc");
	uint64_t next = 1, live = 0, before = holds(), durable = 0;

	memset(m, 0, sizeof m);
	while (next < SEQS) {
		uint64_t seq = 1 + rnd(&r, next);
		struct op_state state = { true, (uint32_t)rnd(&r, 3), (uint32_t)rnd(&r, 3) };

		if (rnd_chance(&r, _i % 2 == 0 ? 30 : 60)) {
			next += 1 + (rnd_chance(&r, 10) ? rnd(&r, 40) : 0);
			if (next > SEQS)
				break;
			m[next].alive = true;
			m[next].durable = rnd_chance(&r, 50);
			live++;
			durable += m[next].durable;
			lane_put_slot(
			    l, next, item, m[next].durable ? journal_end(w.s->journal) : 0);
		} else if (rnd_chance(&r, 70)) {
			if (rnd_chance(&r, 50))
				seq = l->low;
			if (seq > 0 && m[seq].alive) {
				live--;
				durable -= m[seq].durable;
				m[seq].alive = false;
				m[seq].state = (struct op_state){ 0 };
			}
			lane_clear_slot(l, seq);
			if (l->live > 0 && rnd_chance(&r, 10))
				lane_shrink(l);
		} else if (m[seq].alive) {
			m[seq].state = state;
			lane_put_state(l, seq, &state);
		}
		REQUIRE(l->live == live && l->journalled == durable && l->bytes == live * 3);
		REQUIRE(holds() == before + durable);
		REQUIRE(lane_next_seq(l) == (next == 1 ? 1 : next + 1));
	}
	for (uint64_t seq = 1; seq <= SEQS; seq++) {
		REQUIRE((lane_slot(l, seq) != NULL) == m[seq].alive);
		if (!m[seq].alive)
			continue;
		REQUIRE(lane_state(l, seq)->redelivered == m[seq].state.redelivered);
		REQUIRE(lane_state(l, seq)->deliveries == m[seq].state.deliveries);
		REQUIRE(lane_state(l, seq)->acquired == m[seq].state.acquired);
	}
	lane_clear_through(l, SEQS);
	REQUIRE(holds() == before && l->states == 0);
	item_unref(item);
}
END_TEST

START_TEST(moved)
{
	struct item *i = item_of("abc");
	uint64_t before = holds(), lsn = journal_end(w.s->journal);

	lane_put_slot(l, 1, i, 0);
	ck_assert(holds() == before && l->journalled == 0);
	lane_set_lsn(l, lane_slot(l, 1), lsn);
	ck_assert(holds() == before + 1 && l->journalled == 1 && lane_slot(l, 1)->lsn == lsn);
	lane_set_lsn(l, lane_slot(l, 1), lsn + 8);
	ck_assert(holds() == before + 1 && l->journalled == 1 && lane_slot(l, 1)->lsn == lsn + 8);
	lane_set_evidence(l, lsn);
	ck_assert_uint_eq(holds(), before + 2);
	lane_set_evidence(l, lsn + 8);
	ck_assert_uint_eq(holds(), before + 2);
	lane_empty(l);
	ck_assert_uint_eq(holds(), before);
	item_unref(i);
}
END_TEST

/* What a file says may ask for more than there is. */
START_TEST(no_room)
{
	struct item *i = item_of("abc");

	ck_assert(lane_try_room(l, 1000000));
	lane_put_slot(l, 1000000, i, 0);
	ck_assert(lane_try_room(l, 1));
	ck_assert(!lane_try_room(l, SEQ_MAX));
	mem_fail_try(1, false);
	ck_assert(!lane_try_room(l, 10000000));
	mem_fail_try(0, false);
	ck_assert(lane_slot(l, 1000000)->item == i);
	lane_clear_slot(l, 1000000);
	item_unref(i);
}
END_TEST

/* An old message that stays makes the lane sparse, which is when it goes to the chain. */
START_TEST(sparse)
{
	struct item *i = item_of("abc");

	for (uint64_t seq = 1; seq <= 200000; seq++) {
		lane_put_slot(l, seq, i, 0);
		ck_assert(!lane_is_sparse(l) || seq > LANE_SPARSE);
		if (seq > 1)
			lane_clear_slot(l, seq);
	}
	ck_assert(lane_is_sparse(l));
	lane_clear_slot(l, 1);
	ck_assert(!lane_is_sparse(l));
	item_unref(i);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("lane");
	TCase *t = tcase_create("lane");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, grows_and_goes);
	tcase_add_loop_test(t, against_a_model, 0, 20);
	tcase_add_test(t, moved);
	tcase_add_test(t, no_room);
	tcase_add_test(t, sparse);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
