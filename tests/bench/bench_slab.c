/* SPDX-License-Identifier: Apache-2.0
 * What an item of base/slab costs beside malloc: handed over at once, some under way, and as a
 * backlog that is filled, walked and drained. Not a test. Usage: bench_slab [SIZE...] */
#include "base/slab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum { BACKLOG_BYTES = 256 << 20 };

struct item {
	void *p;
	uint32_t home;
};

static void
take(struct item *it, size_t n, int use_malloc)
{
	it->p = use_malloc ? malloc(n) : slab_try_alloc(n, &it->home);
	if (it->p == NULL)
		abort();
	memset(it->p, 1, n < 64 ? n : 64);
}

static void
give(struct item *it, size_t n, int use_malloc)
{
	if (use_malloc)
		free(it->p);
	else
		slab_free(it->p, it->home, n);
}

/* `under_way` items live at a time; returns nanoseconds for an alloc and a free. */
static double
stream(size_t n, size_t under_way, int use_malloc)
{
	size_t rounds = n < 4096 ? 20000000 : 2000000;
	struct item *ring = calloc(under_way, sizeof *ring);
	uint64_t t;

	if (ring == NULL)
		abort();
	for (size_t i = 0; i < under_way; i++)
		take(&ring[i], n, use_malloc);
	t = clock_mono_us();
	for (size_t i = 0, k = 0; i < rounds; i++) {
		give(&ring[k], n, use_malloc);
		take(&ring[k], n, use_malloc);
		if (++k == under_way)
			k = 0;
	}
	t = clock_mono_us() - t;
	for (size_t i = 0; i < under_way; i++)
		give(&ring[i], n, use_malloc);
	free(ring);
	return (double)t * 1000 / (double)rounds;
}

static void
backlog(size_t n, int use_malloc)
{
	size_t count = BACKLOG_BYTES / n;
	struct item *items = calloc(count, sizeof *items);
	volatile unsigned char sink;
	uint64_t t[4];

	if (items == NULL)
		abort();
	t[0] = clock_mono_us();
	for (size_t i = 0; i < count; i++) {
		take(&items[i], n, use_malloc);
		memset(items[i].p, 2, n);
	}
	t[1] = clock_mono_us();
	for (size_t i = 0; i < count; i++)
		sink = *(volatile unsigned char *)items[i].p;
	(void)sink;
	t[2] = clock_mono_us();
	for (size_t i = 0; i < count; i++)
		give(&items[i], n, use_malloc);
	t[3] = clock_mono_us();
	printf("  backlog of 256 MiB, %s: fill %.1f ns, walk %.1f ns, drain %.1f ns an item\n",
	    use_malloc ? "malloc" : "slab  ", (double)(t[1] - t[0]) * 1000 / (double)count,
	    (double)(t[2] - t[1]) * 1000 / (double)count,
	    (double)(t[3] - t[2]) * 1000 / (double)count);
	free(items);
}

int
main(int argc, char **argv)
{
	static const size_t usual[] = { 150, 400, 1200, 8000, 66000 };
	size_t n_sizes = argc > 1 ? (size_t)argc - 1 : sizeof usual / sizeof usual[0];

	mem_init();
	for (size_t i = 0; i < n_sizes; i++) {
		size_t n = argc > 1 ? strtoul(argv[i + 1], NULL, 0) : usual[i];

		if (n == 0)
			return EXIT_FAILURE;
		printf("%zu bytes: alloc and free, 1 / 300 / 3000 under way: slab %.1f %.1f %.1f "
		       "ns, malloc %.1f %.1f %.1f ns\n",
		    n, stream(n, 1, 0), stream(n, 300, 0), stream(n, 3000, 0), stream(n, 1, 1),
		    stream(n, 300, 1), stream(n, 3000, 1));
		for (int k = 0; k < 4; k++)
			backlog(n, k % 2);
		for (int k = 0; k < 20; k++) {
			uint64_t t = clock_mono_us();

			slab_trim();
			t = clock_mono_us() - t;
			if (t > 500)
				printf("  slab_trim %.2f ms\n", (double)t / 1000);
		}
	}
	return EXIT_SUCCESS;
}
