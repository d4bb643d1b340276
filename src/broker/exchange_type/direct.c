/* SPDX-License-Identifier: Apache-2.0
 * direct: the binding's key is the message's key (0-9-1, 3.1.3.1). A hash of keys; bindings of one key hang together. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buckets.h"
#include "base/mem.h"
#include "broker/exchange_type/type.h"
#include "broker/hash.h"

struct direct_key {
	struct bucket_node node;
	struct binding_list bindings; /* never empty */
	uint8_t len;
	uint8_t key[];
};

struct direct {
	struct buckets keys;
};

static struct direct_key *
find(const struct direct *d, struct span key, uint64_t hash)
{
	struct bucket_node *n = buckets_first(&d->keys, hash);

	for (; n != NULL; n = buckets_next(n)) {
		struct direct_key *k = container_of(n, struct direct_key, node);

		if (span_eq(span_of(k->key, k->len), key))
			return k;
	}
	return NULL;
}

static void
direct_add(struct exchange *x, struct binding *b)
{
	struct span key = binding_key(b);
	uint64_t hash = hash_span(key);
	struct direct_key *k;
	struct direct *d = x->index;

	if (d == NULL)
		d = x->index = xcalloc(1, sizeof *d);
	k = find(d, key, hash);
	if (k == NULL) {
		k = xmalloc(sizeof *k + key.n);
		mem_add(MEM_TOPOLOGY, sizeof *k + key.n);
		LIST_INIT(&k->bindings);
		k->len = b->key_len;
		if (key.n > 0)
			memcpy(k->key, key.p, key.n);
		buckets_add(&d->keys, &k->node, hash);
	}
	LIST_INSERT_HEAD(&k->bindings, b, index_link);
	b->index_node = k;
}

static void
direct_remove(struct exchange *x, struct binding *b)
{
	struct direct *d = x->index;
	struct direct_key *k = b->index_node;

	LIST_REMOVE(b, index_link);
	b->index_node = NULL;
	if (!LIST_EMPTY(&k->bindings))
		return;
	buckets_remove(&d->keys, &k->node);
	mem_sub(MEM_TOPOLOGY, sizeof *k + k->len);
	free(k);
}

static void
direct_route(struct exchange *x, struct span key, struct route_walk *w)
{
	struct direct *d = x->index;
	struct direct_key *k;
	struct binding *b;

	if (d == NULL || d->keys.count == 0)
		return;
	k = find(d, key, hash_span(key));
	if (k == NULL)
		return;
	LIST_FOREACH (b, &k->bindings, index_link) {
		if (!route_hit(w, b))
			break;
	}
}

static void
direct_free(struct exchange *x)
{
	struct direct *d = x->index;

	assert(d == NULL || d->keys.count == 0);
	free(d);
	x->index = NULL;
}

const struct exchange_type_ops exchange_direct = {
	.name = "direct",
	.add = direct_add,
	.remove = direct_remove,
	.route = direct_route,
	.free = direct_free,
	.by_key = true,
};
