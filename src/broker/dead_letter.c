/* SPDX-License-Identifier: Apache-2.0
 * Dead letters: see the header.
 *
 * At most once, what a classic queue does: the letter goes where its exchange leads now. No exchange, no route, a queue
 * that is full: it is gone, which is counted. At least once (quorum queues that refuse when they are full): it stays on
 * the list until all of its targets take it, and is tried again every second; those behind it wait. They are so many at
 * most: more than HOLD_LETTERS are not made of what expires, but where consumers want what stands behind it, and with
 * KEPT_LETTERS the queue refuses what comes, and its consumers wait.
 *
 * Where each of twelve queues sends its dead letters to the other eleven, one message would become a thousand million: the
 * rule against cycles only says that none dies twice in one queue. So each letter says how many it may be one of
 * (msg_spread()), and where they would be more than SPREAD_MAX says, it is lost. A client that rejects one, or returns it
 * too often, begins anew: it does as much work itself. */
#include "broker/dead_letter.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/death.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/route.h"
#include "broker/tap.h"
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
	FRAME_AROUND = 8,            /* head and end */
	FRAME_HEAD = 7,
	FRAME_END = 0xCE,
	CONTENT_HEAD = 12,
	NAME_MAX_BYTES = 255,
	/* Of a letter, whose header goes out as one frame of the usual size. */
	PROPS_MAX = (128 << 10) - FRAME_AROUND - CONTENT_HEAD,
	PROPS_HEAD = 2 + 4, /* flags, length of the headers */
	SPAN_COST = 4,      /* to go through headers costs this many copied bytes each, */
	WORK_COST = 256,    /* and a queue that a letter enters, or a match on the way to it */
	TARGETS = 64,
	SPREAD_MAX = 12 /* 4,096 letters of one message */
};

struct dead_letters {
	struct queue *queue;             /* borrowed: lives while we do */
	struct vhost *vhost;             /* borrowed: also when the queue was deleted */
	struct entry_block *head, *tail; /* owned */
	uint64_t count, bytes,
	    memory; /* bytes: of bodies; memory: in messages, before bodies too */
	TAILQ_ENTRY(dead_letters) link;      /* broker->dead while is_listed, else dead_waiting */
	LIST_ENTRY(dead_letters) vhost_link; /* vhost->letters */
	bool is_listed;
	bool keeps; /* at least once */
	bool holds; /* dead_letters_hold() said so */
	/* Owned, each with its length before it (NULL: not set): where they went until a policy was cleared. */
	uint8_t *last_exchange, *last_key;
	struct wheel_node retry;
};

static const char *const reasons[] = {
	[DEATH_REJECTED] = "rejected",
	[DEATH_EXPIRED] = "expired",
	[DEATH_MAXLEN] = "maxlen",
	[DEATH_DELIVERY_LIMIT] = "delivery_limit",
	[DEATH_RETAINED] = "retained",
};

static inline uint64_t
seq_of(const struct entry *e)
{
	return e->seq_flags >> 8;
}

static inline enum death_reason
reason_of(const struct entry *e)
{
	return (enum death_reason)(e->seq_flags >> ENTRY_DEATH_SHIFT & 7);
}

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

static size_t
put_name(uint8_t *p, struct span s)
{
	p[0] = (uint8_t)s.n;
	if (s.n > 0)
		memcpy(p + 1, s.p, s.n);
	return 1 + s.n;
}

static uint8_t *
copy_name(struct span s)
{
	uint8_t *p;

	if (s.p == NULL || s.n > NAME_MAX_BYTES)
		return NULL;
	p = xmalloc(1 + s.n);
	(void)put_name(p, s);
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

static struct span
exchange_for(const struct queue *q)
{
	return has_last(q) ? name_of(q->dead->last_exchange) : q->set.dead_letter_exchange;
}

/* p NULL: the message's own. */
static struct span
key_for(const struct queue *q)
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
	if (likely(q->set.dead_letter_exchange.p == NULL) || why == DEATH_RETAINED ||
	    q->is_deleted) {
		queue_entry_gone(q, e,
		    why == DEATH_EXPIRED || why == DEATH_RETAINED ? ACK_EXPIRED : ACK_DROPPED);
		msg_unref(&e->m);
		return;
	}
	/* A purge takes what is behind all that were given out. */
	s = queue_strand(q, e->m);
	if (s->lane != NULL && seq_of(e) > s->delivered)
		s->delivered = seq_of(e);
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

/* ---- the letter ---- */

/* What stands before the body. */
static void
fill(struct msg *m, const struct msg *from, struct span exchange, struct span key,
    const struct props *pr, struct span headers)
{
	uint8_t *p = m->wire;
	uint32_t payload = m->meta_len - m->names_len - FRAME_AROUND;

	p += put_name(p, exchange);
	p += put_name(p, key);
	*p++ = FRAME_END;
	/* frame type, channel, size | class, weight, body size | properties */
	memcpy(p, from->wire + from->names_len, FRAME_HEAD + CONTENT_HEAD);
	put_be32(p + 3, payload);
	(void)props_write_letter(msg_props(from), pr, headers, p + FRAME_HEAD + CONTENT_HEAD);
	p[FRAME_HEAD + payload] = FRAME_END;
}

/* False: there is no memory, or no room in its header for what is to be said of the death, without which it might go
 * round for ever. */
static bool
write_headers(struct table_writer *w, const struct queue *q, const struct entry *e,
    const struct props *pr, bool *no_memory)
{
	static const unsigned older[] = { DEATH_EVENTS_MAX - 1, 3, 0 };
	size_t others =
	    msg_props(e->m).n - pr->headers.n; /* short strings: some thousand bytes at most */
	struct death death = {
		.reason = span_str(reasons[reason_of(e)]),
		.queue = span_of(q->name, q->name_len),
		.exchange = msg_exchange(e->m),
		.key = msg_key(e->m),
		.expiration = pr->expiration,
		.time_s = q->broker->now_ms / 1000,
		.drops_cc = key_for(q).p != NULL,
	};

	for (size_t i = 0; i < COUNT_OF(older); i++) {
		table_writer_init(w, (uint32_t)(PROPS_MAX - PROPS_HEAD - others));
		death_write(w, pr->headers, &death, older[i]);
		if (!w->failed)
			return true;
		*no_memory = w->no_memory;
		table_writer_fini(w);
		if (*no_memory)
			return false;
	}
	return false;
}

/* NULL: no memory. */
static struct msg *
make_letter(
    const struct queue *q, const struct entry *e, const struct props *pr, struct span headers)
{
	struct span key = key_for(q), exchange = exchange_for(q);
	struct msg *m;
	uint16_t names;
	size_t n;

	if (key.p == NULL)
		key = msg_key(e->m);
	assert(key.n <= NAME_MAX_BYTES && exchange.n <= NAME_MAX_BYTES);
	names = (uint16_t)(2 + exchange.n + key.n + 1);
	n = props_write_letter(msg_props(e->m), pr, headers, NULL);
	m = msg_try_like(e->m, names, (uint32_t)(names + FRAME_AROUND + CONTENT_HEAD + n));
	if (m != NULL)
		fill(m, e->m, exchange, key, pr, headers);
	return m;
}

/* ---- its way ---- */

static void
lost(struct queue *q, uint64_t *counter, const char *why)
{
	static struct log_limit cycles = { .burst = 20 }, others = { .burst = 20 };
	bool is_cycle = counter == &q->broker->stats.dead_letter_cycles;

	(*counter)++;
	if (log_allowed(is_cycle ? &cycles : &others))
		log_warning(
		    "a dead letter of queue '%.*s' is lost: %s", (int)q->name_len, q->name, why);
}

static unsigned
spread_of(const struct entry *e, uint32_t targets)
{
	enum death_reason why = reason_of(e);
	bool anew = why == DEATH_REJECTED || why == DEATH_DELIVERY_LIMIT;
	unsigned spread = anew ? 0 : msg_spread(e->m);

	return targets > 1 ? spread + 32 - (unsigned)__builtin_clz(targets - 1) : spread;
}

/* The queues that it may enter: `to` has room for all of the route. Returns how many. */
static uint32_t
choose(struct queue *q, const struct route *route, struct span headers, enum death_reason why,
    struct queue **to)
{
	struct death_path path;
	uint32_t n = 0;

	path.n = 0;
	if (why != DEATH_REJECTED)
		death_path_read(headers, &path);
	for (uint32_t i = 0; i < route->count; i++) {
		struct queue *target = route->queue[i];

		/* As many tables as there is room for: where it died before is no longer known. */
		if (path.n >= DEATH_EVENTS_MAX ||
		    death_is_cycle(&path, span_of(target->name, target->name_len)))
			lost(q, &q->broker->stats.dead_letter_cycles, "it would go round for ever");
		else
			to[n++] = target;
	}
	return n;
}

static bool
any_refuses(struct queue *const *to, uint32_t n, const struct msg *m)
{
	for (uint32_t i = 0; i < n; i++) {
		if (queue_refuses(to[i], m))
			return true;
	}
	return false;
}

/* The new message in, through x, and the old one out. */
static void
forward(struct queue *q, const struct entry *e, struct exchange *x, struct msg *m,
    const struct route *to)
{
	struct broker *b = q->broker;

	if (unlikely(x->is_tapped))
		tap_publish(x, m);
	if (b->store != NULL)
		store_begin(b->store);
	for (uint32_t i = 0; i < to->count; i++)
		to->queue[i]->letters_in++;
	if (publish_forward(b, m, to, 0, PUBLISH_LETTER) != PUBLISH_UNROUTED)
		b->stats.dead_lettered++;
	if (seq_of(e) != 0)
		queue_entry_gone(q, e, ACK_MOVED);
	if (b->store != NULL)
		(void)store_end(b->store);
}

/* `for_good`: to wait would not help. */
static bool
lose(struct dead_letters *d, const struct entry *e, bool for_good, const char *why)
{
	struct queue *q = d->queue;

	if (!for_good && d->keeps && !q->is_deleted)
		return false;
	lost(q, &q->broker->stats.dead_letters_lost, why);
	if (seq_of(e) != 0)
		queue_entry_gone(q, e, ACK_DROPPED);
	return true;
}

/* False: some target does not take it, and it has to wait. */
static bool
send_routed(struct dead_letters *d, const struct entry *e, struct exchange *x, struct msg *m,
    const struct route *route)
{
	struct queue *few[TARGETS], *q = d->queue;
	struct route to = *route;
	struct props pr;
	bool done = true;
	int bad = props_scan(msg_props(m), &pr);
	uint32_t targets;

	assert(bad == 0);
	to.queue = route->count > TARGETS ? xmalloc(route->count * sizeof *to.queue) : few;
	to.count = choose(q, route, pr.headers, reason_of(e), to.queue);
	targets = to.count + to.delays;
	msg_set_spread(m, spread_of(e, targets));
	if (targets > 1 && msg_spread(m) > SPREAD_MAX) {
		msg_unref(&m);
		done = lose(d, e, true, "one message has become too many dead letters");
	} else if (d->keeps && !q->is_deleted &&
	           (targets == 0 || any_refuses(to.queue, to.count, m))) {
		msg_unref(&m);
		done = false;
	} else {
		forward(q, e, x, m, &to);
	}
	if (to.queue != few)
		free(to.queue);
	return done;
}

/* False: it has to wait. */
static bool
send(struct dead_letters *d, const struct entry *e, size_t *cost)
{
	struct queue *q = d->queue;
	struct exchange *x = exchange_find(d->vhost, exchange_for(q));
	const struct route *route;
	struct table_writer w;
	struct props pr, own;
	struct msg *m;
	bool no_memory, done;
	int bad = props_scan(msg_props(e->m), &pr);

	assert(bad == 0);
	*cost = e->m->meta_len * (size_t)SPAN_COST + (e->m->rest == NULL ? e->m->body_size : 0);
	if (exchange_for(q).p == NULL)
		return lose(d, e, true, "its queue has no dead letter exchange any more");
	if (x == NULL)
		return lose(d, e, false, "there is no such exchange");
	if (key_for(q).n > NAME_MAX_BYTES)
		return lose(d, e, true, "its routing key is longer than 255 bytes");
	if (!write_headers(&w, q, e, &pr, &no_memory))
		return no_memory ? lose(d, e, false, "no memory")
		                 : lose(d, e, true, "its headers are too large");
	m = make_letter(q, e, &pr, span_of(w.p, w.n));
	table_writer_fini(&w);
	if (m == NULL)
		return lose(d, e, false, "no memory");
	bad = props_scan(msg_props(m), &own);
	assert(bad == 0);
	route = route_find_msg(x, m, &own);
	if (route != NULL && route->count + route->delays > 0)
		return send_routed(d, e, x, m, route);
	done = lose(d, e, false,
	    route == NULL ? "its route takes too many steps" : "no queue is bound for it");
	if (done && unlikely(x->is_tapped))
		tap_publish(x, m);
	msg_unref(&m);
	return done;
}

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

		if (!send(d, first(d), &cost))
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
