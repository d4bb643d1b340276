/* SPDX-License-Identifier: Apache-2.0
 * Queues that survive, and that lie on disk: what comes back, what memory they keep, and when it expires. */
#include <check.h>
#include <stdlib.h>

#include "base/slab.h"
#include "tests/unit/persist_peer.h"

/* ---- a queue and its messages ---- */

START_TEST(messages_come_back)
{
	struct queue *q = node_queue(&n, "q", true);
	struct entry e;
	uint64_t tag[6];

	for (uint64_t i = 1; i <= 20; i++)
		(void)node_publish(&n, q, persistent_msg(i, 100), 0);
	(void)node_publish(&n, q, world_msg(99, 100), 0);
	for (int i = 0; i < 6; i++) {
		ck_assert(get(q, false, &e, &tag[i]));
		msg_unref(&e.m);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_ptr_null(session_settle(&peer.session, tag[i], false, SETTLE_ACK));
	ck_assert_ptr_null(session_settle(&peer.session, tag[3], false, SETTLE_REQUEUE));
	ck_assert_ptr_null(session_settle(&peer.session, tag[4], false, SETTLE_REJECT));
	node_settle(&n);
	restart(false);
	q = queue("q");
	ck_assert_uint_eq(q->ready, 17);
	ck_assert_uint_eq(q->ready_bytes, 1700);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 17);
	for (uint64_t i = 3; i <= 20; i++) {
		if (i == 5)
			continue;
		ck_assert(get(q, true, &e, &tag[0]));
		ck_assert_uint_eq(msg_number(e.m), i);
		ck_assert_int_eq((e.seq_flags & ENTRY_REDELIVERED) != 0, i <= 6);
		ck_assert_uint_eq(e.acquired, i == 4 ? 1 : 0);
		ck_assert_uint_eq(e.m->arrived_ms, 1000);
		msg_unref(&e.m);
	}
	ck_assert(!get(q, true, &e, &tag[0]));
	(void)node_publish(&n, q, persistent_msg(21, 8), 0);
	node_settle(&n);
	restart(true);
	expect_numbers(queue("q"), 21, 21);
}
END_TEST

START_TEST(a_long_queue_lies_on_disk)
{
	enum { MANY = 30000 };
	struct queue *q;
	struct entry e;
	uint64_t tag;

	keep_little();
	q = node_queue(&n, "q", true);
	for (uint64_t i = 1; i <= MANY; i++) {
		(void)node_publish(
		    &n, q, i % 3 == 0 ? world_msg(i, 100) : persistent_msg(i, 100), 0);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	node_settle(&n);
	ck_assert_uint_eq(q->ready, MANY);
	ck_assert_uint_gt(q->strand.behind, MANY / 2);
	ck_assert_uint_lt(q->ready - strand_unread(&q->strand), 8192);
	expect_numbers(q, 1, 5000);
	/* requeued ones come first, wherever they lie by now */
	for (int i = 0; i < 10; i++) {
		ck_assert(get(q, false, &e, &tag));
		msg_unref(&e.m);
	}
	session_recover(&peer.session);
	expect_numbers(q, 5001, 9000);
	node_settle(&n);
	restart(false);
	q = queue("q");
	/* what was neither persistent nor spilled is gone: it is the end of the queue */
	ck_assert_uint_gt(q->ready, MANY - 9000 - 2000);
	expect_numbers(q, 9001, 20000);
	ck_assert_uint_eq(queue_purge(q), q->broker->stats.purged);
	ck_assert_uint_eq(q->ready + q->strand.behind + q->ready_bytes, 0);
	ck_assert(!get(q, true, &e, &tag));
	(void)node_publish(&n, q, persistent_msg(1, 8), 0);
	expect_numbers(q, 1, 1);
	node_settle(&n);
	restart(false);
	ck_assert_uint_eq(queue("q")->ready, 0);
}
END_TEST

START_TEST(consumers_get_what_lies_on_disk)
{
	enum { MANY = 20000 };
	struct queue *q;

	keep_little();
	q = node_queue(&n, "q", true);
	for (uint64_t i = 1; i <= MANY; i++) {
		(void)node_publish(&n, q, persistent_msg(i, 100), 0);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	node_settle(&n);
	restart(false);
	q = queue("q");
	ck_assert_uint_eq(q->ready, MANY);
	(void)peer_consume(&peer, q, "t", false);
	node_settle(&n);
	ck_assert_uint_eq(peer.count, MANY);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(peer.got[i].number, i + 1);
	ck_assert_ptr_null(session_settle(&peer.session, 0, true, SETTLE_ACK));
	ck_assert_uint_eq(q->ready + q->unacked, 0);
	node_settle(&n);
	restart(false);
	ck_assert_uint_eq(queue("q")->ready, 0);
}
END_TEST

START_TEST(memory_pressure_spills)
{
	enum { MANY = 60000 };
	bool durable = _i == 1;
	struct queue *q = node_queue(&n, "q", durable);
	uint64_t held;

	for (uint64_t i = 1; i <= MANY; i++)
		(void)node_publish(&n, q, durable ? persistent_msg(i, 200) : world_msg(i, 200), 0);
	held = mem_total();
	n.w.broker->memory.spill = held / 4;
	for (int i = 0; i < 200; i++) {
		n.w.broker->now_ms += 50;
		(void)node_turn(&n);
	}
	node_settle(&n);
	slab_trim();
	slab_trim();
	ck_assert_uint_eq(q->ready, MANY);
	ck_assert_uint_lt(mem_total(), held / 2);
	expect_numbers(q, 1, MANY / 2);
	for (uint64_t i = MANY + 1; i <= MANY + 1000; i++)
		(void)node_publish(&n, q, durable ? persistent_msg(i, 200) : world_msg(i, 200), 0);
	expect_numbers(q, MANY / 2 + 1, MANY + 1000);
	ck_assert_uint_eq(q->ready + q->strand.behind, 0);
}
END_TEST

/* The queue goes, or is emptied, while a part of it is being written. */
START_TEST(purged_while_spilling)
{
	enum { MANY = 40000 };
	struct queue *q = node_queue(&n, "q", _i % 2 == 0);
	uint32_t messages;

	for (uint64_t i = 1; i <= MANY; i++)
		(void)node_publish(
		    &n, q, q->durable ? persistent_msg(i, 200) : world_msg(i, 200), 0);
	n.w.broker->memory.spill = 1 << 20;
	for (int i = 0; i < 4; i++)
		world_turn(&n.w);
	n.w.broker->memory.spill = 0;
	if (_i < 2) {
		ck_assert_uint_eq(queue_purge(q), MANY);
		(void)node_publish(&n, q, persistent_msg(7, 200), 0);
		node_settle(&n);
		ck_assert_uint_eq(q->ready, 1);
		expect_numbers(q, 7, 7);
	} else {
		ck_assert_ptr_null(queue_delete(q, false, false, &messages));
		ck_assert_uint_eq(messages, MANY);
		node_settle(&n);
	}
	node_settle(&n);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	restart(false);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
}
END_TEST

/* ---- expiry and retention ---- */

static struct msg *
expiring(uint64_t number)
{
	/* delivery mode 2, expiration "500" */
	static const uint8_t props[] = { 0x11, 0, 2, 3, '5', '0', '0' };
	struct op_msg o = { .names = SPAN_LIT("\0\1k"),
		.props = span_of(props, sizeof props),
		.flags = MSG_FLAG_PERSISTENT,
		.body_size = 8 };
	uint8_t body[200] = { 0 };

	memcpy(body, &number, sizeof number);
	o.body = span_of(body, sizeof body);
	return persist_store_ops.make(n.w.broker, &o);
}

START_TEST(expired_after_a_restart)
{
	enum { MANY = 20000 };
	struct queue *q;
	uint64_t now;

	keep_little();
	q = node_queue(&n, "q", true);
	now = n.w.broker->now_ms;
	for (uint64_t i = 1; i <= MANY; i++) {
		(void)node_publish(&n, q, expiring(i), now + 500);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	(void)node_publish(&n, q, persistent_msg(77, 8), 0);
	node_settle(&n);
	/* a clock that stands before that of the last record: nothing expires */
	restart_at(false, now - 900);
	q = queue("q");
	ck_assert_uint_eq(n.report.clock_ms, now);
	for (int i = 0; i < 3; i++) {
		queues_tend(n.w.broker);
		node_settle(&n);
	}
	ck_assert_uint_eq(q->ready, MANY + 1);
	restart_at(false, now + 499);
	q = queue("q");
	queues_tend(n.w.broker);
	node_settle(&n);
	ck_assert_uint_eq(q->ready, MANY + 1);
	/* without a consumer, by the wheel alone */
	for (uint64_t t = now + 500; t < now + 800; t++) {
		world_at(&n.w, t);
		node_settle(&n);
	}
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(q->stats.expired, MANY);
	expect_numbers(q, 77, 77);
}
END_TEST

START_TEST(retention)
{
	const uint64_t hour = 3600 * 1000;
	struct queue *q = node_queue(&n, "q", true);

	n.w.broker->retention_ms = hour;
	(void)node_publish(&n, q, persistent_msg(1, 8), 0);
	world_at(&n.w, 1000 + hour / 2);
	(void)node_publish(&n, q, persistent_msg(2, 8), 0);
	world_at(&n.w, 1000 + hour - 1);
	ck_assert_uint_eq(q->ready, 2);
	world_at(&n.w, 1000 + hour);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(n.w.broker->stats.retained_out, 1);
	ck_assert_uint_eq(n.w.broker->stats.expired, 0);
	node_settle(&n);
	n.w.cfg.retention_hours = 1;
	restart_at(false, 1000 + hour);
	q = queue("q");
	ck_assert_uint_eq(q->ready, 1);
	world_at(&n.w, 1000 + hour + hour / 2 - 1);
	ck_assert_uint_eq(q->ready, 1);
	world_at(&n.w, 1000 + hour + hour / 2);
	ck_assert_uint_eq(q->ready, 0);
}
END_TEST

static Suite *
persist_queue_suite(void)
{
	Suite *s = suite_create("persist_queue");
	TCase *t = tcase_create("persist_queue");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, messages_come_back);
	tcase_add_test(t, a_long_queue_lies_on_disk);
	tcase_add_test(t, consumers_get_what_lies_on_disk);
	tcase_add_loop_test(t, memory_pressure_spills, 0, 2);
	tcase_add_loop_test(t, purged_while_spilling, 0, 4);
	tcase_add_test(t, expired_after_a_restart);
	tcase_add_test(t, retention);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(persist_queue_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
