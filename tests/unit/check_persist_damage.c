/* SPDX-License-Identifier: Apache-2.0
 * What becomes of a broker's objects when the disk loses their records. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>

#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/parameter.h"
#include "broker/topic_permission.h"
#include "tests/unit/persist_world.h"
#include "tests/unit/user_world.h"

static struct node n;

static void
no_sessions(void)
{
}

/* A record in every 100 bytes is damaged, so none of the file is left. */
static void
damage(uint32_t file)
{
	char name[JOURNAL_NAME], *path;
	uint8_t byte;
	int fd;

	ck_assert(journal_file_name(n.w.broker->store->journal, file, name));
	path = xasprintf("%s/%s", n.folder, name);
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	for (off_t at = FILE_HEADER; pread(fd, &byte, 1, at) == 1; at += 20) {
		byte ^= 4;
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
	free(path);
}

/* Messages pass through the queue until the journal is so far. */
static void
flow(struct queue *q, uint32_t (*where)(const struct journal *), uint32_t past)
{
	for (int i = 0; where(n.w.broker->store->journal) <= past; i++) {
		ck_assert_int_lt(i, 200);
		for (uint64_t k = 0; k < 100; k++)
			(void)node_publish(&n, q, persistent_msg(k, 1000), 0);
		ck_assert_uint_eq(queue_purge(q), 100);
		n.w.broker->now_ms += 1000;
		node_settle(&n);
	}
}

START_TEST(put_again_from_memory)
{
	struct exchange_spec xs = {
		.name = SPAN_LIT("x"), .type = SPAN_LIT("topic"), .durable = true
	};
	struct exchange *x = NULL;
	struct vhost *vh;
	struct user *u;
	uint32_t file;

	node_init(&n);
	vh = vhost_add(n.w.broker, "v");
	u = user_add(n.w.broker, "u", "p", "", false);
	ck_assert_ptr_null(permission_set(u, vh, "a", "b", "c"));
	ck_assert_ptr_null(topic_permission_set(u, vh, SPAN_LIT("amq.topic"), "", "", NULL));
	ck_assert_ptr_null(
	    parameter_set(n.w.broker, vh, SPAN_LIT("c"), SPAN_LIT("p"), SPAN_LIT("1"), NULL));
	ck_assert_ptr_null(exchange_declare(n.w.vhost, &xs, &x));
	ck_assert_ptr_null(binding_add(x, node_queue(&n, "q", true), NULL, SPAN_LIT("a.#"), NULL));
	for (uint64_t k = 0; k < 10; k++)
		(void)node_publish(
		    &n, queue_find(n.w.vhost, SPAN_LIT("q")), persistent_msg(k, 8), 0);
	node_settle(&n);
	file = journal_current(n.w.broker->store->journal);
	flow(node_queue(&n, "busy", true), journal_current, file);
	damage(file);
	flow(queue_find(n.w.vhost, SPAN_LIT("busy")), journal_oldest, file);
	ck_assert_uint_gt(n.w.broker->store->stats.damaged, 0);
	node_restart(&n, false, n.w.broker->now_ms, no_sessions);
	ck_assert_uint_eq(n.report.damaged, 0);
	ck_assert_uint_eq(n.w.broker->stats.bindings, 1);
	vh = vhost_find(n.w.broker, SPAN_LIT("v"));
	ck_assert_ptr_nonnull(vh);
	u = user_find(n.w.broker, SPAN_LIT("u"));
	ck_assert_ptr_nonnull(u);
	ck_assert_ptr_nonnull(permission_find(u, vh));
	ck_assert_ptr_nonnull(u->topic_permissions);
	ck_assert_ptr_nonnull(vh->parameters);
	x = exchange_find(n.w.vhost, SPAN_LIT("x"));
	ck_assert_ptr_nonnull(x);
	ck_assert_uint_eq(x->binding_count, 1);
	ck_assert_uint_eq(queue_find(n.w.vhost, SPAN_LIT("q"))->ready, 10);
	node_fini(&n);
}
END_TEST

/* A lane whose queue nobody knows: its messages go, but not in silence. */
START_TEST(messages_without_a_queue_are_counted)
{
	struct lane_place place = { .seq = 1 };
	struct msg *m = persistent_msg(1, 8);

	node_init(&n);
	place.lane = lane_open(n.w.broker->store, 77777, 0, true, NULL);
	(void)store_publish(n.w.broker->store, &place, 1, m);
	(void)store_wait_all(n.w.broker->store);
	node_settle(&n);
	node_restart(&n, false, n.w.broker->now_ms, no_sessions);
	msg_unref(&m);
	ck_assert_uint_eq(n.report.messages, 1);
	ck_assert_uint_eq(n.w.broker->store->stats.damaged_messages, 1);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	node_restart(&n, true, n.w.broker->now_ms, no_sessions);
	ck_assert_uint_eq(n.report.messages, 0); /* once */
	node_fini(&n);
}
END_TEST

/* ---- counts ---- */

/* Takes all, and looks at their order. Returns how many. */
static uint64_t
drain(struct peer *peer, struct queue *q)
{
	uint64_t taken = 0, last = 0, tag;
	struct entry e;
	uint32_t left;

	for (int idle = 0; idle < 5;) {
		if (session_get(&peer->session, q, true, &e, &tag, &left) != GET_GOT) {
			node_settle(&n);
			idle++;
			continue;
		}
		ck_assert_uint_gt(e.seq_flags >> 8, last);
		last = e.seq_flags >> 8;
		msg_unref(&e.m);
		taken++;
		idle = 0;
	}
	return taken;
}

/* A queue counts more, or fewer, than its lane has: what the lane has counts, and every message is given out. */
START_TEST(a_queue_that_counts_wrongly)
{
	enum { MANY = 30000 };
	const uint64_t wrong = _i == 0 ? 7 : (uint64_t)-7;
	struct peer peer;
	struct queue *q;

	node_init(&n);
	n.w.broker->store->cfg.lane_entries = 1024;
	peer_init(&peer, &n.client);
	q = node_queue(&n, "q", true);
	for (uint64_t i = 1; i <= MANY; i++) {
		(void)node_publish(&n, q, persistent_msg(i, 100), 0);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	node_settle(&n);
	ck_assert_uint_gt(strand_unread(&q->strand), MANY / 2);
	q->strand.behind += wrong;
	q->strand.ready += wrong;
	q->ready += wrong;
	n.w.broker->stats.messages_ready += wrong;
	ck_assert_uint_eq(drain(&peer, q), MANY);
	ck_assert_uint_eq(n.w.broker->store->stats.damaged, 1);
	ck_assert_uint_eq(q->ready + q->strand.ready + q->strand.behind, 0);
	ck_assert_uint_eq(q->ready_bytes, 0);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	peer_fini(&peer);
	node_fini(&n);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("persist_damage");
	TCase *t = tcase_create("persist_damage");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, put_again_from_memory);
	tcase_add_test(t, messages_without_a_queue_are_counted);
	tcase_add_loop_test(t, a_queue_that_counts_wrongly, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
