/* SPDX-License-Identifier: Apache-2.0
 * What the files of the queue module share:
 *	queue.c			publish, consumers and their turns, the way out
 *	queue_entries.c		ready entries in their order, returned ones, expiry, garbage
 *	queue_declare.c		look-up, declaring
 *	queue_arguments.c	the `x-` arguments */
#ifndef BROKER_QUEUE_PRIV_H
#define BROKER_QUEUE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/queue.h"
#include "broker/table.h"

/* Puts a new entry behind all others; its reference moves. */
void queue_append(struct queue *q, const struct entry *e);

/* Ready entries and what holds them go to broker->garbage at once; counts are right afterwards. Returns how many. */
uint64_t queue_drop_ready(struct queue *q);

/* Arms the wheel for the head's due time if it has one. */
void queue_arm_expiry(struct queue *q);
wheel_fn queue_on_expiry;

/* Frees at most max messages of broker->garbage. True: there are more. */
bool queue_free_garbage(struct broker *b, unsigned max);

/* A deleted queue goes on broker->deleted once nothing waits for it any more; broker_reap frees it. */
void queue_list_deleted(struct queue *q);
void queue_free(struct queue *q);

/* Bytes of a queue without its entries, counted as MEM_TOPOLOGY. */
static inline size_t
queue_size(const struct queue *q)
{
	return sizeof *q + q->name_len + 1u + table_size(q->arguments);
}

static inline void
queue_make_runnable(struct queue *q)
{
	if (!q->is_runnable && q->ready > 0 && takers_first(&q->takers) != NULL) {
		q->is_runnable = true;
		TAILQ_INSERT_TAIL(&q->broker->runnable, q, run_link);
	}
}

/* It can no longer take: it leaves the takers, and waits where only its session's limit keeps it. */
static inline void
queue_put_aside(struct queue *q, struct consumer *k)
{
	takers_remove(&q->takers, k);
	q->broker->work++;
	if (consumer_has_room(k))
		session_wait(k);
}

/* The consumer whose turn it is; those met that can no longer take are put aside. */
static inline struct consumer *
queue_next_taker(struct queue *q)
{
	struct consumer *k;

	while ((k = takers_first(&q->takers)) != NULL && unlikely(!consumer_can_take(k)))
		queue_put_aside(q, k);
	return k;
}

/* Checks the arguments of a new queue: 406 for wrong values, 540 for what a later version brings. */
const struct error *queue_check_arguments(
    const struct vhost *vh, const struct queue_spec *spec) MUSTUSE;
/* 406 where spec's arguments differ from the queue's in one that counts. */
const struct error *queue_compare_arguments(
    const struct queue *q, const struct queue_spec *spec) MUSTUSE;

#endif
