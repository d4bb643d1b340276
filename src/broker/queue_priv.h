/* SPDX-License-Identifier: Apache-2.0
 * What the files of the queue module share:
 *	queue.c			publish, consumers and their turns, the way out
 *	queue_entries.c		ready entries in their order, returned ones, garbage
 *	queue_expiry.c		those that expire
 *	queue_ttl.c		times to live that policies changed
 *	queue_limits.c		length, and what goes for it
 *	queue_chain.c		those that lie on disk
 *	queue_priorities.c	the strands of a priority queue
 *	queue_pause.c		paused ones
 *	queue_pick.c		one out of the middle
 *	queue_declare.c		look-up, declaring
 *	queue_argument.c	the table of `x-` arguments
 *	queue_arguments.c	what they do when a queue is declared */
#ifndef BROKER_QUEUE_PRIV_H
#define BROKER_QUEUE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/queue.h"
#include "broker/queue_ttl.h"
#include "broker/table.h"

enum {
	KEEP_ENTRIES = 1024, /* of a queue that is spilled: its next ones stay in memory */
	KEEP_BYTES = 1 << 20,
	KEEP_BYTES_SHORT = 64 << 10, /* while memory is short */
	EXPIRE_SLICE = 8192 /* expired ones that go before one that is wanted */
};

/* Puts a new entry behind all others; its reference moves. */
void strand_append(struct strand *s, const struct entry *e);

/* queue_chain.c: the store says what happened to a lane (store_ops); the strand is its owner. */
uint64_t strand_spilled(struct strand *s, uint64_t through, bool is_behind);
void strand_loaded(struct strand *s, struct msg *m, uint64_t seq, const struct op_state *state, uint64_t expires_ms);
void strand_load_done(struct strand *s);
void strand_lost(struct strand *s, uint64_t count, uint64_t bytes);
/* What the lane of a restored one holds becomes its own. */
void strand_take_lane(struct strand *s);
/* The next ones are read if few are in memory. behind > 0. */
void strand_read_ahead(struct strand *s);
void strand_expire_unread(struct strand *s);
void strand_unchain(struct strand *s);
/* Entries that a queue which is not durable may put on disk: behind those that it keeps. At most n; returns how many. */
uint32_t strand_list_spillable(struct strand *s, struct lane_item *item, uint32_t n, uint64_t bytes);

/* queue_entries.c, for queue_chain.c */
void strand_append_to(struct entry_block **head, struct entry_block **tail, const struct entry *e);
void strand_drop_block(struct strand *s, struct entry_block *k); /* unlinked before; its references go in slices */
void strand_free_block(struct entry_block *k);
struct entry_block *strand_split_block(struct entry_block *k, uint32_t at);	/* the part from index `at` on */
void strand_count_out(struct strand *s, uint64_t n, uint64_t bytes);
void strand_count_in(struct strand *s, uint64_t n);	/* unread ones that were not counted; their bytes are not known */

/* queue_entries.c, for queue_expiry.c. The strand has a head. */
const struct entry *strand_head(struct strand *s);
void strand_take_head(struct strand *s, struct entry *out);
bool strand_has_returned(const struct strand *s);

/* queue_entries.c, for queue_pick.c */
uint32_t strand_sort_returned(struct strand *s);	/* they are in their order now; returns how many */
void strand_drop_first(struct strand *s);	/* the first block of the front is used up */
/* queue_pick.c: the ready one with this number, if it is in memory; good until something changes. */
const struct entry *strand_find_ready(struct strand *s, uint64_t seq);
bool strand_is_returned(struct strand *s, uint64_t seq);	/* the same, one of the returned ones */
/* The ready one that e is (seen by walk.h; e has a reference of its own) leaves its queue, but not the store:
 * queue_entry_gone() is the caller's, before it returns to the loop. False: it is not there any more. */
bool queue_pick(struct queue *q, const struct entry *e);
/* queue_chain.c: an unread one went out of turn. Nothing may be `behind` any more then, and the queue have a head. */
void strand_forget_unread(struct strand *s, uint64_t bytes);

/* queue_expiry.c: an expired one that was taken becomes a dead letter or goes. */
void strand_drop_expired(struct strand *s, struct entry *e);
/* Whole blocks of expired ones at the head go at once, up to max messages. Dead letters go one by one. Returns how many
 * went. */
unsigned strand_expire_blocks(struct strand *s, unsigned max);

/* The queue's time to live, as it was when the message came. */
static inline uint64_t
entry_ttl(const struct queue *q, const struct entry *e)
{
	return likely(q->ttl_past == NULL) ? q->set.ttl_ms : queue_ttl_at(q, e->m->arrived_ms);
}

/* Nothing is ready: will those that come expire, or that come back? */
static inline void
queue_reset_due(struct queue *q)
{
	q->with_due = q->set.ttl_ms != SETTING_NONE || q->ttl_past != NULL;
}

/* When it is to be dropped: at its expiry, the queue's time to live or the end of the retention time. 0: never. */
static inline uint64_t
entry_due(const struct queue *q, const struct entry *e)
{
	uint64_t due_ms = e->due_ms, keep_ms = q->broker->retention_ms, ttl_ms = entry_ttl(q, e);

	if (ttl_ms != SETTING_NONE && (keep_ms == 0 || ttl_ms < keep_ms))
		keep_ms = ttl_ms;
	else if (likely(keep_ms == 0))
		return due_ms;
	if (due_ms == 0 || e->m->arrived_ms + keep_ms < due_ms)
		due_ms = e->m->arrived_ms + keep_ms;
	return due_ms;
}

static inline bool
entry_is_expired(const struct queue *q, const struct entry *e)
{
	return unlikely(q->with_due) && entry_due(q, e) != 0 && entry_due(q, e) <= q->broker->now_ms;
}

/* queue_priorities.c */
void queue_priorities_init(struct queue *q);	/* if its settings want it */
void queue_priorities_fini(struct queue *q);
size_t queue_priorities_size(const struct queue *q);
void queue_priorities_note(struct strand *s);	/* of a priority queue: s->ready changed */
/* All strands: &q->strand, then those that this returns, ascending; NULL: no more. */
struct strand *queue_next_strand(const struct queue *q, const struct strand *after);

/* The one that gives out the queue's next message. */
static inline struct strand *
queue_turn(struct queue *q)
{
	return likely(q->priorities == NULL) ? &q->strand : q->priorities->turn;
}

/* Has it a message that can be given out at once? */
static inline bool
queue_has_head(struct queue *q)
{
	return strand_has_head(queue_turn(q));
}

/* Ready entries and what holds them go to broker->garbage at once; counts are right afterwards. Returns how many. */
uint64_t queue_drop_ready(struct queue *q);

/* The next one, expired or not; its reference moves. False: there is none, or it comes from disk. */
bool queue_take(struct queue *q, struct entry *out);
/* At most max of those at its head that have expired go. Returns how many steps it took. */
unsigned queue_expire(struct queue *q, unsigned max);
/* A new one behind all others, or to a consumer that can take; queue.c's. */
void queue_append(struct queue *q, const struct entry *e);
void queue_hand_over(struct queue *q, struct consumer *k, struct entry *e);

/* queue_limits.c: a message enters that may expire, or a queue whose head may have to go. */
void queue_publish_limited(struct queue *q, struct entry *e);
/* Messages came back, and consumers may take them. What is too much goes before that, but in quorum queues after it; queue.c's. */
void queue_offer_returned(struct queue *q);
void queue_tidy_later(struct queue *q);	/* what has expired, or is too much, goes in the next broker_run() */
bool queue_tidy(struct queue *q);	/* now. False: there is more, which goes later */
void queue_tidied(struct queue *q);	/* it need not: the queue goes */
bool queues_tidy(struct broker *b);	/* for broker.c. True: there are more */
void queue_count_limits(struct queue *q); /* q->set is new */
/* Policies of the vhost changed: those that apply to it do from here on, with what is in it already;
 * but messages that are there keep their time to live. */
void queue_choose_policies(struct queue *q);


/* Arms the wheel for the head's due time if it has one. */
void queue_arm_expiry(struct queue *q);
void queue_arm_for(struct queue *q, uint64_t due_ms);	/* for this one, if it was not armed for an earlier one */
wheel_fn queue_on_expiry;

/* Blocks from first to last, linked and in no list, go to broker->garbage with their references. */
void queue_put_garbage(struct broker *b, struct entry_block *first, struct entry_block *last);
/* Frees at most max messages of broker->garbage. True: there are more. */
bool queue_free_garbage(struct broker *b, unsigned max);

/* A deleted queue goes on broker->deleted once nothing waits for it any more; broker_reap frees it. */
void queue_list_deleted(struct queue *q);
void queue_free(struct queue *q);

/* Bytes of a queue without its entries, counted as MEM_TOPOLOGY. */
static inline size_t
queue_size(const struct queue *q)
{
	return sizeof *q + q->name_len + 1u + table_size(q->arguments) + queue_priorities_size(q);
}

static inline void
queue_make_runnable(struct queue *q)
{
	if (q->is_runnable || q->ready == 0 || takers_first(&q->takers) == NULL)
		return;
	if (likely(queue_has_head(q))) {
		q->is_runnable = true;
		TAILQ_INSERT_TAIL(&q->broker->runnable, q, run_link);
	} else {
		strand_read_ahead(queue_turn(q));
	}
}

/* It can no longer take: it leaves the takers, and waits where only its session's limit keeps it. */
static inline void
queue_put_aside(struct queue *q, struct consumer *k)
{
	takers_remove(&q->takers, k);
	if (q->takers.top == NULL)
		q->full_since_ms = q->broker->now_ms;
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
/* Fills q->set from its arguments, which were checked, and its policies. */
void queue_read_arguments(struct queue *q);
/* 406 where spec's arguments differ from the queue's in one that counts. */
const struct error *queue_compare_arguments(
    const struct queue *q, const struct queue_spec *spec) MUSTUSE;

#endif
