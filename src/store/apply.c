/* SPDX-License-Identifier: Apache-2.0
 * What operations do. Live code appends an operation and calls these; recovery reads it and calls the same. Values are
 * absolute, nothing here looks at the clock, at a setting or at chance, and what names something that is gone or not
 * known does nothing: its newest record comes later, or it has none because it is dead.
 *
 * Acknowledgements are the exception: live, they take effect one by one before they are journalled together (merge.c),
 * by the same two steps: lane_clear() for what is in memory, segments.c for what is in the chain. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "store/lane.h"
#include "store/segment_file.h"
#include "store/store_priv.h"

/* ---- MSG ---- */

void
lane_enter(struct lane *l, uint64_t seq, void *item, uint64_t lsn)
{
	lane_put_slot(l, seq, item, lsn);
	if (seq + 1 == l->next_seq && lsn != LSN_OPEN)
		lane_set_evidence(l, lsn);
}

/* Is it to have a slot, and has none? */
static bool
is_wanted(const struct lane *l, uint64_t seq)
{
	return seq > l->chain_end && lane_slot(l, seq) == NULL;
}

void
apply_msg(struct store *s, const struct op_target *t, void *item, uint64_t lsn)
{
	struct lane *l = lane_get(s, (struct op_lane){ t->queue, t->lane });
	struct slot *slot;

	if (t->seq <= l->chain_end)
		return;
	slot = lane_slot(l, t->seq);
	if (slot == NULL) {
		if (l->owns_items)
			s->ops->ref(item);
		lane_enter(l, t->seq, item, lsn);
		return;
	}
	/* A copy: the later record counts. */
	lane_set_lsn(l, slot, lsn);
	if (t->seq + 1 == l->next_seq)
		lane_set_evidence(l, lsn);
}

/* No lane has such a gap in memory. */
static void
too_far(const struct lane *l, uint64_t seq)
{
	l->store->stats.damaged++;
	log_error("store: message %" PRIu64 " of queue %" PRIu64 " lane %" PRIu32
	          " is far from all others; it is left out",
	    seq, l->name.queue, l->name.lane);
}

static int
recover_msg(struct store *s, const struct op_msg *m, uint64_t lsn)
{
	struct op_target t;
	struct lane *l;
	void *item = NULL;
	int error = 0;

	for (uint32_t i = 0; i < m->targets && error == 0; i++) {
		op_msg_target(m, i, &t);
		l = lane_get(s, (struct op_lane){ t.queue, t.lane });
		if (is_wanted(l, t.seq)) {
			if (!lane_is_near(l, t.seq)) {
				too_far(l, t.seq);
				continue;
			}
			if (item == NULL)
				item = s->ops->make(s->arg, m);
			if (item == NULL || !lane_try_room(l, t.seq)) {
				error = -ENOMEM;
				break;
			}
		}
		apply_msg(s, &t, item, lsn);
		if (lane_slot(l, t.seq) != NULL)
			lane_put_state(l, t.seq, &m->state);
	}
	if (item != NULL)
		s->ops->unref(item);
	return error;
}

/* ---- ACK ---- */

static void
ack_in_chain(struct lane *l, struct range r, uint64_t *bytes)
{
	uint32_t i = segments_find(l, r.first);

	while (i < l->segments && l->segment[i]->first <= r.last) {
		struct segment *g = l->segment[i];

		/* The bytes are of all ranges together, which lie in one segment. */
		if (segment_remove(l, g, r.first, r.last, *bytes) > 0)
			*bytes = 0;
		if (g->live == 0)
			segment_doom(l, g, 0);
		if (i < l->segments && l->segment[i] == g)
			i++;
	}
}

static void
ack_in_memory(struct lane *l, struct range r)
{
	uint64_t seq = r.first > l->low ? r.first : l->low;

	for (; l->live > 0 && seq <= r.last && seq < l->high; seq++)
		lane_clear_slot(l, seq);
}

void
apply_ack(struct lane *l, const struct op_ack *a)
{
	uint64_t bytes = a->bytes;
	struct range r;

	for (uint32_t i = 0; i < a->ranges; i++) {
		op_range(a->raw, i, &r);
		if (r.first <= l->chain_end)
			ack_in_chain(l, r, &bytes);
		if (r.last > l->chain_end)
			ack_in_memory(l, r);
	}
}

/* ---- STATE, MARK, SEG ---- */

void
apply_state(struct lane *l, const struct op_state_change *c)
{
	uint64_t seq = c->range.first > l->low ? c->range.first : l->low;

	if (c->range.first <= l->chain_end)
		for (uint32_t i = segments_find(l, c->range.first);
		     i < l->segments && l->segment[i]->first <= c->range.last; i++)
			segment_set_state(l->segment[i], c->range, &c->state);
	for (; seq <= c->range.last && seq < l->high; seq++)
		if (lane_slot(l, seq) != NULL)
			lane_put_state(l, seq, &c->state);
}

void
apply_mark(struct lane *l, const struct op_mark *m, uint64_t lsn)
{
	if (l->next_seq < m->next_seq)
		l->next_seq = m->next_seq;
	if (l->delivered < m->delivered)
		l->delivered = m->delivered;
	lane_set_evidence(l, lsn);
	lane_move_hold(l->store, &l->mark, lsn);
}

void
apply_seg(struct lane *l, const struct op_seg *g, uint64_t lsn)
{
	uint64_t chain_end = l->chain_end;

	if (segment_put(l, g, lsn) == NULL)
		return;
	lane_clear_through(l, g->last);
	if (g->last + 1 == l->next_seq && lsn != 0)
		lane_set_evidence(
		    l, lsn); /* the last ones may have no MSG: they were not persistent */
	if (!l->store->recovering && l->delivered > chain_end)
		lane_mark_is_due(l);
}

/* ---- recovery ---- */

union any_op {
	struct op_msg msg;
	struct op_ack ack;
	struct op_state_change state;
	struct op_mark mark;
	struct op_object object;
	struct op_seg seg;
	struct op_dedup dedup;
};

static int
decode(const struct op *op, union any_op *out)
{
	switch (op->kind) {
	case OP_MSG: return op_msg_decode(op->body, &out->msg);
	case OP_ACK: return op_ack_decode(op->body, &out->ack);
	case OP_STATE: return op_state_decode(op->body, &out->state);
	case OP_MARK: return op_mark_decode(op->body, &out->mark);
	case OP_PUT:
	case OP_GONE: return op_object_decode(op->body, &out->object);
	case OP_SEG: return op_seg_decode(op->body, &out->seg);
	case OP_DEDUP: return op_dedup_decode(op->body, &out->dedup);
	}
	return -EPROTONOSUPPORT;
}

/* Ids are given out in order: none that stands anywhere is given out again. */
static void
saw_id(struct store *s, uint64_t id)
{
	if (id != UINT64_MAX && s->next_id <= id)
		s->next_id = id + 1;
}

static int
apply_one(struct store *s, const struct op *op, const union any_op *o, uint64_t lsn)
{
	struct lane *l;

	switch (op->kind) {
	case OP_MSG: return recover_msg(s, &o->msg, lsn);
	case OP_ACK:
		l = lane_find(s, o->ack.lane);
		if (l != NULL)
			apply_ack(l, &o->ack);
		break;
	case OP_STATE:
		l = lane_find(s, o->state.lane);
		if (l != NULL)
			apply_state(l, &o->state);
		break;
	case OP_MARK: apply_mark(lane_get(s, o->mark.lane), &o->mark, lsn); break;
	case OP_SEG: apply_seg(lane_get(s, o->seg.lane), &o->seg, lsn); break;
	case OP_PUT:
		saw_id(s, o->object.id);
		apply_put(s, &o->object, lsn);
		break;
	case OP_GONE:
		saw_id(s, o->object.id);
		apply_gone(s, &o->object);
		break;
	case OP_DEDUP: apply_dedup(s, &o->dedup, lsn); break;
	}
	return 0;
}

/* All of a record is right or none of it counts. A single operation is looked at when it is applied. */
static int
check_record(struct span payload)
{
	union any_op o;
	struct op op;
	size_t at = 0;
	int error;

	while (op_next(payload, &at, &op, &error)) {
		if (at == payload.n && op.body.p == payload.p + OP_HEADER)
			return 0;
		error = decode(&op, &o);
		if (error != 0)
			return error;
	}
	return error;
}

/* Nothing of the record was applied yet. */
static int
leave_out(struct store *s, uint64_t lsn)
{
	s->stats.damaged++;
	log_error("store: a record of journal file %" PRIu32 ", offset %" PRIu32
	          ", has no right form; it is left out",
	    lsn_file(lsn), lsn_at(lsn));
	return 0;
}

int
apply_record(struct store *s, uint64_t lsn, struct span payload)
{
	int error = check_record(payload);
	union any_op o;
	struct op op;
	size_t at = 0;

	while (error == 0 && op_next(payload, &at, &op, &error)) {
		error = decode(&op, &o);
		if (error == 0)
			error = apply_one(s, &op, &o, lsn);
	}
	return error == -EBADMSG ? leave_out(s, lsn) : error;
}
