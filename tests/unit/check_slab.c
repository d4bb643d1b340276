/* SPDX-License-Identifier: Apache-2.0
 * Slabs and page runs: nothing overlaps, nothing is lost, memory comes back, idle parts are used
 * again. */
#include "base/slab.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/region.h"

struct item {
	uint8_t *p;
	size_t n;
	uint32_t home;
	uint8_t pattern;
};

static uint64_t seed = 88172645463325252u;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void
item_alloc(struct item *it, size_t n)
{
	it->n = n;
	it->p = slab_try_alloc(n, &it->home);
	if (it->p == NULL || (uintptr_t)it->p % 16 != 0)
		ck_abort_msg("no memory, or not aligned: %p", (void *)it->p);
	it->pattern = (uint8_t)next_random();
	memset(it->p, it->pattern, n);
}

static void
item_free(struct item *it)
{
	/* Not ck_assert in here: each call of it writes to a file. */
	for (size_t i = 0; i < it->n; i++) {
		if (it->p[i] != it->pattern)
			ck_abort_msg("byte %zu of %zu was overwritten", i, it->n);
	}
	slab_free(it->p, it->home, it->n);
	it->p = NULL;
}

static void
check_all_gone(void)
{
	struct slab_stats st;

	for (int i = 0; i < 200; i++)
		slab_trim();
	slab_get_stats(&st);
	ck_assert_uint_eq(st.items, 0);
	ck_assert_uint_eq(st.item_bytes, 0);
	ck_assert_uint_eq(st.slabs_used, 0);
	ck_assert_uint_eq(mem_held[MEM_SLABS], 0);
	ck_assert_uint_eq(mem_held[MEM_LARGE], 0);
	/* 16 empty slabs and two whole regions may stay, and the regions that the slabs lie in. */
	ck_assert_uint_le(st.slabs_empty, 17 + 2 * 8);
	ck_assert_uint_le(region_mapped(), 17 + 2);
}

static size_t
random_size(int kind)
{
	switch (kind) {
	case 0: return next_random() % 600;
	case 1: return next_random() % (SLAB_ITEM_MAX + 1);
	case 2: return SLAB_ITEM_MAX + 1 + next_random() % PAGES_RUN_MAX;
	default:
		if (next_random() % 50 == 0)
			return next_random() % (3 << 20);
		return (size_t)1 << next_random() % 18;
	}
}

START_TEST(classes_fit)
{
	uint32_t home, last = 0;

	for (size_t n = 0; n <= SLAB_ITEM_MAX; n++) {
		void *p = slab_try_alloc(n, &home);

		ck_assert_ptr_nonnull(p);
		ck_assert_uint_lt(home, SLAB_CLASSES);
		ck_assert_uint_ge(home, last);
		ck_assert_uint_ge(slab_hot[home].size, n);
		ck_assert_uint_eq(slab_hot[home].size % 16, 0);
		if (n > 64)
			ck_assert_uint_lt(slab_hot[home].size, n + n / 4 + 16);
		last = home;
		slab_free(p, home, n);
	}
	ck_assert_uint_eq(last, SLAB_CLASSES - 1);
	check_all_gone();
}
END_TEST

/* Kinds of sizes in a loop test: small ones, all of the slabs', runs of pages, everything. */
START_TEST(random_traffic)
{
	enum { MANY = 3000, ROUNDS = 100000 };
	static struct item items[MANY];
	int n = _i >= 2 ? 300 : MANY, rounds = _i >= 2 ? 8000 : ROUNDS;
	struct slab_stats st;
	uint64_t live = 0;

	for (int r = 0; r < rounds; r++) {
		/* Waves, so that slabs run empty now and then. */
		bool grow = (r / (2 * n)) % 2 == 0;
		struct item *it = &items[next_random() % (uint64_t)n];

		if (it->p == NULL && (grow || next_random() % 8 == 0)) {
			item_alloc(it, random_size(_i));
			live++;
		} else if (it->p != NULL && (!grow || next_random() % 4 == 0)) {
			item_free(it);
			live--;
		}
		if (r % 1000 == 0) {
			slab_trim();
			slab_get_stats(&st);
			ck_assert_uint_eq(st.items, live);
			ck_assert_uint_le(st.item_bytes, mem_held[MEM_SLABS] + mem_held[MEM_LARGE]);
		}
	}
	for (int i = 0; i < n; i++) {
		if (items[i].p != NULL)
			item_free(&items[i]);
	}
	check_all_gone();
}
END_TEST

START_TEST(addresses_go_up)
{
	enum { N = 5000 };
	static struct item items[N];
	int down = 0;

	for (int i = 0; i < N; i++) {
		item_alloc(&items[i], 300);
		if (i > 0 && items[i].p != items[i - 1].p + 320)
			down++;
	}
	/* One step aside for each slab of 819 items. */
	ck_assert_int_le(down, N / 819 + 1);
	for (int i = 0; i < N; i++)
		item_free(&items[i]);
	check_all_gone();
}
END_TEST

START_TEST(one_at_a_time_stays_in_place)
{
	static const size_t sizes[] = { 100, 8000, 70000 };
	uint8_t *first = NULL;
	uint32_t home = 0;

	for (int i = 0; i < 10000; i++) {
		uint8_t *p = slab_try_alloc(sizes[_i], &home);

		if (i == 0)
			first = p;
		if (p == NULL || p != first)
			ck_abort_msg("%p is not %p", (void *)p, (void *)first);
		slab_free(p, home, sizes[_i]);
	}
	check_all_gone();
}
END_TEST

/* A backlog of which one message in twenty stays pins everything. What comes then fills the holes:
 * the node does not grow until they are used. Kinds: slab items, runs of pages. */
START_TEST(holes_are_filled)
{
	static const struct {
		size_t size;
		int n, fill;
	} cases[] = { { 1000, 100000, 80000 }, { 30000, 4000, 3000 } };
	struct item *items = calloc((size_t)cases[_i].n, sizeof *items), *more;
	int n = cases[_i].n, fill = cases[_i].fill;
	uint64_t before;

	more = calloc((size_t)fill, sizeof *more);
	ck_assert(items != NULL && more != NULL);
	for (int i = 0; i < n; i++)
		item_alloc(&items[i], cases[_i].size);
	for (int i = 0; i < n; i++) {
		if (i % 20 != 0)
			item_free(&items[i]);
	}
	before = mem_held[MEM_SLABS] + mem_held[MEM_LARGE];
	ck_assert_uint_gt(before, 64 << 20);
	for (int i = 0; i < fill; i++)
		item_alloc(&more[i], cases[_i].size);
	/* Half full is the bound of the rule; without it this would have grown by four fifths. */
	ck_assert_uint_lt(mem_held[MEM_SLABS] + mem_held[MEM_LARGE], before + before / 2);
	for (int i = 0; i < fill; i++)
		item_free(&more[i]);
	for (int i = 0; i < n; i++) {
		if (items[i].p != NULL)
			item_free(&items[i]);
	}
	free(items);
	free(more);
	check_all_gone();
}
END_TEST

/* Steady traffic over a pinned backlog: what is held stays within twice of what is live, and the 32
 * MiB. */
START_TEST(pinned_backlog_does_not_grow)
{
	enum { PINNED = 3000, RING = 2000 };
	static struct item pinned[PINNED], ring[RING];

	for (int i = 0; i < 400000; i++) {
		struct item *it = &ring[i % RING];

		if (it->p != NULL) {
			if (i % 100 == 0 && pinned[(i / 100) % PINNED].p == NULL)
				pinned[(i / 100) % PINNED] = *it;
			else
				slab_free(it->p, it->home, it->n);
		}
		it->n = 900;
		it->p = slab_try_alloc(it->n, &it->home);
		if (it->p == NULL)
			ck_abort_msg("no memory");
		it->pattern = (uint8_t)i;
		memset(it->p, it->pattern, it->n);
	}
	ck_assert_uint_le(mem_held[MEM_SLABS], 34 << 20);
	for (int i = 0; i < PINNED; i++) {
		if (pinned[i].p != NULL)
			item_free(&pinned[i]);
	}
	for (int i = 0; i < RING; i++)
		item_free(&ring[i]);
	check_all_gone();
}
END_TEST

static size_t
resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long size, pages = 0;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%lu %lu", &size, &pages), 2);
	(void)fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

START_TEST(memory_goes_back)
{
	static const size_t sizes[] = { 400, 5000, 66000, 700000 };
	size_t n = (128 << 20) / sizes[_i], before = resident(), full, after;
	struct item *items = calloc(n, sizeof *items);

	ck_assert_ptr_nonnull(items);
	for (size_t i = 0; i < n; i++)
		item_alloc(&items[i], sizes[_i]);
	full = resident();
	for (size_t i = 0; i < n; i++)
		slab_free(items[i].p, items[i].home, items[i].n);
	for (int i = 0; i < 200; i++)
		slab_trim();
	after = resident();
	free(items);
	check_all_gone();
	/* The sanitizer keeps what was freed, and shadows. */
	if (BASE_ASAN)
		return;
	ck_assert_uint_gt(full, before + (120 << 20));
	ck_assert_uint_lt(after, before + (24 << 20));
}
END_TEST

/* A backlog that fills and drains within seconds keeps its memory; one that is gone gives it back. */
START_TEST(swings_keep_their_memory)
{
	static const size_t sizes[] = { 1000, 60000 };
	size_t n = (48 << 20) / sizes[_i];
	struct item *items = calloc(n, sizeof *items);
	uint64_t mapped = 0;

	ck_assert_ptr_nonnull(items);
	for (int swing = 0; swing < 12; swing++) {
		for (size_t i = 0; i < n; i++)
			item_alloc(&items[i], sizes[_i]);
		if (swing == 0)
			mapped = region_mapped();
		ck_assert_uint_eq(region_mapped(), mapped);
		slab_trim();
		for (size_t i = 0; i < n; i++)
			item_free(&items[i]);
		slab_trim();
		slab_trim();
		ck_assert_uint_eq(region_mapped(), mapped);
	}
	for (int i = 0; i < 20; i++)
		slab_trim();
	ck_assert_uint_lt(region_mapped(), mapped * 9 / 10);
	free(items);
	check_all_gone();
}
END_TEST

/* Never NULL and never refused: what tests let fail are the others. */
START_TEST(x_is_not_refused)
{
	uint32_t home, other;
	void *p, *q;

	mem_fail_try(1, 1);
	p = slab_xalloc(512, &home);
	q = slab_xalloc(4096, &other);
	ck_assert(p != NULL && q != NULL && home != other);
	ck_assert_ptr_null(slab_try_alloc(512, &home));
	mem_fail_try(0, 0);
	slab_free(p, home, 512);
	slab_free(q, other, 4096);
	check_all_gone();
}
END_TEST

START_TEST(stock_is_bounded)
{
	static struct item items[40];
	struct pages_stats st;

	for (int i = 0; i < 40; i++)
		item_alloc(&items[i], 900 << 10);
	for (int i = 0; i < 40; i++)
		item_free(&items[i]);
	pages_get_stats(&st);
	ck_assert_uint_gt(st.stock_bytes, 8 << 20);
	ck_assert_uint_le(st.stock_bytes, PAGES_STOCK_MAX);
	check_all_gone();
	pages_get_stats(&st);
	ck_assert_uint_eq(st.stock_bytes, 0);
}
END_TEST

/* The system gives no more: NULL, nothing else changes, and what is freed can be had again. */
START_TEST(no_more_memory)
{
	enum { MANY = 300000 };
	static const size_t sizes[] = { 400, 5000, 66000 };
	struct rlimit limit;
	struct item *items = calloc(MANY, sizeof *items);
	uint64_t failures = mem_try_failures();
	size_t n = 0;

	ck_assert_ptr_nonnull(items);
	if (BASE_ASAN) {
		free(items);
		return;
	}
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = 120 << 20;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	while (n < MANY) {
		items[n].n = sizes[_i];
		items[n].pattern = (uint8_t)n;
		items[n].p = slab_try_alloc(sizes[_i], &items[n].home);
		if (items[n].p == NULL)
			break;
		memset(items[n].p, items[n].pattern, sizes[_i]);
		n++;
	}
	ck_assert_uint_lt(n, MANY);
	ck_assert_uint_gt(n * sizes[_i], 50 << 20);
	ck_assert_uint_eq(mem_try_failures(), failures + 1);
	for (size_t i = 0; i < n; i += 2)
		item_free(&items[i]);
	for (size_t i = 0; i < n; i += 2) {
		if (items[i].p == NULL && i < n / 2)
			item_alloc(&items[i], sizes[_i]);
	}
	for (size_t i = 0; i < n; i++) {
		if (items[i].p != NULL)
			item_free(&items[i]);
	}
	free(items);
	check_all_gone();
}
END_TEST

START_TEST(absurd_sizes_are_refused)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, (size_t)1 << 62 };
	uint32_t home = 77;

	ck_assert_ptr_null(slab_try_alloc(sizes[_i], &home));
	ck_assert_uint_eq(home, 77);
	check_all_gone();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("slab");
	TCase *t = tcase_create("slab");
	SRunner *r = srunner_create(s);
	int failed;

	mem_init();
	tcase_set_timeout(t, 120);
	tcase_add_test(t, classes_fit);
	tcase_add_loop_test(t, random_traffic, 0, 4);
	tcase_add_test(t, addresses_go_up);
	tcase_add_loop_test(t, one_at_a_time_stays_in_place, 0, 3);
	tcase_add_loop_test(t, holes_are_filled, 0, 2);
	tcase_add_test(t, pinned_backlog_does_not_grow);
	tcase_add_loop_test(t, memory_goes_back, 0, 4);
	tcase_add_loop_test(t, swings_keep_their_memory, 0, 2);
	tcase_add_test(t, x_is_not_refused);
	tcase_add_test(t, stock_is_bounded);
	tcase_add_loop_test(t, no_more_memory, 0, 3);
	tcase_add_loop_test(t, absurd_sizes_are_refused, 0, 4);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
