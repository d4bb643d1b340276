/* SPDX-License-Identifier: Apache-2.0
 * Publisher confirms: see the header.
 *
 *	low        base          next
 *	 |  acked   |  ring       |		tags below low were sent
 *
 * Tags in [low, base) are acked and not sent yet. The ring has the state of [base, next), whose first is open, or
 * nacked, or was sent alone. Tags that are acked when they are opened raise base and next together while the ring
 * is empty. */
#include "broker/confirm.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	RING_MIN = 64,
	RING_KEPT = 4096 /* bytes of an empty ring that is not freed */
};

static inline uint8_t *
state_of(const struct confirms *c, uint64_t tag)
{
	return &c->state[tag & c->mask];
}

static void
ring_free(struct confirms *c)
{
	if (c->state != NULL)
		mem_sub(MEM_ENTRIES, (size_t)c->mask + 1);
	free(c->state);
	c->state = NULL;
	c->mask = 0;
}

/* Room for one more state. */
static void
ring_reserve(struct confirms *c)
{
	uint64_t span = c->next - c->base, slots = c->state != NULL ? (uint64_t)c->mask + 1 : 0;
	uint8_t *to;

	if (span < slots)
		return;
	slots = slots > 0 ? slots * 2 : RING_MIN;
	to = xmalloc(slots);
	for (uint64_t t = c->base; t < c->next; t++)
		to[t & (slots - 1)] = *state_of(c, t);
	ring_free(c);
	c->state = to;
	c->mask = (uint32_t)(slots - 1);
	mem_add(MEM_ENTRIES, slots);
}

void
confirms_init(struct confirms *c, uint32_t limit)
{
	*c = (struct confirms){
		.next = 1, .low = 1, .base = 1, .beyond = UINT64_MAX, .limit = limit
	};
}

void
confirms_fini(struct confirms *c)
{
	ring_free(c);
	*c = (struct confirms){ 0 };
}

uint64_t
confirm_open(struct confirms *c, bool settled)
{
	uint64_t tag = c->next;

	assert(tag != 0);
	if (settled && c->base == tag) {
		c->base++;
		return c->next++;
	}
	/* The window counts, not the open ones in it: one that stays open must not let the ring grow. */
	if (tag - c->base >= c->limit)
		return 0;
	ring_reserve(c);
	c->next++;
	*state_of(c, tag) = CONFIRM_OPEN;
	c->open++;
	if (settled)
		confirm_settle(c, tag, true);
	return tag;
}

void
confirm_settle(struct confirms *c, uint64_t tag, bool ack)
{
	confirm_settle_range(c, tag, tag, ack);
}

void
confirm_settle_range(struct confirms *c, uint64_t first, uint64_t last, bool ack)
{
	uint8_t outcome = ack ? CONFIRM_ACK : CONFIRM_NACK;

	assert(first >= c->base && first <= last && last < c->next);
	for (uint64_t tag = first; tag <= last; tag++) {
		uint8_t *state = state_of(c, tag);

		assert(*state == CONFIRM_OPEN);
		*state = outcome;
	}
	c->open -= (uint32_t)(last - first + 1);
	if (first < c->beyond)
		c->beyond = first;
}

static void
fill(struct confirm_out *out, uint64_t tag, bool ack, uint64_t count)
{
	*out =
	    (struct confirm_out){ .tag = tag, .ack = ack, .multiple = count > 1, .count = count };
}

/* The ring's first states that need no place any more: acks join those before them, what was sent is left behind
 * when nothing before it waits. */
static void
move_base(struct confirms *c)
{
	while (c->base < c->next) {
		uint8_t state = *state_of(c, c->base);

		if (state == CONFIRM_SENT && c->low == c->base)
			c->low++;
		else if (state != CONFIRM_ACK)
			break;
		c->base++;
	}
	if (c->base == c->next && c->state != NULL && c->mask >= RING_KEPT)
		ring_free(c);
}

/* A settled one behind one that is open: alone, because `multiple` would cover that one too. */
static bool
take_beyond(struct confirms *c, struct confirm_out *out)
{
	for (; c->beyond < c->next; c->beyond++) {
		uint8_t *state = state_of(c, c->beyond);

		if (*state != CONFIRM_ACK && *state != CONFIRM_NACK)
			continue;
		fill(out, c->beyond, *state == CONFIRM_ACK, 1);
		*state = CONFIRM_SENT;
		c->beyond++;
		return true;
	}
	c->beyond = UINT64_MAX;
	return false;
}

bool
confirm_take(struct confirms *c, struct confirm_out *out)
{
	move_base(c);
	if (c->base > c->low) {
		fill(out, c->base - 1, true, c->base - c->low);
		c->low = c->base;
		return true;
	}
	if (c->base == c->next)
		return false;
	if (*state_of(c, c->base) == CONFIRM_NACK) {
		fill(out, c->base, false, 1);
		c->base++;
		c->low = c->base;
		return true;
	}
	if (c->beyond < c->base)
		c->beyond = c->base;
	return take_beyond(c, out);
}
