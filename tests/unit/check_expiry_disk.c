/* SPDX-License-Identifier: Apache-2.0
 * A backlog on disk that expires and becomes dead letters: it is read as fast as letters are sent, not as fast as the disk
 * reads. */
#include "broker/binding.h"
#include "broker/exchange.h"
#include "queue_args.h"
#include "tests/unit/persist_world.h"

enum { MANY = 60000, SIZE = 200, MOST = 20000, TTL_MS = 3600 * 1000 };

static struct node n;
static struct peer peer;

static void
setup(void)
{
	node_init(&n);
	peer_init(&peer, &n.client);
}

static void
teardown(void)
{
	peer_fini(&peer);
	node_fini(&n);
}

/* Without those that make the broker go on until nothing is left. */
static bool
one_turn(void)
{
	struct store *s = n.w.broker->store;
	bool more;

	(void)wheel_run(n.w.wheel, n.w.broker->now_ms, 100);
	more = broker_run(n.w.broker);
	more |= store_turn(s, n.w.broker->next_id, n.w.broker->now_ms);
	while (journal_step(s->journal))
		more = true;
	while (workers_step(n.workers, 0))
		more = true;
	workers_take(n.workers);
	more |= store_events(s);
	return more;
}

static struct queue *
make_source(const char *type)
{
	const struct queue_arg arguments[] = {
		{ "x-queue-type", 'S', 0, type }, /* durable */
		{ "x-dead-letter-exchange", 'S', 0, "amq.fanout" },
		{ "x-message-ttl", 'I', TTL_MS, NULL },
	};

	return world_queue_with(&n.w, "source", false, arguments, 3);
}

static void
spill(void)
{
	n.w.broker->memory.spill = mem_total() / 4;
	for (int i = 0; i < 200; i++) {
		n.w.broker->now_ms += 50;
		(void)node_turn(&n);
	}
	n.w.broker->memory.spill = 0;
	node_settle(&n);
}

/* Odd: somebody consumes the queue meanwhile. */
START_TEST(read_no_faster_than_sent)
{
	struct queue *q = make_source(_i < 2 ? "classic" : "quorum"),
	             *dead = node_queue(&n, "dead", false);
	const struct broker_stats *stats = &n.w.broker->stats;
	uint64_t due_ms = n.w.broker->now_ms + TTL_MS, most = 0;

	ck_assert_ptr_null(binding_add(
	    exchange_find(n.w.vhost, SPAN_LIT("amq.fanout")), dead, NULL, SPAN_LIT(""), NULL));
	for (uint64_t i = 1; i <= MANY; i++)
		(void)node_publish(&n, q, persistent_msg(i, SIZE), 0);
	n.w.broker->now_ms++;
	(void)node_publish(&n, q, persistent_msg(MANY + 1, SIZE), 0);
	spill();
	ck_assert_uint_gt(q->strand.behind, MANY / 2);
	n.w.broker->now_ms = due_ms;
	if (_i % 2 == 1)
		(void)peer_consume(&peer, q, "k", true);
	else
		queue_tidy_later(q);
	for (int i = 0; one_turn() || stats->dead_lettered < MANY; i++) {
		uint64_t waiting = MANY + 1 - q->ready - stats->dead_lettered;

		ck_assert_int_lt(i, 100000);
		if (waiting > most)
			most = waiting;
	}
	ck_assert_uint_le(most, MOST);
	node_settle(&n);
	ck_assert_uint_eq(dead->ready, MANY);
	ck_assert_uint_eq(q->ready, _i % 2 == 0);
	ck_assert_uint_eq(peer.count, _i % 2 == 1);
}
END_TEST

/* They are as many bytes for the journal again, and nobody can be stopped. _i == 1: the journal is full as well. */
START_TEST(not_sent_while_the_disk_is_slow)
{
	enum { LARGE = 100 << 10, LARGE_ONES = 700 };
	struct exchange *x;
	struct queue *q, *dead;
	const struct broker_stats *stats;

	teardown();
	node_init(&n);
	node_close(&n);
	n.cfg.journal_max = _i == 0 ? 1 << 30 : 32 << 20;
	node_open(&n, 1000);
	peer_init(&peer, &n.client);
	stats = &n.w.broker->stats;
	x = exchange_find(n.w.vhost, SPAN_LIT("amq.fanout"));
	q = make_source("classic");
	dead = node_queue(&n, "dead", true);
	ck_assert_ptr_null(binding_add(x, dead, NULL, SPAN_LIT(""), NULL));
	for (uint64_t i = 1; i <= LARGE_ONES; i++)
		(void)node_publish(&n, q, persistent_msg(i, LARGE), 0);
	ck_assert_int_eq(
	    store_hold(n.w.broker->store), _i == 0 ? STORE_BACKLOG : STORE_JOURNAL_FULL);
	ck_assert(store_is_behind(n.w.broker->store));
	world_at(&n.w, n.w.broker->now_ms + TTL_MS);
	for (int i = 0; i < 10; i++)
		(void)broker_run(n.w.broker);
	ck_assert_uint_lt(q->ready, LARGE_ONES);
	ck_assert_uint_eq(stats->dead_lettered, 0);
	for (int i = 0; i < 10 && stats->dead_lettered < LARGE_ONES; i++) {
		node_settle(&n);
		world_at(&n.w, n.w.broker->now_ms + 1000);
	}
	node_settle(&n);
	ck_assert_uint_eq(stats->dead_lettered, LARGE_ONES);
	ck_assert_uint_eq(dead->ready, LARGE_ONES);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("expiry_disk");
	TCase *t = tcase_create("expiry_disk");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, read_no_faster_than_sent, 0, 4);
	tcase_add_loop_test(t, not_sent_while_the_disk_is_slow, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
