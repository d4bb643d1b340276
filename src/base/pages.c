/* SPDX-License-Identifier: Apache-2.0
 * Page runs and large blocks: see the header. Regions live as slabs do (slab.c): current, partial
 * in eight buckets, empty; the first page of a region holds its head. */
#include "base/pages.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/asan.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/region.h"

enum {
	PAGE = 4096,
	PAGES = REGION_SIZE / PAGE,
	BUCKETS = 8,
	SHORT_ABOVE = 32 << 20,
	PARTIAL_TRIES = 4, /* regions looked at for a hole before a whole one is taken */
	STOCK_CLASSES = 8  /* four per doubling */
};
enum run_state { RUN_CURRENT, RUN_REFILLED, RUN_PARTIAL }; /* the first two are current */

struct run_region {
	uint32_t live; /* pages handed out */
	uint32_t mark; /* looked at when live falls to this */
	uint32_t next; /* page that the next run begins at or behind */
	uint8_t state, bucket;
	/* pages below next that came back; when partial, all free ones */
	uint64_t free[PAGES / 64];
	TAILQ_ENTRY(run_region) link; /* partial */
};
TAILQ_HEAD(run_list, run_region);

struct block { /* in stock */
	struct block *next;
};

static struct run_region *current;
static struct run_list partial[BUCKETS];
static struct block *stock[STOCK_CLASSES];
static uint64_t stock_bytes, regions, live_pages, n_items, heap_bytes;

static inline uint32_t
pages_of(size_t n)
{
	return (uint32_t)((n + PAGE - 1) / PAGE);
}

/* Sets or clears the bits of k pages from page i on. */
static void
mark_pages(struct run_region *r, uint32_t i, uint32_t k, bool is_free)
{
	while (k > 0) {
		uint32_t bit = i % 64, n = 64 - bit < k ? 64 - bit : k;
		uint64_t mask = (n == 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1) << bit;

		if (is_free)
			r->free[i / 64] |= mask;
		else
			r->free[i / 64] &= ~mask;
		i += n;
		k -= n;
	}
}

static inline void
start_over(struct run_region *r)
{
	r->next = 1;
	r->mark = 0;
	r->state = RUN_CURRENT;
	memset(r->free, 0, sizeof r->free);
}

static void
bucket_enter(struct run_region *r)
{
	assert(r->live > 0);
	r->bucket = (uint8_t)((r->live - 1) * BUCKETS / PAGES);
	r->mark = r->bucket * (uint32_t)(PAGES / BUCKETS);
	TAILQ_INSERT_TAIL(&partial[r->bucket], r, link);
}

static void
retire(void)
{
	struct run_region *r = current;

	current = NULL;
	if (r == NULL)
		return;
	if (r->state == RUN_CURRENT)
		mark_pages(r, r->next, PAGES - r->next, true);
	r->state = RUN_PARTIAL;
	bucket_enter(r);
}

/* r, which has no runs and is in no list, goes back to the regions. */
static void
give_back(struct run_region *r)
{
	assert(r->live == 0);
	regions--;
	mem_sub(MEM_LARGE, REGION_SIZE);
	region_put(r);
}

/* ---- runs ---- */

/* The first hole of k pages at or behind page i, or 0. Only for regions that are filled up. */
static uint32_t
find_hole(const struct run_region *r, uint32_t i, uint32_t k)
{
	uint32_t run = 0;

	for (; i < PAGES; i++) {
		if (r->free[i / 64] == 0 && i % 64 == 0) {
			run = 0;
			i += 63;
			continue;
		}
		run = r->free[i / 64] & (uint64_t)1 << (i % 64) ? run + 1 : 0;
		if (run == k)
			return i + 1 - k;
	}
	return 0;
}

static void *
take_run(uint32_t k)
{
	struct run_region *r = current;
	uint32_t at;

	if (r == NULL)
		return NULL;
	if (r->state == RUN_CURRENT) {
		at = r->next + k <= PAGES ? r->next : 0;
	} else {
		at = find_hole(r, r->next, k);
		mark_pages(r, at, at > 0 ? k : 0, false);
	}
	if (at == 0)
		return NULL;
	r->next = at + k;
	r->live += k;
	live_pages += k;
	return (uint8_t *)r + (size_t)at * PAGE;
}

static bool
is_short(void)
{
	return regions * REGION_SIZE > SHORT_ABOVE && live_pages * 2 < regions * PAGES;
}

/* Makes the emptiest partial region with a hole of k pages the current one. */
static bool
use_partial(uint32_t k, int buckets, unsigned tries)
{
	for (int b = 0; b < buckets; b++) {
		struct run_region *r;

		TAILQ_FOREACH (r, &partial[b], link) {
			if (tries-- == 0)
				return false;
			if (find_hole(r, 1, k) == 0)
				continue;
			TAILQ_REMOVE(&partial[b], r, link);
			r->state = RUN_REFILLED;
			r->mark = 0;
			r->next = 1;
			current = r;
			return true;
		}
	}
	return false;
}

static bool
use_whole(void)
{
	bool fresh;
	struct run_region *r = region_try_get(&fresh);

	if (r == NULL)
		return false;
	asan_allow(r, PAGE);
	asan_forbid((uint8_t *)r + PAGE, REGION_SIZE - PAGE);
	r->live = 0;
	start_over(r);
	regions++;
	mem_add(MEM_LARGE, REGION_SIZE);
	current = r;
	return true;
}

static void *
alloc_run(size_t n)
{
	uint32_t k = pages_of(n);
	void *p = take_run(k);

	if (p == NULL) {
		if (partial[0].tqh_last == NULL) {
			for (int b = 0; b < BUCKETS; b++)
				TAILQ_INIT(&partial[b]);
		}
		retire();
		if (!(is_short() && use_partial(k, BUCKETS / 2, PARTIAL_TRIES)) && !use_whole() &&
		    !use_partial(k, BUCKETS, UINT32_MAX))
			return NULL;
		p = take_run(k);
		assert(p != NULL);
	}
	asan_allow(p, n);
	return p;
}

static void
free_run(void *p, size_t n)
{
	struct run_region *r = (void *)((uintptr_t)p & ~(uintptr_t)(REGION_SIZE - 1));
	uint32_t k = pages_of(n);

	asan_forbid(p, (size_t)k * PAGE);
	assert(r->live >= k);
	mark_pages(r, (uint32_t)((uint8_t *)p - (uint8_t *)r) / PAGE, k, true);
	live_pages -= k;
	r->live -= k;
	if (likely(r->live > r->mark))
		return;
	if (r == current) {
		start_over(r);
		return;
	}
	TAILQ_REMOVE(&partial[r->bucket], r, link);
	if (r->live == 0)
		give_back(r);
	else
		bucket_enter(r);
}

/* ---- above 256 KiB ---- */

/* What n is rounded up to, and its class; STOCK_CLASSES for what is never kept. */
static size_t
block_size(size_t n, unsigned *class)
{
	unsigned b = 63 - (unsigned)__builtin_clzl(n - 1);
	size_t step = (size_t)1 << (b - 2);

	*class = STOCK_CLASSES;
	if (n > PAGES_STOCK_ITEM_MAX)
		return n;
	*class = (b - 18) * 4 + (unsigned)((n - 1) / step) - 4;
	return (n + step - 1) / step * step;
}

static void *
alloc_block(size_t n)
{
	unsigned class;
	size_t size = block_size(n, &class);
	struct block *k = class < STOCK_CLASSES ? stock[class] : NULL;

	if (k != NULL) {
		stock[class] = k->next;
		stock_bytes -= size;
	} else {
		k = malloc(size);
		if (k == NULL)
			return NULL;
	}
	heap_bytes += size;
	mem_add(MEM_LARGE, size);
	return k;
}

static void
free_block(void *p, size_t n)
{
	unsigned class;
	size_t size = block_size(n, &class);
	struct block *k = p;

	heap_bytes -= size;
	mem_sub(MEM_LARGE, size);
	if (class == STOCK_CLASSES || stock_bytes + size > PAGES_STOCK_MAX) {
		free(p);
		return;
	}
	k->next = stock[class];
	stock[class] = k;
	stock_bytes += size;
}

void *
pages_try_alloc(size_t n)
{
	void *p = NULL;

	if (!mem_try_refused())
		p = n <= PAGES_RUN_MAX ? alloc_run(n) : alloc_block(n);
	if (unlikely(p == NULL))
		mem_note_failure();
	else
		n_items++;
	return p;
}

void
pages_free(void *p, size_t n)
{
	n_items--;
	if (n <= PAGES_RUN_MAX)
		free_run(p, n);
	else
		free_block(p, n);
}

void
pages_trim(uint64_t until_us)
{
	uint64_t floor = stock_bytes / 2;

	if (current != NULL && current->live == 0) {
		give_back(current);
		current = NULL;
	}
	for (unsigned c = 0; c < STOCK_CLASSES; c++) {
		while (stock[c] != NULL && stock_bytes > floor && clock_mono_us() < until_us) {
			struct block *k = stock[c];

			stock[c] = k->next;
			stock_bytes -= ((size_t)(4 + c % 4) + 1) << (16 + c / 4);
			free(k);
		}
	}
}

void
pages_get_stats(struct pages_stats *out)
{
	out->regions_used = regions;
	out->items = n_items;
	out->item_bytes = live_pages * PAGE + heap_bytes;
	out->stock_bytes = stock_bytes;
}
