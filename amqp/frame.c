/* SPDX-License-Identifier: Apache-2.0
 * The walk over frames: the hot loop of everything that comes in.
 *
 * Order of the checks, which decides what a peer hears that does several things wrong: size against what was negotiated,
 * type, frame end; channel number against type; state of the connection; channel open; kind of frame that is due;
 * arguments. Nothing is allocated before a frame has passed all of them. basic.publish, ack, nack and reject are
 * recognised by their number before anything is looked up. */
#include "amqp/frame.h"

#include <assert.h>
#include <stdio.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/connection.h"
#include "amqp/method.h"
#include "amqp/park.h"
#include "base/bound.h"
#include "base/clock.h"
#include "base/config.h"
#include "broker/broker.h"
#include "broker/drain.h"

enum {
	METHOD_HEAD = 4,  /* class and method in a method frame's payload */
	HEADER_HEAD = 12, /* class, weight and body size in a content header's */
	OCTETS_SHOWN = 32
};

#define METHOD_ID(c, m) ((uint32_t)(c) << 16 | (m))
enum {
	ID_PUBLISH = METHOD_ID(60, 40),
	ID_ACK = METHOD_ID(60, 80),
	ID_REJECT = METHOD_ID(60, 90),
	ID_NACK = METHOD_ID(60, 120),
	ID_SETTLE_SIZE = METHOD_HEAD + 9
};

static inline bool
known_type(uint8_t type)
{
	return type == FRAME_METHOD || type == FRAME_HEADER || type == FRAME_BODY ||
	       type == FRAME_HEARTBEAT;
}

/* --- refusals ------------------------------------------------------------------------------------- */

/* A payload as RabbitMQ's texts have it: <<"abc">> or <<1,2,3>>. Cut short; bodies and what may hold a secret are left
 * out, because the text goes to the log too. */
static const char *
octets_text(struct span s, bool secret)
{
	static char text[OCTETS_SHOWN * 4 + 16];
	size_t shown = s.n < OCTETS_SHOWN ? s.n : OCTETS_SHOWN, at;
	bool printable = true;

	if (s.n == 0)
		return "<<>>";
	if (secret)
		return "<<...>>";
	for (size_t i = 0; i < shown; i++)
		printable =
		    printable && s.p[i] >= ' ' && s.p[i] < 127 && s.p[i] != '"' && s.p[i] != '\\';
	if (printable) {
		snprintf(text, sizeof text, "<<\"%.*s\"%s>>", (int)shown, (const char *)s.p,
		    shown < s.n ? "..." : "");
		return text;
	}
	at = (size_t)snprintf(text, sizeof text, "<<");
	for (size_t i = 0; i < shown; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, i == 0 ? "%u" : ",%u", s.p[i]);
	snprintf(text + at, sizeof text - at, shown < s.n ? ",...>>" : ">>");
	return text;
}

/* n: bytes of the frame that are there. */
static const char *
frame_octets(const struct connection *c, const uint8_t *frame, size_t n)
{
	uint32_t size = get_be32(frame + 3);
	bool secret = frame[0] == FRAME_BODY ||
	              (frame[0] == FRAME_METHOD && get_be16(frame + 1) == 0) ||
	              c->state < CONN_OPENING;

	return octets_text(span_of(frame + FRAME_HEAD, n < size ? n : size), secret);
}

/* The stream cannot be trusted from here on: all of the input is taken and thrown away. */
static size_t
bad_frame(struct connection *c, const uint8_t *frame, size_t n, size_t payload, const char *why,
    uint32_t a, uint32_t b)
{
	char text[64];

	snprintf(text, sizeof text, why, a, b);
	connection_fail_deaf(c, error_make(E_FRAME_ERROR, "type %u, all octets = %s: %s", frame[0],
	                            frame_octets(c, frame, payload), text));
	return n;
}

static void
refuse_plain(struct connection *c, uint16_t channel, const struct error *e)
{
	connection_refuse(c, channel, e, 0, 0);
}

static void
refuse_method(struct connection *c, uint16_t channel, const struct error *e, uint32_t id)
{
	connection_refuse(c, channel, e, (uint16_t)(id >> 16), (uint16_t)id);
}

static void
refuse_short(struct connection *c, const uint8_t *frame, uint32_t size)
{
	refuse_plain(c, get_be16(frame + 1),
	    error_make(E_FRAME_ERROR, "type %u, all octets = %s: unknown_frame", frame[0],
	        frame_octets(c, frame, size)));
}

static void
refuse_channel_number(struct connection *c, const uint8_t *frame, uint32_t size)
{
	refuse_plain(c, get_be16(frame + 1),
	    error_make(E_UNEXPECTED_FRAME, "type %u, all octets = %s", frame[0],
	        frame_octets(c, frame, size)));
}

/* A frame of another kind than the content that began on the channel asks for. */
static void
refuse_order(struct connection *c, const struct channel *ch)
{
	switch (ch->content_state) {
	case CONTENT_NONE:
		refuse_plain(c, ch->id,
		    error_make(
		        E_UNEXPECTED_FRAME, "expected method frame, got non method frame instead"));
		break;
	case CONTENT_HEADER:
		refuse_method(c, ch->id,
		    error_make(E_UNEXPECTED_FRAME, "expected content header for class 60, got non "
		                                   "content header frame instead"),
		    ID_PUBLISH);
		break;
	case CONTENT_BODY:
		refuse_method(c, ch->id,
		    error_make(E_UNEXPECTED_FRAME,
		        "expected content body, got non content body frame instead"),
		    ID_PUBLISH);
		break;
	}
}

static void
refuse_undecodable(struct connection *c, uint16_t channel, uint32_t id, struct span raw)
{
	bool secret = channel == 0 || c->state < CONN_OPENING;

	refuse_method(c, channel,
	    error_make(E_FRAME_ERROR, "cannot decode %s", octets_text(raw, secret)), id);
}

/* --- methods -------------------------------------------------------------------------------------- */

static void
check_output(struct connection *c)
{
	connection_check_output(c, c->amqp->cfg->output, c->amqp->cfg->output_max);
}

/* One method whose place is right: form, decoding, handler. */
static void
call_method(struct connection *c, struct channel *ch, uint16_t channel, const struct method *m,
    struct span raw)
{
	struct method_call call = {
		.conn = c,
		.ch = ch,
		.channel_id = channel,
		.method = m,
		.raw = raw,
		.frame = span_of(raw.p - FRAME_HEAD - METHOD_HEAD,
		    raw.n + FRAME_OVERHEAD + METHOD_HEAD),
	};
	uint32_t id = METHOD_ID(m->class_id, m->method_id);
	const struct error *e;

	if (!method_check(m, raw)) {
		refuse_undecodable(c, channel, id, raw);
		return;
	}
	if (m != &methods[METHOD_BASIC_PUBLISH] && !method_texts_valid(m, raw)) {
		/* RabbitMQ names the method on channel 0 only */
		refuse_method(c, channel, error_make(E_FRAME_ERROR, "Malformed UTF-8 in shortstr"),
		    channel == 0 ? id : 0);
		return;
	}
	if (!m->raw) {
		call.decoded = codec_decode(id, raw);
		call.raw = span_of(NULL, 0);
		if (call.decoded == NULL) {
			refuse_method(c, channel,
			    error_make(E_RESOURCE_ERROR, "no memory to decode %s", method_name(m)),
			    id);
			return;
		}
	}
	method_count[m - methods]++;
	c->client.broker->work += FRAME_LOOK; /* any of them may be slow */
	c->client.broker->actor = &c->client.who;
	e = m->fn(&call);
	if (unlikely(e != NULL))
		refuse_method(c, channel, e, id);
	c->client.broker->actor = NULL;
	if (c->state != CONN_CLOSED)
		check_output(c);
}

static void
method_on_zero(struct connection *c, uint32_t id, struct span raw)
{
	const struct method *m = method_find((uint16_t)(id >> 16), (uint16_t)id);

	if (m != NULL && (m->needs & ON_ZERO) != 0 && (m->states & BIT(c->state)) != 0) {
		call_method(c, NULL, 0, m, raw);
		return;
	}
	if (c->state == CONN_CLOSING)
		return;
	if (m == NULL)
		refuse_method(c, 0, error_make(E_COMMAND_INVALID, "unimplemented method"), id);
	else
		refuse_method(c, 0,
		    error_make(E_CHANNEL_ERROR, "unexpected method in connection state %s",
		        connection_state_name(c->state)),
		    id);
}

/* Returns bytes taken: 0 for a connection.close that has to wait. */
static size_t
frame_on_zero(struct connection *c, const uint8_t *frame, uint32_t size)
{
	const uint8_t *payload = frame + FRAME_HEAD;

	if (c->state == CONN_OPEN && frame[0] == FRAME_METHOD && size >= METHOD_HEAD &&
	    get_be32(payload) == AMQP_CONNECTION_CLOSE_METHOD &&
	    ((c->parked_count > 0 && park_delays_close(c)) || connection_must_wait(c)))
		return 0;
	switch (frame[0]) {
	case FRAME_METHOD:
		if (size < METHOD_HEAD)
			refuse_short(c, frame, size);
		else
			method_on_zero(c, get_be32(payload),
			    span_of(payload + METHOD_HEAD, size - METHOD_HEAD));
		break;
	case FRAME_HEARTBEAT:
		if (size > 0)
			refuse_short(c, frame, size);
		break;
	default: refuse_channel_number(c, frame, size); break;
	}
	return FRAME_OVERHEAD + (size_t)size;
}

/* A number on which no channel is open: channel.open is the only thing to come. */
static void
frame_on_none(struct connection *c, const uint8_t *frame, uint32_t size)
{
	const uint8_t *payload = frame + FRAME_HEAD;
	uint16_t channel = get_be16(frame + 1);
	const struct method *m;
	uint32_t id;

	if (frame[0] != FRAME_METHOD) {
		refuse_plain(c, channel,
		    error_make(
		        E_UNEXPECTED_FRAME, "expected method frame, got non method frame instead"));
		return;
	}
	id = get_be32(payload);
	m = method_find((uint16_t)(id >> 16), (uint16_t)id);
	if (m == NULL || (m->needs & FREE_CHANNEL) == 0) {
		refuse_method(
		    c, channel, error_make(E_CHANNEL_ERROR, "expected 'channel.open'"), id);
		return;
	}
	if (c->channel_count >= c->channel_max) {
		refuse_plain(c, channel,
		    error_make(E_NOT_ALLOWED,
		        "number of channels opened (%u) has reached the "
		        "negotiated channel_max (%u)",
		        c->channel_count, c->channel_max));
		return;
	}
	call_method(c, NULL, channel, m, span_of(payload + METHOD_HEAD, size - METHOD_HEAD));
}

/* We sent channel.close: all is dropped until its answer (0-9-1, 1.5.2.5). */
static void
frame_on_closing(struct connection *c, struct channel *ch, const uint8_t *frame)
{
	const struct method *m;
	uint32_t id;

	if (frame[0] != FRAME_METHOD)
		return;
	id = get_be32(frame + FRAME_HEAD);
	m = method_find((uint16_t)(id >> 16), (uint16_t)id);
	if (m == &methods[METHOD_CHANNEL_CLOSE_OK])
		connection_drop_channel(c, ch->id);
	else if (m == &methods[METHOD_CHANNEL_CLOSE]) {
		codec_send_empty(c, ch->id, AMQP_CHANNEL_CLOSE_OK_METHOD);
		check_output(c);
	} else if (m != NULL && (m->needs & FREE_CHANNEL) != 0)
		refuse_method(
		    c, ch->id, error_make(E_CHANNEL_ERROR, "second 'channel.open' seen"), id);
}

static void
method_on_channel(struct connection *c, struct channel *ch, uint32_t id, struct span raw)
{
	const struct method *m = method_find((uint16_t)(id >> 16), (uint16_t)id);

	if (m == NULL || (m->needs & ON_ZERO) != 0)
		refuse_method(c, ch->id, error_make(E_COMMAND_INVALID, "unimplemented method"), id);
	else if ((m->needs & FREE_CHANNEL) != 0)
		refuse_method(
		    c, ch->id, error_make(E_CHANNEL_ERROR, "second 'channel.open' seen"), id);
	else
		call_method(c, ch, ch->id, m, raw);
}

/* ack, nack, reject: a tag and one octet of bits. */
static void
settle_on_channel(
    struct connection *c, struct channel *ch, enum method_index i, const uint8_t *args)
{
	struct method_call call = { .conn = c,
		.ch = ch,
		.channel_id = ch->id,
		.method = &methods[i],
		.raw = span_of(args, 9) };
	const struct error *e;

	method_count[i]++;
	e = methods[i].fn(&call);
	if (unlikely(e != NULL))
		connection_refuse(c, call.channel_id, e, methods[i].class_id, methods[i].method_id);
}

/* basic.publish while no content is under way. Returns bytes taken. */
static size_t
publish_on_channel(
    struct connection *c, struct channel *ch, uint8_t *frame, uint32_t size, const uint8_t *end)
{
	const struct error *e = NULL;
	size_t used = 0;
	bool taken;

	if (drain_holds_publishers(c->client.broker)) {
		taken = channel_park(ch, frame, FRAME_OVERHEAD + (size_t)size, &e);
		if (e != NULL)
			refuse_method(c, ch->id, e, ID_PUBLISH);
		if (e != NULL || taken)
			return FRAME_OVERHEAD + (size_t)size;
	}
	if (likely(channel_publish_fast(ch, frame, end, &used, &e))) {
		method_count[METHOD_BASIC_PUBLISH]++;
		assert(used <= (size_t)(end - frame));
		if (unlikely(e != NULL))
			refuse_method(c, ch->id, e, ID_PUBLISH);
		return used;
	}
	call_method(c, ch, ch->id, &methods[METHOD_BASIC_PUBLISH],
	    span_of(frame + FRAME_HEAD + METHOD_HEAD, size - METHOD_HEAD));
	return FRAME_OVERHEAD + (size_t)size;
}

/* A method frame on an open channel. Returns bytes taken from frame on. */
static inline size_t
channel_method(
    struct connection *c, struct channel *ch, uint8_t *frame, uint32_t size, const uint8_t *end)
{
	const uint8_t *args = frame + FRAME_HEAD + METHOD_HEAD;
	uint32_t id = get_be32(frame + FRAME_HEAD);
	size_t whole = FRAME_OVERHEAD + (size_t)size;

	if (unlikely(ch->content_state != CONTENT_NONE)) {
		refuse_order(c, ch);
		return whole;
	}
	switch (id) {
	case ID_PUBLISH: return publish_on_channel(c, ch, frame, size, end);
	case ID_ACK:
		if (unlikely(size != ID_SETTLE_SIZE))
			break;
		settle_on_channel(c, ch, METHOD_BASIC_ACK, args);
		return whole;
	case ID_NACK:
		if (unlikely(size != ID_SETTLE_SIZE))
			break;
		settle_on_channel(c, ch, METHOD_BASIC_NACK, args);
		return whole;
	case ID_REJECT:
		if (unlikely(size != ID_SETTLE_SIZE))
			break;
		settle_on_channel(c, ch, METHOD_BASIC_REJECT, args);
		return whole;
	case AMQP_CHANNEL_CLOSE_METHOD:
		if (channel_must_wait(ch))
			return 0;
		break;
	default: break;
	}
	method_on_channel(c, ch, id, span_of(args, size - METHOD_HEAD));
	return whole;
}

/* --- frames --------------------------------------------------------------------------------------- */

static void
content_frame(struct connection *c, struct channel *ch, const uint8_t *frame, uint32_t size)
{
	const struct error *e;

	if (frame[0] == FRAME_HEADER && ch->content_state == CONTENT_HEADER) {
		if (unlikely(c->amqp->hold != STORE_FINE || ch->lags) && park_header(ch, frame, size))
			return;
		e = channel_on_header(ch, frame, size);
	} else if (frame[0] == FRAME_BODY && ch->content_state == CONTENT_BODY) {
		e = channel_on_body(ch, frame, size);
	} else {
		refuse_order(c, ch);
		return;
	}
	if (unlikely(e != NULL))
		refuse_method(c, ch->id, e, ID_PUBLISH);
}

size_t
frame_handle(struct connection *c, uint8_t *p, const uint8_t *end)
{
	uint32_t size = get_be32(p + 3);
	uint16_t channel = get_be16(p + 1);
	size_t whole = FRAME_OVERHEAD + (size_t)size;
	struct channel *ch;

	if (unlikely(channel == 0))
		return frame_on_zero(c, p, size);
	if (unlikely(c->state != CONN_OPEN)) {
		if (c->state != CONN_CLOSING)
			refuse_plain(c, channel,
			    error_make(E_CHANNEL_ERROR, "channel %u used in connection state %s",
			        channel, connection_state_name(c->state)));
		return whole;
	}
	if (unlikely(p[0] == FRAME_HEARTBEAT)) {
		refuse_channel_number(c, p, size);
		return whole;
	}
	if (unlikely((p[0] == FRAME_METHOD && size < METHOD_HEAD) ||
	             (p[0] == FRAME_HEADER && size < HEADER_HEAD))) {
		refuse_short(c, p, size);
		return whole;
	}
	ch = connection_channel(c, channel);
	if (unlikely(ch == NULL)) {
		frame_on_none(c, p, size);
		return whole;
	}
	if (unlikely(ch->state != CHANNEL_OPEN)) {
		frame_on_closing(c, ch, p);
		return whole;
	}
	if (unlikely(ch->is_parked)) {
		channel_keep_parked(ch, p, whole);
		return whole;
	}
	if (likely(p[0] == FRAME_METHOD))
		return channel_method(c, ch, p, size, end);
	content_frame(c, ch, p, size);
	return whole;
}

/* What the head says is looked at as soon as the head is there; 0: fine, else all n bytes are taken. */
static inline size_t
check_head(struct connection *c, const uint8_t *p, size_t n, uint32_t size)
{
	if (unlikely(size > c->payload_max)) {
		bound_reached(BOUND_frame_max);
		return bad_frame(
		    c, p, n, 0, "{frame_too_large,%u,%u}", size, c->frame_max - FRAME_OVERHEAD);
	}
	if (unlikely(!known_type(p[0]))) /* no octets: how many are here depends on how the bytes were cut */
		return bad_frame(c, p, n, 0, "unknown_frame", 0, 0);
	return 0;
}

bool
frame_share_used(const struct connection *c, struct frame_share *s)
{
	const struct broker *b = c->amqp->broker;
	uint64_t now_us;

	if (likely(b->work < s->look))
		return false;
	now_us = clock_mono_us();
	if (s->until_us == 0)
		s->until_us = now_us + c->amqp->loop->share_us;
	if (now_us >= s->until_us)
		return true;
	s->look = b->work + FRAME_LOOK;
	return false;
}

size_t
frame_walk(struct connection *c, uint8_t *p, size_t n)
{
	uint8_t *start = p;
	const uint8_t *end = p + n;
	struct frame_share share = { .look = c->amqp->broker->work + FRAME_LOOK };
	size_t used;

	while ((size_t)(end - p) >= FRAME_HEAD) {
		uint32_t size = get_be32(p + 3);

		if (unlikely(check_head(c, p, (size_t)(end - p), size) != 0))
			return n;
		if ((size_t)(end - p) < FRAME_OVERHEAD + (size_t)size)
			break;
		if (unlikely(p[FRAME_HEAD + size] != FRAME_END)) {
			bad_frame(c, p, n, size, "{invalid_frame_end_marker,%u}",
			    p[FRAME_HEAD + size], 0);
			return n;
		}
		used = frame_handle(c, p, end);
		p += used;
		if (unlikely(c->is_deaf))
			return n;
		if (unlikely(c->io->paused != 0 || used == 0))
			break;
		if (unlikely(frame_share_used(c, &share)) && p < end) {
			transport_again(c->io);
			break;
		}
	}
	return (size_t)(p - start);
}
