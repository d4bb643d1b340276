/* SPDX-License-Identifier: Apache-2.0
 * The store through its interface: what is journalled when, what a killed node finds again of it, and who waits. */
#include "store/store.h"

#include "tests/unit/store_lanes.h"

START_TEST(found_again)
{
	struct item *a = item_of("one"), *b = item_of("three");
	struct store_wait wait = publish(l, 1, a);

	ck_assert(wait.durable && store_must_wait(w.s, wait));
	publish(l, 3, b);
	world_turn();
	ck_assert(!store_must_wait(w.s, wait));
	kill_and_link();
	ck_assert_uint_eq(w.report.messages, 2);
	ck_assert_uint_eq(found.n, 2);
	ck_assert(found.seq[0] == 1 && found.seq[1] == 3);
	ck_assert(found.item[0]->size == 3 && memcmp(found.item[1]->body, "three", 5) == 0);
	ck_assert_uint_eq(lane_next_seq(l), 4);
	/* Once. */
	lane_each(l, take_entry, &found);
	ck_assert_uint_eq(found.n, 2);
	item_unref(a);
	item_unref(b);
}
END_TEST

START_TEST(not_handed_over)
{
	publish_many(l, 1, 3);
	world_turn();
	publish_many(l, 4, 5);
	kill_and_link();
	ck_assert_uint_eq(found.n, 3);
	ck_assert_uint_eq(lane_next_seq(l), 4);
}
END_TEST

START_TEST(acks_are_merged)
{
	uint64_t before;

	publish_many(l, 1, 10);
	world_turn();
	before = records();
	for (uint64_t seq = 1; seq <= 5; seq++)
		lane_ack(l, seq, one->size, ACK_ACKED);
	lane_ack(l, 8, one->size, ACK_ACKED);
	lane_ack(l, 8, one->size, ACK_ACKED); /* not known any more */
	lane_ack(l, 80, one->size, ACK_ACKED);
	ck_assert_uint_eq(records(), before);
	world_turn();
	ck_assert_uint_eq(records(), before + 1);
	lane_ack(l, 6, one->size, ACK_EXPIRED);
	lane_ack(l, 7, one->size, ACK_ACKED);
	world_turn();
	ck_assert_uint_eq(records(), before + 3);
	kill_and_link();
	ck_assert_uint_eq(found.n, 2);
	ck_assert(found.seq[0] == 9 && found.seq[1] == 10);
}
END_TEST

/* A long run of single ranges does not wait for the turn. */
START_TEST(many_gaps)
{
	uint64_t before;

	publish_many(l, 1, MANY);
	before = records();
	w.s->cfg.lane_entries = MANY;
	for (uint64_t seq = 1; seq <= MANY; seq += 2) {
		lane_ack(l, seq, one->size, ACK_ACKED);
		ck_assert_uint_lt(l->acks.n, 2000);
	}
	ck_assert_uint_gt(records(), before);
	for (uint64_t seq = 2; seq <= MANY; seq += 2)
		lane_ack(l, seq, one->size, ACK_ACKED);
	world_turn();
	kill_and_link();
	ck_assert_uint_eq(found.n, 0);
	ck_assert_uint_eq(lane_next_seq(l), MANY + 1);
}
END_TEST

START_TEST(volatile_journals_nothing)
{
	struct item *v = item_new("v", 1, false);
	struct op_state state = { true, 1, 1 };
	uint64_t before;

	world_turn();
	before = records();
	(void)lane_add_volatile(l, 1, v);
	(void)lane_add_volatile(l, 2, v);
	lane_set_state(l, 2, &state);
	lane_ack(l, 1, 1, ACK_ACKED);
	world_turn();
	ck_assert_uint_eq(records(), before);
	ck_assert(l->live == 1 && lane_state(l, 2)->redelivered);
	lane_ack(l, 2, 1, ACK_ACKED);
	ck_assert_uint_eq(l->live, 0);
	item_unref(v);
}
END_TEST

START_TEST(one_record)
{
	struct lane_place places[] = { { l, 2 }, { other, 1 } };
	struct item *two = item_of("two");
	struct store_wait wait;
	uint64_t before;

	publish_many(l, 1, 1);
	world_turn();
	before = records();
	store_begin(w.s);
	wait = store_publish(w.s, places, 2, two);
	ck_assert_uint_eq(wait.lsn, 0);
	lane_ack(l, 1, one->size, ACK_MOVED);
	publish_many(l, 3, 3);
	lane_ack(l, 3, one->size, ACK_ACKED); /* made in it, gone in it */
	ck_assert_uint_eq(records(), before);
	ck_assert_uint_eq(lane_slot(l, 2)->lsn, LSN_OPEN);
	wait = store_end(w.s);
	ck_assert(wait.lsn != 0 && wait.durable);
	ck_assert_uint_eq(records(), before + 1);
	ck_assert_uint_eq(lane_slot(l, 2)->lsn, wait.lsn);
	ck_assert_uint_eq(lane_slot(other, 1)->lsn, wait.lsn);
	ck_assert(l->evidence == wait.lsn && other->evidence == wait.lsn);
	world_turn();
	ck_assert_uint_eq(records(), before + 1);
	kill_and_link();
	ck_assert_uint_eq(found.n, 1);
	ck_assert(found.seq[0] == 2 && memcmp(found.item[0]->body, "two", 3) == 0);
	ck_assert_uint_eq(lane_next_seq(l), 4);
	lane_each(other, take_entry, &found);
	ck_assert_uint_eq(found.n, 2);
	ck_assert_ptr_eq(found.item[0], found.item[1]); /* one message in both */
	item_unref(two);
}
END_TEST

START_TEST(nothing_in_a_record)
{
	uint64_t before;

	world_turn();
	before = records();
	store_begin(w.s);
	ck_assert_uint_eq(store_end(w.s).lsn, 0);
	ck_assert_uint_eq(records(), before);
	/* A lane that closes within it is forgotten. */
	store_begin(w.s);
	publish_many(other, 1, 3);
	lane_close(&other);
	ck_assert_uint_ne(store_end(w.s).lsn, 0);
	world_turn();
}
END_TEST

/* What was merged before a record is opened comes before it. */
START_TEST(order_of_merged)
{
	struct store_wait wait;
	uint64_t before;

	publish_many(l, 1, 2);
	world_turn();
	before = records();
	lane_ack(l, 1, one->size, ACK_ACKED);
	store_begin(w.s);
	ck_assert_uint_eq(records(), before + 1);
	publish_many(other, 1, 1);
	wait = store_end(w.s);
	ck_assert_uint_eq(l->is_dirty, false);
	lane_ack(l, 2, one->size, ACK_ACKED);
	store_gone(w.s, OBJECT_QUEUE, OTHER);
	ck_assert_uint_eq(l->is_dirty, false);
	ck_assert_uint_gt(w.s->objects_lsn, wait.lsn);
	lane_close(&other);
}
END_TEST

START_TEST(states)
{
	struct op_state first = { true, 2, 3 }, second = { true, 7, 8 };
	uint64_t before;

	publish_many(l, 1, 6);
	world_turn();
	before = records();
	for (uint64_t seq = 1; seq <= 4; seq++)
		lane_set_state(l, seq, &first);
	lane_set_state(l, 3, &second);
	lane_set_state(l, 6, &second);
	lane_ack(l, 6, one->size, ACK_ACKED);
	lane_mark_delivered(l, 5);
	world_turn();
	ck_assert_uint_eq(records(), before + 3); /* ACK, STATE, MARK */
	kill_and_link();
	ck_assert_uint_eq(found.n, 5);
	ck_assert(found.state[0].redelivered && found.state[0].deliveries == 2 &&
	          found.state[0].acquired == 3);
	ck_assert(found.state[2].deliveries == 7 && found.state[3].deliveries == 2);
	ck_assert(!found.state[4].redelivered && found.state[4].deliveries == 0);
	ck_assert_uint_eq(lane_delivered(l), 5);
}
END_TEST

/* Given out and acknowledged within a turn: no MARK. */
START_TEST(marks)
{
	uint64_t before;

	publish_many(l, 1, 3);
	world_turn();
	before = records();
	lane_mark_delivered(l, 1);
	lane_ack(l, 1, one->size, ACK_ACKED);
	world_turn();
	ck_assert_uint_eq(records(), before + 1);
	lane_mark_delivered(l, 2);
	world_turn();
	ck_assert_uint_eq(records(), before + 2);
	ck_assert_uint_ne(l->mark, 0);
	lane_mark_delivered(l, 2);
	world_turn();
	ck_assert_uint_eq(records(), before + 2);
	lane_ack(l, 2, one->size, ACK_ACKED);
	world_turn();
	ck_assert_uint_eq(l->mark, 0);
	kill_and_link();
	ck_assert(found.n == 1 && found.seq[0] == 3 && lane_delivered(l) == 2);
}
END_TEST

/* Files are given up; what lives in them is moved, and numbers go on where they were. */
START_TEST(files_roll)
{
	struct item *big = item_new(NULL, 0, true), *fat = xcalloc(1, sizeof *fat + 20000);
	struct op_state state = { true, 1, 2 };
	uint64_t seq = 1;

	fat->refs = 1;
	fat->size = 20000;
	fat->persistent = true;
	items_alive++;
	publish_many(l, 1, 3);
	lane_set_state(l, 2, &state);
	lane_mark_delivered(l, 2);
	(void)publish(l, 4, big);
	lane_ack(l, 4, 0, ACK_ACKED);
	for (int i = 0; i < 40; i++) {
		for (int k = 0; k < 20; k++, seq++) {
			(void)publish(other, seq, fat);
			lane_ack(other, seq, fat->size, ACK_ACKED);
		}
		world_turn();
	}
	ck_assert_uint_gt(journal_oldest(w.s->journal), 2);
	ck_assert_uint_gt(w.s->stats.moved_bytes, 0);
	kill_and_link();
	ck_assert_uint_eq(found.n, 3);
	ck_assert(found.seq[0] == 1 && found.seq[1] == 2 && found.seq[2] == 3);
	ck_assert(found.state[1].redelivered && found.state[1].deliveries == 1 &&
	          found.state[1].acquired == 2);
	ck_assert(lane_next_seq(l) == 5 && lane_delivered(l) == 2);
	ck_assert_uint_eq(lane_next_seq(other), seq);
	ck_assert(
	    object_exists(w.s, OBJECT_QUEUE, QUEUE) && object_exists(w.s, OBJECT_QUEUE, OTHER));
	item_unref(big);
	item_unref(fat);
}
END_TEST

/* ---- waiting ---- */

START_TEST(policies)
{
	struct sync_setting ms = { SYNC_POLICY_MS, 50 }, never = { SYNC_POLICY_NEVER, 0 };
	struct lane_place places[] = { { l, 1 }, { other, 1 } };
	struct store_wait wait;
	struct sync_setting got;

	lane_set_sync(l, never);
	lane_set_sync(other, ms);
	got = sync_stricter(never, ms);
	ck_assert(got.policy == SYNC_POLICY_MS && got.ms == 50);
	got = sync_stricter(ms, (struct sync_setting){ SYNC_POLICY_MS, 20 });
	ck_assert_uint_eq(got.ms, 20);
	wait = store_publish(w.s, places, 2, one);
	ck_assert(!wait.durable && store_must_wait(w.s, wait));
	world_turn();
	ck_assert(!store_must_wait(w.s, wait));
	lane_set_sync(other, (struct sync_setting){ 0 });
	places[0].seq = places[1].seq = 2;
	wait = store_publish(w.s, places, 2, one);
	ck_assert(wait.durable);
	world_turn();
	ck_assert(!store_must_wait(w.s, wait));
	ck_assert(!store_must_wait(w.s, (struct store_wait){ 0 }));
	ck_assert_int_eq(store_hold(w.s), STORE_FINE);
}
END_TEST

/* Purge waits for everything so far, soon: what an acknowledgement alone would not ask for. */
START_TEST(wait_for_all)
{
	struct store_wait wait;

	publish_many(l, 1, 1);
	world_turn();
	ck_assert_uint_eq(store_wait_all(w.s).lsn, 0);
	lane_ack(l, 1, one->size, ACK_PURGED);
	wait = store_wait_all(w.s);
	ck_assert(wait.durable && store_must_wait(w.s, wait) && !l->is_dirty);
	(void)store_turn(w.s, w.next_id, w.now_ms);
	while (journal_step(w.s->journal))
		;
	(void)store_events(w.s);
	ck_assert(!store_must_wait(w.s, wait));
	kill_and_link();
	ck_assert_uint_eq(found.n, 0);
}
END_TEST

static Suite *
make_suite(void)
{
	Suite *s = suite_create("store");
	TCase *t = tcase_create("store");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, make_one, drop_one);
	tcase_add_test(t, found_again);
	tcase_add_test(t, not_handed_over);
	tcase_add_test(t, acks_are_merged);
	tcase_add_test(t, many_gaps);
	tcase_add_test(t, volatile_journals_nothing);
	tcase_add_test(t, one_record);
	tcase_add_test(t, nothing_in_a_record);
	tcase_add_test(t, order_of_merged);
	tcase_add_test(t, states);
	tcase_add_test(t, marks);
	tcase_add_test(t, files_roll);
	tcase_add_test(t, policies);
	tcase_add_test(t, wait_for_all);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(make_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
