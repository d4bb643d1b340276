/* SPDX-License-Identifier: Apache-2.0
 * Queues that are paused: nobody gets anything, nobody loses a place, and a restart changes nothing. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/persist_peer.h"

static struct queue *q;

static void
fill(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++)
		(void)node_publish(&n, q, persistent_msg(i, 8), 0);
	world_turn(&n.w);
}

static void
begin(bool durable)
{
	q = node_queue(&n, "q", durable);
}

/* What waits when it is paused, and what comes while it is. */
START_TEST(nothing_goes_out)
{
	uint64_t tag;
	struct entry e;
	uint32_t left;

	begin(true);
	peer_consume(&peer, q, "c", false);
	queue_pause(q, true);
	queue_pause(q, true);
	ck_assert_uint_eq(n.w.broker->stats.queues_paused, 1);
	fill(1, 3);
	ck_assert_uint_eq(peer.count, 0);
	ck_assert_uint_eq(q->ready, 3);
	ck_assert_int_eq(session_get(&peer.session, q, true, &e, &tag, &left), GET_EMPTY);
	queue_pause(q, false);
	world_turn(&n.w);
	ck_assert_uint_eq(n.w.broker->stats.queues_paused, 0);
	ck_assert_uint_eq(peer.count, 3);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_uint_eq(peer.got[i].number, i + 1);
	fill(4, 4);
	ck_assert_uint_eq(peer.count, 4);
}
END_TEST

/* It was on its way to the consumer, in the list of those that may deliver. */
START_TEST(paused_before_its_turn)
{
	begin(false);
	fill(1, 2);
	peer_consume(&peer, q, "c", true);
	ck_assert(q->is_runnable);
	queue_pause(q, true);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 0);
	queue_pause(q, false);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 2);
}
END_TEST

START_TEST(turns_go_on_where_they_were)
{
	struct consumer *k[3];

	begin(false);
	for (int i = 0; i < 3; i++)
		k[i] = peer_consume(&peer, q, (const char *[]){ "a", "b", "c" }[i], true);
	fill(1, 1);
	queue_pause(q, true);
	fill(2, 4);
	queue_pause(q, false);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 4);
	for (int i = 0; i < 4; i++)
		ck_assert_ptr_eq(peer.got[i].consumer, k[i % 3]);
}
END_TEST

/* Consumers come, with priorities, and go; what was out is settled, or comes back. */
START_TEST(life_goes_on)
{
	struct consumer *low, *high = NULL;

	begin(false);
	low = peer_consume(&peer, q, "low", false);
	fill(1, 2);
	ck_assert_uint_eq(peer.count, 2);
	queue_pause(q, true);
	ck_assert_ptr_null(peer_try_consume(&peer, q, "high", true, false, 7, &high));
	ck_assert_ptr_null(session_settle(&peer.session, peer.got[0].tag, false, SETTLE_ACK));
	ck_assert_ptr_null(session_settle(&peer.session, peer.got[1].tag, false, SETTLE_REQUEUE));
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 2);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(q->unacked, 0);
	session_cancel(&peer.session, low);
	queue_pause(q, false);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 3);
	ck_assert_ptr_eq(peer.got[2].consumer, high);
	ck_assert(peer.got[2].redelivered);
}
END_TEST

START_TEST(deleted_while_paused)
{
	begin(true);
	peer_consume(&peer, q, "a", true);
	peer_consume(&peer, q, "b", true);
	queue_pause(q, true);
	fill(1, 2);
	queue_remove(q);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.cancelled, 2);
	ck_assert_uint_eq(n.w.broker->stats.queues_paused, 0);
}
END_TEST

/* A session that may get while it is paused: an operator's. */
START_TEST(operators_get)
{
	static const struct session_ops none = { NULL, NULL, NULL };
	struct session s;
	struct entry e;
	uint64_t tag;
	uint32_t left;

	begin(false);
	queue_pause(q, true);
	fill(1, 1);
	session_init(&s, &n.client, &none);
	ck_assert_int_eq(session_get(&s, q, true, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	session_fini(&s);
}
END_TEST

START_TEST(over_a_restart)
{
	bool gently = _i % 2 == 1, resumed = _i / 2 == 1;

	begin(true);
	fill(1, 2);
	queue_pause(q, true);
	if (resumed)
		queue_pause(q, false);
	node_settle(&n);
	restart(gently);
	q = queue("q");
	ck_assert(q->is_paused == !resumed);
	ck_assert_uint_eq(n.w.broker->stats.queues_paused, resumed ? 0 : 1);
	peer_consume(&peer, q, "c", true);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, resumed ? 2 : 0);
	queue_pause(q, false);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 2);
}
END_TEST

/* The time that consumers cannot take counts against them: paused, they cannot. */
START_TEST(capacity)
{
	begin(false);
	peer_consume(&peer, q, "c", true);
	queue_pause(q, true);
	world_at(&n.w, n.w.broker->now_ms + 500);
	queue_pause(q, false);
	world_at(&n.w, n.w.broker->now_ms + 500);
	queue_count_full(q);
	ck_assert_uint_eq(q->full_ms, 500);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("pause");
	TCase *t = tcase_create("pause");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, nothing_goes_out);
	tcase_add_test(t, paused_before_its_turn);
	tcase_add_test(t, turns_go_on_where_they_were);
	tcase_add_test(t, life_goes_on);
	tcase_add_test(t, deleted_while_paused);
	tcase_add_test(t, operators_get);
	tcase_add_loop_test(t, over_a_restart, 0, 4);
	tcase_add_test(t, capacity);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
