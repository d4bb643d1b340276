/* SPDX-License-Identifier: Apache-2.0
 * Queues that are paused. Their takers are held (takers.h), so that the way of a message asks nothing that it did not ask
 * before: nobody can take. */
#include "broker/persist.h"
#include "broker/queue_priv.h"

static void
hold(struct queue *q, bool is_paused)
{
	struct broker *b = q->broker;

	q->is_paused = is_paused;
	takers_hold(&q->takers, is_paused);
	if (is_paused)
		b->stats.queues_paused++;
	else
		b->stats.queues_paused--;
}

void
queue_pause(struct queue *q, bool pause)
{
	struct broker *b = q->broker;

	if (q->is_paused == pause)
		return;
	hold(q, pause);
	persist_queue_again(q);
	if (pause) {
		if (q->is_runnable)
			TAILQ_REMOVE(&b->runnable, q, run_link);
		q->is_runnable = false;
		if (q->consumer_count > 0 && q->full_since_ms == 0)
			q->full_since_ms = b->now_ms;
		return;
	}
	if (takers_any(&q->takers)) {
		queue_count_full(q);
		q->full_since_ms = 0;
	}
	queue_make_runnable(q);
}

void
queue_restore_pause(struct queue *q)
{
	hold(q, true);
}
