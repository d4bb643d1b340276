/* SPDX-License-Identifier: Apache-2.0
 * A model of one queue that is published to, taken from, spilled, killed and started again at random. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/persist_peer.h"

enum { MODEL_MAX = 60000, OPS = 1500 };

static struct {
	enum { M_NONE, M_READY, M_OUT } state[MODEL_MAX];
	bool is_persistent[MODEL_MAX], is_redelivered[MODEL_MAX];
	uint64_t tag[MODEL_MAX];
	uint64_t count, ready, first; /* none before `first` is there */
	uint64_t rng;
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
		bool persistent = rnd(5) != 0;
		uint32_t size = rnd(40) == 0 ? 8 + rnd(20000) : 8 + rnd(200);
		struct msg *msg =
		    persistent ? persistent_msg(m.count, size) : world_msg(m.count, size);

		m.is_persistent[m.count] = persistent;
		m.is_redelivered[m.count] = false;
		m.state[m.count++] = M_READY;
		m.ready++;
		(void)node_publish(&n, q, msg, 0);
	}
}

static uint64_t
model_next(void)
{
	while (m.first < m.count && m.state[m.first] == M_NONE)
		m.first++;
	for (uint64_t i = m.first; i < m.count; i++)
		if (m.state[i] == M_READY)
			return i;
	return UINT64_MAX;
}

static void
model_get(struct queue *q)
{
	bool no_ack = rnd(2) == 0;
	struct entry e;

	for (uint32_t i = rnd(4) == 0 ? rnd(1500) : rnd(20); i > 0; i--) {
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

/* Everything that is out is ready again. What was not persistent may be there or not: whatever is, is in its place. */
static void
model_restart(bool gently)
{
	struct queue *q;
	struct entry e;
	uint64_t tag, at = 0, there;

	node_settle(&n);
	restart(gently);
	q = queue("q");
	there = q->ready;
	while (get(q, false, &e, &tag)) {
		uint64_t number = msg_number(e.m);

		for (; at < number; at++) {
			ck_assert_msg(m.state[at] == M_NONE || !m.is_persistent[at], "%lu is lost",
			    (unsigned long)at);
			m.state[at] = M_NONE;
		}
		ck_assert_msg(m.state[number] != M_NONE, "%lu is back", (unsigned long)number);
		if (m.state[number] == M_OUT || m.is_redelivered[number])
			ck_assert(
			    (e.seq_flags & ENTRY_REDELIVERED) != 0 || !m.is_persistent[number]);
		at = number + 1;
		m.state[number] = M_READY;
		m.is_redelivered[number] = true;
		msg_unref(&e.m);
		there--;
	}
	ck_assert_uint_eq(there, 0);
	for (; at < m.count; at++) {
		ck_assert_msg(m.state[at] == M_NONE || !m.is_persistent[at], "%lu is lost",
		    (unsigned long)at);
		m.state[at] = M_NONE;
	}
	session_recover(&peer.session);
	m.first = m.ready = 0;
	for (uint64_t i = 0; i < m.count; i++)
		m.ready += m.state[i] == M_READY;
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

static void
model_step(void)
{
	struct queue *q = queue("q");

	switch (rnd(16)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4: model_publish(q); break;
	case 5:
	case 6:
	case 7:
	case 8: model_get(q); break;
	case 9:
	case 10: model_settle(); break;
	case 11: model_pressure(); break;
	case 12: world_turn(&n.w); break;
	case 13:
		if (rnd(60) == 0)
			model_purge(q);
		break;
	case 14:
		if (rnd(40) == 0 && m.durable)
			model_restart(rnd(2) == 0);
		break;
	default: (void)node_turn(&n); break;
	}
	q = queue("q");
	ck_assert_uint_eq(q->ready, m.ready);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, m.ready);
}

START_TEST(model)
{
	m.rng = (uint64_t)_i + 1;
	m.durable = _i % 3 != 2;
	m.count = m.ready = m.first = 0;
	keep_little();
	(void)node_queue(&n, "q", m.durable);
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

static Suite *
persist_model_suite(void)
{
	Suite *s = suite_create("persist_model");
	TCase *t = tcase_create("persist_model");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, model, 0, 9);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(persist_model_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
