/* SPDX-License-Identifier: Apache-2.0
 * What a turn merges: acknowledgements, changed states and what was given out, per lane. They take effect at once and
 * are journalled by lane_flush(): at the end of the turn, or before anything that has to come after them. In an open record
 * (store_begin) they become part of it; but a MARK, which depends on nothing, waits for the turn's end. */
#include <assert.h>

#include "base/mem.h"
#include "store/lane.h"
#include "store/segment_file.h"
#include "store/store_priv.h"

enum {
	RANGES_MAX =
	    1024, /* merged ones before they are journalled early: adding to a longer array is slow */
	ACKS_OPS = 4096, /* in one record */
	STATE_OPS = 128,
	RELAXED_MS =
	    100 /* what nobody waits for is synced within it, where the policy is to sync at all */
};
#define ACKS_BYTES ((size_t)16 << 20)

/* Acknowledgements and the like wait for nothing, but are not to be lost for long. */
static struct sync_setting
relaxed(const struct lane *l)
{
	struct sync_setting sync = store_sync_of(l->store, l);

	/* In an open record they are as important as what is there with them. */
	if (sync.policy == SYNC_POLICY_ALWAYS && !l->store->record.is_open)
		return (struct sync_setting){ SYNC_POLICY_MS, RELAXED_MS };
	return sync;
}

void
lane_mark_dirty(struct lane *l)
{
	if (l->is_dirty || !l->durable || l->is_closed)
		return;
	l->is_dirty = true;
	TAILQ_INSERT_TAIL(&l->store->dirty, l, dirty_link);
}

static void
make_clean(struct lane *l)
{
	if (!l->is_dirty)
		return;
	l->is_dirty = false;
	TAILQ_REMOVE(&l->store->dirty, l, dirty_link);
}

void
lane_merged_in_chain(struct lane *l, uint64_t first, uint64_t last)
{
	if (l->chain_acks_to == 0 || first < l->chain_acks_from)
		l->chain_acks_from = first;
	if (last > l->chain_acks_to)
		l->chain_acks_to = last;
	lane_mark_dirty(l);
}

static void
clear_acks(struct lane *l)
{
	rangeset_clear(&l->acks);
	l->acks_count = l->acks_bytes = 0;
}

void
lane_forget_merged(struct lane *l)
{
	make_clean(l);
	clear_acks(l);
	l->chain_acks_from = l->chain_acks_to = 0;
	rangeset_clear(&l->changed);
	l->mark_is_due = false;
}

/* ---- ACK ---- */

static uint8_t *
encode_ack(
    const struct lane *l, const struct rangeset *set, uint64_t count, uint64_t bytes, uint8_t *p)
{
	struct op_ack a = {
		.lane = l->name,
		.reason = l->acks_reason,
		.count = count,
		.bytes = bytes,
		.range = set->r,
		.ranges = set->n,
	};

	return op_ack_encode(&a, p);
}

/* Those of segments [from, to) are journalled; from the last on, because some of them leave the array. */
static void
acks_done(struct lane *l, uint32_t from, uint32_t to, uint64_t lsn)
{
	while (to-- > from) {
		struct segment *g = l->segment[to];

		if (g->acks.n == 0)
			continue;
		rangeset_clear(&g->acks);
		g->acks_bytes = 0;
		if (g->live == 0)
			segment_doom(l, g, lsn);
	}
}

/* Segments [*from, *to) that have merged ones, as much as goes into a record that has *ops and *size already. */
static void
choose_segments(struct lane *l, uint32_t *from, uint32_t *to, uint32_t *ops, size_t *size)
{
	uint32_t i = l->chain_acks_to == 0 ? l->segments : segments_find(l, l->chain_acks_from);

	*from = i;
	for (; i < l->segments && l->segment[i]->first <= l->chain_acks_to; i++) {
		if (l->segment[i]->acks.n == 0)
			continue;
		if (*ops == ACKS_OPS || *size >= ACKS_BYTES) {
			*to = i;
			l->chain_acks_from = l->segment[i]->first;
			return;
		}
		*size += op_ack_size(l->segment[i]->acks.n);
		(*ops)++;
	}
	*to = i;
	l->chain_acks_from = l->chain_acks_to = 0;
}

/* One record with what is merged of memory and of segments. Returns false when there was nothing. */
static bool
flush_some_acks(struct lane *l)
{
	struct store *s = l->store;
	size_t size = l->acks.n > 0 ? op_ack_size(l->acks.n) : 0;
	uint32_t ops = l->acks.n > 0, from, to;
	uint64_t lsn;
	uint8_t *p;

	choose_segments(l, &from, &to, &ops, &size);
	if (ops == 0)
		return false;
	p = store_append(s, (uint32_t)size, (uint16_t)ops, relaxed(l), &lsn);
	if (l->acks.n > 0)
		p = encode_ack(l, &l->acks, l->acks_count, l->acks_bytes, p);
	for (uint32_t i = from; i < to; i++)
		if (l->segment[i]->acks.n > 0)
			p = encode_ack(l, &l->segment[i]->acks, l->segment[i]->acks.count,
			    l->segment[i]->acks_bytes, p);
	clear_acks(l);
	acks_done(l, from, to, lsn);
	return true;
}

static void
flush_acks(struct lane *l)
{
	while (flush_some_acks(l))
		;
}

/* Acknowledgements with different reasons are different operations. */
void
lane_acks_reason(struct lane *l, enum ack_reason reason)
{
	if (l->acks_reason == reason)
		return;
	if (l->is_dirty)
		flush_acks(l);
	l->acks_reason = reason;
}

void
lane_ack(struct lane *l, uint64_t seq, uint64_t body_bytes, enum ack_reason reason)
{
	struct slot *slot;

	lane_acks_reason(l, reason);
	if (seq <= l->chain_end || !l->durable) {
		if (segment_ack(l, seq, body_bytes))
			lane_mark_dirty(l);
		return;
	}
	slot = lane_slot(l, seq);
	if (slot == NULL)
		return;
	if (slot->lsn != 0) {
		rangeset_add(&l->acks, seq, seq);
		l->acks_count++;
		l->acks_bytes += body_bytes;
		lane_mark_dirty(l);
	}
	lane_clear(l, seq, slot, body_bytes);
	if (l->acks.n >= RANGES_MAX)
		flush_acks(l);
}

void
lane_ack_from(struct lane *l, uint64_t first, enum ack_reason reason)
{
	struct lane_cut cut;

	lane_acks_reason(l, reason);
	if (first <= l->chain_end && segments_ack_from(l, first) > 0)
		lane_mark_dirty(l);
	lane_clear_from(l, first, &cut);
	if (cut.count == 0)
		return;
	l->acks_count += cut.count;
	l->acks_bytes += cut.bytes;
	rangeset_add(&l->acks, cut.range.first, cut.range.last);
	lane_mark_dirty(l);
}

/* ---- STATE ---- */

void
lane_set_state(struct lane *l, uint64_t seq, const struct op_state *state)
{
	struct op_state_change c = { l->name, { seq, seq }, *state };
	struct slot *slot = lane_slot(l, seq);

	apply_state(l, &c);
	/* What was never journalled has its state in memory only, until it is spilled. */
	if (!l->durable || (slot != NULL && slot->lsn == 0))
		return;
	rangeset_add(&l->changed, seq, seq);
	lane_mark_dirty(l);
	if (l->changed.n >= RANGES_MAX)
		lane_flush(l);
}

/* False: it is not there any more. */
static bool
state_now(const struct lane *l, uint64_t seq, struct op_state *out)
{
	const struct op_state *state;
	const struct segment *g;

	if (seq > l->chain_end) {
		*out = *lane_state(l, seq);
		return lane_slot(l, seq) != NULL;
	}
	g = lane_segment(l, seq);
	if (g == NULL || rangeset_has(&g->removed, seq))
		return false;
	state = segment_state(g, seq);
	*out = state != NULL ? *state : (struct op_state){ 0 };
	return state != NULL;
}

static void
append_states(struct lane *l, const struct op_state_change *c, uint32_t n)
{
	uint64_t lsn;
	uint8_t *p;

	if (n == 0)
		return;
	p = store_append(l->store, n * OP_STATE_SIZE, (uint16_t)n, relaxed(l), &lsn);
	for (uint32_t i = 0; i < n; i++)
		p = op_state_encode(&c[i], p);
}

static void
flush_states(struct lane *l)
{
	struct op_state_change c[STATE_OPS];
	struct op_state state;
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->changed.n; i++) {
		for (uint64_t seq = l->changed.r[i].first; seq <= l->changed.r[i].last; seq++) {
			if (!state_now(l, seq, &state))
				continue;
			if (n > 0 && c[n - 1].range.last + 1 == seq &&
			    op_state_same(&c[n - 1].state, &state)) {
				c[n - 1].range.last = seq;
				continue;
			}
			if (n == STATE_OPS) {
				append_states(l, c, n);
				n = 0;
			}
			c[n++] = (struct op_state_change){ l->name, { seq, seq }, state };
		}
	}
	append_states(l, c, n);
	rangeset_clear(&l->changed);
}

/* ---- MARK ---- */

void
lane_mark_delivered(struct lane *l, uint64_t seq)
{
	const struct slot *slot;

	if (seq <= l->delivered)
		return;
	l->delivered = seq;
	slot = lane_slot(l, seq);
	/* What is only in memory needs no MARK, until it is spilled. */
	if (slot == NULL || slot->lsn != 0)
		lane_mark_is_due(l);
}

void
lane_mark_is_due(struct lane *l)
{
	if (!l->durable)
		return;
	l->mark_is_due = true;
	lane_mark_dirty(l);
}

/* Is anything alive that was given out? In chains it is not looked for. */
static bool
mark_matters(const struct lane *l)
{
	return l->delivered > 0 && (l->segments > 0 || (l->live > 0 && l->low <= l->delivered));
}

void
lane_append_mark(struct lane *l)
{
	struct op_mark m = { l->name, l->next_seq, l->delivered };
	uint64_t lsn;
	uint8_t *p = store_append(l->store, OP_MARK_SIZE, 1, relaxed(l), &lsn);

	assert(!l->store->record.is_open);
	op_mark_encode(&m, p);
	l->mark_is_due = false;
	apply_mark(l, &m, lsn);
}

void
lane_flush(struct lane *l)
{
	if (!l->is_dirty)
		return;
	flush_acks(l);
	flush_states(l);
	if (l->mark != 0 && !mark_matters(l))
		lane_move_hold(l->store, &l->mark, 0);
	if (l->mark_is_due && l->store->record.is_open)
		return;
	if (l->mark_is_due && mark_matters(l))
		lane_append_mark(l);
	l->mark_is_due = false;
	make_clean(l);
	if (l->live > 0)
		lane_shrink(l);
}
