/* SPDX-License-Identifier: Apache-2.0
 * A priority queue (x-max-priority): a strand for each priority, made when the first message of it comes. Strand n has
 * the messages of priority n and lane n of the store; what is above the queue's maximum counts as the maximum. The
 * highest strand that has ready messages has the turn: it gives out the next one, and as the head of the queue it alone
 * is looked at for expiry, as in RabbitMQ. Which have some is a bit each, so that 256 of them cost no more than two. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"

enum { WORD = 64, NEW_WORK = 256 /* a strand is some microseconds */ };

static size_t
priorities_size(const struct priorities *p)
{
	return sizeof *p + (p->max + (size_t)1) * sizeof p->strand[0];
}

size_t
queue_priorities_size(const struct queue *q)
{
	const struct priorities *p = q->priorities;

	return p != NULL ? priorities_size(p) + p->made * sizeof *p->strand[0] : 0;
}

void
queue_priorities_init(struct queue *q)
{
	struct priorities *p;

	if (q->set.max_priority == 0)
		return;
	p = xcalloc(1, sizeof *p + (q->set.max_priority + (size_t)1) * sizeof p->strand[0]);
	p->max = q->set.max_priority;
	p->turn = p->strand[0] = &q->strand;
	if (q->durable)
		p->share = lane_share_new();
	q->priorities = p;
}

void
queue_priorities_fini(struct queue *q)
{
	struct priorities *p = q->priorities;

	if (p == NULL)
		return;
	for (uint32_t i = 1; i <= p->max; i++) {
		assert(p->strand[i] == NULL ||
		       (p->strand[i]->lane == NULL && p->strand[i]->ready == 0));
		free(p->strand[i]);
	}
	lane_share_free(&p->share);
	free(p);
	q->priorities = NULL;
}

struct strand *
queue_priority_strand(struct queue *q, uint32_t priority)
{
	struct priorities *p = q->priorities;
	uint32_t n = priority < p->max ? priority : p->max;
	struct strand *s = p->strand[n];

	if (likely(s != NULL))
		return s;
	s = xcalloc(1, sizeof *s);
	s->queue = q;
	s->priority = (uint8_t)n;
	s->next_seq = 1;
	p->strand[n] = s;
	p->made++;
	mem_add(MEM_TOPOLOGY, sizeof *s);
	persist_strand_lane(s);
	q->broker->work += NEW_WORK;
	return s;
}

struct strand *
queue_next_strand(const struct queue *q, const struct strand *after)
{
	const struct priorities *p = q->priorities;

	for (uint32_t i = after->priority + 1u; p != NULL && i <= p->max; i++) {
		if (p->strand[i] != NULL)
			return p->strand[i];
	}
	return NULL;
}

static struct strand *
highest_ready(const struct priorities *p)
{
	for (uint32_t i = COUNT_OF(p->ready); i-- > 0;) {
		if (p->ready[i] != 0)
			return p
			    ->strand[i * WORD + WORD - 1 - (uint32_t)__builtin_clzll(p->ready[i])];
	}
	return p->strand[0];
}

void
queue_priorities_note(struct strand *s)
{
	struct priorities *p = s->queue->priorities;
	uint64_t *word = &p->ready[s->priority / WORD], bit = (uint64_t)1 << s->priority % WORD;

	if (s->ready > 0) {
		*word |= bit;
		if (s->priority <= p->turn->priority && p->turn->ready > 0)
			return;
		p->turn = s;
		/* It may be the first one that can be had: those of the strand that had the turn are being read. */
		queue_make_runnable(s->queue);
	} else {
		*word &= ~bit;
		if (p->turn == s)
			p->turn = highest_ready(p);
	}
}
