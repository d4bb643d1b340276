/* SPDX-License-Identifier: Apache-2.0
 * Memory for messages too large for a slab. Up to 256 KiB: runs of 4 KiB pages, handed out upwards
 * within regions of 2 MiB; a region whose runs are all gone is used again whole. Above: the heap,
 * with a small stock of blocks up to 1 MiB, so that a stream of such bodies is not mapped and
 * unmapped one by one. Counted in mem_held[MEM_LARGE], regions whole. Called through base/slab.
 * Core thread only. */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { PAGES_RUN_MAX = 256 << 10, PAGES_STOCK_ITEM_MAX = 1 << 20, PAGES_STOCK_MAX = 16 << 20 };

void *pages_try_alloc(size_t n) MUSTUSE; /* 16-byte aligned, or NULL */
void pages_free(void *p, size_t n);      /* n as it was asked for */
void pages_trim(uint64_t until_us);      /* half of the stock; monotonic time to stop at */

struct pages_stats {
	uint64_t regions_used, items, item_bytes, stock_bytes;
};
void pages_get_stats(struct pages_stats *out);

#endif
