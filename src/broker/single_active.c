/* SPDX-License-Identifier: Apache-2.0
 * Single active consumers: see the header. */
#include "broker/single_active.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/queue_priv.h"

void
single_active_init(struct queue *q)
{
	if (!q->set.single_active)
		return;
	q->single = xcalloc(1, sizeof *q->single);
	takers_init(&q->single->waiting);
	mem_add(MEM_TOPOLOGY, sizeof *q->single);
}

void
single_active_fini(struct queue *q)
{
	if (q->single == NULL)
		return;
	assert(q->single->active == NULL);
	takers_fini(&q->single->waiting);
	mem_sub(MEM_TOPOLOGY, sizeof *q->single);
	free(q->single);
	q->single = NULL;
}

static void
activate(struct queue *q, struct consumer *k)
{
	q->single->active = k;
	takers_join(&q->takers, k);
	consumer_wake(k);
}

static void
stop_waiting(struct single_active *s, struct consumer *k)
{
	takers_remove(&s->waiting, k);
	takers_leave(&s->waiting, k);
}

static void
activate_next(struct queue *q)
{
	struct consumer *k = takers_first(&q->single->waiting);

	if (k == NULL || q->is_deleted)
		return;
	stop_waiting(q->single, k);
	activate(q, k);
}

void
single_active_join(struct queue *q, struct consumer *k)
{
	struct single_active *s = q->single;

	takers_join_at(&s->waiting, k, q->quorum == NULL ? k->priority : 0);
	takers_add(&s->waiting, k);
	if (s->active == NULL && s->before == NULL)
		activate_next(q);
}

void
single_active_leave(struct queue *q, struct consumer *k)
{
	struct single_active *s = q->single;

	if (s->active != k) {
		stop_waiting(s, k);
		return;
	}
	if (k->is_ready)
		takers_remove(&q->takers, k);
	takers_leave(&q->takers, k);
	s->active = NULL;
	if (k->session->is_ending && k->unacked > 0)
		s->before = k;
	else
		activate_next(q);
}

void
single_active_settled(struct queue *q, const struct consumer *k)
{
	struct single_active *s = q->single;

	if (s->before != k)
		return;
	s->before = NULL;
	activate_next(q);
}
