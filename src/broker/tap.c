/* SPDX-License-Identifier: Apache-2.0
 * What waits in a tap is a row of records in one piece of memory: a head, then exchange, key, properties and body. They
 * are taken from its front; when the end has no room, those that wait move to the front. */
#include "broker/tap.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/queue.h"
#include "broker/vhost.h"

enum { WINDOW_MS = 1000, KEY_WORK = 64 /* bytes of keys, in units of broker->work */ };

struct record {
	uint64_t at_ms, body_size;
	uint32_t props, body; /* bytes that follow */
	uint8_t exchange, key;
};

struct tap {
	LIST_ENTRY(tap) link;
	struct broker *broker;     /* borrowed, outlives us */
	struct exchange *exchange; /* borrowed; NULL: gone, or never there */
	struct queue *queue;       /* the same */
	uint32_t rate, body;
	uint64_t window_ms; /* when the second began in which so many came: */
	uint32_t in_window;
	uint64_t left_out;
	uint32_t from, to; /* in memory: what waits */
	uint8_t *memory;   /* owned: TAP_BYTES */
	bool has_key;
	uint8_t key_len, key[255];
};

struct tap *
tap_new(struct broker *b, const struct tap_spec *spec)
{
	struct tap *t;

	assert((spec->exchange != NULL) != (spec->queue != NULL));
	assert(spec->rate > 0 && spec->rate <= TAP_RATE_MAX && spec->body <= TAP_BODY_MAX);
	assert(spec->key.n <= sizeof t->key);
	if (b->tap.stats.open == TAPS_MAX) {
		b->tap.stats.refused++;
		return NULL;
	}
	t = xcalloc(1, sizeof *t);
	t->memory = xmalloc(TAP_BYTES);
	mem_add(MEM_OUTPUT, TAP_BYTES);
	t->broker = b;
	t->rate = spec->rate;
	t->body = spec->body;
	t->exchange = spec->exchange;
	t->queue = spec->queue;
	t->has_key = spec->key.p != NULL;
	t->key_len = (uint8_t)spec->key.n;
	if (spec->key.n > 0)
		memcpy(t->key, spec->key.p, spec->key.n);
	if (t->exchange != NULL)
		t->exchange->is_tapped = true;
	else
		t->queue->is_tapped = true;
	b->tap.queues += t->queue != NULL;
	b->watched += t->exchange != NULL;
	LIST_INSERT_HEAD(&b->tap.all, t, link);
	b->tap.stats.open++;
	b->tap.stats.made++;
	return t;
}

/* Does somebody else watch it? */
static void
set_flags(struct broker *b, struct exchange *x, struct queue *q)
{
	const struct tap *t;
	bool any = false;

	LIST_FOREACH (t, &b->tap.all, link)
		any |= t->exchange == x && t->queue == q;
	if (x != NULL)
		x->is_tapped = any;
	if (q != NULL)
		q->is_tapped = any;
}

void
tap_free(struct tap **tp)
{
	struct tap *t = *tp;

	*tp = NULL;
	if (t == NULL)
		return;
	LIST_REMOVE(t, link);
	t->broker->tap.stats.open--;
	t->broker->tap.queues -= t->queue != NULL;
	t->broker->watched -= t->exchange != NULL;
	set_flags(t->broker, t->exchange, t->queue);
	mem_sub(MEM_OUTPUT, TAP_BYTES);
	free(t->memory);
	free(t);
}

struct exchange *
tap_exchange(const struct tap *t)
{
	return t->exchange;
}

struct queue *
tap_queue(const struct tap *t)
{
	return t->queue;
}

void
tap_exchange_gone(struct exchange *x)
{
	struct tap *t;

	LIST_FOREACH (t, &x->vhost->broker->tap.all, link) {
		if (t->exchange != x)
			continue;
		t->exchange = NULL;
		x->vhost->broker->watched--;
	}
	x->is_tapped = false;
}

void
tap_queue_gone(struct queue *q)
{
	struct tap *t;

	LIST_FOREACH (t, &q->broker->tap.all, link) {
		if (t->queue != q)
			continue;
		t->queue = NULL;
		q->broker->tap.queues--;
	}
	q->is_tapped = false;
}

/* ---- what is wanted ---- */

static size_t
word(struct span s, size_t at)
{
	const uint8_t *dot = at < s.n ? memchr(s.p + at, '.', s.n - at) : NULL;

	return dot != NULL ? (size_t)(dot - s.p) - at : s.n - at;
}

/* As a topic exchange matches: words between dots, `*` is one of them, `#` any number. What stood before the last `#` need
 * not be looked at again, so it takes no more steps than the two lengths multiplied. A position behind the end, s.n + 1, is
 * where there are no more words. */
static bool
matches(struct span pattern, struct span key)
{
	size_t p = 0, k = 0, again_p = SIZE_MAX, again_k = 0;

	if (key.n == 0)
		k = 1; /* "" has no words */
	if (pattern.n == 0)
		p = 1;
	while (k <= key.n) {
		size_t pn = p <= pattern.n ? word(pattern, p) : 0, kn = word(key, k);

		if (p <= pattern.n && pn == 1 && pattern.p[p] == '#') {
			p += 2;
			again_p = p;
			again_k = k;
		} else if (p <= pattern.n &&
		           ((pn == 1 && pattern.p[p] == '*') ||
		               (pn == kn && memcmp(pattern.p + p, key.p + k, kn) == 0))) {
			p += pn + 1;
			k += kn + 1;
		} else if (again_p != SIZE_MAX) {
			again_k += word(key, again_k) + 1;
			k = again_k;
			p = again_p;
		} else {
			return false;
		}
	}
	while (p <= pattern.n && word(pattern, p) == 1 && pattern.p[p] == '#')
		p += 2;
	return p > pattern.n;
}

static bool
is_wanted(struct tap *t, const struct msg *m)
{
	struct span key = msg_key(m);

	if (!t->has_key)
		return true;
	t->broker->work += 1 + key.n * t->key_len / (KEY_WORK * KEY_WORK);
	return matches(span_of(t->key, t->key_len), key);
}

static bool
is_in_rate(struct tap *t)
{
	uint64_t now_ms = t->broker->now_ms;

	if (now_ms - t->window_ms >= WINDOW_MS) {
		t->window_ms = now_ms;
		t->in_window = 0;
	}
	return t->in_window++ < t->rate;
}

/* ---- records ---- */

static uint8_t *
put(uint8_t *to, struct span s)
{
	if (s.n > 0)
		memcpy(to, s.p, s.n);
	return to + s.n;
}

static void
put_body(uint8_t *to, const struct msg *m, size_t n)
{
	const struct msg_piece *p = m->rest;

	if (p == NULL)
		(void)put(to, span_of(n > 0 ? msg_body(m) : NULL, n));
	for (; p != NULL && n > 0; p = p->next) {
		size_t part = p->n < n ? p->n : n;

		to = put(to, span_of(p->d, part));
		n -= part;
	}
}

/* False: there is no room. */
static bool
make_room(struct tap *t, size_t n)
{
	if (TAP_BYTES - t->to >= n)
		return true;
	if (TAP_BYTES - (t->to - t->from) < n)
		return false;
	memmove(t->memory, t->memory + t->from, t->to - t->from);
	t->to -= t->from;
	t->from = 0;
	return true;
}

static bool
keep(struct tap *t, const struct msg *m)
{
	struct span x = msg_exchange(m), key = msg_key(m), props = msg_props(m);
	size_t body = m->body_size < t->body ? (size_t)m->body_size : t->body;
	struct record r = { .at_ms = t->broker->now_ms,
		.body_size = m->body_size,
		.props = (uint32_t)props.n,
		.body = (uint32_t)body,
		.exchange = (uint8_t)x.n,
		.key = (uint8_t)key.n };
	size_t n = sizeof r + x.n + key.n + props.n + body;
	uint8_t *to;

	if (!make_room(t, n))
		return false;
	to = put(t->memory + t->to, span_of(&r, sizeof r));
	to = put(put(put(to, x), key), props);
	put_body(to, m, body);
	t->to += (uint32_t)n;
	return true;
}

static void
take_copy(struct tap *t, const struct msg *m)
{
	struct tap_stats *s = &t->broker->tap.stats;

	if (!is_wanted(t, m))
		return;
	if (is_in_rate(t) && keep(t, m)) {
		s->messages++;
	} else {
		t->left_out++;
		s->left_out++;
	}
}

void
tap_publish(struct exchange *x, const struct msg *m)
{
	struct tap *t;

	LIST_FOREACH (t, &x->vhost->broker->tap.all, link) {
		if (t->exchange == x)
			take_copy(t, m);
	}
}

void
tap_enter(struct broker *b, const struct msg *m, struct queue *const *queue, uint32_t n)
{
	struct tap *t;

	for (uint32_t i = 0; i < n; i++) {
		if (!queue[i]->is_tapped)
			continue;
		LIST_FOREACH (t, &b->tap.all, link) {
			if (t->queue == queue[i])
				take_copy(t, m);
		}
	}
}

bool
tap_take(struct tap *t, struct tapped *out)
{
	const uint8_t *at = t->memory + t->from;
	struct record r;

	if (t->from == t->to) {
		t->from = t->to = 0;
		return false;
	}
	memcpy(&r, at, sizeof r);
	at += sizeof r;
	*out = (struct tapped){ .body_size = r.body_size, .at_ms = r.at_ms };
	out->exchange = span_of(at, r.exchange);
	out->key = span_of(at + r.exchange, r.key);
	out->props = span_of(out->key.p + r.key, r.props);
	out->body = span_of(out->props.p + r.props, r.body);
	t->from = (uint32_t)(out->body.p + r.body - t->memory);
	return true;
}

uint64_t
tap_left_out(struct tap *t)
{
	uint64_t n = t->left_out;

	t->left_out = 0;
	return n;
}

void
tap_stats(const struct broker *b, struct tap_stats *out)
{
	*out = b->tap.stats;
}
