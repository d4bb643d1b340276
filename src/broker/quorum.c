/* SPDX-License-Identifier: Apache-2.0
 * Quorum queues: see quorum.h.
 *
 * A message that goes to the tail gets a new sequence number there, and the store a new record: the message with its
 * counts enters, the old place is given up, all in one. So a restart finds it where it was. Each way through the queue
 * is written, as in RabbitMQ; while the store can take no more it goes back to its old place instead. */
#include "broker/quorum.h"

#include <assert.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/dead_letter.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum {
	MOVES = 256, /* messages that go to the tail before others have their turn */
	MOVED_BYTES = 1 << 20
};

struct quorum {
	struct queue *queue;             /* borrowed: the one that we are a part of */
	struct entry_block *head, *tail; /* owned: those on their way, in queue->unacked */
	bool is_listed;
	TAILQ_ENTRY(quorum) link; /* broker->moving while head != NULL */
};

struct quorum *
quorum_new(struct queue *q)
{
	struct quorum *w = xcalloc(1, sizeof *w);

	w->queue = q;
	q->strand.is_fifo = true;
	mem_add(MEM_TOPOLOGY, sizeof *w);
	q->broker->stats.quorum_queues++;
	return w;
}

void
quorum_free(struct quorum **qp)
{
	if (*qp == NULL)
		return;
	assert((*qp)->head == NULL && !(*qp)->is_listed);
	mem_sub(MEM_TOPOLOGY, sizeof **qp);
	free(*qp);
	*qp = NULL;
}

/* ---- what is refused ---- */

const struct error *
quorum_check_nameless(const struct queue_spec *spec)
{
	struct field f;

	if (!table_find(table_span(spec->arguments), "x-queue-type", &f) || f.kind != 'S' ||
	    !span_is(f.bytes, "quorum"))
		return NULL;
	return error_make(E_PRECONDITION_FAILED,
	    "Cannot declare a server-named queue for type rabbit_quorum_queue");
}

const struct error *
quorum_check_spec(const struct vhost *vh, const struct queue_spec *spec)
{
	const char *what = spec->auto_delete ? "auto-delete"
	                   : spec->exclusive ? "exclusive-owner"
	                   : !spec->durable  ? "non-durable"
	                                     : NULL;

	if (what == NULL)
		return NULL;
	return error_make(E_PRECONDITION_FAILED,
	    "invalid property '%s' for queue '%.*s' in vhost '%s'", what, SPAN_FMT(spec->name),
	    vh->name);
}

const struct error *
quorum_check_delete(const struct queue *q, bool if_unused, bool if_empty)
{
	if (!if_unused && !if_empty)
		return NULL;
	return error_make(E_NOT_IMPLEMENTED,
	    "cannot delete queue '%.*s' in vhost '%s'. queue.delete operations with %s flag set "
	    "are not supported by quorum queues",
	    (int)q->name_len, q->name, q->vhost->name, if_unused ? "if-unused" : "if-empty");
}

const struct error *
quorum_check_consume(const struct queue *q, const struct session *s)
{
	if (s->limit == 0)
		return NULL;
	return error_make(E_NOT_IMPLEMENTED,
	    "queue '%.*s' in vhost '%s' does not support global qos", (int)q->name_len, q->name,
	    q->vhost->name);
}

const struct error *
quorum_check_get(const struct queue *q)
{
	if (!q->set.single_active)
		return NULL;
	return error_make(E_RESOURCE_LOCKED,
	    "cannot obtain access to locked queue '%.*s' in vhost '%s'. basic.get operations are "
	    "not supported by quorum queues with single active consumer",
	    (int)q->name_len, q->name, q->vhost->name);
}

/* ---- what comes back ---- */

uint64_t
quorum_delivery_limit(const struct queue *q)
{
	uint32_t node = q->broker->cfg->quorum_delivery_limit;

	if (q->set.delivery_limit != SETTING_NONE)
		return q->set.delivery_limit;
	return node != 0 ? node : SETTING_NONE;
}

static void
drop_over_limit(struct queue *q, const struct entry *e)
{
	struct entry gone = *e;

	dead_letter(q, &gone, DEATH_DELIVERY_LIMIT);
}

static void
put_on_way(struct quorum *w, const struct entry *e)
{
	struct queue *q = w->queue;

	strand_append_to(&w->head, &w->tail, e);
	q->unacked++;
	q->unacked_bytes += e->m->body_size;
	q->depth->unacked++;
	q->broker->stats.messages_unacknowledged++;
	if (w->is_listed)
		return;
	w->is_listed = true;
	TAILQ_INSERT_TAIL(&q->broker->moving, w, link);
}

bool
quorum_take_back(struct queue *q, const struct entry *e, enum settle how)
{
	uint64_t limit = quorum_delivery_limit(q);

	if (limit == SETTING_NONE) {
		if (how == SETTLE_LOST || persist_hold(q->broker) != NULL)
			return false;
		put_on_way(q->quorum, e);
		return true;
	}
	if (e->acquired <= limit)
		return false;
	drop_over_limit(q, e);
	return true;
}

/* What the store has as the number of times that it came back. */
static inline uint32_t
dead_count(enum death_reason why)
{
	return UINT32_MAX - (uint32_t)why;
}

void
quorum_mark_dead(struct queue *q, const struct entry *e, enum death_reason why)
{
	struct strand *s = queue_strand(q, e->m);
	struct op_state state = { true, e->deliveries, dead_count(why) };

	if (s->lane != NULL)
		lane_set_state(s->lane, e->seq_flags >> 8, &state);
}

bool
quorum_take_restored(struct queue *q, struct entry *e)
{
	if (e->acquired >= dead_count(DEATH_RETAINED)) {
		enum death_reason why = (enum death_reason)(UINT32_MAX - e->acquired);

		e->acquired = e->deliveries;
		dead_letter(q, e, why);
		return true;
	}
	if (e->deliveries == 0 && e->seq_flags & ENTRY_REDELIVERED)
		e->deliveries = 1;
	if (e->deliveries > e->acquired)
		e->acquired = e->deliveries;
	if (e->acquired <= quorum_delivery_limit(q))
		return false;
	/* Where it goes may not be there yet: the start is under way. */
	put_on_way(q->quorum, e);
	return true;
}

static void
move_to_tail(struct queue *q, struct entry *e)
{
	struct strand *s = queue_strand(q, e->m);
	struct entry to = *e;

	to.seq_flags = s->next_seq << 8 | (e->seq_flags & 0xff);
	if (s->lane != NULL) {
		struct lane_place place = { .lane = s->lane, .seq = s->next_seq };
		struct op_state state = { true, to.deliveries, to.acquired };

		(void)store_publish(q->broker->store, &place, 1, to.m);
		lane_set_state(s->lane, s->next_seq, &state);
		strand_entry_gone(s, e, ACK_MOVED);
	}
	s->next_seq++;
	strand_append(s, &to);
}

/* Returns how many it moved. */
static unsigned
move_some(struct quorum *w, unsigned max)
{
	struct queue *q = w->queue;
	struct store *store = q->strand.lane != NULL ? q->broker->store : NULL;
	uint64_t bytes = 0;
	struct entry_block *k;
	unsigned n = 0;

	if (store != NULL)
		store_begin(store);
	while (n < max && bytes < MOVED_BYTES && (k = w->head) != NULL) {
		struct entry *e = &k->e[k->head++];

		bytes += e->m->body_size;
		k->bytes -= e->m->body_size;
		n++;
		if (unlikely(e->acquired > quorum_delivery_limit(q)))
			drop_over_limit(q, e);
		else
			move_to_tail(q, e);
		if (k->head < k->tail)
			continue;
		w->head = k->next;
		strand_free_block(k);
	}
	if (w->head == NULL)
		w->tail = NULL;
	if (store != NULL)
		(void)store_end(store);
	q->broker->work += n;
	queue_settled(q, n, bytes);
	return n;
}

static void
unlist(struct quorum *w)
{
	w->is_listed = false;
	TAILQ_REMOVE(&w->queue->broker->moving, w, link);
}

void
quorum_returned_done(struct queue *q)
{
	struct quorum *w = q->quorum;

	/* A commit's record is open: the next turn will do. */
	if (!w->is_listed || (q->broker->store != NULL && store_record_is_open(q->broker->store)))
		return;
	(void)move_some(w, MOVES);
	if (w->head == NULL)
		unlist(w);
}

bool
quorum_run(struct broker *b)
{
	unsigned left = MOVES;
	struct quorum *w;

	while (left > 0 && (w = TAILQ_FIRST(&b->moving)) != NULL) {
		left -= move_some(w, left);
		queue_offer_returned(w->queue);
		unlist(w);
		if (w->head == NULL)
			continue;
		w->is_listed = true;
		TAILQ_INSERT_TAIL(&b->moving, w, link);
		break; /* large ones: a turn has enough with them */
	}
	return !TAILQ_EMPTY(&b->moving);
}

uint64_t
quorum_purge(struct queue *q)
{
	struct quorum *w = q->quorum;
	struct entry_block *k;
	uint64_t n = 0, bytes = 0;

	if (!w->is_listed)
		return 0;
	while ((k = w->head) != NULL) {
		w->head = k->next;
		n += k->tail - k->head;
		bytes += k->bytes;
		for (uint32_t i = k->head; i < k->tail; i++)
			strand_entry_gone(&q->strand, &k->e[i], ACK_PURGED);
		strand_drop_block(&q->strand, k);
	}
	w->tail = NULL;
	unlist(w);
	queue_settled(q, (uint32_t)n, bytes);
	return n;
}

void
quorum_forget(struct queue *q)
{
	q->broker->stats.quorum_queues--;
	q->broker->stats.purged += quorum_purge(q);
}
