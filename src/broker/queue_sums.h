/* SPDX-License-Identifier: Apache-2.0
 * What a queue holds, added up for those who show it. */
#ifndef BROKER_QUEUE_SUMS_H
#define BROKER_QUEUE_SUMS_H

#include <stdbool.h>
#include <stdint.h>

struct queue;

struct queue_sums {
	uint64_t ready_ram, bytes_ram;		/* ready ones that are in memory; bytes of all bodies there */
	uint64_t unread, unread_bytes;		/* those that lie on disk only */
	uint64_t persistent, persistent_bytes;	/* that survive a restart, unacknowledged ones too */
	uint64_t memory;			/* bytes that the queue takes, messages included */
	bool has_head_time;
	uint64_t head_time;			/* the timestamp property of the next message, where that is in memory */
	uint64_t head_arrived_ms;		/* when that message came, since 1970; 0: there is none, or not in memory */
};

void queue_sum(const struct queue *q, struct queue_sums *out);

/* The share of the last seconds in which a message would not have had to wait for a consumer: 0 to 1; 0 without one. */
double queue_capacity(struct queue *q, uint64_t now_ms);

#endif
