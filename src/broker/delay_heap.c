/* SPDX-License-Identifier: Apache-2.0
 * The heap of what waits. */
#include "broker/delay_heap.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/msg.h"

enum { CAP_FIRST = 16 };

static void
resize(struct delay_heap *h, uint32_t cap)
{
	mem_sub(MEM_ENTRIES, h->cap * sizeof *h->e);
	h->e = xrealloc(h->e, cap * sizeof *h->e);
	h->cap = cap;
	mem_add(MEM_ENTRIES, h->cap * sizeof *h->e);
}

static void
rise(struct delay_heap *h, uint32_t at)
{
	struct delay_entry e = h->e[at];

	while (at > 0 && delay_entry_before(&e, &h->e[(at - 1) / 2])) {
		h->e[at] = h->e[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	h->e[at] = e;
}

static void
sink(struct delay_heap *h, uint32_t at)
{
	struct delay_entry e = h->e[at];
	uint32_t child;

	while ((child = 2 * at + 1) < h->n) {
		if (child + 1 < h->n && delay_entry_before(&h->e[child + 1], &h->e[child]))
			child++;
		if (!delay_entry_before(&h->e[child], &e))
			break;
		h->e[at] = h->e[child];
		at = child;
	}
	h->e[at] = e;
}

void
delay_heap_push(struct delay_heap *h, const struct delay_entry *e)
{
	if (h->n == h->cap)
		resize(h, h->cap == 0 ? CAP_FIRST : h->cap * 2);
	h->e[h->n++] = *e;
	h->bytes += msg_memory(e->m);
	rise(h, h->n - 1);
}

struct delay_entry
delay_heap_pop(struct delay_heap *h)
{
	struct delay_entry e = h->e[0];

	assert(h->n > 0);
	h->bytes -= msg_memory(e.m);
	h->e[0] = h->e[--h->n];
	if (h->n > 1)
		sink(h, 0);
	if (h->cap > CAP_FIRST && h->n < h->cap / 4)
		resize(h, h->cap / 2);
	return e;
}

uint32_t
delay_heap_drop(struct delay_heap *h, const struct delay_lane *lane, uint64_t from, uint64_t to)
{
	uint32_t kept = 0, dropped, i;

	for (i = 0; i < h->n; i++) {
		if (h->e[i].lane == lane && h->e[i].seq >= from && h->e[i].seq <= to) {
			h->bytes -= msg_memory(h->e[i].m);
			msg_unref(&h->e[i].m);
		} else {
			h->e[kept++] = h->e[i];
		}
	}
	dropped = h->n - kept;
	h->n = kept;
	for (i = kept / 2; dropped > 0 && i-- > 0;)
		sink(h, i);
	return dropped;
}

void
delay_heap_fini(struct broker *b, struct delay_heap *h)
{
	delay_garbage_put(b, h->e, 0, h->n, h->cap);
	*h = (struct delay_heap){ 0 };
}

/* ---- garbage ---- */

struct delay_garbage {
	struct delay_garbage *next; /* broker->delay_garbage */
	struct delay_entry *e;      /* owned */
	uint32_t at, n, cap;
};

void
delay_garbage_put(struct broker *b, struct delay_entry *e, uint32_t from, uint32_t n, uint32_t cap)
{
	struct delay_garbage *g;

	if (e == NULL)
		return;
	g = xmalloc(sizeof *g);
	*g = (struct delay_garbage){ b->delay_garbage, e, from, n, cap };
	b->delay_garbage = g;
}

bool
delay_garbage_free(struct broker *b, unsigned max)
{
	struct delay_garbage *g;

	while ((g = b->delay_garbage) != NULL) {
		for (; g->at < g->n && max > 0; max--)
			msg_unref(&g->e[g->at++].m);
		if (g->at < g->n)
			return true;
		b->delay_garbage = g->next;
		mem_sub(MEM_ENTRIES, g->cap * sizeof *g->e);
		free(g->e);
		free(g);
	}
	return false;
}
