/* SPDX-License-Identifier: Apache-2.0
 * Bytes in, bytes out, for one accepted socket: the seam behind which TLS and more threads fit.
 *
 * In: loop_read() receives into one buffer that all share, behind the bytes that the owner left over last time,
 * and shows them to on_bytes(), which takes whole frames and returns how many bytes it took. What is left is kept
 * (at most `tail_max` bytes: more is the owner's mistake).
 * Out: small things are written into 64 KiB chunks (transport_room, transport_wrote), large ones referenced
 * (transport_write_ref); one writev a turn sends them.
 *
 * Nothing here calls the owner from within a call of the owner: on_bytes, on_room and on_end come from the
 * loop only. After transport_close() no callback comes; the struct lives until loop_reap().
 */
#ifndef NET_TRANSPORT_H
#define NET_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "net/loop.h"

struct tls_info;
struct tls_session;

enum { CHUNK_SIZE = 64 << 10 };

struct chunk {
	struct chunk *next;
	uint32_t refs, used;
	uint8_t d[CHUNK_SIZE];
};

/* A piece of output: bytes of a chunk, or of something the owner counts. */
struct seg {
	uint8_t *p;
	uint32_t len, kind; /* SEG_CHUNK or SEG_OWNED */
	void *owner;
};
enum { SEG_CHUNK, SEG_OWNED };

/* Reasons for not reading; a transport is read exactly while the set is empty. */
enum transport_pause {
	PAUSE_OUTPUT = 1 << 0, /* its own output is over the hard bound */
	PAUSE_PARKED = 1 << 1, /* parked channels hold all the input they may */
	PAUSE_LOGIN = 1 << 3,  /* its password is being looked at */
	PAUSE_CLOSING = 1 << 2 /* nothing more is wanted from this peer */
};

enum transport_end { END_HANGUP, END_RESET, END_STALLED, END_ERROR };

struct transport_ops {
	/* n bytes at p (writable, gone after the call): returns how many were taken. May close the transport. */
	size_t (*on_bytes)(void *owner, uint8_t *p, size_t n);
	/* output that was at or over `output_low` at some time fell under output_low */
	void (*on_room)(void *owner);
	/* the peer is gone (also while reading is paused), or took no byte for 30 s although output waited;
	 * err is an errno or 0. The owner still has to call transport_close(). */
	void (*on_end)(void *owner, enum transport_end why, int err);
	/* a piece given to transport_write_ref is no longer needed */
	void (*unref)(void *piece);
};

struct transport {
	struct loop *loop; /* borrowed, outlives every transport */
	const struct transport_ops *ops;
	void *owner; /* borrowed: the connection, which closes us before it goes */
	int fd;
	uint32_t paused; /* set of PAUSE_* */
	bool is_readable, is_dirty, is_closed, was_high, flush_then_close;
	bool is_stranger; /* transport_set_stranger */
	/* output; only the inline functions below and transport.c touch these */
	struct chunk *cur;
	struct seg *seg; /* ring, a power of two */
	uint32_t seg_head, seg_tail, seg_cap;
	size_t pending;    /* bytes that wait */
	size_t output_low; /* see on_room */
	uint64_t last_read_ms,
	    last_write_ms; /* last time that bytes came in, went out: for heartbeats */
	uint64_t bytes_in, bytes_out, reads, writes; /* reads and writes: of the socket, that moved something */
	TAILQ_ENTRY(transport) readable_link, dirty_link, closed_link;
	struct transport_io *io; /* transport.c: events, tail */
};

/* Takes over fd (non-blocking). tail_max: largest number of bytes that on_bytes may leave. */
struct transport *transport_new(struct loop *l, int fd, const struct transport_ops *ops,
    void *owner, size_t tail_max, size_t output_low);
/* From here on its bytes go through the session, whose handshake is done; it is the transport's. */
void transport_set_tls(struct transport *t, struct tls_session *s);
const struct tls_info *transport_tls_info(const struct transport *t); /* NULL: plain. Valid until it is freed */
const char *transport_tls_why(const struct transport *t); /* why TLS has failed; "": it has not */
void transport_pause(struct transport *t, uint32_t reasons);
void transport_resume(
    struct transport *t, uint32_t reasons); /* bytes kept as tail are shown again */
/* Shows the kept tail to on_bytes again in the next turn, although nothing came in. */
void transport_again(struct transport *t);

/* A stranger is read after all others, whatever it sends; they wait for nothing that strangers ask for. For peers that have
 * not said who they are, or whose requests are dear. At first nobody is one. */
void transport_set_stranger(struct transport *t, bool is_stranger);

/* Closes now: output that waits is dropped. Safe to call twice. */
void transport_close(struct transport *t);
/* Reads nothing more, sends what waits (for at most ms milliseconds), then closes; on_end is not called. */
void transport_close_after_flush(struct transport *t, uint64_t ms);

/* Room for n bytes (n <= CHUNK_SIZE) at the end of the output, to be followed by transport_wrote(). Chunks are
 * borrowed from the loop; memory for them is ours, so this aborts when there is none. */
uint8_t *transport_room_slow(struct transport *t, size_t n);
void transport_wrote_slow(struct transport *t, size_t n);

static inline uint8_t *
transport_room(struct transport *t, size_t n)
{
	struct chunk *k = t->cur;

	if (likely(k != NULL && k->used + n <= CHUNK_SIZE))
		return k->d + k->used;
	return transport_room_slow(t, n);
}

static inline void
transport_mark_dirty(struct transport *t)
{
	if (!t->is_dirty && !t->is_closed) {
		t->is_dirty = true;
		TAILQ_INSERT_TAIL(&t->loop->dirty, t, dirty_link);
	}
}

static inline void
transport_wrote(struct transport *t, size_t n)
{
	struct chunk *k = t->cur;

	if (likely(t->seg_tail != t->seg_head)) {
		struct seg *s = &t->seg[(t->seg_tail - 1) & (t->seg_cap - 1)];

		if (likely(s->owner == k && s->p + s->len == k->d + k->used)) {
			s->len += (uint32_t)n;
			k->used += (uint32_t)n;
			t->pending += n;
			transport_mark_dirty(t);
			return;
		}
	}
	transport_wrote_slow(t, n);
}

void transport_write(struct transport *t, const void *p, size_t n); /* copies, any n */
/* References n bytes at p; `piece` is given to ops->unref when they are sent or dropped. The caller has
 * taken the reference. */
void transport_write_ref(struct transport *t, const uint8_t *p, size_t n, void *piece);

/* Peer and local address as text ("127.0.0.1:5672", "[::1]:5672"), and whether the peer is on loopback
 * (IPv4-mapped addresses too). */
struct transport_addr {
	char host[64];
	uint16_t port;
	bool loopback;
};
void transport_peer(
    const struct transport *t, struct transport_addr *peer, struct transport_addr *local);
void transport_addr_set(const struct sockaddr_storage *ss, struct transport_addr *a);
/* The same for a socket that is not a transport's; both may be NULL. */
void transport_addr_of(int fd, struct transport_addr *peer, struct transport_addr *local);

#endif
