/* SPDX-License-Identifier: Apache-2.0
 * Heap memory in two families. Messages do not come from here, but from base/slab. */
#include "base/mem.h"

#include <assert.h>
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/asan.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/slab.h"

enum {
	/* A block above this is a mapping of its own: it goes back when it is freed, and a ring
	 * that grows is moved instead of copied. Set by hand, because glibc moves the threshold
	 * upwards with what it sees freed. Messages do not come from here (base/slab). */
	MMAP_THRESHOLD = 128 << 10,
	/* So much may be free at the top of the heap before free() returns it: 0.06 ms per MiB. */
	TRIM_THRESHOLD = 8 << 20,
	TOP_PAD = 256 << 10,
	ARENAS = 4,             /* core, journal, log, workers: more would only scatter */
	ARENA_SPACE = 64 << 20, /* address space that each of them reserves */
	TRIM_FALL = 32 << 20,
	TRIM_EVERY_US = 5 * 1000 * 1000
};

uint64_t mem_held[MEM_KINDS];
unsigned long mem_tries_to_fail;

static bool fail_for_ever;
static uint64_t try_failures;
static uint64_t trim_peak, trim_last_us;

/* One arena for all threads where `ulimit -v` leaves no room for more. */
static int
arenas(void)
{
	struct rlimit space;

	if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur / 16 < ARENA_SPACE)
		return 1;
	return ARENAS;
}

void
mem_init(void)
{
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
	mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD);
	mallopt(M_TOP_PAD, TOP_PAD);
	/* Small pieces that are freed would lie apart until some call joins all of them: 17 ms for those of 100,000
	 * queues, in the middle of a turn. Each is joined with its neighbours when it is freed. */
	mallopt(M_MXFAST, 0);
	mallopt(M_ARENA_MAX, arenas());
}

/* Logs the place in the binary that asked, in the form addr2line takes. */
void
mem_exhausted(size_t n, const void *caller)
{
	Dl_info where;

	if (dladdr(caller, &where) != 0 && where.dli_fbase != NULL)
		log_error("out of memory: %zu bytes, asked for at %s+0x%tx", n, where.dli_fname,
		    (const char *)caller - (const char *)where.dli_fbase);
	else
		log_error("out of memory: %zu bytes, asked for at %p", n, caller);
	log_flush();
	abort();
}

/* realloc(p, 0) would free p, and malloc(0) may be NULL: nothing is ever smaller than a byte. */
static inline size_t
at_least_one(size_t n)
{
	return n > 0 ? n : 1;
}

void *
xmalloc(size_t n)
{
	void *p = malloc(at_least_one(n));

	if (unlikely(p == NULL))
		mem_exhausted(n, __builtin_return_address(0));
	return p;
}

void *
xcalloc(size_t count, size_t n)
{
	void *p = calloc(at_least_one(count), at_least_one(n));
	size_t all;

	if (unlikely(p == NULL)) {
		if (__builtin_mul_overflow(count, n, &all))
			all = SIZE_MAX;
		mem_exhausted(all, __builtin_return_address(0));
	}
	return p;
}

void *
xrealloc(void *p, size_t n)
{
	void *q = realloc(p, at_least_one(n));

	if (unlikely(q == NULL))
		mem_exhausted(n, __builtin_return_address(0));
	return q;
}

static char *
copy_string(const char *s, size_t n, const void *caller)
{
	char *p = n < SIZE_MAX ? malloc(n + 1) : NULL;

	if (unlikely(p == NULL))
		mem_exhausted(n, caller);
	if (n > 0)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *
xstrdup(const char *s)
{
	return copy_string(s, strlen(s), __builtin_return_address(0));
}

char *
xstrndup(const char *s, size_t n)
{
	return copy_string(s, n, __builtin_return_address(0));
}

char *
xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *p = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	if (unlikely(n < 0))
		mem_exhausted(0, __builtin_return_address(0));
	return p;
}

void *
try_malloc(size_t n)
{
	void *p = mem_try_refused() ? NULL : malloc(at_least_one(n));

	if (unlikely(p == NULL))
		mem_note_failure();
	return p;
}

void *
try_realloc(void *p, size_t n)
{
	void *q = mem_try_refused() ? NULL : realloc(p, at_least_one(n));

	if (unlikely(q == NULL))
		mem_note_failure();
	return q;
}

void
mem_fail_try(unsigned long n, int for_ever)
{
	mem_tries_to_fail = n;
	fail_for_ever = for_ever != 0;
	if (n != 0)
		slab_hold_fast_path();
}

bool
mem_try_refused(void)
{
	if (likely(mem_tries_to_fail == 0))
		return false;
	if (mem_tries_to_fail > 1) {
		mem_tries_to_fail--;
		return false;
	}
	if (!fail_for_ever)
		mem_fail_try(0, 0);
	return true;
}

void
mem_note_failure(void)
{
	try_failures++;
}

uint64_t
mem_try_failures(void)
{
	return try_failures;
}

uint64_t
mem_total(void)
{
	uint64_t sum = 0;

	for (int k = 0; k < MEM_KINDS; k++)
		sum += mem_held[k];
	return sum;
}

const char *
mem_kind_name(enum mem_kind kind)
{
	static const char *const names[MEM_KINDS] = {
		[MEM_SLABS] = "slabs",
		[MEM_LARGE] = "large",
		[MEM_ENTRIES] = "entries",
		[MEM_CONTENT] = "content",
		[MEM_OUTPUT] = "output",
		[MEM_INPUT] = "input",
		[MEM_TOPOLOGY] = "topology",
		[MEM_JOURNAL] = "journal",
		[MEM_WINDOWS] = "windows",
		[MEM_SAMPLES] = "samples",
	};

	assert(kind < MEM_KINDS);
	return names[kind];
}

/* The heap is gone over only when there is something to find: what is held in it fell well below
 * the most since the last time. Costs 0.06 ms per MiB that goes back, and 0.1 ms for 10,000 free
 * pieces. Messages are not in the heap, and not looked at. */
bool
mem_trim(void)
{
	uint64_t held = mem_held[MEM_ENTRIES] + mem_held[MEM_OUTPUT] + mem_held[MEM_INPUT], now;

	if (held > trim_peak)
		trim_peak = held;
	if (trim_peak - held <= TRIM_FALL)
		return false;
	now = clock_mono_us();
	if (trim_last_us != 0 && now - trim_last_us < TRIM_EVERY_US)
		return false;
	malloc_trim(TOP_PAD);
	trim_last_us = clock_mono_us();
	trim_peak = held;
	return true;
}

ASAN_OPTIONS_HERE
