/* SPDX-License-Identifier: Apache-2.0
 * Priority queues: the order, what counts as what, the way back, expiry at the head of the queue only, purge and delete,
 * what many levels cost. What of them lies on disk or survives stands in check_persist_priorities.c, and everything at
 * once against a model in check_queue_model.c. */
#include <check.h>
#include <stdlib.h>
#include <time.h>

#include "base/slab.h"
#include "queue_world.h"

static struct world w;
static struct client client;
static struct peer peer;

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	peer_init(&peer, &client);
}

static void
tear_down(void)
{
	struct slab_stats slabs;
	struct queue *q;

	peer_fini(&peer);
	while ((q = TAILQ_FIRST(&w.broker->queues)) != NULL)
		queue_remove(q);
	world_turn(&w);
	client_fini(&client);
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], 0);
}

static void
put(struct queue *q, uint64_t number, uint8_t priority, uint64_t due_ms)
{
	queue_publish(q, world_priority_msg(number, 8, priority), due_ms);
}

static void
left_is(struct queue *q, size_t n, const uint64_t *numbers)
{
	struct entry e;

	ck_assert_uint_eq(q->ready, n);
	ck_assert_uint_eq(q->ready_bytes, 8 * n);
	for (size_t i = 0; i < n; i++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(msg_number(e.m), numbers[i]);
		msg_unref(&e.m);
	}
	ck_assert(!queue_pop(q, &e));
}
#define LEFT(q, ...) \
	left_is(q, COUNT_OF(((uint64_t[]){ __VA_ARGS__ })), (uint64_t[]){ __VA_ARGS__ })

static uint64_t
get(struct queue *q)
{
	struct entry e;
	uint64_t tag;
	uint32_t left;

	ck_assert_int_eq(session_get(&peer.session, q, false, &e, &tag, &left), GET_GOT);
	ck_assert_uint_eq(left, q->ready);
	msg_unref(&e.m);
	return tag;
}

START_TEST(higher_ones_first)
{
	struct queue *q = world_priority_queue(&w, "q", false, 5);

	put(q, 1, 0, 0);
	put(q, 2, 3, 0);
	put(q, 3, 5, 0);
	put(q, 4, 255, 0); /* counts as 5 */
	put(q, 5, 3, 0);
	put(q, 6, 6, 0);
	put(q, 7, 0, 0);
	LEFT(q, 3, 4, 6, 2, 5, 1, 7);
}
END_TEST

START_TEST(one_level_is_no_priority)
{
	struct queue *q = world_priority_queue(&w, "q", false, 0);

	put(q, 1, 0, 0);
	put(q, 2, 9, 0);
	put(q, 3, 4, 0);
	ck_assert_ptr_null(q->priorities);
	LEFT(q, 1, 2, 3);
}
END_TEST

START_TEST(requeued_ones_go_back_to_their_level)
{
	struct queue *q = world_priority_queue(&w, "q", false, 9);
	uint64_t tag[5];

	for (uint64_t i = 1; i <= 3; i++)
		put(q, i, 7, 0);
	for (uint64_t i = 4; i <= 6; i++)
		put(q, i, 2, 0);
	for (size_t i = 0; i < COUNT_OF(tag); i++)
		tag[i] = get(q); /* 1 2 3 4 5 */
	put(q, 7, 4, 0);
	put(q, 8, 7, 0);
	ck_assert_ptr_null(session_settle(&peer.session, tag[4], false, SETTLE_REQUEUE));
	ck_assert_ptr_null(session_settle(&peer.session, tag[1], false, SETTLE_REQUEUE));
	ck_assert_ptr_null(session_settle(&peer.session, tag[0], false, SETTLE_ACK));
	session_recover(&peer.session);
	ck_assert_uint_eq(q->unacked, 0);
	LEFT(q, 2, 3, 8, 7, 4, 5, 6);
}
END_TEST

/* A consumer gets what is highest when its turn comes, and a second one of higher priority is asked first. */
START_TEST(consumers)
{
	struct queue *q = world_priority_queue(&w, "q", false, 3);
	struct consumer *low, *high;

	peer.session.prefetch = 2;
	put(q, 1, 0, 0);
	put(q, 2, 1, 0);
	put(q, 3, 2, 0);
	put(q, 4, 3, 0);
	put(q, 5, 3, 0);
	ck_assert_ptr_null(peer_try_consume(&peer, q, "low", false, false, 0, &low));
	ck_assert_ptr_null(peer_try_consume(&peer, q, "high", false, false, 5, &high));
	world_turn(&w);
	ck_assert_uint_eq(peer.count, 4);
	ck_assert(peer.got[0].number == 4 && peer.got[0].consumer == high);
	ck_assert(peer.got[1].number == 5 && peer.got[1].consumer == high);
	ck_assert(peer.got[2].number == 3 && peer.got[2].consumer == low);
	ck_assert(peer.got[3].number == 2 && peer.got[3].consumer == low);
	put(q, 6, 3, 0);
	ck_assert_ptr_null(session_settle(&peer.session, peer.got[2].tag, false, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(peer.count, 5);
	ck_assert(peer.got[4].number == 6 && peer.got[4].consumer == low);
	ck_assert_ptr_null(session_settle(&peer.session, 0, true, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(peer.count, 6);
	ck_assert_uint_eq(q->ready, 0);
}
END_TEST

/* K11: published, purged, published again, consumed: the counts are those of all levels, and the consumer wakes. */
START_TEST(purged_and_filled_again)
{
	struct queue *q = world_priority_queue(&w, "q", false, 255);

	for (int round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 1000; i++)
			put(q, i, (uint8_t)(i * 7), i % 3 == 0 ? 100000 : 0);
		ck_assert_uint_eq(q->ready, 1000);
		ck_assert_uint_eq(q->ready_bytes, 8000);
		ck_assert_uint_eq(w.broker->stats.messages_ready, 1000);
		ck_assert_uint_eq(queue_purge(q), 1000);
		ck_assert_uint_eq(q->ready + q->ready_bytes + w.broker->stats.messages_ready, 0);
		ck_assert(!wheel_armed(&q->expiry));
	}
	(void)peer_consume(&peer, q, "t", true);
	world_turn(&w);
	ck_assert_uint_eq(peer.count, 0);
	put(q, 1, 3, 0);
	world_turn(&w);
	ck_assert_uint_eq(peer.count, 1);
}
END_TEST

START_TEST(empty_levels_hold_no_entries)
{
	struct queue *q = world_priority_queue(&w, "q", false, 255);
	struct slab_stats slabs;
	struct entry e;

	for (uint64_t i = 0; i < 5000; i++)
		put(q, i, (uint8_t)i, 0);
	while (queue_pop(q, &e))
		msg_unref(&e.m);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
}
END_TEST

START_TEST(deleted_with_messages_out)
{
	struct queue *q = world_priority_queue(&w, "q", false, 10);
	uint32_t messages;

	for (uint64_t i = 0; i < 100; i++)
		put(q, i, (uint8_t)(i % 11), 0);
	for (int i = 0; i < 50; i++)
		(void)get(q);
	ck_assert_ptr_null(queue_delete(q, false, false, &messages));
	ck_assert_uint_eq(messages, 50);
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.messages_ready, 0);
	ck_assert_ptr_null(session_settle(&peer.session, 20, true, SETTLE_REQUEUE));
	ck_assert_ptr_null(session_settle(&peer.session, 0, true, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
}
END_TEST

/* As in RabbitMQ: the head of the queue is looked at, not that of each level. */
START_TEST(expires_at_the_head_of_the_queue)
{
	struct queue *q = world_priority_queue(&w, "q", false, 3);

	put(q, 1, 0, 1100);
	put(q, 2, 2, 0);
	put(q, 3, 3, 1200);
	put(q, 4, 3, 1300);
	put(q, 5, 1, 1200);
	world_at(&w, 1150);
	ck_assert_uint_eq(q->ready, 5);
	world_at(&w, 1200);
	ck_assert_uint_eq(q->ready, 4);
	world_at(&w, 1300);
	ck_assert_uint_eq(q->ready, 3); /* 2 stands before 5 and 1 */
	put(q, 6, 1, 0);
	(void)get(q);
	world_at(&w, 1301);
	ck_assert_uint_eq(q->ready, 2); /* 5 has gone, 1 stands behind 6 */
	(void)get(q);
	world_at(&w, 1302);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(q->stats.expired, 4);
	session_recover(&peer.session);
	LEFT(q, 2, 6);
}
END_TEST

/* Nobody is given one that has expired, whatever level it is of, and the counts say so. */
START_TEST(expired_ones_of_several_levels)
{
	struct queue *q = world_priority_queue(&w, "q", false, 200);

	for (uint64_t i = 0; i < 20000; i++)
		put(q, i, (uint8_t)(i % 256), 1100);
	put(q, 20000, 0, 0);
	w.broker->now_ms = 2000;
	(void)peer_consume(&peer, q, "t", true);
	world_turn(&w);
	ck_assert_uint_eq(peer.count, 1);
	ck_assert_uint_eq(peer.got[0].number, 20000);
	ck_assert_uint_eq(q->stats.expired, 20000);
	ck_assert_uint_eq(q->ready + q->ready_bytes, 0);
}
END_TEST

/* 256 levels cost what one does, about: a scan of them for each message would take a hundred times as long. */
START_TEST(many_levels_are_as_quick_as_one)
{
	enum { MANY = 500000 };
	double took[2];

	for (int i = 0; i < 2; i++) {
		struct queue *q =
		    world_priority_queue(&w, i == 0 ? "one" : "many", false, i == 0 ? 0 : 255);
		clock_t start = clock();
		struct entry e;

		for (uint64_t n = 0; n < MANY; n++)
			put(q, n, (uint8_t)(n * 101), 0);
		while (queue_pop(q, &e))
			msg_unref(&e.m);
		took[i] = (double)(clock() - start) / CLOCKS_PER_SEC;
	}
	ck_assert_msg(took[1] < 20 * took[0] + 0.05, "%f s, with one level %f s", took[1], took[0]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("priority queues");
	TCase *t = tcase_create("priorities");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, higher_ones_first);
	tcase_add_test(t, one_level_is_no_priority);
	tcase_add_test(t, requeued_ones_go_back_to_their_level);
	tcase_add_test(t, consumers);
	tcase_add_test(t, purged_and_filled_again);
	tcase_add_test(t, empty_levels_hold_no_entries);
	tcase_add_test(t, deleted_with_messages_out);
	tcase_add_test(t, expires_at_the_head_of_the_queue);
	tcase_add_test(t, expired_ones_of_several_levels);
	tcase_add_test(t, many_levels_are_as_quick_as_one);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
