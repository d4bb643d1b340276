/* SPDX-License-Identifier: Apache-2.0
 * Priority queues that survive, and that lie on disk: order and counts after a restart and a kill, the bounds of what is
 * in memory, a higher priority that comes while a lower one is read, and a model that is published to, taken from,
 * spilled, killed and started again at random. */
#include <check.h>
#include <stdlib.h>

#include "base/slab.h"
#include "tests/unit/persist_peer.h"

static void
put(struct queue *q, uint64_t number, uint32_t size, uint8_t priority, bool persistent)
{
	struct msg *m = world_priority_msg(number, size, priority);

	m->flags = persistent ? MSG_PERSISTENT : 0;
	(void)node_publish(&n, q, m, 0);
}

static void
expect(struct queue *q, uint64_t number)
{
	struct entry e;
	uint64_t tag;

	ck_assert(get(q, true, &e, &tag));
	ck_assert_uint_eq(msg_number(e.m), number);
	msg_unref(&e.m);
}

START_TEST(come_back_in_order)
{
	struct queue *q = world_priority_queue(&n.w, "q", true, 4);
	struct entry e;
	uint64_t tag[8];

	for (uint64_t i = 0; i < 25; i++)
		put(q, i, 100, (uint8_t)(i % 5), true);
	put(q, 99, 100, 3, false);
	for (size_t i = 0; i < COUNT_OF(tag); i++) {
		ck_assert(get(q, false, &e, &tag[i]));
		msg_unref(&e.m);
	}
	/* 4 9 14 19 24, 3 8 13 are out */
	ck_assert_ptr_null(session_settle(&peer.session, tag[0], false, SETTLE_ACK));
	ck_assert_ptr_null(session_settle(&peer.session, tag[6], false, SETTLE_ACK));
	ck_assert_ptr_null(session_settle(&peer.session, tag[2], false, SETTLE_REQUEUE));
	node_settle(&n);
	restart(_i == 0);
	q = queue("q");
	ck_assert_uint_eq(q->set.max_priority, 4);
	ck_assert_uint_eq(q->ready, 23);
	ck_assert_uint_eq(q->ready_bytes, 2300);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 23);
	ck_assert(get(q, true, &e, &tag[0]));
	ck_assert_uint_eq(msg_number(e.m), 9);
	ck_assert((e.seq_flags & ENTRY_REDELIVERED) != 0);
	msg_unref(&e.m);
	for (int level = 4; level >= 0; level--) {
		for (uint64_t i = (uint64_t)level; i < 25; i += 5) {
			if ((level == 4 && i < 14) || i == 8)
				continue;
			ck_assert(get(q, true, &e, &tag[0]));
			ck_assert_uint_eq(msg_number(e.m), i);
			ck_assert_int_eq((e.seq_flags & ENTRY_REDELIVERED) != 0,
			    level == 4 || (level == 3 && i <= 13));
			msg_unref(&e.m);
		}
	}
	ck_assert_uint_eq(q->ready, 0);
	/* New ones stand behind those of before, in each level. */
	for (uint64_t i = 0; i < 10; i++)
		put(q, i, 8, (uint8_t)(i % 5), true);
	node_settle(&n);
	restart(false);
	q = queue("q");
	put(q, 10, 8, 4, true);
	expect(q, 4);
	expect(q, 9);
	expect(q, 10);
	expect(q, 3);
	ck_assert_uint_eq(queue_purge(q), 7);
	node_settle(&n);
	restart(false);
	ck_assert_uint_eq(queue("q")->ready, 0);
}
END_TEST

START_TEST(what_was_deleted_stays_away)
{
	struct queue *q = world_priority_queue(&n.w, "q", true, 255);
	uint32_t messages;

	for (uint64_t i = 0; i < 512; i++)
		put(q, i, 8, (uint8_t)i, true);
	node_settle(&n);
	restart(_i == 0);
	ck_assert_uint_eq(queue("q")->ready, 512);
	ck_assert_ptr_null(queue_delete(queue("q"), false, false, &messages));
	ck_assert_uint_eq(messages, 512);
	node_settle(&n);
	restart(_i == 0);
	ck_assert_ptr_null(queue("q"));
	ck_assert_uint_eq(n.report.messages, 0);
	ck_assert_uint_eq(n.report.lanes, 0);
}
END_TEST

/* Many levels together keep no more in memory than one queue may, and come back in order. */
START_TEST(long_ones_lie_on_disk)
{
	enum { MANY = 40000 };
	uint32_t levels = _i == 0 ? 3 : _i == 1 ? 10 : 256;
	struct queue *q;
	uint64_t at = 0;

	keep_little();
	if (levels == 256)
		n.cfg.lane_entries = 8192;
	restart(true);
	q = world_priority_queue(&n.w, "q", true, (uint8_t)(levels - 1));
	for (uint64_t i = 0; i < MANY; i++) {
		put(q, i, 100, (uint8_t)(i % levels), i % 3 != 0);
		/* As a publisher does: who is too quick waits. */
		while (i % 100 == 0 && node_turn(&n) && store_lags(n.w.broker->store))
			continue;
		ck_assert_uint_lt(q->priorities->share->live, 2 * n.cfg.lane_entries + 200);
	}
	node_settle(&n);
	ck_assert_uint_eq(q->ready, MANY);
	for (struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s))
		at += s->ready - strand_unread(s);
	ck_assert_uint_lt(at, n.cfg.lane_entries + levels + KEEP_ENTRIES);
	for (uint32_t level = levels; level-- > 0;) {
		for (uint64_t i = level; i < MANY; i += levels)
			expect(q, i);
	}
	ck_assert_uint_eq(q->ready + q->ready_bytes, 0);
	node_settle(&n);
	restart(false);
	ck_assert_uint_eq(queue("q")->ready, 0);
}
END_TEST

/* The next message is on disk, lower ones are in memory: they wait. A higher one that comes meanwhile does not. */
START_TEST(order_while_reading)
{
	enum { MANY = 8000 };
	struct queue *q;

	keep_little();
	q = world_priority_queue(&n.w, "q", true, 9);
	for (uint64_t i = 0; i < MANY; i++) {
		put(q, i, 100, 5, true);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	node_settle(&n);
	restart(false);
	q = queue("q");
	ck_assert_uint_eq(q->ready, MANY);
	put(q, MANY, 100, 2, true);
	(void)peer_consume(&peer, q, "t", false);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 0);
	put(q, MANY + 1, 100, 7, true);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 1);
	ck_assert_uint_eq(peer.got[0].number, MANY + 1);
	node_settle(&n);
	ck_assert_uint_eq(peer.count, MANY + 2);
	for (size_t i = 1; i < peer.count; i++)
		ck_assert_uint_eq(peer.got[i].number, i - 1);
	ck_assert_ptr_null(session_settle(&peer.session, 0, true, SETTLE_REQUEUE));
	ck_assert_uint_eq(q->ready, MANY + 2);
	node_settle(&n);
	ck_assert_uint_eq(peer.count, 2 * (MANY + 2));
	for (size_t i = 0; i < MANY + 2; i++)
		ck_assert_uint_eq(peer.got[MANY + 2 + i].number, peer.got[i].number);
	ck_assert_ptr_null(session_settle(&peer.session, 0, true, SETTLE_ACK));
	ck_assert_uint_eq(q->ready + q->unacked, 0);
}
END_TEST

/* A slice of deliveries ends with the last message of a priority, and the next one is on disk. */
START_TEST(read_after_a_slice)
{
	enum { MANY = 4000, SLICE = 64 };
	struct queue *q;

	keep_little();
	q = world_priority_queue(&n.w, "q", true, 9);
	for (uint64_t i = 0; i < MANY; i++) {
		put(q, i, 100, 5, true);
		if (i % 100 == 0)
			(void)node_turn(&n);
	}
	node_settle(&n);
	restart(false);
	q = queue("q");
	for (uint64_t i = 0; i < (uint64_t)_i * SLICE; i++)
		put(q, MANY + i, 100, 7, true);
	(void)peer_consume(&peer, q, "t", true);
	node_settle(&n);
	ck_assert_uint_eq(peer.count, MANY + (uint64_t)_i * SLICE);
	ck_assert_uint_eq(q->ready, 0);
}
END_TEST

START_TEST(memory_pressure_spills)
{
	enum { MANY = 60000 };
	bool durable = _i == 1;
	struct queue *q = world_priority_queue(&n.w, "q", durable, 7);
	uint64_t held;

	for (uint64_t i = 0; i < MANY; i++)
		put(q, i, 200, (uint8_t)(i % 8), durable);
	held = mem_total();
	n.w.broker->memory.spill = held / 4;
	for (int i = 0; i < 500; i++) {
		n.w.broker->now_ms += 50;
		(void)node_turn(&n);
	}
	node_settle(&n);
	slab_trim();
	slab_trim();
	ck_assert_uint_eq(q->ready, MANY);
	ck_assert_uint_lt(mem_total(), held / 2);
	n.w.broker->memory.spill = 0;
	for (uint64_t i = 0; i < 800; i++)
		put(q, MANY + i, 200, (uint8_t)(i % 8), durable);
	for (uint32_t level = 8; level-- > 0;) {
		for (uint64_t i = level; i < MANY + 800; i += 8)
			expect(q, i);
	}
	ck_assert_uint_eq(q->ready + q->ready_bytes, 0);
}
END_TEST

/* Emptied or deleted while parts of it are being written. */
START_TEST(purged_while_spilling)
{
	enum { MANY = 40000 };
	struct queue *q = world_priority_queue(&n.w, "q", _i % 2 == 0, 3);
	uint32_t messages;

	for (uint64_t i = 0; i < MANY; i++)
		put(q, i, 200, (uint8_t)(i % 4), q->durable);
	n.w.broker->memory.spill = 1 << 20;
	for (int i = 0; i < 6; i++)
		world_turn(&n.w);
	n.w.broker->memory.spill = 0;
	if (_i < 2) {
		ck_assert_uint_eq(queue_purge(q), MANY);
		put(q, 7, 200, 2, q->durable);
		node_settle(&n);
		expect(q, 7);
	} else {
		ck_assert_ptr_null(queue_delete(q, false, false, &messages));
		ck_assert_uint_eq(messages, MANY);
	}
	node_settle(&n);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	restart(false);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
}
END_TEST

/* ---- the model ---- */

enum { MODEL_MAX = 60000, OPS = 1500 };

static struct {
	enum { M_NONE, M_READY, M_OUT } state[MODEL_MAX];
	bool is_persistent[MODEL_MAX], is_redelivered[MODEL_MAX], is_seen[MODEL_MAX];
	uint8_t level[MODEL_MAX];
	uint64_t tag[MODEL_MAX];
	uint64_t count, ready, first; /* none before `first` is there */
	uint64_t rng;
	uint8_t max;
	bool durable;
} m;

static uint32_t
rnd(uint32_t below)
{
	m.rng = m.rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(m.rng >> 33) % below;
}

static void
model_publish(struct queue *q)
{
	for (uint32_t i = rnd(4) == 0 ? rnd(1500) : rnd(20); i > 0 && m.count < MODEL_MAX; i--) {
		uint8_t priority = (uint8_t)(rnd(3) == 0 ? rnd(256) : rnd(3));

		m.is_persistent[m.count] = rnd(5) != 0;
		m.is_redelivered[m.count] = false;
		m.level[m.count] = priority < m.max ? priority : m.max;
		m.state[m.count] = M_READY;
		m.ready++;
		put(q, m.count, rnd(40) == 0 ? 8 + rnd(20000) : 8 + rnd(200), priority,
		    m.is_persistent[m.count]);
		m.count++;
	}
}

static uint64_t
model_next(void)
{
	uint64_t next = UINT64_MAX;

	while (m.first < m.count && m.state[m.first] == M_NONE)
		m.first++;
	for (uint64_t i = m.first; i < m.count; i++) {
		if (m.state[i] == M_READY && (next == UINT64_MAX || m.level[i] > m.level[next]))
			next = i;
		if (next != UINT64_MAX && m.level[next] == m.max)
			break;
	}
	return next;
}

static void
model_get(struct queue *q)
{
	bool no_ack = rnd(2) == 0;
	struct entry e;

	for (uint32_t i = rnd(4) == 0 ? rnd(600) : rnd(20); i > 0; i--) {
		uint64_t want = model_next(), tag;
		bool got = get(q, no_ack, &e, &tag);

		ck_assert_int_eq(got, want != UINT64_MAX);
		if (!got)
			return;
		ck_assert_uint_eq(msg_number(e.m), want);
		ck_assert_int_eq((e.seq_flags & ENTRY_REDELIVERED) != 0, m.is_redelivered[want]);
		msg_unref(&e.m);
		m.state[want] = no_ack ? M_NONE : M_OUT;
		m.tag[want] = tag;
		m.ready--;
	}
}

static void
model_settle(void)
{
	for (uint64_t i = m.first; i < m.count; i++) {
		enum settle how = rnd(3) == 0   ? SETTLE_REQUEUE
		                  : rnd(4) == 0 ? SETTLE_REJECT
		                                : SETTLE_ACK;

		if (m.state[i] != M_OUT || rnd(3) != 0)
			continue;
		ck_assert_ptr_null(session_settle(&peer.session, m.tag[i], false, how));
		m.state[i] = how == SETTLE_REQUEUE ? M_READY : M_NONE;
		m.is_redelivered[i] = true;
		m.ready += how == SETTLE_REQUEUE;
	}
}

static void
model_purge(struct queue *q)
{
	ck_assert_uint_eq(queue_purge(q), m.ready);
	for (uint64_t i = m.first; i < m.count; i++)
		if (m.state[i] == M_READY)
			m.state[i] = M_NONE;
	m.ready = 0;
}

static void
is_behind(uint64_t number, uint64_t last)
{
	ck_assert_msg(last == UINT64_MAX || m.level[number] < m.level[last] ||
	                  (m.level[number] == m.level[last] && number > last),
	    "%lu comes after %lu", (unsigned long)number, (unsigned long)last);
}

/* Everything that is out is ready again. What was not persistent may be there or not: whatever is, is in its place. */
static void
model_restart(bool gently)
{
	uint64_t tag, last = UINT64_MAX, there;
	struct queue *q;
	struct entry e;

	node_settle(&n);
	restart(gently);
	q = queue("q");
	there = q->ready;
	memset(m.is_seen, 0, sizeof m.is_seen);
	while (get(q, false, &e, &tag)) {
		uint64_t i = msg_number(e.m);

		is_behind(i, last);
		ck_assert_msg(m.state[i] != M_NONE, "%lu is back", (unsigned long)i);
		if (m.state[i] == M_OUT || m.is_redelivered[i])
			ck_assert((e.seq_flags & ENTRY_REDELIVERED) != 0 || !m.is_persistent[i]);
		m.is_seen[i] = true;
		last = i;
		msg_unref(&e.m);
		there--;
	}
	ck_assert_uint_eq(there, 0);
	session_recover(&peer.session);
	m.first = m.ready = 0;
	for (uint64_t i = 0; i < m.count; i++) {
		ck_assert_msg(m.is_seen[i] || m.state[i] == M_NONE || !m.is_persistent[i],
		    "%lu is lost", (unsigned long)i);
		m.state[i] = m.is_seen[i] ? M_READY : M_NONE;
		m.is_redelivered[i] = true;
		m.ready += m.is_seen[i];
	}
}

static void
model_pressure(void)
{
	n.w.broker->memory.spill = rnd(2) == 0 ? 0 : 1;
	for (uint32_t i = rnd(6); i > 0; i--) {
		n.w.broker->now_ms += 60;
		(void)node_turn(&n);
	}
}

/* What the lanes of the queue share is what they have. */
static void
check_share(const struct queue *q)
{
	uint64_t live = 0, bytes = 0;
	unsigned spills = 0;

	if (!q->durable)
		return;
	for (const struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s)) {
		live += s->lane->live;
		bytes += s->lane->bytes;
		spills += s->lane->spill != NULL;
	}
	ck_assert_uint_eq(q->priorities->share->live, live);
	ck_assert_uint_eq(q->priorities->share->bytes, bytes);
	ck_assert_uint_eq(q->priorities->share->spills, spills);
}

static void
model_step(void)
{
	static const uint8_t of[] = "pppppggggsstww-t";
	uint8_t what = of[rnd(16)];

	if (what == 'p')
		model_publish(queue("q"));
	else if (what == 'g')
		model_get(queue("q"));
	else if (what == 's')
		model_settle();
	else if (what == 't')
		model_pressure();
	else if (what == 'w')
		world_turn(&n.w);
	else
		(void)node_turn(&n);
	if (rnd(600) == 0)
		model_purge(queue("q"));
	if (rnd(400) == 0 && m.durable)
		model_restart(rnd(2) == 0);
	ck_assert_uint_eq(queue("q")->ready, m.ready);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, m.ready);
	check_share(queue("q"));
}

START_TEST(model)
{
	m.rng = (uint64_t)_i + 1;
	m.durable = _i % 3 != 2;
	m.max = ((const uint8_t[]){ 1, 9, 255 })[_i / 3];
	m.count = m.ready = m.first = 0;
	keep_little();
	(void)world_priority_queue(&n.w, "q", m.durable, m.max);
	for (int i = 0; i < OPS; i++)
		model_step();
	n.w.broker->memory.spill = 0;
	if (m.durable)
		model_restart(false);
	end_peer();
	m.ready = 0;
	for (uint64_t i = m.first; i < m.count; i++)
		m.ready += m.state[i] != M_NONE;
	ck_assert_uint_eq(queue("q")->ready, m.ready);
	open_peer();
	node_settle(&n);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("persist priorities");
	TCase *t = tcase_create("priorities");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, come_back_in_order, 0, 2);
	tcase_add_loop_test(t, what_was_deleted_stays_away, 0, 2);
	tcase_add_loop_test(t, long_ones_lie_on_disk, 0, 3);
	tcase_add_test(t, order_while_reading);
	tcase_add_loop_test(t, read_after_a_slice, 0, 3);
	tcase_add_loop_test(t, memory_pressure_spills, 0, 2);
	tcase_add_loop_test(t, purged_while_spilling, 0, 4);
	tcase_add_loop_test(t, model, 0, 9);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
