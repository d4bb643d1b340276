/* SPDX-License-Identifier: Apache-2.0
 * uthash as the store uses it: memory that runs out aborts with a line in the log. Keys are numbers that the node itself
 * gave out. Included in place of <uthash.h>. */
#ifndef STORE_MAP_H
#define STORE_MAP_H

#include <stddef.h>
#include <stdlib.h>

#include "base/mem.h"

#define uthash_malloc(n) xmalloc(n)
#define uthash_free(p, n) free(p)
#include <uthash.h>

#endif
