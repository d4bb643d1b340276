/* SPDX-License-Identifier: Apache-2.0
 * Maintenance: while a node is drained clients publish nothing new, and what its queues hold goes out to those who take it.
 * Publishers wait as they do while memory is short (amqp/park.h): a channel that also takes messages may publish as many as
 * it takes, or their acknowledgements would never come. What the broker itself moves (dead letters, delayed messages,
 * transfers) goes on. Of all this nothing survives a restart: a node that was started again serves everybody. */
#ifndef BROKER_DRAIN_H
#define BROKER_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/broker.h"

enum { DRAIN_REASON_MAX = 200 }; /* bytes */

/* As of the last look at all queues, some times a second. */
struct drain_stats {
	uint64_t left;		/* messages that somebody holds, or that are ready where consumers are */
	uint64_t unacked;	/* of these: those that somebody holds */
	uint64_t stay;		/* those that are ready where nobody takes them: no consumer, or the queue is paused */
	uint64_t queues_left, queues_stay;
	unsigned jobs;		/* of transfer.h that run: they bring messages to where somebody takes them */
	bool is_known;		/* there was a look */
	/* left and jobs are 0, no dead letter waits, and nothing moved since the look before: who acknowledges a message and then
	 * publishes what he made of it is not done in between. */
	bool is_empty;
};

static inline bool
drain_is_on(const struct broker *b)
{
	return b->drain != NULL;
}

/* Asked with each publish: does it have to wait for memory, or for the end of maintenance? */
static inline bool
drain_holds_publishers(const struct broker *b)
{
	return unlikely(memory_short(&b->memory) || b->drain != NULL);
}

/* Clients that begin to wait are told the reason (a text of ours if it is empty), cut at DRAIN_REASON_MAX. False: it is on
 * already, only the reason is changed, and the queues are looked at anew. */
bool drain_begin(struct broker *b, struct span reason);
bool drain_end(struct broker *b); /* false: it was not on */

void drain_stats(const struct broker *b, struct drain_stats *out); /* all 0 while it is off */
/* While it is on. */
const char *drain_reason(const struct broker *b);
uint64_t drain_since_ms(const struct broker *b);

#endif
