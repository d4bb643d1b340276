/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/human.h"

#include "base/attr.h"

void
human_bytes(FILE *out, long long n)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)n;
	unsigned u = 0;

	while (v >= 1024 && u < COUNT_OF(units) - 1) {
		v /= 1024;
		u++;
	}
	fprintf(out, u == 0 ? "%.0f %s" : "%.1f %s", v, units[u]);
}

void
human_duration(FILE *out, long long ms)
{
	long long s = ms / 1000;

	if (s >= 86400)
		fprintf(out, "%lld d ", s / 86400);
	if (s >= 3600)
		fprintf(out, "%lld h ", s / 3600 % 24);
	if (s >= 60)
		fprintf(out, "%lld min ", s / 60 % 60);
	fprintf(out, "%lld s", s % 60);
}
