/* SPDX-License-Identifier: Apache-2.0
 * The low-water mark of a number over the last LOW_WATER_TICKS ticks: what a cache held all the while without need, and
 * so may give back. What swings is kept. All zero: nothing was seen, nothing may go. */
#ifndef BASE_LOW_WATER_H
#define BASE_LOW_WATER_H

#include <stdint.h>

enum { LOW_WATER_TICKS = 5 };

struct low_water {
	uint64_t past[LOW_WATER_TICKS];
	uint64_t now; /* the least since the last tick */
	unsigned at;
};

/* The number fell to n. */
static inline void
low_water_fell(struct low_water *w, uint64_t n)
{
	if (n < w->now)
		w->now = n;
}

/* A tick ends, with the number at n. Returns the mark. */
static inline uint64_t
low_water_tick(struct low_water *w, uint64_t n)
{
	uint64_t low;

	low_water_fell(w, n);
	w->past[w->at++ % LOW_WATER_TICKS] = w->now;
	w->now = low = n;
	for (unsigned i = 0; i < LOW_WATER_TICKS; i++) {
		if (w->past[i] < low)
			low = w->past[i];
	}
	return low;
}

#endif
