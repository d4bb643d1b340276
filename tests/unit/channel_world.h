/* SPDX-License-Identifier: Apache-2.0
 * On top of amqp_world.h: contents out to the endpoint and back from it, of any size. */
#ifndef TESTS_CHANNEL_WORLD_H
#define TESTS_CHANNEL_WORLD_H

#include <check.h>

#include "base/mem.h"
#include "base/slab.h"
#include "broker/queue.h"
#include "tests/unit/amqp_world.h"

/* What came and was not looked at yet; grows. */
struct inbox {
	uint8_t *p;
	size_t n, at, cap;
};

struct frame_seen {
	uint8_t type; /* 0: none */
	uint16_t channel;
	uint32_t id; /* of a method */
	struct span payload;
};

/* A content as a client sees it. */
struct content_seen {
	uint32_t id;
	uint16_t channel;
	struct span args;   /* of the method, behind its id */
	struct span header; /* payload */
	uint64_t size;
	uint8_t *body; /* owned */
	unsigned frames;
	size_t frame_max; /* longest body frame's payload */
};

static inline void
inbox_fini(struct inbox *in)
{
	free(in->p);
	*in = (struct inbox){ 0 };
}

/* Turns the world until nothing more comes. */
static inline void
inbox_fill(struct inbox *in, struct peer *p)
{
	unsigned idle = 0;

	if (p->n > 0 && in->cap < in->n + p->n)
		in->p = xrealloc(in->p, in->cap = in->n + p->n);
	if (p->n > 0)
		memcpy(in->p + in->n, p->in, p->n);
	in->n += p->n;
	p->n = 0;
	while (idle < 4) {
		ssize_t got;

		world_turn(p->w);
		if (in->cap - in->n < 256 << 10)
			in->p = xrealloc(in->p, in->cap = in->cap * 2 + (512 << 10));
		got = read(p->fd, in->p + in->n, in->cap - in->n);
		if (got == 0)
			p->ended = true;
		if (got > 0)
			in->n += (size_t)got;
		idle = got > 0 ? 0 : idle + 1;
	}
}

static inline struct frame_seen
inbox_next(struct inbox *in)
{
	struct frame_seen f = { 0 };
	const uint8_t *p = in->p + in->at;
	uint32_t size;

	if (in->n - in->at < FRAME_OVERHEAD)
		return f;
	size = get_be32(p + 3);
	ck_assert_uint_ge(in->n - in->at, size + (size_t)FRAME_OVERHEAD);
	ck_assert_uint_eq(p[FRAME_HEAD + size], FRAME_END);
	f.type = p[0];
	f.channel = get_be16(p + 1);
	f.payload = span_of(p + FRAME_HEAD, size);
	if (f.type == FRAME_METHOD)
		f.id = get_be32(p + FRAME_HEAD);
	in->at += size + (size_t)FRAME_OVERHEAD;
	return f;
}

/* The next frame, which has to be this method. */
static inline struct frame_seen
inbox_method(struct inbox *in, uint32_t id)
{
	struct frame_seen f = inbox_next(in);

	ck_assert_msg(f.type == FRAME_METHOD && f.id == id,
	    "expected method %u.%u, got type %u method %u.%u", id >> 16, id & 0xffff, f.type,
	    f.id >> 16, f.id & 0xffff);
	return f;
}

static inline void
inbox_empty(struct inbox *in)
{
	struct frame_seen f = inbox_next(in);

	ck_assert_msg(f.type == 0, "unexpected frame: type %u method %u.%u", f.type, f.id >> 16,
	    f.id & 0xffff);
}

/* The next frames, which have to be a content behind this method, whole and in order. */
static inline struct content_seen
inbox_content(struct inbox *in, uint32_t id)
{
	struct frame_seen f = inbox_method(in, id);
	struct content_seen c = { .id = id, .channel = f.channel };
	uint64_t got = 0;

	c.args = span_of(f.payload.p + 4, f.payload.n - 4);
	f = inbox_next(in);
	ck_assert_uint_eq(f.type, FRAME_HEADER);
	ck_assert_uint_eq(f.channel, c.channel);
	c.header = f.payload;
	c.size = get_be64(f.payload.p + 4);
	c.body = xmalloc(c.size + 1);
	while (got < c.size) {
		f = inbox_next(in);
		ck_assert_uint_eq(f.type, FRAME_BODY);
		ck_assert_uint_eq(f.channel, c.channel);
		ck_assert_uint_gt(f.payload.n, 0);
		ck_assert_uint_le(f.payload.n, c.size - got);
		memcpy(c.body + got, f.payload.p, f.payload.n);
		got += f.payload.n;
		c.frames++;
		if (f.payload.n > c.frame_max)
			c.frame_max = f.payload.n;
	}
	return c;
}

/* --- out ---------------------------------------------------------------- */

static inline size_t
put_short(uint8_t *out, const char *s)
{
	size_t n = strlen(s);

	out[0] = (uint8_t)n;
	memcpy(out + 1, s, n);
	return n + 1;
}

static inline size_t
put_publish_method(
    uint8_t *out, uint16_t channel, const char *exchange, const char *key, uint8_t bits)
{
	uint8_t args[520];
	size_t n = 2;

	args[0] = args[1] = 0;
	n += put_short(args + n, exchange);
	n += put_short(args + n, key);
	args[n++] = bits;
	return put_method(out, channel, AMQP_BASIC_PUBLISH_METHOD, args, n);
}

/* props: from the flags word on. */
static inline size_t
put_header(uint8_t *out, uint16_t channel, uint64_t size, struct span props)
{
	uint8_t payload[4096];

	put_be16(payload, 60);
	put_be16(payload + 2, 0);
	put_be64(payload + 4, size);
	memcpy(payload + 12, props.p, props.n);
	return put_frame(out, FRAME_HEADER, channel, payload, 12 + props.n);
}

static const struct span no_props = { (const uint8_t *)"\0\0", 2 };

struct publish {
	const char *exchange, *key;
	uint8_t bits; /* 1 mandatory, 2 immediate */
	struct span props, body;
	size_t chunk; /* longest body frame; 0: one frame */
};

/* All frames of a publish into new memory; *n is their length. */
static inline uint8_t *
put_publish(uint16_t channel, const struct publish *p, size_t *n)
{
	size_t chunk = p->chunk > 0 ? p->chunk : p->body.n, at = 0, left = p->body.n;
	uint8_t *out = xmalloc(8192 + left + (chunk > 0 ? left / chunk + 1 : 0) * FRAME_OVERHEAD);

	at += put_publish_method(
	    out, channel, p->exchange != NULL ? p->exchange : "", p->key, p->bits);
	at += put_header(out + at, channel, left, p->props.n > 0 ? p->props : no_props);
	while (left > 0) {
		size_t now = left < chunk ? left : chunk;

		at += put_frame(out + at, FRAME_BODY, channel, p->body.p + p->body.n - left, now);
		left -= now;
	}
	*n = at;
	return out;
}

/* A connection that is open, of a client that wants to hear connection.blocked, with channels 1 and 2. */
static inline void
peer_open_to_hear(struct peer *p, struct world *w)
{
	static const char start_ok[] = "\0\0\0\47\14capabilitiesF\0\0\0\25\22connection.blockedt\1"
				       "\5PLAIN\0\0\0\14\0guest\0guest\5en_US";

	peer_init(p, w);
	peer_send(p, "AMQP\0\0\11\1", 8);
	peer_method(p, 0, AMQP_CONNECTION_START_OK_METHOD, start_ok, sizeof start_ok - 1);
	peer_method(p, 0, AMQP_CONNECTION_TUNE_OK_METHOD, PEER_TUNE_OK, sizeof PEER_TUNE_OK - 1);
	peer_method(p, 0, AMQP_CONNECTION_OPEN_METHOD, PEER_OPEN, sizeof PEER_OPEN - 1);
	peer_forget(p);
	ck_assert_int_eq(p->c->state, CONN_OPEN);
	ck_assert(p->c->can_blocked);
	peer_channel(p, 1);
	peer_channel(p, 2);
}

static inline void
peer_publish(struct peer *p, uint16_t channel, const struct publish *what)
{
	size_t n;
	uint8_t *out = put_publish(channel, what, &n);

	peer_send(p, out, n);
	free(out);
}

static inline void
peer_text(struct peer *p, uint16_t channel, const char *key, const char *body)
{
	struct publish what = { .key = key, .body = span_str(body) };

	peer_publish(p, channel, &what);
}

static inline void
peer_consume(struct peer *p, uint16_t channel, const char *queue, const char *tag, bool no_ack)
{
	uint8_t args[600] = { 0 };
	size_t n = 2;

	n += put_short(args + n, queue);
	n += put_short(args + n, tag);
	args[n++] = no_ack ? 2 : 0;
	memset(args + n, 0, 4);
	peer_method(p, channel, AMQP_BASIC_CONSUME_METHOD, args, n + 4);
}

static inline void
peer_settle(struct peer *p, uint16_t channel, uint32_t method, uint64_t tag, uint8_t bits)
{
	uint8_t args[9];

	put_be64(args, tag);
	args[8] = bits;
	peer_method(p, channel, method, args, sizeof args);
}

static inline void
peer_ack(struct peer *p, uint16_t channel, uint64_t tag)
{
	peer_settle(p, channel, AMQP_BASIC_ACK_METHOD, tag, 0);
}

/* --- broker ------------------------------------------------------------- */

static inline struct queue *
world_queue(struct world *w, const char *name)
{
	struct queue_spec spec = { .name = span_str(name) };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(vhost_find(w->b, SPAN_LIT("/")), &spec, NULL, &q));
	return q;
}

/* Everything that was held is back, when what is kept for the next ones is given up. */
static inline void
world_held_nothing(void)
{
	for (unsigned i = 0; i < 20; i++)
		slab_trim();
	for (int k = 0; k < MEM_KINDS; k++)
		ck_assert_msg(mem_held[k] == 0, "%s: %lu bytes left", mem_kind_name(k),
		    (unsigned long)mem_held[k]);
}

#endif
