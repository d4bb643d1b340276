/* SPDX-License-Identifier: Apache-2.0
 * A change of a vhost's policies on its way to the queues and exchanges that are there. One walk goes over the node's
 * queues and then over the exchanges of the vhosts that changed; a further change begins it anew. */
#include "broker/policy_apply.h"

#include <stddef.h>

#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/policy.h"
#include "broker/queue_priv.h"
#include "broker/vhost.h"

enum { RUN_WORK = 2000 /* matches in a call of policies_run() */ };

void
policies_changed(struct vhost *vh)
{
	struct policy_walk *w = &vh->broker->policy_walk;

	w->is_on = true;
	w->next = TAILQ_FIRST(&vh->broker->queues);
	vh->with_policy_change = true;
	vh->policy_next = vh->exchanges;
}

void
policy_forget_queue(struct queue *q)
{
	struct policy_walk *w = &q->broker->policy_walk;

	if (w->next == q)
		w->next = TAILQ_NEXT(q, all_link);
}

void
policy_forget_exchange(struct exchange *x)
{
	if (x->vhost->policy_next == x)
		x->vhost->policy_next = x->hh.next;
}

static bool
walk_queues(struct broker *b, uint64_t end)
{
	struct policy_walk *w = &b->policy_walk;
	struct queue *q;

	while ((q = w->next) != NULL && b->work < end) {
		w->next = TAILQ_NEXT(q, all_link);
		b->work++;
		if (q->vhost->with_policy_change)
			queue_choose_policies(q);
	}
	return w->next != NULL;
}

static bool
walk_exchanges(struct vhost *vh, uint64_t end)
{
	struct exchange *x;

	while ((x = vh->policy_next) != NULL && vh->broker->work < end) {
		vh->policy_next = x->hh.next;
		vh->broker->work++;
		exchange_choose_policies(x);
	}
	return vh->policy_next != NULL;
}

bool
policies_run(struct broker *b)
{
	uint64_t end = b->work + RUN_WORK;

	if (likely(!b->policy_walk.is_on))
		return false;
	if (walk_queues(b, end))
		return true;
	for (struct vhost *vh = b->vhosts; vh != NULL; vh = vh->hh.next) {
		if (!vh->with_policy_change)
			continue;
		if (walk_exchanges(vh, end))
			return true;
		vh->with_policy_change = false;
	}
	b->policy_walk.is_on = false;
	return false;
}
