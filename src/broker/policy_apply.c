/* SPDX-License-Identifier: Apache-2.0
 * Changes of a vhost's policies on their way to the queues and exchanges that are there: see policy.h. */
#include "broker/policy_apply.h"

#include <stddef.h>

#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/policy.h"
#include "broker/queue_priv.h"
#include "broker/vhost.h"

enum { RUN_WORK = 2000 /* matches in a call of policies_run() */ };

static void
begin_round(struct vhost *vh)
{
	struct policy_walk *w = &vh->policy_walk;

	w->has_begun = false;
	w->again = 0;
	w->queue = TAILQ_FIRST(&vh->queues);
	w->exchange = vh->exchanges;
}

void
policies_changed(struct vhost *vh)
{
	struct policy_walk *w = &vh->policy_walk;
	struct broker *b = vh->broker;

	b->policy_changes++;
	if (!w->is_on) {
		w->is_on = true;
		w->since = b->policy_changes;
		TAILQ_INSERT_TAIL(&b->policy_walks, vh, policy_walk.link);
	}
	if (!w->has_begun)
		begin_round(vh);
	else if (w->again == 0)
		w->again = b->policy_changes;
}

static void
end_walk(struct vhost *vh)
{
	TAILQ_REMOVE(&vh->broker->policy_walks, vh, policy_walk.link);
	vh->policy_walk = (struct policy_walk){ .is_on = false };
}

void
policies_forget_vhost(struct vhost *vh)
{
	if (vh->policy_walk.is_on)
		end_walk(vh);
}

void
policy_forget_queue(struct queue *q)
{
	struct policy_walk *w = &q->vhost->policy_walk;

	if (w->queue == q)
		w->queue = TAILQ_NEXT(q, vhost_link);
}

void
policy_forget_exchange(struct exchange *x)
{
	struct policy_walk *w = &x->vhost->policy_walk;

	if (w->exchange == x)
		w->exchange = x->hh.next;
}

/* True: there is more of this round. */
static bool
walk(struct vhost *vh, uint64_t end)
{
	struct policy_walk *w = &vh->policy_walk;
	struct broker *b = vh->broker;
	struct exchange *x;
	struct queue *q;

	w->has_begun = true;
	while ((q = w->queue) != NULL && b->work < end) {
		w->queue = TAILQ_NEXT(q, vhost_link);
		b->work++;
		queue_choose_policies(q);
	}
	while (w->queue == NULL && (x = w->exchange) != NULL && b->work < end) {
		w->exchange = x->hh.next;
		b->work++;
		exchange_choose_policies(x);
	}
	return w->queue != NULL || w->exchange != NULL;
}

bool
policies_run(struct broker *b)
{
	uint64_t end = b->work + RUN_WORK;
	struct vhost *vh;

	while (b->work < end && (vh = TAILQ_FIRST(&b->policy_walks)) != NULL) {
		struct policy_walk *w = &vh->policy_walk;

		b->work++;
		if (walk(vh, end)) {
			TAILQ_REMOVE(&b->policy_walks, vh, policy_walk.link);
			TAILQ_INSERT_TAIL(&b->policy_walks, vh, policy_walk.link);
		} else if (w->again != 0) {
			w->since = w->again;
			begin_round(vh);
		} else {
			end_walk(vh);
		}
	}
	return !TAILQ_EMPTY(&b->policy_walks);
}

uint64_t
policies_pending(const struct broker *b)
{
	uint64_t first = UINT64_MAX;
	const struct vhost *vh;

	TAILQ_FOREACH (vh, &b->policy_walks, policy_walk.link)
		if (vh->policy_walk.since < first)
			first = vh->policy_walk.since;
	return first;
}
