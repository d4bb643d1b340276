/* SPDX-License-Identifier: Apache-2.0
 * The core thread's event loop: libevent under it, one timer wheel, and the lists of a turn (DESIGN: threads).
 * The turn itself stands in src/node.c:
 *
 *	loop_wait()   events are collected: readable and writable transports are put on lists
 *	loop_read()   each readable transport one recv, its frames handled; writable ones flushed
 *	              ... the floors above do what became due ...
 *	loop_flush()  each transport with output one writev
 *	loop_reap()   what was closed is freed
 */
#ifndef NET_LOOP_H
#define NET_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/turn_time.h"
#include "base/wheel.h"

struct event_base;
struct transport;
struct chunk;

TAILQ_HEAD(transport_list, transport);

enum { LOOP_PAUSES = 4 }; /* bits of enum transport_pause */

struct loop {
	struct event_base *base;        /* owned */
	struct wheel *wheel;            /* owned */
	uint64_t now_ms;                /* the node's clock, taken once after each wait */
	struct transport_list readable;  /* in the order in which they are served */
	struct transport_list strangers; /* the same of those that nobody has vouched for: after the others */
	struct transport_list dirty;    /* have output that no flush has seen yet */
	struct transport_list
	    closing;                  /* without an owner: the rest of their output is being sent */
	struct transport_list closed; /* freed by loop_reap */
	uint32_t readable_count, stranger_count; /* in the two lists */
	uint32_t share_us; /* how long one transport's input may be worked on before the others' turn */
	uint8_t *input;   /* one buffer for all: tail_room for a tail, then LOOP_READ_MAX */
	size_t tail_room; /* grows to the largest tail_max of a transport */
	struct chunk *spare_chunks; /* at most LOOP_SPARE_CHUNKS */
	uint32_t spare_count;
	uint64_t turns, recv_calls, writev_calls, bytes_in, bytes_out;
	struct turn_time turn_time;
	/* transports that are not read, by the number of the bit of PAUSE_*: so many now, so many times */
	struct {
		uint64_t now, times;
	} paused[LOOP_PAUSES];
	struct loop_events *events; /* owned; loop.c only */
	struct loop_tls *tls;	    /* owned; transport_tls.c only: NULL until there is one */
};

enum {
	LOOP_READ_MAX = 256 << 10, /* bytes of one recv: at most, at least */
	LOOP_READ_MIN = 16 << 10,
	LOOP_TURN_BYTES = 1 << 20,  /* of one turn, shared by those that are readable */
	LOOP_TURN_US = 2000,        /* the same of time: after so much no further one is read */
	LOOP_SHARE_US = 200,        /* of time for one, at least */
	LOOP_STRANGERS_US = 500,    /* of time for strangers, at least, however busy the others are */
	LOOP_FLUSH_MIN = 64,        /* written to in a turn whatever the time, beside those that get answers */
	LOOP_CLOCK_EACH = 16,       /* the clock is looked at after so many of them */
	LOOP_TAIL_ROOM = 160 << 10, /* a frame of the default size and a little */
	LOOP_SPARE_CHUNKS = 64,
	LOOP_TIMERS = 1024 /* timers fired a turn */
};

struct loop *loop_new(void);
void loop_free(struct loop **lp);

/* Waits for events until the wheel has work; `busy` means do not wait at all. Fires timers, sets now_ms. */
void loop_wait(struct loop *l, bool busy);
void loop_read(struct loop *l);
void loop_flush(struct loop *l); /* answers first; after LOOP_TURN_US the rest waits for the next turn */
void loop_reap(struct loop *l); /* the end of the turn */
/* Gives half of the spare chunks back; called about once a second. */
void loop_trim(struct loop *l);

/* For transport.c: a descriptor that is not read is watched for its end only. */
void loop_watch_hangup(struct loop *l, struct transport *t, int fd);
void loop_unwatch_hangup(struct loop *l, int fd);

/* Something else than a transport: fn is called from loop_wait() while fd is readable. */
struct loop_watch;
typedef void loop_watch_fn(void *arg);
struct loop_watch *loop_watch(struct loop *l, int fd, loop_watch_fn *fn, void *arg);
void loop_unwatch(struct loop_watch **wp); /* before the loop is freed */

static inline bool
loop_has_output(const struct loop *l)
{
	return !TAILQ_EMPTY(&l->dirty);
}

#endif
