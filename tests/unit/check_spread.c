/* SPDX-License-Identifier: Apache-2.0
 * Queues that send their dead letters to each other: one message becomes a bounded number, and those of few queues are all
 * there are with RabbitMQ. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/binding.h"
#include "broker/exchange.h"
#include "queue_args.h"

enum { MOST = 4096 /* letters of one message */ };

static struct world w;
static struct client client;
static struct peer taker;

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	peer_init(&taker, &client);
}

static void
tear_down(void)
{
	peer_fini(&taker);
	client_fini(&client);
	world_fini(&w);
}

/* `ms`: their time to live. */
static void
make_queues(struct queue **q, unsigned n, int64_t ms)
{
	const struct queue_arg arguments[] = {
		{ "x-message-ttl", 'I', ms, NULL },
		{ "x-dead-letter-exchange", 'S', 0, "amq.fanout" },
	};
	struct exchange *x = exchange_find(w.vhost, SPAN_LIT("amq.fanout"));
	char name[16];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof name, "%u", i);
		q[i] = world_queue_with(&w, name, false, arguments, 2);
		ck_assert_ptr_null(binding_add(x, q[i], NULL, SPAN_LIT(""), NULL));
	}
}

/* To all of n queues and to `end`, until nothing moves any more. */
static void
run(struct queue **q, unsigned n, uint64_t ms)
{
	for (unsigned i = 0; i < n; i++) {
		struct msg *m = world_msg(1, 8);

		m->arrived_ms = w.broker->now_ms;
		queue_publish(q[i], m, 0);
	}
	for (unsigned i = 0; i < 2 * n; i++) {
		w.broker->now_ms += ms;
		for (unsigned k = 0; k < n; k++)
			queue_tidy_later(q[k]);
		world_turn(&w);
	}
	ck_assert_uint_eq(w.broker->stats.dead_letters, 0);
}

static uint64_t
ways(unsigned n)
{
	uint64_t all = 0, some = 1;

	for (unsigned i = n; i > 0; i--)
		all += some *= i;
	return all;
}

START_TEST(few_queues)
{
	unsigned n = (unsigned)_i;
	struct queue *q[8], *end = world_queue(&w, "end");

	ck_assert_ptr_null(binding_add(
	    exchange_find(w.vhost, SPAN_LIT("amq.fanout")), end, NULL, SPAN_LIT(""), NULL));
	make_queues(q, n, 10);
	run(q, n, 11);
	ck_assert_uint_eq(end->ready, ways(n));
	ck_assert_uint_eq(w.broker->stats.dead_letters_lost, 0);
}
END_TEST

/* Whether they go at once or wait in their queues between. */
START_TEST(many_queues)
{
	enum { QUEUES = 12 };
	struct queue *q[QUEUES];
	uint64_t left = 0;

	make_queues(q, QUEUES, _i);
	run(q, QUEUES, (uint64_t)_i + 1);
	for (unsigned i = 0; i < QUEUES; i++)
		left += q[i]->ready;
	ck_assert_uint_eq(left, 0);
	ck_assert_uint_gt(w.broker->stats.dead_lettered, MOST / 4);
	ck_assert_uint_le(w.broker->stats.dead_lettered, (uint64_t)QUEUES * MOST);
	ck_assert_uint_gt(w.broker->stats.dead_letters_lost, 0);
}
END_TEST

/* Once round, and no further than x-death remembers. */
START_TEST(ring)
{
	unsigned n = (unsigned)_i;
	struct queue *q = NULL;
	char name[16], next[16];

	for (unsigned i = 0; i < n; i++) {
		const struct queue_arg arguments[] = {
			{ "x-message-ttl", 'I', 1, NULL },
			{ "x-dead-letter-exchange", 'S', 0, "" },
			{ "x-dead-letter-routing-key", 'S', 0, next },
		};

		snprintf(name, sizeof name, "%u", i);
		snprintf(next, sizeof next, "%u", (i + 1) % n);
		q = world_queue_with(&w, name, false, arguments, 3);
	}
	queue_publish(q, world_msg(1, 8), 0);
	for (unsigned i = 0; i < 3 * n; i++) {
		world_at(&w, w.broker->now_ms + 1);
		world_turn(&w);
	}
	ck_assert_uint_eq(w.broker->stats.messages_ready, 0);
	ck_assert_uint_eq(w.broker->stats.dead_letter_cycles, 1);
	ck_assert_uint_eq(w.broker->stats.expired, n < 64 ? n : 64);
}
END_TEST

/* A client that rejects it makes it new: a retry with an audit beside it goes on for ever. */
START_TEST(rejected)
{
	static const struct queue_arg work[] = { { "x-dead-letter-exchange", 'S', 0,
	    "amq.fanout" } };
	static const struct queue_arg wait[] = {
		{ "x-message-ttl", 'I', 1, NULL },
		{ "x-dead-letter-exchange", 'S', 0, "" },
		{ "x-dead-letter-routing-key", 'S', 0, "work" },
	};
	struct exchange *x = exchange_find(w.vhost, SPAN_LIT("amq.fanout"));
	struct queue *q = world_queue_with(&w, "work", false, work, 1),
	             *audit = world_queue(&w, "audit");
	struct consumer *k = peer_consume(&taker, q, "k", false);

	ck_assert_ptr_nonnull(k);
	ck_assert_ptr_null(binding_add(x, audit, NULL, SPAN_LIT(""), NULL));
	ck_assert_ptr_null(
	    binding_add(x, world_queue_with(&w, "wait", false, wait, 3), NULL, SPAN_LIT(""), NULL));
	queue_publish(q, world_msg(1, 8), 0);
	for (unsigned turn = 1; turn <= 50; turn++) {
		ck_assert_uint_eq(taker.count, turn);
		ck_assert_ptr_null(session_settle(&taker.session, turn, false, SETTLE_REJECT));
		world_turn(&w);
		world_at(&w, w.broker->now_ms + 1);
		world_turn(&w);
	}
	ck_assert_uint_eq(audit->ready, 50);
	ck_assert_uint_eq(w.broker->stats.dead_letters_lost, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("spread");
	TCase *t = tcase_create("spread");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, few_queues, 1, 7);
	tcase_add_loop_test(t, many_queues, 0, 2);
	tcase_add_loop_test(t, ring, 3, 4);
	tcase_add_loop_test(t, ring, 100, 101);
	tcase_add_test(t, rejected);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
