/* SPDX-License-Identifier: Apache-2.0
 * Deliveries that wait: see unacked.h and session.h.
 *
 * The ring covers the tags [low, next). It grows only while more than a quarter of that span is open; else its open
 * ones move to `old`, behind those that are there (their tags are higher), and the ring starts over. Both ways its
 * size stays within 8 times the open ones (at least RING_MIN). */
#include "broker/unacked.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	RING_MIN = 16,
	RING_KEPT = 1024, /* slots of an empty ring that is not freed: 64 KiB */
	SPARSE = 4
};

static inline uint64_t
ring_slots(const struct unacked_ring *r)
{
	return r->slot != NULL ? (uint64_t)r->mask + 1 : 0;
}

static void
ring_free(struct unacked_ring *r)
{
	mem_sub(MEM_ENTRIES, ring_slots(r) * sizeof *r->slot);
	free(r->slot);
	r->slot = NULL;
	r->mask = 0;
}

static void
ring_resize(struct unacked_ring *r, uint64_t slots)
{
	struct unacked *to = xmalloc(slots * sizeof *to);
	uint32_t mask = (uint32_t)(slots - 1);

	for (uint64_t t = r->low; t < r->next; t++)
		to[t & mask] = *unacked_slot(r, t);
	ring_free(r);
	r->slot = to;
	r->mask = mask;
	mem_add(MEM_ENTRIES, slots * sizeof *to);
}

static void
old_reserve(struct unacked_ring *r, uint32_t more)
{
	uint32_t cap = r->old_cap > 0 ? r->old_cap : RING_MIN;

	while (cap < r->old_count + more)
		cap *= 2;
	if (cap == r->old_cap)
		return;
	r->old = xrealloc(r->old, cap * sizeof *r->old);
	mem_add(MEM_ENTRIES, (cap - r->old_cap) * sizeof *r->old);
	r->old_cap = cap;
}

static void
old_compact(struct unacked_ring *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->old_count; i++) {
		if (r->old[i].e.m != NULL)
			r->old[n++] = r->old[i];
	}
	assert(n == r->old_live);
	r->old_count = n;
}

static void
ring_to_old(struct unacked_ring *r)
{
	old_reserve(r, r->live);
	for (uint64_t t = r->low; t < r->next; t++) {
		const struct unacked *u = unacked_slot(r, t);

		if (u->e.m != NULL)
			r->old[r->old_count++] = *u;
	}
	r->old_live += r->live;
	r->live = 0;
	r->low = r->next;
}

void
unacked_make_room(struct unacked_ring *r, uint64_t tag)
{
	uint64_t slots = ring_slots(r), span;

	if (r->live == 0)
		r->low = r->next = tag;
	span = tag + 1 - r->low;
	if (span > slots && slots > 0 && span > (uint64_t)r->live * SPARSE) {
		ring_to_old(r);
		r->low = r->next = tag;
		span = 1;
	}
	if (span > slots) {
		slots = slots > 0 ? slots : RING_MIN;
		while (slots < span)
			slots *= 2;
		ring_resize(r, slots);
	}
	for (; r->next < tag; r->next++)
		unacked_slot(r, r->next)->e.m = NULL;
}

uint32_t
unacked_old_above(const struct unacked_ring *r, uint64_t tag)
{
	uint32_t lo = 0, hi = r->old_count;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (r->old[mid].tag <= tag)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct unacked *
unacked_find_old(const struct unacked_ring *r, uint64_t tag)
{
	uint32_t i = unacked_old_above(r, tag);

	if (i == 0 || r->old[i - 1].tag != tag || r->old[i - 1].e.m == NULL)
		return NULL;
	return &r->old[i - 1];
}

void
unacked_trim(struct unacked_ring *r)
{
	if (r->live == 0) {
		r->low = r->next;
		if (unlikely(r->mask >= RING_KEPT))
			ring_free(r);
		return;
	}
	while (unacked_slot(r, r->low)->e.m == NULL)
		r->low++;
}

void
unacked_trim_old(struct unacked_ring *r)
{
	if (r->old_live == 0) {
		mem_sub(MEM_ENTRIES, r->old_cap * sizeof *r->old);
		free(r->old);
		r->old = NULL;
		r->old_count = r->old_cap = 0;
	} else if (r->old_live < r->old_count / 2) {
		old_compact(r);
	}
}

static int
by_tag(const void *a, const void *b)
{
	const struct unacked *x = a, *y = b;

	return x->tag < y->tag ? -1 : x->tag > y->tag;
}

/* Merges n sorted ones into `old`, from the end: one pass. */
static void
old_merge(struct unacked_ring *r, const struct unacked *u, uint32_t n)
{
	uint32_t have, at;

	if (r->old_count != r->old_live)
		old_compact(r);
	old_reserve(r, n);
	have = r->old_count;
	at = have + n;
	r->old_count = at;
	r->old_live = at;
	while (n > 0 && have > 0)
		r->old[--at] = u[n - 1].tag > r->old[have - 1].tag ? u[--n] : r->old[--have];
	memcpy(r->old, u, n * sizeof *u);
}

void
unacked_put_back(struct unacked_ring *r, struct unacked *u, uint32_t n)
{
	uint32_t below = 0;

	if (n == 0)
		return;
	qsort(u, n, sizeof *u, by_tag);
	if (r->live == 0)
		r->low = r->next;
	while (below < n && u[below].tag < r->low)
		below++;
	for (uint32_t i = below; i < n; i++) {
		*unacked_slot(r, u[i].tag) = u[i];
		r->live++;
	}
	if (below > 0)
		old_merge(r, u, below);
}

void
unacked_fini(struct unacked_ring *r)
{
	assert(r->live == 0 && r->old_live == 0);
	ring_free(r);
	unacked_trim_old(r);
}
