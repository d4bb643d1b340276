/* SPDX-License-Identifier: Apache-2.0
 * A message: immutable once routed, counted, kept as the bytes that a delivery sends (DESIGN: the life of a message).
 *
 *	wire: exchange and routing key as short strings, CE | content header frame as it came |
 *	      body frame head (7 bytes) | body | CE
 *
 * names_len covers the two short strings and the CE; meta_len the names and the header frame. The part from the body
 * frame head on is there when the whole body came in one frame; otherwise the body is the chain `rest`.
 * Channel numbers in the frame heads are whatever they were: each delivery writes its own into its copy. */
#ifndef BROKER_MSG_H
#define BROKER_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/slab.h"

struct msg_piece {	/* a part of a long body */
	struct msg_piece *next;
	uint32_t n, cap;
	uint8_t d[];
};

enum {
	MSG_PERSISTENT = 1,
	MSG_DELAYED = 2,	/* it waits in an x-delayed-message exchange */
	MSG_SHARES = 4,	/* msg.c's: `rest` is another message's, of which we hold a reference */
	MSG_SPREAD_SHIFT = 3, MSG_SPREAD_TOP = 31	/* the other bits: msg_spread() */
};

struct msg {
	uint32_t refs, home;		/* home: base/slab's */
	uint16_t names_len;
	uint8_t flags, prio;
	uint32_t meta_len;
	uint64_t body_size;
	struct msg_piece *rest;		/* owned, or another's (MSG_SHARES); NULL: the body stands in wire */
	uint64_t arrived_ms;		/* when it was given to its queues */
	uint8_t wire[];
};

/* Size of wire for a message whose body stands in it. */
static inline size_t
msg_wire_size(uint32_t meta_len, uint64_t body_in_wire)
{
	return meta_len + (body_in_wire > 0 ? 8 + body_in_wire : 0);
}

/* A message with wire of `wire_size` bytes, one reference; NULL: no memory. The caller fills wire, and then sets
 * names_len, meta_len and body_size in one go: wire_size is msg_wire_size(meta_len, body_size) or, for a body that
 * comes in pieces, msg_wire_size(meta_len, 0), and then msg_try_append follows at once. */
struct msg *msg_try_new(size_t wire_size) MUSTUSE;
void msg_destroy(struct msg *m);

static inline struct msg *
msg_ref(struct msg *m)
{
	m->refs++;
	return m;
}

/* Drops one reference and clears the pointer. */
static inline void
msg_unref(struct msg **mp)
{
	struct msg *m = *mp;

	*mp = NULL;
	if (--m->refs == 0)
		msg_destroy(m);
}

/* Of a dead letter: it and its kin, all from one message that a client had a hand in, are at most two to the power of this.
 * Survives with the message. See dead_letter.c. */
static inline unsigned
msg_spread(const struct msg *m)
{
	return m->flags >> MSG_SPREAD_SHIFT;
}

/* Before it is routed. */
static inline void
msg_set_spread(struct msg *m, unsigned spread)
{
	if (spread > MSG_SPREAD_TOP)
		spread = MSG_SPREAD_TOP;
	m->flags = (uint8_t)((m->flags & ((1 << MSG_SPREAD_SHIFT) - 1)) | spread << MSG_SPREAD_SHIFT);
}

static inline struct span
msg_exchange(const struct msg *m)
{
	return span_of(m->wire + 1, m->wire[0]);
}

static inline struct span
msg_key(const struct msg *m)
{
	const uint8_t *p = m->wire + 1 + m->wire[0];

	return span_of(p + 1, p[0]);
}

/* Properties as props_scan takes them: the header frame's payload behind class, weight and body size. */
static inline struct span
msg_props(const struct msg *m)
{
	const uint8_t *h = m->wire + m->names_len;

	return span_of(h + 7 + 12, m->meta_len - m->names_len - 8 - 12);
}

/* The message's first body bytes: everything when rest is NULL. */
static inline const uint8_t *
msg_body(const struct msg *m)
{
	return m->wire + m->meta_len + 7;
}

/* Appends n > 0 bytes to the chain of a message that is being put together; *last is NULL at first; `declared` is what
 * is still to come of body_size, these included. False: no memory, nothing was appended. Never allocates more than
 * twice what has come in. */
bool msg_try_append(struct msg *m, struct msg_piece **last, const uint8_t *p, size_t n, uint64_t declared) MUSTUSE;

/* A copy of m with other properties, as props_scan takes them; NULL: no memory. Times and flags are the caller's. */
struct msg *msg_try_with_props(const struct msg *m, struct span props) MUSTUSE;
/* A message with m's body, flags and priority: a body in wire is copied, a long one is shared. The caller fills the
 * meta_len bytes before it. NULL: no memory. */
struct msg *msg_try_like(struct msg *m, uint16_t names_len, uint32_t meta_len) MUSTUSE;

uint64_t msg_memory(const struct msg *m);	/* bytes it occupies */

#endif
