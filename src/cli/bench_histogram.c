/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_histogram.h"

/* The largest value that has this place. */
static uint64_t
upper(unsigned place)
{
	unsigned shift;

	if (place < 2 * BENCH_STEPS)
		return place;
	shift = (place >> BENCH_STEP_BITS) - 1;
	return (((uint64_t)(place & (BENCH_STEPS - 1)) + BENCH_STEPS + 1) << shift) - 1;
}

uint64_t
bench_histogram_quantile(const struct bench_histogram *h, double share)
{
	double exact = share * (double)h->count;
	uint64_t rank = (uint64_t)exact, seen = 0;

	if (h->count == 0)
		return 0;
	if ((double)rank < exact || rank == 0)
		rank++;
	for (unsigned i = 0; i < BENCH_PLACES; i++) {
		seen += h->place[i];
		if (seen >= rank)
			return upper(i) < h->max ? upper(i) : h->max;
	}
	return h->max;
}

double
bench_histogram_mean(const struct bench_histogram *h)
{
	return h->count > 0 ? (double)h->sum / (double)h->count : 0;
}
