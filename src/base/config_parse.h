/* SPDX-License-Identifier: Apache-2.0
 * Numbers of the settings as people write them, one function for each kind of key. All are of type cfg_parse_fn. */
#ifndef BASE_CONFIG_PARSE_H
#define BASE_CONFIG_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "base/config_keys.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

cfg_parse_fn cfg_parse_number;  /* 17 */
cfg_parse_fn cfg_parse_size;    /* 64KiB: bytes */
cfg_parse_fn cfg_parse_ms;      /* 500ms, 10s: milliseconds */
cfg_parse_fn cfg_parse_seconds; /* 60, 5m: whole seconds */
cfg_parse_fn cfg_parse_memory;  /* a size, or a percentage of machine_memory() */
cfg_parse_fn cfg_parse_auto;    /* a number, or auto: reads as the row's least number */
cfg_parse_fn cfg_parse_auto_size; /* the same with a size */
cfg_parse_fn cfg_parse_percent; /* 50% */
cfg_parse_fn cfg_parse_free;    /* a size, or a percentage: CONFIG_SHARE + it */
cfg_parse_fn cfg_parse_sync; /* always, never, 50ms (not 50): CONFIG_SYNC_* or milliseconds up to a minute */

/* A number of the row k as people write it: in whole GiB, MiB or KiB, seconds or milliseconds. */
void cfg_show_number(const struct cfg_key *k, uint64_t v, char *out, size_t n);

#endif
