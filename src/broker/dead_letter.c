/* SPDX-License-Identifier: Apache-2.0
 * Dead letters: see the header.
 *
 * At most once, what a classic queue does: the letter goes where its exchange leads now. No exchange, no route, a queue
 * that is full: it is gone, which is counted. At least once (quorum queues that refuse when they are full): it stays on
 * the list until all of its targets take it, and is tried again every second; those behind it wait. They are so many at
 * most: more than HOLD_LETTERS are not made of what expires, but where consumers want what stands behind it, and with
 * KEPT_LETTERS the queue refuses what comes, and its consumers wait. The letter itself is dead_letter_send.c's. */
#include "broker/dead_letter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/dead_letter_priv.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/trace.h"
#include "broker/vhost.h"

enum {
	RUN_LETTERS = 256,   /* a call of dead_letters_run() */
	RUN_BYTES = 1 << 20, /* copied, or gone through */
	RUN_SLICE = 32,      /* of one queue before the next has its turn */
	HOLD_LETTERS = 8192, /* that wait, of one queue: see dead_letters_hold() */
	HOLD_BYTES = 8 << 20,
	RETRY_MS = 1000,
	MANY_LETTERS = 1 << 16, /* the same, of all queues: each may have but few then */
	MANY_BYTES = 32 << 20,
	FEW_LETTERS = 256,
	FEW_BYTES = 64 << 10,
	KEPT_LETTERS = 1 << 16, /* of a queue that keeps them: see dead_letters_full() */
	KEPT_BYTES = 64 << 20,
	KEPT_MANY_BYTES = 256 << 20, /* the same, of all queues */
	WORK_COST = 256              /* copied bytes that a unit of broker->work counts as */
};

static inline bool
keeps(const struct queue *q)
{
	return q->set.at_least_once && q->set.overflow == OVERFLOW_REJECT;
}

/* ---- how many ---- */

/* n more, or fewer: n and the others may be negative. */
static void
count(struct dead_letters *d, uint64_t n, uint64_t bytes, uint64_t memory)
{
	struct broker *b = d->queue->broker;

	d->count += n;
	d->bytes += bytes;
	d->memory += memory;
	if (d->keeps) {
		b->stats.dead_letters_kept += n;
		b->kept_bytes += memory;
		return;
	}
	b->stats.dead_letters += n;
	b->letter_bytes += memory;
}

static void
count_in(struct dead_letters *d, const struct msg *m)
{
	count(d, 1, m->body_size, m->body_size + m->meta_len);
}

static void
count_out(struct dead_letters *d, const struct msg *m)
{
	count(d, 0 - (uint64_t)1, 0 - m->body_size, 0 - (m->body_size + m->meta_len));
}

static inline bool
is_much(const struct dead_letters *d)
{
	const struct broker *b = d->queue->broker;
	uint64_t all = d->keeps ? b->stats.dead_letters_kept : b->stats.dead_letters;
	uint64_t bytes = d->keeps ? b->kept_bytes : b->letter_bytes;
	bool many = all >= MANY_LETTERS || bytes >= MANY_BYTES;

	return d->count >= (many ? FEW_LETTERS : HOLD_LETTERS) ||
	       d->memory >= (many ? FEW_BYTES : HOLD_BYTES);
}

bool
dead_letters_hold(struct queue *q)
{
	if (q->dead == NULL || !is_much(q->dead))
		return false;
	q->dead->holds = true;
	return true;
}

bool
dead_letters_full(struct queue *q)
{
	struct dead_letters *d = q->dead;

	if (d == NULL || !d->keeps || !dead_letters_hold(q))
		return false;
	return d->count >= KEPT_LETTERS || d->memory >= KEPT_BYTES ||
	       q->broker->kept_bytes >= KEPT_MANY_BYTES;
}

static void
hold_no_more(struct dead_letters *d)
{
	d->holds = false;
	d->queue->broker->letters_eased++;
	if (!d->queue->is_deleted)
		queue_tidy_later(d->queue);
}

static void
ease(struct dead_letters *d)
{
	if (d->holds && d->count < HOLD_LETTERS / 2 && d->memory < HOLD_BYTES / 2 && !is_much(d))
		hold_no_more(d);
}

/* Those that are kept until they are taken may wait for ever. */
void
dead_letters_check_late(struct queue *q)
{
	static struct log_limit limit = { .burst = 2 };

	if (q->dead->keeps || !dead_letters_hold(q))
		return;
	q->broker->letters_late = true;
	if (log_allowed(&limit))
		log_info("queue '%.*s' gives up messages faster than they can be sent on: who "
		         "publishes to it waits",
		    (int)q->name_len, q->name);
}

/* ---- the list ---- */

static void
list(struct dead_letters *d)
{
	if (d->is_listed)
		return;
	d->is_listed = true;
	TAILQ_REMOVE(&d->queue->broker->dead_waiting, d, link);
	TAILQ_INSERT_TAIL(&d->queue->broker->dead, d, link);
}

static void
unlist(struct dead_letters *d)
{
	d->is_listed = false;
	TAILQ_REMOVE(&d->queue->broker->dead, d, link);
	TAILQ_INSERT_TAIL(&d->queue->broker->dead_waiting, d, link);
}

static void
on_retry(struct wheel_node *node, uint64_t now_ms UNUSED)
{
	list(container_of(node, struct dead_letters, retry));
}

static struct dead_letters *
letters_of(struct queue *q)
{
	struct dead_letters *d = q->dead;

	if (d != NULL)
		return d;
	d = q->dead = xcalloc(1, sizeof *d);
	d->queue = q;
	d->vhost = q->vhost;
	d->keeps = keeps(q);
	d->retry.fire = on_retry;
	TAILQ_INSERT_TAIL(&q->broker->dead_waiting, d, link);
	LIST_INSERT_HEAD(&d->vhost->letters, d, vhost_link);
	return d;
}

/* ---- where to ---- */

static uint8_t *
copy_name(struct span s)
{
	uint8_t *p;

	if (s.p == NULL || s.n > LETTER_NAME_MAX)
		return NULL;
	p = xmalloc(1 + s.n);
	(void)letter_put_name(p, s);
	return p;
}

static struct span
name_of(const uint8_t *p)
{
	return p != NULL ? span_of(p + 1, p[0]) : span_of(NULL, 0);
}

static void
forget_last(struct dead_letters *d)
{
	free(d->last_exchange);
	free(d->last_key);
	d->last_exchange = d->last_key = NULL;
}

void
dead_letters_settings_change(struct queue *q, const struct queue_settings *old)
{
	struct dead_letters *d = q->dead;

	if (d == NULL || d->keeps || old->dead_letter_exchange.p == NULL)
		return;
	forget_last(d);
	d->last_exchange = copy_name(old->dead_letter_exchange);
	d->last_key = copy_name(old->dead_letter_key);
}

static bool
has_last(const struct queue *q)
{
	return unlikely(q->set.dead_letter_exchange.p == NULL) && q->dead->last_exchange != NULL;
}

struct span
dead_letters_exchange(const struct queue *q)
{
	return has_last(q) ? name_of(q->dead->last_exchange) : q->set.dead_letter_exchange;
}

/* p NULL: the message's own. */
struct span
dead_letters_key(const struct queue *q)
{
	return has_last(q) ? name_of(q->dead->last_key) : q->set.dead_letter_key;
}

static void
letters_free(struct dead_letters *d)
{
	struct queue *q = d->queue;

	assert(d->count == 0 && d->head == NULL);
	if (d->holds)
		hold_no_more(d);
	TAILQ_REMOVE(d->is_listed ? &q->broker->dead : &q->broker->dead_waiting, d, link);
	LIST_REMOVE(d, vhost_link);
	wheel_disarm(q->broker->wheel, &d->retry);
	forget_last(d);
	free(d);
	q->dead = NULL;
	queue_list_deleted(q);
}

static void
push(struct queue *q, const struct entry *e, enum death_reason why)
{
	struct dead_letters *d = letters_of(q);
	struct entry to = *e;

	to.seq_flags = (to.seq_flags & ~((uint64_t)7 << ENTRY_DEATH_SHIFT)) |
	               (uint64_t)why << ENTRY_DEATH_SHIFT;
	strand_append_to(&d->head, &d->tail, &to);
	count_in(d, e->m);
	/* Behind one that waits to be tried again. */
	if (!wheel_armed(&d->retry))
		list(d);
}

static struct entry *
first(const struct dead_letters *d)
{
	return &d->head->e[d->head->head];
}

static void
pop(struct dead_letters *d)
{
	struct entry_block *k = d->head;

	count_out(d, k->e[k->head].m);
	msg_unref(&k->e[k->head].m);
	if (++k->head < k->tail)
		return;
	d->head = k->next;
	if (d->head == NULL)
		d->tail = NULL;
	strand_free_block(k);
}

/* ---- giving up ---- */

void
dead_letter_count(struct queue *q, enum death_reason why, uint32_t n)
{
	struct broker_stats *all = &q->broker->stats;

	switch (why) {
	case DEATH_EXPIRED:
		q->stats.expired += n;
		all->expired += n;
		break;
	case DEATH_RETAINED:
		q->stats.retained_out += n;
		all->retained_out += n;
		break;
	case DEATH_MAXLEN:
		q->stats.dropped_maxlen += n;
		all->dropped_maxlen += n;
		break;
	case DEATH_DELIVERY_LIMIT:
		q->stats.over_delivery_limit += n;
		all->over_delivery_limit += n;
		break;
	case DEATH_REJECTED: break; /* counted as what the client did */
	}
}

void
dead_letter(struct queue *q, struct entry *e, enum death_reason why)
{
	struct strand *s;

	dead_letter_count(q, why, 1);
	if (unlikely(q->broker->tracing > 0))
		trace_death(q, e, death_reasons[why]);
	if (likely(q->set.dead_letter_exchange.p == NULL) || why == DEATH_RETAINED ||
	    q->is_deleted) {
		queue_entry_gone(q, e,
		    why == DEATH_EXPIRED || why == DEATH_RETAINED ? ACK_EXPIRED : ACK_DROPPED);
		msg_unref(&e->m);
		return;
	}
	/* A purge takes what is behind all that were given out. */
	s = queue_strand(q, e->m);
	if (s->lane != NULL && letter_seq(e) > s->delivered)
		s->delivered = letter_seq(e);
	if (keeps(q) && q->quorum != NULL)
		quorum_mark_dead(q, e, why);
	push(q, e, why);
	e->m = NULL;
}

void
dead_letter_refused(struct queue *q, struct msg *m)
{
	struct entry e = { .m = m };

	if (q->set.dead_letter_exchange.p == NULL)
		return;
	msg_ref(m);
	push(q, &e, DEATH_MAXLEN);
}

/* ---- the turn ---- */

/* The disk does not keep up, or is full, and each letter would be one more thing to write. While it is only the journal
 * that is full they go on: what they leave is what it is full of. */
static bool
is_held(const struct dead_letters *d)
{
	const struct store *store = d->queue->broker->store;

	return d->queue->durable && store != NULL &&
	       (store_is_behind(store) || store_hold(store) == STORE_DISK_FULL);
}

/* A policy may have changed what the queue does. */
static void
follow_settings(struct dead_letters *d)
{
	struct broker *b = d->queue->broker;
	bool now = keeps(d->queue);

	if (likely(d->keeps == now))
		return;
	d->keeps = now;
	b->stats.dead_letters_kept += now ? d->count : 0 - d->count;
	b->kept_bytes += now ? d->memory : 0 - d->memory;
	b->stats.dead_letters += now ? 0 - d->count : d->count;
	b->letter_bytes += now ? 0 - d->memory : d->memory;
}

/* True: go on; false: the first of them has to wait. */
static bool
run_slice(struct dead_letters *d, unsigned *letters, size_t *bytes)
{
	const struct broker *b = d->queue->broker;

	follow_settings(d);
	if (is_held(d))
		return false;
	for (unsigned n = 0; n < RUN_SLICE && d->count > 0 && *letters > 0; n++) {
		uint64_t before = b->work;
		size_t cost;

		if (!dead_letters_send(d, first(d), &cost))
			return false;
		pop(d);
		--*letters;
		cost += (b->work - before) * WORK_COST;
		*bytes -= cost < *bytes ? cost : *bytes;
		if (*bytes == 0)
			*letters = 0;
	}
	return true;
}

bool
dead_letters_run(struct broker *b)
{
	unsigned letters = RUN_LETTERS;
	size_t bytes = RUN_BYTES;
	struct dead_letters *d;

	while (letters > 0 && (d = TAILQ_FIRST(&b->dead)) != NULL) {
		bool goes_on;

		unlist(d);
		goes_on = run_slice(d, &letters, &bytes);
		ease(d);
		if (d->count == 0)
			letters_free(d);
		else if (goes_on)
			list(d);
		else
			wheel_arm(b->wheel, &d->retry, b->now_ms + RETRY_MS);
	}
	return !TAILQ_EMPTY(&b->dead);
}

/* ---- the end ---- */

uint64_t
dead_letters_kept(const struct queue *q, uint64_t *bytes)
{
	if (q->dead == NULL || !q->dead->keeps)
		return 0;
	*bytes = q->dead->bytes;
	return q->dead->count;
}

/* For good, as far as the store is concerned: there the queue is gone, or stays as it is. The messages go in slices, for
 * there may be very many. */
static void
drop_all(struct dead_letters *d)
{
	queue_put_garbage(d->queue->broker, d->head, d->tail);
	d->head = d->tail = NULL;
	count(d, 0 - d->count, 0 - d->bytes, 0 - d->memory);
	letters_free(d);
}

void
dead_letters_drop(struct queue *q)
{
	if (q->dead != NULL && q->dead->keeps)
		drop_all(q->dead);
}

void
dead_letters_stop(struct broker *b)
{
	while (!TAILQ_EMPTY(&b->dead_waiting))
		drop_all(TAILQ_FIRST(&b->dead_waiting));
	while (!TAILQ_EMPTY(&b->dead))
		drop_all(TAILQ_FIRST(&b->dead));
}

bool
dead_letters_forget_some(struct vhost *vh, unsigned *left)
{
	struct dead_letters *d;

	for (; *left > 0 && (d = LIST_FIRST(&vh->letters)) != NULL; --*left) {
		vh->broker->stats.dead_letters_lost += d->count;
		drop_all(d);
	}
	return !LIST_EMPTY(&vh->letters);
}
