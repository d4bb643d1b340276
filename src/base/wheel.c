/* SPDX-License-Identifier: Apache-2.0
 * The timer wheel: see the header.
 *
 * A due time is read as digits of six bits. A node stands on the level of the highest digit in
 * which it differs from the cursor, in the slot of that digit, so slots never wrap: on each level
 * only those above the cursor's digit are in use, and lower levels come first. The cursor jumps
 * from one used slot to the next, however far: reaching one of level 0 makes its nodes due, all of
 * the same millisecond; reaching one of a higher level spreads its nodes over lower ones.
 *
 * What a callback arms for a time not after the run's goes to `later`, so that a run ends. */
#include "base/wheel.h"

#include <assert.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"

enum {
	DIGIT = 6,
	SLOTS = 1 << DIGIT,
	LEVELS = (64 + DIGIT - 1) / DIGIT,
	SPREAD_MAX = 8192 /* nodes spread over lower levels in one run: well below 1 ms */
};

struct queue {
	struct wheel_node *first, **last;
};

struct wheel {
	uint64_t cursor; /* every slot up to here was emptied */
	uint64_t run_ms; /* the time of the run under way */
	bool running;
	uint32_t used; /* levels with a used slot */
	size_t armed;
	struct wheel_node *due;       /* all of the millisecond `cursor` */
	struct wheel_node *spreading; /* the rest of a slot; all due after the cursor */
	struct queue late;            /* armed for the cursor's time or before */
	struct queue later;           /* armed while running, for the run's time or before */
	uint64_t used_slots[LEVELS];
	struct wheel_node *slots[LEVELS][SLOTS];
};

static void
queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void
queue_push(struct queue *q, struct wheel_node *n)
{
	n->next = NULL;
	n->prev = q->last;
	*q->last = n;
	q->last = &n->next;
}

/* Appends all of `from`, which is empty afterwards. */
static void
queue_join(struct queue *q, struct queue *from)
{
	if (from->first == NULL)
		return;
	from->first->prev = q->last;
	*q->last = from->first;
	q->last = from->last;
	queue_init(from);
}

static void
list_push(struct wheel_node **head, struct wheel_node *n)
{
	n->next = *head;
	n->prev = head;
	if (n->next != NULL)
		n->next->prev = &n->next;
	*head = n;
}

struct wheel *
wheel_new(uint64_t now_ms)
{
	struct wheel *w = xcalloc(1, sizeof *w);

	w->cursor = now_ms;
	queue_init(&w->late);
	queue_init(&w->later);
	return w;
}

void
wheel_free(struct wheel **wp)
{
	free(*wp);
	*wp = NULL;
}

/* Puts n where it belongs for the time `due`. */
static void
place(struct wheel *w, struct wheel_node *n, uint64_t due)
{
	unsigned level, slot;

	if (due <= w->cursor) {
		queue_push(&w->late, n);
		return;
	}
	level = (63 - (unsigned)__builtin_clzll(due ^ w->cursor)) / DIGIT;
	slot = due >> (level * DIGIT) & (SLOTS - 1);
	list_push(&w->slots[level][slot], n);
	w->used_slots[level] |= (uint64_t)1 << slot;
	w->used |= BIT(level);
}

static void
clear_slot(struct wheel *w, size_t level, size_t slot)
{
	w->used_slots[level] &= ~((uint64_t)1 << slot);
	if (w->used_slots[level] == 0)
		w->used &= ~BIT(level);
}

/* Takes n out of whatever list it is in. */
static void
unlink_node(struct wheel *w, struct wheel_node *n)
{
	struct wheel_node **prev = n->prev;

	*prev = n->next;
	if (n->next != NULL) {
		n->next->prev = prev;
	} else if (w->late.last == &n->next) {
		w->late.last = prev;
	} else if (w->later.last == &n->next) {
		w->later.last = prev;
	} else if (prev >= &w->slots[0][0] && prev <= &w->slots[LEVELS - 1][SLOTS - 1]) {
		size_t i = (size_t)(prev - &w->slots[0][0]);

		clear_slot(w, i / SLOTS, i % SLOTS);
	}
	n->prev = NULL;
	n->next = NULL;
}

void
wheel_arm(struct wheel *w, struct wheel_node *n, uint64_t due_ms)
{
	if (n->prev != NULL)
		unlink_node(w, n);
	else
		w->armed++;
	n->due_ms = due_ms;
	if (w->running && due_ms <= w->run_ms)
		queue_push(&w->later, n);
	else
		place(w, n, due_ms);
}

void
wheel_disarm(struct wheel *w, struct wheel_node *n)
{
	if (n->prev == NULL)
		return;
	unlink_node(w, n);
	w->armed--;
}

/* The time at which the next used slot begins, and which it is; false if none is used. */
static bool
next_slot(const struct wheel *w, uint64_t *start, unsigned *level, unsigned *slot)
{
	unsigned l, s, shift;
	uint64_t above;

	if (w->used == 0)
		return false;
	l = (unsigned)__builtin_ctz(w->used);
	s = (unsigned)__builtin_ctzll(w->used_slots[l]);
	shift = l * DIGIT;
	above = shift + DIGIT < 64 ? w->cursor >> (shift + DIGIT) << (shift + DIGIT) : 0;
	*start = above | (uint64_t)s << shift;
	*level = l;
	*slot = s;
	return true;
}

/* Moves the cursor to the next used slot that begins by the run's time; false if there is none. */
static bool
advance(struct wheel *w)
{
	struct wheel_node **head, **to;
	unsigned level, slot;
	uint64_t start;

	if (!next_slot(w, &start, &level, &slot) || start > w->run_ms) {
		if (w->run_ms > w->cursor)
			w->cursor = w->run_ms;
		return false;
	}
	assert(start > w->cursor);
	w->cursor = start;
	head = &w->slots[level][slot];
	to = level == 0 ? &w->due : &w->spreading;
	assert(*to == NULL && *head != NULL);
	*to = *head;
	(*to)->prev = to;
	*head = NULL;
	clear_slot(w, level, slot);
	return true;
}

/* Spreads what is left of a slot; false if the run has done enough of that. */
static bool
spread(struct wheel *w, unsigned *allowed)
{
	while (w->spreading != NULL) {
		struct wheel_node *n = w->spreading;

		if (*allowed == 0)
			return false;
		--*allowed;
		w->spreading = n->next;
		if (n->next != NULL)
			n->next->prev = &w->spreading;
		place(w, n, n->due_ms);
	}
	return true;
}

/* After a run: what its callbacks armed for its time or before. If the run stopped before its time,
 * that waits behind what is due until then. */
static void
take_later(struct wheel *w)
{
	struct wheel_node *n;

	if (w->cursor >= w->run_ms) {
		queue_join(&w->late, &w->later);
		return;
	}
	while ((n = w->later.first) != NULL) {
		unlink_node(w, n);
		place(w, n, w->run_ms);
	}
}

unsigned
wheel_run(struct wheel *w, uint64_t now_ms, unsigned max)
{
	unsigned fired = 0, allowed = SPREAD_MAX;
	struct wheel_node *n;

	assert(!w->running);
	w->running = true;
	w->run_ms = now_ms > w->cursor ? now_ms : w->cursor;
	while (fired < max) {
		n = w->due != NULL ? w->due : w->late.first;
		if (n != NULL) {
			unlink_node(w, n);
			w->armed--;
			fired++;
			n->fire(n, now_ms);
			continue;
		}
		if (!spread(w, &allowed))
			break;
		if (w->late.first == NULL && !advance(w))
			break;
	}
	w->running = false;
	take_later(w);
	return fired;
}

int64_t
wheel_wait(const struct wheel *w, uint64_t now_ms)
{
	unsigned level, slot;
	uint64_t start;

	if (w->armed == 0)
		return -1;
	if (w->due != NULL || w->spreading != NULL || w->late.first != NULL ||
	    w->later.first != NULL)
		return 0;
	if (!next_slot(w, &start, &level, &slot) || start <= now_ms)
		return 0;
	return start - now_ms < INT64_MAX ? (int64_t)(start - now_ms) : INT64_MAX;
}
