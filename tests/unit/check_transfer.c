/* SPDX-License-Identifier: Apache-2.0
 * Messages looked at, taken out of the middle, moved and sent back, wherever they lie; and killed in the midst of it. */
#include <check.h>
#include <stdlib.h>

#include "broker/binding.h"
#include "broker/transfer.h"
#include "broker/peek.h"
#include "tests/unit/persist_peer.h"

enum { MANY = 12000 };

static uint32_t
rnd(uint32_t below)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (uint32_t)(x >> 16) % below;
}

static void
fill(struct queue *q, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++) {
		(void)node_publish(&n, q, persistent_msg(i, 100), 0);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	node_settle(&n);
}

/* Most of it lies on disk; 1 to 20 were out, and came back. */
static struct queue *
long_queue(bool durable)
{
	struct queue *q;
	struct entry e;
	uint64_t tag;

	keep_little();
	q = node_queue(&n, "q", durable);
	fill(q, 1, MANY);
	if (durable)
		ck_assert_uint_gt(q->strand.behind, MANY / 2);
	for (int i = 0; i < 20; i++) {
		ck_assert(get(q, false, &e, &tag));
		msg_unref(&e.m);
	}
	session_recover(&peer.session);
	node_settle(&n);
	return q;
}

/* The next one of the walk; 0: there is none. */
static uint64_t
next(struct peek *w, struct queue *q, struct entry *e)
{
	enum peek_result found;
	unsigned count;

	for (int i = 0; (found = peek_next(w, q, e, 1, &count)) == PEEK_LATER; i++) {
		ck_assert_int_lt(i, 1000);
		(void)node_turn(&n);
	}
	if (found == PEEK_END)
		return 0;
	ck_assert_uint_eq(count, 1);
	return msg_number(e->m);
}

static uint64_t
see(struct peek *w, struct queue *q)
{
	struct entry e;
	uint64_t number = next(w, q, &e);

	if (number != 0)
		msg_unref(&e.m);
	return number;
}

START_TEST(a_peek_sees_all)
{
	static const uint64_t skips[] = { 0, 1, 19, 20, 21, 1000, 3000, 9999, MANY - 1, MANY,
		MANY + 5 };
	struct queue *q = long_queue(_i == 0);
	uint64_t ready = q->ready, unread = strand_unread(&q->strand);
	struct peek w = { 0 };

	for (uint64_t i = 1; i <= MANY; i++)
		ck_assert_uint_eq(see(&w, q), i);
	ck_assert_uint_eq(see(&w, q), 0);
	ck_assert_uint_eq(q->ready, ready);
	ck_assert_uint_eq(strand_unread(&q->strand), unread);
	peek_fini(&w);
	for (size_t i = 0; i < COUNT_OF(skips); i++) {
		w = (struct peek){ 0 };
		peek_skip(&w, q, skips[i]);
		ck_assert_uint_eq(see(&w, q), skips[i] < MANY ? skips[i] + 1 : 0);
		peek_fini(&w);
	}
	expect_numbers(q, 1, MANY);
}
END_TEST

/* A purge closes the files under it, or the queue goes. */
START_TEST(what_goes_meanwhile)
{
	struct queue *q = long_queue(true);
	struct peek w = { 0 };

	for (uint64_t i = 1; i <= 5000; i++)
		ck_assert_uint_eq(see(&w, q), i);
	if (_i == 0) {
		(void)queue_purge(q);
		fill(q, MANY + 1, MANY + 10);
		ck_assert_uint_eq(see(&w, q), 0);
		peek_fini(&w);
		expect_numbers(q, MANY + 1, MANY + 10);
	} else {
		queue_remove(q);
		peek_fini(&w);
	}
	node_settle(&n);
}
END_TEST

START_TEST(the_highest_priority_first)
{
	struct queue *q = world_priority_queue(&n.w, "q", true, 3);
	struct peek w = { 0 };

	for (uint64_t i = 0; i < 12; i++)
		(void)node_publish(&n, q, world_priority_msg(i + 1, 8, (uint8_t)(i % 4)), 0);
	for (uint64_t prio = 4; prio-- > 0;) {
		for (uint64_t i = prio; i < 12; i += 4)
			ck_assert_uint_eq(see(&w, q), i + 1);
	}
	ck_assert_uint_eq(see(&w, q), 0);
	peek_fini(&w);
	w = (struct peek){ 0 };
	peek_skip(&w, q, 4);
	ck_assert_uint_eq(see(&w, q), 7); /* the second one of priority 2 */
	peek_fini(&w);
}
END_TEST

/* Taken in the order of a walk, or backwards; then the others are there, in order, before and after a kill. */
START_TEST(out_of_the_middle)
{
	static bool gone[MANY + 1];
	struct queue *q = long_queue(_i < 2);
	struct peek w = { 0 };
	uint64_t number, left = MANY;
	struct entry e, kept[50];
	unsigned held = 0;

	memset(gone, 0, sizeof gone);
	while ((number = next(&w, q, &e)) != 0) {
		if (rnd(3) > 0 && (number > MANY - 100 || rnd(50) > 0)) {
			msg_unref(&e.m);
			continue;
		}
		if (held < COUNT_OF(kept) && rnd(10) == 0) {
			kept[held++] = e;
			continue;
		}
		ck_assert(queue_pick(q, &e));
		queue_entry_gone(q, &e, ACK_MOVED);
		ck_assert(!queue_pick(q, &e));
		gone[number] = true;
		left--;
		msg_unref(&e.m);
		if (rnd(100) == 0)
			(void)node_turn(&n);
	}
	while (held-- > 0) {
		ck_assert(queue_pick(q, &kept[held]));
		queue_entry_gone(q, &kept[held], ACK_MOVED);
		gone[msg_number(kept[held].m)] = true;
		left--;
		msg_unref(&kept[held].m);
	}
	peek_fini(&w);
	ck_assert_uint_eq(q->ready, left);
	ck_assert_uint_eq(q->ready_bytes, left * 100);
	if (_i == 1) {
		node_settle(&n);
		restart(false);
		q = queue("q");
		ck_assert_uint_eq(q->ready, left);
	}
	for (uint64_t i = 1; i <= MANY; i++) {
		if (!gone[i])
			expect_numbers(q, i, i);
	}
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	node_settle(&n);
}
END_TEST

/* All that is unread goes out of turn: what came after it is next, and a consumer gets it. */
START_TEST(all_that_is_unread)
{
	struct queue *q = long_queue(true);
	struct peek w = { 0 };
	struct entry e;
	uint64_t number;

	peer_consume(&peer, q, "c", true);
	queue_pause(q, true);
	while ((number = next(&w, q, &e)) != 0) {
		if (number > 3000 && number < MANY - 10) {
			ck_assert(queue_pick(q, &e));
			queue_entry_gone(q, &e, ACK_MOVED);
		}
		msg_unref(&e.m);
	}
	peek_fini(&w);
	queue_pause(q, false);
	for (int i = 0; i < 200 && q->ready > 0; i++)
		(void)node_turn(&n);
	ck_assert_uint_eq(peer.count, 3000 + 11);
	ck_assert_uint_eq(peer.got[peer.count - 1].number, MANY);
}
END_TEST

/* ---- jobs ---- */

static struct transfer *
start(struct transfer_spec spec)
{
	struct transfer *t = NULL;
	const struct error *e;

	spec.user = n.client.user;
	if (spec.most == 0)
		spec.most = UINT64_MAX;
	e = transfer_start(&spec, &t);
	ck_assert_msg(e == NULL, "%s", e != NULL ? e->text : "");
	return t;
}

static void
run(struct transfer *t)
{
	for (int i = 0; t->state == TRANSFER_RUNNING; i++) {
		ck_assert_int_lt(i, 10000);
		world_at(&n.w, n.w.broker->now_ms + 1);
		(void)node_turn(&n);
	}
}

START_TEST(all_or_some)
{
	struct queue *from = long_queue(_i != 1), *to = node_queue(&n, "to", true);
	uint64_t some = _i == 2 ? 4000 : MANY;
	struct transfer *t = start((struct transfer_spec){
	    .queue = from, .to_queue = to, .most = _i == 2 ? some : UINT64_MAX });

	ck_assert_uint_eq(t->total, some);
	run(t);
	ck_assert_int_eq(t->state, TRANSFER_DONE);
	ck_assert_uint_eq(t->done, some);
	ck_assert_uint_eq(from->ready, MANY - some);
	ck_assert_uint_eq(n.w.broker->stats.transferred, some);
	node_settle(&n);
	restart(false);
	expect_numbers(queue("to"), 1, some);
	if (_i == 2)
		expect_numbers(queue("q"), some + 1, MANY);
}
END_TEST

/* Killed again and again, and started again: each is in one of the two, once. */
START_TEST(killed_in_the_midst)
{
	struct queue *from, *to;
	uint64_t moved = 0;

	(void)long_queue(true);
	(void)node_queue(&n, "to", true);
	node_settle(&n);
	for (int i = 0; i < 6; i++) {
		struct transfer *t =
		    start((struct transfer_spec){ .queue = queue("q"), .to_queue = queue("to") });

		for (uint32_t turns = rnd(10); turns-- > 0 && t->state == TRANSFER_RUNNING;)
			(void)node_turn(&n);
		if (i % 2 == 0)
			world_turn(&n.w); /* without the store's part of a turn */
		restart(false);
		from = queue("q");
		to = queue("to");
		ck_assert_uint_eq(from->ready + to->ready, MANY);
		ck_assert_uint_ge(to->ready, moved);
		moved = to->ready;
	}
	ck_assert_uint_gt(moved, 0);
	expect_numbers(to, 1, moved);
	if (moved < MANY)
		expect_numbers(from, moved + 1, MANY);
}
END_TEST

START_TEST(at_a_rate)
{
	struct queue *from = node_queue(&n, "q", true), *to = node_queue(&n, "to", true);
	uint64_t begin = n.w.broker->now_ms;
	struct transfer *t;

	fill(from, 1, 1000);
	t = start((struct transfer_spec){ .queue = from, .to_queue = to, .rate = 100 });
	for (uint64_t ms = 0; ms <= 2000; ms += 5) {
		world_at(&n.w, begin + ms);
		(void)node_turn(&n);
		ck_assert_uint_le(t->done, ms / 10 + 11);
	}
	ck_assert_uint_ge(t->done, 195);
	ck_assert_uint_ge(transfer_rate(t), 90);
	ck_assert_uint_le(transfer_rate(t), 110);
	transfer_cancel(t);
	ck_assert_int_eq(t->state, TRANSFER_CANCELLED);
	ck_assert_uint_eq(from->ready + to->ready, 1000);
}
END_TEST

START_TEST(says_what_it_waits_for)
{
	struct broker *b = n.w.broker;
	struct queue *from = node_queue(&n, "q", true), *to = node_queue(&n, "to", true);
	struct transfer *t;

	fill(from, 1, 100);
	t = start((struct transfer_spec){ .queue = from, .to_queue = to });
	b->disk_low = true;
	(void)node_turn(&n);
	ck_assert_int_eq(t->state, TRANSFER_RUNNING);
	ck_assert_str_eq(t->waits, "the disk has too little free space");
	b->disk_low = false;
	world_at(&n.w, b->now_ms + 1000);
	run(t);
	ck_assert_int_eq(t->state, TRANSFER_DONE);
	ck_assert_ptr_null(t->waits);
	ck_assert_uint_eq(to->ready, 100);
}
END_TEST

START_TEST(ends_with_what_it_needs)
{
	struct queue *from = node_queue(&n, "q", true), *to = node_queue(&n, "to", true);
	struct transfer *t;

	fill(from, 1, 100);
	t = start((struct transfer_spec){ .queue = from, .to_queue = to, .rate = 1 });
	(void)node_turn(&n);
	queue_remove(_i == 0 ? from : to);
	world_at(&n.w, n.w.broker->now_ms + 5000);
	run(t);
	ck_assert_int_eq(t->state, TRANSFER_FAILED);
	ck_assert_ptr_nonnull(strstr(t->why, "was deleted"));
}
END_TEST

START_TEST(what_cannot_go_stays)
{
	struct queue *from = node_queue(&n, "q", true);
	struct transfer *t;

	fill(from, 1, 300);
	t = start((struct transfer_spec){
	    .queue = from, .exchange = SPAN_LIT("amq.direct"), .key = SPAN_LIT("nobody") });
	run(t);
	ck_assert_int_eq(t->state, TRANSFER_DONE);
	ck_assert_uint_eq(t->failed, 300);
	ck_assert_uint_eq(t->reasons, 1);
	ck_assert_uint_eq(t->reason[0].count, 300);
	ck_assert_str_eq(t->reason[0].text, "no queue is bound for it");
	expect_numbers(from, 1, 300);
}
END_TEST

/* Deep in a long queue each costs much: a slice does few of them. */
START_TEST(chosen_ones_deep_in_memory)
{
	enum { LONG = 400000, CHOSEN = 40 };
	struct letter_id *id = xcalloc(CHOSEN + 500, sizeof *id);
	struct queue *from = node_queue(&n, "q", false);
	struct transfer *t;
	uint64_t most = 0;

	for (uint64_t i = 1; i <= LONG; i++)
		queue_publish(from, world_msg(i, 8), 0);
	for (uint64_t i = 0; i < CHOSEN; i++)
		id[i].seq = LONG - i * 10;
	for (uint64_t i = 0; i < 500; i++)
		id[CHOSEN + i].seq = LONG + 1000 + i;
	t = start((struct transfer_spec){ .kind = TRANSFER_REPLAY,
	    .queue = from,
	    .chosen = id,
	    .chosen_count = CHOSEN + 500,
	    .most = UINT64_MAX });
	while (t->state == TRANSFER_RUNNING) {
		uint64_t before = n.w.broker->work;

		(void)transfers_run(n.w.broker);
		before = n.w.broker->work - before;
		most = before > most ? before : most;
	}
	ck_assert_int_eq(t->state, TRANSFER_DONE);
	ck_assert_uint_eq(t->failed, CHOSEN + 500);
	ck_assert_uint_eq(t->reasons, 2);
	ck_assert_uint_le(most, 6000); /* units of 8 blocks */
	ck_assert_uint_eq(from->ready, LONG);
}
END_TEST

START_TEST(refused_at_once)
{
	struct queue *q = node_queue(&n, "q", true);
	struct transfer_spec spec = { .queue = q, .user = n.client.user, .to_queue = q };
	struct transfer *t;
	const struct error *e = transfer_start(&spec, &t);

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->id, E_PRECONDITION_FAILED);
	spec.to_queue = NULL;
	spec.exchange = SPAN_LIT("nope");
	e = transfer_start(&spec, &t);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->id, E_NOT_FOUND);
	spec.to_queue = node_queue(&n, "to", true);
	spec.rate = 1;
	spec.most = 1000;
	fill(q, 1, 1000);
	for (int i = 0; i < TRANSFERS_AT_ONCE; i++)
		ck_assert_ptr_null(transfer_start(&spec, &t));
	ck_assert_ptr_nonnull(transfer_start(&spec, &t));
	for (uint64_t i = 1; i <= TRANSFERS_AT_ONCE; i++)
		transfer_cancel(transfer_find(n.w.broker, i));
	ck_assert_ptr_null(transfer_start(&spec, &t));
	n.w.broker->now_ms += 60 * 60 * 1000 + 1;
	ck_assert_ptr_null(transfer_find(n.w.broker, 1));
	ck_assert_ptr_eq(transfer_find(n.w.broker, t->id), t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("transfer");
	TCase *t = tcase_create("transfer");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_peek_sees_all, 0, 2);
	tcase_add_loop_test(t, what_goes_meanwhile, 0, 2);
	tcase_add_test(t, the_highest_priority_first);
	tcase_add_loop_test(t, out_of_the_middle, 0, 3);
	tcase_add_test(t, all_that_is_unread);
	tcase_add_loop_test(t, all_or_some, 0, 3);
	tcase_add_test(t, killed_in_the_midst);
	tcase_add_test(t, at_a_rate);
	tcase_add_test(t, says_what_it_waits_for);
	tcase_add_loop_test(t, ends_with_what_it_needs, 0, 2);
	tcase_add_test(t, what_cannot_go_stays);
	tcase_add_test(t, chosen_ones_deep_in_memory);
	tcase_add_test(t, refused_at_once);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
