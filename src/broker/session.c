/* SPDX-License-Identifier: Apache-2.0
 * Sessions: deliveries out, acknowledgements in. */
#include "broker/session.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/client.h"
#include "broker/dead_letter.h"
#include "broker/consumer_timeout.h"
#include "broker/lease.h"
#include "broker/queue.h"
#include "broker/single_active.h"
#include "broker/trace.h"
#include "broker/unacked.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum {
	AHEAD = 8, /* messages fetched into the cache before they are settled */
	/* Consumers that are woken when the limit has room. All of a channel's as a rule, so that among them priority
	 * decides; where there are thousands, one message must not cost a walk over all of them. */
	WAKE_SLICE = 32,
	WAKE_MAX = 512 /* in a call of session_run_waking() */
};

void
session_init(struct session *s, struct client *c, const struct session_ops *ops)
{
	*s = (struct session){ .ops = ops,
		.broker = c->broker,
		.client = c,
		.is_stopped = &c->output_full,
		.next_tag = 1,
		.spent_tag = 1 };
	s->unacked.low = s->unacked.next = 1;
	s->totals = c->vhost != NULL ? &c->vhost->stats : &s->broker->no_stats;
	TAILQ_INIT(&s->consumers);
	TAILQ_INIT(&s->waiting);
	consumer_timeout_init(s);
	series_init(&s->broker->series, &s->series, SERIES_CHANNEL, s->broker->now_ms);
	if (c->vhost != NULL && vhost_is_own(c->vhost))
		series_hide(&s->broker->series, &s->series);
	LIST_INSERT_HEAD(&c->sessions, s, link);
	if (c->user != NULL) {
		s->is_counted = true;
		c->user->channels++;
	}
	s->broker->stats.channels++;
	s->broker->stats.channels_opened++;
}

/* ---- delivery ---- */

static void
limit_reached(const struct consumer *k, const struct queue *q)
{
	q->broker->stats.consumers_paused++;
	log_line(LOG_WARNING, &k->session->client->who,
	    "consumer '%.*s' of queue '%.*s' set no prefetch and holds %u unacknowledged messages, "
	    "which is "
	    "limits.unacknowledged: it gets no more until it acknowledges some",
	    SPAN_FMT(consumer_tag(k)), (int)q->name_len, q->name, k->unacked);
}

static inline void
count_given(struct session *s, struct queue *q, struct entry *e)
{
	e->deliveries++;
	if (unlikely(e->seq_flags & ENTRY_REDELIVERED)) {
		SESSION_COUNT(s, redeliver, 1);
		QUEUE_COUNT(q, redeliver, 1);
	}
}

static inline void
put_waiting(
    struct session *s, struct queue *q, struct consumer *k, const struct entry *e, uint64_t tag)
{
	struct unacked *u = unacked_push(&s->unacked, tag);

	u->e = *e;
	u->consumer = k;
	u->queue = q;
	u->at_ms = q->broker->now_ms;
	queue_entry_given(q, e);
	q->unacked++;
	q->unacked_bytes += e->m->body_size;
	q->depth->unacked++;
	q->broker->stats.messages_unacknowledged++;
}

/* A delivery is told of, or counted apart. */
static NOINLINE void
note_delivery(const struct consumer *k, const struct queue *q, const struct entry *e)
{
	struct broker *b = q->broker;

	if (q->quorum != NULL) {
		b->quorum_stats.deliver += !k->no_ack;
		b->quorum_stats.deliver_no_ack += k->no_ack;
	}
	if (b->tracing > 0)
		trace_deliver(k->session, q, e);
}

void
session_deliver(struct consumer *k, struct queue *q, struct entry *e)
{
	struct session *s = k->session;
	uint64_t tag = s->next_tag++;

	count_given(s, q, e);
	s->ops->deliver(k, e, tag);
	if (unlikely((q->broker->tracing | (uintptr_t)q->quorum) != 0)) /* one test of both */
		note_delivery(k, q, e);
	if (k->no_ack) {
		SESSION_COUNT(s, deliver_no_ack, 1);
		q->stats.deliver_no_ack++;
		q->broker->stats.deliver_no_ack++;
		queue_entry_gone(q, e, ACK_ACKED);
		msg_unref(&e->m);
		return;
	}
	put_waiting(s, q, k, e, tag);
	consumer_timeout_watch(s, q->broker->now_ms, k->timeout_ms);
	SESSION_COUNT(s, deliver, 1);
	q->stats.deliver++;
	q->broker->stats.deliver++;
	k->unacked++;
	s->limited++;
	if (unlikely(k->is_own_limit) && k->unacked == k->limit) {
		k->is_own_limit = false;
		limit_reached(k, q);
	}
}

enum get
session_get(
    struct session *s, struct queue *q, bool no_ack, struct entry *e, uint64_t *tag, uint32_t *left)
{
	bool is_held = unlikely(q->is_paused) && s->ops->deliver != NULL;

	lease_renew(q);
	if (is_held || !queue_pop(q, e)) {
		if (unlikely(q->ready > 0) && !is_held &&
		    !(queue_waits_for_letters(q) && dead_letters_full(q)))
			return GET_LATER;
		SESSION_COUNT(s, get_empty, 1);
		QUEUE_COUNT(q, get_empty, 1);
		return GET_EMPTY;
	}
	*tag = s->next_tag++;
	*left = queue_left(q);
	count_given(s, q, e);
	if (unlikely(q->broker->tracing > 0))
		trace_deliver(s, q, e);
	if (no_ack) {
		SESSION_COUNT(s, get_no_ack, 1);
		QUEUE_COUNT(q, get_no_ack, 1);
		queue_entry_gone(q, e, ACK_ACKED);
		return GET_GOT;
	}
	put_waiting(s, q, NULL, e, *tag);
	consumer_timeout_watch(s, q->broker->now_ms, consumer_timeout_of(q));
	msg_ref(e->m);
	SESSION_COUNT(s, get, 1);
	QUEUE_COUNT(q, get, 1);
	return GET_GOT;
}

/* ---- waiting for room in the session's limit ---- */

void
session_wait(struct consumer *k)
{
	assert(!k->is_ready && !k->is_waiting && !k->is_unlimited);
	k->is_waiting = true;
	TAILQ_INSERT_TAIL(&k->session->waiting, k, ready_link);
}

void
session_wait_no_more(struct consumer *k)
{
	if (!k->is_waiting)
		return;
	k->is_waiting = false;
	TAILQ_REMOVE(&k->session->waiting, k, ready_link);
}

/* More of them than there is room for, as the queue of one may be empty or serve others first. Returns how many. */
static unsigned
wake_waiting(struct session *s, unsigned max)
{
	struct broker *b = s->broker;
	struct consumer *k;
	unsigned n = 0;

	for (; n < max && !session_is_full(s) && (k = TAILQ_FIRST(&s->waiting)) != NULL; n++) {
		session_wait_no_more(k);
		if (consumer_has_room(k))
			queue_add_taker(k->queue, k);
	}
	b->work += n;
	if (!session_is_full(s) && !TAILQ_EMPTY(&s->waiting) && !s->is_waking) {
		s->is_waking = true;
		TAILQ_INSERT_TAIL(&b->waking, s, waking_link);
	}
	return n;
}

bool
session_run_waking(struct broker *b)
{
	struct session *s;

	for (unsigned left = WAKE_MAX; left > 0 && (s = TAILQ_FIRST(&b->waking)) != NULL;) {
		TAILQ_REMOVE(&b->waking, s, waking_link);
		s->is_waking = false;
		left -= wake_waiting(s, left);
	}
	return !TAILQ_EMPTY(&b->waking);
}

/* ---- settling ---- */

/* What is settled in one go, as long as it is of one queue and one consumer: counted once for all. */
struct batch {
	struct session *s;
	struct queue *q;
	struct consumer *k;
	uint32_t n;
	uint64_t bytes;
	enum settle how;
	bool is_plain; /* acknowledged, and nobody is told */
};

static inline struct batch
batch_of(struct session *s, enum settle how)
{
	return (struct batch){
		.s = s, .how = how, .is_plain = how == SETTLE_ACK && s->broker->tracing == 0
	};
}

static inline void
count_settled(struct session *s, struct queue *q, enum settle how, uint32_t n)
{
	struct broker_stats *all = &q->broker->stats;

	if (likely(how == SETTLE_ACK)) {
		SESSION_COUNT(s, ack, n);
		QUEUE_COUNT(q, ack, n);
	} else if (how == SETTLE_REJECT) {
		all->reject += n;
	} else {
		all->requeue += n;
	}
}

/* The consumer's share. It may live on nothing but these deliveries any more. */
static inline void
consumer_settled(struct session *s, struct queue *q, struct consumer *k, uint32_t n)
{
	assert(k->unacked >= n && s->limited >= n);
	k->unacked -= n;
	s->limited -= n;
	if (unlikely(k->session == NULL)) {
		if (k->unacked == 0) {
			if (q->single != NULL)
				single_active_settled(q, k);
			consumer_free(k);
		}
	} else if (!k->is_ready) {
		/* Behind the others, so that consumers of several queues take turns. */
		session_wait_no_more(k);
		consumer_wake(k);
	}
	if (unlikely(!TAILQ_EMPTY(&s->waiting)))
		(void)wake_waiting(s, WAKE_SLICE);
}

static void
batch_end(struct batch *b)
{
	if (b->n == 0)
		return;
	b->s->broker->work += b->n;
	count_settled(b->s, b->q, b->how, b->n);
	if (settle_returns(b->how) && !b->q->is_deleted)
		queue_returned_done(b->q);
	if (b->k != NULL)
		consumer_settled(b->s, b->q, b->k, b->n);
	queue_settled(b->q, b->n, b->bytes);
	b->n = 0;
	b->bytes = 0;
}

static const char *const settled[] = { [SETTLE_ACK] = "acknowledged",
	[SETTLE_REJECT] = "rejected",
	[SETTLE_REQUEUE] = "given back",
	[SETTLE_LOST] = "given back, as its taker is gone" };

static NOINLINE void
settle_special(struct batch *b, struct unacked *u)
{
	if (b->s->broker->tracing > 0)
		trace_settle(b->s, b->q, &u->e, settled[b->how]);
	if (settle_returns(b->how)) {
		queue_return(u->queue, &u->e, b->how);
		u->e.m = NULL;
	} else if (b->how == SETTLE_REJECT) {
		dead_letter(u->queue, &u->e, DEATH_REJECTED);
	} else {
		queue_entry_gone(u->queue, &u->e, ACK_ACKED);
		msg_unref(&u->e.m);
	}
}

/* u becomes a hole. */
static inline void
batch_add(struct batch *b, struct unacked *u)
{
	if (unlikely(u->consumer != b->k || u->queue != b->q)) {
		batch_end(b);
		b->k = u->consumer;
		b->q = u->queue;
	}
	b->n++;
	b->bytes += u->e.m->body_size;
	if (unlikely(!b->is_plain)) {
		settle_special(b, u);
		return;
	}
	queue_entry_gone(u->queue, &u->e, ACK_ACKED);
	msg_unref(&u->e.m);
}

static void
settle_old(struct batch *b, uint64_t to)
{
	struct unacked_ring *r = &b->s->unacked;
	uint32_t end = unacked_old_above(r, to);

	for (uint32_t i = 0; i < end; i++) {
		if (r->old[i].e.m == NULL)
			continue;
		batch_add(b, &r->old[i]);
		r->old_live--;
	}
	unacked_trim_old(r);
}

/* All open ones up to and with the tag `to`. */
static void
settle_up_to(struct session *s, uint64_t to, enum settle how)
{
	struct unacked_ring *r = &s->unacked;
	struct batch b = batch_of(s, how);
	uint64_t end = to < r->next ? to + 1 : r->next;

	if (unlikely(r->old_live > 0))
		settle_old(&b, to);
	for (uint64_t t = r->low; t < end; t++) {
		struct unacked *u = unacked_slot(r, t);

		if (likely(t + AHEAD < end))
			__builtin_prefetch(unacked_slot(r, t + AHEAD)->e.m, 1);
		if (unlikely(u->e.m == NULL))
			continue;
		batch_add(&b, u);
		r->live--;
	}
	if (end > r->low)
		r->low = end;
	unacked_trim(r);
	batch_end(&b);
}

static const struct error *
unknown_tag(uint64_t tag)
{
	return error_make(
	    E_PRECONDITION_FAILED, "unknown delivery tag %llu", (unsigned long long)tag);
}

/* One that was found leaves the ring or the sorted array; u is a hole already. */
static inline void
forget_one(struct unacked_ring *r, uint64_t tag)
{
	if (likely(tag >= r->low)) {
		r->live--;
		if (tag == r->low || r->live == 0)
			unacked_trim(r);
	} else {
		r->old_live--;
		unacked_trim_old(r);
	}
}

const struct error *
session_settle(struct session *s, uint64_t tag, bool multiple, enum settle how)
{
	struct batch b = batch_of(s, how);
	struct unacked *u;

	if (multiple && tag == 0) {
		rangeset_clear(&s->taken);
		settle_up_to(s, UINT64_MAX - 1, how);
		return NULL;
	}
	u = unacked_find(&s->unacked, tag);
	if (unlikely(u == NULL || s->taken.n > 0) && !consumer_timeout_took(s, tag, multiple) &&
	    u == NULL)
		return unknown_tag(tag);
	if (multiple) {
		settle_up_to(s, tag, how);
		return NULL;
	}
	if (unlikely(u == NULL))
		return NULL;
	batch_add(&b, u);
	forget_one(&s->unacked, tag);
	batch_end(&b);
	return NULL;
}

void
session_recover(struct session *s)
{
	settle_up_to(s, UINT64_MAX - 1, SETTLE_REQUEUE);
}

/* ---- transactions ---- */

static void
set_add(struct unacked_set *set, struct unacked *u)
{
	if (set->count == set->cap) {
		set->cap = set->cap > 0 ? set->cap * 2 : 16;
		set->item = xrealloc(set->item, set->cap * sizeof *set->item);
	}
	set->item[set->count++] = *u;
	u->e.m = NULL;
}

static void
take_up_to(struct session *s, uint64_t to, struct unacked_set *out)
{
	struct unacked_ring *r = &s->unacked;
	uint32_t old_end = unacked_old_above(r, to);
	uint64_t end = to < r->next ? to + 1 : r->next;

	for (uint32_t i = 0; i < old_end; i++) {
		if (r->old[i].e.m == NULL)
			continue;
		set_add(out, &r->old[i]);
		r->old_live--;
	}
	for (uint64_t t = r->low; t < end; t++) {
		if (unacked_slot(r, t)->e.m == NULL)
			continue;
		set_add(out, unacked_slot(r, t));
		r->live--;
	}
	s->broker->work += out->count;
	unacked_trim_old(r);
	unacked_trim(r);
}

const struct error *
session_take(struct session *s, uint64_t tag, bool multiple, struct unacked_set *out)
{
	struct unacked *u = unacked_find(&s->unacked, tag);

	uint64_t to = tag == 0 && multiple ? UINT64_MAX - 1 : tag;

	if (!consumer_timeout_took(s, to, multiple) && u == NULL && to == tag)
		return unknown_tag(tag);
	if (multiple) {
		take_up_to(s, to, out);
	} else if (u != NULL) {
		set_add(out, u);
		forget_one(&s->unacked, tag);
	}
	return NULL;
}

void
session_settle_taken(struct session *s, struct unacked *u, enum settle how)
{
	struct batch b = batch_of(s, how);

	batch_add(&b, u);
	batch_end(&b);
}

void
session_put_back(struct session *s, struct unacked_set *set)
{
	consumer_timeout_watch_set(s, set);
	unacked_put_back(&s->unacked, set->item, set->count);
	free(set->item);
	*set = (struct unacked_set){ 0 };
}

/* ---- limits and the end ---- */

void
session_set_limit(struct session *s, uint32_t limit)
{
	s->limit = limit;
	(void)wake_waiting(s, WAKE_SLICE);
}

uint32_t
session_unacked(const struct session *s)
{
	return s->unacked.live + s->unacked.old_live;
}

/* A session that ended, but for its deliveries. */
struct returning {
	struct session s;
	TAILQ_ENTRY(returning) link;
};

static void
give_back(struct session *s)
{
	s->broker->returned += session_unacked(s);
	settle_up_to(s, UINT64_MAX - 1, SETTLE_LOST);
	assert(s->limited == 0 && s->consumer_count == 0);
	unacked_fini(&s->unacked);
}

bool
session_must_wait(const struct session *s)
{
	uint32_t n = session_unacked(s), before = s->broker->returned;

	return n > 0 && before > 0 && before + n > SESSION_RETURN_MAX;
}

static void
give_back_later(struct session *s)
{
	struct returning *r = xmalloc(sizeof *r);

	r->s = *s;
	r->s.client = NULL;
	TAILQ_INIT(&r->s.consumers);
	s->unacked = (struct unacked_ring){ 0 };
	TAILQ_INSERT_TAIL(&s->broker->returning, r, link);
}

bool
session_run_returning(struct broker *b)
{
	struct returning *r;

	b->returned = 0;
	b->ended = 0;
	while ((r = TAILQ_FIRST(&b->returning)) != NULL && !session_must_wait(&r->s)) {
		TAILQ_REMOVE(&b->returning, r, link);
		give_back(&r->s);
		free(r);
	}
	return r != NULL;
}

void
session_fini(struct session *s)
{
	while (!session_end(s))
		s->broker->ended = 0;
}

bool
session_end(struct session *s)
{
	static const bool stopped = true;
	struct consumer *k;

	s->is_ending = true;
	s->is_stopped = &stopped;
	/* First the consumers, so that nothing of what goes back is given to them again. */
	while ((k = TAILQ_FIRST(&s->consumers)) != NULL) {
		if (s->broker->ended++ >= BROKER_END_MAX)
			return false;
		if (k->is_cancelled) {
			queue_drop_cancelled(k);
			consumer_release(k);
		} else {
			session_cancel(s, k);
		}
	}
	consumer_timeout_fini(s);
	if (s->is_waking)
		TAILQ_REMOVE(&s->broker->waking, s, waking_link);
	if (unlikely(session_must_wait(s)))
		give_back_later(s);
	else
		give_back(s);
	LIST_REMOVE(s, link);
	published_fini(s);
	if (s->is_counted)
		s->client->user->channels--;
	series_fini(&s->broker->series, &s->series);
	s->broker->stats.channels--;
	s->broker->stats.channels_closed++;
	return true;
}
