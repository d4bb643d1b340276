/* SPDX-License-Identifier: Apache-2.0
 * Messages: see the header. A message is one item of base/slab; a long body adds pieces, each an item of its own,
 * so that what a peer declares is never asked for before it has come in. */
#include "broker/msg.h"

#include <string.h>

#include "base/slab.h"

enum { PIECE_MAX = 256 << 10 };

/* Stands in `rest` of a message whose first piece could not be had, so that msg_destroy knows how long wire is. */
static struct msg_piece no_piece;

/* The kind of item that slab_try_alloc makes of n bytes: pieces have no room to keep it. */
static inline uint32_t
home_of(size_t n)
{
	return n > SLAB_ITEM_MAX ? SLAB_HEAP : slab_class(n);
}

static inline size_t
item_size(const struct msg *m)
{
	size_t shared = m->flags & MSG_SHARES ? sizeof(struct msg *) : 0;

	return sizeof *m + msg_wire_size(m->meta_len, m->rest == NULL ? m->body_size : 0) + shared;
}

struct msg *
msg_try_new(size_t wire_size)
{
	uint32_t home;
	struct msg *m = slab_try_alloc(sizeof *m + wire_size, &home);

	if (unlikely(m == NULL))
		return NULL;
	m->refs = 1;
	m->home = home;
	m->flags = 0;
	m->prio = 0;
	m->rest = NULL;
	/* Until the caller has filled it, all of wire counts as meta: so it may be destroyed at any time. */
	m->names_len = 0;
	m->meta_len = (uint32_t)wire_size;
	m->body_size = 0;
	m->arrived_ms = 0;
	return m;
}

/* Of one that shares: whose pieces they are. The pointer stands behind the meta bytes. */
static struct msg *
shared_with(const struct msg *m)
{
	struct msg *owner;

	memcpy(&owner, m->wire + m->meta_len, sizeof owner);
	return owner;
}

/* One whose body does not stand in wire. */
static void
destroy_long(struct msg *m)
{
	struct msg_piece *p = m->rest, *next;
	struct msg *owner;
	size_t n = item_size(m);

	if (m->flags & MSG_SHARES) {
		owner = shared_with(m);
		msg_unref(&owner);
		p = NULL;
	}
	for (; p != NULL; p = next) {
		next = p->next;
		if (p != &no_piece)
			slab_free(p, home_of(sizeof *p + p->cap), sizeof *p + p->cap);
	}
	slab_free(m, m->home, n);
}

void
msg_destroy(struct msg *m)
{
	if (likely(m->rest == NULL))
		slab_free(m, m->home, sizeof *m + msg_wire_size(m->meta_len, m->body_size));
	else
		destroy_long(m);
}

/* Room for a piece that takes n bytes now and more later: as much again as came in until now, if so much is to come.
 * `came` is exact when body_size was set before; else the last piece stands for all. */
static uint32_t
piece_room(const struct msg *m, const struct msg_piece *last, size_t n, uint64_t declared)
{
	uint64_t came = m->body_size > declared ? m->body_size - declared : 0, room;

	if (came == 0 && last != NULL)
		came = last->cap;
	room = came < PIECE_MAX ? came : PIECE_MAX;
	if (room < n)
		room = n;
	if (room > declared && declared >= n)
		room = declared;
	return (uint32_t)room;
}

bool
msg_try_append(
    struct msg *m, struct msg_piece **last, const uint8_t *p, size_t n, uint64_t declared)
{
	struct msg_piece *piece = *last;
	size_t now = 0, rest;
	uint32_t home, room;

	if (piece != NULL) {
		now = piece->cap - piece->n;
		if (now > n)
			now = n;
	}
	rest = n - now;
	if (rest > 0) {
		room = piece_room(m, piece, rest, declared > now ? declared - now : 0);
		piece = slab_try_alloc(sizeof *piece + room, &home);
		if (piece == NULL) {
			if (m->rest == NULL)
				m->rest = &no_piece;
			return false;
		}
		piece->next = NULL;
		piece->cap = room;
		piece->n = (uint32_t)rest;
		memcpy(piece->d, p + now, rest);
	}
	if (now > 0) {
		memcpy((*last)->d + (*last)->n, p, now);
		(*last)->n += (uint32_t)now;
	}
	if (rest > 0) {
		if (*last != NULL)
			(*last)->next = piece;
		else
			m->rest = piece;
		*last = piece;
	}
	return true;
}

static bool
copy_rest(const struct msg *m, struct msg *to)
{
	uint64_t left = m->body_size;
	struct msg_piece *last = NULL;

	for (const struct msg_piece *p = m->rest; p != NULL; p = p->next) {
		if (!msg_try_append(to, &last, p->d, p->n, left))
			return false;
		left -= p->n;
	}
	return true;
}

struct msg *
msg_try_with_props(const struct msg *m, struct span props)
{
	enum { FRAME_HEAD = 7, CONTENT_HEAD = 12, FRAME_END = 0xCE };
	uint32_t header = (uint32_t)(FRAME_HEAD + CONTENT_HEAD + props.n + 1);
	uint32_t meta = m->names_len + header;
	size_t body = m->rest == NULL ? (size_t)m->body_size : 0;
	struct msg *to = msg_try_new(msg_wire_size(meta, body));
	uint8_t *h;

	if (to == NULL)
		return NULL;
	memcpy(to->wire, m->wire, m->names_len + (size_t)FRAME_HEAD + CONTENT_HEAD);
	h = to->wire + m->names_len;
	put_be32(h + 3, (uint32_t)(CONTENT_HEAD + props.n));
	memcpy(h + FRAME_HEAD + CONTENT_HEAD, props.p, props.n);
	h[header - 1] = FRAME_END;
	if (body > 0)
		memcpy(h + header, m->wire + m->meta_len, FRAME_HEAD + body + 1);
	to->names_len = m->names_len;
	to->meta_len = meta;
	to->body_size = m->body_size;
	if (m->rest != NULL && !copy_rest(m, to))
		msg_unref(&to);
	return to;
}

struct msg *
msg_try_like(struct msg *m, uint16_t names_len, uint32_t meta_len)
{
	struct msg *owner = m->flags & MSG_SHARES ? shared_with(m) : m, *to;
	bool shares = m->rest != NULL;

	to = msg_try_new(shares ? meta_len + sizeof owner : msg_wire_size(meta_len, m->body_size));
	if (to == NULL)
		return NULL;
	if (shares)
		memcpy(to->wire + meta_len, &owner, sizeof owner);
	else if (m->body_size > 0)
		memcpy(to->wire + meta_len, m->wire + m->meta_len, msg_wire_size(0, m->body_size));
	to->names_len = names_len;
	to->meta_len = meta_len;
	to->body_size = m->body_size;
	to->flags = (m->flags & MSG_PERSISTENT) | (shares ? MSG_SHARES : 0);
	to->prio = m->prio;
	if (shares)
		to->rest = msg_ref(owner)->rest;
	return to;
}

uint64_t
msg_memory(const struct msg *m)
{
	uint64_t n = item_size(m);

	if (m->flags & MSG_SHARES)
		return n;
	for (const struct msg_piece *p = m->rest; p != NULL; p = p->next)
		n += sizeof *p + p->cap;
	return n;
}
