/* SPDX-License-Identifier: Apache-2.0
 * What loop.c, transport.c and transport_out.c share: the private half of a transport. */
#ifndef NET_TRANSPORT_PRIV_H
#define NET_TRANSPORT_PRIV_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "base/wheel.h"
#include "net/transport.h"

enum {
	STALL_MS = 30 * 1000,       /* output waits and the peer takes no byte: END_STALLED */
	FLUSH_TURN_BYTES = 1 << 20, /* what one transport may send in one turn */
	FLUSH_IOVS = 512,
	SEG_FIRST = 16, /* segs of a ring: the first size, the largest kept while idle */
	SEG_KEEP = 64,
	TAIL_KEEP = 512 /* a tail buffer this small stays when it is empty */
};

enum write_result { WRITE_ALL, WRITE_BLOCKED, WRITE_BOUND, WRITE_FAILED };

struct transport_io {
	struct event read, write; /* both level triggered and persistent */
	struct wheel_node timer;  /* armed while output waits, or while the rest is flushed */
	struct transport_tls *tls; /* owned; NULL: plain */
	uint8_t *tail;            /* owned: bytes that on_bytes left */
	size_t tail_len, tail_cap, tail_max;
	uint64_t waiting_since_ms; /* output could not be written since */
	uint64_t flush_seq;        /* the flush that saw it last */
	int broken;    /* errno of a failed write: what is in the socket is still read */
	bool can_read; /* the loop reported it */
	bool again;    /* the tail is to be shown again */
	bool blocked;  /* the socket takes nothing: waits for `write` */
	bool reads, writes, watched; /* registered: read, write, or (not read) for hang-up only */
	bool ended; /* on_end was called, or the peer's end was seen while flushing */
	bool shut;  /* flush_then_close: all is sent and said so to the peer */
};

/* loop.c calls these. */
void transport_read(struct transport *t, size_t quota);
void transport_flush(struct transport *t);
void transport_hangup(struct transport *t);
void transport_free(struct transport *t);

/* Between transport.c and transport_out.c */
void transport_end(struct transport *t, enum transport_end why, int err);
void transport_update_events(struct transport *t);
void transport_out_drop(struct transport *t); /* drops all output and what held it */
void transport_out_sent(struct transport *t, size_t n);	/* n bytes of the output are on their way */

/* transport_tls.c. recv: as of a plain socket, but bytes that stand for none give EAGAIN. */
ssize_t transport_tls_recv(struct transport *t, uint8_t *to, size_t quota);
enum write_result transport_tls_write(struct transport *t, int *err);
bool transport_tls_say_end(struct transport *t); /* false: it waits for the socket */
void transport_tls_drop(struct transport *t);	 /* what was encrypted and not sent */
void transport_tls_free(struct transport *t);
void transport_tls_loop_free(struct loop *l);

/* Puts t on the list of those that loop_read serves. */
static inline void
transport_mark_readable(struct transport *t)
{
	if (!t->is_readable && !t->is_closed) {
		t->is_readable = true;
		if (unlikely(t->is_stranger)) {
			TAILQ_INSERT_TAIL(&t->loop->strangers, t, readable_link);
			t->loop->stranger_count++;
		} else {
			TAILQ_INSERT_TAIL(&t->loop->readable, t, readable_link);
			t->loop->readable_count++;
		}
	}
}

static inline void
transport_unmark_readable(struct transport *t)
{
	if (!t->is_readable)
		return;
	t->is_readable = false;
	if (unlikely(t->is_stranger)) {
		TAILQ_REMOVE(&t->loop->strangers, t, readable_link);
		t->loop->stranger_count--;
	} else {
		TAILQ_REMOVE(&t->loop->readable, t, readable_link);
		t->loop->readable_count--;
	}
}

/* A write failed for good: nothing is sent any more, the end is seen by reading. */
static inline bool
transport_is_broken(const struct transport *t)
{
	return t->io->broken != 0 || t->io->ended;
}

#endif
