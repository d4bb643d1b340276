/* SPDX-License-Identifier: Apache-2.0
 * Taps: somebody watches what is published to an exchange (by clients, over HTTP, as dead letters, by a move; not what
 * bindings and alternates of other exchanges lead to it), or what enters a queue, and nothing is consumed. A message is
 * copied into the tap's own memory, its body up to a bound, and so many a second at most; what there is no room for is
 * counted. Whoever made the tap takes them out; the broker calls nobody.
 *
 * While nobody watches, the way of a message pays one test for exchanges, together with the firehose's (broker->watched),
 * and one for queues, together with other rare things. */
#ifndef BROKER_TAP_H
#define BROKER_TAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"

struct broker;
struct exchange;
struct msg;
struct queue;
struct tap;

LIST_HEAD(tap_list, tap);

enum {
	TAPS_MAX = 128,	/* limits.tails is less, or as many */
	TAP_BYTES = 256 << 10,	/* of what nobody has taken out yet, for each of them */
	TAP_BODY_MAX = 64 << 10,
	TAP_RATE_MAX = 1000
};

struct tap_spec {
	struct exchange *exchange;	/* the one or the other */
	struct queue *queue;
	struct span key;		/* as in a binding to a topic exchange; p NULL: all. Copied, at most 255 bytes */
	uint32_t rate;			/* messages a second: 1 to TAP_RATE_MAX */
	uint32_t body;			/* bytes of each body that are kept, at most TAP_BODY_MAX */
};

/* NULL: there are TAPS_MAX. */
struct tap *tap_new(struct broker *b, const struct tap_spec *spec) MUSTUSE;
void tap_free(struct tap **tp);

/* What it watches; NULL: that is gone, or it is not of this kind. */
struct exchange *tap_exchange(const struct tap *t);
struct queue *tap_queue(const struct tap *t);

struct tapped {
	struct span exchange, key, props, body;	/* props: as props_scan takes them. Good until the next call */
	uint64_t body_size;			/* of all of it */
	uint64_t at_ms;
};
/* The next one. False: there is none. */
bool tap_take(struct tap *t, struct tapped *out) MUSTUSE;
/* How many were left out since the last call. */
uint64_t tap_left_out(struct tap *t);

struct tap_stats {
	uint64_t made, refused, messages, left_out;
	uint32_t open;
};
void tap_stats(const struct broker *b, struct tap_stats *out);

/* For those who publish: x is tapped; m goes into these queues, and some queue is tapped. */
void tap_publish(struct exchange *x, const struct msg *m);
void tap_enter(struct broker *b, const struct msg *m, struct queue *const *queue, uint32_t n);
/* For those who delete it. */
void tap_exchange_gone(struct exchange *x);
void tap_queue_gone(struct queue *q);

#endif
