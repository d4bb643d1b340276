/* SPDX-License-Identifier: Apache-2.0
 * History: what the rings hold, where nothing is known, and how much of it there can be. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "broker/history.h"
#include "queue_world.h"

enum { BEGIN = 1000000000 };

static struct world w;
static struct queue *q;
static struct history_gauges gauges;
static uint64_t now;

static void
read_gauges(void *arg, struct history_gauges *out)
{
	ck_assert_ptr_eq(arg, &gauges);
	*out = gauges;
}

static void
set_up(void)
{
	world_init(&w);
	world_at(&w, now = BEGIN);
	q = world_queue(&w, "q");
	gauges = (struct history_gauges){ 1 << 20, 5000, 100 };
	history_start(w.broker, read_gauges, &gauges);
}

static void
tear_down(void)
{
	history_stop(w.broker);
	world_fini(&w);
	ck_assert_uint_eq(mem_held[MEM_SAMPLES], 0);
}

static void
pass_seconds(unsigned n)
{
	for (; n > 0; n--)
		world_at(&w, now += 1000);
}

static float
value(const struct series *s, enum history_range range, const char *name, unsigned ago)
{
	const struct history_track *t = history_ask(w.broker, s);
	uint64_t from_ms, step_ms;
	unsigned count, line = 0;

	history_span(t, range, &from_ms, &step_ms, &count);
	while (strcmp(history_line_name(t, line), name) != 0)
		line++;
	return history_value(t, range, line, count - 1 - ago);
}

START_TEST(node_and_vhosts_are_there_without_a_question)
{
	w.vhost->stats.publish = w.broker->stats.publish = 70;
	w.broker->stats.get = 3;
	w.broker->stats.deliver_no_ack = 4;
	pass_seconds(1);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "publish", 0), 70);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "deliver", 0), 7);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "memory", 0), 1 << 20);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "disk_free", 0), 5000);
	ck_assert_float_eq(value(&w.vhost->series, HISTORY_MINUTE, "publish", 0), 70);
	pass_seconds(1);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "publish", 0), 0);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "publish", 1), 70);
	ck_assert(isnan(value(&w.broker->node, HISTORY_MINUTE, "publish", 2)));
}
END_TEST

START_TEST(the_first_sample_begins_where_the_answer_says)
{
	uint64_t from_ms, step_ms;
	unsigned count;

	pass_seconds(7);
	history_span(
	    history_ask(w.broker, &w.broker->node), HISTORY_MINUTE, &from_ms, &step_ms, &count);
	ck_assert_uint_eq(step_ms, 1000);
	ck_assert_uint_eq(count, 60);
	ck_assert_uint_eq(from_ms + 60 * step_ms, now); /* the last one has just ended */
	history_span(
	    history_ask(w.broker, &w.broker->node), HISTORY_HOUR, &from_ms, &step_ms, &count);
	ck_assert_uint_eq(from_ms % 30000, 0);
	ck_assert_uint_le(from_ms + (count - 1) * step_ms, now);
	ck_assert_uint_gt(from_ms + count * step_ms, now - 1000);
}
END_TEST

START_TEST(longer_ranges_are_means_and_lag_is_the_most)
{
	unsigned i;

	for (i = 0; i < 10; i++) { /* BEGIN is a multiple of 5 s */
		w.broker->stats.publish += i < 5 ? 10 : 20;
		gauges.loop_lag_us = i == 2 ? 9000 : 100;
		pass_seconds(1);
	}
	ck_assert_float_eq(value(&w.broker->node, HISTORY_10M, "publish", 0), 20);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_10M, "publish", 1), 10);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_10M, "loop_lag_us", 0), 100);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_10M, "loop_lag_us", 1), 9000);
	for (; i < 24 * 3600; i++) {
		w.broker->stats.publish += 3;
		pass_seconds(1);
	}
	ck_assert_float_eq(value(&w.broker->node, HISTORY_DAY, "publish", 0), 3);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_DAY, "publish", 100), 3);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_HOUR, "publish", 119), 3);
}
END_TEST

START_TEST(a_busy_node_misses_no_second)
{
	w.broker->stats.publish = 300;
	world_at(&w, now += 3000);
	for (unsigned ago = 0; ago < 3; ago++)
		ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "publish", ago), 100);
	ck_assert(isnan(value(&w.broker->node, HISTORY_MINUTE, "publish", 3)));
	/* but of what was before a long stop nobody knows */
	w.broker->stats.publish += 1000000;
	world_at(&w, now += 3600 * 1000);
	pass_seconds(1);
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "publish", 0), 0);
	ck_assert(isnan(value(&w.broker->node, HISTORY_MINUTE, "publish", 1)));
	ck_assert(isnan(value(&w.broker->node, HISTORY_10M, "publish", 5)));
}
END_TEST

START_TEST(a_queue_is_sampled_while_somebody_asks)
{
	struct history_stats s;

	q->stats.publish = 1000;
	pass_seconds(3);
	ck_assert(isnan(value(&q->series, HISTORY_MINUTE, "publish", 0)));
	q->stats.publish += 5;
	q->ready = 17;
	pass_seconds(1);
	ck_assert_float_eq(value(&q->series, HISTORY_MINUTE, "publish", 0), 5);
	ck_assert_float_eq(value(&q->series, HISTORY_MINUTE, "ready", 0), 17);
	q->ready = 0;
	pass_seconds(HISTORY_KEPT_MS / 1000);
	history_stats(w.broker, &s);
	ck_assert_uint_eq(s.asked, 1);
	pass_seconds(2);
	history_stats(w.broker, &s);
	ck_assert_uint_eq(s.asked, 0);
	ck_assert_uint_eq(s.evicted, 0);
}
END_TEST

START_TEST(what_is_gone_is_sampled_no_longer)
{
	struct history_stats s;

	pass_seconds(1);
	(void)history_ask(w.broker, &q->series);
	queue_remove(q);
	world_turn(&w);
	pass_seconds(1);
	history_stats(w.broker, &s);
	ck_assert_uint_eq(s.asked, 0);
}
END_TEST

START_TEST(there_are_not_more_than_so_many)
{
	struct history_stats s;
	char name[16];

	for (unsigned i = 0; i < HISTORY_ASKED + 10; i++) {
		snprintf(name, sizeof name, "q%u", i);
		world_at(&w, ++now);
		(void)history_ask(w.broker, &world_queue(&w, name)->series);
	}
	for (unsigned i = 0; i < HISTORY_VHOSTS + 10; i++) {
		snprintf(name, sizeof name, "v%u", i);
		ck_assert_ptr_nonnull(vhost_add(w.broker, name));
	}
	history_stats(w.broker, &s);
	ck_assert_uint_eq(s.asked, HISTORY_ASKED);
	ck_assert_uint_eq(s.evicted, 10);
	ck_assert_uint_eq(s.tracks, HISTORY_ASKED + HISTORY_VHOSTS + 1);
	ck_assert_uint_lt(s.bytes, 12 << 20);
	ck_assert_uint_eq(s.bytes, mem_held[MEM_SAMPLES]);
	/* one of those that are too many, while somebody asks */
	(void)history_ask(w.broker, &vhost_find(w.broker, SPAN_LIT("v521"))->series);
	history_stats(w.broker, &s);
	ck_assert_uint_eq(s.evicted, 11);
	/* in slices */
	w.broker->now_ms = now += 1000;
	ck_assert(history_run(w.broker, now));
	for (unsigned i = 0; i < 20; i++) /* a slice each millisecond */
		world_at(&w, ++now);
	ck_assert(!history_run(w.broker, now));
	ck_assert_float_eq(value(&w.broker->node, HISTORY_MINUTE, "publish", 0), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("history");
	TCase *t = tcase_create("history");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, node_and_vhosts_are_there_without_a_question);
	tcase_add_test(t, the_first_sample_begins_where_the_answer_says);
	tcase_add_test(t, longer_ranges_are_means_and_lag_is_the_most);
	tcase_add_test(t, a_busy_node_misses_no_second);
	tcase_add_test(t, a_queue_is_sampled_while_somebody_asks);
	tcase_add_test(t, what_is_gone_is_sampled_no_longer);
	tcase_add_test(t, there_are_not_more_than_so_many);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
