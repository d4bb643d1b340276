/* SPDX-License-Identifier: Apache-2.0
 * Sets of numbers as sorted arrays of ranges. */
#include "base/rangeset.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ROOM_MIN = 4, ROOM_KEPT = 16 };

void
rangeset_fini(struct rangeset *s)
{
	free(s->r);
	*s = (struct rangeset){ 0 };
}

void
rangeset_clear(struct rangeset *s)
{
	if (s->cap > ROOM_KEPT)
		rangeset_fini(s);
	s->n = 0;
	s->count = 0;
}

uint32_t
rangeset_find(const struct rangeset *s, uint64_t n)
{
	uint32_t low = 0, high = s->n;

	/* Most questions are about the end. */
	if (high == 0 || s->r[high - 1].last < n)
		return high;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (s->r[mid].last < n)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

bool
rangeset_has(const struct rangeset *s, uint64_t n)
{
	uint32_t i = rangeset_find(s, n);

	return i < s->n && s->r[i].first <= n;
}

uint64_t
rangeset_overlap(const struct rangeset *s, uint64_t first, uint64_t last)
{
	uint64_t sum = 0;

	assert(first <= last);
	for (uint32_t i = rangeset_find(s, first); i < s->n && s->r[i].first <= last; i++) {
		uint64_t from = s->r[i].first > first ? s->r[i].first : first;
		uint64_t to = s->r[i].last < last ? s->r[i].last : last;

		sum += to - from + 1;
	}
	return sum;
}

/* Ranges [at, at + out) give way to `in` others, whose contents are the caller's. */
static void
replace(struct rangeset *s, uint32_t at, uint32_t out, uint32_t in)
{
	uint32_t n = s->n - out + in;

	assert(at + out <= s->n && n >= in);
	if (n > s->cap) {
		s->cap = s->cap < ROOM_MIN ? ROOM_MIN : s->cap * 2;
		assert(s->cap >= n);
		s->r = xrealloc(s->r, s->cap * sizeof *s->r);
	}
	if (out != in && at + out < s->n)
		memmove(s->r + at + in, s->r + at + out, (s->n - at - out) * sizeof *s->r);
	s->n = n;
}

uint64_t
rangeset_add(struct rangeset *s, uint64_t first, uint64_t last)
{
	uint32_t i, j;
	uint64_t had = 0, from = first, to = last;

	assert(first <= last && last - first < UINT64_MAX - s->count);
	/* [i, j): the ranges that touch or overlap the new one. */
	i = rangeset_find(s, first > 0 ? first - 1 : 0);
	for (j = i; j < s->n && (last == UINT64_MAX || s->r[j].first <= last + 1); j++) {
		uint64_t a = s->r[j].first > first ? s->r[j].first : first;
		uint64_t b = s->r[j].last < last ? s->r[j].last : last;

		if (a <= b)
			had += b - a + 1;
		if (s->r[j].first < from)
			from = s->r[j].first;
		if (s->r[j].last > to)
			to = s->r[j].last;
	}
	replace(s, i, j - i, 1);
	s->r[i] = (struct range){ from, to };
	s->count += last - first + 1 - had;
	return last - first + 1 - had;
}

uint64_t
rangeset_remove(struct rangeset *s, uint64_t first, uint64_t last)
{
	uint32_t i = rangeset_find(s, first), j = i, kept = 0;
	struct range keep[2];
	uint64_t had = rangeset_overlap(s, first, last);

	if (had == 0)
		return 0;
	while (j < s->n && s->r[j].first <= last)
		j++;
	if (s->r[i].first < first)
		keep[kept++] = (struct range){ s->r[i].first, first - 1 };
	if (s->r[j - 1].last > last)
		keep[kept++] = (struct range){ last + 1, s->r[j - 1].last };
	replace(s, i, j - i, kept);
	memcpy(s->r + i, keep, kept * sizeof keep[0]);
	s->count -= had;
	return had;
}
