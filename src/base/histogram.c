/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

const uint64_t histogram_us[] = { 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000,
	250000, 500000, 1000000, 10000000, 0 };
const uint64_t histogram_sizes[] = { 100, 1000, 10000, 100000, 1000000, 10000000, 50000000,
	100000000, 0 };
/* By the number of the highest bit: how many bounds are below all that has it. Of the largest the last bound is left out, so
 * that there is always one to compare with. */
const uint8_t histogram_size_places[64] = { 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4,
	4, 5, 5, 5, 5, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
	7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7 };
const uint64_t histogram_writes[] = { 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
	4 << 20, 16 << 20, 0 };
_Static_assert(sizeof histogram_us / sizeof *histogram_us <= HISTOGRAM_MAX, "a place each");
