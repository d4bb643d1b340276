/* SPDX-License-Identifier: Apache-2.0
 * Takers: see the header. */
#include "broker/takers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/session.h"

enum { CAP_FIRST = 8, LEVEL_SIZE = sizeof(struct level) + sizeof(struct level *) };

void
takers_init(struct takers *t)
{
	*t = (struct takers){ 0 };
	TAILQ_INIT(&t->zero.list);
}

void
takers_fini(struct takers *t)
{
	assert(!takers_any(t) && t->zero.consumers == 0 && t->others == NULL);
}

/* Where the highest level that has takers stands. */
static inline struct level **
top_of(struct takers *t)
{
	return unlikely(t->is_held) ? &t->held : &t->top;
}

void
takers_hold(struct takers *t, bool hold)
{
	struct level *top = *top_of(t);

	*top_of(t) = NULL;
	t->is_held = hold;
	*top_of(t) = top;
}

/* ---- levels ---- */

/* One place a level, and one for 0. */
static void
reserve(struct takers *t)
{
	struct level *top = *top_of(t);
	bool is_first = t->heap == NULL;

	if (HASH_COUNT(t->others) + 1 <= t->cap)
		return;
	t->cap = t->cap > 0 ? t->cap * 2 : CAP_FIRST;
	t->heap = xrealloc(t->heap, t->cap * sizeof(struct level *));
	if (is_first && top != NULL) {
		t->heap[0] = top;
		top->at = 0;
		t->in_heap = 1;
	}
}

static struct level *
level_make(struct takers *t, int32_t priority)
{
	struct level *l = xcalloc(1, sizeof *l);

	l->priority = priority;
	TAILQ_INIT(&l->list);
	HASH_ADD(hh, t->others, priority, sizeof l->priority, l);
	reserve(t);
	mem_add(MEM_TOPOLOGY, LEVEL_SIZE);
	return l;
}

void
takers_join(struct takers *t, struct consumer *k)
{
	takers_join_at(t, k, k->priority);
}

void
takers_join_at(struct takers *t, struct consumer *k, int32_t priority)
{
	struct level *l = &t->zero;

	if (unlikely(priority != 0)) {
		HASH_FIND(hh, t->others, &priority, sizeof priority, l);
		if (l == NULL)
			l = level_make(t, priority);
	}
	k->level = l;
	l->consumers++;
}

void
takers_leave(struct takers *t, struct consumer *k)
{
	struct level *l = k->level;

	assert(!k->is_ready && l->consumers > 0);
	k->level = NULL;
	if (--l->consumers > 0 || l == &t->zero)
		return;
	assert(TAILQ_EMPTY(&l->list));
	HASH_DELETE(hh, t->others, l);
	mem_sub(MEM_TOPOLOGY, LEVEL_SIZE);
	free(l);
	if (t->others != NULL)
		return;
	free(t->heap); /* it holds 0 at most, and so does top */
	t->heap = NULL;
	t->cap = t->in_heap = 0;
}

/* ---- the heap ---- */

static void
put_at(struct takers *t, struct level *l, uint32_t i)
{
	t->heap[i] = l;
	l->at = i;
}

/* l finds its place from i, which is free, towards the top. */
static void
sift_up(struct takers *t, struct level *l, uint32_t i)
{
	while (i > 0 && t->heap[(i - 1) / 2]->priority < l->priority) {
		put_at(t, t->heap[(i - 1) / 2], i);
		i = (i - 1) / 2;
	}
	put_at(t, l, i);
}

/* The same the other way; returns where it is now. */
static uint32_t
sift_down(struct takers *t, struct level *l, uint32_t i)
{
	uint32_t below;

	while ((below = 2 * i + 1) < t->in_heap) {
		if (below + 1 < t->in_heap &&
		    t->heap[below + 1]->priority > t->heap[below]->priority)
			below++;
		if (t->heap[below]->priority <= l->priority)
			break;
		put_at(t, t->heap[below], i);
		i = below;
	}
	put_at(t, l, i);
	return i;
}

static void
level_filled(struct takers *t, struct level *l)
{
	if (likely(t->heap == NULL)) {
		*top_of(t) = l;
		return;
	}
	sift_up(t, l, t->in_heap++);
	*top_of(t) = t->heap[0];
}

static void
level_emptied(struct takers *t, const struct level *l)
{
	struct level *last;

	if (likely(t->heap == NULL)) {
		*top_of(t) = NULL;
		return;
	}
	last = t->heap[--t->in_heap];
	if (last != l)
		sift_up(t, last, sift_down(t, last, l->at));
	*top_of(t) = t->in_heap > 0 ? t->heap[0] : NULL;
}

void
takers_add(struct takers *t, struct consumer *k)
{
	struct level *l = k->level;
	bool was_empty = TAILQ_EMPTY(&l->list);

	assert(!k->is_ready);
	k->is_ready = true;
	TAILQ_INSERT_TAIL(&l->list, k, ready_link);
	if (was_empty)
		level_filled(t, l);
}

void
takers_remove(struct takers *t, struct consumer *k)
{
	struct level *l = k->level;

	assert(k->is_ready);
	k->is_ready = false;
	TAILQ_REMOVE(&l->list, k, ready_link);
	if (TAILQ_EMPTY(&l->list))
		level_emptied(t, l);
}
