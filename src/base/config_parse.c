/* SPDX-License-Identifier: Apache-2.0
 * Numbers of the settings. */
#include "base/config_parse.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/machine.h"
#include "base/units.h"

int
cfg_parse_number(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (text[0] < '0' || text[0] > '9') /* no sign, no blank */
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (*end != '\0')
		return -EINVAL;
	if (errno != 0)
		return -ERANGE;
	*out = v;
	return 0;
}

int
cfg_parse_size(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	return units_parse_size(text, out);
}

int
cfg_parse_ms(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	return units_parse_ms(text, out);
}

int
cfg_parse_seconds(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	uint64_t ms;
	int err = units_parse_ms(text, &ms);

	if (err != 0)
		return err;
	if (ms % 1000 != 0)
		return -EINVAL;
	*out = ms / 1000;
	return 0;
}

int
cfg_parse_memory(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	size_t n = strlen(text);
	unsigned percent;

	if (n == 0 || text[n - 1] != '%')
		return units_parse_size(text, out);
	if (units_parse_percent(text, &percent) != 0 || percent == 0)
		return -EINVAL;
	*out = machine_memory() / 100 * percent;
	return 0;
}

/* The field has 0 for auto, which as a number is refused by the row's least value. */
int
cfg_parse_auto(const struct cfg_key *k, const char *text, uint64_t *out)
{
	if (strcmp(text, "auto") != 0)
		return cfg_parse_number(k, text, out);
	*out = k->min;
	return 0;
}

int
cfg_parse_auto_size(const struct cfg_key *k, const char *text, uint64_t *out)
{
	if (strcmp(text, "auto") != 0)
		return cfg_parse_size(k, text, out);
	*out = k->min;
	return 0;
}

int
cfg_parse_percent(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	unsigned percent;
	int rc = units_parse_percent(text, &percent);

	if (rc == 0)
		*out = percent;
	return rc;
}

int
cfg_parse_free(const struct cfg_key *k, const char *text, uint64_t *out)
{
	size_t n = strlen(text);
	int rc;

	if (n > 0 && text[n - 1] == '%') {
		rc = cfg_parse_percent(k, text, out);
		if (rc == 0)
			*out += CONFIG_SHARE;
		return rc;
	}
	rc = units_parse_size(text, out);
	return rc == 0 && *out >= CONFIG_SHARE ? -ERANGE : rc;
}

int
cfg_parse_sync(const struct cfg_key *k UNUSED, const char *text, uint64_t *out)
{
	uint64_t ms;

	if (strcmp(text, "always") == 0) {
		*out = CONFIG_SYNC_ALWAYS;
		return 0;
	}
	if (strcmp(text, "never") == 0) {
		*out = CONFIG_SYNC_NEVER;
		return 0;
	}
	if (units_parse_ms_unit(text, &ms) != 0 || ms < 1 || ms > 60000)
		return -EINVAL;
	*out = ms;
	return 0;
}

static void
show_size(uint64_t v, char *out, size_t n)
{
	const char *unit = "";

	if (v >= GIB(1) && v % GIB(1) == 0) {
		v /= GIB(1);
		unit = "GiB";
	} else if (v >= MIB(1) && v % MIB(1) == 0) {
		v /= MIB(1);
		unit = "MiB";
	} else if (v >= KIB(1) && v % KIB(1) == 0) {
		v /= KIB(1);
		unit = "KiB";
	}
	snprintf(out, n, "%" PRIu64 "%s", v, unit);
}

void
cfg_show_number(const struct cfg_key *k, uint64_t v, char *out, size_t n)
{
	if (k->parse == cfg_parse_percent || (k->parse == cfg_parse_free && v >= CONFIG_SHARE)) {
		snprintf(out, n, "%" PRIu64 "%%", v >= CONFIG_SHARE ? v - CONFIG_SHARE : v);
	} else if (k->parse == cfg_parse_size || k->parse == cfg_parse_memory ||
	           k->parse == cfg_parse_auto_size || k->parse == cfg_parse_free) {
		show_size(v, out, n);
	} else if (k->parse == cfg_parse_sync && v == CONFIG_SYNC_ALWAYS) {
		snprintf(out, n, "always");
	} else if (k->parse == cfg_parse_sync && v == CONFIG_SYNC_NEVER) {
		snprintf(out, n, "never");
	} else if (k->parse == cfg_parse_ms || k->parse == cfg_parse_sync) {
		bool whole = v % 1000 == 0;

		snprintf(out, n, "%" PRIu64 "%s", whole ? v / 1000 : v, whole ? "s" : "ms");
	} else {
		snprintf(out, n, "%" PRIu64, v);
	}
}
