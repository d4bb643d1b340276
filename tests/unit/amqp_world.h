/* SPDX-License-Identifier: Apache-2.0
 * A broker and an AMQP endpoint without ports or a node around them, and a scripted peer on the other end of a socket
 * pair. Time is the test's: it stands still until world_pass(). */
#ifndef TESTS_AMQP_WORLD_H
#define TESTS_AMQP_WORLD_H

#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/amqp.h"
#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/connection.h"
#include "amqp/frame.h"
#include "amqp/method.h"
#include "amqp/park.h"
#include "base/config.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "net/gate.h"
#include "net/loop.h"

struct world {
	struct config cfg;
	struct loop *l;
	struct broker *b;
	struct amqp *a;
};

struct peer {
	struct world *w;
	struct connection *c; /* only while it is not closed */
	int fd;
	uint8_t in[64 << 10]; /* what came and was not looked at yet */
	size_t n;
	bool ended;
};

/* What comes back: one frame. type 0: none. */
struct seen {
	uint8_t type;
	uint16_t channel;
	uint32_t id;                        /* of a method */
	uint16_t code, class_id, method_id; /* of connection.close and channel.close */
	char text[256];
};

static inline void
world_init(struct world *w)
{
	memset(w, 0, sizeof *w);
	config_init(&w->cfg);
	config_complete(&w->cfg);
	w->l = loop_new();
	w->l->now_ms = 1000000;
	wheel_free(&w->l->wheel);
	w->l->wheel = wheel_new(w->l->now_ms);
	w->b = broker_new(&w->cfg, w->l->wheel, w->l->now_ms);
	if (vhost_find(w->b, SPAN_LIT("/")) == NULL)
		(void)vhost_add(w->b, "/");
	w->a = amqp_new(w->l, w->b, &w->cfg, "0.0.0");
}

/* One turn as the node has it, but for waiting. */
static inline void
world_turn(struct world *w)
{
	(void)event_base_loop(w->l->base, EVLOOP_NONBLOCK | EVLOOP_ONCE);
	w->b->now_ms = w->l->now_ms;
	(void)wheel_run(w->l->wheel, w->l->now_ms, 10000);
	loop_read(w->l);
	(void)broker_run(w->b);
	(void)amqp_run(w->a);
	loop_flush(w->l);
	amqp_reap(w->a);
	broker_reap(w->b);
	loop_reap(w->l);
}

static inline void
world_turns(struct world *w, unsigned n)
{
	while (n-- > 0)
		world_turn(w);
}

static inline void
world_pass(struct world *w, uint64_t ms)
{
	w->l->now_ms += ms;
	world_turns(w, 2);
}

static inline void
world_fini(struct world *w)
{
	amqp_free(&w->a);
	w->l->now_ms += CONN_LINGER_MS; /* transports that still flush end with it */
	(void)wheel_run(w->l->wheel, w->l->now_ms, 10000);
	loop_reap(w->l);
	broker_free(&w->b);
	loop_free(&w->l);
	config_fini(&w->cfg);
}

static inline void
peer_init(struct peer *p, struct world *w)
{
	const struct transport_addr local = { .host = "local", .loopback = true };
	int fd[2];

	memset(p, 0, sizeof *p);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) < 0)
		abort();
	p->w = w;
	p->fd = fd[1];
	amqp_arrive(w->a, &(struct arrival){ .fd = fd[0], .peer = local, .local = local, .since_ms = w->l->now_ms }, NULL);
	p->c = LIST_FIRST(&w->a->connections);
}

static inline void
peer_fini(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	world_turns(p->w, 3);
}

static inline void
peer_read(struct peer *p)
{
	ssize_t n;

	while (p->n < sizeof p->in && (n = read(p->fd, p->in + p->n, sizeof p->in - p->n)) >= 0) {
		if (n == 0) {
			p->ended = true;
			return;
		}
		p->n += (size_t)n;
	}
}

static inline void
peer_send(struct peer *p, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	while (n > 0) {
		ssize_t wrote = send(p->fd, at, n, MSG_NOSIGNAL);

		if (wrote < 0)
			break;
		at += wrote;
		n -= (size_t)wrote;
		world_turn(p->w);
	}
	world_turns(p->w, 3);
	peer_read(p);
}

/* A frame into out; returns its length. */
static inline size_t
put_frame(uint8_t *out, uint8_t type, uint16_t channel, const void *payload, size_t n)
{
	out[0] = type;
	put_be16(out + 1, channel);
	put_be32(out + 3, (uint32_t)n);
	if (n > 0)
		memcpy(out + FRAME_HEAD, payload, n);
	out[FRAME_HEAD + n] = FRAME_END;
	return FRAME_OVERHEAD + n;
}

static inline size_t
put_method(uint8_t *out, uint16_t channel, uint32_t id, const void *args, size_t n)
{
	uint8_t payload[4096];

	put_be32(payload, id);
	if (n > 0)
		memcpy(payload + 4, args, n);
	return put_frame(out, FRAME_METHOD, channel, payload, n + 4);
}

static inline void
peer_method(struct peer *p, uint16_t channel, uint32_t id, const void *args, size_t n)
{
	uint8_t out[4200];

	peer_send(p, out, put_method(out, channel, id, args, n));
}

static inline void
peer_frame(struct peer *p, uint8_t type, uint16_t channel, const void *payload, size_t n)
{
	uint8_t out[4200];

	peer_send(p, out, put_frame(out, type, channel, payload, n));
}

/* The next frame that came; type 0 if none. */
static inline struct seen
peer_next(struct peer *p)
{
	struct seen s = { 0 };
	uint32_t size;
	const uint8_t *a = p->in + FRAME_HEAD;

	if (p->n < FRAME_OVERHEAD || p->n < FRAME_OVERHEAD + (size_t)get_be32(p->in + 3))
		return s;
	size = get_be32(p->in + 3);
	s.type = p->in[0];
	s.channel = get_be16(p->in + 1);
	if (s.type == FRAME_METHOD) {
		s.id = get_be32(a);
		if (s.id == AMQP_CONNECTION_CLOSE_METHOD || s.id == AMQP_CHANNEL_CLOSE_METHOD) {
			s.code = get_be16(a + 4);
			memcpy(s.text, a + 7, a[6]);
			s.class_id = get_be16(a + 7 + a[6]);
			s.method_id = get_be16(a + 9 + a[6]);
		}
	}
	p->n -= FRAME_OVERHEAD + (size_t)size;
	memmove(p->in, p->in + FRAME_OVERHEAD + size, p->n);
	return s;
}

static inline void
peer_forget(struct peer *p)
{
	while (peer_next(p).type != 0)
		;
}

/* Arguments of a client's part of the handshake. */
#define PEER_START_OK "\0\0\0\0\5PLAIN\0\0\0\14\0guest\0guest\5en_US"
#define PEER_TUNE_OK "\7\377\0\2\0\0\0\0"
#define PEER_OPEN "\1/\0\0"

/* Plays the handshake up to the state. CONN_CLOSING: by an error that asks for it. */
static inline void
peer_reach(struct peer *p, enum connection_state state)
{
	if (state == CONN_HEADER)
		return;
	peer_send(p, "AMQP\0\0\11\1", 8);
	if (state >= CONN_TUNING)
		peer_method(
		    p, 0, AMQP_CONNECTION_START_OK_METHOD, PEER_START_OK, sizeof PEER_START_OK - 1);
	if (state >= CONN_OPENING)
		peer_method(
		    p, 0, AMQP_CONNECTION_TUNE_OK_METHOD, PEER_TUNE_OK, sizeof PEER_TUNE_OK - 1);
	if (state >= CONN_OPEN)
		peer_method(p, 0, AMQP_CONNECTION_OPEN_METHOD, PEER_OPEN, sizeof PEER_OPEN - 1);
	if (state >= CONN_CLOSING)
		peer_frame(p, FRAME_BODY, 0, NULL, 0);
	peer_forget(p);
}

static inline void
peer_channel(struct peer *p, uint16_t channel)
{
	peer_method(p, channel, AMQP_CHANNEL_OPEN_METHOD, "", 1);
	peer_forget(p);
}

#endif
