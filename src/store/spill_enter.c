/* SPDX-License-Identifier: Apache-2.0
 * A file that a spill wrote enters the chain: what was acknowledged meanwhile goes into SEG's removed set, what was
 * requeued into its exceptions. SEG is appended, and applied from its bytes, as recovery would. */
#include "store/spill_priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool
is_alive(const struct spill *sp, const struct spill_item *it)
{
	const struct slot *slot;

	if (!sp->lane->durable)
		return !rangeset_has(&sp->acked, it->seq);
	slot = lane_slot(sp->lane, it->seq);
	return slot != NULL && slot->item == it->item;
}

/* A segment as it will be, made in one that belongs to no chain, so that live code applies what recovery would. */
struct draft {
	struct segment g;
	uint64_t added, added_bytes; /* live ones of this job */
};

static void
draft_begin(struct draft *d, const struct spill *sp, const struct spill_file *f)
{
	const struct segment *was = sp->continued;
	uint32_t i;

	memset(d, 0, sizeof *d);
	d->g.first = f->first;
	if (f->is_continued) {
		d->g.first = was->first;
		d->g.live = was->live;
		d->g.bytes = was->bytes;
		d->g.latest_expiry_ms = was->latest_expiry_ms;
		for (i = 0; i < was->removed.n; i++)
			rangeset_add(
			    &d->g.removed, was->removed.r[i].first, was->removed.r[i].last);
		if (f->first > was->last + 1)
			rangeset_add(&d->g.removed, was->last + 1, f->first - 1);
	}
	d->g.last = f->last;
	d->g.end = f->end;
	if (f->never_expires || (f->is_continued && was->latest_expiry_ms == 0))
		d->g.latest_expiry_ms = 0;
	else if (f->latest_expiry_ms > d->g.latest_expiry_ms)
		d->g.latest_expiry_ms = f->latest_expiry_ms;
	for (i = 0; f->is_continued && i < was->exceptions; i++)
		segment_set_state(&d->g, was->exception[i].range, &was->exception[i].state);
}

static void
draft_fill(struct draft *d, const struct spill *sp, const struct spill_file *f)
{
	uint64_t gone_from = f->first;
	uint32_t i;

	for (i = f->item; i < f->item + f->items; i++) {
		const struct spill_item *it = &sp->item[i];
		const struct op_state *state;

		if (!is_alive(sp, it))
			continue;
		if (it->seq > gone_from)
			rangeset_add(&d->g.removed, gone_from, it->seq - 1);
		gone_from = it->seq + 1;
		d->added++;
		d->added_bytes += it->bytes;
		state = sp->lane->durable ? lane_state(sp->lane, it->seq) : &it->state;
		if (!op_state_same(state, &it->state))
			segment_set_state(&d->g, (struct range){ it->seq, it->seq }, state);
	}
	if (gone_from <= f->last)
		rangeset_add(&d->g.removed, gone_from, f->last);
	d->g.live += d->added;
	d->g.bytes += d->added_bytes;
}

/* Appended (durable lanes), and applied from its bytes. */
static struct segment *
draft_apply(struct draft *d, struct lane *l)
{
	struct segment *g;
	struct op_seg o;
	size_t n, at = 0;
	uint8_t *p = seg_encode(l, &d->g, &n);
	uint64_t lsn = l->durable ? seg_append(l->store, p, n) : 0;
	int error = 0;
	struct op op;

	if (!op_next(span_of(p, n), &at, &op, &error) || op.kind != OP_SEG ||
	    op_seg_decode(op.body, &o) != 0)
		abort(); /* we made it just now */
	apply_seg(l, &o, lsn);
	free(p);
	g = segment_by_first(l, d->g.first);
	assert(g != NULL && g->last == d->g.last && l->chain_end == g->last);
	return g;
}

static void
count_unread_before(struct lane *l, uint64_t first, uint64_t last)
{
	uint32_t i;

	reader_reset(l);
	for (i = segments_find(l, first); i < l->segments && l->segment[i]->first <= last; i++) {
		l->unread += segment_live_in(l->segment[i], first, last);
		l->unread_bytes += segment_bytes_in(l->segment[i], first, last);
	}
}

/* The owner lets go of what it does not want to keep; what it let go is unread from then on. */
static void
hand_over(
    struct spill *sp, const struct spill_file *f, const struct draft *d, const struct segment *g)
{
	struct lane *l = sp->lane;
	bool is_behind = l->unread > 0 || !l->is_linked; /* without an owner nothing is read */
	uint64_t from;
	uint32_t i;

	if (is_behind) {
		l->unread += d->added;
		l->unread_bytes += d->added_bytes;
		if (l->is_linked)
			(void)sp->store->ops->spilled(l, f->last, true);
		return;
	}
	from = sp->store->ops->spilled(l, f->last, false);
	l->read_seq = from <= f->last ? from : f->last + 1;
	if (from < f->first) /* it also let go of what was in the chain before */
		count_unread_before(l, from, f->first - 1);
	for (i = f->item; i < f->item + f->items; i++) {
		const struct spill_item *it = &sp->item[i];

		if (it->seq < l->read_seq || rangeset_has(&g->removed, it->seq))
			continue;
		if (l->unread == 0)
			reader_starts_at(l, g, it->at);
		l->unread++;
		l->unread_bytes += it->bytes;
	}
}

void
spill_enter_file(struct spill *sp, const struct spill_file *f)
{
	struct lane *l = sp->lane;
	struct segment *g;
	struct draft d;

	lane_flush(l); /* may doom segments, but not this one */
	draft_begin(&d, sp, f);
	draft_fill(&d, sp, f);
	if (d.added == 0) {
		if (!f->is_continued)
			segment_unlink(sp->store, f->name);
	} else {
		g = draft_apply(&d, l);
		segment_set_file(g, f->end, f->messages, f->is_closed);
		g->users++; /* the owner may acknowledge at once; g is looked at afterwards */
		hand_over(sp, f, &d, g);
		g->users--;
		sp->store->stats.spilled += d.added;
	}
	rangeset_fini(&d.g.removed);
	free(d.g.exception);
}
