/* SPDX-License-Identifier: Apache-2.0
 * Queues: entries in order, consumers that may take them, and the rules of declaring and deleting. */
#ifndef BROKER_QUEUE_H
#define BROKER_QUEUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/buckets.h"
#include "base/bytes.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/policy.h"
#include "broker/queue_settings.h"
#include "broker/series.h"
#include "broker/session.h"
#include "broker/stats.h"
#include "broker/strand.h"
#include "broker/takers.h"
#include "store/store.h"

struct binding;
struct client;
struct dedup;
struct lease;
struct quorum;
struct dead_letters;
struct single_active;
struct table;
struct ttl_past;
struct vhost;

LIST_HEAD(binding_list, binding);

struct queue {
	struct broker *broker;			/* borrowed: the vhost's */
	struct vhost *vhost;			/* borrowed; NULL when deleted */
	char *name;				/* owned; name_len bytes, NUL added */
	uint64_t id;
	uint16_t name_len;
	bool durable, auto_delete, exclusive;
	bool is_runnable, is_deleted;
	bool is_listed;				/* on broker->deleted */
	bool with_due;				/* there may be entries that expire */
	bool has_lanes;				/* the store has to hear of what leaves it */
	bool is_limited;			/* with a time to live, or a length over which its head goes */
	bool is_tapped;				/* somebody watches it (tap.h) */
	bool refuses;				/* what comes while it is full */
	bool is_untidy;				/* on broker->untidy */
	bool is_paused;				/* nobody gets anything: queue_pause() */
	struct client *owner;			/* borrowed: exclusive to it; NULL otherwise */
	struct table *arguments;		/* owned, may be NULL */
	struct policy *policy[POLICY_KINDS];	/* counted references; NULL: none applies */
	struct queue_settings set;		/* what arguments and policies say */
	struct strand strand;			/* its messages; of a priority queue those of priority 0 */
	struct priorities *priorities;		/* owned; NULL: all messages are equal */
	struct quorum *quorum;			/* owned; NULL: a classic queue */
	uint64_t ready, unacked;		/* messages. A deleted queue lives while unacked > 0 */
	uint64_t ready_bytes, unacked_bytes;	/* of bodies */
	struct queue_depth *depth;		/* borrowed: the vhost's sums of the two */
	uint64_t full_since_ms, full_ms;	/* messages are ready and no consumer can take: since when (0: it is not so), how long in all */
	struct consumer_list consumers;		/* all, in the order of their consume */
	struct takers takers;			/* those that may take now, by priority, then by turn; may hold some that no
						 * longer can: looked at when picked */
	uint32_t consumer_count;		/* of a deleted one: those that are not cancelled yet */
	uint32_t letter_mark;			/* letter_target.c's */
	struct consumer *exclusive_consumer;	/* borrowed */
	struct ttl_past *ttl_past;		/* owned: see queue_ttl.h; NULL: q->set.ttl_ms is that of all its messages */
	struct lease *lease;			/* owned: x-expires; NULL: none */
	struct single_active *single;		/* owned: x-single-active-consumer; NULL: all consumers are active */
	struct binding_list bindings;		/* to this queue, the default exchange's left out */
	struct wheel_node expiry;		/* armed for the head's due time, or earlier */
	struct dead_letters *dead;		/* owned; NULL: no dead letters wait */
	uint64_t letters_in;			/* dead letters that came into it, since the node began */
	struct queue_stats stats;
	struct series series;
	struct dedup *dedup;			/* owned; NULL: duplicates may come */
	struct bucket_node by_name, by_id;	/* in vhost->queues_by_name and queues_by_id */
	TAILQ_ENTRY(queue) vhost_link;		/* vhost->queues */
	TAILQ_ENTRY(queue) run_link;		/* broker->runnable; then, when deleted, broker->deleted */
	TAILQ_ENTRY(queue) tidy_link;		/* broker->untidy while is_untidy */
	LIST_ENTRY(queue) owner_link;		/* client->exclusive */
	TAILQ_ENTRY(queue) all_link;		/* broker->queues */
	uint64_t route_mark;			/* route.c: already in the route */
};

struct queue_spec {
	struct span name;			/* empty: the server makes one, amq.gen-... */
	bool durable, auto_delete, exclusive;
	const struct table *arguments;
};

/* queue.declare. Reserved prefix (403), the client's right to configure (403: here, because only here a name made by
 * the server is known), exclusive lock (405), equivalence (406), limits.queues (406), `x-` arguments (406 for wrong
 * ones; 540 for those that a later version brings). An exclusive queue is never durable, whatever is asked for: it
 * ends with its client. `client` NULL: from settings or HTTP. *out is borrowed. */
const struct error *queue_declare(struct vhost *vh, const struct queue_spec *spec, struct client *client,
    struct queue **out) MUSTUSE;
/* By name: 404; 405 when it is another client's exclusive queue. */
const struct error *queue_lookup(struct vhost *vh, struct span name, const struct client *client, struct queue **out)
    MUSTUSE;
struct queue *queue_find(const struct vhost *vh, struct span name);
struct queue *queue_find_id(const struct vhost *vh, uint64_t id);

/* queue.delete: unlinked at once, its consumers put on broker->cancelled (each is cancelled
 * when its turn comes, and not found before), messages freed in slices.
 * 406 in use / not empty. *messages: how many were ready. */
const struct error *queue_delete(struct queue *q, bool if_unused, bool if_empty, uint32_t *messages) MUSTUSE;
void queue_remove(struct queue *q);	/* the same without conditions: exclusive, auto-delete, shutdown */
uint32_t queue_purge(struct queue *q);	/* ready ones only; returns how many */
/* Consumers and basic.get get nothing until it goes on; what is out may be settled, messages come in, expire and go for
 * limits as before. Of a durable queue it survives a restart. Consumers keep their places. */
void queue_pause(struct queue *q, bool pause);
void queue_restore_pause(struct queue *q);	/* for persist_link.c: it was paused before the restart */

/* A routed message arrives; takes over one reference of m. Handed to a consumer at once if nothing is ready and one can
 * take it, else an entry. due_ms: absolute expiry or 0. */
void queue_publish(struct queue *q, struct msg *m, uint64_t due_ms);

/* Is it so full that it refuses m? Asked before queue_publish(), for the answer may be that the message goes nowhere. */
bool queue_is_full_for(struct queue *q, const struct msg *m);
static inline bool
queue_refuses(struct queue *q, const struct msg *m)
{
	return unlikely(q->refuses) && queue_is_full_for(q, m);
}

/* For session.c: an entry comes back to its place; the caller calls queue_returned_done(q) after a batch. */
void queue_return(struct queue *q, const struct entry *e, enum settle how);
void queue_returned_done(struct queue *q);	/* consumers may take them */
/* Next ready entry that is not expired; its reference moves. False: there is none, or (ready > 0) it
 * comes from disk, or too many have expired before it. */
bool queue_pop(struct queue *q, struct entry *out);
/* The next one, if it is in memory; NULL: there is none. Borrowed. */
const struct msg *queue_first(struct queue *q);
/* If it lies on disk: it is read, so that a later turn has it. So many a second, and none while memory is short: false, this one
 * is not. */
bool queue_fetch_first(struct queue *q);
/* Its head has expired, and no more is made of it before the dead letters that wait are fewer: they make it go on.
 * Consumers of a queue that keeps them, perhaps for ever, wait with dead_letters_full() only. */
bool queue_waits_for_letters(struct queue *q);
/* What is ready behind one that was popped. Those that have expired go first; a quorum queue counts them still, as in RabbitMQ. */
uint32_t queue_left(struct queue *q);
void queue_settled(struct queue *q, uint32_t n, uint64_t bytes); /* n deliveries no longer wait: acked, dropped or returned */

/* Consumers: membership in takers. One that cannot take because its session's limit is reached is in session->waiting,
 * one that cannot for a reason of its own is in neither. */
void queue_add_consumer(struct queue *q, struct consumer *k);
void queue_remove_consumer(struct queue *q, struct consumer *k);	/* with the last one goes an auto-delete queue */
void queue_cancel_consumer(struct consumer *k); /* the same on our side: it comes on broker->cancelled */
void consumer_wake(struct consumer *k);		/* it may be able to take again: into takers, or behind those that wait */
void queue_add_taker(struct queue *q, struct consumer *k);	/* for session.c: it can; the queue becomes runnable */
static inline bool consumer_can_take(const struct consumer *k);
struct consumer *queue_next_cancelled(struct broker *b); /* takes the first one off broker->cancelled; NULL: there is none */
void queue_drop_cancelled(struct consumer *k);	/* takes k off broker->cancelled: its session ends */

/* Work of a turn: deliver until nothing is ready, no consumer can take, or `max` were delivered. Returns how many. */
unsigned queue_run(struct queue *q, unsigned max);

/* A queue from what the store had, with its messages; nothing is checked that was checked when it was declared. NULL: the
 * name is taken, or the id. */
struct queue *queue_restore(struct vhost *vh, const struct queue_spec *spec, uint64_t id) MUSTUSE;

/* About once a second: queues whose next message lies on disk get it, so that it can expire; reads that failed are
 * tried again. A few at a time. */
void queues_tend(struct broker *b);

struct strand *queue_priority_strand(struct queue *q, uint32_t priority);	/* made where it is not there yet */

/* The one that a message of the queue belongs to, or will. */
static inline struct strand *
queue_strand(struct queue *q, const struct msg *m)
{
	return likely(q->priorities == NULL) ? &q->strand : queue_priority_strand(q, m->prio);
}

static inline void
strand_entry_gone(struct strand *s, const struct entry *e, enum ack_reason reason)
{
	if (s->lane != NULL)
		lane_ack(s->lane, e->seq_flags >> 8, e->m->body_size, reason);
}

/* What the store has to hear: off the way of those queues that have no part in it. */
void queue_tell_gone(struct queue *q, const struct entry *e, enum ack_reason reason);
void queue_tell_given(struct queue *q, const struct entry *e);

/* An entry leaves the queue for good; before its reference is given up. */
static inline void
queue_entry_gone(struct queue *q, const struct entry *e, enum ack_reason reason)
{
	if (unlikely(q->has_lanes))
		queue_tell_gone(q, e, reason);
}

/* An entry was given out and waits for its acknowledgement. */
static inline void
queue_entry_given(struct queue *q, const struct entry *e)
{
	if (unlikely(q->has_lanes))
		queue_tell_given(q, e);
}

/* full_ms, as of now. */
static inline void
queue_count_full(struct queue *q)
{
	if (q->full_since_ms == 0)
		return;
	q->full_ms += q->broker->now_ms - q->full_since_ms;
	q->full_since_ms = q->broker->now_ms;
}

/* A number of messages as methods carry it. */
static inline uint32_t
queue_count32(uint64_t n)
{
	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

#include "broker/client.h"

/* But for the session's limit. One that has no session any more was cancelled before. */
static inline bool
consumer_has_room(const struct consumer *k)
{
	return !k->is_cancelled && !*k->session->is_stopped &&
	    (k->no_ack || k->limit == 0 || k->unacked < k->limit);
}

static inline bool
consumer_can_take(const struct consumer *k)
{
	return consumer_has_room(k) && (k->is_unlimited || !session_is_full(k->session));
}

#endif
