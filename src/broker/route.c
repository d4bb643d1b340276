/* SPDX-License-Identifier: Apache-2.0
 * Finds routes. A walk goes from the exchange over those that bindings or alternates lead to, each once, and marks the
 * queues it meets; marks carry the number of the walk, so that nothing has to be cleared. */
#include "broker/route.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/delay.h"
#include "broker/exchange_type/headers.h"
#include "broker/exchange_type/type.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/queue.h"
#include "broker/route_cache.h"
#include "broker/table.h"
#include "broker/vhost.h"

/* Scratch of all walks: arrays that keep their size. Queues and exchanges are as many as clients declared. */
static struct {
	struct queue **queue;
	struct exchange **exchange, **delay;
	struct span *key;
	uint32_t queue_cap, exchange_cap, delay_cap, key_cap;
	struct message_headers *headers;
	struct route route;
	uint64_t mark;
} scratch;

struct route_walk {
	struct span headers, props;
	uint32_t queues, exchanges, delays, steps;
	uint32_t repeats; /* bindings hit that led where others had led before */
	bool hit;         /* the exchange in hand matched something */
	bool has_headers; /* scratch.headers was set up for this message */
	bool by_key, by_headers, bad_delay;
	struct route_watch *watch; /* NULL: nobody looks on */
	uint32_t at;               /* the exchange in hand */
	bool is_stopped;           /* by the watch */
};

void
route_fini(void)
{
	free(scratch.queue);
	free(scratch.exchange);
	free(scratch.delay);
	free(scratch.key);
	message_headers_free(&scratch.headers);
	scratch.queue = NULL;
	scratch.exchange = scratch.delay = NULL;
	scratch.key = NULL;
	scratch.queue_cap = scratch.exchange_cap = scratch.delay_cap = scratch.key_cap = 0;
}

static void
add_queue(struct route_walk *w, struct queue *q)
{
	if (q->route_mark == scratch.mark) {
		w->repeats++;
		return;
	}
	q->route_mark = scratch.mark;
	if (w->queues == scratch.queue_cap) {
		scratch.queue_cap = scratch.queue_cap == 0 ? 64 : scratch.queue_cap * 2;
		scratch.queue = xrealloc(scratch.queue, scratch.queue_cap * sizeof(struct queue *));
	}
	scratch.queue[w->queues++] = q;
}

static void
add_exchange(struct route_walk *w, struct exchange *x)
{
	if (x->mark == scratch.mark) {
		w->repeats++;
		return;
	}
	x->mark = scratch.mark;
	if (w->exchanges == scratch.exchange_cap) {
		scratch.exchange_cap = scratch.exchange_cap == 0 ? 16 : scratch.exchange_cap * 2;
		scratch.exchange =
		    xrealloc(scratch.exchange, scratch.exchange_cap * sizeof(struct exchange *));
	}
	scratch.exchange[w->exchanges++] = x;
}

/* Does x keep the message for a while? Then it is one of the places that it goes to. */
static bool
is_kept(struct route_walk *w, struct exchange *x)
{
	uint64_t ms;

	w->by_headers = true;
	switch (delay_wish(w->headers, &ms)) {
	case DELAY_INVALID: w->bad_delay = true; return false;
	case DELAY_NONE: return false;
	case DELAY_WANTED: break;
	}
	if (unlikely(w->watch != NULL)) {
		w->watch->on_delay(w->watch, w->at, ms);
		return false;
	}
	if (w->delays == scratch.delay_cap) {
		scratch.delay_cap = scratch.delay_cap == 0 ? 4 : scratch.delay_cap * 2;
		scratch.delay =
		    xrealloc(scratch.delay, scratch.delay_cap * sizeof(struct exchange *));
	}
	scratch.delay[w->delays++] = x;
	return true;
}

static bool
show_binding(struct route_walk *w, struct binding *b, bool again)
{
	if (!w->is_stopped)
		w->is_stopped = !w->watch->on_binding(w->watch, w->at, b, again);
	return !w->is_stopped && w->repeats < ROUTE_STEPS_MAX;
}

bool
route_hit(struct route_walk *w, struct binding *b)
{
	uint32_t repeats = w->repeats;

	w->hit = true;
	if (b->queue != NULL)
		add_queue(w, b->queue);
	else
		add_exchange(w, b->exchange);
	if (unlikely(w->watch != NULL))
		return show_binding(w, b, w->repeats > repeats);
	return w->repeats < ROUTE_STEPS_MAX;
}

const struct message_headers *
route_headers(struct route_walk *w)
{
	if (!w->has_headers) {
		if (scratch.headers == NULL)
			scratch.headers = message_headers_new();
		message_headers_set(scratch.headers, w->headers);
		w->has_headers = true;
	}
	return scratch.headers;
}

struct span
route_headers_raw(const struct route_walk *w)
{
	return w->headers;
}

struct span
route_props(const struct route_walk *w)
{
	return w->props;
}

void
route_depends_on_message(struct route_walk *w)
{
	w->by_headers = true;
}

uint32_t
route_steps_left(const struct route_walk *w)
{
	return ROUTE_STEPS_MAX - w->steps;
}

void
route_steps_taken(struct route_walk *w, uint32_t n)
{
	assert(n <= ROUTE_STEPS_MAX - w->steps);
	w->steps += n;
}

static bool
is_too_long(const struct route_walk *w)
{
	return w->steps >= ROUTE_STEPS_MAX || w->repeats >= ROUTE_STEPS_MAX || w->is_stopped;
}

static void
take_alternate(struct route_walk *w, struct exchange *x)
{
	struct exchange *to = exchange_find(x->vhost, x->alternate);
	uint32_t repeats = w->repeats;

	if (to != NULL)
		add_exchange(w, to);
	if (unlikely(w->watch != NULL) &&
	    !w->watch->on_alternate(w->watch, w->at, to, w->repeats > repeats))
		w->is_stopped = true;
}

static void
walk(struct route_walk *w, struct exchange *x, const struct span *key, uint32_t keys)
{
	const struct exchange_type_ops *ops;
	uint32_t i, k, looks;

	scratch.mark++;
	add_exchange(w, x);
	for (i = 0; i < w->exchanges; i++) {
		w->at = i;
		x = scratch.exchange[i];
		x->observed = true;
		if (unlikely(x->type == EXCHANGE_DELAYED) && is_kept(w, x))
			continue;
		ops = exchange_type_ops(x->routes_as);
		w->by_key |= ops->by_key;
		w->by_headers |= ops->by_headers;
		w->hit = false;
		/* Where keys mean nothing, a message with thousands of them in CC is routed once all the same. */
		looks = ops->by_key && !ops->own_key ? keys : 1;
		x->vhost->broker->work += looks;
		for (k = 0; k < looks && !is_too_long(w); k++)
			ops->route(x, key[k], w);
		if (!w->hit && x->alternate.p != NULL && !is_too_long(w))
			take_alternate(w, x);
	}
	scratch.exchange[0]->vhost->broker->work += w->steps + w->repeats + w->queues;
}

/* The default exchange has no bindings: the key is a queue's name. */
static void
walk_default(struct route_walk *w, struct exchange *x, const struct span *key, uint32_t keys)
{
	uint32_t k, repeats;
	struct queue *q;

	scratch.mark++;
	x->observed = true;
	for (k = 0; k < keys && !w->is_stopped; k++) {
		q = queue_find(x->vhost, key[k]);
		if (q == NULL)
			continue;
		repeats = w->repeats;
		add_queue(w, q);
		if (unlikely(w->watch != NULL))
			w->is_stopped = !w->watch->on_name(w->watch, q, w->repeats > repeats);
	}
}

static void
add_key(struct span key, uint32_t *n)
{
	if (*n == scratch.key_cap) {
		scratch.key_cap = scratch.key_cap == 0 ? 16 : scratch.key_cap * 2;
		scratch.key = xrealloc(scratch.key, scratch.key_cap * sizeof *scratch.key);
	}
	scratch.key[(*n)++] = key;
}

static const char *const cc_names[] = { "CC", "BCC" };

/* The message's own key and those of CC and BCC. Keys over 255 bytes match nothing: no binding has one. */
static uint32_t
collect_keys(struct span key, struct span headers)
{
	struct field list, f;
	uint32_t n = 0;
	size_t at, i;

	add_key(key, &n);
	for (i = 0; i < COUNT_OF(cc_names); i++) {
		if (!table_find(headers, cc_names[i], &list) || list.kind != 'A')
			continue;
		for (at = 0; n < ROUTE_KEYS_MAX && array_next(list.bytes, &at, &f);) {
			if (f.kind == 'S')
				add_key(f.bytes, &n);
		}
	}
	return n;
}

/* NULL: it is too long. */
static const struct route *
look(struct route_walk *w, struct exchange *x, struct span key, bool has_cc)
{
	uint32_t keys = has_cc ? collect_keys(key, w->headers) : 1;

	if (x->name_len == 0)
		walk_default(w, x, has_cc ? scratch.key : &key, keys);
	else
		walk(w, x, has_cc ? scratch.key : &key, keys);
	if (is_too_long(w))
		return NULL;
	scratch.route = (struct route){ .count = w->queues,
		.by_headers = w->by_headers || has_cc,
		.queue = scratch.queue,
		.delays = w->delays,
		.bad_delay = w->bad_delay,
		.delay = scratch.delay };
	return &scratch.route;
}

static const struct route *
find(struct exchange *x, struct span key, struct span headers, struct span props, bool has_cc)
{
	bool is_default = x->name_len == 0;
	struct route_walk w = { .headers = headers, .props = props };
	const struct route *r = NULL;

	if (!has_cc && !is_default)
		r = route_cache_find(x, key);
	if (r != NULL)
		return r;
	if (!is_default)
		x->vhost->broker->stats.route_cache_misses++;
	r = look(&w, x, key, has_cc);
	if (r == NULL)
		x->vhost->broker->stats.route_refused++;
	else if (!r->by_headers && !is_default)
		route_cache_put(x, w.by_key ? key : span_of(NULL, 0), !w.by_key, r);
	return r;
}

const struct route *
route_find_watched(
    struct exchange *x, const struct msg *m, const struct props *pr, struct route_watch *watch)
{
	struct route_walk w = { .headers = pr->headers, .props = msg_props(m), .watch = watch };

	return look(&w, x, msg_key(m), pr->has_cc);
}

const struct route *
route_find_msg(struct exchange *x, const struct msg *m, const struct props *pr)
{
	return find(x, msg_key(m), pr->headers, msg_props(m), pr->has_cc);
}

const struct route *
route_find(struct exchange *x, struct span key, struct span headers)
{
	struct field f;
	bool has_cc = false;
	size_t i;

	for (i = 0; i < COUNT_OF(cc_names) && headers.n > 0; i++)
		has_cc |= table_find(headers, cc_names[i], &f);
	return find(x, key, headers, span_of(NULL, 0), has_cc);
}

const struct error *
route_check_cc(struct span headers, bool *has_cc, bool *bcc)
{
	struct field list, f;
	uint32_t n = 1;
	size_t at, i;

	*has_cc = *bcc = false;
	for (i = 0; i < COUNT_OF(cc_names); i++) {
		if (!table_find(headers, cc_names[i], &list))
			continue;
		if (list.kind != 'A')
			return error_make(E_PRECONDITION_FAILED,
			    "invalid message: {unacceptable_type_in_header,\"%s\",%s}", cc_names[i],
			    field_type_name(&list));
		*has_cc = true;
		*bcc = i == 1;
		for (at = 0; array_next(list.bytes, &at, &f);)
			n += f.kind == 'S';
		if (n > ROUTE_KEYS_MAX)
			return error_make(E_PRECONDITION_FAILED,
			    "invalid message: more than %d routing keys in CC and BCC",
			    ROUTE_KEYS_MAX);
	}
	return NULL;
}

uint8_t *
route_without_bcc(struct span headers, size_t *n)
{
	uint8_t *out = try_malloc(headers.n > 0 ? headers.n : 1);
	struct field f;
	size_t at = 0, from = 0;
	bool done = false;

	if (out == NULL)
		return NULL;
	*n = 0;
	while (table_next(headers, &at, &f)) {
		/* The first one, as RabbitMQ: it looked no further for keys either. */
		if (!done && span_is(f.name, "BCC")) {
			done = true;
		} else {
			memcpy(out + *n, headers.p + from, at - from);
			*n += at - from;
		}
		from = at;
	}
	return out;
}
