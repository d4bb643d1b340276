/* SPDX-License-Identifier: Apache-2.0
 * The consumers of a queue that may take a message now: the highest priority first, those of the same priority in turn.
 * One level for each priority that a consumer of the queue has; the levels that have takers are a heap. So a queue whose
 * consumers all have the same priority, as nearly every one, pays for a list only, and one with ten thousand priorities a
 * logarithm. */
#ifndef BROKER_TAKERS_H
#define BROKER_TAKERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/broker.h"
#include "broker/map.h"

struct level {
	int32_t priority;
	uint32_t at;			/* in takers->heap while it has takers */
	uint32_t consumers;		/* that have this priority, takers or not */
	struct consumer_list list;	/* takers, in turn */
	UT_hash_handle hh;
};

struct takers {
	struct level *top;		/* borrowed: the highest that has takers; NULL: nobody may take */
	struct level *held;		/* the same while is_held: then top is NULL */
	struct level zero;		/* priority 0, always there */
	/* NULL as long as there is no priority but 0 */
	struct level *others;		/* owned, uthash by priority */
	struct level **heap;		/* owned: those with takers */
	uint32_t cap, in_heap;
	bool is_held;			/* takers keep their places, but nobody gets anything */
};

void takers_init(struct takers *t);
void takers_fini(struct takers *t);	/* no consumer is left */

/* A consumer of the queue from now on, and no longer (it is no taker). */
void takers_join(struct takers *t, struct consumer *k);
void takers_join_at(struct takers *t, struct consumer *k, int32_t priority);	/* not with its own */
void takers_leave(struct takers *t, struct consumer *k);

/* k, which has joined, may take, behind its equals; sets is_ready. */
void takers_add(struct takers *t, struct consumer *k);
void takers_remove(struct takers *t, struct consumer *k);

/* From now on takers_first() finds nobody, whoever comes; until it is taken back. */
void takers_hold(struct takers *t, bool hold);
static inline bool
takers_any(const struct takers *t)	/* held or not */
{
	return t->top != NULL || t->held != NULL;
}

static inline struct consumer *
takers_first(const struct takers *t)
{
	return t->top != NULL ? TAILQ_FIRST(&t->top->list) : NULL;
}

#endif
