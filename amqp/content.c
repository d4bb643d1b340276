/* SPDX-License-Identifier: Apache-2.0
 * Content that did not stand whole in one read: basic.publish, then its header, then its body
 * frames, each as it comes (0-9-1, 4.2.6). Names and header are kept, then the message is filled.
 *
 * Nothing is allocated for a size that a client only declared: a body is kept as it comes, at most
 * twice what came. What is kept counts against the connection (limits.content_in_flight) and, when
 * memory is very short, against an eighth of the node's limit: content under way cannot be parked,
 * because nothing else would ever free it. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/frame.h"
#include "amqp/method.h"
#include "base/bound.h"
#include "base/config.h"
#include "base/mem.h"

enum { HEADER_MIN = 14 /* class, weight, body size, property flags */, CLASS_BASIC = 60 };

static const struct error *
charge(struct channel *ch, uint64_t n)
{
	struct connection *c = ch->conn;
	uint64_t limit = c->amqp->cfg->content_in_flight;

	if (c->content_in_flight + n > limit) {
		bound_reached(BOUND_content_in_flight);
		return error_make(E_RESOURCE_ERROR,
		    "content under way on one connection exceeds limits.content_in_flight (%" PRIu64
		    " bytes)",
		    limit);
	}
	c->content_in_flight += n;
	c->amqp->content_in_flight += n;
	ch->content.charged += n;
	return NULL;
}

static void
drop_kept(struct content *k)
{
	if (k->kept == NULL)
		return;
	mem_sub(MEM_CONTENT, k->kept_cap);
	free(k->kept);
	k->kept = NULL;
	k->kept_cap = 0;
}

void
content_drop(struct channel *ch)
{
	struct content *k = &ch->content;

	drop_kept(k);
	if (k->m != NULL)
		msg_unref(&k->m);
	ch->conn->content_in_flight -= k->charged;
	ch->conn->amqp->content_in_flight -= k->charged;
	*k = (struct content){ 0 };
	ch->content_state = CONTENT_NONE;
}

static const struct error *
no_memory(struct channel *ch)
{
	content_drop(ch);
	return error_make(E_RESOURCE_ERROR, "no memory for the message");
}

const struct error *
basic_on_publish(const struct method_call *call)
{
	struct content *k = &call->ch->content;
	const uint8_t *names = call->raw.p + 2; /* behind the ticket */
	uint32_t n = 2u + names[0];

	assert(call->ch->content_state == CONTENT_NONE);
	n += names[n - 1]; /* both short strings; the bits follow */
	k->mandatory = names[n] & 1;
	k->immediate = names[n] & 2;
	k->names_len = k->meta_len = k->kept_cap = n + 1;
	k->kept = xmalloc(k->kept_cap);
	mem_add(MEM_CONTENT, k->kept_cap);
	memcpy(k->kept, names, n);
	k->kept[n] = FRAME_END;
	call->ch->content_state = CONTENT_HEADER;
	return charge(call->ch, k->kept_cap);
}

/* Class, weight, size, properties. */
static const struct error *
check_header(struct channel *ch, const uint8_t *payload, uint32_t size)
{
	uint64_t limit = ch->conn->amqp->cfg->message_size;
	struct props pr;

	assert(size >= HEADER_MIN - 2); /* frame.c refuses shorter ones */
	if (get_be16(payload) != CLASS_BASIC)
		return error_make(E_UNEXPECTED_FRAME,
		    "expected content header for class 60, got one for class %u instead",
		    get_be16(payload));
	if (get_be16(payload + 2) != 0)
		return error_make(E_UNEXPECTED_FRAME,
		    "expected content header for class 60, got non content header frame instead");
	if (size < HEADER_MIN || props_scan(span_of(payload + 12, size - 12), &pr) != 0)
		return error_make(
		    E_SYNTAX_ERROR, "cannot decode the properties of a content header");
	if (get_be64(payload + 4) > limit) {
		bound_reached(BOUND_message_size);
		return error_make(E_PRECONDITION_FAILED,
		    "message size %" PRIu64 " is larger than configured max size %" PRIu64,
		    get_be64(payload + 4), limit);
	}
	return NULL;
}

/* A message with names and header in place; the caller fills what of wire lies behind them. */
static struct msg *
start_message(struct channel *ch, uint64_t body_in_wire)
{
	struct content *k = &ch->content;
	struct msg *m = msg_try_new(msg_wire_size(k->meta_len, body_in_wire));

	if (m == NULL)
		return NULL;
	m->names_len = (uint16_t)k->names_len;
	m->meta_len = k->meta_len;
	m->body_size = k->body_size;
	m->rest = NULL;
	m->flags = 0;
	m->prio = 0;
	memcpy(m->wire, k->kept, k->meta_len);
	drop_kept(k);
	return m;
}

static const struct error *
finish(struct channel *ch, struct msg *m)
{
	bool mandatory = ch->content.mandatory, immediate = ch->content.immediate;
	struct props pr;
	int bad = props_scan(msg_props(m), &pr);

	assert(bad == 0); /* it was scanned when the header came */
	ch->content.m = NULL;
	content_drop(ch);
	return channel_publish(ch, m, &pr, mandatory, immediate);
}

const struct error *
channel_on_header(struct channel *ch, const uint8_t *frame, uint32_t size)
{
	struct content *k = &ch->content;
	const struct error *err = check_header(ch, frame + FRAME_HEAD, size);
	uint32_t n = size + FRAME_OVERHEAD;
	uint8_t *grown;
	struct msg *m;

	if (err == NULL)
		err = charge(ch, n);
	if (err != NULL) {
		content_drop(ch);
		return err;
	}
	grown = try_realloc(k->kept, k->kept_cap + n);
	if (grown == NULL)
		return no_memory(ch);
	mem_add(MEM_CONTENT, n);
	k->kept = grown;
	k->kept_cap += n;
	memcpy(k->kept + k->names_len, frame, n);
	k->meta_len = k->names_len + n;
	k->body_size = get_be64(frame + FRAME_HEAD + 4);
	ch->content_state = CONTENT_BODY;
	if (k->body_size > 0)
		return NULL;
	m = start_message(ch, 0);
	return m == NULL ? no_memory(ch) : finish(ch, m);
}

/* Part of a body goes to the message's chain. */
static const struct error *
take_part(struct channel *ch, const uint8_t *frame, uint32_t size, uint64_t left)
{
	struct content *k = &ch->content;
	struct broker *b = ch->conn->amqp->broker;
	const struct error *err;

	(void)memory_check(&b->memory, b->now_ms);
	if (b->memory.state == MEMORY_HARD &&
	    ch->conn->amqp->content_in_flight > b->memory.limit / 8)
		return error_make(E_PRECONDITION_FAILED,
		    "memory is short: a message of %" PRIu64 " bytes under way was refused",
		    k->body_size);
	if ((err = charge(ch, size)) != NULL)
		return err;
	if (k->m == NULL && (k->m = start_message(ch, 0)) == NULL)
		return no_memory(ch);
	if (!msg_try_append(k->m, &k->last, frame + FRAME_HEAD, size, left))
		return no_memory(ch);
	k->received += size;
	return NULL;
}

const struct error *
channel_on_body(struct channel *ch, const uint8_t *frame, uint32_t size)
{
	struct content *k = &ch->content;
	uint64_t left = k->body_size - k->received;
	const struct error *err = NULL;
	struct msg *m;

	if (size > left)
		err = error_make(E_FRAME_ERROR,
		    "type 3, body frames of %" PRIu64 " octets where the header said %" PRIu64,
		    k->received + size, k->body_size);
	else if (size == k->body_size) {
		m = start_message(ch, size);
		if (m == NULL)
			return no_memory(ch);
		memcpy(m->wire + m->meta_len, frame, size + (size_t)FRAME_OVERHEAD);
		return finish(ch, m);
	} else if (size > 0)
		err = take_part(ch, frame, size, left);
	if (err != NULL) {
		content_drop(ch);
		return err;
	}
	return k->received == k->body_size ? finish(ch, k->m) : NULL;
}
