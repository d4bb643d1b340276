/* SPDX-License-Identifier: Apache-2.0
 * Series: rates, what a counter was, when an object is idle, and what all that costs. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/exchange.h"
#include "queue_world.h"

enum { BEGIN = 100000, LOOK = SERIES_MS };

static struct world w;
static struct queue *q;
static uint64_t now;

static void
set_up(void)
{
	world_init(&w);
	world_at(&w, now = BEGIN);
	q = world_queue(&w, "q");
	series_start(w.broker);
}

static void
tear_down(void)
{
	series_stop(w.broker);
	world_fini(&w);
	ck_assert_uint_eq(mem_held[MEM_SAMPLES], 0);
}

static void
pass(uint64_t ms)
{
	for (uint64_t step; ms > 0; ms -= step) {
		step = ms < 250 ? ms : 250;
		now += step;
		world_at(&w, now);
	}
}

static double
rate(void)
{
	return series_rate(&q->series, &q->stats.publish, now);
}

/* n a second, evenly. */
static void
flow(unsigned n, unsigned seconds)
{
	for (unsigned i = 0; i < n * seconds; i++) {
		q->stats.publish++;
		pass(1000 / n);
	}
}

START_TEST(rate_is_that_of_the_last_seconds)
{
	ck_assert_double_eq(rate(), 0.0);
	flow(100, 20);
	ck_assert_double_ge(rate(), 95.0);
	ck_assert_double_le(rate(), 105.0);
	flow(10, 11);
	ck_assert_double_ge(rate(), 9.0);
	ck_assert_double_le(rate(), 11.0);
	pass(2 * LOOK + 1000);
	ck_assert_double_eq(rate(), 0.0);
}
END_TEST

START_TEST(rate_after_a_long_silence_is_not_spread_over_it)
{
	flow(10, 5);
	pass(3600 * 1000);
	ck_assert_double_eq(rate(), 0.0);
	flow(100, 10);
	ck_assert_double_ge(rate(), 80.0);
	ck_assert_double_le(rate(), 105.0);
}
END_TEST

START_TEST(what_comes_in_one_moment_is_spread)
{
	q->stats.publish += 1000;
	pass(1);
	ck_assert_double_ge(rate(), 99.0);
	ck_assert_double_le(rate(), 200.0);
	pass(3 * LOOK);
	ck_assert_double_eq(rate(), 0.0);
}
END_TEST

START_TEST(a_gauge_falls)
{
	q->ready = 1000;
	pass(4 * LOOK);
	ck_assert_double_eq(series_rate(&q->series, &q->ready, now), 0.0);
	q->ready = 0;
	ck_assert_double_le(series_rate(&q->series, &q->ready, now), -100.0);
}
END_TEST

START_TEST(what_was_there_before_is_no_change)
{
	series_is_old(&q->series);
	q->ready = 5000;
	pass(100);
	ck_assert_double_eq(series_rate(&q->series, &q->ready, now), 0.0);
	pass(LOOK);
	ck_assert_double_eq(series_rate(&q->series, &q->ready, now), 0.0);
	q->ready += 100;
	pass(LOOK);
	ck_assert_double_ge(series_rate(&q->series, &q->ready, now), 9.0);
	q->ready = 0;
}
END_TEST

START_TEST(values_of_the_last_minute)
{
	uint64_t v, made = now;

	for (int i = 1; i <= 30; i++) {
		pass(LOOK / 2);
		q->stats.publish = (uint64_t)i * 10;
		pass(LOOK / 2);
	}
	for (uint64_t ago = 2 * LOOK; ago <= 60000; ago += LOOK) {
		uint64_t want = (now - ago - made) / LOOK * 10;

		ck_assert(series_at(&q->series, &q->stats.publish, now - ago, &v));
		ck_assert_uint_le(v, want);
		ck_assert_uint_ge(v + 20, want);
	}
	ck_assert(!series_at(&q->series, &q->stats.publish, now - 120000, &v));
	ck_assert_uint_le(w.broker->series.bytes, 20 * 160);
}
END_TEST

START_TEST(before_it_was_made_there_was_nothing)
{
	uint64_t v = 1;

	q->stats.publish = 7;
	pass(LOOK + 1000);
	ck_assert(series_at(&q->series, &q->stats.publish, 1, &v));
	ck_assert_uint_eq(v, 0);
	ck_assert(series_at(&q->series, &q->stats.publish, now, &v));
	ck_assert_uint_eq(v, 7);
}
END_TEST

START_TEST(idle_since_the_last_change)
{
	uint64_t since;

	pass(2000);
	ck_assert_uint_eq(series_idle_since(&q->series, now), BEGIN);
	flow(10, 20);
	ck_assert_uint_eq(series_idle_since(&q->series, now), 0);
	since = now;
	pass(1500);
	ck_assert_uint_ge(series_idle_since(&q->series, now), since - LOOK);
	q->stats.publish++;
	ck_assert_uint_eq(series_idle_since(&q->series, now), 0);
	pass(1500);
	q->full_ms++;
	ck_assert_uint_ge(series_idle_since(&q->series, now), since);
	pass(60000);
	ck_assert_uint_ge(series_idle_since(&q->series, now), since - LOOK);
	ck_assert_uint_le(series_idle_since(&q->series, now), since + LOOK);
}
END_TEST

START_TEST(idle_objects_cost_nothing)
{
	struct queue *other[100];
	char name[16];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "q%d", i);
		other[i] = world_queue(&w, name);
	}
	pass(LOOK);
	pass(LOOK);
	for (int i = 0; i < 100; i++)
		ck_assert_ptr_null(other[i]->series.points);
	for (int n = 0; n < 20; n++) {
		for (int i = 0; i < 100; i++)
			other[i]->stats.publish++;
		pass(LOOK);
	}
	ck_assert_uint_gt(w.broker->series.bytes, 100 * 1000);
	for (int n = 0; n < 20; n++)
		pass(LOOK);
	/* one point each */
	ck_assert_uint_lt(w.broker->series.bytes, 100 * 256 + 2000);
	queue_remove(other[50]);
	ck_assert_uint_eq(w.broker->series.bytes, mem_held[MEM_SAMPLES]);
}
END_TEST

START_TEST(all_of_many_are_looked_at_in_slices)
{
	static struct queue *many[5000];
	unsigned slices = 1;
	char name[16];

	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof name, "q%d", i);
		many[i] = world_queue(&w, name);
		many[i]->stats.publish = 1;
	}
	series_stop(w.broker);
	while (series_run(w.broker, now + LOOK))
		slices++;
	ck_assert_uint_ge(slices, 5);
	for (int i = 0; i < 5000; i++)
		ck_assert(many[i]->series.points != NULL);
	ck_assert(!series_run(w.broker, now + LOOK + 1));
}
END_TEST

START_TEST(references_know_what_went)
{
	struct series_list *l = &w.broker->series;
	struct queue *other = world_queue(&w, "other");
	uint64_t mine = series_ref(l, &q->series), its = series_ref(l, &other->series);
	uint32_t at = 0, met = 0;
	struct series *s;

	ck_assert_ptr_eq(series_object(series_find(l, mine)), q);
	queue_remove(other);
	ck_assert_ptr_null(series_find(l, its));
	other = world_queue(&w, "another"); /* in the same place */
	ck_assert_ptr_null(series_find(l, its));
	ck_assert_ptr_eq(series_find(l, series_ref(l, &other->series)), &other->series);
	while ((s = series_next(l, SERIES_QUEUE, &at)) != NULL)
		met |= series_object(s) == q ? 1 : series_object(s) == other ? 2 : 4;
	ck_assert_uint_eq(met, 3);
	at = 0;
	ck_assert_ptr_eq(series_object(series_next(l, SERIES_VHOST, &at)), w.vhost);
	ck_assert_ptr_null(series_next(l, SERIES_VHOST, &at));
}
END_TEST

/* ---- who counts what ---- */

START_TEST(channel_vhost_and_queue_count_deliveries)
{
	struct client client;
	struct peer peer;
	struct consumer *k;
	struct entry e;
	uint64_t tag;
	uint32_t left;

	world_client(&w, &client);
	peer_init(&peer, &client);
	for (int i = 0; i < 6; i++)
		queue_publish(q, world_msg(1, 100), 0);
	ck_assert_uint_eq(w.vhost->depth.ready, 6);
	ck_assert_int_eq(session_get(&peer.session, q, false, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	ck_assert_int_eq(session_get(&peer.session, q, true, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	ck_assert_uint_eq(q->unacked_bytes, 100);
	k = peer_consume(&peer, q, "tag", false);
	world_turn(&w);
	ck_assert_uint_eq(q->unacked, 5);
	ck_assert_uint_eq(q->unacked_bytes, 500);
	ck_assert_uint_eq(w.vhost->depth.ready, 0);
	ck_assert_uint_eq(w.vhost->depth.unacked, 5);
	ck_assert(session_settle(&peer.session, 3, false, SETTLE_ACK) == NULL);
	session_cancel(&peer.session, k);
	ck_assert(session_settle(&peer.session, 0, true, SETTLE_REQUEUE) == NULL);
	ck_assert_int_eq(session_get(&peer.session, q, false, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	ck_assert_uint_eq(peer.session.stats.deliver, 4);
	ck_assert_uint_eq(peer.session.stats.get, 2);
	ck_assert_uint_eq(peer.session.stats.get_no_ack, 1);
	ck_assert_uint_eq(peer.session.stats.ack, 1);
	ck_assert_uint_eq(peer.session.stats.redeliver, 1);
	ck_assert_mem_eq(&peer.session.stats, &w.vhost->stats, sizeof w.vhost->stats);
	queue_remove(q);
	/* what nobody can see any more counts no more */
	ck_assert_uint_eq(w.vhost->depth.unacked, 0);
	peer_fini(&peer);
	world_turn(&w);
	ck_assert_uint_eq(w.vhost->depth.unacked, 0);
	ck_assert_uint_eq(w.vhost->stats.get, 2);
	q = world_queue(&w, "q");
	client_fini(&client);
}
END_TEST

START_TEST(time_without_a_consumer_that_can_take)
{
	struct client client;
	struct peer peer;

	world_client(&w, &client);
	peer_init(&peer, &client);
	peer.session.prefetch = 1;
	(void)peer_consume(&peer, q, "tag", false);
	queue_publish(q, world_msg(1, 8), 0);
	world_turn(&w);
	pass(500);
	ck_assert_uint_eq(q->full_ms, 0);
	queue_publish(q, world_msg(2, 8), 0);
	world_turn(&w);
	pass(300);
	ck_assert(session_settle(&peer.session, 1, false, SETTLE_ACK) == NULL);
	world_turn(&w);
	ck_assert_uint_eq(q->full_ms, 300);
	pass(200);
	ck_assert_uint_eq(q->full_ms, 300);
	peer_fini(&peer);
	pass(200);
	ck_assert_uint_eq(q->full_since_ms, 0);
	client_fini(&client);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("series");
	TCase *t = tcase_create("series");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, rate_is_that_of_the_last_seconds);
	tcase_add_test(t, rate_after_a_long_silence_is_not_spread_over_it);
	tcase_add_test(t, what_comes_in_one_moment_is_spread);
	tcase_add_test(t, a_gauge_falls);
	tcase_add_test(t, what_was_there_before_is_no_change);
	tcase_add_test(t, values_of_the_last_minute);
	tcase_add_test(t, before_it_was_made_there_was_nothing);
	tcase_add_test(t, idle_since_the_last_change);
	tcase_add_test(t, idle_objects_cost_nothing);
	tcase_add_test(t, all_of_many_are_looked_at_in_slices);
	tcase_add_test(t, references_know_what_went);
	tcase_add_test(t, channel_vhost_and_queue_count_deliveries);
	tcase_add_test(t, time_without_a_consumer_that_can_take);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
