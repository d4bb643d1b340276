/* SPDX-License-Identifier: Apache-2.0
 * direct: the binding's key is the message's key (0-9-1, 3.1.3.1). A hash of keys; bindings of one key hang together. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/exchange_type/type.h"
#include "broker/hash.h"

enum { SLOTS_FIRST = 8 };

struct direct_key {
	struct direct_key *next;
	uint64_t hash;
	struct binding_list bindings; /* never empty */
	uint8_t len;
	uint8_t key[];
};

struct direct {
	struct direct_key **slot; /* owned; NULL while count is 0 */
	size_t slots, count;      /* slots: a power of two */
};

static struct direct_key **
find(const struct direct *d, struct span key, uint64_t hash)
{
	struct direct_key **kp = &d->slot[hash & (d->slots - 1)];

	while (
	    *kp != NULL && ((*kp)->hash != hash || !span_eq(span_of((*kp)->key, (*kp)->len), key)))
		kp = &(*kp)->next;
	return kp;
}

static void
grow(struct direct *d)
{
	size_t slots = d->slots == 0 ? SLOTS_FIRST : d->slots * 2, i;
	struct direct_key **slot = xcalloc(slots, sizeof(struct direct_key *)), *k, **to;

	for (i = 0; i < d->slots; i++) {
		while ((k = d->slot[i]) != NULL) {
			d->slot[i] = k->next;
			to = &slot[k->hash & (slots - 1)];
			k->next = *to;
			*to = k;
		}
	}
	free(d->slot);
	d->slot = slot;
	d->slots = slots;
}

static void
direct_add(struct exchange *x, struct binding *b)
{
	struct span key = binding_key(b);
	uint64_t hash = hash_span(key);
	struct direct_key **kp, *k;
	struct direct *d = x->index;

	if (d == NULL)
		d = x->index = xcalloc(1, sizeof *d);
	if (d->count == d->slots)
		grow(d);
	kp = find(d, key, hash);
	k = *kp;
	if (k == NULL) {
		k = xmalloc(sizeof *k + key.n);
		mem_add(MEM_TOPOLOGY, sizeof *k + key.n);
		k->next = NULL;
		k->hash = hash;
		LIST_INIT(&k->bindings);
		k->len = b->key_len;
		if (key.n > 0)
			memcpy(k->key, key.p, key.n);
		*kp = k;
		d->count++;
	}
	LIST_INSERT_HEAD(&k->bindings, b, index_link);
	b->index_node = k;
}

static void
direct_remove(struct exchange *x, struct binding *b)
{
	struct direct *d = x->index;
	struct direct_key *k = b->index_node, **kp;

	LIST_REMOVE(b, index_link);
	b->index_node = NULL;
	if (!LIST_EMPTY(&k->bindings))
		return;
	kp = find(d, span_of(k->key, k->len), k->hash);
	assert(*kp == k);
	*kp = k->next;
	mem_sub(MEM_TOPOLOGY, sizeof *k + k->len);
	free(k);
	if (--d->count == 0) {
		free(d->slot);
		*d = (struct direct){ 0 };
	}
}

static void
direct_route(struct exchange *x, struct span key, struct route_walk *w)
{
	struct direct *d = x->index;
	struct direct_key *k;
	struct binding *b;

	if (d == NULL || d->count == 0)
		return;
	k = *find(d, key, hash_span(key));
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

	assert(d == NULL || d->count == 0);
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
