/* SPDX-License-Identifier: Apache-2.0
 * Queues: messages in, consumers and their turns, and the way out. */
#include "broker/queue.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/binding.h"
#include "broker/dead_letter.h"
#include "broker/dedup.h"
#include "broker/event.h"
#include "broker/exchange.h"
#include "broker/lease.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/single_active.h"
#include "broker/table.h"
#include "broker/tap.h"
#include "broker/vhost.h"

/* ---- what the store hears ---- */

void
queue_tell_gone(struct queue *q, const struct entry *e, enum ack_reason reason)
{
	strand_entry_gone(queue_strand(q, e->m), e, reason);
}

void
queue_tell_given(struct queue *q, const struct entry *e)
{
	struct strand *s = queue_strand(q, e->m);
	uint64_t seq = e->seq_flags >> 8;

	if (s->lane == NULL)
		return;
	if (seq > s->delivered)
		s->delivered = seq;
	if (!q->durable)
		return;
	lane_mark_delivered(s->lane, seq);
	/* That it was out for the first time is what the mark says. */
	if (unlikely(q->quorum != NULL) && e->acquired > 0)
		lane_set_state(
		    s->lane, seq, &(struct op_state){ true, e->deliveries, e->acquired });
}

/* ---- turns ---- */

/* k just got a message: if it has equals that wait, they come first now. Where it can take no more that is seen when its
 * turn comes: acknowledges it before, it has kept its place, as in RabbitMQ. */
static inline void
end_turn(struct consumer *k)
{
	if (TAILQ_NEXT(k, ready_link) != NULL) {
		TAILQ_REMOVE(&k->level->list, k, ready_link);
		TAILQ_INSERT_TAIL(&k->level->list, k, ready_link);
	}
}

void
queue_hand_over(struct queue *q, struct consumer *k, struct entry *e)
{
	session_deliver(k, q, e);
	end_turn(k);
}

void
queue_append(struct queue *q, const struct entry *e)
{
	strand_append(queue_strand(q, e->m), e);
}

void
queue_publish(struct queue *q, struct msg *m, uint64_t due_ms)
{
	uint64_t seq = queue_strand(q, m)->next_seq++;
	struct entry e = { .m = m, .seq_flags = seq << 8, .due_ms = due_ms };
	struct consumer *k;

	assert(!q->is_deleted);
	q->stats.publish++;
	if (unlikely((due_ms | q->is_limited) != 0)) {
		queue_publish_limited(q, &e);
		return;
	}
	if (q->ready == 0 && likely((k = queue_next_taker(q)) != NULL)) {
		session_deliver(k, q, &e);
		end_turn(k);
		return;
	}
	strand_append(queue_strand(q, m), &e);
	/* Where something is ready and there are takers, the queue is on the list, or its next message is being read, or what
	 * stands before it goes first, perhaps when fewer dead letters wait. */
	assert(q->is_runnable || takers_first(&q->takers) == NULL || queue_turn(q)->behind > 0 ||
	       q->is_untidy || q->dead != NULL);
}

unsigned
queue_run(struct queue *q, unsigned max)
{
	struct consumer *k;
	struct entry e;
	unsigned n = 0;

	while (n < max && q->ready > 0 && (k = queue_next_taker(q)) != NULL && queue_pop(q, &e)) {
		session_deliver(k, q, &e);
		end_turn(k);
		n++;
	}
	if (unlikely(q->is_limited) && q->quorum != NULL &&
	    (n < max || queue_next_taker(q) == NULL))
		queue_tidy_later(q);
	return n;
}

void
queue_offer_returned(struct queue *q)
{
	if (likely(!q->is_limited)) {
		queue_make_runnable(q);
	} else if (q->quorum == NULL) {
		queue_tidy_later(q);
		queue_make_runnable(q);
	} else {
		queue_make_runnable(q);
		if (!q->is_runnable)
			queue_tidy_later(q);
	}
}

void
queue_returned_done(struct queue *q)
{
	if (unlikely(q->quorum != NULL))
		quorum_returned_done(q);
	queue_offer_returned(q);
}

/* ---- consumers ---- */

void
queue_add_taker(struct queue *q, struct consumer *k)
{
	if (q->full_since_ms != 0 && likely(!q->is_paused)) {
		queue_count_full(q);
		q->full_since_ms = 0;
	}
	takers_add(&q->takers, k);
	queue_make_runnable(q);
}

void
consumer_wake(struct consumer *k)
{
	struct queue *q = k->queue;
	struct session *s = k->session;

	if (k->is_ready || k->is_waiting || !consumer_has_room(k))
		return;
	if (!k->is_unlimited && unlikely(session_is_full(s) || !TAILQ_EMPTY(&s->waiting))) {
		session_wait(k);
		return;
	}
	queue_add_taker(q, k);
}

void
queue_add_consumer(struct queue *q, struct consumer *k)
{
	assert(!q->is_deleted && k->queue == q);
	TAILQ_INSERT_TAIL(&q->consumers, k, queue_link);
	q->consumer_count++;
	q->broker->stats.consumers++;
	if (k->exclusive)
		q->exclusive_consumer = k;
	if (unlikely(q->single != NULL)) {
		single_active_join(q, k);
		return;
	}
	takers_join(&q->takers, k);
	consumer_wake(k);
}

static void
unlink_consumer(struct queue *q, struct consumer *k)
{
	session_wait_no_more(k);
	if (unlikely(q->single != NULL)) {
		single_active_leave(q, k);
	} else {
		if (k->is_ready)
			takers_remove(&q->takers, k);
		takers_leave(&q->takers, k);
	}
	TAILQ_REMOVE(q->is_deleted ? &q->broker->cancelled : &q->consumers, k, queue_link);
	if (q->exclusive_consumer == k)
		q->exclusive_consumer = NULL;
	q->consumer_count--;
	if (q->consumer_count == 0)
		q->full_since_ms = 0;
	q->broker->stats.consumers -= !q->is_deleted;
	k->is_cancelled = true;
	k->queue = NULL;
}

/* A consumer of q went. */
static void
one_less(struct queue *q)
{
	/* At once, as in RabbitMQ: whoever asks next, or publishes, finds no queue. */
	if (q->is_deleted)
		queue_list_deleted(q);
	else if (q->auto_delete && q->consumer_count == 0)
		queue_remove(q);
	else if (q->consumer_count == 0)
		lease_renew(q);
}

void
queue_remove_consumer(struct queue *q, struct consumer *k)
{
	unlink_consumer(q, k);
	one_less(q);
}

/* Clients are told from broker_run. Until then a consumer stays in its session's list, but is not found there. */
static void
put_cancelled(struct queue *q, struct consumer *k)
{
	unlink_consumer(q, k);
	k->session->consumer_count--;
	TAILQ_INSERT_TAIL(&q->broker->cancelled, k, queue_link);
}

void
queue_cancel_consumer(struct consumer *k)
{
	struct queue *q = k->queue;

	put_cancelled(q, k);
	one_less(q);
}

void
queue_drop_cancelled(struct consumer *k)
{
	assert(k->is_cancelled && k->queue == NULL);
	TAILQ_REMOVE(&k->session->broker->cancelled, k, queue_link);
}

/* ---- purge, delete ---- */

uint32_t
queue_purge(struct queue *q)
{
	static struct log_limit lines = { .burst = 200 };
	uint64_t n = queue_drop_ready(q);

	if (q->quorum != NULL)
		n += quorum_purge(q);
	q->broker->stats.purged += n;
	if (n > 0 && log_allowed(&lines))
		log_line(LOG_INFO, q->broker->actor,
		    "queue '%.*s' in vhost '%s' is purged of %" PRIu64 " messages",
		    (int)q->name_len, q->name, q->vhost->name, n);
	return queue_count32(n);
}

const struct error *
queue_delete(struct queue *q, bool if_unused, bool if_empty, uint32_t *messages)
{
	const struct error *e =
	    q->quorum != NULL ? quorum_check_delete(q, if_unused, if_empty) : NULL;

	if (e != NULL)
		return e;
	if (if_empty && q->ready > 0)
		return error_make(E_PRECONDITION_FAILED, "queue '%.*s' in vhost '%s' not empty",
		    (int)q->name_len, q->name, q->vhost->name);
	if (if_unused && q->consumer_count > 0)
		return error_make(E_PRECONDITION_FAILED, "queue '%.*s' in vhost '%s' in use",
		    (int)q->name_len, q->name, q->vhost->name);
	*messages = queue_count32(q->ready);
	queue_remove(q);
	return NULL;
}

struct consumer *
queue_next_cancelled(struct broker *b)
{
	struct consumer *k = TAILQ_FIRST(&b->cancelled);

	if (k != NULL && !k->is_cancelled)
		queue_cancel_consumer(k);
	if (k != NULL)
		TAILQ_REMOVE(&b->cancelled, k, queue_link);
	return k;
}

void
queue_remove(struct queue *q)
{
	struct broker *b = q->broker;
	struct vhost *vh = q->vhost;

	assert(!q->is_deleted);
	event_queue(q, false);
	persist_queue_gone(q);
	dedup_free(b, &q->dedup);
	if (unlikely(q->is_tapped))
		tap_queue_gone(q);
	bindings_drop_queue(q);
	policy_forget_queue(q);
	TAILQ_REMOVE(&vh->queues, q, vhost_link);
	buckets_remove(&vh->queues_by_name, &q->by_name);
	buckets_remove(&vh->queues_by_id, &q->by_id);
	if (b->spill.next == q)
		b->spill.next = TAILQ_NEXT(q, all_link);
	walk_pass(&b->walks, &q->all_link, WALK_LINK(TAILQ_NEXT(q, all_link), all_link));
	TAILQ_REMOVE(&b->queues, q, all_link);
	exchange_changed(vh->default_exchange);
	if (q->owner != NULL)
		LIST_REMOVE(q, owner_link);
	q->owner = NULL;
	if (q->is_runnable)
		TAILQ_REMOVE(&b->runnable, q, run_link);
	q->is_runnable = false;
	q->is_deleted = true;
	/* Each of them in its turn: there may be very many. */
	b->stats.consumers -= q->consumer_count;
	TAILQ_CONCAT(&b->cancelled, &q->consumers, queue_link);
	queue_tidied(q);
	dead_letters_drop(q);
	b->refusing -= q->refuses;
	b->stats.queues_paused -= q->is_paused;
	lease_fini(q);
	b->stats.purged += queue_drop_ready(q);
	b->stats.queues--;
	b->stats.queues_deleted++;
	if (q->quorum != NULL)
		quorum_forget(q);
	q->depth->unacked -= q->unacked;
	q->depth = &b->no_depth;
	series_fini(&b->series, &q->series);
	q->vhost = NULL;
	queue_list_deleted(q);
}

/* ---- the end of a queue ---- */

void
queue_list_deleted(struct queue *q)
{
	if (q->is_deleted && q->unacked == 0 && q->consumer_count == 0 && q->dead == NULL &&
	    !q->is_listed) {
		q->is_listed = true;
		TAILQ_INSERT_TAIL(&q->broker->deleted, q, run_link);
	}
}

void
queue_settled(struct queue *q, uint32_t n, uint64_t bytes)
{
	assert(q->unacked >= n && q->unacked_bytes >= bytes);
	q->unacked -= n;
	q->unacked_bytes -= bytes;
	q->depth->unacked -= n;
	q->broker->stats.messages_unacknowledged -= n;
	if (unlikely(q->is_deleted))
		queue_list_deleted(q);
}

void
queue_free(struct queue *q)
{
	assert(q->is_deleted && q->unacked == 0 && q->ready == 0 && q->dead == NULL &&
	       q->strand.lane == NULL);
	mem_sub(MEM_TOPOLOGY, queue_size(q));
	takers_fini(&q->takers);
	quorum_free(&q->quorum);
	queue_priorities_fini(q);
	queue_ttl_fini(q);
	single_active_fini(q);
	policy_drop(q->policy);
	free(q->name);
	table_free(&q->arguments);
	free(q);
}
