/* SPDX-License-Identifier: Apache-2.0
 * Heap memory in two families, and what the node holds of each kind (STYLE: allocation failure).
 *
 * x*:   the size is ours and bounded; failure logs size and caller and aborts.
 * try_*: size, count or depth was chosen by a peer or a file; NULL leaves everything unchanged and
 *        the caller answers for it.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* Sets the allocator up for a broker: large blocks go back to the system when they are freed, and
 * the top of the heap as it drains. First thing in main, before any thread. */
void mem_init(void);

void *xmalloc(size_t n) MUSTUSE;
void *xcalloc(size_t count, size_t n) MUSTUSE;
void *xrealloc(void *p, size_t n) MUSTUSE;
char *xstrdup(const char *s) MUSTUSE;
char *xstrndup(const char *s, size_t n) MUSTUSE; /* copies n bytes, NUL added; s may hold NULs */
char *xasprintf(const char *fmt, ...) PRINTF(1, 2) MUSTUSE;

/* How the x family ends. */
NORETURN void mem_exhausted(size_t n, const void *caller);

void *try_malloc(size_t n) MUSTUSE;
void *try_realloc(void *p, size_t n) MUSTUSE;

/* Tests: let the n-th try_ call from now on (1 = the next) fail, once or for ever; 0 = off. */
void mem_fail_try(unsigned long n, int for_ever);
extern unsigned long mem_tries_to_fail; /* 0: nothing armed; see mem_try_refused */

/* For try_ functions elsewhere: whether this call has to fail, and that one returned NULL. */
bool mem_try_refused(void);
void mem_note_failure(void);
uint64_t mem_try_failures(void); /* try_ calls that returned NULL since the start */

/* What is counted against the node's memory limit, in bytes. Core thread only; the owner of the
 * memory adds and subtracts. */
enum mem_kind {
	MEM_SLABS,   /* slabs that hold messages or queue entries, whole (base/slab) */
	MEM_LARGE,   /* the same for messages above 8 KiB and pieces of long bodies (base/pages) */
	MEM_ENTRIES, /* deliveries that wait for acknowledgement, queue entries that came back */
	MEM_CONTENT, /* content that is still coming in */
	MEM_OUTPUT,  /* output chunks that wait for sockets */
	MEM_INPUT,   /* incomplete frames and frames of parked channels */
	MEM_TOPOLOGY, /* what clients declared: queues, exchanges, bindings, consumers; what operators made */
	MEM_JOURNAL,  /* records that are not written yet */
	MEM_WINDOWS,  /* keys that deduplication remembers */
	MEM_SAMPLES,  /* what counters were a while ago, for rates (broker/series) */
	MEM_KINDS
};
extern uint64_t mem_held[MEM_KINDS];

static inline void
mem_add(enum mem_kind kind, size_t n)
{
	mem_held[kind] += n;
}

static inline void
mem_sub(enum mem_kind kind, size_t n)
{
	mem_held[kind] -= n;
}

uint64_t mem_total(void); /* the sum over all kinds */
const char *mem_kind_name(enum mem_kind kind);

/* Gives memory that the allocator keeps for nobody back to the system. Called from a timer; does
 * nothing unless much was freed since the last time. Returns true if it went over the heap. */
bool mem_trim(void);

#endif
