/* SPDX-License-Identifier: Apache-2.0
 * x-consistent-hash: each message to one of the destinations, always the same for the same key. What is hashed is the
 * message's own routing key, a header (argument hash-header) or a property (hash-property: correlation_id, message_id
 * or timestamp); messages without it go to one place. A binding's key is its weight. Refusals are those of RabbitMQ's
 * plugin.
 *
 * Rendezvous hashing: for a message every destination draws a number u in (0, 1] from a hash of the two, and the one
 * with the least -log(u) / weight has it. So shares are as the weights are, no binding costs more memory than another,
 * and one that comes or goes moves only the messages that it gets or had: the others' draws stay. The draw depends on
 * the name of the destination and on nothing else of the node, so that it is the same after a restart; of several
 * bindings to one destination the heaviest counts.
 *
 * A message looks at all bindings, a few nanoseconds each; by routing key the route's cache remembers the answer. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/exchange_type/type.h"
#include "broker/hash.h"
#include "broker/props.h"
#include "broker/table.h"

enum {
	WEIGHT_MAX = 1000000,
	PLACES_FIRST = 4,
	PLACES_A_STEP = 16, /* of the bound on a route */
	FRACTION_BITS = 30
};
static const char HASH_HEADER[] = "hash-header", HASH_PROPERTY[] = "hash-property";

static const struct {
	const char *name;
	uint16_t flag;
} properties[] = {
	{ "correlation_id", PROP_CORRELATION_ID },
	{ "message_id", PROP_MESSAGE_ID },
	{ "timestamp", PROP_TIMESTAMP },
};

struct place {
	uint64_t name; /* hash of the destination's */
	uint32_t weight;
	struct binding *binding; /* borrowed */
};

struct consistent_hash {
	struct place *place; /* owned */
	uint32_t count, cap;
	struct span header; /* in the exchange's arguments; p NULL: not by header */
	uint16_t property;  /* 0: not by property */
};

/* The exchange's arguments say what is hashed; NULL: they can be followed. */
static const struct error *
read_arguments(const struct table *arguments, struct consistent_hash *c)
{
	struct span raw = table_span(arguments);
	struct field header, property;
	bool by_header = table_find(raw, HASH_HEADER, &header);
	char value[200];
	size_t i;

	*c = (struct consistent_hash){ 0 };
	if (table_find(raw, HASH_PROPERTY, &property)) {
		if (by_header)
			return error_make(E_PRECONDITION_FAILED,
			    "hash-header and hash-property are mutually exclusive");
		for (i = 0; i < COUNT_OF(properties) && c->property == 0; i++) {
			if (property.kind == 'S' && span_is(property.bytes, properties[i].name))
				c->property = properties[i].flag;
		}
		if (c->property == 0)
			return error_make(E_PRECONDITION_FAILED, "Unsupported property: %s",
			    field_text(&property, value, sizeof value));
	}
	if (by_header && header.kind != 'S')
		return error_make(E_PRECONDITION_FAILED,
		    "Unsupported hash-header of type %s; expected longstr",
		    field_type_name(&header));
	if (by_header)
		c->header = header.bytes;
	return NULL;
}

static const struct error *
check_exchange(const struct table *arguments)
{
	struct consistent_hash c;

	return read_arguments(arguments, &c);
}

/* Digits behind a sign if one likes. 0: less than 1; WEIGHT_MAX + 1: more than that; false: no integer. */
static bool
read_weight(struct span key, uint32_t *weight)
{
	size_t sign = key.n > 0 && (key.p[0] == '+' || key.p[0] == '-'), i;
	uint32_t w = 0;

	for (i = sign; i < key.n && key.p[i] >= '0' && key.p[i] <= '9'; i++) {
		if (w <= WEIGHT_MAX)
			w = w * 10 + (key.p[i] - '0');
	}
	if (i == sign || i < key.n)
		return false;
	if (w > WEIGHT_MAX)
		w = WEIGHT_MAX + 1;
	*weight = key.p[0] == '-' ? 0 : w;
	return true;
}

static const struct error *
check_binding(struct span key, const struct table *arguments UNUSED)
{
	struct field f = { .kind = 'S', .bytes = key };
	uint32_t weight;
	char term[300];

	if (!read_weight(key, &weight))
		return error_make(E_PRECONDITION_FAILED, "The binding key must be an integer: %s",
		    field_term(&f, term, sizeof term));
	if (weight < 1)
		return error_make(E_PRECONDITION_FAILED, "The binding key must be greater than 0");
	if (weight > WEIGHT_MAX)
		return error_make(E_PRECONDITION_FAILED,
		    "The binding key must not be greater than %d", WEIGHT_MAX);
	return NULL;
}

static struct consistent_hash *
consistent_hash_new(const struct table *arguments)
{
	struct consistent_hash *c = xmalloc(sizeof *c);
	const struct error *e = read_arguments(arguments, c);

	assert(e == NULL);
	return c;
}

/* Not with the process's own seed: the same in every run. */
static uint64_t
hash_name(const struct binding *b)
{
	if (b->queue != NULL)
		return XXH3_64bits_withSeed(b->queue->name, b->queue->name_len, 'q');
	return XXH3_64bits_withSeed(b->exchange->name, b->exchange->name_len, 'x');
}

static void
hash_add(struct exchange *x, struct binding *b)
{
	struct consistent_hash *c = x->index;
	struct place p = { .name = hash_name(b), .binding = b };
	bool valid = read_weight(binding_key(b), &p.weight);

	assert(valid && p.weight >= 1 && p.weight <= WEIGHT_MAX);
	if (c == NULL)
		c = x->index = consistent_hash_new(x->arguments);
	if (c->count == c->cap) {
		mem_sub(MEM_TOPOLOGY, c->cap * sizeof p);
		c->cap = c->cap == 0 ? PLACES_FIRST : c->cap * 2;
		c->place = xrealloc(c->place, c->cap * sizeof p);
		mem_add(MEM_TOPOLOGY, c->cap * sizeof p);
	}
	b->index_place = c->count;
	c->place[c->count++] = p;
}

static void
hash_remove(struct exchange *x, struct binding *b)
{
	struct consistent_hash *c = x->index;
	uint32_t at = b->index_place;

	assert(c->place[at].binding == b);
	c->place[at] = c->place[--c->count];
	c->place[at].binding->index_place = at;
	if (c->count == 0) {
		mem_sub(MEM_TOPOLOGY, c->cap * sizeof *c->place);
		free(c->place);
		c->place = NULL;
		c->cap = 0;
	}
}

/* -log2(h / 2^64) with FRACTION_BITS behind the point, at least 1. Integers, for the same answer everywhere: each
 * squaring of the mantissa gives the logarithm's next bit. */
static uint64_t
draw_cost(uint64_t h)
{
	unsigned zeros = (unsigned)__builtin_clzll(h | 1), i;
	uint64_t m = (h | 1) << zeros >> 32,
	         log = 63 - zeros; /* m: 1 to 2, 31 bits behind the point */

	for (i = 0; i < FRACTION_BITS; i++) {
		m = m * m >> 31;
		log = log << 1 | m >> 32;
		m >>= m >> 32;
	}
	return ((uint64_t)64 << FRACTION_BITS) - log;
}

static uint64_t
draw(uint64_t key, uint64_t name)
{
	uint64_t h = key ^ name;

	h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ull;
	h = (h ^ h >> 27) * 0x94D049BB133111EBull;
	return h ^ h >> 31;
}

static const struct place *
choose(const struct consistent_hash *c, uint64_t key)
{
	const struct place *best = NULL, *p;
	uint64_t best_draw = 0, best_cost = 0, h, cost, a, b;

	for (p = c->place; p < c->place + c->count; p++) {
		h = draw(key, p->name);
		if (best != NULL && h <= best_draw && p->weight <= best->weight)
			continue; /* cannot win; with equal weights this is nearly everybody */
		cost = draw_cost(h);
		/* less than 2^37 each, times less than 2^20 */
		a = best != NULL ? cost * best->weight : 0;
		b = best != NULL ? best_cost * p->weight : 1;
		if (a < b || (a == b && h > best_draw)) {
			best = p;
			best_draw = h;
			best_cost = cost;
		}
	}
	return best;
}

/* The first header of that name with its type and value as they came; without it, what nobody has. */
static uint64_t
hash_header(struct span headers, struct span name)
{
	struct field f;
	size_t at = 0, from = 0, value;

	while (table_next(headers, &at, &f)) {
		if (span_eq(f.name, name)) {
			value = from + 1 + name.n;
			return XXH3_64bits_withSeed(headers.p + value, at - value, 'h');
		}
		from = at;
	}
	return 0;
}

static uint64_t
hash_message(const struct consistent_hash *c, struct span key, struct route_walk *w)
{
	struct span value;

	if (c->header.p == NULL && c->property == 0)
		return XXH3_64bits_withSeed(key.n > 0 ? (const void *)key.p : "", key.n, 'k');
	route_depends_on_message(w);
	if (c->header.p != NULL)
		return hash_header(route_headers_raw(w), c->header);
	if (!props_find(route_props(w), c->property, &value))
		return 0;
	return XXH3_64bits_withSeed(value.n > 0 ? (const void *)value.p : "", value.n, 'p');
}

static void
hash_route(struct exchange *x, struct span key, struct route_walk *w)
{
	const struct consistent_hash *c = x->index;
	uint32_t left = route_steps_left(w), steps;

	if (c == NULL || c->count == 0)
		return;
	steps = c->count / PLACES_A_STEP;
	if (steps >= left)
		steps = left;
	else if (!route_hit(w, choose(c, hash_message(c, key, w))->binding))
		return;
	route_steps_taken(w, steps);
}

static void
hash_free(struct exchange *x)
{
	struct consistent_hash *c = x->index;

	assert(c == NULL || c->count == 0);
	free(c);
	x->index = NULL;
}

const struct exchange_type_ops exchange_consistent_hash = {
	.name = "x-consistent-hash",
	.check = check_exchange,
	.validate = check_binding,
	.add = hash_add,
	.remove = hash_remove,
	.route = hash_route,
	.free = hash_free,
	.by_key = true,
	.own_key = true,
};
