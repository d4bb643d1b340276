/* SPDX-License-Identifier: Apache-2.0
 * x-expires: what counts as use, and what is left of the queue. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/slab.h"
#include "broker/lease.h"
#include "persist_world.h"
#include "queue_args.h"

enum { EXPIRES = 1000, BEGIN = 1000 };
static const struct queue_arg expires = { "x-expires", 'I', EXPIRES, NULL };

static struct node n;
static struct peer peer;
static struct queue *q;

static bool
exists(const char *name)
{
	return queue_find(n.w.vhost, span_str(name)) != NULL;
}

static const struct error *
declare(const char *name, bool durable, int64_t ms)
{
	struct queue_arg arg = { "x-expires", 'I', ms, NULL };
	struct table *arguments = queue_args(&arg, 1);
	struct queue_spec spec = {
		.name = span_str(name), .durable = durable, .arguments = arguments
	};
	const struct error *e = queue_declare(n.w.vhost, &spec, NULL, &q);

	table_free(&arguments);
	return e;
}

static void
set_up(void)
{
	node_init(&n);
	peer_init(&peer, &n.client);
	q = world_queue_with(&n.w, "q", false, &expires, 1);
}

static void
end_sessions(void)
{
	peer_fini(&peer);
}

static void
tear_down(void)
{
	struct slab_stats slabs;

	world_turn(&n.w);
	peer_fini(&peer);
	node_fini(&n);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], 0);
}

static void
get(void)
{
	struct entry e;
	uint64_t tag;
	uint32_t left;

	if (session_get(&peer.session, q, false, &e, &tag, &left) == GET_GOT)
		msg_unref(&e.m);
}

START_TEST(goes_unused)
{
	queue_publish(q, world_msg(1, 8), 0);
	world_at(&n.w, BEGIN + EXPIRES - 1);
	ck_assert(exists("q"));
	world_at(&n.w, BEGIN + EXPIRES);
	ck_assert(!exists("q"));
	ck_assert_uint_eq(n.w.broker->stats.queues_expired, 1);
	ck_assert_uint_eq(n.w.broker->stats.purged, 1);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	/* a new one of the name has a time of its own */
	ck_assert_ptr_null(declare("q", false, EXPIRES));
	world_at(&n.w, BEGIN + 2 * EXPIRES - 1);
	ck_assert(exists("q"));
}
END_TEST

static void
publish(void)
{
	queue_publish(q, world_msg(1, 8), 0);
}

static void
declare_same(void)
{
	ck_assert_ptr_null(declare("q", false, EXPIRES));
}

static void
declare_other(void)
{
	ck_assert_ptr_nonnull(declare("q", false, EXPIRES + 1));
}

static void
consume_and_cancel(void)
{
	session_cancel(&peer.session, peer_consume(&peer, q, "c", false));
}

static void
purge(void)
{
	(void)queue_purge(q);
}

static const struct {
	void (*fn)(void);
	bool is_use;
} uses[] = { { get, true }, { declare_same, true }, { consume_and_cancel, true },
	{ publish, false }, { declare_other, false }, { purge, false } };

START_TEST(use)
{
	for (uint64_t at = BEGIN; at < BEGIN + 3 * EXPIRES && exists("q"); at += EXPIRES / 4) {
		world_at(&n.w, at);
		if (exists("q"))
			uses[_i].fn();
	}
	ck_assert_int_eq(exists("q"), uses[_i].is_use);
	world_at(&n.w, BEGIN + 4 * EXPIRES);
	ck_assert(!exists("q"));
}
END_TEST

START_TEST(consumers_keep_it)
{
	struct consumer *a = peer_consume(&peer, q, "a", false),
	                *b = peer_consume(&peer, q, "b", false);

	world_at(&n.w, BEGIN + 5 * EXPIRES);
	session_cancel(&peer.session, a);
	world_at(&n.w, BEGIN + 7 * EXPIRES);
	ck_assert(exists("q"));
	if (_i == 0) {
		session_cancel(&peer.session, b);
	} else { /* the end of its session is as good */
		peer_fini(&peer);
		peer_init(&peer, &n.client);
	}
	world_at(&n.w, BEGIN + 8 * EXPIRES - 1);
	ck_assert(exists("q"));
	world_at(&n.w, BEGIN + 8 * EXPIRES);
	ck_assert(!exists("q"));
}
END_TEST

/* A consumer that comes just before the end. */
START_TEST(just_in_time)
{
	struct consumer *k;

	world_at(&n.w, BEGIN + EXPIRES - 1);
	k = peer_consume(&peer, q, "a", false);
	world_at(&n.w, BEGIN + EXPIRES + 10);
	session_cancel(&peer.session, k);
	world_at(&n.w, BEGIN + 2 * EXPIRES + 9);
	ck_assert(exists("q"));
	world_at(&n.w, BEGIN + 2 * EXPIRES + 10);
	ck_assert(!exists("q"));
}
END_TEST

/* What was got from it may be settled afterwards. */
START_TEST(unacknowledged)
{
	publish();
	publish();
	get();
	world_at(&n.w, BEGIN + 2 * EXPIRES);
	ck_assert(!exists("q"));
	ck_assert_ptr_null(
	    session_settle(&peer.session, 1, false, _i == 0 ? SETTLE_ACK : SETTLE_REQUEUE));
	ck_assert_uint_eq(n.w.broker->stats.messages_unacknowledged, 0);
}
END_TEST

START_TEST(deleted_before)
{
	uint32_t messages;

	ck_assert_ptr_null(queue_delete(q, false, false, &messages));
	world_at(&n.w, BEGIN + 2 * EXPIRES);
	ck_assert_uint_eq(n.w.broker->stats.queues_expired, 0);
}
END_TEST

/* A durable one: its time begins anew with the node, and once gone it stays gone. */
START_TEST(restart)
{
	bool gently = _i % 2 == 0;

	ck_assert_ptr_null(declare("d", true, 2 * EXPIRES));
	node_publish(&n, q, persistent_msg(1, 8), 0);
	node_settle(&n);
	world_at(&n.w, BEGIN + 2 * EXPIRES - 10);
	ck_assert(exists("d"));
	node_restart(&n, gently, BEGIN + 3 * EXPIRES, end_sessions);
	peer_init(&peer, &n.client);
	world_at(&n.w, BEGIN + 5 * EXPIRES - 1);
	ck_assert(exists("d"));
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 1);
	world_at(&n.w, BEGIN + 5 * EXPIRES);
	ck_assert(!exists("d"));
	node_settle(&n);
	node_restart(&n, gently, BEGIN + 5 * EXPIRES, end_sessions);
	peer_init(&peer, &n.client);
	ck_assert(!exists("d"));
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
}
END_TEST

/* A hundred thousand whose time ends at once: no more of them a turn than the loop fires timers. */
START_TEST(very_many)
{
	enum { MANY = 100000 };
	char name[16];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "%d", i);
		ck_assert_ptr_null(declare(name, false, EXPIRES));
	}
	ck_assert_uint_eq(n.w.broker->stats.queues, MANY + 1);
	n.w.broker->now_ms = BEGIN + EXPIRES;
	while (n.w.broker->stats.queues > 0) {
		uint64_t before = n.w.broker->stats.queues;

		ck_assert_int_eq(wheel_wait(n.w.wheel, BEGIN + EXPIRES), 0);
		(void)wheel_run(n.w.wheel, BEGIN + EXPIRES, 1000);
		ck_assert_uint_le(before - n.w.broker->stats.queues, 1000);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("lease");
	TCase *t = tcase_create("lease");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, goes_unused);
	tcase_add_loop_test(t, use, 0, COUNT_OF(uses));
	tcase_add_loop_test(t, consumers_keep_it, 0, 2);
	tcase_add_test(t, just_in_time);
	tcase_add_loop_test(t, unacknowledged, 0, 2);
	tcase_add_test(t, deleted_before);
	tcase_add_loop_test(t, restart, 0, 2);
	tcase_add_test(t, very_many);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
