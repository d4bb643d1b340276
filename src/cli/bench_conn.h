/* SPDX-License-Identifier: Apache-2.0
 * A connection with one channel, for hermes bench.
 *
 * Opening, closing and bench_conn_call() wait for the broker; in between the event loop drives bench_conn_read() and
 * bench_conn_flush(), which never wait. Input is read where recv put it; a body is handed on piece by piece, so that of a
 * frame no more than its head is ever kept. Output gathers in one buffer; large bodies are referenced, not copied.
 *
 * Whatever goes wrong is said once, through bench_conn_fail(), and ends the run. */
#ifndef CLI_BENCH_CONN_H
#define CLI_BENCH_CONN_H

#include <amqp.h>
#include <amqp_framing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <time.h>

#include "base/attr.h"
#include "cli/bench_wire.h"
#include "cli/cli.h"
#include "cli/client_address.h"

struct ssl_st;

enum { BENCH_PIECES = 512, BENCH_CHANNEL = 1, BENCH_REPLY_MAX = 1024, BENCH_STAMP_SIZE = 16 };

/* Where all connections of a run go. */
struct bench_broker {
	struct cli *cli;               /* borrowed */
	struct client_address address; /* owned */
	struct ssl_st *tls;            /* owned: the first session, by which others are made; NULL: none yet */
	uint8_t *in;                   /* owned: what is read, by whichever connection */
	bool failed;                   /* and it was said why */
	bool connected;                /* at some time it was logged in to */
	uint64_t blocked;              /* times that it stopped publishers */
};

/* CLI_OK, or the exit status, and it was said why. */
int bench_broker_init(struct bench_broker *b, struct cli *c) MUSTUSE;
void bench_broker_fini(struct bench_broker *b);

struct bench_conn;

struct bench_conn_ops {
	/* any method that is not answered here; its arguments */
	void (*on_method)(struct bench_conn *c, uint32_t method, const uint8_t *args, size_t n);
	void (*on_header)(struct bench_conn *c, const uint8_t *properties, size_t n);
	/* a piece of the body, at c->body_at; the first one has the first BENCH_STAMP_SIZE bytes, if the frame has */
	void (*on_body)(struct bench_conn *c, const uint8_t *p, size_t n);
	void (*on_content)(struct bench_conn *c); /* header and body are complete */
};

struct bench_conn {
	struct bench_broker *broker;      /* borrowed, outlives all */
	const struct bench_conn_ops *ops; /* NULL: nothing but answers is due */
	void *owner;                      /* borrowed, for ops */
	int fd;
	struct ssl_st *tls; /* owned; NULL: plain */
	bool dead;          /* only bench_conn_close() is left */
	bool leaving; /* bench_conn_close() is under way: what comes is of no interest */
	bool closing; /* and has told the broker */
	bool hung_up; /* the broker has sent all that it ever will */
	bool blocked;                    /* the broker takes no messages */
	bool readable, writable, queued; /* for the event loop */
	bool wrote;                      /* since the last tick */
	uint32_t frame_max;
	uint16_t heartbeat_s;
	int64_t last_read, last_write; /* ns */

	uint8_t *out; /* owned */
	size_t out_room, out_n;
	struct iovec piece[BENCH_PIECES];
	unsigned piece_first, piece_n;
	size_t pending; /* bytes gathered and not sent */

	uint8_t *tail; /* owned: the head of a frame that is not complete */
	size_t tail_n, tail_room;
	bool discards; /* bodies are not looked at: the kernel throws large ones away */
	size_t skip;   /* left of the body frame that comes in */
	bool want_end; /* its end comes next */
	bool in_body;
	uint32_t content; /* the method that content belongs to, or 0 */
	uint64_t body_size, body_at;

	uint32_t want; /* the method that bench_conn_call() waits for, or 0 */
	uint8_t reply[BENCH_REPLY_MAX];
	size_t reply_n;
};

/* Connects, logs in and opens the channel. out_room: bytes of output that it gathers. NULL: it failed. */
struct bench_conn *bench_conn_open(struct bench_broker *b, size_t out_room) MUSTUSE;
/* In order if that is still possible. */
void bench_conn_close(struct bench_conn **cp);

/* A method to send: begin, append its arguments, commit. What does not fit makes commit return false. */
struct wire_out bench_conn_begin(struct bench_conn *c, uint16_t channel, uint32_t method);
bool bench_conn_commit(struct bench_conn *c, struct wire_out *w);
/* Commits, sends and waits for the answer, whose arguments are then c->reply. */
bool bench_conn_call(struct bench_conn *c, struct wire_out *w, uint32_t answer) MUSTUSE;

/* Room for n bytes in one piece, or NULL; then how much of it was written. */
uint8_t *bench_conn_room(struct bench_conn *c, size_t n);
void bench_conn_wrote(struct bench_conn *c, size_t n);
/* n bytes that stay where they are until they are sent. The caller has seen to room for a piece. */
void bench_conn_refer(struct bench_conn *c, const uint8_t *p, size_t n);

/* True: all is sent. False: wait for `writable`, or the connection is dead. */
bool bench_conn_flush(struct bench_conn *c);
/* Reads once and handles it. *now becomes the time of the read. */
void bench_conn_read(struct bench_conn *c, int64_t *now);
/* Heartbeats; to be called about once a second. */
void bench_conn_tick(struct bench_conn *c, int64_t now);
/* Waits until something came, or could be sent, or timeout_ms are over: false. A signal ends it, too. */
bool bench_conn_wait(struct bench_conn *c, int timeout_ms);

/* c is dead, and the run has failed; only the first reason is told. c NULL: no connection is there. */
void bench_conn_fail(struct bench_broker *b, struct bench_conn *c, const char *fmt, ...) PRINTF(3, 4);

/* Monotonic, nanoseconds. */
static inline int64_t
bench_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
