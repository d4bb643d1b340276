/* SPDX-License-Identifier: Apache-2.0
 * A hash of things that embed a node of it, for tables that clients make as large as they like: it grows by one bucket
 * with each thing (linear hashing), where a table that doubles would hold its thread for as long as all of them take.
 * Whoever puts something in brings its hash, and tells those of equal hash apart. */
#ifndef BASE_BUCKETS_H
#define BASE_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

struct bucket_node {
	struct bucket_node *next; /* in the same bucket */
	uint64_t hash;
};

struct buckets { /* zero at first, and when nothing is in it */
	struct bucket_node ***part;	/* owned: arrays of BUCKETS_PART, a first one may be shorter */
	size_t low, split;		/* a power of two; of those buckets so many were split: low + split there are */
	size_t count;			/* of things */
};

enum { BUCKETS_PART = 512 };

/* n is in no other; it stays where it is until buckets_remove(). */
void buckets_add(struct buckets *b, struct bucket_node *n, uint64_t hash);
void buckets_remove(struct buckets *b, struct bucket_node *n);

/* Bits beyond those in use name buckets that are not split yet. */
static inline struct bucket_node **
buckets_slot(const struct buckets *b, uint64_t hash)
{
	size_t at = hash & (2 * b->low - 1);

	if (at >= b->low + b->split)
		at -= b->low;
	return &b->part[at / BUCKETS_PART][at % BUCKETS_PART];
}

static inline struct bucket_node *
buckets_same(struct bucket_node *n, uint64_t hash)
{
	while (n != NULL && n->hash != hash)
		n = n->next;
	return n;
}

/* Those of this hash, the newest first: for (n = buckets_first(b, hash); n != NULL; n = buckets_next(n)) */
static inline struct bucket_node *
buckets_first(const struct buckets *b, uint64_t hash)
{
	return b->count > 0 ? buckets_same(*buckets_slot(b, hash), hash) : NULL;
}

static inline struct bucket_node *
buckets_next(const struct bucket_node *n)
{
	return buckets_same(n->next, n->hash);
}

#endif
