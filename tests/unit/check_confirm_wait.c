/* SPDX-License-Identifier: Apache-2.0
 * Confirms of persistent messages: none before the store has what it is for, in whatever order they come. The store does
 * nothing until store_world_step(). */
#include <check.h>

#include "tests/unit/channel_world.h"
#include "tests/unit/store_world.h"

static struct world w;
static struct peer p;
static struct queue *q;
static struct inbox in;

static const struct span persistent = { (const uint8_t *)"\20\0\2", 3 };

static void
setup(void)
{
	world_init(&w);
	store_world_init(&w);
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	for (uint16_t id = 1; id <= 2; id++) {
		peer_channel(&p, id);
		peer_method(&p, id, AMQP_CONFIRM_SELECT_METHOD, "", 1);
		ck_assert_uint_eq(peer_next(&p).id, AMQP_CONFIRM_SELECT_OK_METHOD);
	}
	q = store_world_queue(&w, "q");
	store_world_step(&w);
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&p);
	ck_assert(TAILQ_EMPTY(&w.a->confirm_runs[false]) && TAILQ_EMPTY(&w.a->confirm_runs[true]));
	store_world_fini(&w);
	world_fini(&w);
	world_held_nothing();
}

static void
publish(uint16_t channel, bool is_persistent)
{
	struct publish what = { .key = "q", .body = SPAN_LIT("m") };

	if (is_persistent)
		what.props = persistent;
	peer_publish(&p, channel, &what);
}

static void
expect_ack(uint16_t channel, uint64_t tag, bool multiple)
{
	struct frame_seen f = inbox_method(&in, AMQP_BASIC_ACK_METHOD);

	ck_assert_uint_eq(f.channel, channel);
	ck_assert_uint_eq(get_be64(f.payload.p + 4), tag);
	ck_assert_uint_eq(f.payload.p[12], multiple);
}

START_TEST(after_the_sync)
{
	publish(1, true);
	publish(1, true);
	publish(2, true);
	inbox_fill(&in, &p);
	inbox_empty(&in);
	ck_assert_uint_eq(q->ready, 3); /* deliverable before it is durable */
	store_world_step(&w);
	inbox_fill(&in, &p);
	expect_ack(1, 2, true);
	expect_ack(2, 1, false);
	inbox_empty(&in);
	ck_assert_uint_eq(w.b->stats.confirm_waited, 3);
	ck_assert_uint_gt(w.b->stats.confirm_wait_us, 0);
}
END_TEST

/* Whole turns are one run: what is kept does not grow with the messages. */
START_TEST(one_run_a_turn)
{
	struct publish what = { .key = "q", .props = persistent, .body = SPAN_LIT("m") };
	size_t n;
	uint8_t *one = put_publish(1, &what, &n), *many = xmalloc(200 * n);
	unsigned runs = 0;
	struct confirm_run *r;

	for (unsigned i = 0; i < 200; i++)
		memcpy(many + i * n, one, n);
	peer_send(&p, many, 200 * n);
	TAILQ_FOREACH (r, &w.a->confirm_runs[true], link)
		runs++;
	ck_assert_uint_le(runs, 2); /* what a socket takes at once may come in two reads */
	store_world_step(&w);
	inbox_fill(&in, &p);
	expect_ack(1, 200, true);
	inbox_empty(&in);
	free(one);
	free(many);
}
END_TEST

/* What is transient does not wait, and does not speak for what does. */
START_TEST(transient_between)
{
	publish(1, true);
	publish(1, false);
	publish(1, true);
	publish(1, false);
	inbox_fill(&in, &p);
	expect_ack(1, 2, false);
	expect_ack(1, 4, false);
	inbox_empty(&in);
	store_world_step(&w);
	inbox_fill(&in, &p);
	expect_ack(1, 1, false);
	expect_ack(1, 3, false);
	inbox_empty(&in);
	publish(1, false);
	inbox_fill(&in, &p);
	expect_ack(1, 5, false);
}
END_TEST

/* Nothing is written for what no queue takes: returned, confirmed, without a wait. */
START_TEST(returned)
{
	struct publish lost = {
		.key = "nowhere", .bits = 1, .props = persistent, .body = SPAN_LIT("m")
	};

	publish(1, true);
	peer_publish(&p, 1, &lost);
	inbox_fill(&in, &p);
	free(inbox_content(&in, AMQP_BASIC_RETURN_METHOD).body);
	expect_ack(1, 2, false);
	inbox_empty(&in);
	store_world_step(&w);
	inbox_fill(&in, &p);
	expect_ack(1, 1, false);
}
END_TEST

/* A channel that ends before wants to know nothing any more, the others do. */
START_TEST(the_channel_goes)
{
	publish(1, true);
	publish(2, true);
	publish(1, true);
	peer_method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	inbox_fill(&in, &p);
	(void)inbox_method(&in, AMQP_CHANNEL_CLOSE_OK_METHOD);
	if (_i == 1) {
		peer_fini(&p);
		store_world_step(&w);
		ck_assert_uint_eq(q->ready, 3);
		return;
	}
	store_world_step(&w);
	inbox_fill(&in, &p);
	expect_ack(2, 1, false);
	inbox_empty(&in);
}
END_TEST

/* Confirmed and still not written to the client, whose output has no room: it comes later. */
START_TEST(no_room)
{
	publish(1, true);
	p.c->client.output_full = true;
	store_world_step(&w);
	publish(1, true);
	store_world_step(&w);
	inbox_fill(&in, &p);
	inbox_empty(&in);
	p.c->io->ops->on_room(p.c);
	inbox_fill(&in, &p);
	expect_ack(1, 2, true);
	inbox_empty(&in);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("confirm_wait");
	TCase *t = tcase_create("confirm_wait");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, after_the_sync);
	tcase_add_test(t, one_run_a_turn);
	tcase_add_test(t, transient_between);
	tcase_add_test(t, returned);
	tcase_add_loop_test(t, the_channel_goes, 0, 2);
	tcase_add_test(t, no_room);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
