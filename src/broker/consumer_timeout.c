/* SPDX-License-Identifier: Apache-2.0
 * Deliveries that stay unacknowledged for too long: see the header. */
#include "broker/consumer_timeout.h"

#include <assert.h>

#include "base/config.h"
#include "base/log.h"
#include "broker/client.h"
#include "broker/queue.h"
#include "broker/unacked.h"

enum {
	CHECK_MS = 100, /* at least, between two looks at a session */
	CHECKS = 64,    /* at most, in the shortest time */
	SLICE = 4096,   /* deliveries looked at in one go */
	LINES = 200,    /* of the log, in 10 s */
	RANGES = 4096 /* of tags that were taken; beyond, those between them count as taken, too */
};

/* ---- how long ---- */

uint64_t
consumer_timeout_of(const struct queue *q)
{
	return q->set.consumer_timeout_ms != SETTING_NONE ? q->set.consumer_timeout_ms
	                                                  : q->broker->cfg->consumer_timeout_ms;
}

static uint64_t
timeout_of(const struct unacked *u)
{
	return u->consumer != NULL ? u->consumer->timeout_ms : consumer_timeout_of(u->queue);
}

static void
arm(struct session *s, uint64_t due_ms)
{
	if (!wheel_armed(&s->watch) || s->watch.due_ms > due_ms)
		wheel_arm(s->broker->wheel, &s->watch, due_ms);
}

void
consumer_timeout_do_watch(struct session *s, uint64_t at_ms, uint64_t timeout_ms)
{
	uint64_t due_ms = at_ms + timeout_ms;

	if (s->timeout_least_ms == 0 || timeout_ms < s->timeout_least_ms)
		s->timeout_least_ms = timeout_ms;
	if (due_ms < s->watch_due_ms)
		s->watch_due_ms = due_ms; /* of a walk that is under way and passed it */
	arm(s, due_ms);
}

void
consumer_timeout_watch_set(struct session *s, const struct unacked_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct unacked *u = &set->item[i];

		consumer_timeout_watch(s, u->at_ms, timeout_of(u));
	}
}

/* ---- taking them back ---- */

static void
remember(struct session *s, uint64_t tag)
{
	struct rangeset *r = &s->taken;

	(void)rangeset_add(r, tag, tag);
	if (r->n > RANGES)
		(void)rangeset_add(r, r->r[0].first, tag);
}

bool
consumer_timeout_took(struct session *s, uint64_t tag, bool multiple)
{
	bool took = rangeset_has(&s->taken, tag);

	if (multiple)
		(void)rangeset_remove(&s->taken, 1, tag);
	else if (took)
		(void)rangeset_remove(&s->taken, tag, tag);
	return took;
}

static void
cancel(struct consumer *k)
{
	static struct log_limit some = { .burst = LINES };
	const struct queue *q = k->queue;

	if (log_allowed(&some))
		log_line(LOG_WARNING, &k->session->client->who,
		    "consumer '%.*s' of queue '%.*s' did not acknowledge a message within %llu ms "
		    "(x-consumer-timeout, limits.consumer_timeout): it is cancelled, and what is "
		    "late goes back",
		    SPAN_FMT(consumer_tag(k)), (int)q->name_len, q->name,
		    (unsigned long long)k->timeout_ms);
	k->session->broker->stats.consumer_timeouts++;
	queue_cancel_consumer(k);
}

static void
take_back(struct session *s, const struct unacked *u)
{
	const struct error *e;
	uint64_t tag = u->tag;

	if (u->consumer != NULL && !u->consumer->is_cancelled)
		cancel(u->consumer);
	e = session_settle(s, tag, false, SETTLE_LOST);
	assert(e == NULL);
	(void)e;
	remember(s, tag);
	s->broker->stats.late++;
}

/* ---- the walk ---- */

/* The first open one from `tag` on, or NULL. Moves *budget down by those that it passes. */
static const struct unacked *
next_open(const struct unacked_ring *r, uint64_t tag, int *budget)
{
	for (uint32_t i = unacked_old_above(r, tag - 1); i < r->old_count; i++) {
		(*budget)--;
		if (r->old[i].e.m != NULL)
			return &r->old[i];
	}
	for (uint64_t t = tag > r->low ? tag : r->low; r->live > 0 && t < r->next; t++) {
		(*budget)--;
		if (unacked_slot(r, t)->e.m != NULL)
			return unacked_slot(r, t);
	}
	return NULL;
}

/* From s->watch_tag on, which is moved; 0 at the end. */
static void
walk(struct session *s, uint64_t now_ms)
{
	int budget = SLICE;
	const struct unacked *u;

	while (budget > 0 && (u = next_open(&s->unacked, s->watch_tag, &budget)) != NULL) {
		uint64_t timeout_ms = timeout_of(u), due_ms = u->at_ms + timeout_ms;

		if (u->at_ms + s->timeout_least_ms > now_ms) {
			/* Neither is any behind it. */
			due_ms = u->at_ms + s->timeout_least_ms;
			s->watch_due_ms = due_ms < s->watch_due_ms ? due_ms : s->watch_due_ms;
			s->watch_tag = 0;
			return;
		}
		s->watch_tag = u->tag + 1;
		if (timeout_ms == 0)
			continue;
		if (due_ms <= now_ms)
			take_back(s, u);
		else if (due_ms < s->watch_due_ms)
			s->watch_due_ms = due_ms;
	}
	if (budget > 0)
		s->watch_tag = 0;
}

static void
fire(struct wheel_node *node, uint64_t now_ms)
{
	struct session *s = container_of(node, struct session, watch);
	uint64_t next_ms;

	if (s->watch_tag == 0) {
		s->watch_tag = 1;
		s->watch_due_ms = UINT64_MAX;
	}
	walk(s, now_ms);
	if (s->watch_tag != 0) {
		wheel_arm(s->broker->wheel, node, now_ms + 1);
		return;
	}
	if (s->watch_due_ms == UINT64_MAX) {
		s->timeout_least_ms = 0; /* none is left that has a limit */
		return;
	}
	next_ms = s->timeout_least_ms / CHECKS;
	next_ms = now_ms + (next_ms > CHECK_MS ? next_ms : CHECK_MS);
	wheel_arm(s->broker->wheel, node, s->watch_due_ms > next_ms ? s->watch_due_ms : next_ms);
}

void
consumer_timeout_init(struct session *s)
{
	s->watch.fire = fire;
}

void
consumer_timeout_fini(struct session *s)
{
	wheel_disarm(s->broker->wheel, &s->watch);
	rangeset_fini(&s->taken);
}
