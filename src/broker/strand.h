/* SPDX-License-Identifier: Apache-2.0
 * One ordered run of messages in a queue: its ready entries, and what of them lies on disk. A queue has one of its own,
 * a priority queue one for each priority; what is counted here is counted in the queue, too. queue_entries.c and
 * queue_chain.c work on it. */
#ifndef BROKER_STRAND_H
#define BROKER_STRAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "broker/session.h"

struct lane;
struct lane_share;
struct queue;

/* Entries in order of arrival: the first block has 15 (512 bytes), those behind it up to 127 (4 KiB). */
struct entry_block {
	struct entry_block *next;
	uint32_t head, tail, cap, home;	/* home: base/slab's */
	uint64_t bytes;			/* of the bodies of its entries */
	struct entry e[];
};

struct strand {
	struct queue *queue;			/* borrowed: the one that we are a part of */
	struct entry_block *head, *tail;	/* owned */
	/* Requeued ones, by seq, descending: the next one is the last. They come before those in blocks. Those from
	 * returned_sorted on came later and are merged in when somebody wants the next entry, so that any number of
	 * requeues costs one pass. */
	struct entry_block *returned;		/* owned, may be NULL; one block, grown */
	uint32_t returned_sorted;
	bool is_fifo;				/* of a quorum queue: returned ones in the order in which they came back */
	bool is_chained;			/* on broker->chained: behind > 0 */
	bool bytes_unsure;			/* some were lost to damage, whose size is not known: ready_bytes is to be counted anew */
	uint8_t priority;			/* the lane's number; 0 in a queue without priorities */
	uint64_t next_seq;
	uint64_t ready, ready_bytes;		/* messages; bytes of bodies */
	/* Of the ready ones: so many cannot be had at once. First those that lie on disk only (`unread`: behind - back),
	 * behind everything in `head` and `returned`; then what came after them, which waits in `back` until all of them
	 * were read. 0 where nothing lies on disk. See queue_chain.c. */
	uint64_t behind, back, back_bytes;
	struct entry_block *back_head, *back_tail; /* owned; NULL while back is 0 */
	struct lane *lane;			/* owned: the store's part, of a durable queue or where one was spilled; else NULL */
	uint64_t delivered;			/* highest seq given out since there is a lane */
	uint64_t keep_through;			/* entries up to it stay in memory, for the chain has them already */
	TAILQ_ENTRY(strand) chain_link;		/* broker->chained while is_chained */
};

/* What a priority queue has beside. See queue_priorities.c. */
struct priorities {
	uint64_t ready[4];			/* a bit for each strand: it has ready messages */
	struct strand *turn;			/* borrowed: the highest of them; where there is none, any */
	struct lane_share *share;		/* owned: the store's bounds for all lanes of the queue; NULL: it journals nothing */
	uint32_t max, made;			/* made: strands but for the queue's own */
	struct strand *strand[];		/* [0..max]; owned, but for the first, which is the queue's; NULL until it is needed */
};

/* Has it a message that can be given out at once? */
static inline bool
strand_has_head(const struct strand *s)
{
	return s->ready > s->behind;
}

static inline uint64_t
strand_unread(const struct strand *s)
{
	return s->behind - s->back;
}

#endif
