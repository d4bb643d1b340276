/* SPDX-License-Identifier: Apache-2.0
 * x-single-active-consumer: of all consumers of the queue one gets its messages, until it goes; then the next one does:
 * the highest priority among those that wait, the oldest of these. Priority pushes no active consumer aside;
 * on a quorum queue it means nothing here, as in RabbitMQ 3.10.
 *
 * Only the active one is ever in queue->takers, so that the way of a message is that of any other queue. The others wait
 * in a set of takers of their own, which gives the same order.
 *
 * Where the active one's session ends, the next one begins when all that the old one held is back: so it gets the
 * messages in order. After basic.cancel it begins at once, for what the old one holds stays with its session. */
#ifndef BROKER_SINGLE_ACTIVE_H
#define BROKER_SINGLE_ACTIVE_H

#include <stdbool.h>

#include "broker/takers.h"

struct consumer;
struct queue;

struct single_active {
	struct consumer *active;	/* borrowed; NULL: none */
	struct consumer *before;	/* borrowed: its session ended, its deliveries are not all back; NULL: none */
	struct takers waiting;		/* the others */
};

/* The queue has its settings; and it ends. */
void single_active_init(struct queue *q);
void single_active_fini(struct queue *q);

/* k is one of the queue's consumers from now on; and no longer: it was the active one, it waited. */
void single_active_join(struct queue *q, struct consumer *k);
void single_active_leave(struct queue *q, struct consumer *k);
/* k, which went, has no delivery left. Harmless if it was not the active one. */
void single_active_settled(struct queue *q, const struct consumer *k);

#endif
