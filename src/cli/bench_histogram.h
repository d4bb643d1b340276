/* SPDX-License-Identifier: Apache-2.0
 * Times in nanoseconds, counted so that any percentile can be told: every power of two is cut into 64 equal steps. What
 * comes out is at most 1.6 % too high, from 1 ns to 2^63 ns, in 30 KiB. */
#ifndef CLI_BENCH_HISTOGRAM_H
#define CLI_BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
	BENCH_STEP_BITS = 6,
	BENCH_STEPS = 1 << BENCH_STEP_BITS,
	BENCH_PLACES = (65 - BENCH_STEP_BITS) * BENCH_STEPS
};

struct bench_histogram { /* zero at first */
	uint64_t place[BENCH_PLACES];
	uint64_t count, sum, max;
};

static inline unsigned
bench_histogram_place(uint64_t v)
{
	unsigned shift;

	if (v < BENCH_STEPS)
		return (unsigned)v;
	shift = 63u - BENCH_STEP_BITS - (unsigned)__builtin_clzll(v);
	return (shift << BENCH_STEP_BITS) + (unsigned)(v >> shift);
}

/* What is below zero counts as zero. */
static inline void
bench_histogram_add(struct bench_histogram *h, int64_t ns)
{
	uint64_t v = ns > 0 ? (uint64_t)ns : 0;

	h->place[bench_histogram_place(v)]++;
	h->count++;
	h->sum += v;
	if (v > h->max)
		h->max = v;
}

/* The time that a share (0 to 1) of all does not exceed; 0 if there is none. */
uint64_t bench_histogram_quantile(const struct bench_histogram *h, double share);
double bench_histogram_mean(const struct bench_histogram *h);

#endif
