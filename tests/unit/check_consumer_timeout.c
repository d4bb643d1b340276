/* SPDX-License-Identifier: Apache-2.0
 * Deliveries that are not acknowledged in time: who is cancelled, what goes back, what late acknowledgements do. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/consumer_timeout.h"
#include "tests/unit/queue_args.h"
#include "tests/unit/two_peers.h"

enum { BEGIN = 1000, TIMEOUT = 1000, SLACK = 100 };
#define NOT_GIVEN UINT64_MAX

static struct consumer *
consume(int i, struct queue *from, const char *tag, uint64_t timeout_ms, uint32_t prefetch)
{
	uint8_t prefix[12 + 255] = { 1 };
	struct consumer_spec spec = { .tag = span_str(tag),
		.has_timeout = timeout_ms != NOT_GIVEN,
		.timeout_ms = timeout_ms };
	struct consumer *k = NULL;

	prefix[11] = (uint8_t)spec.tag.n;
	memcpy(prefix + 12, spec.tag.p, spec.tag.n);
	spec.prefix = span_of(prefix, 12 + spec.tag.n);
	peer[i].session.prefetch = prefetch;
	ck_assert_ptr_null(session_consume(&peer[i].session, from, &spec, &k));
	return k;
}

static void
put(uint64_t first, uint64_t n)
{
	while (n-- > 0)
		queue_publish(q, world_msg(first++, 8), 0);
	world_turn(&w);
}

/* To a time, in steps of a few milliseconds, as a node's loop does. */
static void
until(uint64_t now_ms)
{
	while (w.broker->now_ms < now_ms) {
		world_at(&w, w.broker->now_ms + 5 < now_ms ? w.broker->now_ms + 5 : now_ms);
		world_turn(&w);
	}
}

static const struct error *
settle_now(uint64_t tag, bool multiple, enum settle how)
{
	const struct error *e = settle(tag, multiple, how);

	world_turn(&w);
	return e;
}

START_TEST(only_the_late_ones)
{
	consume(0, q, "a", TIMEOUT, 10);
	put(1, 2);
	until(BEGIN + TIMEOUT / 2);
	put(3, 2);
	consume(1, q, "b", 0, 10);
	until(BEGIN + TIMEOUT - 1);
	ck_assert_uint_eq(peer[0].cancelled, 0);
	ck_assert_uint_eq(peer[1].count, 0);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_ptr_null(session_find(&peer[0].session, SPAN_LIT("a")));
	ck_assert_uint_eq(peer[1].count, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(peer[1].got[i].number, i + 1);
		ck_assert(peer[1].got[i].redelivered);
	}
	ck_assert_uint_eq(session_unacked(&peer[0].session), 2);
	ck_assert_ptr_null(settle_now(3, false, SETTLE_ACK)); /* in time */
	until(BEGIN + TIMEOUT + TIMEOUT / 2 + SLACK);
	ck_assert_uint_eq(peer[1].count, 3);
	ck_assert_uint_eq(peer[1].got[2].number, 4);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_uint_eq(w.broker->stats.consumer_timeouts, 1);
	ck_assert_uint_eq(w.broker->stats.late, 3);
	until(BEGIN + 100 * TIMEOUT);
	ck_assert_uint_eq(peer[1].cancelled, 0);
}
END_TEST

/* A consumer that acknowledges in time is left alone, and costs a look now and then. */
START_TEST(in_time)
{
	enum { MANY = 20000 };
	uint64_t before = w.broker->work;

	consume(0, q, "a", TIMEOUT, 500);
	put(1, MANY);
	for (uint64_t tag = 1; tag <= MANY; tag++) {
		ck_assert_ptr_null(settle_now(tag, false, SETTLE_ACK));
		if (tag % 10 == 0)
			until(w.broker->now_ms + 10);
	}
	ck_assert_uint_eq(peer[0].cancelled, 0);
	ck_assert_uint_eq(w.broker->stats.late, 0);
	ck_assert_uint_lt(w.broker->work - before, 2 * MANY);
	until(w.broker->now_ms + 3 * TIMEOUT);
}
END_TEST

static const struct {
	uint64_t consumer, queue, node, want;
} whose[] = {
	{ NOT_GIVEN, NOT_GIVEN, 0, 0 },
	{ NOT_GIVEN, NOT_GIVEN, 3000, 3000 },
	{ NOT_GIVEN, 2000, 3000, 2000 },
	{ NOT_GIVEN, 0, 3000, 0 },
	{ 1000, 2000, 3000, 1000 },
	{ 0, 2000, 3000, 0 },
};

START_TEST(whose_time)
{
	struct queue_arg arg = { "x-consumer-timeout", 'I', (int64_t)whose[_i].queue, NULL };

	w.cfg.consumer_timeout_ms = whose[_i].node;
	q = world_queue_with(&w, "of", false, &arg, whose[_i].queue != NOT_GIVEN);
	consume(0, q, "a", whose[_i].consumer, 10);
	put(1, 1);
	until(BEGIN + 5000);
	ck_assert_uint_eq(peer[0].cancelled, whose[_i].want != 0);
	if (whose[_i].want != 0) {
		consume(0, q, "a", whose[_i].consumer, 10);
		world_turn(&w);
		until(BEGIN + 5000 + whose[_i].want - 1);
		ck_assert_uint_eq(peer[0].cancelled, 1);
		until(BEGIN + 5000 + whose[_i].want + SLACK);
		ck_assert_uint_eq(peer[0].cancelled, 2);
	}
}
END_TEST

/* Tags 1 and 2 were taken back, 3 is held still. */
static const struct {
	struct {
		uint64_t tag;
		bool multiple;
	} ack[3];
	bool is_unknown; /* the last one is refused */
	unsigned left;
} late_acks[] = {
	{ { { 1, false } }, false, 1 },
	{ { { 1, false }, { 2, false } }, false, 1 },
	{ { { 1, false }, { 1, false } }, true, 1 },
	{ { { 2, true } }, false, 1 },
	{ { { 2, true }, { 1, false } }, true, 1 },
	{ { { 3, true } }, false, 0 },
	{ { { 3, true }, { 1, false } }, true, 0 },
	{ { { 3, false }, { 2, true } }, false, 0 },
	{ { { 0, true }, { 2, false } }, true, 0 },
	{ { { 4, false } }, true, 1 },
};

START_TEST(late_acknowledgements)
{
	enum settle how = (enum settle)(_i % 3);
	bool with_tx = _i % 2;
	const struct error *e = NULL;
	unsigned i = (unsigned)_i / 6;

	consume(0, q, "a", TIMEOUT, 10);
	put(1, 2);
	until(BEGIN + TIMEOUT / 2);
	put(3, 1);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_uint_eq(session_unacked(&peer[0].session), 1);
	for (unsigned j = 0; j < 3; j++) {
		struct unacked_set set = { 0 };

		if (late_acks[i].ack[j].tag == 0 && !late_acks[i].ack[j].multiple)
			break;
		ck_assert_ptr_null(e);
		if (!with_tx) {
			e = settle_now(late_acks[i].ack[j].tag, late_acks[i].ack[j].multiple, how);
			continue;
		}
		e = session_take(
		    &peer[0].session, late_acks[i].ack[j].tag, late_acks[i].ack[j].multiple, &set);
		for (uint32_t at = 0; at < set.count; at++)
			session_settle_taken(&peer[0].session, &set.item[at], how);
		free(set.item);
	}
	ck_assert_int_eq(e != NULL, late_acks[i].is_unknown);
	ck_assert_uint_eq(session_unacked(&peer[0].session), late_acks[i].left);
	ck_assert_uint_ge(q->ready, 2); /* what went back is there, whatever the client said */
}
END_TEST

START_TEST(of_get)
{
	struct entry e;
	uint64_t tag;
	uint32_t left;

	w.cfg.consumer_timeout_ms = TIMEOUT;
	put(1, 1);
	ck_assert_int_eq(session_get(&peer[0].session, q, false, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	until(BEGIN + TIMEOUT - 1);
	ck_assert_uint_eq(q->ready, 0);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(w.broker->stats.consumer_timeouts, 0);
	ck_assert_ptr_null(settle_now(tag, false, SETTLE_ACK));
	ck_assert_ptr_nonnull(settle_now(tag, false, SETTLE_ACK));
}
END_TEST

/* The client cancelled it before: nobody to tell, but the messages come back. */
START_TEST(cancelled_before)
{
	struct consumer *k = consume(0, q, "a", TIMEOUT, 10);

	put(1, 3);
	session_cancel(&peer[0].session, k);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_uint_eq(q->ready, 3);
	ck_assert_uint_eq(peer[0].cancelled, 0);
}
END_TEST

/* Another consumer of the session holds very many, for ever: they are passed in slices, and 2 s are no less. */
START_TEST(among_many_without)
{
	enum { MANY = 60000 };
	uint64_t fired = 0;

	consume(0, q, "for-ever", 0, 0);
	put(1, MANY);
	q = world_queue(&w, "other");
	consume(0, q, "a", 2 * TIMEOUT, 10);
	put(1, 1);
	for (uint64_t at = BEGIN; at < BEGIN + 2 * TIMEOUT + SLACK + MANY / 4096 + 1; at++) {
		w.broker->now_ms = at;
		fired += wheel_run(w.wheel, at, 100);
	}
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.late, 1);
	ck_assert_uint_eq(session_unacked(&peer[0].session), MANY);
	ck_assert_uint_le(fired, (2 * TIMEOUT / 100 + 2) * (MANY / 4096 + 2));
	until(w.broker->now_ms + 100 * TIMEOUT);
	ck_assert_uint_eq(w.broker->stats.late, 1);
}
END_TEST

/* One that is held while others go on moves to the sorted array. */
START_TEST(from_the_sorted_array)
{
	consume(0, q, "a", TIMEOUT, 100);
	put(1, 2000);
	for (uint64_t tag = 2; tag <= 2000; tag++)
		ck_assert_ptr_null(settle_now(tag, false, SETTLE_ACK));
	ck_assert_uint_eq(peer[0].session.unacked.old_live, 1);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_uint_eq(w.broker->stats.late, 1);
	ck_assert_uint_eq(q->ready, 1);
}
END_TEST

/* What a transaction has taken is not late; what it gives back is. */
START_TEST(transaction)
{
	struct unacked_set set = { 0 };

	consume(0, q, "a", TIMEOUT, 10);
	put(1, 2);
	ck_assert_ptr_null(session_take(&peer[0].session, 2, true, &set));
	until(BEGIN + 5 * TIMEOUT);
	ck_assert_uint_eq(peer[0].cancelled, 0);
	session_put_back(&peer[0].session, &set);
	until(BEGIN + 5 * TIMEOUT + SLACK);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_uint_eq(q->ready, 2);
}
END_TEST

/* With the last consumer goes an auto-delete queue, and with it what comes back. */
START_TEST(auto_delete)
{
	q = world_queue_with(&w, "auto", true, NULL, 0);
	consume(0, q, "a", TIMEOUT, 10);
	put(1, 3);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_ptr_null(queue_find(w.vhost, SPAN_LIT("auto")));
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
	ck_assert_uint_eq(peer[0].cancelled, 1);
}
END_TEST

/* The next active one gets what comes back first. */
START_TEST(single_active)
{
	static const struct queue_arg arg = { "x-single-active-consumer", 't', 1, NULL };

	q = world_queue_with(&w, "single", false, &arg, 1);
	consume(0, q, "a", TIMEOUT, 3);
	consume(1, q, "b", TIMEOUT, 10);
	put(1, 5);
	until(BEGIN + TIMEOUT + SLACK);
	ck_assert_uint_eq(peer[0].cancelled, 1);
	ck_assert_uint_eq(peer[1].count, 5);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_uint_eq(peer[1].got[i].number, i + 1);
}
END_TEST

/* Tags that are taken and never acknowledged do not pile up. */
START_TEST(memory)
{
	char tag[16];

	for (unsigned round = 0; round < 10; round++) {
		snprintf(tag, sizeof tag, "%u", round);
		consume(0, q, tag, TIMEOUT, 2000);
		put(1, 2000);
		/* each second one, so that there are as many ranges */
		for (uint64_t t = 2000 * round + 1; t <= 2000 * (round + 1); t += 2)
			ck_assert_ptr_null(settle_now(t, false, SETTLE_ACK));
		until(w.broker->now_ms + TIMEOUT + SLACK);
		ck_assert_uint_eq(peer[0].cancelled, round + 1);
		(void)queue_purge(q);
	}
	ck_assert_uint_le(peer[0].session.taken.cap, 16384);
	ck_assert_ptr_null(settle_now(20000, false, SETTLE_ACK));
	ck_assert_ptr_null(settle_now(2, false, SETTLE_ACK));
}
END_TEST

/* ---- random work: nothing is late for longer than it may be, nothing is taken early ---- */

enum { CONSUMERS = 12, STEPS = 3000, MESSAGES = 20000 };
static uint32_t seed;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static struct model {
	uint64_t at_ms, timeout_ms;
	bool is_open;
} model[MESSAGES];

static void
model_deliver(struct consumer *k, const struct entry *e, uint64_t tag)
{
	(void)e;
	ck_assert_uint_lt(tag, MESSAGES);
	model[tag] = (struct model){ w.broker->now_ms, k->timeout_ms, true };
	peer[0].count = tag;
}

/* What the session holds is what the model holds, but for what was taken from it in time. */
static void
compare(uint64_t slack_ms)
{
	for (uint64_t t = 1; t <= peer[0].count; t++) {
		struct model *m = &model[t];
		bool is_open = false;
		const struct unacked_ring *r = &peer[0].session.unacked;

		for (uint32_t i = 0; i < r->old_count; i++)
			is_open |= r->old[i].tag == t && r->old[i].e.m != NULL;
		if (t >= r->low && t < r->next)
			is_open = r->slot[t & r->mask].e.m != NULL;
		if (!m->is_open) {
			ck_assert(!is_open);
			continue;
		}
		if (is_open) {
			ck_assert(m->timeout_ms == 0 ||
			          m->at_ms + m->timeout_ms + slack_ms >= w.broker->now_ms);
		} else {
			ck_assert(
			    m->timeout_ms != 0 && m->at_ms + m->timeout_ms <= w.broker->now_ms);
			m->is_open = false;
		}
	}
}

static void
random_step(unsigned step)
{
	static const uint64_t times[] = { 0, 1000, 1000, 3000, 10000 };
	uint64_t tag = peer[0].count > 0 ? 1 + rnd((uint32_t)peer[0].count) : 0;
	char name[16];

	switch (rnd(6)) {
	case 0:
		snprintf(name, sizeof name, "%u", step);
		if (peer[0].session.consumer_count < CONSUMERS)
			consume(0, q, name, times[rnd(COUNT_OF(times))], 1 + rnd(40));
		break;
	case 1:
	case 2:
		if (peer[0].count < MESSAGES - 2000)
			put(1, rnd(20));
		break;
	case 3:
		if (tag > 0 && model[tag].is_open) {
			ck_assert_ptr_null(settle_now(tag, false, SETTLE_ACK));
			model[tag].is_open = false;
		}
		break;
	case 4: /* half of the open ones, one by one */
		if (rnd(5) != 0)
			break;
		for (uint64_t t = tag; t <= peer[0].count && t > 0; t += 2) {
			if (!model[t].is_open)
				continue;
			ck_assert_ptr_null(settle_now(t, false, SETTLE_ACK));
			model[t].is_open = false;
		}
		break;
	default: until(w.broker->now_ms + rnd(150)); break;
	}
}

START_TEST(model_of_it)
{
	static const struct session_ops ops = { model_deliver, peer_cancelled, NULL };

	seed = (uint32_t)_i + 1;
	memset(model, 0, sizeof model);
	peer[0].session.ops = &ops;
	for (unsigned step = 0; step < STEPS; step++) {
		random_step(step);
		if (step % 10 == 0)
			compare(10000 / 64 + 10);
	}
	ck_assert_uint_gt(w.broker->stats.late, 10);
	ck_assert_uint_gt(w.broker->stats.consumer_timeouts, 3);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("consumer_timeout");
	TCase *t = tcase_create("consumer_timeout");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, only_the_late_ones);
	tcase_add_test(t, in_time);
	tcase_add_loop_test(t, whose_time, 0, COUNT_OF(whose));
	tcase_add_loop_test(t, late_acknowledgements, 0, 6 * COUNT_OF(late_acks));
	tcase_add_test(t, of_get);
	tcase_add_test(t, cancelled_before);
	tcase_add_test(t, among_many_without);
	tcase_add_test(t, from_the_sorted_array);
	tcase_add_test(t, transaction);
	tcase_add_test(t, auto_delete);
	tcase_add_test(t, single_active);
	tcase_add_test(t, memory);
	tcase_add_loop_test(t, model_of_it, 0, 10);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
