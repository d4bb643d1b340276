/* SPDX-License-Identifier: Apache-2.0
 * The seed of all hashes, and the hash of uthash's tables. */
#include "broker/hash.h"

#include "base/random.h"
#include "broker/map.h"

uint64_t hash_seed;

void
hash_init(void)
{
	/* Not again: tables of another broker in this process stand on it. */
	while (hash_seed == 0)
		random_bytes(&hash_seed, sizeof hash_seed);
}

unsigned
map_hash(const void *key, size_t n)
{
	return (unsigned)hash_bytes(key, n);
}
