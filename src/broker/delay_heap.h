/* SPDX-License-Identifier: Apache-2.0
 * Messages by due time, those of the same by number: a binary heap. */
#ifndef BROKER_DELAY_HEAP_H
#define BROKER_DELAY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct broker;
struct delay_lane;
struct msg;

struct delay_entry {
	uint64_t due_ms, seq;
	struct msg *m;           /* a reference */
	struct delay_lane *lane; /* borrowed: where it lies */
};

struct delay_heap {
	struct delay_entry *e; /* owned; e[0] is next */
	uint32_t n, cap;
	uint64_t bytes; /* memory of the messages */
};

static inline bool
delay_entry_before(const struct delay_entry *a, const struct delay_entry *b)
{
	return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->seq < b->seq;
}

void delay_heap_push(struct delay_heap *h, const struct delay_entry *e);
struct delay_entry delay_heap_pop(struct delay_heap *h); /* not of an empty one */
/* Lets go of those of one lane with numbers from..to. Returns how many. */
uint32_t delay_heap_drop(struct delay_heap *h, const struct delay_lane *lane, uint64_t from, uint64_t to);
void delay_heap_fini(struct broker *b, struct delay_heap *h); /* with its references */

/* References that nobody needs any more: an array of them is taken as it is and gone through in slices, for there may be
 * very many. `from`: the first that counts; e NULL: there is none. */
void delay_garbage_put(struct broker *b, struct delay_entry *e, uint32_t from, uint32_t n, uint32_t cap);
/* For broker.c: lets go of up to max of them. True: there are more. */
bool delay_garbage_free(struct broker *b, unsigned max);

#endif
