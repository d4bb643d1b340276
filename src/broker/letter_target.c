/* SPDX-License-Identifier: Apache-2.0
 * Forwards where a letter's key says which queues it reaches: a route is found for it. Where letters keep their own keys, or
 * the exchange does not go by keys, any of its bindings may lead on, of which there may be very many: then the exchange is
 * marked, and the queues look back at the exchanges that lead to them. */
#include "broker/letter_target.h"

#include "base/bound.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/hash.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/vhost.h"

enum { STEPS = 1024, DEPTH = 8, ALTERNATES = 8 };

uint32_t
letter_targets_begin(struct broker *b)
{
	return ++b->letter_lists;
}

static void
mark_queue(struct queue *q, uint32_t number)
{
	if (q->letter_mark < number)
		q->letter_mark = number;
}

static void
mark_exchange(struct exchange *x, uint32_t number)
{
	for (unsigned i = 0; x != NULL && i < ALTERNATES && x->letter_mark < number; i++) {
		x->letter_mark = number;
		x = x->alternate.p != NULL ? exchange_find(x->vhost, x->alternate) : NULL;
	}
}

static bool
goes_by_key(const struct exchange *x)
{
	return x->type != EXCHANGE_DELAYED &&
	       (x->routes_as == EXCHANGE_DIRECT || x->routes_as == EXCHANGE_TOPIC);
}

/* Many queues send theirs to one exchange with one key: a route is looked at once. */
static void
mark_route(struct exchange *x, struct span key, uint32_t number)
{
	uint32_t hash = (uint32_t)hash_span(key);
	const struct route *route;

	if (x->letter_key_mark >= number && x->letter_key_hash == hash)
		return;
	x->letter_key_mark = number;
	x->letter_key_hash = hash;
	route = route_find(x, key, span_of(NULL, 0));
	for (uint32_t i = 0; route != NULL && i < route->count; i++)
		mark_queue(route->queue[i], number);
	for (uint32_t i = 0; route != NULL && i < route->delays; i++)
		mark_exchange(route->delay[i], number);
}

void
letter_targets_mark(struct queue *q, uint32_t number)
{
	struct span name = q->set.dead_letter_exchange, key = q->set.dead_letter_key;
	struct exchange *x = name.p != NULL ? exchange_find(q->vhost, name) : NULL;
	struct queue *to;

	if (x == NULL)
		return;
	if (x->name_len > 0) {
		if (key.p != NULL && goes_by_key(x))
			mark_route(x, key, number);
		else
			mark_exchange(x, number);
		return;
	}
	/* without a key of its own a letter comes back to the queue that it was sent to */
	to = key.p != NULL ? queue_find(q->vhost, key) : NULL;
	if (to != NULL)
		mark_queue(to, number);
}

/* Do letters come to x, as far as the steps go? */
static bool
is_reached(struct exchange *x, uint32_t number, unsigned depth, unsigned *steps)
{
	const struct binding *b;

	if (x->letter_mark >= number)
		return true;
	if (depth == 0)
		return false;
	LIST_FOREACH (b, &x->inbound, target_link) {
		if (*steps == 0)
			return false;
		--*steps;
		if (is_reached(b->source, number, depth - 1, steps)) {
			x->letter_mark = number;
			return true;
		}
	}
	return false;
}

bool
letter_target_is(struct queue *q, uint32_t number)
{
	const struct binding *b;
	unsigned steps = STEPS;

	LIST_FOREACH (b, &q->bindings, target_link) {
		if (q->letter_mark >= number || steps == 0)
			break;
		steps--;
		if (is_reached(b->source, number, DEPTH, &steps))
			mark_queue(q, number);
	}
	if (q->letter_mark < number && steps == 0)
		bound_reached(BOUND_letter_looks);
	return q->letter_mark >= number;
}
