/* SPDX-License-Identifier: Apache-2.0
 * What has to go before the next message can be had goes in slices: nobody waits for ever between two of them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/slab.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "queue_args.h"

enum {
	EXPIRED = 11000,
	LIVE = 10
}; /* more than a consumer passes at once, by less than a basic.get does */

enum { TARGETS = 1000, LETTERS = 100, LETTERS_A_TURN = 8 };

static struct world w;
static struct client client;
static struct peer consumer, getter;

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	peer_init(&consumer, &client);
	peer_init(&getter, &client);
}

static void
tear_down(void)
{
	struct slab_stats slabs;

	peer_fini(&consumer);
	peer_fini(&getter);
	client_fini(&client);
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
}

/* A consumer comes when the first ones have expired, before anybody looked at them; it has met as many as it may. */
static struct queue *
half_tidied(void)
{
	struct queue *q = world_queue(&w, "q");

	for (uint64_t i = 0; i < EXPIRED; i++)
		queue_publish(q, world_msg(i, 8), w.broker->now_ms + 1);
	for (uint64_t i = 0; i < LIVE; i++)
		queue_publish(q, world_msg(EXPIRED + i, 8), 0);
	w.broker->now_ms += 10;
	(void)peer_consume(&consumer, q, "k", true);
	(void)broker_run(w.broker);
	ck_assert_uint_eq(consumer.count, 0);
	ck_assert(q->is_untidy);
	return q;
}

START_TEST(publish_while_expired_ones_go)
{
	struct queue *q = half_tidied();

	queue_publish(q, world_msg(EXPIRED + LIVE, 8), 0);
	world_turn(&w);
	ck_assert_uint_eq(consumer.count, LIVE + 1);
	for (size_t i = 0; i < consumer.count; i++)
		ck_assert_uint_eq(consumer.got[i].number, EXPIRED + i);
}
END_TEST

/* The rest goes for a basic.get: the consumer gets what is left then. */
START_TEST(get_while_expired_ones_go)
{
	struct queue *q = half_tidied();
	struct entry e;
	uint64_t tag;
	uint32_t left;

	ck_assert_int_eq(session_get(&getter.session, q, true, &e, &tag, &left), GET_GOT);
	ck_assert_uint_eq(msg_number(e.m), EXPIRED);
	msg_unref(&e.m);
	ck_assert(!q->is_untidy);
	world_turn(&w);
	ck_assert_uint_eq(consumer.count, LIVE - 1);
}
END_TEST

/* What a turn may cost is a matter of the queues that letters enter, not of letters. */
START_TEST(letters_for_very_many)
{
	static const struct queue_arg arguments[] = {
		{ "x-message-ttl", 'I', 1, NULL },
		{ "x-dead-letter-exchange", 'S', 0, "amq.fanout" },
	};
	struct queue *source = world_queue_with(&w, "source", false, arguments, 2), *q = NULL;
	struct exchange *x = exchange_find(w.vhost, SPAN_LIT("amq.fanout"));
	char name[16];

	for (int i = 0; i < TARGETS; i++) {
		snprintf(name, sizeof name, "%d", i);
		q = world_queue(&w, name);
		ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT(""), NULL));
	}
	for (uint64_t i = 0; i < LETTERS; i++)
		queue_publish(source, world_msg(i, 8), 0);
	world_at(&w, w.broker->now_ms + 1);
	ck_assert_uint_eq(source->ready, 0);
	ck_assert(broker_run(w.broker));
	ck_assert_uint_ge(w.broker->stats.dead_lettered, 1);
	ck_assert_uint_le(w.broker->stats.dead_lettered, LETTERS_A_TURN);
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.dead_lettered, LETTERS);
	ck_assert_uint_eq(q->ready, LETTERS);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("queue_limits");
	TCase *t = tcase_create("slices");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, publish_while_expired_ones_go);
	tcase_add_test(t, get_while_expired_ones_go);
	tcase_add_test(t, letters_for_very_many);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
