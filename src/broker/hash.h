/* SPDX-License-Identifier: Apache-2.0
 * The hash that the broker floor's own tables use. Seeded per process, so that no client can choose names that fall
 * into one bucket. */
#ifndef BROKER_HASH_H
#define BROKER_HASH_H

#define XXH_INLINE_ALL
#include <stdint.h>
#include <xxhash.h>

#include "base/bytes.h"

extern uint64_t hash_seed;
void hash_init(void); /* draws it; before the first table is made */

static inline uint64_t
hash_bytes(const void *p, size_t n)
{
	return XXH3_64bits_withSeed(p, n, hash_seed);
}

static inline uint64_t
hash_span(struct span s)
{
	return hash_bytes(s.n > 0 ? (const void *)s.p : "", s.n);
}

/* Spreads what was combined from hashes and numbers over all bits. */
static inline uint64_t
hash_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9E3779B97F4A7C15ull;
	return h ^ (h >> 29);
}

#endif
