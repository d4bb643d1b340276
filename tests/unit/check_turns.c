/* SPDX-License-Identifier: Apache-2.0
 * Whose turn it is: random work on one queue with many consumers against a naive model of RabbitMQ's rule. The model keeps
 * one list of consumers. A message goes to the first of the highest priority, which then stands behind its equals; one
 * that is met there and can take no more leaves the list, and comes back behind its equals when it can. What comes back
 * to the queue goes to its old place. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue_world.h"

enum { CONSUMERS = 16, STEPS = 6000, MESSAGES = 40000, TAGS = 80000 };

struct model_consumer {
	struct consumer *k; /* NULL: none */
	struct peer *peer;
	unsigned prefetch, held;
	int32_t priority;
	bool no_ack, is_listed;
};

static struct world w;
static struct client client;
static struct peer peer[CONSUMERS]; /* a session for each, so that tags tell them apart */
static struct queue *q;
static struct model_consumer model[CONSUMERS];
static unsigned list[CONSUMERS], listed;
static bool ready[MESSAGES], redelivered[MESSAGES];
static uint64_t messages, lowest;      /* none below is ready */
static uint64_t held[CONSUMERS][TAGS]; /* by tag: message + 1 */
static struct consumer *holder[CONSUMERS][TAGS];
static uint64_t want_count[CONSUMERS];
static uint32_t seed;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* ---- the model ---- */

static void
unlist(unsigned at)
{
	model[list[at]].is_listed = false;
	memmove(&list[at], &list[at + 1], (--listed - at) * sizeof list[0]);
}

static void
enlist(unsigned c)
{
	model[c].is_listed = true;
	list[listed++] = c;
}

/* Place in the list of the one whose turn it is, or -1. */
static int
whose_turn(void)
{
	int best = -1;

	for (unsigned i = 0; i < listed; i++) {
		if (best < 0 || model[list[i]].priority > model[list[best]].priority)
			best = (int)i;
	}
	return best;
}

static bool
next_ready(uint64_t *number)
{
	while (lowest < messages && !ready[lowest])
		lowest++;
	*number = lowest;
	return lowest < messages;
}

static void
model_run(void)
{
	uint64_t number;

	while (next_ready(&number)) {
		int at = whose_turn();
		unsigned c;
		const struct delivery *d;

		if (at < 0)
			return;
		c = list[at];
		unlist((unsigned)at);
		if (!model[c].no_ack && model[c].held == model[c].prefetch)
			continue;
		enlist(c);
		ready[number] = false;
		ck_assert_uint_lt(want_count[c], peer[c].count);
		d = &peer[c].got[want_count[c]++];
		ck_assert_uint_eq(d->number, number);
		ck_assert_int_eq(d->redelivered, redelivered[number]);
		if (!model[c].no_ack) {
			ck_assert_uint_lt(d->tag, TAGS);
			held[c][d->tag] = number + 1;
			holder[c][d->tag] = model[c].k;
			model[c].held++;
		}
	}
}

/* Everybody got what the model says, and no more. */
static void
compare(void)
{
	world_turn(&w);
	model_run();
	for (unsigned c = 0; c < CONSUMERS; c++)
		ck_assert_uint_eq(peer[c].count, want_count[c]);
}

static void
model_settle(unsigned c, uint64_t tag, bool requeue)
{
	uint64_t number = held[c][tag] - 1;

	held[c][tag] = 0;
	if (model[c].k != NULL && model[c].k == holder[c][tag]) {
		model[c].held--;
		if (!model[c].is_listed)
			enlist(c);
	}
	if (!requeue)
		return;
	ready[number] = redelivered[number] = true;
	lowest = number < lowest ? number : lowest;
}

/* ---- steps ---- */

static void
step_consume(unsigned c)
{
	char tag[8] = "c";

	if (model[c].k != NULL)
		return;
	model[c] = (struct model_consumer){
		.prefetch = 1 + rnd(4), .priority = (int32_t)rnd(3) - 1, .no_ack = rnd(8) == 0
	};
	peer[c].session.prefetch = model[c].prefetch;
	ck_assert_ptr_null(peer_try_consume(
	    &peer[c], q, tag, model[c].no_ack, false, model[c].priority, &model[c].k));
	enlist(c);
}

static void
step_cancel(unsigned c)
{
	if (model[c].k == NULL || rnd(4) != 0)
		return;
	session_cancel(&peer[c].session, model[c].k);
	model[c].k = NULL;
	for (unsigned i = 0; model[c].is_listed; i++) {
		if (list[i] == c)
			unlist(i);
	}
}

/* A delivery that c holds, or 0. */
static uint64_t
some_tag(unsigned c)
{
	uint64_t found = 0;
	uint32_t n = 0;

	for (uint64_t tag = want_count[c]; tag > 0 && n < 6; tag--) {
		if (held[c][tag] != 0 && rnd(++n) == 0)
			found = tag;
	}
	return found;
}

static void
step_settle(unsigned c)
{
	uint64_t tag = some_tag(c);
	bool requeue = rnd(4) == 0;

	if (tag == 0)
		return;
	ck_assert_ptr_null(
	    session_settle(&peer[c].session, tag, false, requeue ? SETTLE_REQUEUE : SETTLE_ACK));
	model_settle(c, tag, requeue);
}

static void
step_publish(void)
{
	for (uint32_t n = 1 + rnd(6); n > 0 && messages < MESSAGES; n--) {
		ready[messages] = true;
		queue_publish(q, world_msg(messages, 8), 0);
		messages++;
	}
}

START_TEST(turns)
{
	seed = (uint32_t)_i + 1;
	memset(held, 0, sizeof held);
	memset(model, 0, sizeof model);
	memset(want_count, 0, sizeof want_count);
	memset(redelivered, 0, sizeof redelivered);
	memset(ready, 0, sizeof ready);
	messages = lowest = listed = 0;
	world_init(&w);
	world_client(&w, &client);
	q = world_queue(&w, "q");
	for (unsigned c = 0; c < CONSUMERS; c++)
		peer_init(&peer[c], &client);
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned c = rnd(CONSUMERS), what = rnd(20);

		if (what < 2)
			step_consume(c);
		else if (what < 3)
			step_cancel(c);
		else if (what < 7)
			step_publish();
		else
			step_settle(c);
		compare();
	}
	for (unsigned c = 0; c < CONSUMERS; c++)
		peer_fini(&peer[c]);
	client_fini(&client);
	world_fini(&w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("turns");
	TCase *t = tcase_create("turns");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, turns, 0, 20);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
