/* SPDX-License-Identifier: Apache-2.0
 * The broker's side of a channel: its consumers, its prefetch, its deliveries that wait for acknowledgement.
 * amqp/channel.c embeds one; the HTTP API's "get" needs none.
 *
 * Delivery tags count from 1. The deliveries that wait are a ring from the lowest open tag, slot = tag & mask. Where
 * one tag stays open while others go on (past 4 times the live entries) the open ones at its foot move to a small
 * sorted array, so that a message held for long costs nothing. */
#ifndef BROKER_SESSION_H
#define BROKER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/buckets.h"
#include "base/bytes.h"
#include "base/rangeset.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/msg.h"
#include "broker/published.h"
#include "broker/series.h"
#include "broker/stats.h"

struct client;
struct consumer;
struct queue;
struct session;

/* A place in a queue: 32 bytes. seq_flags: sequence number << 8 | ENTRY_*. Requeued entries go back by seq. */
enum { ENTRY_REDELIVERED = 1, ENTRY_DEATH_SHIFT = 5 /* dead_letter.h: why, of one that is given up */ };
struct entry {
	struct msg *m;			/* one reference */
	uint64_t seq_flags;
	uint64_t due_ms;		/* expiry; 0: none */
	uint32_t deliveries, acquired;	/* times given out; times given out and returned or lost */
};

/* What the protocol adds to a session, for those who show it. */
struct session_info {
	uint32_t number;		/* of the channel */
	bool confirms, transactional, is_parked;
	uint64_t unconfirmed;		/* publishes whose confirm was not sent */
	uint64_t uncommitted, acks_uncommitted;
};

struct session_ops {
	/* NULL: it has no consumers, and is an operator's. Append the delivery to the session's output. Calls nothing of the broker but msg_ref/msg_unref; the entry's
	 * reference stays the caller's. May set client->output_full. */
	void (*deliver)(struct consumer *k, const struct entry *e, uint64_t tag);
	/* The consumer was cancelled: its queue is gone, or it held a delivery for too long (called from broker_run, never from a call of the
	 * session): tell the client. The consumer is freed after that. */
	void (*cancelled)(struct consumer *k);
	/* How the protocol uses it; NULL: not at all. */
	void (*describe)(const struct session *s, struct session_info *out);
};

struct unacked {	/* a delivery that waits */
	struct entry e;			/* e.m == NULL: settled, a hole */
	struct consumer *consumer;	/* NULL: basic.get. Counted in its `unacked`, so it lives as long as we wait */
	struct queue *queue;		/* counted in its `unacked`: one that was deleted stays until its last one is settled */
	uint64_t tag;			/* needed by tx and by the sorted array */
	uint64_t at_ms;			/* when it was delivered */
};

/* What session.c, and amqp/ for what the broker does not see, count: here, in the vhost. The node's are beside it. */
#define SESSION_COUNT(s, name, n) \
	do { \
		(s)->stats.name += (n); \
		(s)->totals->name += (n); \
	} while (0)

/* What goes out of a queue, for it and for the node. */
#define QUEUE_COUNT(q, name, n) \
	do { \
		(q)->stats.name += (n); \
		(q)->broker->stats.name += (n); \
		if (unlikely((q)->quorum != NULL)) \
			(q)->broker->quorum_stats.name += (n); \
	} while (0)

struct unacked_ring {
	struct unacked *slot;		/* NULL until the first delivery */
	uint32_t mask, live;		/* live: open ones in the ring */
	uint64_t low, next;		/* tags in [low, next) have slots; those below low are settled or in `old` */
	struct unacked *old;		/* sorted by tag, all of them below low; may have holes */
	uint32_t old_count, old_live, old_cap;	/* slots used, open ones among them, slots there are */
};

struct session {
	const struct session_ops *ops;
	struct broker *broker;		/* borrowed */
	struct client *client;		/* borrowed: outlives its sessions */
	const bool *is_stopped;		/* nothing is delivered: the client's output_full, or true because it ends */
	struct unacked_ring unacked;
	uint64_t next_tag;
	uint32_t prefetch;		/* basic.qos, global=false: for consumers made later; 0: none */
	uint32_t limit;			/* basic.qos, global=true: over all consumers of this session; 0: none */
	uint32_t limited;		/* deliveries that count against limit */
	uint32_t consumer_count;
	uint64_t spent_tag;		/* session_allowance() */
	struct message_stats stats, *totals;	/* totals: borrowed, the vhost's */
	struct published_list published;	/* by exchange */
	struct consumer_list consumers;	/* owned, in the order of their consume */
	/* Those that could take but for `limit`: the one that waits longest first. While limit has room and somebody
	 * waits, we are in broker->waking. */
	struct consumer_list waiting;
	bool is_waking;
	bool is_ending;			/* all that it holds goes back */
	bool is_counted;		/* among its user's channels */
	/* The consumers by tag; empty while they are few. */
	struct buckets by_tag;
	uint32_t tags;			/* consumers in the list */
	/* consumer_timeout.c */
	struct wheel_node watch;	/* armed while a delivery may become late */
	uint64_t timeout_least_ms;	/* the shortest time that any of them has; 0: none has one */
	uint64_t watch_tag, watch_due_ms; /* the walk that is under way: where it goes on, 0: none; the earliest due seen */
	struct rangeset taken;		/* tags of late ones, which are not acknowledged yet */
	struct series series;
	TAILQ_ENTRY(session) waking_link;
	LIST_ENTRY(session) link;	/* in client->sessions */
};

struct consumer {
	/* Borrowed; NULL when cancelled: then only the deliveries that wait (`unacked`) keep us. */
	struct session *session;
	struct queue *queue;		/* borrowed; one that was deleted until we are cancelled, then NULL */
	uint32_t unacked, limit;	/* limit 0: none */
	uint32_t prefetch;		/* what was asked for, which need not be the limit */
	uint64_t timeout_ms;		/* how long it may hold a delivery; 0: for ever */
	int32_t priority;
	bool no_ack, exclusive, is_cancelled;
	bool is_unlimited;		/* its session's limit does not hold for it: no_ack, or of a quorum queue */
	bool is_ready;			/* in queue->takers, or waits to be the single active one */
	bool is_waiting;		/* in session->waiting */
	bool is_own_limit;		/* limit is limits.unacknowledged: reaching it is logged, once */
	uint8_t tag_len;
	uint16_t prefix_len;		/* see prefix */
	TAILQ_ENTRY(consumer) session_link;	/* in session->consumers, until cancelled was called */
	TAILQ_ENTRY(consumer) queue_link;	/* in queue->consumers; when that is deleted, in broker->cancelled */
	TAILQ_ENTRY(consumer) ready_link;	/* in a level of takers or in session->waiting */
	struct level *level;		/* borrowed: the queue's for our priority; NULL when we are cancelled */
	struct bucket_node by_tag;	/* in session->by_tag */
	struct table *arguments;	/* owned, may be NULL */
	/* amqp/'s deliver frame up to and with the consumer tag, made once: 7 frame head, 4 method id, tag as a short
	 * string. The tag itself therefore stands at prefix + 12. */
	uint8_t prefix[];
};

static inline struct span
consumer_tag(const struct consumer *k)
{
	return span_of(k->prefix + 12, k->tag_len);
}

/* Publishes that it may make while memory is short: deliveries got since that was said (memory.h). Tags count them anyway. */
static inline uint64_t
session_allowance(const struct session *s)
{
	return s->next_tag - s->spent_tag;
}

static inline void
session_allow(struct session *s, uint64_t publishes)
{
	s->spent_tag = s->next_tag - publishes;
}

/* The tag of what is delivered from no queue, and allows nothing. */
static inline uint64_t
session_free_tag(struct session *s)
{
	s->spent_tag++;
	return s->next_tag++;
}

void session_init(struct session *s, struct client *c, const struct session_ops *ops);
/* What a transaction took must have been settled or put back before. Consumers are cancelled, deliveries that wait go
 * back to their queues (in order, marked redelivered), the session is unlinked. No callback comes for it afterwards. */
void session_fini(struct session *s);
/* The same as far as a turn allows (BROKER_END_MAX): from the first call on nothing is delivered to it. True: it is over. */
bool session_end(struct session *s) MUSTUSE;
/* Sessions that end together with SESSION_RETURN_MAX deliveries and more would hold the node up: each goes back as a
 * whole, but those behind the first wait for the next broker_run(). Whoever has to know that all is back asks before
 * session_fini, and comes again later. */
enum { SESSION_RETURN_MAX = 32768 };
bool session_must_wait(const struct session *s);
bool session_run_returning(struct broker *b);	/* for broker.c: the next of them. True: there are more */

/* A consumer on q; permissions, exclusive locks and the tag's uniqueness in the session were checked by the caller
 * except: 403 "queue 'q' in vhost '/' in exclusive use", 403/406 limits.consumers. prefix and tag are copied.
 * It becomes able to take messages at once, but nothing is delivered before the next broker_run. */
struct consumer_spec {
	struct span prefix;		/* with the tag: 11 + 1 + tag */
	struct span tag;
	bool no_ack, exclusive;
	bool has_timeout;		/* timeout_ms is given; else it is the queue's, or the node's */
	int32_t priority;
	uint64_t timeout_ms;
	const struct table *arguments;
};
const struct error *session_consume(struct session *s, struct queue *q, const struct consumer_spec *spec,
    struct consumer **out) MUSTUSE;
struct consumer *session_find(const struct session *s, struct span tag);	/* not one whose queue is gone */
/* basic.cancel: what it holds unacknowledged stays with the session. */
void session_cancel(struct session *s, struct consumer *k);

void session_set_limit(struct session *s, uint32_t limit);	/* basic.qos global: resumes consumers if raised */

/* basic.get. From a queue that is paused only a session of no channel (ops->deliver is NULL) gets anything. GET_GOT: *e holds one reference: give it back with msg_unref after writing it. With no_ack the message is
 * gone, else it waits under *tag. *left: messages still ready. GET_LATER: the next one is being read from disk; ask
 * again when broker->loads has risen. */
enum get { GET_EMPTY, GET_GOT, GET_LATER };
enum get session_get(struct session *s, struct queue *q, bool no_ack, struct entry *e, uint64_t *tag, uint32_t *left);

/* LOST: not the client's word; it, or its channel, is gone. */
enum settle { SETTLE_ACK, SETTLE_REJECT, SETTLE_REQUEUE, SETTLE_LOST };

static inline bool
settle_returns(enum settle how)
{
	return how >= SETTLE_REQUEUE;
}

/* ack, nack, reject: tag 0 with multiple means all. 406 "unknown delivery tag N". In confirm and plain mode. */
const struct error *session_settle(struct session *s, uint64_t tag, bool multiple, enum settle how) MUSTUSE;

/* tx mode: is this tag open (multiple: up to it)? Takes it (them) out of the ring into *out, to be settled by
 * session_settle_taken at commit or put back by session_put_back at rollback. 406 as above. */
struct unacked_set {
	struct unacked *item;
	uint32_t count, cap;
};
const struct error *session_take(struct session *s, uint64_t tag, bool multiple, struct unacked_set *out) MUSTUSE;
void session_settle_taken(struct session *s, struct unacked *u, enum settle how);
void session_put_back(struct session *s, struct unacked_set *set);	/* empties the set; item is freed */

/* basic.recover: everything that waits goes back to its queue. */
void session_recover(struct session *s);

uint32_t session_unacked(const struct session *s);

static inline bool
session_is_full(const struct session *s)
{
	return s->limit != 0 && s->limited >= s->limit;
}

/* For queue.c: k, which is no taker, waits for room in its session's limit, behind others; not any more. */
void session_wait(struct consumer *k);
void session_wait_no_more(struct consumer *k);
/* For broker.c: consumers whose session has room again may take, so many a call. True: there are more. */
bool session_run_waking(struct broker *b);

/* For queue.c: gives e to a consumer that can take; its reference moves. */
void session_deliver(struct consumer *k, struct queue *q, struct entry *e);
/* For broker.c: the consumer leaves its session; freed, or once the last of its deliveries is settled. */
void consumer_release(struct consumer *k);
void consumer_free(struct consumer *k);	/* consumer.c's */

#endif
