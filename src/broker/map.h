/* SPDX-License-Identifier: Apache-2.0
 * uthash as the broker floor uses it, for tables by name or id: memory that runs out aborts with a line in the log, in
 * place of an exit without a word; and the hash is seeded (hash.h), so that nobody can choose names that fall into one
 * bucket. Included in place of <uthash.h>. */
#ifndef BROKER_MAP_H
#define BROKER_MAP_H

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"

#define uthash_malloc(n) xmalloc(n)
#define uthash_free(p, n) free(p)
#define HASH_FUNCTION(key, n, hash) ((hash) = map_hash(key, n))
#include <uthash.h>

unsigned map_hash(const void *key, size_t n);

#endif
