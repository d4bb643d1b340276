/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/notice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/route.h"
#include "broker/vhost.h"

enum {
	FRAME_HEADER = 2,
	FRAME_HEAD = 7,
	FRAME_END = 0xCE,
	CONTENT_HEAD = 12,
	CLASS_BASIC = 60,
	KEY_MAX = 255,
	/* of a call of notices_run() */
	SLICE = 2048,
	SLICE_WORK = 8192
};

struct notice {
	STAILQ_ENTRY(notice) link;
	struct vhost *vhost; /* borrowed: notices_forget() */
	struct msg *m;       /* owned */
};

void
notices_init(struct broker *b)
{
	STAILQ_INIT(&b->notices.waiting);
}

static void
drop(struct broker *b, const char *exchange, const char *why)
{
	static struct log_limit limit = { .burst = 1 };

	b->stats.notices_dropped++;
	if (log_allowed(&limit))
		log_warning("a message for exchange '%s' is dropped: %s", exchange, why);
}

/* ---- the message ---- */

static size_t
props_size(const struct notice_spec *spec)
{
	return 2 + 4 + spec->headers.n + (spec->time_s != 0 ? 1u + 8 : 0);
}

static uint8_t *
put_props(uint8_t *p, const struct notice_spec *spec)
{
	bool dated = spec->time_s != 0;

	put_be16(p, (uint16_t)(PROP_HEADERS | (dated ? PROP_DELIVERY_MODE | PROP_TIMESTAMP : 0)));
	put_be32(p + 2, (uint32_t)spec->headers.n);
	p += 6;
	if (spec->headers.n > 0)
		memcpy(p, spec->headers.p, spec->headers.n);
	p += spec->headers.n;
	if (dated) {
		*p++ = 2;
		put_be64(p, spec->time_s);
		p += 8;
	}
	return p;
}

/* What stands before the body; its layout: msg.h. */
static void
fill(struct msg *m, const struct notice_spec *spec, struct span exchange, struct span key)
{
	uint8_t *p = put_short_string(put_short_string(m->wire, exchange), key);

	*p++ = FRAME_END;
	p[0] = FRAME_HEADER;
	put_be16(p + 1, 0);
	put_be32(p + 3, (uint32_t)(CONTENT_HEAD + props_size(spec)));
	p += FRAME_HEAD;
	put_be16(p, CLASS_BASIC);
	put_be16(p + 2, 0);
	put_be64(p + 4, m->body_size);
	p = put_props(p + CONTENT_HEAD, spec);
	*p++ = FRAME_END;
	assert(p == m->wire + m->meta_len);
}

struct msg *
notice_message(const struct notice_spec *spec)
{
	struct span exchange = span_str(spec->exchange), key = spec->key;
	uint16_t names;
	uint32_t meta;
	struct msg *m;

	if (key.n > KEY_MAX)
		key.n = KEY_MAX;
	names = (uint16_t)(2 + exchange.n + key.n + 1);
	meta = (uint32_t)(names + FRAME_HEAD + CONTENT_HEAD + props_size(spec) + 1);
	if (spec->body != NULL)
		m = msg_try_like(spec->body, names, meta);
	else
		m = msg_try_new(msg_wire_size(meta, 0));
	if (m == NULL)
		return NULL;
	if (spec->body == NULL) {
		m->names_len = names;
		m->meta_len = meta;
		m->body_size = 0;
		m->flags = 0;
	}
	fill(m, spec, exchange, key);
	m->flags = (uint8_t)((m->flags & MSG_SHARES) | (spec->time_s != 0 ? MSG_PERSISTENT : 0));
	m->prio = 0;
	return m;
}

/* ---- the list ---- */

void
notice_send(struct vhost *vh, const struct notice_spec *spec)
{
	struct broker *b = vh->broker;
	struct notice *n;
	struct msg *m;

	if (memory_short(&b->memory) && !spec->is_alarm) {
		/* clients have to wait where they would publish: it cannot, but may not make it worse */
		drop(b, spec->exchange, "memory is short");
		return;
	}
	if (b->notices.bytes >= NOTICE_BYTES_MAX) {
		drop(b, spec->exchange, "too many wait");
		return;
	}
	m = notice_message(spec);
	if (m == NULL) {
		drop(b, spec->exchange, "no memory");
		return;
	}
	n = xmalloc(sizeof *n);
	n->vhost = vh;
	n->m = m;
	b->notices.bytes += sizeof *n + msg_memory(m);
	STAILQ_INSERT_TAIL(&b->notices.waiting, n, link);
}

void
notice_pace(struct broker *b)
{
	if (b->notices.bytes > NOTICE_BYTES_MAX / 2)
		b->notices.are_many = true;
	if (b->notices.are_many)
		b->letters_late = true;
}

static struct msg *
take_first(struct broker *b, struct vhost **vh)
{
	struct notice *n = STAILQ_FIRST(&b->notices.waiting);
	struct msg *m = n->m;

	STAILQ_REMOVE_HEAD(&b->notices.waiting, link);
	b->notices.bytes -= sizeof *n + msg_memory(m);
	*vh = n->vhost;
	free(n);
	return m;
}

static void
route(struct broker *b, struct vhost *vh, struct msg *m)
{
	struct exchange *x = vh->is_deleted ? NULL : exchange_find(vh, msg_exchange(m));
	const struct route *to = NULL;
	struct props pr;

	if (x != NULL && props_scan(msg_props(m), &pr) == 0)
		to = route_find_msg(x, m, &pr);
	if (to == NULL || to->bad_delay) {
		b->stats.notices_dropped++;
		msg_unref(&m);
		return;
	}
	if (persist_hold(b) != NULL)
		m->flags &= (uint8_t)~MSG_PERSISTENT; /* clients would have to wait for the disk */
	b->stats.notices++;
	(void)publish_forward(b, m, to, 0, PUBLISH_LETTER);
}

bool
notices_run(struct broker *b)
{
	uint64_t before = b->work;
	struct vhost *vh;

	for (unsigned n = 0;
	     n < SLICE && !STAILQ_EMPTY(&b->notices.waiting) && b->work - before < SLICE_WORK;
	     n++) {
		struct msg *m = take_first(b, &vh);

		route(b, vh, m);
	}
	if (unlikely(b->notices.are_many) && b->notices.bytes < NOTICE_BYTES_MAX / 4) {
		b->notices.are_many = false;
		b->letters_eased++;
	}
	return !STAILQ_EMPTY(&b->notices.waiting);
}

void
notices_forget(struct vhost *vh)
{
	struct broker *b = vh->broker;
	struct notice_queue keep = STAILQ_HEAD_INITIALIZER(keep);
	struct notice *n;

	while ((n = STAILQ_FIRST(&b->notices.waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&b->notices.waiting, link);
		if (n->vhost != vh) {
			STAILQ_INSERT_TAIL(&keep, n, link);
			continue;
		}
		b->notices.bytes -= sizeof *n + msg_memory(n->m);
		msg_unref(&n->m);
		free(n);
	}
	STAILQ_CONCAT(&b->notices.waiting, &keep);
}
