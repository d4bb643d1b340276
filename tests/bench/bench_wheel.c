/* SPDX-License-Identifier: Apache-2.0
 * What arming, disarming and firing cost with many timers at once. Not a test. Usage: bench_wheel
 * [TIMERS] */
#include "base/wheel.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static struct wheel *w;
static uint64_t fired, seed = 88172645463325252u;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void
on_fire(struct wheel_node *n, uint64_t now_ms)
{
	fired++;
	wheel_arm(w, n, now_ms + 1 + next_random() % 60000);
}

int
main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000, ops = 10000000;
	struct wheel_node *nodes = calloc(n > 0 ? n : 1, sizeof *nodes);
	uint64_t now = 1764459600000, t, worst = 0, all = 0, wakes = 0;

	if (nodes == NULL || n == 0)
		return EXIT_FAILURE;
	w = wheel_new(now);
	for (size_t i = 0; i < n; i++) {
		nodes[i].fire = on_fire;
		wheel_arm(w, &nodes[i], now + 1 + next_random() % 60000);
	}
	t = clock_mono_us();
	for (size_t i = 0; i < ops; i++)
		wheel_arm(w, &nodes[next_random() % n], now + 1 + next_random() % 60000);
	t = clock_mono_us() - t;
	printf("%zu timers: to arm one again %.1f ns\n", n, (double)t * 1000 / (double)ops);
	for (uint64_t end = now + 600000; now < end; wakes++) {
		int64_t wait = wheel_wait(w, now);

		now += wait > 0 ? (uint64_t)wait : 0;
		t = clock_mono_us();
		(void)wheel_run(w, now, UINT32_MAX);
		t = clock_mono_us() - t;
		all += t;
		if (t > worst)
			worst = t;
	}
	printf("ten minutes of them: %llu fired, %.1f ns each with arming again, %llu wakes, "
	       "longest run %llu us\n",
	    (unsigned long long)fired, (double)all * 1000 / (double)fired,
	    (unsigned long long)wakes, (unsigned long long)worst);
	wheel_free(&w);
	free(nodes);
	return EXIT_SUCCESS;
}
