/* SPDX-License-Identifier: Apache-2.0
 * Sizes, times and shares as people write them in settings and options. All functions return 0,
 * -EINVAL for what cannot be read, or -ERANGE for what is too large; the result is written only on
 * success. */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdint.h>

#include "base/attr.h"

/* "1048576", "512B", "32MiB" (KiB, MiB, GiB, TiB), "10MB" (kB, KB, MB, GB, TB: powers of 1000) */
int units_parse_size(const char *s, uint64_t *bytes) MUSTUSE;

/* "50ms", "10s", "5m", "1h", "2d"; a bare number is seconds */
int units_parse_ms(const char *s, uint64_t *ms) MUSTUSE;
int units_parse_ms_unit(const char *s, uint64_t *ms) MUSTUSE; /* a bare number is none */

/* "40%": 0 to 100 */
int units_parse_percent(const char *s, unsigned *percent) MUSTUSE;

#endif
