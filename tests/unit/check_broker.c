/* SPDX-License-Identifier: Apache-2.0
 * The work of a turn: bounds, fairness, and what happens between a cause and its turn. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/slab.h"
#include "broker/publish.h"
#include "broker/route.h"
#include "queue_world.h"

static struct world w;
static struct client client;
static struct peer peer[2];

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	peer_init(&peer[0], &client);
	peer_init(&peer[1], &client);
}

static void
tear_down(void)
{
	struct slab_stats slabs;

	peer_fini(&peer[0]);
	peer_fini(&peer[1]);
	client_fini(&client);
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

static void
put(struct queue *q, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		queue_publish(q, world_msg(i, 8), 0);
}

START_TEST(queues_share_a_turn)
{
	struct queue *big = world_queue(&w, "big"), *small = world_queue(&w, "small");

	put(big, 50000);
	put(small, 50);
	(void)peer_consume(&peer[0], big, "t", true);
	(void)peer_consume(&peer[1], small, "t", true);
	ck_assert(broker_run(w.broker)); /* there is more */
	ck_assert_uint_eq(peer[1].count, 50);
	ck_assert_uint_ge(peer[0].count, 1000);
	ck_assert_uint_le(peer[0].count, 10000);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 50000);
	ck_assert(!broker_run(w.broker));
}
END_TEST

START_TEST(purged_are_freed_in_slices)
{
	struct queue *q = world_queue(&w, "q");
	struct slab_stats slabs;
	unsigned turns = 0;

	put(q, 100000);
	if (_i == 0)
		ck_assert_uint_eq(queue_purge(q), 100000);
	else
		queue_remove(q);
	ck_assert_uint_eq(w.broker->stats.messages_ready, 0);
	ck_assert_uint_eq(w.broker->stats.purged, 100000);
	slab_get_stats(&slabs);
	ck_assert_uint_ge(slabs.items, 100000); /* and the blocks of their entries */
	while (broker_run(w.broker)) {
		broker_reap(w.broker);
		turns++;
	}
	ck_assert_uint_ge(turns, 10);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}
END_TEST

START_TEST(session_ends_before_it_is_told)
{
	struct queue *q = world_queue(&w, "q");
	struct peer p;

	peer_init(&p, &client);
	(void)peer_consume(&p, q, "1", false);
	(void)peer_consume(&peer[0], q, "2", false);
	(void)peer_consume(&p, q, "3", true);
	put(q, 3);
	queue_remove(q);
	ck_assert_ptr_null(session_find(&p.session, SPAN_LIT("3")));
	peer_fini(&p);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_ptr_null(session_settle(&peer[0].session, 1, false, SETTLE_REQUEUE));
	broker_reap(w.broker);
}
END_TEST

START_TEST(tag_is_free_once_the_queue_is_gone)
{
	struct queue *q = world_queue(&w, "q");

	(void)peer_consume(&peer[0], q, "t", false);
	queue_remove(q);
	ck_assert_ptr_null(session_find(&peer[0].session, SPAN_LIT("t")));
	q = world_queue(&w, "q");
	(void)peer_consume(&peer[0], q, "t", false);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_ptr_nonnull(session_find(&peer[0].session, SPAN_LIT("t")));
	ck_assert_uint_eq(peer[0].session.consumer_count, 1);
}
END_TEST

START_TEST(deleted_queue_waits_for_its_last_delivery)
{
	struct queue *q = world_queue(&w, "q");

	(void)peer_consume(&peer[0], q, "t", false);
	put(q, 2);
	queue_remove(q);
	world_turn(&w);
	ck_assert_ptr_null(session_settle(&peer[0].session, 1, false, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 1);
	ck_assert_ptr_null(session_settle(&peer[0].session, 2, false, SETTLE_REQUEUE));
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
	ck_assert_uint_eq(w.broker->stats.messages_ready, 0);
	world_turn(&w);
}
END_TEST

START_TEST(deliver_to_a_route)
{
	struct queue *q[3] = { world_queue(&w, "a"), world_queue(&w, "b"), world_queue(&w, "c") };
	struct route route = { .count = 3, .queue = q };
	struct msg *m = world_msg(1, 100);
	struct store_wait wait;

	(void)peer_consume(&peer[0], q[0], "t", true);
	ck_assert_int_eq(publish_deliver(w.broker, m, &route, 0, &wait), PUBLISH_ROUTED);
	ck_assert_uint_eq(m->refs, 2);
	ck_assert_uint_eq(q[1]->ready_bytes, 100);
	route.count = 0;
	ck_assert_int_eq(
	    publish_deliver(w.broker, world_msg(2, 8), &route, 0, &wait), PUBLISH_UNROUTED);
	ck_assert_uint_eq(w.broker->stats.publish, 2);
	ck_assert_uint_eq(w.broker->stats.publish_in, 108);
}
END_TEST

START_TEST(client_record)
{
	struct client c = { .peer_host = "::1", .peer_port = 4711 };

	client_init(&c, w.broker);
	ck_assert_str_eq(c.who.peer, "[::1]:4711");
	client_fini(&c);
	c = (struct client){ .peer_host = "10.0.0.1", .peer_port = 1 };
	client_init(&c, w.broker);
	ck_assert_str_eq(c.who.peer, "10.0.0.1:1");
	ck_assert_uint_eq(c.who.connection, c.id);
	client_set_user(&c, user_find(w.broker, SPAN_LIT("guest")));
	client_set_vhost(&c, w.vhost);
	ck_assert_str_eq(c.who.user, "guest");
	ck_assert_str_eq(c.who.vhost, "/");
	ck_assert_uint_eq(w.broker->stats.connections, 2);
	client_fini(&c);
	ck_assert_uint_eq(w.broker->stats.connections, 1);
	ck_assert_uint_eq(w.broker->stats.connections_closed, 2);
}
END_TEST

/* A connection with thousands of exclusive queues goes: not all in one turn, and what is left is nobody's. */
START_TEST(exclusive_queues_go_in_slices)
{
	enum { QUEUES = 20000, SLICE = BROKER_END_MAX / BROKER_END_QUEUE };
	struct queue_spec spec = { .exclusive = true };
	struct client other;
	struct queue *q;
	char name[20];
	uint64_t left;

	world_client(&w, &other);
	for (unsigned i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "q%u", i);
		spec.name = span_str(name);
		ck_assert_ptr_null(queue_declare(w.vhost, &spec, &other, &q));
		if (i % 1000 == 0)
			queue_publish(q, world_msg(i, 8), 0);
	}
	ck_assert(!client_leave(&other));
	left = w.broker->stats.queues;
	ck_assert_uint_ge(left, QUEUES - SLICE);
	spec.name = SPAN_LIT("q0"); /* who asks for one that is left finds it gone */
	ck_assert_uint_eq(queue_lookup(w.vhost, spec.name, &client, &q)->code, 404);
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, &client, &q));
	ck_assert_ptr_eq(q->owner, &client);
	left = w.broker->stats.queues;
	for (bool is_over = false; !is_over; left = w.broker->stats.queues) {
		(void)broker_run(w.broker);
		is_over = client_leave(&other);
		ck_assert(is_over || w.broker->stats.queues < left);
		ck_assert_uint_ge(w.broker->stats.queues + SLICE, left);
		broker_reap(w.broker);
	}
	ck_assert_uint_eq(w.broker->stats.queues, 1);
	client_fini(&other);
	queue_remove(q);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("broker");
	TCase *t = tcase_create("broker");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, queues_share_a_turn);
	tcase_add_loop_test(t, purged_are_freed_in_slices, 0, 2);
	tcase_add_test(t, session_ends_before_it_is_told);
	tcase_add_test(t, tag_is_free_once_the_queue_is_gone);
	tcase_add_test(t, deleted_queue_waits_for_its_last_delivery);
	tcase_add_test(t, deliver_to_a_route);
	tcase_add_test(t, client_record);
	tcase_add_test(t, exclusive_queues_go_in_slices);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
