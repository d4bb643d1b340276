/* SPDX-License-Identifier: Apache-2.0
 * Queues are looked at in laps, some at a time, so that a node with very many of them is not held up. */
#include "broker/drain.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "broker/queue.h"
#include "broker/transfer.h"
#include "broker/walk.h"

enum {
	LOOK = 512,  /* queues at a time */
	LAP_MS = 100 /* between two laps */
};

struct drain {
	struct broker *broker; /* borrowed */
	char reason[DRAIN_REASON_MAX + 1];
	uint64_t since_ms;
	struct wheel_node timer;
	struct walk walk; /* the queue that is looked at next, in broker->queues */
	bool is_walking;
	bool is_told;            /* the log was told that it is empty: once is enough */
	uint64_t moves;          /* moved() at the end of the lap before; of the first none */
	struct drain_stats next; /* of the lap that is being made */
	struct drain_stats seen;
};

/* Changes with whatever comes into a queue, goes out of one or comes back. */
static uint64_t
moved(const struct broker *b)
{
	const struct broker_stats *s = &b->stats;

	return s->routed + s->deliver + s->deliver_no_ack + s->get + s->get_no_ack + s->ack +
	       s->requeue + s->reject + s->dead_lettered + s->transferred + s->delayed_out;
}

static void
look_at(struct drain *d, const struct queue *q)
{
	bool is_taken = q->consumer_count > 0 && !q->is_paused;
	uint64_t left = q->unacked + (is_taken ? q->ready : 0), stay = is_taken ? 0 : q->ready;

	d->next.left += left;
	d->next.unacked += q->unacked;
	d->next.stay += stay;
	d->next.queues_left += left > 0;
	d->next.queues_stay += stay > 0;
}

static void
begin_lap(struct drain *d)
{
	struct broker *b = d->broker;

	d->next = (struct drain_stats){ .is_known = true };
	walk_begin(&b->walks, &d->walk);
	d->is_walking = true;
	d->walk.at = WALK_LINK(TAILQ_FIRST(&b->queues), all_link);
}

static unsigned
count_jobs(const struct broker *b)
{
	const struct transfer *t = NULL;
	unsigned n = 0;

	while ((t = transfer_next(b, t)) != NULL && t->state == TRANSFER_RUNNING)
		n++;
	return n;
}

static void
end_lap(struct drain *d)
{
	const struct broker *b = d->broker;

	walk_end(&d->walk);
	d->is_walking = false;
	d->next.jobs = count_jobs(b);
	d->next.is_empty = d->seen.is_known && moved(b) == d->moves && d->next.left == 0 &&
	                   d->next.jobs == 0 && b->stats.dead_letters == 0 &&
	                   TAILQ_EMPTY(&b->returning);
	d->moves = moved(b);
	if (d->next.is_empty && !d->is_told)
		log_info("drained: nothing is left that somebody takes; %llu messages in %llu "
		         "queues stay",
		    (unsigned long long)d->next.stay, (unsigned long long)d->next.queues_stay);
	d->is_told |= d->next.is_empty;
	d->seen = d->next;
}

static void
on_timer(struct wheel_node *node, uint64_t now_ms)
{
	struct drain *d = container_of(node, struct drain, timer);

	if (!d->is_walking)
		begin_lap(d);
	for (unsigned i = 0; i < LOOK && d->walk.at != NULL; i++) {
		const struct queue *q = WALK_AT(d->walk.at, queue, all_link);

		look_at(d, q);
		d->walk.at = WALK_LINK(TAILQ_NEXT(q, all_link), all_link);
	}
	if (d->walk.at == NULL)
		end_lap(d);
	wheel_arm(d->broker->wheel, node, now_ms + (d->is_walking ? 1 : LAP_MS));
}

static void
set_reason(struct drain *d, struct span reason)
{
	size_t n;

	if (reason.n == 0)
		reason = SPAN_LIT("the node is drained for maintenance");
	n = utf8_cut((const char *)reason.p, reason.n, DRAIN_REASON_MAX);
	memcpy(d->reason, reason.p, n);
	d->reason[n] = '\0';
}

/* What was seen before somebody asked says nothing about what was begun since. */
static void
look_anew(struct drain *d)
{
	if (d->is_walking)
		walk_end(&d->walk);
	d->is_walking = false;
	d->seen = (struct drain_stats){ 0 };
	wheel_disarm(d->broker->wheel, &d->timer);
	wheel_arm(d->broker->wheel, &d->timer, d->broker->now_ms);
}

bool
drain_begin(struct broker *b, struct span reason)
{
	bool is_new = b->drain == NULL;

	if (is_new) {
		b->drain = xcalloc(1, sizeof *b->drain);
		b->drain->broker = b;
		b->drain->since_ms = b->now_ms;
		b->drain->timer.fire = on_timer;
		b->drains++;
		wheel_arm(b->wheel, &b->drain->timer, b->now_ms);
	} else {
		look_anew(b->drain);
	}
	set_reason(b->drain, reason);
	return is_new;
}

bool
drain_end(struct broker *b)
{
	struct drain *d = b->drain;

	if (d == NULL)
		return false;
	if (d->is_walking)
		walk_end(&d->walk);
	wheel_disarm(b->wheel, &d->timer);
	b->drain = NULL;
	free(d);
	return true;
}

const char *
drain_reason(const struct broker *b)
{
	return b->drain->reason;
}

uint64_t
drain_since_ms(const struct broker *b)
{
	return b->drain->since_ms;
}

void
drain_stats(const struct broker *b, struct drain_stats *out)
{
	*out = b->drain != NULL ? b->drain->seen : (struct drain_stats){ 0 };
}
