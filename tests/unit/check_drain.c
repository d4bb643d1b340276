/* SPDX-License-Identifier: Apache-2.0
 * Maintenance: who waits, who goes on, when nothing is left, how it ends. */
#include <check.h>

#include "broker/drain.h"
#include "tests/unit/channel_world.h"

static struct world w;
static struct peer p, taker;
static struct queue *q;
static struct inbox in;

static void
setup(void)
{
	world_init(&w);
	peer_open_to_hear(&p, &w);
	peer_open_to_hear(&taker, &w);
	q = world_queue(&w, "q");
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&p);
	peer_fini(&taker);
	world_fini(&w);
	world_held_nothing();
}

static struct drain_stats
after(unsigned ms)
{
	struct drain_stats s;

	while (ms-- > 0) {
		w.b->now_ms = ++w.l->now_ms;
		(void)wheel_run(w.b->wheel, w.b->now_ms, 100);
	}
	drain_stats(w.b, &s);
	return s;
}

/* Behind several laps. */
static struct drain_stats
now(void)
{
	return after(400);
}

static void
expect_figures(uint64_t left, uint64_t stay, bool is_empty)
{
	struct drain_stats s = now();

	ck_assert(s.is_known);
	ck_assert_uint_eq(s.left, left);
	ck_assert_uint_eq(s.stay, stay);
	ck_assert_int_eq(s.is_empty, is_empty);
}

START_TEST(publishers_wait)
{
	struct seen s;

	peer_text(&p, 1, "q", "a");
	ck_assert(drain_begin(w.b, SPAN_LIT("upgrade")));
	ck_assert(!drain_begin(w.b, SPAN_LIT("upgrade at noon")));
	peer_text(&p, 1, "q", "b");
	peer_text(&p, 2, "q", "c");
	ck_assert_uint_eq(q->ready, 1);
	peer_read(&p);
	s = peer_next(&p);
	ck_assert_uint_eq(s.id, AMQP_CONNECTION_BLOCKED_METHOD);
	expect_figures(0, 1, true);
	ck_assert(drain_end(w.b));
	ck_assert(!drain_end(w.b));
	world_turns(&w, 3);
	ck_assert_uint_eq(q->ready, 3);
	peer_read(&p);
	s = peer_next(&p);
	ck_assert_uint_eq(s.id, AMQP_CONNECTION_UNBLOCKED_METHOD);
	peer_text(&p, 1, "q", "d");
	ck_assert_uint_eq(q->ready, 4);
}
END_TEST

/* Who takes messages publishes as many on that channel, or what stands behind would never be acknowledged. */
START_TEST(takers_go_on)
{
	struct queue *out = world_queue(&w, "out");

	peer_text(&p, 1, "q", "1");
	peer_text(&p, 1, "q", "2");
	peer_consume(&taker, 1, "q", "t", false);
	inbox_fill(&in, &taker);
	(void)drain_begin(w.b, span_of(NULL, 0));
	ck_assert_str_eq(drain_reason(w.b), "the node is drained for maintenance");
	expect_figures(2, 0, false);
	for (uint64_t tag = 1; tag <= 2; tag++) {
		peer_text(&taker, 1, "out", "r");
		ck_assert_uint_eq(out->ready, tag);
		peer_ack(&taker, 1, tag);
	}
	expect_figures(0, 2, true);
	for (
	    int i = 0; i < 2;
	    i++) /* one more, for who acknowledges before he publishes, and another one, which waits */
		peer_text(&taker, 1, "out", "r");
	ck_assert_uint_eq(out->ready, 3);
	peer_consume(&taker, 2, "out", "u", true);
	inbox_fill(&in, &taker);
	expect_figures(0, 0, true);
	(void)drain_end(w.b);
	world_turns(&w, 3);
	ck_assert_uint_eq(out->stats.publish, 4);
}
END_TEST

/* Whoever acknowledges a message may publish what he made of it a moment later: one look at empty queues is not enough. */
START_TEST(needs_a_quiet_moment)
{
	struct queue *out = world_queue(&w, "out");
	struct drain_stats s;

	peer_text(&p, 1, "q", "1");
	peer_consume(&taker, 1, "q", "t", false);
	inbox_fill(&in, &taker);
	(void)drain_begin(w.b, span_of(NULL, 0));
	expect_figures(1, 0, false);
	peer_ack(&taker, 1, 1);
	do
		s = after(1);
	while (s.left > 0);
	ck_assert(!s.is_empty);
	peer_text(&taker, 1, "out", "r");
	ck_assert_uint_eq(out->ready, 1);
	do
		s = after(1);
	while (s.stay == 0);
	ck_assert(!s.is_empty);
	expect_figures(0, 1, true);
}
END_TEST

/* It is gone through some queues at a time, while others are deleted. */
START_TEST(many_queues)
{
	enum { MANY = 2000 };
	struct queue *many[MANY];
	char name[16];

	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof name, "q%u", i);
		many[i] = world_queue(&w, name);
		peer_text(&p, 1, name, "x");
	}
	(void)drain_begin(w.b, span_of(NULL, 0));
	for (unsigned i = 0; i < MANY; i++) {
		w.b->now_ms = ++w.l->now_ms;
		(void)wheel_run(w.b->wheel, w.b->now_ms, 100);
		if (i % 2 == 0)
			queue_remove(many[(i * 7) % MANY]);
		broker_reap(w.b);
	}
	expect_figures(0, MANY / 2, true);
	queue_pause(many[1], true);
	(void)now();
	/* and it ends in the midst of a lap */
	w.b->now_ms = w.l->now_ms += 200;
	(void)wheel_run(w.b->wheel, w.b->now_ms, 100);
	(void)drain_end(w.b);
}
END_TEST

/* A reason is cut between characters. */
START_TEST(reason)
{
	char text[DRAIN_REASON_MAX + 20];

	memset(text, 'x', sizeof text);
	memcpy(text + DRAIN_REASON_MAX - 1, "\303\244", 2);
	(void)drain_begin(w.b, span_of(text, sizeof text));
	ck_assert_uint_eq(strlen(drain_reason(w.b)), DRAIN_REASON_MAX - 1);
	(void)drain_begin(w.b, span_of(text, DRAIN_REASON_MAX - 1));
	ck_assert_uint_eq(strlen(drain_reason(w.b)), DRAIN_REASON_MAX - 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("drain");
	TCase *t = tcase_create("drain");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, publishers_wait);
	tcase_add_test(t, takers_go_on);
	tcase_add_test(t, needs_a_quiet_moment);
	tcase_add_test(t, many_queues);
	tcase_add_test(t, reason);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
