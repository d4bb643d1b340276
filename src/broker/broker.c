/* SPDX-License-Identifier: Apache-2.0
 * The broker and the work of a turn. Time is no input here, so the work is bounded by counts: each of them stands
 * for a few hundred microseconds at most. */
#include "broker/broker.h"

#include <assert.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/delay.h"
#include "broker/delay_heap.h"
#include "broker/dead_letter.h"
#include "broker/drain.h"
#include "broker/event.h"
#include "broker/hash.h"
#include "broker/notice.h"
#include "broker/parameter.h"
#include "broker/policy.h"
#include "broker/pressure.h"
#include "broker/queue.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/route.h"
#include "broker/transfer.h"
#include "broker/trace.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum {
	DELIVER_SLICE = 64,   /* messages of one queue before the next has its turn */
	DELIVER_MAX = 4096,   /* messages of a call of broker_run */
	DELIVER_TRACED = 512, /* while more is traced than is sent on */
	CANCEL_MAX = 512,
	GARBAGE_MAX = 4096
};

struct broker *
broker_new(const struct config *cfg, struct wheel *wheel, uint64_t now_ms)
{
	struct broker *b = xcalloc(1, sizeof *b);
	struct vhost *vh;

	hash_init();
	b->cfg = cfg;
	b->wheel = wheel;
	b->now_ms = now_ms;
	password_init();
	TAILQ_INIT(&b->clients);
	TAILQ_INIT(&b->forced);
	TAILQ_INIT(&b->gone_vhosts);
	TAILQ_INIT(&b->gone_users);
	TAILQ_INIT(&b->policy_walks);
	TAILQ_INIT(&b->runnable);
	TAILQ_INIT(&b->cancelled);
	TAILQ_INIT(&b->deleted);
	TAILQ_INIT(&b->untidy);
	TAILQ_INIT(&b->dead);
	TAILQ_INIT(&b->dead_waiting);
	TAILQ_INIT(&b->returning);
	TAILQ_INIT(&b->waking);
	TAILQ_INIT(&b->moving);
	TAILQ_INIT(&b->queues);
	TAILQ_INIT(&b->chained);
	TAILQ_INIT(&b->delay_work);
	notices_init(b);
	LIST_INIT(&b->walks);
	series_list_init(&b->series);
	series_init(&b->series, &b->node, SERIES_NODE, now_ms);
	series_is_old(&b->node);
	b->spill.least = UINT64_MAX;
	b->retention_ms = (uint64_t)cfg->retention_hours * 3600 * 1000;
	memory_init(&b->memory, cfg->memory_limit);
	b->memory.spill = cfg->memory_limit / 100 * cfg->memory_spill;
	vh = vhost_add(b, cfg->default_vhost != NULL ? cfg->default_vhost : "/");
	assert(vh != NULL);
	if (cfg->default_user == NULL)
		users_begin(b);
	return b;
}

/* ---- the work of a turn ---- */

static bool
run_queues(struct broker *b)
{
	unsigned left = likely(!b->notices.are_many) ? DELIVER_MAX : DELIVER_TRACED;
	struct queue *q;

	while (left > 0 && (q = TAILQ_FIRST(&b->runnable)) != NULL) {
		unsigned n = queue_run(q, left < DELIVER_SLICE ? left : DELIVER_SLICE);

		left -= n;
		TAILQ_REMOVE(&b->runnable, q, run_link);
		q->is_runnable = false;
		/* What it did not get to in its slice it goes on with behind the others, or it is read. */
		if (n > 0 && q->ready > 0 && queue_next_taker(q) != NULL)
			queue_make_runnable(q);
	}
	return !TAILQ_EMPTY(&b->runnable);
}

static bool
run_cancelled(struct broker *b)
{
	struct consumer *k;

	for (unsigned n = 0; n < CANCEL_MAX && (k = queue_next_cancelled(b)) != NULL; n++) {
		k->session->ops->cancelled(k);
		consumer_release(k);
	}
	return !TAILQ_EMPTY(&b->cancelled);
}

bool
broker_run(struct broker *b)
{
	bool more = session_run_returning(b);

	more |= vhosts_run(b);
	more |= users_run(b);
	more |= quorum_run(b);
	more |= policies_run(b);
	more |= queues_tidy(b);
	more |= dead_letters_run(b);
	if (unlikely(b->transfers != NULL))
		more |= transfers_run(b);
	more |= session_run_waking(b);
	more |= delays_run(b);
	event_tell_alarms(b);
	trace_follow(b);
	more |= notices_run(b);
	more |= run_queues(b);
	more |= run_cancelled(b);
	more |= queue_free_garbage(b, GARBAGE_MAX);
	more |= delay_garbage_free(b, GARBAGE_MAX);
	if (b->store != NULL)
		pressure_run(b);
	b->letters_late = false; /* nobody published what this made */
	/* What consumers met that had expired, or left that is too much. */
	return more || !TAILQ_EMPTY(&b->untidy) || !TAILQ_EMPTY(&b->dead) ||
	       !STAILQ_EMPTY(&b->notices.waiting);
}

void
broker_reap(struct broker *b)
{
	struct queue *q;

	while ((q = TAILQ_FIRST(&b->deleted)) != NULL) {
		TAILQ_REMOVE(&b->deleted, q, run_link);
		queue_free(q);
	}
}

void
broker_free(struct broker **bp)
{
	struct broker *b = *bp;

	*bp = NULL;
	assert(TAILQ_EMPTY(&b->clients));
	b->is_silent = true;
	while (session_run_returning(b))
		continue;
	(void)drain_end(b);
	transfers_stop(b);
	dead_letters_stop(b);
	vhosts_free(b);
	users_free(b);
	parameters_free(&b->parameters);
	while (queue_free_garbage(b, UINT32_MAX) || delay_garbage_free(b, UINT32_MAX))
		continue;
	broker_reap(b);
	assert(TAILQ_EMPTY(&b->waking) && TAILQ_EMPTY(&b->runnable) && TAILQ_EMPTY(&b->cancelled));
	assert(TAILQ_EMPTY(&b->untidy) && b->refusing == 0);
	assert(TAILQ_EMPTY(&b->dead) && TAILQ_EMPTY(&b->dead_waiting));
	assert(TAILQ_EMPTY(&b->queues) && TAILQ_EMPTY(&b->chained));
	series_fini(&b->series, &b->node);
	series_list_fini(&b->series);
	free(b->place);
	free(b->choice);
	route_fini();
	free(b);
}
