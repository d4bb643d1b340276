/* SPDX-License-Identifier: Apache-2.0
 * Slabs: see the header.
 *
 * A class fills its current slab. When that is full it retires: it is put into one of eight buckets
 * by how much of it is still live, and moves down as items go; with the last item it joins the
 * empty ones, which any class takes, the one emptied last first, because it is warm in the cache.
 * The current slab starts over in place when its last item goes, so a message handed over at once
 * uses the same bytes again and again.
 *
 *	cold (address space only) -> current -> partial (bucket 7..0) -> empty -> current or cold
 *	                                ^__ filled up again when memory is short __|
 */
#include "base/slab.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/low_water.h"
#include "base/mem.h"
#include "base/region.h"

enum {
	BUCKETS = 8,
	PER_REGION = REGION_SIZE / SLAB_SIZE,
	ALL_COLD = (1 << PER_REGION) - 1,
	KEEP_EMPTY = 16,
	SHORT_ABOVE = 32 << 20, /* bytes in slabs, below which nothing is filled up */
	TRIM_US = 1000,
	ITEMS_AT = 64,
	MAX_ITEMS = SLAB_SIZE / 64
};
/* The first two are current. */
enum slab_state { SLAB_CURRENT, SLAB_REFILLED, SLAB_PARTIAL, SLAB_EMPTY };

TAILQ_HEAD(slab_list, slab);

struct slab_region {
	uint8_t *base;
	unsigned cold;                /* set of its slabs that hold no memory */
	unsigned empty;               /* how many of the others are empty */
	LIST_ENTRY(slab_region) link; /* in cold_regions while cold != 0, else in touched_regions */
};

struct class {
	struct slab *current; /* one of ours or NULL */
	uint32_t slabs;       /* current and partial ones */
	struct slab_list partial[BUCKETS];
};

/* Stands in for a current slab where there is none, or where the fast path is held. */
static struct slab no_room = { .used = SLAB_SIZE + 1 };

struct slab_hot slab_hot[SLAB_CLASSES] = { [0 ... SLAB_CLASSES - 1] = { .fast = &no_room } };
static struct class classes[SLAB_CLASSES];
static struct slab_list empty_slabs = TAILQ_HEAD_INITIALIZER(empty_slabs);
static uint64_t n_used, n_empty;
static struct low_water empty_low;
static LIST_HEAD(, slab_region) cold_regions, touched_regions;

static_assert(sizeof(struct slab) <= ITEMS_AT, "the head has a cache line of its own");

static inline uint32_t
class_size(unsigned c)
{
	return c == 0 ? 64 : (4 + ((c - 1) & 3) + 1) << (4 + ((c - 1) >> 2));
}

static inline uint32_t
slab_capacity(const struct slab *s)
{
	return (SLAB_SIZE - ITEMS_AT) / slab_hot[s->class].size;
}

static void
use_fast_path(unsigned c)
{
	struct slab *s = classes[c].current;

	slab_hot[c].fast = s != NULL && mem_tries_to_fail == 0 ? s : &no_room;
}

void
slab_hold_fast_path(void)
{
	for (unsigned c = 0; c < SLAB_CLASSES; c++)
		slab_hot[c].fast = &no_room;
}

static void
class_init(unsigned c)
{
	slab_hot[c].size = class_size(c);
	for (int b = 0; b < BUCKETS; b++)
		TAILQ_INIT(&classes[c].partial[b]);
}

static inline void
start_over(struct slab *s)
{
	s->used = ITEMS_AT;
	s->mark = 0;
	s->free = NULL;
	s->state = SLAB_CURRENT;
}

/* ---- partial slabs ---- */

static void
bucket_enter(struct slab *s)
{
	uint32_t capacity = slab_capacity(s);

	s->bucket = (uint8_t)((uint64_t)(s->live - 1) * BUCKETS / capacity);
	/* The greatest number of items for which the line above gives a lower bucket; 0 in the
	 * lowest. */
	s->mark = (uint32_t)(((uint64_t)s->bucket * capacity + BUCKETS - 1) / BUCKETS);
	TAILQ_INSERT_TAIL(&classes[s->class].partial[s->bucket], s, link);
}

static void
retire(unsigned c)
{
	struct slab *s = classes[c].current;

	classes[c].current = NULL;
	if (s == NULL)
		return;
	assert(s->live > 0);
	s->state = SLAB_PARTIAL;
	bucket_enter(s);
}

/* More than half of what the class holds lies idle, and there is enough of it to matter. */
static bool
class_is_short(unsigned c)
{
	return mem_held[MEM_SLABS] > SHORT_ABOVE &&
	       slab_hot[c].items * slab_hot[c].size * 2 < (uint64_t)classes[c].slabs * SLAB_SIZE;
}

/* The free list in address order, so that what is filled in lies as it will be read. */
static void
sort_free_list(struct slab *s)
{
	uint64_t is_free[MAX_ITEMS / 64] = { 0 };
	uint32_t size = slab_hot[s->class].size, n = slab_capacity(s);
	uint8_t *items = (uint8_t *)s + ITEMS_AT;
	void *next = NULL;

	for (void *p = s->free; p != NULL;) {
		uint32_t i = (uint32_t)((uint8_t *)p - items) / size;

		assert(i < n);
		is_free[i / 64] |= (uint64_t)1 << (i % 64);
		asan_allow(p, sizeof(void *));
		p = *(void **)p;
	}
	for (uint32_t i = n; i-- > 0;) {
		void *p = items + (size_t)i * size;

		if (!(is_free[i / 64] & (uint64_t)1 << (i % 64)))
			continue;
		*(void **)p = next;
		next = p;
		asan_forbid(p, sizeof(void *));
	}
	s->free = next;
}

/* The emptiest partial slab of the class among its buckets below `buckets`, or NULL. */
static struct slab *
take_partial(unsigned c, int buckets)
{
	for (int b = 0; b < buckets; b++) {
		struct slab *s = TAILQ_FIRST(&classes[c].partial[b]);

		if (s == NULL || s->free == NULL)
			continue;
		TAILQ_REMOVE(&classes[c].partial[b], s, link);
		sort_free_list(s);
		s->state = SLAB_REFILLED;
		s->mark = 0;
		return s;
	}
	return NULL;
}

/* ---- whole slabs ---- */

static struct slab_region *
new_region(void)
{
	struct slab_region *r;
	bool fresh;
	void *base = region_try_get(&fresh);

	if (base == NULL)
		return NULL;
	r = xcalloc(1, sizeof *r);
	r->base = base;
	r->cold = ALL_COLD;
	LIST_INSERT_HEAD(&cold_regions, r, link);
	return r;
}

static struct slab *
take_cold(void)
{
	struct slab_region *r = LIST_FIRST(&cold_regions);
	struct slab *s;
	unsigned i;

	if (r == NULL && (r = new_region()) == NULL)
		return NULL;
	i = (unsigned)__builtin_ctz(r->cold);
	r->cold &= r->cold - 1;
	if (r->cold == 0) {
		LIST_REMOVE(r, link);
		LIST_INSERT_HEAD(&touched_regions, r, link);
	}
	s = (struct slab *)(void *)(r->base + (size_t)i * SLAB_SIZE);
	asan_allow(s, ITEMS_AT);
	asan_forbid((uint8_t *)s + ITEMS_AT, SLAB_SIZE - ITEMS_AT);
	s->region = r;
	return s;
}

static struct slab *
take_whole(unsigned c)
{
	struct slab *s = TAILQ_FIRST(&empty_slabs);

	if (s != NULL) {
		TAILQ_REMOVE(&empty_slabs, s, link);
		n_empty--;
		low_water_fell(&empty_low, n_empty);
		s->region->empty--;
	} else {
		s = take_cold();
		if (s == NULL)
			return NULL;
		s->live = 0;
	}
	assert(s->live == 0);
	s->class = (uint16_t)c;
	start_over(s);
	n_used++;
	classes[c].slabs++;
	mem_add(MEM_SLABS, SLAB_SIZE);
	return s;
}

/* s, which has no items and is in no list, joins the empty ones. */
static void
leave_class(struct slab *s)
{
	assert(s->live == 0 && classes[s->class].slabs > 0);
	classes[s->class].slabs--;
	n_used--;
	mem_sub(MEM_SLABS, SLAB_SIZE);
	s->state = SLAB_EMPTY;
	s->free = NULL;
	s->region->empty++;
	n_empty++;
	TAILQ_INSERT_HEAD(&empty_slabs, s, link);
}

/* ---- the slow halves of alloc and free ---- */

/* An item of the current slab, or NULL if it has none left. */
static void *
take_item(unsigned c, size_t n)
{
	struct slab *s = classes[c].current;
	uint32_t size = slab_hot[c].size;
	void *p;

	if (s == NULL)
		return NULL;
	if (s->used + size <= SLAB_SIZE) {
		p = (uint8_t *)s + s->used;
		s->used += size;
	} else if (s->state == SLAB_REFILLED && s->free != NULL) {
		p = s->free;
		asan_allow(p, sizeof(void *));
		s->free = *(void **)p;
	} else {
		return NULL;
	}
	s->live++;
	slab_hot[c].items++;
	asan_forbid(p, size);
	asan_allow(p, n);
	return p;
}

static void *
alloc_slow(unsigned c, size_t n)
{
	struct slab *s = NULL;
	void *p;

	if (slab_hot[c].size == 0)
		class_init(c);
	p = take_item(c, n);
	if (p == NULL) {
		retire(c);
		if (class_is_short(c))
			s = take_partial(c, BUCKETS / 2);
		if (s == NULL)
			s = take_whole(c);
		if (s == NULL)
			s = take_partial(c, BUCKETS);
		classes[c].current = s;
		p = take_item(c, n);
	}
	use_fast_path(c);
	return p;
}

void *
slab_alloc_slow(unsigned c, size_t n)
{
	void *p = mem_try_refused() ? NULL : alloc_slow(c, n);

	if (p == NULL)
		mem_note_failure();
	return p;
}

void *
slab_xalloc_slow(unsigned c, size_t n)
{
	void *p;

	assert(c < SLAB_CLASSES);
	p = alloc_slow(c, n);
	if (p == NULL)
		mem_exhausted(n, __builtin_return_address(0));
	return p;
}

void
slab_free_slow(struct slab *s)
{
	struct class *k = &classes[s->class];

	if (s == k->current) {
		if (s->live == 0)
			start_over(s);
		return;
	}
	assert(s->state == SLAB_PARTIAL);
	TAILQ_REMOVE(&k->partial[s->bucket], s, link);
	if (s->live == 0)
		leave_class(s);
	else
		bucket_enter(s);
}

/* ---- back to the system ---- */

static void
make_cold(struct slab *s)
{
	struct slab_region *r = s->region;
	unsigned i = (unsigned)(((uint8_t *)s - r->base) / SLAB_SIZE);

	if (r->cold == 0) {
		LIST_REMOVE(r, link);
		LIST_INSERT_HEAD(&cold_regions, r, link);
	}
	TAILQ_REMOVE(&empty_slabs, s, link);
	r->cold |= BIT(i);
	r->empty--;
	n_empty--;
}

/* A region without a slab in use goes whole: this costs less, and gives address space and huge
 * pages back. */
static void
release_region(struct slab_region *r)
{
	for (unsigned i = 0; i < PER_REGION; i++) {
		if (!(r->cold & BIT(i)))
			make_cold((struct slab *)(void *)(r->base + (size_t)i * SLAB_SIZE));
	}
	LIST_REMOVE(r, link);
	region_release(r->base);
	free(r);
}

static bool
region_is_unused(const struct slab_region *r)
{
	return r->empty + (unsigned)__builtin_popcount(r->cold) == PER_REGION;
}

void
slab_trim(void)
{
	uint64_t until_us = clock_mono_us() + TRIM_US, idle, floor;

	for (unsigned c = 0; c < SLAB_CLASSES; c++) {
		struct slab *s = classes[c].current;

		if (s == NULL || s->live > 0)
			continue;
		classes[c].current = NULL;
		use_fast_path(c);
		leave_class(s);
	}
	idle = low_water_tick(&empty_low, n_empty);
	floor = n_empty - (idle > KEEP_EMPTY ? (idle - KEEP_EMPTY + 1) / 2 : 0);
	while (n_empty > floor && clock_mono_us() < until_us) {
		struct slab *s = TAILQ_LAST(&empty_slabs, slab_list); /* the coldest */

		if (region_is_unused(s->region)) {
			release_region(s->region);
		} else {
			make_cold(s);
			(void)madvise(s, SLAB_SIZE, MADV_DONTNEED);
		}
	}
	pages_trim(until_us);
	region_trim(until_us);
}

void
slab_get_stats(struct slab_stats *out)
{
	struct pages_stats pages;

	pages_get_stats(&pages);
	out->slabs_used = n_used + pages.regions_used * PER_REGION;
	out->slabs_empty = n_empty + region_kept() * PER_REGION;
	out->items = pages.items;
	out->item_bytes = pages.item_bytes;
	for (unsigned c = 0; c < SLAB_CLASSES; c++) {
		out->items += slab_hot[c].items;
		out->item_bytes += slab_hot[c].items * slab_hot[c].size;
	}
}
