/* SPDX-License-Identifier: Apache-2.0
 * Regions: see the header. A kept region carries the link to the next one in its first bytes. */
#include "base/region.h"

#include <assert.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/asan.h"
#include "base/clock.h"
#include "base/low_water.h"

enum {
	SMALL_PAGES_UNTIL = 4, /* regions: a node that holds next to nothing stays small */
	KEEP = 2
};

struct kept {
	struct kept *next;
};

static struct kept *kept_list;
static uint64_t mapped, kept;
static struct low_water kept_low;

/* Maps twice as much and gives back what lies outside of the aligned half. */
static void *
map_aligned(void)
{
	uint8_t *p = mmap(NULL, 2 * REGION_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = (REGION_SIZE - ((uintptr_t)p & (REGION_SIZE - 1))) & (REGION_SIZE - 1);
	if (before > 0)
		(void)munmap(p, before);
	(void)munmap(p + before + REGION_SIZE, REGION_SIZE - before);
	return p + before;
}

void *
region_try_get(bool *fresh)
{
	struct kept *k = kept_list;
	void *p;

	if (k != NULL) {
		asan_allow(k, sizeof *k);
		kept_list = k->next;
		kept--;
		low_water_fell(&kept_low, kept);
		*fresh = false;
		return k;
	}
	p = map_aligned();
	if (p == NULL)
		return NULL;
	/* Advice: where the system has no huge pages, nothing changes. */
	if (++mapped > SMALL_PAGES_UNTIL)
		(void)madvise(p, REGION_SIZE, MADV_HUGEPAGE);
	*fresh = true;
	return p;
}

void
region_put(void *region)
{
	struct kept *k = region;

	assert(((uintptr_t)region & (REGION_SIZE - 1)) == 0);
	asan_allow(k, sizeof *k);
	k->next = kept_list;
	kept_list = k;
	kept++;
	asan_forbid(region, REGION_SIZE);
}

void
region_release(void *region)
{
	int r;

	assert(((uintptr_t)region & (REGION_SIZE - 1)) == 0 && mapped > 0);
	asan_allow(region, REGION_SIZE);
	r = munmap(region, REGION_SIZE);
	/* Unmapping in the middle of a mapping may need a mapping more than the system allows: the
	 * region then stays ours, without its memory. */
	if (r == 0) {
		mapped--;
		return;
	}
	(void)madvise(region, REGION_SIZE, MADV_DONTNEED);
	region_put(region);
}

void
region_trim(uint64_t until_us)
{
	uint64_t idle = low_water_tick(&kept_low, kept),
	         n = idle > KEEP ? (idle - KEEP + 1) / 2 : 0;

	for (; n > 0 && clock_mono_us() < until_us; n--) {
		struct kept *k = kept_list;

		asan_allow(k, sizeof *k);
		kept_list = k->next;
		kept--;
		region_release(k);
	}
}

uint64_t
region_mapped(void)
{
	return mapped;
}

uint64_t
region_kept(void)
{
	return kept;
}
