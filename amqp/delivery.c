/* SPDX-License-Identifier: Apache-2.0
 * Messages on their way out: basic.deliver, basic.get-ok and basic.return with what follows them.
 *
 * The way that counts is one copy of the consumer's prefix and one of the message's wire, with
 * tag, sizes and channel number written into the copy. Bodies over COPY_MAX are referenced by the
 * output instead. A body frame goes out as it came in when the receiver's frame_max allows it;
 * otherwise, and for bodies that came in several frames, frames are cut anew to the receiver's
 * size.
 *
 * A content header cannot be cut: one that is longer than the receiver's frame_max goes out whole,
 * as RabbitMQ sends it. Most clients take it (pika, Java); others end the connection (librabbitmq,
 * amqplib), and then have to ask for a larger frame_max. Refusing it here would help neither: the
 * message would block its queue. */
#include <stdlib.h>
#include <string.h>

#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/counted.h"
#include "amqp/frame.h"
#include "amqp/park.h"
#include "base/config.h"
#include "broker/queue.h"
#include "net/transport.h"

enum {
	COPY_MAX =
	    4096, /* bytes of a body that are copied; 16 bytes referenced instead cost 60 % more */
	PREFIX_FIXED = FRAME_HEAD + 4 + 1,
	DELIVER_HEAD_MAX = PREFIX_FIXED + 255 + 9
};

static inline void
check_output(struct connection *c)
{
	const struct config *cfg = c->amqp->cfg;

	connection_check_output(c, cfg->output, cfg->output_max);
}

/* Copied if short, else referenced. */
static void
write_piece(struct transport *io, struct msg *m, const uint8_t *p, size_t n)
{
	if (n <= COPY_MAX)
		transport_write(io, p, n);
	else
		transport_write_ref(io, p, n, msg_ref(m));
}

/* The body in frames of the receiver's size, from wherever it stands. */
static void
write_body_cut(struct channel *ch, struct msg *m)
{
	struct transport *io = ch->conn->io;
	const struct msg_piece *piece = m->rest;
	const uint8_t *at = piece != NULL ? piece->d : msg_body(m);
	uint64_t left = m->body_size, here = piece != NULL ? piece->n : left;
	size_t max = ch->conn->frame_max - FRAME_OVERHEAD;

	while (left > 0) {
		size_t frame = left < max ? (size_t)left : max;
		uint8_t *p = transport_room(io, FRAME_HEAD);

		p[0] = FRAME_BODY;
		put_be16(p + 1, ch->id);
		put_be32(p + 3, (uint32_t)frame);
		transport_wrote(io, FRAME_HEAD);
		left -= frame;
		while (frame > 0) {
			size_t n;

			while (here == 0) {
				piece = piece->next;
				at = piece->d;
				here = piece->n;
			}
			n = here < frame ? (size_t)here : frame;
			write_piece(io, m, at, n);
			at += n;
			here -= n;
			frame -= n;
		}
		*transport_room(io, 1) = FRAME_END;
		transport_wrote(io, 1);
	}
}

/* The general way: a method frame of head, the message's names and tail; then header and body
 * frames. */
static void
write_frames(struct channel *ch, uint8_t *head, size_t head_len, struct span tail, struct msg *m,
    struct span header)
{
	static const uint8_t frame_end = FRAME_END;
	struct transport *io = ch->conn->io;
	uint8_t number[3] = { FRAME_HEADER, 0, 0 };

	put_be32(head + 3, (uint32_t)(head_len - FRAME_HEAD + m->names_len - 1u + tail.n));
	transport_write(io, head, head_len);
	transport_write(io, m->wire, m->names_len - 1u);
	transport_write(io, tail.p, tail.n);
	transport_write(io, &frame_end, 1);
	put_be16(number + 1, ch->id);
	transport_write(io, number, sizeof number);
	transport_write(io, header.p + sizeof number, header.n - sizeof number);
	write_body_cut(ch, m);
	check_output(ch->conn);
}

static void
write_slow(struct channel *ch, uint8_t *head, size_t head_len, struct span tail, struct msg *m)
{
	write_frames(ch, head, head_len, tail, m,
	    span_of(m->wire + m->names_len, m->meta_len - m->names_len));
}

/* The same with what a quorum queue says of the entry. */
static void
write_counted(
    struct channel *ch, uint8_t *head, size_t head_len, struct span tail, const struct entry *e)
{
	size_t n;
	uint8_t *header = counted_header(e->m, e->acquired, ch->conn->frame_max, &n);

	if (header != NULL)
		write_frames(ch, head, head_len, tail, e->m, span_of(header, n));
	else
		write_slow(ch, head, head_len, tail, e->m);
	free(header);
}

/* How much of wire is copied: all of it; up to the body, which is referenced; or names and header
 * only. */
static inline size_t
copied(const struct msg *m, uint32_t frame_max)
{
	if (m->body_size == 0 || m->rest != NULL || m->body_size > frame_max - FRAME_OVERHEAD)
		return m->meta_len;
	if (m->body_size > COPY_MAX)
		return m->meta_len + (size_t)FRAME_HEAD;
	return m->meta_len + (size_t)FRAME_OVERHEAD + (size_t)m->body_size;
}

static inline void
write_deliver(struct channel *ch, const uint8_t *prefix, size_t prefix_len, uint64_t tag,
    bool redelivered, struct msg *m)
{
	struct connection *c = ch->conn;
	size_t head = prefix_len + 9, copy = copied(m, c->frame_max);
	uint8_t long_head[DELIVER_HEAD_MAX], *p, *w;
	bool fits = likely(head + copy <= CHUNK_SIZE);

	p = fits ? transport_room(c->io, head + copy) : long_head;
	memcpy(p, prefix, prefix_len);
	put_be64(p + prefix_len, tag);
	p[prefix_len + 8] = redelivered;
	if (unlikely(!fits)) {
		write_slow(ch, p, head, span_of(NULL, 0), m);
		return;
	}
	put_be32(p + 3, (uint32_t)(head - FRAME_HEAD + m->names_len - 1u));
	w = p + head;
	memcpy(w, m->wire, copy);
	put_be16(w + m->names_len + 1, ch->id);
	if (copy > m->meta_len)
		put_be16(w + m->meta_len + 1, ch->id);
	transport_wrote(c->io, head + copy);
	if (copy == m->meta_len + (size_t)FRAME_HEAD)
		transport_write_ref(c->io, msg_body(m), (size_t)m->body_size + 1, msg_ref(m));
	else if (copy == m->meta_len && m->body_size > 0)
		write_body_cut(ch, m);
	check_output(c);
}

static void
write_deliver_counted(
    struct channel *ch, const struct consumer *k, const struct entry *e, uint64_t tag)
{
	uint8_t head[DELIVER_HEAD_MAX];

	memcpy(head, k->prefix, k->prefix_len);
	put_be64(head + k->prefix_len, tag);
	head[k->prefix_len + 8] = (e->seq_flags & ENTRY_REDELIVERED) != 0;
	write_counted(ch, head, k->prefix_len + 9u, span_of(NULL, 0), e);
}

void
delivery_write(struct consumer *k, const struct entry *e, uint64_t tag)
{
	struct channel *ch = channel_of(k->session);

	/* As in RabbitMQ, the first delivery to a consumer has no count. */
	if (unlikely(e->acquired > 0) && k->queue->quorum != NULL)
		write_deliver_counted(ch, k, e, tag);
	else
		write_deliver(ch, k->prefix, k->prefix_len, tag,
		    (e->seq_flags & ENTRY_REDELIVERED) != 0, e->m);
	if (unlikely(ch->is_parked))
		park_on_delivery(ch);
}

void
delivery_write_reply(
    struct channel *ch, const uint8_t *prefix, size_t prefix_len, uint64_t tag, struct msg *m)
{
	write_deliver(ch, prefix, prefix_len, tag, false, m);
}

void
delivery_write_get(
    struct channel *ch, const struct entry *e, uint64_t tag, uint32_t left, bool counted)
{
	uint8_t head[FRAME_HEAD + 4 + 9], count[4];

	head[0] = FRAME_METHOD;
	put_be16(head + 1, ch->id);
	put_be32(head + FRAME_HEAD, AMQP_BASIC_GET_OK_METHOD);
	put_be64(head + FRAME_HEAD + 4, tag);
	head[FRAME_HEAD + 12] = (e->seq_flags & ENTRY_REDELIVERED) != 0;
	put_be32(count, left);
	/* As in RabbitMQ, a get has it always. */
	if (unlikely(counted))
		write_counted(ch, head, sizeof head, span_of(count, sizeof count), e);
	else
		write_slow(ch, head, sizeof head, span_of(count, sizeof count), e->m);
}

void
delivery_write_return(struct channel *ch, struct msg *m)
{
	static const uint8_t why[] = { 312 >> 8, 312 & 0xff, 8, 'N', 'O', '_', 'R', 'O', 'U', 'T',
		'E' };
	uint8_t head[FRAME_HEAD + 4 + sizeof why];

	head[0] = FRAME_METHOD;
	put_be16(head + 1, ch->id);
	put_be32(head + FRAME_HEAD, AMQP_BASIC_RETURN_METHOD);
	memcpy(head + FRAME_HEAD + 4, why, sizeof why);
	write_slow(ch, head, sizeof head, span_of(NULL, 0), m);
}
