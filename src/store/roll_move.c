/* SPDX-License-Identifier: Apache-2.0
 * What becomes of the records of a journal file that is rolled: of each operation that is still the newest of what it
 * names the same is appended again, with the state as of now. Nothing here waits; what may not be moved now is tried
 * again in the next slice from where it was. */
#include "store/roll_priv.h"

#include <stdlib.h>

#include "base/mem.h"
#include "store/window_priv.h"

enum {
	SLICE_SLOTS = 100 * 1000, /* slots looked at a turn, after damage */
	TARGETS = 512,            /* of one message that are handled at once */
	KEYS = 1024               /* of a window that are appended in one operation */
};

/* Moved records are not waited for; the slot of their file is used again only when they are durable. */
static const struct sync_setting move_sync = { .policy = SYNC_POLICY_MS, .ms = 1000 };

static void
move_mark(struct roll *r, struct lane *l)
{
	lane_append_mark(l);
	roll_count_moved(r, OP_MARK_SIZE);
}

static const struct op_state no_state;

/* Targets that a message is appended again for. */
struct moving {
	uint32_t n, differing; /* differing: they have a state */
	struct lane *lane[TARGETS];
	struct op_target target[TARGETS];
	struct op_state state[TARGETS];
};

static void
pick(struct moving *g, struct lane *l, uint64_t seq)
{
	g->lane[g->n] = l;
	g->target[g->n] =
	    (struct op_target){ .queue = l->name.queue, .lane = l->name.lane, .seq = seq };
	g->state[g->n] = *lane_state(l, seq);
	if (!op_state_same(&g->state[g->n], &no_state))
		g->differing++;
	g->n++;
}

/* One MSG for all of them, with the state of the one, or that of nearly all, which is none; STATE for those that
 * differ. False: not now. */
static bool
move_message(struct roll *r, const struct moving *g, const struct op_msg *message, uint64_t old)
{
	struct store *s = r->store;
	uint32_t differing = g->n == 1 ? 0 : g->differing;
	struct op_msg m = *message;
	uint64_t size, lsn;
	uint8_t *p;

	m.target = g->target;
	m.targets = g->n;
	m.flags |= MSG_FLAG_COPY;
	m.state = g->n == 1 ? g->state[0] : no_state;
	size = op_msg_size(&m) + (uint64_t)differing * OP_STATE_SIZE;
	if (size > UINT32_MAX || !roll_may_move(r, record_size(size)))
		return false;
	p = store_append(s, (uint32_t)size, (uint16_t)(1 + differing), move_sync, &lsn);
	p = op_msg_encode(&m, p);
	for (uint32_t i = 0; i < g->n; i++)
		if (!op_state_same(&g->state[i], &m.state))
			p = op_state_encode(&(struct op_state_change){ .lane = g->lane[i]->name,
			                        .range = { g->target[i].seq, g->target[i].seq },
			                        .state = g->state[i] },
			    p);
	for (uint32_t i = 0; i < g->n; i++) {
		struct lane *l = g->lane[i];

		lane_set_lsn(l, lane_slot(l, g->target[i].seq), lsn);
		if (l->evidence == old && g->target[i].seq + 1 == l->next_seq)
			lane_set_evidence(l, lsn);
	}
	roll_count_moved(r, size);
	r->work += 2 * g->n;
	return true;
}

/* Those of a message's targets from target_at on that this record still stands for. */
static uint32_t
look_at_targets(struct roll *r, uint64_t lsn, const struct op_msg *m, struct moving *g)
{
	uint32_t end = m->targets - r->target_at > TARGETS ? r->target_at + TARGETS : m->targets;
	struct op_target t;

	g->n = g->differing = 0;
	for (uint32_t i = r->target_at; i < end; i++) {
		struct lane *l;
		struct slot *slot;

		op_msg_target(m, i, &t);
		l = lane_find(r->store, (struct op_lane){ .queue = t.queue, .lane = t.lane });
		r->work++;
		if (l == NULL)
			continue;
		slot = lane_slot(l, t.seq);
		if (slot == NULL || slot->lsn != lsn)
			continue;
		if (lane_weight(l) > r->limit)
			roll_want_spill(r, l, t.seq);
		else
			pick(g, l, t.seq);
	}
	return end;
}

/* Lanes whose evidence this record is. Not more than TARGETS. */
static void
move_evidence(struct roll *r, uint64_t lsn, const struct op_msg *m, uint32_t end)
{
	struct op_target t;

	for (uint32_t i = r->target_at; i < end; i++) {
		struct lane *l;

		op_msg_target(m, i, &t);
		l = lane_find(r->store, (struct op_lane){ .queue = t.queue, .lane = t.lane });
		r->work++;
		if (l != NULL && l->evidence == lsn)
			move_mark(r, l);
	}
}

static bool
walk_msg(struct roll *r, uint64_t lsn, struct span body)
{
	static struct moving g; /* core thread; too big for the stack */
	struct op_msg m;
	uint32_t end;

	if (op_msg_decode(body, &m) != 0 || r->target_at >= m.targets) {
		r->target_at = 0;
		return true;
	}
	do {
		end = look_at_targets(r, lsn, &m, &g);
		if (g.n > 0 && !move_message(r, &g, &m, lsn))
			return false;
		move_evidence(r, lsn, &m, end);
		r->target_at = end;
		if (end < m.targets && roll_slice_is_over(r))
			return false;
	} while (end < m.targets);
	r->target_at = 0;
	return true;
}

static bool
move_segment(struct roll *r, struct lane *l, struct segment *g)
{
	struct op_seg o = { .removed_n = g->removed.n, .exceptions = g->exceptions };
	uint64_t n = op_seg_size(&o);

	if (!roll_may_move(r, record_size(n)))
		return false;
	segment_append(l, g);
	roll_count_moved(r, n);
	return true;
}

static bool
walk_seg(struct roll *r, uint64_t lsn, struct span body)
{
	struct op_seg o;
	struct lane *l;
	struct segment *g;

	if (op_seg_decode(body, &o) != 0 || (l = lane_find(r->store, o.lane)) == NULL)
		return true;
	g = lane_segment(l, o.first);
	if (g != NULL && g->lsn == lsn && !move_segment(r, l, g))
		return false;
	if (l->evidence == lsn)
		move_mark(r, l);
	return true;
}

static bool
walk_mark(struct roll *r, uint64_t lsn, struct span body)
{
	struct op_mark o;
	struct lane *l;

	if (op_mark_decode(body, &o) != 0 || (l = lane_find(r->store, o.lane)) == NULL)
		return true;
	if (l->evidence != lsn && l->mark != lsn)
		return true;
	if (!roll_may_move(r, record_size(OP_MARK_SIZE)))
		return false;
	move_mark(r, l);
	return true;
}

static bool
walk_put(struct roll *r, uint64_t lsn, struct span body)
{
	struct op_object o;
	uint64_t n;

	if (op_object_decode(body, &o) != 0 || object_lsn(r->store, o.kind, o.id) != lsn)
		return true;
	n = op_object_size(&o);
	if (!roll_may_move(r, record_size(n)))
		return false;
	object_put_again(r->store, &o);
	roll_count_moved(r, n);
	return true;
}

/* All keys of the window from `first` on that stand in F, if one up to `last` does: most records have only one. False:
 * not now. */
static bool
move_keys(struct roll *r, struct window *w, uint64_t first, uint64_t last)
{
	static struct op_key key[KEYS]; /* core thread; too big for the stack */

	for (;;) {
		uint64_t at = first;
		uint32_t n = window_list(w, &at, last, r->file, key, KEYS);

		r->work++;
		if (n == 0)
			return true;
		if (!roll_may_move(r, record_size(op_dedup_size(n))))
			return false;
		window_append_again(w, at, key, n);
		roll_count_moved(r, op_dedup_size(n));
		r->work += n / 16;
	}
}

static bool
walk_dedup(struct roll *r, struct span body)
{
	struct op_dedup o;
	struct window *w;

	if (op_dedup_decode(body, &o) != 0 || (w = window_find(r->store, o.owner)) == NULL)
		return true;
	return move_keys(r, w, o.first, o.first + o.keys - 1);
}

/* False: not now. */
static bool
walk_op(struct roll *r, uint64_t lsn, const struct op *o)
{
	r->work++;
	switch (o->kind) {
	case OP_MSG: return walk_msg(r, lsn, o->body);
	case OP_SEG: return walk_seg(r, lsn, o->body);
	case OP_MARK: return walk_mark(r, lsn, o->body);
	case OP_PUT: return walk_put(r, lsn, o->body);
	case OP_DEDUP: return walk_dedup(r, o->body);
	default:
		return true; /* ACK, STATE: folded into what is moved; GONE: what it ended stands in F too */
	}
}

/* True: all of the piece is done. */
bool
roll_walk_piece(struct roll *r)
{
	struct piece *p = r->piece;

	while (r->record < p->records) {
		const struct record_at *at = &p->record[r->record];
		struct span payload = span_of(p->p + at->at, at->length);
		size_t next = r->op_at;
		struct op o;
		int error = 0;

		if (roll_slice_is_over(r))
			return false;
		if (!op_next(payload, &next, &o, &error)) {
			r->record++;
			r->op_at = 0;
			continue;
		}
		if (!walk_op(r, at->lsn, &o))
			return false;
		r->op_at = next;
	}
	return true;
}

/* ---- the search, after damage ---- */

/* A message of which only the item in memory is left. False: not now. */
static bool
move_from_memory(struct roll *r, struct lane *l, uint64_t seq, struct slot *slot)
{
	struct moving *g = xcalloc(1, sizeof *g);
	struct op_msg m = { 0 };
	bool moved;

	r->store->ops->describe(slot->item, &m);
	pick(g, l, seq);
	moved = move_message(r, g, &m, slot->lsn);
	free(g);
	return moved;
}

/* False: not now, or not all of them in this slice. */
static bool
search_slots(struct roll *r, struct lane *l, uint64_t *slots)
{
	bool is_big = lane_weight(l) > r->limit;
	uint64_t seq = r->cursor_seq > l->low ? r->cursor_seq : l->low;

	for (; seq < l->high; seq++) {
		struct slot *slot = lane_slot(l, seq);

		r->cursor_seq = seq;
		if (++*slots > SLICE_SLOTS)
			return false;
		if (slot == NULL || slot->lsn == 0 || lsn_file(slot->lsn) != r->file)
			continue;
		if (is_big)
			roll_want_spill(r, l, seq);
		else if (!move_from_memory(r, l, seq, slot))
			return false;
	}
	return true;
}

static bool
search_lane(struct roll *r, struct lane *l, uint64_t *slots)
{
	if (!search_slots(r, l, slots))
		return false;
	for (uint32_t i = 0; i < l->segments;) {
		struct segment *g = l->segment[i++];

		if (g->lsn == 0 || lsn_file(g->lsn) != r->file)
			continue;
		if (!move_segment(r, l, g))
			return false;
		i = 0; /* the chain may be another one now */
	}
	if (lsn_file(l->evidence) == r->file || lsn_file(l->mark) == r->file)
		move_mark(r, l);
	return true;
}

/* The cursor's lane is kept by a job of ours; when it was closed meanwhile it is in no list any more. */
static struct lane *
next_lane(struct roll *r)
{
	struct lane *l = r->cursor;

	if (l == NULL)
		return TAILQ_FIRST(&r->store->lanes);
	r->cursor = NULL;
	if (l->is_closed) {
		lane_unuse(l);
		r->cursor_seq = 0;
		return TAILQ_FIRST(&r->store->lanes);
	}
	l->jobs--;
	return l;
}

static void
keep_cursor(struct roll *r, struct lane *l)
{
	l->jobs++;
	r->cursor = l;
}

/* What was moved is not found again, so this begins anew each time. */
static bool
search_windows(struct roll *r)
{
	for (struct window *w = r->store->windows; w != NULL; w = w->hh.next)
		if (!move_keys(r, w, 0, UINT64_MAX))
			return false;
	return true;
}

/* True: all lanes and windows were gone through. */
bool
roll_search(struct roll *r)
{
	uint64_t slots = 0;
	struct lane *l;

	for (l = next_lane(r); l != NULL; l = TAILQ_NEXT(l, all_link)) {
		if (roll_slice_is_over(r) || !search_lane(r, l, &slots)) {
			keep_cursor(r, l);
			return false;
		}
		r->cursor_seq = 0;
		r->work++;
	}
	return search_windows(r);
}

void
roll_forget_cursor(struct roll *r)
{
	struct lane *l = r->cursor;

	r->cursor = NULL;
	r->cursor_seq = 0;
	if (l != NULL)
		lane_unuse(l);
}
