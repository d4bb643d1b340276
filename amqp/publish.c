/* SPDX-License-Identifier: Apache-2.0
 * basic.publish: three whole frames taken in one go, and what follows a whole message however it
 * came.
 *
 * The fast path takes only what is ordinary; it leaves everything else, mistakes too, to the frame
 * by frame path, which has the words for them. */
#include <assert.h>
#include <stdlib.h>

#include "amqp/channel.h"
#include "amqp/confirm_wait.h"
#include "amqp/frame.h"
#include "amqp/reply_to.h"
#include "amqp/tx.h"
#include "base/bound.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/table.h"

enum { BIT_MANDATORY = 1, BIT_IMMEDIATE = 2, FANOUT_CHECK = 8, UNROUTABLE_LINES = 1 /* in 10 s */ };

/* --- one go ------------------------------------------------------------- */

struct three_frames {
	const uint8_t *names;  /* exchange and key, as short strings */
	uint32_t names_len;    /* of both, and the octet of bits behind them */
	const uint8_t *header; /* whole frame; the body frame, if any, stands right behind it */
	uint32_t header_len;   /* with the frame around it */
	uint64_t body_size;
	const uint8_t *end;
};

/* Method and header frame. False: not here, not whole or not in order. */
static inline bool
find_frames(
    const struct connection *c, const uint8_t *p, const uint8_t *end, struct three_frames *f)
{
	uint32_t size = get_be32(p + 3), n, most = c->payload_max;
	const uint8_t *h = p + FRAME_OVERHEAD + size;

	f->names = p + FRAME_HEAD + 4 + 2;
	if (unlikely(size < 4 + 2 + 3))
		return false;
	n = 2u + f->names[0];
	if (unlikely(size < 4 + 2 + n + 1))
		return false;
	n += f->names[n - 1];
	f->names_len = n + 1;
	if (unlikely(size != 4 + 2 + n + 1 || end - h < FRAME_OVERHEAD + 14))
		return false;
	size = get_be32(h + 3);
	if (unlikely(
	        size < 14 || size > most || (uint64_t)(end - h) < (uint64_t)size + FRAME_OVERHEAD))
		return false;
	f->header = h;
	f->header_len = size + FRAME_OVERHEAD;
	f->body_size = get_be64(h + 11);
	f->end = h + f->header_len;
	return h[0] == FRAME_HEADER && h[1] == p[1] && h[2] == p[2] && f->end[-1] == FRAME_END &&
	       get_be32(h + FRAME_HEAD) == 60u << 16;
}

/* The body in one frame, or none. */
static inline bool
find_body(const struct connection *c, const uint8_t *p, const uint8_t *end, struct three_frames *f)
{
	const uint8_t *b = f->end;

	if (f->body_size == 0)
		return true;
	if (unlikely(f->body_size > c->payload_max || f->body_size > c->amqp->cfg->message_size ||
	             (uint64_t)(end - b) < f->body_size + FRAME_OVERHEAD))
		return false;
	f->end = b + FRAME_OVERHEAD + f->body_size;
	return b[0] == FRAME_BODY && b[1] == p[1] && b[2] == p[2] &&
	       get_be32(b + 3) == f->body_size && f->end[-1] == FRAME_END;
}

bool
channel_publish_fast(struct channel *ch, const uint8_t *p, const uint8_t *end, size_t *used,
    const struct error **error)
{
	struct connection *c = ch->conn;
	struct three_frames f;
	struct props pr;
	struct msg *m;
	uint8_t bits;

	if (unlikely(
	        ch->state != CHANNEL_OPEN || ch->content_state != CONTENT_NONE || ch->is_parked))
		return false;
	if (unlikely(!find_frames(c, p, end, &f) || !find_body(c, p, end, &f)))
		return false;
	bits = f.names[f.names_len - 1];
	if (unlikely(bits & BIT_IMMEDIATE))
		return false;
	if (unlikely(
	        props_scan(span_of(f.header + 19, f.header_len - FRAME_OVERHEAD - 12), &pr) != 0))
		return false;
	if (unlikely(ch->lags || c->amqp->hold != STORE_FINE) &&
	    (ch->lags || pr.delivery_mode == 2 || c->amqp->broker->stats.quorum_queues > 0))
		return false; /* parked at its header, if it has to be kept */
	m = msg_try_new(f.names_len + (size_t)(f.end - f.header));
	if (unlikely(m == NULL))
		return false;
	m->names_len = (uint16_t)f.names_len;
	m->meta_len = f.names_len + f.header_len;
	m->body_size = f.body_size;
	m->rest = NULL;
	memcpy(m->wire, f.names, f.names_len - 1);
	m->wire[f.names_len - 1] = FRAME_END;
	memcpy(m->wire + f.names_len, f.header, (size_t)(f.end - f.header));
	*used = (size_t)(f.end - p);
	*error = channel_publish(ch, m, &pr, bits & BIT_MANDATORY, false);
	return true;
}

/* --- a whole message ---------------------------------------------------- */

/* BCC is seen by nobody (https://www.rabbitmq.com/docs/sender-selected). *headers becomes owned
 * bytes then. */
static const struct error *
cut_bcc(const struct props *pr, uint8_t **owned, struct span *headers)
{
	const struct error *err;
	bool cc, bcc = false;

	if (!pr->has_cc)
		return NULL;
	if ((err = route_check_cc(pr->headers, &cc, &bcc)) != NULL || !bcc)
		return err;
	*owned = route_without_bcc(pr->headers, &headers->n);
	headers->p = *owned;
	return *owned == NULL ? error_make(E_RESOURCE_ERROR, "no memory for the message") : NULL;
}

/* A copy of m with other properties: raw stands for what is behind class, weight and body size. */
static struct msg *
with_props(struct msg *m, const uint8_t *raw, uint32_t n)
{
	size_t body =
	    m->rest == NULL && m->body_size > 0 ? (size_t)m->body_size + FRAME_OVERHEAD : 0;
	uint32_t header_len = FRAME_OVERHEAD + 12 + n;
	struct msg *to = msg_try_new(m->names_len + (size_t)header_len + body);
	uint8_t *h;

	if (to == NULL)
		return NULL;
	to->names_len = m->names_len;
	to->meta_len = m->names_len + header_len;
	to->body_size = m->body_size;
	if (m->rest != NULL) {
		/* The pieces move: m has one reference, ours. Without body_size it is as long as it
		 * was made. */
		to->rest = m->rest;
		m->rest = NULL;
		m->body_size = 0;
	}
	memcpy(to->wire, m->wire, m->names_len + (size_t)FRAME_HEAD + 12);
	h = to->wire + m->names_len;
	put_be32(h + 3, 12 + n);
	memcpy(h + FRAME_HEAD + 12, raw, n);
	h[header_len - 1] = FRAME_END;
	if (body > 0)
		memcpy(h + header_len, m->wire + m->meta_len, body);
	return to;
}

/* Takes BCC out and puts the address of the channel into reply-to: *out becomes another message
 * then, with the body of m, which is of no use afterwards but for its headers. */
static const struct error *
rewrite(struct channel *ch, struct msg *m, const struct props *pr, bool keep_bcc, struct msg **out)
{
	struct span headers = pr->headers, reply = { NULL, 0 };
	uint8_t *owned = NULL, *raw = NULL;
	const struct error *err;
	struct msg *to = NULL;
	int n;

	if (reply_to_is_queue(pr->reply_to)) {
		reply = reply_to_address(ch);
		if (reply.p == NULL)
			return error_make(
			    E_PRECONDITION_FAILED, "fast reply consumer does not exist");
	}
	if (!keep_bcc && (err = cut_bcc(pr, &owned, &headers)) != NULL)
		return err;
	if (owned == NULL && reply.p == NULL)
		return NULL;
	n = props_rewrite(msg_props(m), pr, &headers, reply.p != NULL ? &reply : NULL, &raw);
	if (n >= 0)
		to = with_props(m, raw, (uint32_t)n);
	free(owned);
	free(raw);
	if (to == NULL)
		return error_make(E_RESOURCE_ERROR, "no memory for the message");
	*out = to;
	return NULL;
}

/* Addresses for direct replies are keys of the default exchange, CC and BCC among them. */
static void
deliver_replies(struct channel *ch, struct msg *m, const struct props *pr)
{
	static const char *const names[] = { "CC", "BCC" };
	struct amqp *a = ch->conn->amqp;
	const struct vhost *vh = ch->session.client->vhost;
	struct field list, item;

	reply_to_begin(a);
	if (reply_to_is_address(msg_key(m)))
		reply_to_deliver(a, vh, msg_key(m), m);
	if (!pr->has_cc)
		return;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		size_t at = 0;

		if (!table_find(pr->headers, names[i], &list) || list.kind != 'A')
			continue;
		while (array_next(list.bytes, &at, &item)) {
			if (item.kind == 'S' && reply_to_is_address(item.bytes))
				reply_to_deliver(a, vh, item.bytes, m);
		}
	}
}

/* The rare: properties that are changed on the way, direct replies. *mp may become another
 * message. keep_bcc: it is delayed, and goes by its BCC then. */
static const struct error *
special(struct channel *ch, struct msg **mp, const struct props *pr, bool keep_bcc)
{
	struct msg *old = *mp, *m = old;
	const struct error *err;
	struct props own;
	int bad =
	    props_scan(msg_props(old), &own); /* pr may point into the frames as they were read */

	assert(bad == 0);
	err = rewrite(ch, old, &own, keep_bcc, &m);
	if (err != NULL)
		return err;
	if (msg_exchange(m).n == 0)
		deliver_replies(ch, m, pr);
	if (m != old) {
		*mp = m;
		msg_unref(&old);
	}
	return NULL;
}

static inline bool
is_special(const struct msg *m, const struct props *pr)
{
	return pr->has_cc || reply_to_is_queue(pr->reply_to) ||
	       (m->wire[0] == 0 && reply_to_is_address(msg_key(m)));
}

void
channel_unroutable(struct channel *ch, struct msg *m, bool mandatory)
{
	struct broker_stats *stats = &ch->conn->amqp->broker->stats;

	if (mandatory) {
		stats->return_unroutable++;
		SESSION_COUNT(&ch->session, return_unroutable, 1);
		delivery_write_return(ch, m);
	} else if (!reply_to_is_address(msg_key(m))) {
		stats->drop_unroutable++;
		SESSION_COUNT(&ch->session, drop_unroutable, 1);
		connection_log_some(ch->conn, LOG_INFO, UNROUTABLE_LINES,
		    "a message for exchange '%.*s' with key '%.*s' is dropped: no queue takes it",
		    SPAN_FMT(msg_exchange(m)), SPAN_FMT(msg_key(m)));
	}
}

/* A confirm for what was handed on; it leaves when `wait` is reached, a refusal at once. */
static const struct error *
open_confirm(struct channel *ch, struct store_wait wait, bool refused)
{
	bool settled = wait.lsn == 0 && !refused;
	uint64_t tag = confirm_open(&ch->confirms, settled);

	ch->session.broker->stats.publish_confirm++;
	if (tag == 0) {
		bound_reached(BOUND_confirms);
		return error_make(E_RESOURCE_ERROR, "too many unconfirmed messages on one channel");
	}
	if (unlikely(refused))
		confirm_settle(&ch->confirms, tag, false);
	if (settled || unlikely(refused))
		channel_mark_confirming(ch);
	else
		confirm_wait_add(ch, tag, wait);
	return NULL;
}

static const struct error *
hand_on(
    struct channel *ch, struct msg *m, const struct route *route, uint64_t due_ms, bool mandatory)
{
	struct broker *b = ch->conn->amqp->broker;
	uint32_t queues = route->count;
	const struct error *err = NULL;
	enum publish_outcome outcome;
	struct store_wait wait = { 0 };

	if (unlikely(b->watched > 0))
		publish_show(&ch->session, ch->memo->exchange, m, route, ch->mode != MODE_TX);
	if (ch->mode == MODE_TX)
		return tx_publish(ch, m, route, due_ms, mandatory);
	publish_count(&ch->session, ch->memo->exchange, queues);
	if (unlikely(queues == 0) && route->delays == 0)
		channel_unroutable(ch, m, mandatory);
	outcome = publish_deliver(b, m, route, due_ms, &wait);
	channel_note_lag(ch, b, wait);
	if (ch->mode == MODE_CONFIRM)
		err = open_confirm(ch, wait, outcome == PUBLISH_REFUSED);
	/* A turn takes in a bounded number of bytes, but each message may become many entries. */
	if (unlikely(queues > FANOUT_CHECK))
		(void)memory_check(&b->memory, b->now_ms);
	return err;
}

const struct error *
channel_publish(
    struct channel *ch, struct msg *m, const struct props *pr, bool mandatory, bool immediate)
{
	const struct error *err;
	const struct route *route;
	uint64_t due_ms = 0;

	if (unlikely(immediate)) {
		msg_unref(&m);
		return error_make(E_NOT_IMPLEMENTED, "immediate=true");
	}
	if (unlikely(ch->memo == NULL))
		ch->memo = xcalloc(1, sizeof *ch->memo);
	err = publish_route(&ch->session, ch->memo, m, pr, &route, &due_ms);
	if (likely(err == NULL) && unlikely(is_special(m, pr)))
		err = special(ch, &m, pr, route->count == 0 && route->delays > 0);
	if (unlikely(err != NULL)) {
		msg_unref(&m);
		return err;
	}
	m->flags = pr->delivery_mode == 2 ? MSG_PERSISTENT : 0;
	m->prio = pr->priority;
	return hand_on(ch, m, route, due_ms, mandatory);
}
