/* SPDX-License-Identifier: Apache-2.0
 * Counts of things by their size. The bounds are fixed and belong to whoever counts, so that a count is a few instructions
 * and allocates nothing. */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stdint.h>

enum { HISTOGRAM_MAX = 16 }; /* places: one more than there are bounds */

struct histogram { /* zero at first */
	uint64_t count[HISTOGRAM_MAX]; /* by place; not added up */
	uint64_t sum;                  /* of all values */
};

/* Rising, a 0 behind the last one. */
extern const uint64_t histogram_us[];    /* microseconds, 100 to ten seconds */
extern const uint64_t histogram_sizes[]; /* bytes of messages; those of RabbitMQ */
extern const uint64_t histogram_writes[]; /* bytes written at once: 256 to 16 MiB */
enum { HISTOGRAM_SMALL = 100 };          /* the first of them */
extern const uint8_t histogram_size_places[64];

/* The place of a value: that of the first bound which it does not exceed. */
static inline unsigned
histogram_place(const uint64_t *bounds, uint64_t value)
{
	unsigned i = 0;

	while (bounds[i] != 0 && value > bounds[i])
		i++;
	return i;
}

/* The place by histogram_sizes, without a walk: what has so many bits can lie on two sides of one bound at most. Not of 0. */
static inline unsigned
histogram_size_place(uint64_t size)
{
	unsigned i = histogram_size_places[63 - __builtin_clzll(size)];

	return i + (size > histogram_sizes[i]);
}

static inline void
histogram_add(struct histogram *h, const uint64_t *bounds, uint64_t value, uint64_t times)
{
	h->count[histogram_place(bounds, value)] += times;
	h->sum += value * times;
}

#endif
