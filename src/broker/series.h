/* SPDX-License-Identifier: Apache-2.0
 * What the counters of an object were a while ago, for rates and for samples over the last minute. Every object with
 * counters has a series in one list, which is gone through at leisure: each is looked at every SERIES_MS, some a slice.
 * A point is kept only where something had changed, so that an idle object costs nothing but its place in the list, and the
 * way of a message nothing at all. The counts themselves are never sampled: they are shown as they are.
 *
 * The same list is how long listings find objects again: by a reference that stays good, or is seen to be of one that
 * went. */
#ifndef BROKER_SERIES_H
#define BROKER_SERIES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/wheel.h"

struct broker;
struct series_points;

enum {
	SERIES_MS = 5000,	/* between two looks at an object */
	SERIES_KEPT_MS = 65000,	/* so far back its points go */
	SERIES_VISITS = 1000,	/* looks in a slice: a third of a millisecond */
	SERIES_BYTES = 32 << 20, /* beyond it an object that is new to it gets no more than SERIES_FEW points */
	SERIES_FEW = 3
};

enum series_kind { SERIES_QUEUE, SERIES_EXCHANGE, SERIES_CHANNEL, SERIES_CONNECTION, SERIES_VHOST, SERIES_NODE,
	SERIES_USER,	/* counts nothing: it is only found again */
	SERIES_KINDS };

struct series {
	TAILQ_ENTRY(series) link;
	struct series_points *points;	/* owned; NULL: nothing has changed yet */
	uint64_t visited_ms;		/* at first: made */
	uint64_t mix;			/* of the counters at the last look */
	uint64_t changed_ms;		/* of the last look that found something changed; at first: made */
	uint32_t place;			/* in series_list.place */
	uint8_t kind;
	bool is_old;			/* what it counts may have been there before it was made */
};

TAILQ_HEAD(series_head, series);
struct series_place {
	struct series *series;		/* NULL: free */
	union {
		uint32_t next_free;	/* of a free one */
		uint32_t kind;		/* else: walks over one kind need not look at the others */
	};
	uint32_t generation;
};
struct series_list {
	struct series_place *place;	/* owned; [0] is never used */
	uint32_t places, cap, free;	/* free: the first that is; 0: none */
	struct series_head all;		/* borrowed; the one that was looked at longest ago first */
	struct wheel_node timer;
	uint64_t bytes;			/* of points */
	uint64_t cut;			/* points that went early for lack of room */
};

void series_list_init(struct series_list *l);
void series_list_fini(struct series_list *l);
/* From now on objects are looked at; until then all rates are 0. And no longer. */
void series_start(struct broker *b);
void series_stop(struct broker *b);

/* The object's counters are zero, as they begin. */
void series_init(struct series_list *l, struct series *s, enum series_kind kind, uint64_t now_ms);
/* They may not be: what they are at the first look is no change. */
void series_is_old(struct series *s);
/* No walk meets it: right after series_init. */
void series_hide(struct series_list *l, struct series *s);
void series_fini(struct series_list *l, struct series *s);

/* A reference to the object, never 0; and what it refers to, NULL if that is gone. */
uint64_t series_ref(const struct series_list *l, const struct series *s);
struct series *series_find(const struct series_list *l, uint64_t ref);
/* For walks that take several turns: objects of a kind from *at (0 at first) on; NULL: no more. Those that are there all the
 * time are met once, others once or not at all. */
struct series *series_next(const struct series_list *l, enum series_kind kind, uint32_t *at);

/* The object itself: a struct queue, exchange, session, client, vhost or broker. */
void *series_object(const struct series *s);

/* A slice. True: there is more to look at now. */
bool series_run(struct broker *b, uint64_t now_ms);

/* Changes per second over the last five to ten seconds. `counter`: one of the object's own, by its address (its kind
 * says which: series.c). A gauge may fall. */
double series_rate(const struct series *s, const uint64_t *counter, uint64_t now_ms);
/* What it was at the time at_ms, to SERIES_MS. False: nobody knows any more. */
bool series_at(const struct series *s, const uint64_t *counter, uint64_t at_ms, uint64_t *value);
/* Looks whether something has changed. Since when nothing has, to SERIES_MS; 0: something has, lately. */
uint64_t series_idle_since(struct series *s, uint64_t now_ms);

#endif
