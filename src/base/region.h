/* SPDX-License-Identifier: Apache-2.0
 * Address space for messages, in regions of 2 MiB that start at a multiple of 2 MiB. Slabs and page
 * runs are cut from them. Huge pages are asked for once the node holds more than a few regions:
 * filling fresh memory then costs a quarter, giving it back a fifteenth. Core thread only. */
#ifndef BASE_REGION_H
#define BASE_REGION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum { REGION_SIZE = 2 << 20 };

/* A region with anything in it, or NULL. *fresh says that no page of it was ever touched. */
void *region_try_get(bool *fresh) MUSTUSE;
void region_put(void *region);     /* keeps it, warm, for the next region_try_get */
void region_release(void *region); /* to the system, at once */

/* Releases half of what was kept beyond 4 MiB throughout the last calls (base/low_water), at least
 * one, until the monotonic time given. */
void region_trim(uint64_t until_us);

uint64_t region_mapped(void); /* regions that the process has, kept ones included */
uint64_t region_kept(void);

#endif
