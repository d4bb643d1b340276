/* SPDX-License-Identifier: Apache-2.0
 * Sets of eight places: the hashes of a set are one cache line, so that a miss costs one, and a hit the entry. An entry
 * of an older generation is as good as none and is freed when its place is wanted; so a change of topology costs
 * nothing here. */
#include "broker/route_cache.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/hash.h"

enum {
	WAYS = 8,
	SETS_FIRST = 8, /* 64 keys, then 512, then 4,096 */
	SETS_MAX = 512,
	SETS_GROWTH = 8,
};
static const size_t exchange_bytes_max = 4u << 20, all_bytes_max = 64u << 20;

struct cached {
	uint64_t generation;
	size_t bytes; /* of it */
	struct route route;
	uint8_t key_len;
	struct queue *queue[]; /* then the key */
};

struct set {
	uint64_t hash[WAYS];
	struct cached *entry[WAYS]; /* owned; NULL: free */
};

struct route_cache {
	struct cached *any; /* owned: holds for every key */
	struct set *set;    /* owned */
	uint32_t sets;      /* a power of two */
	uint32_t hand;      /* whose turn it is to go */
	size_t bytes;       /* of entries and sets */
};

static size_t all_bytes;

size_t
route_cache_bytes(void)
{
	return all_bytes;
}

static void
count_bytes(struct route_cache *c, size_t more, size_t less)
{
	c->bytes += more - less;
	all_bytes += more - less;
}

static const uint8_t *
cached_key(const struct cached *e)
{
	return (const uint8_t *)&e->queue[e->route.count];
}

static void
drop(struct route_cache *c, struct cached **ep)
{
	if (*ep == NULL)
		return;
	count_bytes(c, 0, (*ep)->bytes);
	free(*ep);
	*ep = NULL;
}

const struct route *
route_cache_find(const struct exchange *x, struct span key)
{
	const struct route_cache *c = x->cache;
	const struct cached *e;
	const struct set *s;
	uint64_t hash;
	unsigned i;

	if (c == NULL)
		return NULL;
	if (c->any != NULL && c->any->generation == x->generation)
		return &c->any->route;
	hash = hash_span(key);
	s = &c->set[hash & (c->sets - 1)];
	for (i = 0; i < WAYS; i++) {
		if (s->hash[i] != hash || (e = s->entry[i]) == NULL ||
		    e->generation != x->generation)
			continue;
		if (span_eq(span_of(cached_key(e), e->key_len), key))
			return &e->route;
	}
	return NULL;
}

static struct cached *
cached_new(const struct exchange *x, struct span key, const struct route *r)
{
	size_t queues = r->count * sizeof(struct queue *),
	       n = sizeof(struct cached) + queues + key.n;
	struct cached *e = xmalloc(n);

	*e = (struct cached){ .generation = x->generation, .bytes = n, .key_len = (uint8_t)key.n };
	e->route = (struct route){ .count = r->count, .queue = e->queue };
	if (queues > 0)
		memcpy(e->queue, r->queue, queues);
	if (key.n > 0)
		memcpy((uint8_t *)&e->queue[r->count], key.p, key.n);
	return e;
}

/* A place in the set that is free or of an older generation; WAYS: none. */
static unsigned
free_place(const struct set *s, uint64_t generation)
{
	unsigned i;

	for (i = 0; i < WAYS; i++) {
		if (s->entry[i] == NULL || s->entry[i]->generation != generation)
			break;
	}
	return i;
}

static void
make_sets(struct route_cache *c, uint32_t sets)
{
	void *p = xcalloc(sets, sizeof *c->set);

	count_bytes(c, sets * sizeof *c->set, c->sets * sizeof *c->set);
	free(c->set);
	c->set = p;
	c->sets = sets;
}

/* What is still valid moves over: its set has room, as one set becomes eight. */
static void
grow(struct route_cache *c, uint64_t generation)
{
	struct set *old = c->set, *to;
	uint32_t sets = c->sets, i;
	unsigned k, place;

	c->set = NULL;
	make_sets(c, sets * SETS_GROWTH);
	for (i = 0; i < sets; i++) {
		for (k = 0; k < WAYS; k++) {
			if (old[i].entry[k] == NULL)
				continue;
			to = &c->set[old[i].hash[k] & (c->sets - 1)];
			place = free_place(to, generation);
			if (old[i].entry[k]->generation != generation || place == WAYS) {
				drop(c, &old[i].entry[k]);
				continue;
			}
			to->hash[place] = old[i].hash[k];
			to->entry[place] = old[i].entry[k];
		}
	}
	free(old);
}

/* Frees entries, in turn, until there is room for `bytes` more; false: there is none. */
static bool
make_room(struct route_cache *c, size_t bytes)
{
	uint32_t looked = 0, places = c->sets * WAYS;

	if (bytes > exchange_bytes_max / 4)
		return false;
	while (c->bytes + bytes > exchange_bytes_max || all_bytes + bytes > all_bytes_max) {
		if (looked++ == places)
			return false;
		c->hand = (c->hand + 1) % places;
		drop(c, &c->set[c->hand / WAYS].entry[c->hand % WAYS]);
	}
	return true;
}

void
route_cache_put(struct exchange *x, struct span key, bool any_key, const struct route *r)
{
	size_t bytes = sizeof(struct cached) + r->count * sizeof(struct queue *) + key.n;
	struct route_cache *c = x->cache;
	uint64_t hash = hash_span(key);
	struct set *s;
	unsigned place;

	assert(key.n <= 255);
	if (c == NULL) {
		c = x->cache = xcalloc(1, sizeof *c);
		make_sets(c, SETS_FIRST);
	}
	if (any_key) {
		drop(c, &c->any);
		if (make_room(c, bytes)) {
			c->any = cached_new(x, key, r);
			count_bytes(c, c->any->bytes, 0);
		}
		return;
	}
	s = &c->set[hash & (c->sets - 1)];
	place = free_place(s, x->generation);
	if (place == WAYS && c->sets < SETS_MAX) {
		grow(c, x->generation);
		s = &c->set[hash & (c->sets - 1)];
		place = free_place(s, x->generation);
	}
	if (place == WAYS)
		place = c->hand++ % WAYS;
	drop(c, &s->entry[place]);
	if (!make_room(c, bytes))
		return;
	s->hash[place] = hash;
	s->entry[place] = cached_new(x, key, r);
	count_bytes(c, bytes, 0);
}

void
route_cache_free(struct exchange *x)
{
	struct route_cache *c = x->cache;
	uint32_t i;

	x->cache = NULL;
	if (c == NULL)
		return;
	drop(c, &c->any);
	for (i = 0; i < c->sets * WAYS; i++)
		drop(c, &c->set[i / WAYS].entry[i % WAYS]);
	count_bytes(c, 0, c->sets * sizeof *c->set);
	assert(c->bytes == 0);
	free(c->set);
	free(c);
}
