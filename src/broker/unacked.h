/* SPDX-License-Identifier: Apache-2.0
 * The deliveries of a session that wait for acknowledgement, by tag (session.h says how they are kept). This module
 * moves them about; who is told of what happens to them is session.c's. */
#ifndef BROKER_UNACKED_H
#define BROKER_UNACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/session.h"

void unacked_fini(struct unacked_ring *r); /* nothing may be open */

/* Makes room for `tag`, which is higher than every tag before: tags between are no deliveries of this ring. */
void unacked_make_room(struct unacked_ring *r, uint64_t tag);

/* The open one with this tag, or NULL. */
struct unacked *unacked_find_old(const struct unacked_ring *r, uint64_t tag);

/* After entries of the ring (the sorted array) were made holes and counted out of live (old_live): low moves up, what
 * is not needed any more is freed. */
void unacked_trim(struct unacked_ring *r);
void unacked_trim_old(struct unacked_ring *r);

/* Index in `old` of the first one whose tag is above `tag`. */
uint32_t unacked_old_above(const struct unacked_ring *r, uint64_t tag);

/* Puts open ones back that were taken out, whatever their order; sorts them. */
void unacked_put_back(struct unacked_ring *r, struct unacked *u, uint32_t n);

static inline struct unacked *
unacked_slot(const struct unacked_ring *r, uint64_t tag)
{
	return &r->slot[tag & r->mask];
}

static inline struct unacked *
unacked_push(struct unacked_ring *r, uint64_t tag)
{
	struct unacked *u;

	/* The common case: the next tag, and a slot for it. */
	if (unlikely(tag != r->next || r->slot == NULL || tag - r->low > r->mask))
		unacked_make_room(r, tag);
	u = unacked_slot(r, tag);
	u->tag = tag;
	r->next = tag + 1;
	r->live++;
	return u;
}

static inline struct unacked *
unacked_find(const struct unacked_ring *r, uint64_t tag)
{
	struct unacked *u;

	if (unlikely(tag < r->low))
		return unacked_find_old(r, tag);
	if (tag >= r->next)
		return NULL;
	u = unacked_slot(r, tag);
	return u->e.m != NULL ? u : NULL;
}

#endif
