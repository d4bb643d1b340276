/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buckets.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

enum { FIRST = 4 };

static size_t
bucket_count(const struct buckets *b)
{
	return b->low + b->split;
}

static struct bucket_node **
slot_at(const struct buckets *b, size_t at)
{
	return &b->part[at / BUCKETS_PART][at % BUCKETS_PART];
}

static void
init(struct buckets *b)
{
	b->part = xmalloc(sizeof b->part[0]);
	b->part[0] = xcalloc(FIRST, sizeof *b->part[0]);
	b->low = FIRST;
	b->split = 0;
}

/* All were split: there are twice as many. */
static void
begin_round(struct buckets *b)
{
	b->low *= 2;
	b->split = 0;
	if (b->low >= BUCKETS_PART)
		b->part = xrealloc(b->part, 2 * b->low / BUCKETS_PART * sizeof b->part[0]);
}

/* For the bucket `at`, the next one. */
static void
make_room(struct buckets *b, size_t at)
{
	if (at % BUCKETS_PART == 0)
		b->part[at / BUCKETS_PART] = xmalloc(BUCKETS_PART * sizeof *b->part[0]);
	else if (at == b->low)
		b->part[0] = xrealloc(b->part[0], 2 * at * sizeof *b->part[0]);
}

/* One bucket more: what belongs there comes from the one whose turn it is to be split. */
static void
split_one(struct buckets *b)
{
	struct bucket_node *n, **stay, **go;
	size_t at;

	if (b->split == b->low)
		begin_round(b);
	at = bucket_count(b);
	make_room(b, at);
	stay = slot_at(b, b->split);
	go = slot_at(b, at);
	for (n = *stay; n != NULL; n = n->next) {
		struct bucket_node ***to = (n->hash & b->low) != 0 ? &go : &stay;

		**to = n;
		*to = &n->next;
	}
	*stay = *go = NULL;
	b->split++;
}

void
buckets_add(struct buckets *b, struct bucket_node *n, uint64_t hash)
{
	struct bucket_node **slot;

	if (b->part == NULL)
		init(b);
	else if (b->count >= bucket_count(b))
		split_one(b);
	b->count++;
	slot = buckets_slot(b, hash);
	n->hash = hash;
	n->next = *slot;
	*slot = n;
}

static void
fini(struct buckets *b)
{
	size_t n = bucket_count(b);

	for (size_t i = 0; i * BUCKETS_PART < n; i++)
		free(b->part[i]);
	free(b->part);
	*b = (struct buckets){ 0 };
}

void
buckets_remove(struct buckets *b, struct bucket_node *n)
{
	struct bucket_node **np;

	assert(b->count > 0);
	for (np = buckets_slot(b, n->hash); *np != n;)
		np = &(*np)->next;
	*np = n->next;
	if (--b->count == 0)
		fini(b);
}
