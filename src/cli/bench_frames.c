/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_frames.h"

#include <stdio.h>
#include <string.h>

enum { CLASS_CONNECTION = 10, CLASS_BASIC = 60, HEADER_MIN = 14 };

/* The reason is kept first: sending may read what comes over it. */
static void
on_close(struct bench_conn *c, uint16_t channel, uint32_t answer, const uint8_t *args, size_t n)
{
	struct wire_in r = { .p = args, .n = n };
	unsigned code = wire_get16(&r);
	struct span text = wire_get_short(&r);
	char why[UINT8_MAX + 1];
	struct wire_out w = bench_conn_begin(c, channel, answer);

	(void)snprintf(why, sizeof why, "%.*s", SPAN_FMT(text));
	(void)bench_conn_commit(c, &w);
	(void)bench_conn_flush(c);
	if (!c->closing)
		bench_conn_fail(c->broker, c, "the broker ended it: %u %s", code, why);
}

static void
set_blocked(struct bench_conn *c, bool blocked, struct span why)
{
	c->blocked = blocked;
	if (blocked && c->broker->blocked++ == 0)
		(void)cli_fail(c->broker->cli, "the broker takes no messages for now%s%.*s",
		    why.n > 0 ? ": " : "", SPAN_FMT(why));
}

static void
on_flow(struct bench_conn *c, const uint8_t *args, size_t n)
{
	struct wire_out w;

	if (n < 1)
		return;
	set_blocked(c, (args[0] & 1) == 0, SPAN_LIT("channel.flow"));
	w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_CHANNEL_FLOW_OK_METHOD);
	wire_put8(&w, args[0]);
	(void)bench_conn_commit(c, &w);
	(void)bench_conn_flush(c);
}

/* What belongs to the connection itself. False: it is for the owner. */
static bool
on_own_method(struct bench_conn *c, uint32_t method, const uint8_t *args, size_t n)
{
	struct wire_in r = { .p = args, .n = n };

	switch (method) {
	case AMQP_CONNECTION_CLOSE_METHOD:
		on_close(c, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, args, n);
		return true;
	case AMQP_CHANNEL_CLOSE_METHOD:
		on_close(c, BENCH_CHANNEL, AMQP_CHANNEL_CLOSE_OK_METHOD, args, n);
		return true;
	case AMQP_CONNECTION_BLOCKED_METHOD: set_blocked(c, true, wire_get_short(&r)); return true;
	case AMQP_CONNECTION_UNBLOCKED_METHOD: c->blocked = false; return true;
	case AMQP_CHANNEL_FLOW_METHOD: on_flow(c, args, n); return true;
	default: return false;
	}
}

static void
on_method(struct bench_conn *c, uint16_t channel, const uint8_t *p, size_t n)
{
	uint32_t method = n >= 4 ? get_be32(p) : 0;

	if (n < 4 || channel != (method >> 16 == CLASS_CONNECTION ? 0 : BENCH_CHANNEL) ||
	    (c->content != 0 && channel != 0)) {
		bench_conn_fail(c->broker, c,
		    "what answers breaks the protocol: method %u.%u on channel %u", method >> 16,
		    method & 0xffff, channel);
		return;
	}
	p += 4;
	n -= 4;
	if (method == AMQP_BASIC_DELIVER_METHOD || method == AMQP_BASIC_RETURN_METHOD)
		c->content = method;
	if (method == c->want) {
		c->reply_n = n < BENCH_REPLY_MAX ? n : BENCH_REPLY_MAX;
		memcpy(c->reply, p, c->reply_n);
		c->want = 0;
	} else if (!on_own_method(c, method, p, n)) {
		if (c->ops != NULL)
			c->ops->on_method(c, method, p, n);
		else if (!c->leaving)
			bench_conn_fail(c->broker, c,
			    "what answers breaks the protocol: method %u.%u was not due",
			    method >> 16, method & 0xffff);
	}
}

static void
content_done(struct bench_conn *c)
{
	c->content = 0;
	c->in_body = false;
	if (c->ops != NULL && c->ops->on_content != NULL)
		c->ops->on_content(c);
}

static void
on_header(struct bench_conn *c, uint16_t channel, const uint8_t *p, size_t n)
{
	if (channel != BENCH_CHANNEL || c->content == 0 || c->in_body || n < HEADER_MIN ||
	    get_be16(p) != CLASS_BASIC) {
		bench_conn_fail(c->broker, c,
		    "what answers breaks the protocol: a header that is broken or was not due");
		return;
	}
	c->body_size = get_be64(p + 4);
	c->body_at = 0;
	c->in_body = true;
	if (c->ops != NULL && c->ops->on_header != NULL)
		c->ops->on_header(c, p + 12, n - 12);
	if (c->body_size == 0)
		content_done(c);
}

/* What is here of the body frame that comes in. False: more has to come, or it is broken. */
static bool
take_body(struct bench_conn *c, const uint8_t **p, const uint8_t *end)
{
	size_t n = (size_t)(end - *p) < c->skip ? (size_t)(end - *p) : c->skip;

	if (n > 0) {
		if (c->ops != NULL && c->ops->on_body != NULL)
			c->ops->on_body(c, *p, n);
		*p += n;
		c->skip -= n;
		c->body_at += n;
	}
	if (c->skip > 0 || *p == end)
		return false;
	if (*(*p)++ != AMQP_FRAME_END) {
		bench_conn_fail(
		    c->broker, c, "what answers breaks the protocol: a frame without its end");
		return false;
	}
	c->want_end = false;
	if (c->body_at == c->body_size)
		content_done(c);
	return true;
}

static bool
begin_body(struct bench_conn *c, uint16_t channel, size_t size)
{
	if (channel != BENCH_CHANNEL || !c->in_body || size > c->body_size - c->body_at) {
		bench_conn_fail(c->broker, c,
		    "what answers breaks the protocol: a body that is larger than its header "
		    "says or was not due");
		return false;
	}
	c->skip = size;
	c->want_end = true;
	return true;
}

static void
take_frame(struct bench_conn *c, const uint8_t *p, size_t size)
{
	if (p[WIRE_HEAD + size] != AMQP_FRAME_END)
		bench_conn_fail(
		    c->broker, c, "what answers breaks the protocol: a frame without its end");
	else if (p[0] == AMQP_FRAME_METHOD)
		on_method(c, get_be16(p + 1), p + WIRE_HEAD, size);
	else if (p[0] == AMQP_FRAME_HEADER)
		on_header(c, get_be16(p + 1), p + WIRE_HEAD, size);
	else if (p[0] != AMQP_FRAME_HEARTBEAT)
		bench_conn_fail(c->broker, c,
		    "what answers does not speak AMQP 0-9-1: a frame of type %u", p[0]);
}

/* How much of a frame has to be here before it is looked at. Of a body that is the stamp. */
static size_t
needed(const uint8_t *p, size_t size)
{
	if (p[0] != AMQP_FRAME_BODY)
		return size + WIRE_OVERHEAD;
	return WIRE_HEAD + (size < BENCH_STAMP_SIZE ? size : BENCH_STAMP_SIZE);
}

size_t
bench_frames_take(struct bench_conn *c, const uint8_t *p, size_t n)
{
	const uint8_t *start = p, *end = p + n;

	while (!c->dead) {
		size_t size;

		if (c->want_end && !take_body(c, &p, end))
			break;
		if (end - p < WIRE_HEAD)
			break;
		size = get_be32(p + 3);
		if (size > c->frame_max - WIRE_OVERHEAD) {
			bench_conn_fail(c->broker, c,
			    "what answers does not speak AMQP 0-9-1: a frame of %zu bytes", size);
			break;
		}
		if ((size_t)(end - p) < needed(p, size))
			break;
		if (p[0] == AMQP_FRAME_BODY) {
			if (!begin_body(c, get_be16(p + 1), size))
				break;
			p += WIRE_HEAD;
		} else {
			take_frame(c, p, size);
			p += size + WIRE_OVERHEAD;
		}
	}
	return (size_t)(p - start);
}
