/* SPDX-License-Identifier: Apache-2.0
 * A set of 64-bit numbers as ascending ranges that neither touch nor overlap: one sorted array. Cheap where numbers
 * come roughly in order, as acknowledgements do. */
#ifndef BASE_RANGESET_H
#define BASE_RANGESET_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t first, last; /* both belong to it */
};

struct rangeset {
	struct range *r; /* owned */
	uint32_t n, cap;
	uint64_t count; /* numbers in it */
};

void rangeset_fini(struct rangeset *s);
void rangeset_clear(struct rangeset *s); /* empty; keeps a little room */
/* Returns how many numbers were new. */
uint64_t rangeset_add(struct rangeset *s, uint64_t first, uint64_t last);
/* Returns how many were in it. */
uint64_t rangeset_remove(struct rangeset *s, uint64_t first, uint64_t last);
bool rangeset_has(const struct rangeset *s, uint64_t n);
/* Index of the first range whose last is >= n; s->n if none. */
uint32_t rangeset_find(const struct rangeset *s, uint64_t n);
/* How many numbers of first..last are in it. */
uint64_t rangeset_overlap(const struct rangeset *s, uint64_t first, uint64_t last);

#endif
