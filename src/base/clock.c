/* SPDX-License-Identifier: Apache-2.0
 * Time: see the header. */
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t wall_at_init_us, mono_at_init_us;

static uint64_t
read_us(clockid_t id)
{
	struct timespec t;

	/* Cannot fail for the clocks that are asked for here. */
	(void)clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void
clock_init(void)
{
	wall_at_init_us = read_us(CLOCK_REALTIME);
	mono_at_init_us = read_us(CLOCK_MONOTONIC);
}

uint64_t
clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

uint64_t
clock_cpu_us(void)
{
	return read_us(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t
clock_now_ms(void)
{
	if (wall_at_init_us == 0)
		clock_init();
	return (wall_at_init_us + (read_us(CLOCK_MONOTONIC) - mono_at_init_us)) / 1000;
}

/* Start of this process in clock ticks since boot: field 22 of proc(5) stat. The second field is
 * the program's name in brackets and may hold anything, so counting begins behind the last bracket.
 * Returns 0 if there is no such record. */
static uint64_t
start_ticks(void)
{
	char buf[1024], *p, *end;
	unsigned long long ticks;
	FILE *f = fopen("/proc/self/stat", "re");
	size_t n;

	if (f == NULL)
		return 0;
	n = fread(buf, 1, sizeof buf - 1, f);
	(void)fclose(f);
	buf[n] = '\0';
	p = strrchr(buf, ')');
	for (int field = 2; p != NULL && field < 22; field++) {
		p = strchr(p, ' ');
		if (p != NULL)
			p++;
	}
	if (p == NULL)
		return 0;
	ticks = strtoull(p, &end, 10);
	return end == p ? 0 : ticks;
}

uint64_t
clock_since_start_us(void)
{
	long hz = sysconf(_SC_CLK_TCK);
	uint64_t started = start_ticks(), now = read_us(CLOCK_BOOTTIME);

	if (started != 0 && hz > 0) {
		started = started * 1000000 / (uint64_t)hz;
		return now > started ? now - started : 0;
	}
	return mono_at_init_us != 0 ? clock_mono_us() - mono_at_init_us : 0;
}
