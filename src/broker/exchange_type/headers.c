/* SPDX-License-Identifier: Apache-2.0
 * headers: the binding's arguments against the message's headers (0-9-1, 3.1.3.4). x-match says whether all of them or
 * any of them must be there; those that begin with x- count with all-with-x and any-with-x only. An argument without a
 * value (V) asks for presence. Values are equal as field_equal has it, whatever the width of a number.
 *
 * Names may come twice on both sides. RabbitMQ sorts both and merges them, so that the n-th argument of a name meets the
 * n-th header of it; so do we. */
#include "broker/exchange_type/headers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/exchange_type/type.h"
#include "broker/hash.h"
#include "broker/table.h"

enum { STEP_BYTES = 64 }; /* compared: one step of the bound on a route */

enum mode { MATCH_ALL = 0, MATCH_ANY = 1, MATCH_X = 2 }; /* MATCH_X: x- names count */

static const struct {
	const char *name;
	unsigned mode;
} modes[] = {
	{ "all", MATCH_ALL },
	{ "any", MATCH_ANY },
	{ "all-with-x", MATCH_ALL | MATCH_X },
	{ "any-with-x", MATCH_ANY | MATCH_X },
};

/* Small, because a binding may have as many as its frame has room for; the field itself is read from the arguments. */
struct wanted {
	uint64_t hash; /* of its name */
	uint32_t at;   /* in the arguments */
	bool again;    /* the one before it has the same name */
};

struct headers_match {
	struct span arguments;
	uint32_t count, cap;
	bool any;
	struct wanted wanted[]; /* equal names together, in their order */
};

static bool
find_mode(const struct table *arguments, unsigned *mode)
{
	struct field f;
	size_t i;

	*mode = MATCH_ALL;
	if (!table_find(table_span(arguments), "x-match", &f))
		return true;
	for (i = 0; i < COUNT_OF(modes) && f.kind == 'S'; i++) {
		if (span_is(f.bytes, modes[i].name)) {
			*mode = modes[i].mode;
			return true;
		}
	}
	return false;
}

const struct error *
headers_match_check(const struct table *arguments)
{
	struct field f;
	unsigned mode;
	char value[200];

	if (find_mode(arguments, &mode) || !table_find(table_span(arguments), "x-match", &f))
		return NULL;
	if (f.kind != 'S')
		return error_make(E_PRECONDITION_FAILED,
		    "Invalid x-match field type %s (value %s); expected longstr",
		    field_type_name(&f), field_term(&f, value, sizeof value));
	return error_make(E_PRECONDITION_FAILED,
	    "Invalid x-match field value %s; expected all, any, all-with-x, or any-with-x",
	    field_term(&f, value, sizeof value));
}

static int
wanted_compare(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static struct field
wanted_field(const struct headers_match *m, const struct wanted *w)
{
	struct field f;
	size_t at = w->at;
	bool found = table_next(m->arguments, &at, &f);

	assert(found);
	return f;
}

struct headers_match *
headers_match_new(const struct table *arguments)
{
	struct span raw = table_span(arguments);
	struct headers_match *m;
	struct field f;
	unsigned mode = MATCH_ALL;
	uint32_t n = 0, i;
	size_t at = 0, from = 0;
	bool valid = find_mode(arguments, &mode);

	assert(valid);
	while (table_next(raw, &at, &f))
		n++;
	m = xmalloc(sizeof *m + n * sizeof m->wanted[0]);
	*m = (struct headers_match){ .arguments = raw, .cap = n, .any = (mode & MATCH_ANY) != 0 };
	mem_add(MEM_TOPOLOGY, sizeof *m + n * sizeof m->wanted[0]);
	for (at = 0; table_next(raw, &at, &f); from = at) {
		if (!span_is(f.name, "x-match") &&
		    ((mode & MATCH_X) != 0 || !span_starts(f.name, "x-")))
			m->wanted[m->count++] =
			    (struct wanted){ hash_span(f.name), (uint32_t)from, false };
	}
	if (m->count > 1)
		qsort(m->wanted, m->count, sizeof m->wanted[0], wanted_compare);
	for (i = 1; i < m->count; i++)
		m->wanted[i].again = span_eq(
		    wanted_field(m, &m->wanted[i]).name, wanted_field(m, &m->wanted[i - 1]).name);
	return m;
}

void
headers_match_free(struct headers_match **mp)
{
	if (*mp != NULL)
		mem_sub(MEM_TOPOLOGY, sizeof **mp + (*mp)->cap * sizeof(*mp)->wanted[0]);
	free(*mp);
	*mp = NULL;
}

/* A hash of the message's names. Headers of one name hang together in their order, so that many of one name make
 * neither building nor looking up slow. Positions count from 1; 0 is none. */
struct header {
	struct field field;
	uint64_t hash;
	uint32_t slot_next; /* other names in the slot; of the first of each name only */
	uint32_t same_next, same_last;
};

struct message_headers {
	struct header *item; /* owned; item[0] is not used */
	uint32_t *slot;      /* owned; first of each name */
	uint32_t count, cap, slots;
};

struct message_headers *
message_headers_new(void)
{
	return xcalloc(1, sizeof(struct message_headers));
}

void
message_headers_free(struct message_headers **hp)
{
	if (*hp != NULL) {
		free((*hp)->item);
		free((*hp)->slot);
	}
	free(*hp);
	*hp = NULL;
}

static uint32_t
find(const struct message_headers *h, struct span name, uint64_t hash)
{
	uint32_t i;

	if (h->count == 0)
		return 0;
	i = h->slot[hash & (h->slots - 1)];
	while (i != 0 && (h->item[i].hash != hash || !span_eq(h->item[i].field.name, name)))
		i = h->item[i].slot_next;
	return i;
}

/* Room for n headers: what a large message needed is kept up to KEEP, for the next one. */
static void
reserve(struct message_headers *h, uint32_t n)
{
	enum { FIRST = 32, KEEP = 4096 };
	uint32_t cap = FIRST;

	while (cap < n)
		cap *= 2;
	if (cap > h->cap || (h->cap > KEEP && cap <= KEEP)) {
		h->item = xrealloc(h->item, (cap + 1) * sizeof *h->item);
		h->slot = xrealloc(h->slot, cap * sizeof *h->slot);
		h->cap = cap;
	}
	h->slots = cap;
	memset(h->slot, 0, cap * sizeof *h->slot);
}

void
message_headers_set(struct message_headers *h, struct span raw)
{
	struct field f;
	uint64_t hash;
	uint32_t n = 0, i, first;
	size_t at = 0;

	h->count = 0;
	while (table_next(raw, &at, &f))
		n++;
	if (n == 0)
		return;
	reserve(h, n);
	for (at = 0, i = 1; i <= n && table_next(raw, &at, &f); i++) {
		hash = hash_span(f.name);
		first = find(h, f.name, hash);
		h->item[i] = (struct header){ .field = f, .hash = hash, .same_last = i };
		h->count = i;
		if (first != 0) {
			h->item[h->item[first].same_last].same_next = i;
			h->item[first].same_last = i;
			continue;
		}
		h->item[i].slot_next = h->slot[hash & (h->slots - 1)];
		h->slot[hash & (h->slots - 1)] = i;
	}
}

bool
headers_match_is(const struct headers_match *m, const struct message_headers *h, uint32_t *steps)
{
	struct field want;
	uint32_t i, at = 0;
	bool met;

	++*steps;
	for (i = 0; i < m->count; i++) {
		want = wanted_field(m, &m->wanted[i]);
		++*steps;
		if (!m->wanted[i].again)
			at = find(h, want.name, m->wanted[i].hash);
		else if (at != 0)
			at = h->item[at].same_next;
		if (at != 0)
			*steps += (uint32_t)want.bytes.n / STEP_BYTES;
		met = at != 0 && (want.kind == 'V' || field_equal(&want, &h->item[at].field));
		if (met == m->any)
			return m->any;
	}
	return !m->any;
}

static const struct error *
check_binding(struct span key UNUSED, const struct table *arguments)
{
	return headers_match_check(arguments);
}

static void
exchange_add(struct exchange *x UNUSED, struct binding *b)
{
	b->match = headers_match_new(b->arguments);
}

static void
exchange_remove(struct exchange *x UNUSED, struct binding *b)
{
	headers_match_free(&b->match);
}

static void
exchange_route(struct exchange *x, struct span key UNUSED, struct route_walk *w)
{
	uint32_t left = route_steps_left(w), steps = 0;
	const struct message_headers *h;
	struct binding *b;

	if (LIST_EMPTY(&x->bindings))
		return;
	h = route_headers(w);
	LIST_FOREACH (b, &x->bindings, source_link) {
		if (headers_match_is(b->match, h, &steps) && !route_hit(w, b))
			break;
		if (unlikely(steps >= left))
			break;
	}
	route_steps_taken(w, steps < left ? steps : left);
}

static void
exchange_free(struct exchange *x UNUSED)
{
}

const struct exchange_type_ops exchange_headers = {
	.name = "headers",
	.validate = check_binding,
	.add = exchange_add,
	.remove = exchange_remove,
	.route = exchange_route,
	.free = exchange_free,
	.by_headers = true,
};
