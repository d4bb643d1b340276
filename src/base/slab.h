/* SPDX-License-Identifier: Apache-2.0
 * Memory for messages, handed out in address order (DESIGN: the life of a message, 4).
 *
 * Up to SLAB_ITEM_MAX bytes come from 256 KiB slabs, one size class at a time, four classes per
 * doubling, filled upwards; a slab whose items are all gone is used again whole. Larger items come
 * from base/pages. One item pins its slab, so mem_held[MEM_SLABS] counts whole slabs; partly empty
 * ones are filled up first when more than half of what a class holds lies idle. Core thread only.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/asan.h"
#include "base/attr.h"
#include "base/pages.h"

enum { SLAB_SIZE = 256 << 10, SLAB_ITEM_MAX = 8 << 10, SLAB_CLASSES = 29 };
#define SLAB_HEAP UINT32_MAX

/* Memory for n bytes, 16-byte aligned, or NULL. *home is kept by the owner and given back to
 * slab_free. */
static inline void *slab_try_alloc(size_t n, uint32_t *home) MUSTUSE;
/* For what is ours and bounded, up to SLAB_ITEM_MAX: aborts as xmalloc does. */
static inline void *slab_xalloc(size_t n, uint32_t *home) MUSTUSE;
static inline void slab_free(void *p, uint32_t home, size_t n); /* n as it was asked for */

/* Returns empty slabs to the system: half of those beyond 16 that were empty throughout the last
 * calls (base/low_water), for at most about 1 ms; called about once a second. So a backlog that swings
 * keeps its memory: fresh pages cost more than the messages in them. A class that was left without
 * items keeps its slab counted until the next call. */
void slab_trim(void);

struct slab_stats {
	uint64_t slabs_used, slabs_empty; /* of 256 KiB; a region of page runs counts as 8 */
	uint64_t items, item_bytes;       /* with what rounding up adds */
};
void slab_get_stats(struct slab_stats *out);

/* mem_fail_try: sends every slab_try_alloc through the check until nothing is armed any more. */
void slab_hold_fast_path(void);

/* The rest is the fast path, and belongs to slab.c. */
struct slab {          /* at the start of its 256 KiB */
	uint32_t live; /* items handed out */
	uint32_t mark; /* slab_free_slow is called at this many */
	uint32_t used; /* bytes from the start: the next item, if it fits */
	uint16_t class;
	uint8_t state, bucket;
	void *free;                 /* items that came back, linked through their first word */
	struct slab_region *region; /* borrowed: lives as long as one of its slabs is touched */
	TAILQ_ENTRY(slab) link;     /* partial or empty */
};
struct slab_hot {
	struct slab *fast; /* borrowed: the class's current slab, or one with no room */
	uint64_t items;
	uint32_t size;
};
extern struct slab_hot slab_hot[SLAB_CLASSES];

void *slab_alloc_slow(unsigned class, size_t n) MUSTUSE;
void *slab_xalloc_slow(unsigned class, size_t n) MUSTUSE;
void slab_free_slow(struct slab *s);

/* 0: up to 64; then 80, 96, 112, 128, 160, 192, ... 8192 */
static inline unsigned
slab_class(size_t n)
{
	unsigned b;

	if (n <= 64)
		return 0;
	b = 63 - (unsigned)__builtin_clzl(n - 1);
	return (b - 6) * 4 + (unsigned)((n - 1) >> (b - 2)) - 3;
}

/* An item of the class's current slab, or NULL: then the slow half is due. */
static inline void *
slab_fast(unsigned class, size_t n)
{
	struct slab_hot *h = &slab_hot[class];
	struct slab *s = h->fast;
	void *p;

	if (unlikely(s->used + h->size > SLAB_SIZE))
		return NULL;
	p = (uint8_t *)s + s->used;
	s->used += h->size;
	s->live++;
	h->items++;
	asan_allow(p, n);
	return p;
}

static inline void *
slab_xalloc(size_t n, uint32_t *home)
{
	unsigned class = slab_class(n);
	void *p = slab_fast(class, n);

	if (unlikely(p == NULL))
		p = slab_xalloc_slow(class, n);
	*home = class;
	return p;
}

static inline void *
slab_try_alloc(size_t n, uint32_t *home)
{
	unsigned class;
	void *p;

	if (unlikely(n > SLAB_ITEM_MAX)) {
		p = pages_try_alloc(n);
		if (p != NULL)
			*home = SLAB_HEAP;
		return p;
	}
	class = slab_class(n);
	p = slab_fast(class, n);
	if (unlikely(p == NULL)) {
		p = slab_alloc_slow(class, n);
		if (unlikely(p == NULL))
			return NULL;
	}
	*home = class;
	return p;
}

static inline void
slab_free(void *p, uint32_t home, size_t n)
{
	struct slab *s;

	if (unlikely(home == SLAB_HEAP)) {
		pages_free(p, n);
		return;
	}
	s = (struct slab *)((uintptr_t)p & ~(uintptr_t)(SLAB_SIZE - 1));
	asan_allow(p, sizeof(void *));
	*(void **)p = s->free;
	s->free = p;
	asan_forbid(p, slab_hot[home].size);
	slab_hot[home].items--;
	if (unlikely(--s->live <= s->mark))
		slab_free_slow(s);
}

#endif
