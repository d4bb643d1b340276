/* SPDX-License-Identifier: Apache-2.0
 * Makes and removes bindings. A source finds one by its identity through a hash of its own, so that neither ten
 * thousand bindings of one exchange nor as many to one queue make a bind or an unbind slow. */
#include "broker/binding.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/event.h"
#include "broker/exchange_type/type.h"
#include "broker/hash.h"
#include "broker/persist.h"
#include "broker/table.h"
#include "broker/vhost.h"

/* The order of arguments does not matter, so neither does it to their hash. */
static uint64_t
hash_arguments(const struct table *t)
{
	struct span raw = table_span(t);
	struct field f;
	size_t at = 0, from = 0;
	uint64_t sum = 0;

	while (table_next(raw, &at, &f)) {
		sum += hash_bytes(raw.p + from, at - from);
		from = at;
	}
	return sum;
}

static uint64_t
identity(
    const struct queue *q, const struct exchange *x, struct span key, const struct table *arguments)
{
	uint64_t to = q != NULL ? q->id * 2 : x->id * 2 + 1;

	return hash_mix(hash_span(key) + 3 * hash_arguments(arguments) + hash_mix(to));
}

static struct binding *
find(const struct exchange *source, uint64_t id, const struct queue *q, const struct exchange *x,
    struct span key, const struct table *arguments)
{
	struct bucket_node *n = buckets_first(&source->identities, id);

	for (; n != NULL; n = buckets_next(n)) {
		struct binding *b = container_of(n, struct binding, identity);

		if (b->queue == q && b->exchange == x && span_eq(binding_key(b), key) &&
		    table_equal(b->arguments, arguments))
			return b;
	}
	return NULL;
}

static const struct error *
check_default(const struct exchange *source, const struct exchange *x)
{
	if (source->name_len == 0 || (x != NULL && x->name_len == 0))
		return error_make(
		    E_ACCESS_REFUSED, "operation not permitted on the default exchange");
	return NULL;
}

/* Bytes of a binding without what its exchange's type keeps, counted as MEM_TOPOLOGY. */
static size_t
binding_size(const struct binding *b)
{
	return sizeof *b + b->key_len + table_size(b->arguments);
}

static void
attach(struct binding *b, uint64_t id)
{
	struct exchange *source = b->source;

	mem_add(MEM_TOPOLOGY, binding_size(b));
	buckets_add(&source->identities, &b->identity, id);
	LIST_INSERT_HEAD(&source->bindings, b, source_link);
	LIST_INSERT_HEAD(
	    b->queue != NULL ? &b->queue->bindings : &b->exchange->inbound, b, target_link);
	source->binding_count++;
	source->vhost->broker->stats.bindings++;
	exchange_type_ops(source->routes_as)->add(source, b);
	exchange_changed(source);
}

/* restored: the id of one that the store had; 0: a new one. */
static const struct error *
add(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments, uint64_t restored)
{
	const struct exchange_type_ops *ops = exchange_type_ops(source->routes_as);
	const struct error *e = check_default(source, x);
	struct table *copy = NULL;
	struct binding *b;
	uint64_t id;

	assert((q == NULL) != (x == NULL) && key.n <= 255);
	if (e == NULL && ops->validate != NULL)
		e = ops->validate(key, arguments);
	if (e != NULL)
		return e;
	id = identity(q, x, key, arguments);
	if (find(source, id, q, x, key, arguments) != NULL)
		return NULL;
	if (restored == 0)
		e = memory_check_topology(&source->vhost->broker->memory, "bind to exchange",
		    span_of(source->name, source->name_len), source->vhost->name);
	if (e != NULL)
		return e;
	b = try_malloc(sizeof *b + key.n);
	if (b == NULL || table_try_copy(table_span(arguments), &copy) != 0) {
		free(b);
		return error_make(E_RESOURCE_ERROR, "no memory for a binding");
	}
	*b = (struct binding){ .source = source, .queue = q, .exchange = x };
	b->arguments = copy;
	b->key_len = (uint8_t)key.n;
	if (key.n > 0)
		memcpy(b->key, key.p, key.n);
	b->id = restored != 0 ? restored : ++source->vhost->broker->next_id;
	attach(b, id);
	if (restored == 0) {
		persist_binding(b);
		event_binding(b, true);
	}
	return NULL;
}

const struct error *
binding_add(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments)
{
	return add(source, q, x, key, arguments, 0);
}

const struct error *
binding_restore(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments, uint64_t id)
{
	return add(source, q, x, key, arguments, id);
}

bool
binding_is_durable(const struct binding *b)
{
	return b->source->durable && (b->queue != NULL ? b->queue->durable : b->exchange->durable);
}

static void
leave_walks(const struct binding *b)
{
	const struct walk_list *walks = &b->source->vhost->broker->walks;

	walk_pass(walks, &b->source_link, WALK_LINK(LIST_NEXT(b, source_link), source_link));
	walk_pass(walks, &b->target_link, WALK_LINK(LIST_NEXT(b, target_link), target_link));
}

/* Unlinks and frees it; notes a source that is to go now. */
static void
drop(struct binding *b)
{
	struct exchange *source = b->source;

	event_binding(b, false);
	persist_binding_gone(b);
	exchange_type_ops(source->routes_as)->remove(source, b);
	leave_walks(b);
	LIST_REMOVE(b, source_link);
	LIST_REMOVE(b, target_link);
	source->binding_count--;
	source->vhost->broker->stats.bindings--;
	buckets_remove(&source->identities, &b->identity);
	exchange_changed(source);
	if (source->auto_delete && source->binding_count == 0)
		exchange_note_unbound(source);
	mem_sub(MEM_TOPOLOGY, binding_size(b));
	table_free(&b->arguments);
	free(b);
}

struct binding *
binding_find_id(const struct exchange *source, uint64_t hash, uint64_t id)
{
	struct bucket_node *n = buckets_first(&source->identities, hash);

	while (n != NULL && container_of(n, struct binding, identity)->id != id)
		n = buckets_next(n);
	return n != NULL ? container_of(n, struct binding, identity) : NULL;
}

bool
binding_exists(const struct exchange *source, const struct queue *q, const struct exchange *x,
    struct span key, const struct table *arguments)
{
	return find(source, identity(q, x, key, arguments), q, x, key, arguments) != NULL;
}

const struct error *
binding_remove(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments)
{
	const struct error *e = check_default(source, x);
	struct vhost *vh = source->vhost;
	struct binding *b;

	assert((q == NULL) != (x == NULL));
	if (e != NULL)
		return e;
	b = find(source, identity(q, x, key, arguments), q, x, key, arguments);
	if (b == NULL)
		return NULL;
	drop(b);
	exchanges_reap_unbound(vh);
	return NULL;
}

bool
bindings_drop_some(struct queue *q, unsigned *left)
{
	struct binding *b;

	for (; *left > 0 && (b = LIST_FIRST(&q->bindings)) != NULL; --*left)
		drop(b);
	exchanges_reap_unbound(q->vhost);
	return !LIST_EMPTY(&q->bindings);
}

void
bindings_drop_queue(struct queue *q)
{
	unsigned all = UINT_MAX;

	(void)bindings_drop_some(q, &all);
}

bool
bindings_drop_some_of_exchange(struct exchange *x, unsigned *left)
{
	struct binding *b;

	for (; *left > 0 && (b = LIST_FIRST(&x->bindings)) != NULL; --*left)
		drop(b);
	for (; *left > 0 && (b = LIST_FIRST(&x->inbound)) != NULL; --*left)
		drop(b);
	return !LIST_EMPTY(&x->bindings) || !LIST_EMPTY(&x->inbound);
}

/* Of those that lead somewhere. */
static bool
are_many(const struct binding_list *l)
{
	const struct binding *b;
	unsigned n = 0;

	LIST_FOREACH (b, l, target_link)
		if (++n == 2 * BINDINGS_AT_ONCE)
			return true;
	return false;
}

bool
bindings_thin_queue(struct queue *q)
{
	unsigned left = BINDINGS_AT_ONCE;

	if (!are_many(&q->bindings))
		return false;
	q->broker->work += left;
	(void)bindings_drop_some(q, &left);
	return true;
}

/* Its own are never all dropped: it might be on its way out then, by itself. */
bool
bindings_thin_exchange(struct exchange *x)
{
	struct vhost *vh = x->vhost;
	bool outward = x->binding_count >= 2 * BINDINGS_AT_ONCE;

	if (!outward && !are_many(&x->inbound))
		return false;
	vh->broker->work += BINDINGS_AT_ONCE;
	for (unsigned i = 0; i < BINDINGS_AT_ONCE; i++)
		drop(outward ? LIST_FIRST(&x->bindings) : LIST_FIRST(&x->inbound));
	exchanges_reap_unbound(vh);
	return true;
}

void
bindings_drop_exchange(struct exchange *x)
{
	unsigned all = UINT_MAX;

	(void)bindings_drop_some_of_exchange(x, &all);
}
