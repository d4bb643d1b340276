/* SPDX-License-Identifier: Apache-2.0
 * Going through the ready messages of a queue in the order in which they would be given out, without taking any: those on
 * disk are read by workers and stay there. What comes or goes meanwhile may be seen or not, nothing is seen twice; what came
 * after the walk had begun is not seen. */
#ifndef BROKER_PEEK_H
#define BROKER_PEEK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/session.h"

struct lane;
struct lane_look;
struct queue;
struct strand;

/* A place in a queue: all zero at first. Of one queue, which the caller finds anew each time. */
struct peek {
	bool is_begun;
	uint8_t priority;	/* of the strand that it is in */
	uint64_t after, end;	/* numbers up to `after` were seen, those from `end` on came later */
	uint32_t passed;	/* of a quorum queue's returned ones */
	struct lane_look *look;	/* owned */
	const struct lane *lane; /* borrowed: whose it is; good as long as it */
};

/* GOT: out[0..n) are the next ones, at most max, or a megabyte of bodies; each with a reference, the caller's. LATER: they are
 * being read: ask again in a later turn. */
enum peek_result { PEEK_GOT, PEEK_LATER, PEEK_END };
enum peek_result peek_next(struct peek *w, struct queue *q, struct entry *out, unsigned max, unsigned *n);

/* Passes over n of them without looking at them. */
void peek_skip(struct peek *w, struct queue *q, uint64_t n);

/* The one with this number and priority. END: it is not there. w is used for nothing else, and for rising numbers only. */
enum peek_result peek_find(struct peek *w, struct queue *q, uint8_t priority, uint64_t seq, struct entry *out);

/* One that was seen is about to be taken out of the queue. */
void peek_takes(struct peek *w, struct queue *q, const struct entry *e);

void peek_fini(struct peek *w);	/* before the store goes */

#endif
