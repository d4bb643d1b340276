/* SPDX-License-Identifier: Apache-2.0
 * x-single-active-consumer: who is next, and that order holds when the active one goes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/slab.h"
#include "broker/single_active.h"
#include "queue_args.h"

enum { PEERS = 4 };

static struct world w;
static struct client client[PEERS];
static struct peer peer[PEERS];
static bool is_open[PEERS];
static struct queue *q;

static struct queue *
make_queue(const char *name, bool auto_delete)
{
	static const struct queue_arg single = { "x-single-active-consumer", 't', 1, NULL };

	return world_queue_with(&w, name, auto_delete, &single, 1);
}

static void
set_up(void)
{
	world_init(&w);
	for (int i = 0; i < PEERS; i++) {
		world_client(&w, &client[i]);
		peer_init(&peer[i], &client[i]);
		is_open[i] = true;
	}
	q = make_queue("q", false);
}

static void
end_session(int i)
{
	session_fini(&peer[i].session);
	is_open[i] = false;
}

static void
tear_down(void)
{
	struct slab_stats slabs;

	for (int i = 0; i < PEERS; i++) {
		if (is_open[i])
			end_session(i);
		free(peer[i].got);
		client_fini(&client[i]);
	}
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

static void
put(uint64_t first, uint64_t n)
{
	while (n-- > 0)
		queue_publish(q, world_msg(first++, 8), 0);
	world_turn(&w);
}

static struct consumer *
consume(int i, const char *tag, int32_t priority)
{
	struct consumer *k = NULL;

	ck_assert_ptr_null(peer_try_consume(&peer[i], q, tag, false, false, priority, &k));
	return k;
}

static void
ack_all(int i)
{
	ck_assert_ptr_null(session_settle(&peer[i].session, 0, true, SETTLE_ACK));
	world_turn(&w);
}

/* Peer i got these from `at` on, and nothing else. */
static void
got(int i, size_t at, uint64_t first, size_t n, bool redelivered)
{
	ck_assert_uint_eq(peer[i].count, at + n);
	for (size_t j = 0; j < n; j++) {
		ck_assert_uint_eq(peer[i].got[at + j].number, first + j);
		ck_assert_int_eq(peer[i].got[at + j].redelivered, redelivered);
	}
}

START_TEST(first_is_active)
{
	peer[0].session.prefetch = 2;
	consume(0, "a", 0);
	consume(1, "b", 5); /* no priority pushes it aside */
	put(1, 4);
	got(0, 0, 1, 2, false); /* its prefetch is full, and nobody else gets the rest */
	got(1, 0, 0, 0, false);
	ack_all(0);
	got(0, 2, 3, 2, false);
	ack_all(0);
	client[0].output_full = true; /* neither when it cannot take for another reason */
	put(5, 1);
	got(1, 0, 0, 0, false);
	client_output_room(&client[0]);
	world_turn(&w);
	got(0, 4, 5, 1, false);
}
END_TEST

/* The session's limit keeps it waiting: another consumer of the session, of another queue, has used it up. */
START_TEST(limit_of_the_session)
{
	struct queue *other = world_queue(&w, "other");

	session_set_limit(&peer[0].session, 1);
	peer_consume(&peer[0], other, "other", false);
	consume(0, "a", 0);
	consume(0, "b", 0);
	consume(1, "c", 0);
	queue_publish(other, world_msg(100, 8), 0);
	put(1, 2);
	got(0, 0, 100, 1, false);
	ack_all(0);
	got(0, 1, 1, 1, false);
	ck_assert_ptr_eq(peer[0].got[1].consumer, q->single->active);
	ack_all(0);
	got(0, 2, 2, 1, false);
	got(1, 0, 0, 0, false);
}
END_TEST

START_TEST(next_by_priority_then_age)
{
	struct consumer *k[5];

	k[0] = consume(0, "a", 0);
	k[1] = consume(1, "b", 0);
	k[2] = consume(2, "c", 7);
	k[3] = consume(1, "d", 7);
	k[4] = consume(3, "e", -1);
	for (int i = 0; i < 5; i++) {
		static const int order[] = { 0, 2, 3, 1, 4 };

		ck_assert_ptr_eq(q->single->active, k[order[i]]);
		session_cancel(k[order[i]]->session, k[order[i]]);
	}
	ck_assert_ptr_null(q->single->active);
	k[0] = consume(0, "a", 0);
	ck_assert_ptr_eq(q->single->active, k[0]);
}
END_TEST

/* As RabbitMQ 3.10 has it: the oldest one, whatever its priority; and "exclusive" means nothing. */
START_TEST(of_a_quorum_queue)
{
	static const struct queue_arg args[] = { { "x-single-active-consumer", 't', 1, NULL },
		{ "x-queue-type", 'S', 0, "quorum" } };
	struct consumer *k[3], *exclusive;

	q = world_queue_with(&w, "quorum", false, args, COUNT_OF(args));
	for (int i = 0; i < 3; i++)
		k[i] = consume(i, "a", 2 * i);
	ck_assert_ptr_eq(q->single->active, k[0]);
	session_cancel(&peer[0].session, k[0]);
	ck_assert_ptr_eq(q->single->active, k[1]);
	ck_assert_ptr_null(peer_try_consume(&peer[3], q, "x", false, true, 9, &exclusive));
	session_cancel(&peer[1].session, k[1]);
	ck_assert_ptr_eq(q->single->active, k[2]);
}
END_TEST

/* Those that wait may go without a trace. */
START_TEST(waiting_ones_go)
{
	struct consumer *a = consume(0, "a", 0), *b = consume(1, "b", 3), *c = consume(2, "c", 3);

	session_cancel(&peer[1].session, b);
	ck_assert_ptr_eq(q->single->active, a);
	session_cancel(&peer[0].session, a);
	ck_assert_ptr_eq(q->single->active, c);
	put(1, 1);
	got(2, 0, 1, 1, false);
}
END_TEST

/* After basic.cancel the next one begins at once; what the first holds is its session's, and comes back to its place. */
START_TEST(cancel)
{
	struct consumer *a = consume(0, "a", 0);

	consume(1, "b", 0);
	put(1, 3);
	session_cancel(&peer[0].session, a);
	put(4, 1);
	got(1, 0, 4, 1, false);
	ck_assert_ptr_null(session_settle(&peer[0].session, 2, false, SETTLE_REQUEUE));
	world_turn(&w);
	got(1, 1, 2, 1, true);
	ck_assert_uint_eq(q->unacked, 4);
}
END_TEST

/* The session of the active one ends: its deliveries come first, in order, even where they come back in a later turn
 * and while messages arrive. The others of its session are passed over. */
START_TEST(order_at_the_end_of_a_session)
{
	enum { MANY = SESSION_RETURN_MAX };
	struct queue *other = world_queue(&w, "other");

	consume(0, "a", 0);
	consume(0, "b", 9);
	consume(1, "c", 0);
	put(1, MANY);
	got(0, 0, 1, MANY, false);
	if (_i == 1) { /* another session's come back first */
		peer_consume(&peer[2], other, "d", false);
		queue_publish(other, world_msg(1, 8), 0);
		end_session(2);
	}
	end_session(0);
	ck_assert_int_eq(q->single->before != NULL, _i == 1);
	queue_publish(q, world_msg(MANY + 1, 8), 0);
	if (_i == 1)
		ck_assert_uint_eq(peer[1].count, 0);
	world_turn(&w);
	ck_assert_uint_eq(peer[1].count, MANY + 1);
	for (size_t i = 0; i <= MANY; i++)
		ck_assert_uint_eq(peer[1].got[i].number, i + 1);
}
END_TEST

/* While they are on their way back: the queue goes, or the only one that waits, or one comes. */
START_TEST(changes_in_between)
{
	struct queue *other = world_queue(&w, "other");
	struct consumer *c;

	consume(0, "a", 0);
	c = consume(1, "c", 0);
	put(1, SESSION_RETURN_MAX);
	peer_consume(&peer[2], other, "d", false);
	queue_publish(other, world_msg(1, 8), 0);
	end_session(2);
	end_session(0);
	if (_i == 0)
		queue_remove(q);
	if (_i == 1)
		session_cancel(&peer[1].session, c);
	if (_i == 2)
		consume(3, "e", 4);
	world_turn(&w);
	if (_i == 1)
		ck_assert_ptr_null(q->single->active);
	if (_i == 2)
		got(3, 0, 1, SESSION_RETURN_MAX, true);
}
END_TEST

START_TEST(auto_delete)
{
	struct consumer *a, *b;

	q = make_queue("auto", true);
	a = consume(0, "a", 0);
	b = consume(1, "b", 0);
	put(1, 2);
	session_cancel(&peer[0].session, a);
	ck_assert_ptr_nonnull(queue_find(w.vhost, SPAN_LIT("auto")));
	session_cancel(&peer[1].session, b);
	ck_assert_ptr_null(queue_find(w.vhost, SPAN_LIT("auto")));
}
END_TEST

START_TEST(deleted)
{
	consume(0, "a", 0);
	consume(1, "b", 1);
	consume(2, "c", 0);
	put(1, 2);
	queue_publish(q, world_msg(3, 8), 0);
	queue_remove(q);
	world_turn(&w);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(peer[i].cancelled, 1);
}
END_TEST

START_TEST(exclusive_is_refused)
{
	struct consumer *k;
	const struct error *e = peer_try_consume(&peer[0], q, "a", false, true, 0, &k);

	ck_assert_str_eq(e->text, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use");
	ck_assert_uint_eq(q->consumer_count, 0);
}
END_TEST

/* A hundred thousand that wait cost no walk when the active one goes. */
START_TEST(very_many)
{
	enum { MANY = 100000 };
	char tag[16];

	for (int i = 0; i < MANY; i++) {
		snprintf(tag, sizeof tag, "%d", i);
		consume(i % 3, tag, i % 1000);
	}
	end_session(0);
	end_session(1);
	ck_assert_int_eq(q->single->active->priority, 999);
	put(1, 1);
	got(2, 0, 1, 1, false);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("single_active");
	TCase *t = tcase_create("single_active");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, first_is_active);
	tcase_add_test(t, limit_of_the_session);
	tcase_add_test(t, next_by_priority_then_age);
	tcase_add_test(t, of_a_quorum_queue);
	tcase_add_test(t, waiting_ones_go);
	tcase_add_test(t, cancel);
	tcase_add_loop_test(t, order_at_the_end_of_a_session, 0, 2);
	tcase_add_loop_test(t, changes_in_between, 0, 3);
	tcase_add_test(t, auto_delete);
	tcase_add_test(t, deleted);
	tcase_add_test(t, exclusive_is_refused);
	tcase_add_test(t, very_many);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
