/* SPDX-License-Identifier: Apache-2.0
 * The broker's half of the store: messages as operations and back, objects as bytes, what has to be waited for. */
#include "broker/persist.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/units.h"
#include "broker/binding.h"
#include "broker/dedup.h"
#include "broker/definition.h"
#include "broker/delay.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/persist_access.h"
#include "broker/policy.h"
#include "broker/props.h"
#include "broker/queue_priv.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum {
	FRAME_HEAD = 7,
	CONTENT_HEAD = 12, /* class, weight, body size: what stands before the properties */
	BODY_IN_WIRE = (128 << 10) - 8, /* one frame of the largest size */
	FRAME_END = 0xCE,
	CLASS_BASIC = 60,
	SYNC_MS_MAX = 60000
};

/* ---- messages ---- */

/* Exchange and key as two short strings, and nothing else. */
static bool
names_are_whole(struct span n)
{
	size_t first = n.n > 0 ? n.p[0] + (size_t)1 : 0;

	return n.n > first && n.n == first + 1 + n.p[first];
}

/* Names, CE | the content header's frame. The head of a body frame is the caller's. */
static void
put_meta(struct msg *m, struct span names, struct span props, uint64_t body_size)
{
	uint8_t *p = m->wire;
	uint32_t payload = (uint32_t)(CONTENT_HEAD + props.n);

	memcpy(p, names.p, names.n);
	p[names.n] = FRAME_END;
	p += names.n + 1;
	p[0] = 2; /* frame header */
	put_be16(p + 1, 0);
	put_be32(p + 3, payload);
	put_be16(p + FRAME_HEAD, CLASS_BASIC);
	put_be16(p + FRAME_HEAD + 2, 0);
	put_be64(p + FRAME_HEAD + 4, body_size);
	memcpy(p + FRAME_HEAD + CONTENT_HEAD, props.p, props.n);
	p[FRAME_HEAD + payload] = FRAME_END;
	m->names_len = (uint16_t)(names.n + 1);
}

static void
put_body(uint8_t *p, struct span body)
{
	p[0] = 3; /* frame body */
	put_be16(p + 1, 0);
	put_be32(p + 3, (uint32_t)body.n);
	memcpy(p + FRAME_HEAD, body.p, body.n);
	p[FRAME_HEAD + body.n] = FRAME_END;
}

/* What a client sent was checked; what comes from a disk is checked again. What does not have the right form is left
 * out, and the message is delivered without. */
static void *
on_make(void *arg UNUSED, const struct op_msg *o)
{
	static const uint8_t no_names[2], no_props[2];
	struct span names = names_are_whole(o->names) ? o->names : span_of(no_names, 2);
	struct span props = o->props;
	struct msg_piece *last = NULL;
	struct props scanned;
	struct msg *m;
	uint32_t meta;

	if (props.n > UINT16_MAX * 2u || props_scan(props, &scanned) != 0)
		props = span_of(no_props, 2);
	meta = (uint32_t)(names.n + 1 + FRAME_HEAD + CONTENT_HEAD + props.n + 1);
	m = msg_try_new(msg_wire_size(meta, o->body.n <= BODY_IN_WIRE ? o->body.n : 0));
	if (m == NULL)
		return NULL;
	put_meta(m, names, props, o->body.n);
	if (o->body.n > 0 && o->body.n <= BODY_IN_WIRE)
		put_body(m->wire + meta, o->body);
	m->meta_len = meta;
	m->body_size = o->body.n;
	m->arrived_ms = o->arrived_ms;
	m->flags = (o->flags & MSG_FLAG_PERSISTENT ? MSG_PERSISTENT : 0) |
	           (o->due_ms != 0 ? MSG_DELAYED : 0);
	m->prio = o->prio;
	msg_set_spread(m, o->spread);
	if (o->body.n > BODY_IN_WIRE && !msg_try_append(m, &last, o->body.p, o->body.n, o->body.n))
		msg_unref(&m);
	return m;
}

static void
on_ref(void *item)
{
	msg_ref(item);
}

static void
on_unref(void *item)
{
	struct msg *m = item;

	msg_unref(&m);
}

static void
copy_body(const void *item, uint8_t *to)
{
	const struct msg *m = item;

	for (const struct msg_piece *p = m->rest; p != NULL; p = p->next) {
		memcpy(to, p->d, p->n);
		to += p->n;
	}
}

/* Any thread: reads nothing of m but what never changes once it was routed. */
static void
on_describe(const void *item, struct op_msg *o)
{
	const struct msg *m = item;
	struct span props = msg_props(m);
	struct props scanned;
	uint64_t ttl_ms;

	o->names = span_of(m->wire, m->names_len - 1u);
	o->props = props;
	o->body_size = m->body_size;
	o->body = span_of(m->rest == NULL && m->body_size > 0 ? msg_body(m) : NULL,
	    m->rest == NULL ? m->body_size : 0);
	o->copy_body = copy_body;
	o->item = m;
	o->flags = m->flags & MSG_PERSISTENT ? MSG_FLAG_PERSISTENT : 0;
	o->prio = m->prio;
	o->spread = (uint8_t)msg_spread(m);
	o->arrived_ms = m->arrived_ms;
	o->expires_ms = 0;
	o->due_ms = unlikely(m->flags & MSG_DELAYED) ? delay_due_ms(m) : 0;
	if (unlikely(get_be16(props.p) & PROP_EXPIRATION) && props_scan(props, &scanned) == 0 &&
	    props_expiration(scanned.expiration, &ttl_ms) == 0)
		o->expires_ms = m->arrived_ms + ttl_ms;
}

static uint64_t
on_body_size(const void *item)
{
	return ((const struct msg *)item)->body_size;
}

/* Lanes of priority levels belong to a queue's strand, those of higher numbers to a delayed-message exchange. */
static bool
is_delay(const struct lane *l)
{
	return lane_number(l) >= DELAY_LANE_FIRST;
}

static uint64_t
on_spilled(struct lane *l, uint64_t through, bool is_behind)
{
	return unlikely(is_delay(l)) ? delay_spilled(lane_owner(l), through, is_behind)
	                             : strand_spilled(lane_owner(l), through, is_behind);
}

static void
on_loaded(
    struct lane *l, void *item, uint64_t seq, const struct op_state *state, const struct op_msg *m)
{
	if (unlikely(is_delay(l)))
		delay_loaded(lane_owner(l), item, seq, m->due_ms);
	else
		strand_loaded(lane_owner(l), item, seq, state, m->expires_ms);
}

static void
on_load_done(struct lane *l)
{
	if (unlikely(is_delay(l)))
		delay_load_done(lane_owner(l));
	else
		strand_load_done(lane_owner(l));
}

static void
on_lost(struct lane *l, uint64_t count, uint64_t bytes)
{
	if (unlikely(is_delay(l)))
		delay_lost(lane_owner(l), count);
	else
		strand_lost(lane_owner(l), count, bytes);
}

void
persist_message(struct broker *b, struct msg *m, struct queue *const *queue, uint32_t n,
    struct store_wait *wait)
{
	bool persistent = (m->flags & MSG_PERSISTENT) != 0, lags = false;
	struct window_key *key = NULL;
	uint32_t places = 0, keys = 0;

	if (n > b->places) {
		b->places = n * 2;
		b->place = xrealloc(b->place, b->places * sizeof *b->place);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct strand *s = queue_strand(queue[i], m);

		if (!queue[i]->durable)
			continue;
		if (persistent || queue[i]->quorum != NULL)
			b->place[places++] =
			    (struct lane_place){ .lane = s->lane, .seq = s->next_seq };
		else
			lags |= lane_add_volatile(s->lane, s->next_seq, m);
	}
	if (unlikely(b->dedup != NULL))
		keys = dedup_remember(b, m, queue, n, places > 0, &key);
	if (places > 0)
		*wait = store_publish_keys(b->store, b->place, places, m, key, keys);
	wait->lags |= lags;
}

/* ---- objects ---- */

void
persist_object(struct broker *b, enum object_kind kind, uint64_t id, struct definition *d)
{
	if (b->store != NULL)
		store_put(b->store, kind, id, definition_span(d));
	definition_fini(d);
}

void
persist_object_gone(struct broker *b, enum object_kind kind, uint64_t id)
{
	if (b->store != NULL)
		store_gone(b->store, kind, id);
}

static void
put_table(struct definition *d, const struct table *t)
{
	if (t != NULL)
		definition_put(d, DEF_ARGUMENTS, table_span(t));
}

static bool
exchange_is_kept(const struct exchange *x)
{
	return x->vhost->broker->store != NULL && x->durable && !exchange_is_predeclared(x);
}

void
persist_exchange(struct exchange *x)
{
	struct definition d = { 0 };

	if (!exchange_is_kept(x))
		return;
	definition_put(&d, DEF_NAME, span_of(x->name, x->name_len));
	definition_put(&d, DEF_VHOST, span_str(x->vhost->name));
	definition_put(&d, DEF_TYPE, span_str(exchange_type_name(x->type)));
	definition_put_number(&d, DEF_FLAGS,
	    (x->auto_delete ? DEF_AUTO_DELETE : 0u) | (x->internal ? DEF_INTERNAL : 0u));
	put_table(&d, x->arguments);
	persist_object(x->vhost->broker, OBJECT_EXCHANGE, x->id, &d);
}

void
persist_exchange_gone(struct exchange *x)
{
	if (exchange_is_kept(x))
		store_gone(x->vhost->broker->store, OBJECT_EXCHANGE, x->id);
}

int
sync_parse(struct span text, struct sync_setting *out)
{
	char buf[16];
	uint64_t ms;

	*out = (struct sync_setting){ 0 };
	if (span_is(text, "always")) {
		out->policy = SYNC_POLICY_ALWAYS;
		return 0;
	}
	if (span_is(text, "never")) {
		out->policy = SYNC_POLICY_NEVER;
		return 0;
	}
	if (text.n == 0 || text.n >= sizeof buf)
		return -EINVAL;
	memcpy(buf, text.p, text.n);
	buf[text.n] = '\0';
	if (strlen(buf) != text.n || units_parse_ms_unit(buf, &ms) != 0 || ms < 1 ||
	    ms > SYNC_MS_MAX)
		return -EINVAL;
	out->policy = SYNC_POLICY_MS;
	out->ms = (uint32_t)ms;
	return 0;
}

void
persist_strand_lane(struct strand *s)
{
	struct queue *q = s->queue;
	struct sync_setting sync;
	struct field f;

	if (q->broker->store == NULL || !q->durable)
		return;
	q->has_lanes = true;
	s->lane = lane_open(q->broker->store, q->id, s->priority, true, s);
	if (q->priorities != NULL)
		lane_set_share(s->lane, q->priorities->share);
	if (lane_next_seq(s->lane) > s->next_seq)
		s->next_seq = lane_next_seq(s->lane);
	if (table_find(table_span(q->arguments), "x-sync", &f) && f.kind == 'S' &&
	    sync_parse(f.bytes, &sync) == 0)
		lane_set_sync(s->lane, sync);
}

void
persist_queue_lanes(struct queue *q)
{
	struct store *store = q->broker->store;

	persist_strand_lane(&q->strand);
	if (store == NULL || !q->durable)
		return;
	for (uint32_t i = 1; i <= q->set.max_priority; i++) {
		if (lane_is_there(store, q->id, i))
			(void)queue_priority_strand(q, i);
	}
}

static void
put_queue(struct queue *q)
{
	struct definition d = { 0 };
	uint8_t ttl[TTL_STATE_MAX];
	struct span past;

	if (q->broker->store == NULL || !q->durable)
		return;
	definition_put(&d, DEF_NAME, span_of(q->name, q->name_len));
	definition_put(&d, DEF_VHOST, span_str(q->vhost->name));
	definition_put_number(&d, DEF_FLAGS,
	    (q->auto_delete ? DEF_AUTO_DELETE : 0u) | (q->is_paused ? DEF_PAUSED : 0u));
	put_table(&d, q->arguments);
	if ((past = queue_ttl_state(q, ttl)).n > 0)
		definition_put(&d, DEF_TTL, past);
	persist_object(q->broker, OBJECT_QUEUE, q->id, &d);
}

void
persist_queue_again(struct queue *q)
{
	put_queue(q);
}

void
persist_queue(struct queue *q)
{
	put_queue(q);
	persist_strand_lane(&q->strand);
}

void
persist_queue_gone(struct queue *q)
{
	if (q->broker->store != NULL && q->durable)
		store_gone(q->broker->store, OBJECT_QUEUE, q->id);
	for (struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s)) {
		if (s->lane != NULL)
			lane_close(&s->lane);
	}
}

static bool
binding_is_kept(const struct binding *b)
{
	return b->source->vhost->broker->store != NULL && binding_is_durable(b);
}

/* The exchanges of every vhost are made anew at each start: they are known by name alone. */
static void
put_exchange_name(struct definition *d, enum definition_tag name, enum definition_tag id,
    const struct exchange *x)
{
	definition_put(d, name, span_of(x->name, x->name_len));
	if (!exchange_is_predeclared(x))
		definition_put_number(d, id, x->id);
}

void
persist_binding(struct binding *b)
{
	struct definition d = { 0 };

	if (!binding_is_kept(b))
		return;
	definition_put(&d, DEF_VHOST, span_str(b->source->vhost->name));
	put_exchange_name(&d, DEF_SOURCE, DEF_SOURCE_ID, b->source);
	if (b->queue != NULL) {
		definition_put(&d, DEF_QUEUE, span_of(b->queue->name, b->queue->name_len));
		definition_put_number(&d, DEF_QUEUE_ID, b->queue->id);
	} else {
		put_exchange_name(&d, DEF_EXCHANGE, DEF_EXCHANGE_ID, b->exchange);
	}
	definition_put(&d, DEF_KEY, binding_key(b));
	put_table(&d, b->arguments);
	persist_object(b->source->vhost->broker, OBJECT_BINDING, b->id, &d);
}

void
persist_binding_gone(struct binding *b)
{
	if (binding_is_kept(b))
		store_gone(b->source->vhost->broker->store, OBJECT_BINDING, b->id);
}

static void
put_bindings_again(const struct store *s, struct exchange *x)
{
	struct binding *bind;

	LIST_FOREACH (bind, &x->bindings, source_link)
		if (store_is_lost(s, OBJECT_BINDING, bind->id))
			persist_binding(bind);
}

/* What the store says it lost, as it is now. This happens when a disk has lost what it had, and never else: so all are
 * asked, at once. */
static void
on_put_again(void *arg)
{
	struct broker *b = arg;
	struct exchange *x, *next_x;
	struct vhost *vh, *next;
	struct queue *q;

	persist_access_again(b);
	HASH_ITER(hh, b->vhosts, vh, next)
	{
		policies_put_again(vh);
		HASH_ITER(hh, vh->exchanges, x, next_x)
		{
			if (store_is_lost(b->store, OBJECT_EXCHANGE, x->id))
				persist_exchange(x);
			put_bindings_again(b->store, x);
		}
	}
	TAILQ_FOREACH (q, &b->queues, all_link)
		if (store_is_lost(b->store, OBJECT_QUEUE, q->id))
			put_queue(q);
}

const struct store_ops persist_store_ops = {
	.make = on_make,
	.ref = on_ref,
	.unref = on_unref,
	.describe = on_describe,
	.body_size = on_body_size,
	.spilled = on_spilled,
	.loaded = on_loaded,
	.load_done = on_load_done,
	.lost = on_lost,
	.put_again = on_put_again,
};

/* ---- waiting ---- */

struct store_wait
persist_objects_wait(const struct broker *b)
{
	return b->store != NULL ? store_objects_wait(b->store) : (struct store_wait){ 0 };
}

struct store_wait
persist_all_wait(struct broker *b)
{
	return b->store != NULL ? store_wait_all(b->store) : (struct store_wait){ 0 };
}

bool
persist_must_wait(const struct broker *b, struct store_wait w)
{
	return b->store != NULL && store_must_wait(b->store, w);
}

const char *
persist_hold(const struct broker *b)
{
	if (b->store == NULL)
		return NULL;
	if (b->disk_low)
		return "low on disk space";
	switch (store_hold(b->store)) {
	case STORE_FINE: return NULL;
	case STORE_BACKLOG: return "the disk does not keep up";
	case STORE_JOURNAL_FULL: return "the journal is full";
	case STORE_DISK_FULL: return "no disk space left";
	}
	return NULL;
}
