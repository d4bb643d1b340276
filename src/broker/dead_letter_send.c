/* SPDX-License-Identifier: Apache-2.0
 * A dead letter as it is sent: the message made anew, where it goes, and what keeps it from going.
 *
 * Where each of twelve queues sends its dead letters to the other eleven, one message would become a thousand million: the
 * rule against cycles only says that none dies twice in one queue. So each letter says how many it may be one of
 * (msg_spread()), and where they would be more than SPREAD_MAX says, it is lost. A client that rejects one, or returns it
 * too often, begins anew: it does as much work itself. */
#include "broker/dead_letter_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/death.h"
#include "broker/exchange.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/queue_priv.h"
#include "broker/route.h"
#include "broker/tap.h"

enum {
	FRAME_AROUND = 8, /* head and end */
	FRAME_HEAD = 7,
	FRAME_END = 0xCE,
	CONTENT_HEAD = 12,
	/* Of a letter, whose header goes out as one frame of the usual size. */
	PROPS_MAX = (128 << 10) - FRAME_AROUND - CONTENT_HEAD,
	PROPS_HEAD = 2 + 4, /* flags, length of the headers */
	SPAN_COST = 4,      /* to go through headers costs this many copied bytes each */
	TARGETS = 64,
	SPREAD_MAX = 12 /* 4,096 letters of one message */
};

const char *const death_reasons[] = {
	[DEATH_REJECTED] = "rejected",
	[DEATH_EXPIRED] = "expired",
	[DEATH_MAXLEN] = "maxlen",
	[DEATH_DELIVERY_LIMIT] = "delivery_limit",
	[DEATH_RETAINED] = "retained",
};

/* ---- the letter ---- */

/* What stands before the body. */
static void
fill(struct msg *m, const struct msg *from, struct span exchange, struct span key,
    const struct props *pr, struct span headers)
{
	uint8_t *p = m->wire;
	uint32_t payload = m->meta_len - m->names_len - FRAME_AROUND;

	p += letter_put_name(p, exchange);
	p += letter_put_name(p, key);
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
		.reason = span_str(death_reasons[letter_reason(e)]),
		.queue = span_of(q->name, q->name_len),
		.exchange = msg_exchange(e->m),
		.key = msg_key(e->m),
		.expiration = pr->expiration,
		.time_s = q->broker->now_ms / 1000,
		.drops_cc = dead_letters_key(q).p != NULL,
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
	struct span key = dead_letters_key(q), exchange = dead_letters_exchange(q);
	struct msg *m;
	uint16_t names;
	size_t n;

	if (key.p == NULL)
		key = msg_key(e->m);
	assert(key.n <= LETTER_NAME_MAX && exchange.n <= LETTER_NAME_MAX);
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
	enum death_reason why = letter_reason(e);
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
	if (letter_seq(e) != 0)
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
	if (letter_seq(e) != 0)
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
	to.count = choose(q, route, pr.headers, letter_reason(e), to.queue);
	targets = to.count + to.delays;
	msg_set_spread(m, spread_of(e, targets));
	if (targets > 1 && msg_spread(m) > SPREAD_MAX) {
		bound_reached(BOUND_letter_copies);
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

bool
dead_letters_send(struct dead_letters *d, const struct entry *e, size_t *cost)
{
	struct queue *q = d->queue;
	struct exchange *x = exchange_find(d->vhost, dead_letters_exchange(q));
	const struct route *route;
	struct table_writer w;
	struct props pr, own;
	struct msg *m;
	bool no_memory, done;
	int bad = props_scan(msg_props(e->m), &pr);

	assert(bad == 0);
	*cost = e->m->meta_len * (size_t)SPAN_COST + (e->m->rest == NULL ? e->m->body_size : 0);
	if (dead_letters_exchange(q).p == NULL)
		return lose(d, e, true, "its queue has no dead letter exchange any more");
	if (x == NULL)
		return lose(d, e, false, "there is no such exchange");
	if (dead_letters_key(q).n > LETTER_NAME_MAX)
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
