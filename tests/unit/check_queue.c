/* SPDX-License-Identifier: Apache-2.0
 * Queues: order, turns, requeueing, expiry, the ways out. Declaring stands in check_queue_declare.c, and everything
 * at once against a model in check_queue_model.c. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/slab.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "queue_args.h"

static struct world w;
static struct client client;
static struct peer peer[3];

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	for (size_t i = 0; i < COUNT_OF(peer); i++)
		peer_init(&peer[i], &client);
}

static void
tear_down(void)
{
	struct slab_stats slabs;

	for (size_t i = 0; i < COUNT_OF(peer); i++)
		peer_fini(&peer[i]);
	client_fini(&client);
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

static void
put(struct queue *q, uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		queue_publish(q, world_msg(from, 8), 0);
}

static void
got_is(const struct peer *p, size_t n, const uint64_t *numbers)
{
	ck_assert_uint_eq(p->count, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(p->got[i].number, numbers[i]);
}
#define GOT(p, ...) got_is(p, COUNT_OF(((uint64_t[]){ __VA_ARGS__ })), (uint64_t[]){ __VA_ARGS__ })

/* What is left of the queue, in order; everything is taken out. */
static void
left_is(struct queue *q, size_t n, const uint64_t *numbers)
{
	struct entry e;

	ck_assert_uint_eq(q->ready, n);
	for (size_t i = 0; i < n; i++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(msg_number(e.m), numbers[i]);
		msg_unref(&e.m);
	}
	ck_assert(!queue_pop(q, &e));
}
#define LEFT(q, ...) \
	left_is(q, COUNT_OF(((uint64_t[]){ __VA_ARGS__ })), (uint64_t[]){ __VA_ARGS__ })

static void
settle(struct peer *p, uint64_t tag, bool multiple, enum settle how)
{
	ck_assert_ptr_null(session_settle(&p->session, tag, multiple, how));
}

START_TEST(order_over_many_blocks)
{
	struct queue *q = world_queue(&w, "q");
	struct entry e;

	put(q, 1, 1000);
	ck_assert_uint_eq(q->ready, 1000);
	ck_assert_uint_eq(q->ready_bytes, 8000);
	ck_assert_uint_eq(w.broker->stats.messages_ready, 1000);
	for (uint64_t i = 1; i <= 1000; i++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(msg_number(e.m), i);
		ck_assert_uint_eq(e.seq_flags & ENTRY_REDELIVERED, 0);
		msg_unref(&e.m);
	}
	ck_assert(!queue_pop(q, &e));
	ck_assert_uint_eq(q->ready_bytes, 0);
}
END_TEST

START_TEST(consumers_take_turns)
{
	struct queue *q = world_queue(&w, "q");

	for (size_t i = 0; i < 3; i++)
		(void)peer_consume(&peer[i], q, "t", true);
	put(q, 1, 7);
	GOT(&peer[0], 1, 4, 7);
	GOT(&peer[1], 2, 5);
	GOT(&peer[2], 3, 6);
}
END_TEST

START_TEST(turns_from_a_backlog)
{
	struct queue *q = world_queue(&w, "q");

	put(q, 1, 4);
	(void)peer_consume(&peer[0], q, "t", true);
	(void)peer_consume(&peer[1], q, "t", true);
	ck_assert_uint_eq(peer[0].count, 0); /* nothing before the turn's work */
	world_turn(&w);
	GOT(&peer[0], 1, 3);
	GOT(&peer[1], 2, 4);
}
END_TEST

START_TEST(higher_priority_first)
{
	struct queue *q = world_queue(&w, "q");
	struct consumer *k;

	ck_assert_ptr_null(peer_try_consume(&peer[0], q, "low", true, false, -5, &k));
	peer[1].session.prefetch = 2;
	ck_assert_ptr_null(peer_try_consume(&peer[1], q, "high", false, false, 10, &k));
	ck_assert_ptr_null(peer_try_consume(&peer[2], q, "high", false, false, 10, &k));
	k->limit = 1;
	put(q, 1, 5);
	GOT(&peer[1], 1, 3);
	GOT(&peer[2], 2);
	GOT(&peer[0], 4, 5);
	settle(&peer[1], 1, false, SETTLE_ACK);
	put(q, 6, 7);
	GOT(&peer[1], 1, 3, 6);
	GOT(&peer[0], 4, 5, 7);
}
END_TEST

START_TEST(full_output_takes_nothing)
{
	struct queue *q = world_queue(&w, "q");

	(void)peer_consume(&peer[0], q, "t", true);
	client.output_full = true;
	put(q, 1, 3);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 0);
	client_output_room(&client);
	world_turn(&w);
	GOT(&peer[0], 1, 2, 3);
}
END_TEST

START_TEST(requeued_go_back_to_their_place)
{
	struct queue *q = world_queue(&w, "q");
	struct entry e;
	uint64_t tag;
	uint32_t left;

	put(q, 0, 4);
	for (int i = 0; i < 3; i++) {
		ck_assert(session_get(&peer[0].session, q, false, &e, &tag, &left));
		msg_unref(&e.m);
	}
	ck_assert_uint_eq(left, 2);
	settle(&peer[0], 2, false, SETTLE_REQUEUE);
	ck_assert(session_get(&peer[1].session, q, true, &e, &tag, &left));
	ck_assert_uint_eq(msg_number(e.m), 1);
	ck_assert_uint_eq(e.seq_flags & ENTRY_REDELIVERED, ENTRY_REDELIVERED);
	ck_assert_uint_eq(e.deliveries, 2);
	ck_assert_uint_eq(e.acquired, 1);
	msg_unref(&e.m);
	settle(&peer[0], 3, false, SETTLE_REQUEUE);
	settle(&peer[0], 1, false, SETTLE_REQUEUE);
	LEFT(q, 0, 2, 3, 4);
}
END_TEST

/* One by one in ascending order is what costs a sorted list most: seconds, where merging once takes milliseconds. */
/* Odd: with a time to live, which must not make each of them look for the head. */
START_TEST(many_requeues_one_by_one)
{
	enum { MANY = 65535 };
	uint64_t due_ms = _i % 2 == 1 ? 100000 : 0;
	struct queue *q = world_queue(&w, "q");
	clock_t before;
	struct entry e;

	(void)peer_consume(&peer[0], q, "t", false);
	for (uint64_t i = 1; i <= MANY; i++)
		queue_publish(q, world_msg(i, 8), due_ms);
	client.output_full = true;
	before = clock();
	for (uint64_t tag = 1; tag <= MANY; tag++)
		settle(&peer[0], _i < 2 ? tag : tag * 7919 % (MANY + 1), false, SETTLE_REQUEUE);
	for (uint64_t i = 1; i <= MANY; i++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(msg_number(e.m), i);
		ck_assert_uint_eq(e.acquired, 1);
		msg_unref(&e.m);
	}
	ck_assert_int_lt(clock() - before, 2 * CLOCKS_PER_SEC);
	ck_assert_uint_eq(session_unacked(&peer[0].session), 0);
}
END_TEST

/* K14 */
START_TEST(requeue_then_cancel)
{
	struct queue *q = world_queue(&w, "q");
	struct consumer *k = peer_consume(&peer[0], q, "t", false);

	put(q, 1, 1);
	GOT(&peer[0], 1);
	settle(&peer[0], 1, false, SETTLE_REQUEUE);
	session_cancel(&peer[0].session, k);
	(void)peer_consume(&peer[1], q, "t", false);
	world_turn(&w);
	GOT(&peer[0], 1);
	GOT(&peer[1], 1);
	ck_assert(peer[1].got[0].redelivered);
}
END_TEST

START_TEST(purge_leaves_what_is_out)
{
	struct queue *q = world_queue(&w, "q");
	struct entry e;
	uint64_t tag;
	uint32_t left;

	put(q, 1, 500);
	for (int i = 0; i < 3; i++) {
		ck_assert(session_get(&peer[0].session, q, false, &e, &tag, &left));
		msg_unref(&e.m);
	}
	settle(&peer[0], 2, false, SETTLE_REQUEUE);
	ck_assert_uint_eq(queue_purge(q), 498);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(q->unacked, 2);
	ck_assert_uint_eq(queue_purge(q), 0);
	put(q, 600, 601);
	settle(&peer[0], 0, true, SETTLE_REQUEUE);
	LEFT(q, 1, 3, 600, 601);
}
END_TEST

/* ---- expiry ---- */

START_TEST(expires_at_the_head_only)
{
	struct queue *q = world_queue(&w, "q");

	queue_publish(q, world_msg(1, 8), 0);
	queue_publish(q, world_msg(2, 8), 1500);
	queue_publish(q, world_msg(3, 8), 0);
	world_at(&w, 2000);
	ck_assert_uint_eq(q->ready, 3); /* 2 stands behind one that does not expire */
	(void)peer_consume(&peer[0], q, "t", true);
	world_turn(&w);
	GOT(&peer[0], 1, 3);
	ck_assert_uint_eq(q->stats.expired, 1);
}
END_TEST

START_TEST(counts_fall_without_a_consumer)
{
	struct queue *q = world_queue(&w, "q");

	for (uint64_t i = 1; i <= 5; i++)
		queue_publish(q, world_msg(i, 8), 1000 + 100 * i);
	world_at(&w, 1099);
	ck_assert_uint_eq(q->ready, 5);
	world_at(&w, 1100);
	ck_assert_uint_eq(q->ready, 4);
	world_at(&w, 1450);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(q->ready_bytes, 8);
	LEFT(q, 5);
}
END_TEST

START_TEST(expired_ones_come_to_nobody)
{
	struct queue *q = world_queue(&w, "q");
	struct entry e;
	uint64_t tag;
	uint32_t left;

	queue_publish(q, world_msg(1, 8), 1100);
	ck_assert(session_get(&peer[0].session, q, false, &e, &tag, &left));
	msg_unref(&e.m);
	queue_publish(q, world_msg(2, 8), 1200);
	w.broker->now_ms = 1100; /* the wheel has not run */
	settle(&peer[0], 1, false, SETTLE_REQUEUE);
	ck_assert(session_get(&peer[0].session, q, true, &e, &tag, &left));
	ck_assert_uint_eq(msg_number(e.m), 2);
	msg_unref(&e.m);
	w.broker->now_ms = 1300;
	queue_publish(q, world_msg(3, 8), 1300);
	ck_assert(!session_get(&peer[0].session, q, true, &e, &tag, &left));
	ck_assert_uint_eq(w.broker->stats.expired, 2);
	ck_assert_uint_eq(w.broker->stats.get_empty, 1);
}
END_TEST

/* The node is armed for a later one when one that expires earlier comes back. */
START_TEST(returned_one_expires_on_time)
{
	struct queue *q = world_queue(&w, "q");
	struct entry e;
	uint64_t tag;
	uint32_t left;

	queue_publish(q, world_msg(1, 8), 2000);
	ck_assert(session_get(&peer[0].session, q, false, &e, &tag, &left));
	msg_unref(&e.m);
	world_at(&w, 1999);
	wheel_disarm(w.wheel, &q->expiry);
	queue_publish(q, world_msg(2, 8), 5000);
	ck_assert_uint_eq(q->expiry.due_ms, 5000);
	settle(&peer[0], 1, false, SETTLE_REQUEUE);
	ck_assert_uint_eq(q->ready, 2);
	world_at(&w, 2000);
	ck_assert_uint_eq(q->ready, 1);
	world_at(&w, 5000);
	ck_assert_uint_eq(q->ready, 0);
}
END_TEST

START_TEST(no_time_to_live_but_a_consumer_waits)
{
	struct queue *q = world_queue(&w, "q");

	(void)peer_consume(&peer[0], q, "t", true);
	queue_publish(q, world_msg(1, 8), 1000);
	GOT(&peer[0], 1);
}
END_TEST

START_TEST(many_expire_at_once)
{
	enum { MANY = 200000, A_TURN = 8192 + 127 };
	struct queue *q = world_queue(&w, "q");
	uint64_t before = MANY;

	for (uint64_t i = 1; i <= MANY; i++)
		queue_publish(q, world_msg(i, 8), i == 150000 ? 5000 : 1500);
	w.broker->now_ms = 2000;
	(void)wheel_run(w.wheel, 2000, 1); /* one firing is enough; the rest is done in slices */
	for (bool more = true; more; before = q->ready) {
		more = queues_tidy(w.broker);
		ck_assert_uint_le(before - q->ready, A_TURN);
	}
	ck_assert_uint_eq(q->ready, MANY - 149999);
	ck_assert_uint_eq(q->ready_bytes, 8 * (MANY - 149999));
	ck_assert_uint_eq(q->stats.expired, 149999);
	world_at(&w, 5000);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert(broker_run(w.broker)); /* they are freed in slices */
	world_turn(&w);
	ck_assert_uint_eq(q->stats.expired, MANY);
}
END_TEST

/* ---- the end of a queue ---- */

static struct queue *
declare_auto_delete(const char *name)
{
	struct queue_spec spec = { .name = span_str(name), .auto_delete = true };
	struct queue *q;

	ck_assert_ptr_null(queue_declare(w.vhost, &spec, &client, &q));
	return q;
}

START_TEST(auto_delete)
{
	struct queue *q = declare_auto_delete("q"), *again;
	struct consumer *one, *two;
	uint64_t id = q->id;

	world_turn(&w);
	ck_assert_ptr_nonnull(queue_find(w.vhost, SPAN_LIT("q"))); /* waits for a first consumer */
	one = peer_consume(&peer[0], q, "1", false);
	two = peer_consume(&peer[1], q, "2", false);
	put(q, 1, 2);
	session_cancel(&peer[0].session, one);
	world_turn(&w);
	ck_assert_ptr_nonnull(queue_find(w.vhost, SPAN_LIT("q")));
	session_cancel(&peer[1].session, two);
	ck_assert_ptr_null(queue_find(w.vhost, SPAN_LIT("q"))); /* at once */
	ck_assert_ptr_null(queue_find_id(w.vhost, id));
	again = world_queue(&w, "q");
	world_turn(&w);
	ck_assert_ptr_eq(queue_find(w.vhost, SPAN_LIT("q")), again);
	settle(&peer[0], 1, false, SETTLE_REQUEUE);
	settle(&peer[1], 1, false, SETTLE_ACK);
	ck_assert_uint_eq(again->ready, 0);
	ck_assert_uint_eq(w.broker->stats.queues, 1);
}
END_TEST

/* A session that ends takes all of its auto-delete queues along, and sources that only led to them. */
START_TEST(auto_delete_with_the_session)
{
	enum { MANY = 10000 };
	struct exchange_spec spec = {
		.name = SPAN_LIT("x"), .type = SPAN_LIT("fanout"), .auto_delete = true
	};
	struct exchange *x;
	struct peer p;
	char name[16];

	ck_assert_ptr_null(exchange_declare(w.vhost, &spec, &x));
	peer_init(&p, &client);
	for (unsigned i = 0; i < MANY; i++) {
		struct queue *q;

		snprintf(name, sizeof name, "q%u", i);
		q = declare_auto_delete(name);
		ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT(""), NULL));
		(void)peer_consume(&p, q, name, false);
		put(q, 1, 1);
	}
	world_turn(&w);
	peer_fini(&p);
	ck_assert_uint_eq(w.broker->stats.queues, 0);
	ck_assert_uint_eq(w.broker->stats.bindings, 0);
	ck_assert_ptr_null(exchange_find(w.vhost, SPAN_LIT("x")));
	ck_assert_uint_eq(w.broker->stats.messages_ready, 0);
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
	world_turn(&w);
}
END_TEST

/* K16: what the old connection leaves behind does not touch the new queue of the same name. */
START_TEST(exclusive_queue_declared_anew)
{
	struct queue_spec spec = {
		.name = SPAN_LIT("mine"), .exclusive = true, .auto_delete = true
	};
	struct client other;
	struct peer old;
	struct queue *q, *again;
	const struct error *e;

	world_client(&w, &other);
	peer_init(&old, &other);
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, &other, &q));
	(void)peer_consume(&old, q, "t", false);
	put(q, 1, 2);
	e = queue_declare(w.vhost, &spec, &client, &again);
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 405);
	client_drop_exclusive(&other); /* before its close-ok; its session lives on */
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, &client, &again));
	put(again, 5, 5);
	peer_fini(&old);
	client_fini(&other);
	world_turn(&w);
	ck_assert_ptr_eq(queue_find(w.vhost, SPAN_LIT("mine")), again);
	LEFT(again, 5);
}
END_TEST

START_TEST(delete_has_conditions)
{
	struct queue *q = world_queue(&w, "q");
	const struct error *e;
	uint32_t n;

	put(q, 1, 3);
	ck_assert_uint_eq(queue_delete(q, false, true, &n)->code, 406);
	(void)peer_consume(&peer[0], q, "t", false);
	e = queue_delete(q, true, true, &n);
	ck_assert_str_eq(e->text, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty");
	e = queue_delete(q, false, true, &n);
	ck_assert_uint_eq(e->code, 406);
	e = queue_delete(q, true, false, &n);
	ck_assert_str_eq(e->text, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use");
	world_turn(&w);
	put(q, 4, 5);
	peer[0].session.limit = 3;
	put(q, 6, 6);
	ck_assert_ptr_null(queue_delete(q, false, false, &n));
	ck_assert_uint_eq(n, 1);
	ck_assert_ptr_null(queue_find(w.vhost, SPAN_LIT("q")));
	ck_assert_uint_eq(w.broker->stats.consumers, 0);
	ck_assert_ptr_null(session_find(&peer[0].session, SPAN_LIT("t")));
	ck_assert_uint_eq(peer[0].cancelled, 0); /* told in the turn's work */
	world_turn(&w);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_uint_eq(session_unacked(&peer[0].session), 5);
	settle(&peer[0], 2, true, SETTLE_ACK); /* acks for a queue that is gone are fine */
	settle(&peer[0], 0, true, SETTLE_REQUEUE);
	ck_assert_uint_eq(w.broker->stats.messages_ready, 0);
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
}
END_TEST

/* A queue with more consumers than a turn cancels. _i == 1: their session ends meanwhile; 2: the queue is auto-delete, too;
 * 3: and has one active consumer at a time. */
START_TEST(very_many_consumers)
{
	enum { MANY = 2000 };
	struct queue_arg single = { "x-single-active-consumer", 't', 1, NULL };
	struct table *t = queue_args(&single, _i == 3);
	struct queue_spec spec = { .name = SPAN_LIT("q"), .auto_delete = _i >= 2, .arguments = t };
	struct queue *q, *other = world_queue(&w, "other");
	char tag[16];
	uint32_t n;

	ck_assert_ptr_null(queue_declare(w.vhost, &spec, NULL, &q));
	table_free(&t);
	for (int i = 0; i < MANY; i++) {
		snprintf(tag, sizeof tag, "t%d", i);
		(void)peer_consume(&peer[i % 2], q, tag, false);
	}
	put(q, 1, 10);
	world_turn(&w);
	ck_assert_ptr_null(queue_delete(q, false, false, &n));
	ck_assert_uint_eq(w.broker->stats.consumers, 0);
	ck_assert_ptr_null(session_find(&peer[0].session, SPAN_LIT("t1998")));
	/* A tag is free at once. */
	(void)peer_consume(&peer[0], other, "t1998", false);
	(void)broker_run(w.broker);
	ck_assert_uint_gt(peer[0].cancelled, 0);
	ck_assert_uint_lt(peer[0].cancelled + peer[1].cancelled, MANY / 2);
	settle(&peer[0], 0, true, SETTLE_REQUEUE);
	if (_i == 1) {
		n = peer[1].cancelled;
		peer_fini(&peer[1]);
		world_turn(&w);
		ck_assert_uint_eq(peer[0].cancelled, MANY / 2);
		ck_assert_uint_eq(peer[1].cancelled, n);
		peer_init(&peer[1], &client);
	} else {
		world_turn(&w);
		ck_assert_uint_eq(peer[0].cancelled + peer[1].cancelled, MANY);
	}
	put(other, 11, 11);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].got[peer[0].count - 1].number, 11);
	ck_assert_uint_eq(w.broker->stats.consumers, 1);
}
END_TEST

START_TEST(exclusive_consumer)
{
	static const struct {
		bool first, second;
	} cases[] = { { true, false }, { false, true }, { true, true } };
	struct queue *q = world_queue(&w, "q");
	struct consumer *k, *other;
	const struct error *e;

	ck_assert_ptr_null(peer_try_consume(&peer[0], q, "t", false, cases[_i].first, 0, &k));
	e = peer_try_consume(&peer[1], q, "t", false, cases[_i].second, 0, &other);
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 403);
	ck_assert_str_eq(e->text, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use");
	session_cancel(&peer[0].session, k);
	ck_assert_ptr_null(peer_try_consume(&peer[1], q, "t", false, true, 0, &other));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("queue");
	TCase *t = tcase_create("queue");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, order_over_many_blocks);
	tcase_add_test(t, consumers_take_turns);
	tcase_add_test(t, turns_from_a_backlog);
	tcase_add_test(t, higher_priority_first);
	tcase_add_test(t, full_output_takes_nothing);
	tcase_add_test(t, requeued_go_back_to_their_place);
	tcase_add_loop_test(t, many_requeues_one_by_one, 0, 4);
	tcase_add_test(t, requeue_then_cancel);
	tcase_add_test(t, purge_leaves_what_is_out);
	tcase_add_test(t, expires_at_the_head_only);
	tcase_add_test(t, counts_fall_without_a_consumer);
	tcase_add_test(t, expired_ones_come_to_nobody);
	tcase_add_test(t, returned_one_expires_on_time);
	tcase_add_test(t, no_time_to_live_but_a_consumer_waits);
	tcase_add_test(t, many_expire_at_once);
	tcase_add_test(t, auto_delete);
	tcase_add_test(t, auto_delete_with_the_session);
	tcase_add_test(t, exclusive_queue_declared_anew);
	tcase_add_test(t, delete_has_conditions);
	tcase_add_loop_test(t, very_many_consumers, 0, 4);
	tcase_add_loop_test(t, exclusive_consumer, 0, 3);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
