/* SPDX-License-Identifier: Apache-2.0
 * Units: see the header. Digits and a unit behind them, nothing before, between or after. */
#include "base/units.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "B", 1 },
	{ "KiB", (uint64_t)1 << 10 },
	{ "MiB", (uint64_t)1 << 20 },
	{ "GiB", (uint64_t)1 << 30 },
	{ "TiB", (uint64_t)1 << 40 },
	{ "kB", 1000 },
	{ "KB", 1000 },
	{ "MB", 1000 * 1000 },
	{ "GB", 1000 * 1000 * 1000 },
	{ "TB", (uint64_t)1000 * 1000 * 1000 * 1000 },
};

static const struct unit times[] = {
	{ "", 1000 }, /* the first: units_parse_ms_unit() */
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60 * 1000 },
	{ "h", 3600 * 1000 },
	{ "d", 24 * 3600 * 1000 },
};

/* Reads the digits at *s and moves it behind them. */
static int
parse_number(const char **s, uint64_t *out)
{
	const char *p = *s;
	uint64_t v = 0;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (unsigned)(*p - '0'), &v))
			return -ERANGE;
	}
	*s = p;
	*out = v;
	return 0;
}

static int
parse(const char *s, const struct unit *units, size_t n, uint64_t *out)
{
	uint64_t v;
	int r = parse_number(&s, &v);

	if (r != 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(s, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(v, units[i].factor, &v))
			return -ERANGE;
		*out = v;
		return 0;
	}
	return -EINVAL;
}

int
units_parse_size(const char *s, uint64_t *bytes)
{
	return parse(s, sizes, COUNT_OF(sizes), bytes);
}

int
units_parse_ms(const char *s, uint64_t *ms)
{
	return parse(s, times, COUNT_OF(times), ms);
}

int
units_parse_ms_unit(const char *s, uint64_t *ms)
{
	return parse(s, times + 1, COUNT_OF(times) - 1, ms);
}

int
units_parse_percent(const char *s, unsigned *percent)
{
	uint64_t v;
	int r = parse_number(&s, &v);

	if (r != 0)
		return r;
	if (strcmp(s, "%") != 0)
		return -EINVAL;
	if (v > 100)
		return -ERANGE;
	*percent = (unsigned)v;
	return 0;
}
