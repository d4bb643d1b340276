/* SPDX-License-Identifier: Apache-2.0
 * Bytes of operations. Layouts (all little-endian, lengths in bytes):
 *	header	kind 1, version 1, flags 2, length 4
 *	MSG	targets 4, flags 1, prio 1, redelivered 1, spread 1 (was a zero once), arrived 8, expires 8, due 8, deliveries 4,
 *		acquired 4, names length 4, props length 4, body size 8; targets (queue 8, seq 8, lane 4); names;
 *		props; body
 *	ACK	queue 8, lane 4, reason 4, count 8, bytes 8, ranges 4, zero 4; ranges (first 8, last 8)
 *	STATE	queue 8, lane 4, redelivered 4, first 8, last 8, deliveries 4, acquired 4, zero 8
 *	MARK	queue 8, lane 4, zero 4, next seq 8, delivered 8
 *	PUT, GONE	kind 4, zero 4, id 8; state
 *	SEG	queue 8, lane 4, removed 4, exceptions 4, zero 4, first 8, last 8, end 8, live 8, bytes 8,
 *		latest expiry 8; removed (first 8, last 8); exceptions (first 8, last 8, redelivered 4, deliveries 4,
 *		acquired 4, zero 4)
 *	DEDUP	owner 8, first 8, size 4, keys 4; keys (hash 16, at 8)
 * A change raises the operation's version, and the decoder goes on reading the older ones. */
#include "store/op.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

enum { OP_VERSION = 1 };
enum {
	MSG_FIXED = 56,
	TARGET_SIZE = 20,
	ACK_FIXED = 40,
	RANGE_SIZE = 16,
	OBJECT_FIXED = 16,
	SEG_FIXED = 72,
	EXCEPTION_SIZE = 32,
	DEDUP_FIXED = 24,
	KEY_SIZE = 24
};

/* ---- numbers ---- */

static inline uint8_t *
put32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

static inline uint8_t *
put64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof v);
	return p + sizeof v;
}

static inline uint32_t
get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return le32toh(v);
}

static inline uint64_t
get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return le64toh(v);
}

static inline uint8_t *
put_bytes(uint8_t *p, struct span s)
{
	if (s.n > 0)
		memcpy(p, s.p, s.n);
	return p + s.n;
}

static inline uint8_t *
put_header(uint8_t *p, enum op_kind kind, size_t size)
{
	assert(size >= OP_HEADER && size - OP_HEADER <= UINT32_MAX);
	p[0] = (uint8_t)kind;
	p[1] = OP_VERSION;
	p[2] = p[3] = 0;
	return put32(p + 4, (uint32_t)(size - OP_HEADER));
}

static bool
is_seq(uint64_t seq)
{
	return seq >= 1 && seq <= SEQ_MAX;
}

/* ---- encoding ---- */

size_t
op_msg_size(const struct op_msg *m)
{
	return OP_HEADER + MSG_FIXED + (size_t)m->targets * TARGET_SIZE + m->names.n + m->props.n +
	       m->body_size;
}

uint8_t *
op_msg_encode(const struct op_msg *m, uint8_t *to)
{
	uint8_t *p = put_header(to, OP_MSG, op_msg_size(m));

	p = put32(p, m->targets);
	*p++ = m->flags;
	*p++ = m->prio;
	*p++ = m->state.redelivered;
	*p++ = m->spread;
	p = put64(p, m->arrived_ms);
	p = put64(p, m->expires_ms);
	p = put64(p, m->due_ms);
	p = put32(p, m->state.deliveries);
	p = put32(p, m->state.acquired);
	p = put32(p, (uint32_t)m->names.n);
	p = put32(p, (uint32_t)m->props.n);
	p = put64(p, m->body_size);
	for (uint32_t i = 0; i < m->targets; i++) {
		p = put64(p, m->target[i].queue);
		p = put64(p, m->target[i].seq);
		p = put32(p, m->target[i].lane);
	}
	p = put_bytes(p, m->names);
	p = put_bytes(p, m->props);
	if (m->body.p != NULL) {
		assert(m->body.n == m->body_size);
		return put_bytes(p, m->body);
	}
	if (m->body_size > 0)
		m->copy_body(m->item, p);
	return p + m->body_size;
}

static uint8_t *
put_lane(uint8_t *p, struct op_lane lane)
{
	return put32(put64(p, lane.queue), lane.lane);
}

static uint8_t *
put_ranges(uint8_t *p, const struct range *r, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		p = put64(put64(p, r[i].first), r[i].last);
	return p;
}

size_t
op_ack_size(uint32_t ranges)
{
	return OP_HEADER + ACK_FIXED + (size_t)ranges * RANGE_SIZE;
}

uint8_t *
op_ack_encode(const struct op_ack *a, uint8_t *to)
{
	uint8_t *p = put_header(to, OP_ACK, op_ack_size(a->ranges));

	p = put_lane(p, a->lane);
	p = put32(p, a->reason);
	p = put64(p, a->count);
	p = put64(p, a->bytes);
	p = put32(p, a->ranges);
	p = put32(p, 0);
	return put_ranges(p, a->range, a->ranges);
}

uint8_t *
op_state_encode(const struct op_state_change *s, uint8_t *to)
{
	uint8_t *p = put_header(to, OP_STATE, OP_STATE_SIZE);

	p = put_lane(p, s->lane);
	p = put32(p, s->state.redelivered);
	p = put64(p, s->range.first);
	p = put64(p, s->range.last);
	p = put32(p, s->state.deliveries);
	p = put32(p, s->state.acquired);
	return put64(p, 0);
}

uint8_t *
op_mark_encode(const struct op_mark *m, uint8_t *to)
{
	uint8_t *p = put_header(to, OP_MARK, OP_MARK_SIZE);

	p = put_lane(p, m->lane);
	p = put32(p, 0);
	p = put64(p, m->next_seq);
	return put64(p, m->delivered);
}

size_t
op_object_size(const struct op_object *o)
{
	return OP_HEADER + OBJECT_FIXED + o->state.n;
}

static uint8_t *
object_encode(const struct op_object *o, enum op_kind kind, uint8_t *to)
{
	uint8_t *p = put_header(to, kind, op_object_size(o));

	p = put32(p, o->kind);
	p = put32(p, 0);
	p = put64(p, o->id);
	return put_bytes(p, o->state);
}

uint8_t *
op_put_encode(const struct op_object *o, uint8_t *to)
{
	return object_encode(o, OP_PUT, to);
}

uint8_t *
op_gone_encode(const struct op_object *o, uint8_t *to)
{
	assert(o->state.n == 0);
	return object_encode(o, OP_GONE, to);
}

size_t
op_seg_size(const struct op_seg *s)
{
	return OP_HEADER + SEG_FIXED + (size_t)s->removed_n * RANGE_SIZE +
	       (size_t)s->exceptions * EXCEPTION_SIZE;
}

uint8_t *
op_seg_encode(const struct op_seg *s, uint8_t *to)
{
	uint8_t *p = put_header(to, OP_SEG, op_seg_size(s));

	p = put_lane(p, s->lane);
	p = put32(p, s->removed_n);
	p = put32(p, s->exceptions);
	p = put32(p, 0);
	p = put64(p, s->first);
	p = put64(p, s->last);
	p = put64(p, s->end);
	p = put64(p, s->live);
	p = put64(p, s->bytes);
	p = put64(p, s->latest_expiry_ms);
	p = put_ranges(p, s->removed, s->removed_n);
	for (uint32_t i = 0; i < s->exceptions; i++) {
		const struct op_seg_exception *e = &s->exception[i];

		p = put_ranges(p, &e->range, 1);
		p = put32(p, e->state.redelivered);
		p = put32(p, e->state.deliveries);
		p = put32(p, e->state.acquired);
		p = put32(p, 0);
	}
	return p;
}

size_t
op_dedup_size(uint32_t keys)
{
	return OP_HEADER + DEDUP_FIXED + (size_t)keys * KEY_SIZE;
}

uint8_t *
op_dedup_encode(const struct op_dedup *d, uint8_t *to)
{
	uint8_t *p = put_header(to, OP_DEDUP, op_dedup_size(d->keys));

	p = put64(p, d->owner);
	p = put64(p, d->first);
	p = put32(p, d->size);
	p = put32(p, d->keys);
	for (uint32_t i = 0; i < d->keys; i++) {
		p = put64(p, d->key[i].hash[0]);
		p = put64(p, d->key[i].hash[1]);
		p = put64(p, d->key[i].at_ms);
	}
	return p;
}

/* ---- decoding ---- */

bool
op_next(struct span payload, size_t *at, struct op *out, int *error)
{
	*error = 0;
	while (*at < payload.n) {
		const uint8_t *p = payload.p + *at;
		size_t left = payload.n - *at;
		uint16_t flags;

		if (left < OP_HEADER || get32(p + 4) > left - OP_HEADER) {
			*error = -EBADMSG;
			return false;
		}
		flags = (uint16_t)(p[2] | p[3] << 8);
		*at += OP_HEADER + get32(p + 4);
		if (p[0] >= OP_MSG && p[0] <= OP_DEDUP && p[1] == OP_VERSION) {
			out->kind = (enum op_kind)p[0];
			out->flags = flags;
			out->body = span_of(p + OP_HEADER, get32(p + 4));
			return true;
		}
		if ((flags & OP_SKIP) == 0) {
			*error = p[0] == 0 || p[1] == 0 ? -EBADMSG : -EPROTONOSUPPORT;
			return false;
		}
	}
	return false;
}

/* Exchange and routing key: two short strings and nothing behind them. */
static bool
names_are_right(struct span names)
{
	size_t exchange = names.n > 0 ? 1 + (size_t)names.p[0] : 0;

	return exchange > 0 && exchange < names.n && exchange + 1 + names.p[exchange] == names.n;
}

int
op_msg_decode(struct span body, struct op_msg *out)
{
	const uint8_t *p = body.p;
	struct op_msg m = { 0 };
	uint64_t names, props, left;
	struct op_target t;

	if (body.n < MSG_FIXED)
		return -EBADMSG;
	m.targets = get32(p);
	m.flags = p[4];
	m.prio = p[5];
	m.state.redelivered = p[6] != 0;
	m.spread = p[7];
	m.arrived_ms = get64(p + 8);
	m.expires_ms = get64(p + 16);
	m.due_ms = get64(p + 24);
	m.state.deliveries = get32(p + 32);
	m.state.acquired = get32(p + 36);
	names = get32(p + 40);
	props = get32(p + 44);
	m.body_size = get64(p + 48);
	left = body.n - MSG_FIXED;
	if (m.targets == 0 || m.targets > left / TARGET_SIZE)
		return -EBADMSG;
	left -= (uint64_t)m.targets * TARGET_SIZE;
	if (names > left || props > left - names || m.body_size != left - names - props)
		return -EBADMSG;
	m.raw_targets = p + MSG_FIXED;
	p += MSG_FIXED + (size_t)m.targets * TARGET_SIZE;
	m.names = span_of(p, names);
	m.props = span_of(p + names, props);
	m.body = span_of(p + names + props, m.body_size);
	if (!names_are_right(m.names))
		return -EBADMSG;
	for (uint32_t i = 0; i < m.targets; i++) {
		op_msg_target(&m, i, &t);
		if (!is_seq(t.seq))
			return -EBADMSG;
	}
	*out = m;
	return 0;
}

void
op_msg_target(const struct op_msg *m, uint32_t i, struct op_target *out)
{
	const uint8_t *p = m->raw_targets + (size_t)i * TARGET_SIZE;

	out->queue = get64(p);
	out->seq = get64(p + 8);
	out->lane = get32(p + 16);
}

static struct op_lane
get_lane(const uint8_t *p)
{
	return (struct op_lane){ get64(p), get32(p + 8) };
}

void
op_range(const uint8_t *raw, uint32_t i, struct range *out)
{
	out->first = get64(raw + (size_t)i * RANGE_SIZE);
	out->last = get64(raw + (size_t)i * RANGE_SIZE + 8);
}

/* n ranges, each `size` bytes with what follows it: ascending, apart, within first..last. count: numbers in them. */
static bool
ranges_are_right(const uint8_t *raw, uint32_t n, size_t size, struct range bounds, uint64_t *count)
{
	uint64_t next = bounds.first;
	struct range r;

	*count = 0;
	for (uint32_t i = 0; i < n; i++) {
		op_range(raw + (size_t)i * size, 0, &r);
		if (r.first < next || r.last < r.first || r.last > bounds.last)
			return false;
		*count += r.last - r.first + 1;
		next = r.last + 1;
	}
	return true;
}

int
op_ack_decode(struct span body, struct op_ack *out)
{
	const uint8_t *p = body.p;
	struct op_ack a = { 0 };
	uint64_t seqs;

	if (body.n < ACK_FIXED)
		return -EBADMSG;
	a.lane = get_lane(p);
	a.reason = (enum ack_reason)get32(p + 12);
	a.count = get64(p + 16);
	a.bytes = get64(p + 24);
	a.ranges = get32(p + 32);
	a.raw = p + ACK_FIXED;
	if (get32(p + 12) > ACK_MOVED || a.ranges == 0 ||
	    body.n - ACK_FIXED != (uint64_t)a.ranges * RANGE_SIZE)
		return -EBADMSG;
	if (!ranges_are_right(a.raw, a.ranges, RANGE_SIZE, (struct range){ 1, SEQ_MAX }, &seqs) ||
	    a.count > seqs)
		return -EBADMSG;
	*out = a;
	return 0;
}

int
op_state_decode(struct span body, struct op_state_change *out)
{
	const uint8_t *p = body.p;
	uint64_t seqs;

	if (body.n != OP_STATE_SIZE - OP_HEADER ||
	    !ranges_are_right(p + 16, 1, RANGE_SIZE, (struct range){ 1, SEQ_MAX }, &seqs))
		return -EBADMSG;
	out->lane = get_lane(p);
	op_range(p + 16, 0, &out->range);
	out->state = (struct op_state){ get32(p + 12) != 0, get32(p + 32), get32(p + 36) };
	return 0;
}

int
op_mark_decode(struct span body, struct op_mark *out)
{
	const uint8_t *p = body.p;

	if (body.n != OP_MARK_SIZE - OP_HEADER || !is_seq(get64(p + 16)) ||
	    get64(p + 24) >= get64(p + 16))
		return -EBADMSG;
	out->lane = get_lane(p);
	out->next_seq = get64(p + 16);
	out->delivered = get64(p + 24);
	return 0;
}

int
op_object_decode(struct span body, struct op_object *out)
{
	const uint8_t *p = body.p;

	if (body.n < OBJECT_FIXED || get32(p) == 0)
		return -EBADMSG;
	if (get32(p) >= OBJECT_KINDS)
		return -EPROTONOSUPPORT;
	out->kind = (enum object_kind)get32(p);
	out->id = get64(p + 8);
	out->state = span_of(p + OBJECT_FIXED, body.n - OBJECT_FIXED);
	return 0;
}

void
op_exception(const uint8_t *raw, uint32_t i, struct op_seg_exception *out)
{
	const uint8_t *p = raw + (size_t)i * EXCEPTION_SIZE;

	op_range(p, 0, &out->range);
	out->state = (struct op_state){ get32(p + 16) != 0, get32(p + 20), get32(p + 24) };
}

int
op_seg_decode(struct span body, struct op_seg *out)
{
	const uint8_t *p = body.p;
	struct op_seg s = { 0 };
	struct range bounds;
	uint64_t removed, excepted, left;

	if (body.n < SEG_FIXED)
		return -EBADMSG;
	s.lane = get_lane(p);
	s.removed_n = get32(p + 12);
	s.exceptions = get32(p + 16);
	s.first = get64(p + 24);
	s.last = get64(p + 32);
	s.end = get64(p + 40);
	s.live = get64(p + 48);
	s.bytes = get64(p + 56);
	s.latest_expiry_ms = get64(p + 64);
	s.raw_removed = p + SEG_FIXED;
	left = body.n - SEG_FIXED;
	if (!is_seq(s.first) || !is_seq(s.last) || s.first > s.last ||
	    s.removed_n > left / RANGE_SIZE)
		return -EBADMSG;
	left -= (uint64_t)s.removed_n * RANGE_SIZE;
	s.raw_exceptions = s.raw_removed + (size_t)s.removed_n * RANGE_SIZE;
	if (left != (uint64_t)s.exceptions * EXCEPTION_SIZE)
		return -EBADMSG;
	bounds = (struct range){ s.first, s.last };
	if (!ranges_are_right(s.raw_removed, s.removed_n, RANGE_SIZE, bounds, &removed) ||
	    !ranges_are_right(s.raw_exceptions, s.exceptions, EXCEPTION_SIZE, bounds, &excepted))
		return -EBADMSG;
	if (s.live != s.last - s.first + 1 - removed)
		return -EBADMSG;
	*out = s;
	return 0;
}

void
op_key(const uint8_t *raw, uint32_t i, struct op_key *out)
{
	const uint8_t *p = raw + (size_t)i * KEY_SIZE;

	out->hash[0] = get64(p);
	out->hash[1] = get64(p + 8);
	out->at_ms = get64(p + 16);
}

int
op_dedup_decode(struct span body, struct op_dedup *out)
{
	const uint8_t *p = body.p;
	struct op_dedup d = { 0 };
	struct op_key key;

	if (body.n < DEDUP_FIXED)
		return -EBADMSG;
	d.owner = get64(p);
	d.first = get64(p + 8);
	d.size = get32(p + 16);
	d.keys = get32(p + 20);
	d.raw = p + DEDUP_FIXED;
	if (d.size == 0 || d.size > OP_DEDUP_MAX || d.keys == 0 ||
	    body.n - DEDUP_FIXED != (uint64_t)d.keys * KEY_SIZE || !is_seq(d.first) ||
	    d.keys - 1 > SEQ_MAX - d.first)
		return -EBADMSG;
	for (uint32_t i = 0; i < d.keys; i++) {
		op_key(d.raw, i, &key);
		if (key.at_ms == 0)
			return -EBADMSG;
	}
	*out = d;
	return 0;
}
