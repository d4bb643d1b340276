/* SPDX-License-Identifier: Apache-2.0
 * The chain of a lane as memory knows it: some 200 bytes a segment, the set of seqs that are gone from it, and what changed
 * since its file was written. Everything that changes a segment goes through here, so that the sums over all chains (which
 * say when to rewrite) follow.
 *
 * A segment's life: segment_put() when its SEG is applied; more of it by further spills; acknowledgements empty it;
 * segment_doom() takes it out of the chain when nothing lives; segments_reap() has its file unlinked once the last
 * acknowledgement is durable (a crash before would bring the segment back, and then its file has to be there) and no job
 * has it open. */
#include "store/lane.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/segment_file.h"
#include "store/store_priv.h"

enum {
	RECORD_LEAST = 64 /* what a message without names and properties takes beside its body */
};

/* ---- sums ---- */

/* What of the file nobody needs. How long the dead ones were is not known: as long as the others, but the bodies of
 * the living are counted exactly. */
static uint64_t
garbage_of(const struct segment *g)
{
	uint64_t total = g->end > FILE_HEADER ? g->end - FILE_HEADER : 0;
	uint64_t least = g->bytes + g->live * RECORD_LEAST;
	uint64_t by_count = 0;

	if (g->messages > g->live)
		by_count = (uint64_t)((double)total * (double)(g->messages - g->live) /
		                      (double)g->messages);
	if (least >= total)
		return 0;
	return by_count < total - least ? by_count : total - least;
}

static void
account(struct segment *g)
{
	struct chains *c = &g->lane->store->chains;
	uint64_t total = g->end > FILE_HEADER ? g->end - FILE_HEADER : 0;

	c->garbage -= g->garbage;
	c->live_bytes -= g->counted_live;
	c->messages -= g->counted_messages;
	g->garbage = garbage_of(g);
	g->counted_live = total - g->garbage;
	g->counted_messages = g->live;
	c->garbage += g->garbage;
	c->live_bytes += g->counted_live;
	c->messages += g->counted_messages;
}

static void
account_nothing(struct segment *g)
{
	struct chains *c = &g->lane->store->chains;

	c->garbage -= g->garbage;
	c->live_bytes -= g->counted_live;
	c->messages -= g->counted_messages;
	g->garbage = g->counted_live = g->counted_messages = 0;
}

void
segment_set_file(struct segment *g, uint64_t end, uint64_t messages, bool is_closed)
{
	g->end = end;
	g->messages = messages;
	g->is_closed = is_closed;
	account(g);
}

/* ---- finding ---- */

/* Index of the first segment whose last is >= seq. */
uint32_t
segments_find(const struct lane *l, uint64_t seq)
{
	uint32_t low = 0, high = l->segments;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (l->segment[middle]->last < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct segment *
lane_segment(const struct lane *l, uint64_t seq)
{
	uint32_t i = segments_find(l, seq);

	return i < l->segments && l->segment[i]->first <= seq ? l->segment[i] : NULL;
}

struct segment *
segment_by_first(const struct lane *l, uint64_t first)
{
	struct segment *g = lane_segment(l, first);

	return g != NULL && g->first == first ? g : NULL;
}

uint64_t
segment_live_in(const struct segment *g, uint64_t first, uint64_t last)
{
	if (first < g->first)
		first = g->first;
	if (last > g->last)
		last = g->last;
	if (first > last)
		return 0;
	return last - first + 1 - rangeset_overlap(&g->removed, first, last);
}

/* ---- coming and going ---- */

static struct segment *
segment_new(struct lane *l, uint64_t first)
{
	struct segment *g = xcalloc(1, sizeof *g);
	uint32_t at = segments_find(l, first);

	g->lane = l;
	g->first = first;
	if (l->segments == l->segments_cap) {
		l->segments_cap = l->segments_cap == 0 ? 4 : 2 * l->segments_cap;
		l->segment = xrealloc(l->segment, l->segments_cap * sizeof(*l->segment));
	}
	memmove(l->segment + at + 1, l->segment + at, (l->segments - at) * sizeof(*l->segment));
	l->segment[at] = g;
	l->segments++;
	TAILQ_INSERT_TAIL(&l->store->chains.all, g, link);
	l->store->chains.segments++;
	return g;
}

/* Of a segment that is in a chain; what is doomed frees segments_reap(). */
void
segment_free(struct segment *g)
{
	struct chains *c = &g->lane->store->chains;

	if (g->is_doomed)
		return;
	account_nothing(g);
	TAILQ_REMOVE(&c->all, g, link);
	c->segments--;
	rangeset_fini(&g->removed);
	rangeset_fini(&g->acks);
	free(g->exception);
	free(g);
}

void
segment_free_doomed(struct chains *c, struct segment *g)
{
	TAILQ_REMOVE(&c->doomed, g, link);
	rangeset_fini(&g->removed);
	rangeset_fini(&g->acks);
	free(g->exception);
	free(g->doomed_name);
	free(g);
}

static void
take_out(struct lane *l, struct segment *g)
{
	uint32_t at = segments_find(l, g->first);

	assert(at < l->segments && l->segment[at] == g);
	l->segments--;
	memmove(l->segment + at, l->segment + at + 1, (l->segments - at) * sizeof(*l->segment));
}

static void
doom(struct lane *l, struct segment *g, uint64_t lsn)
{
	struct store *s = l->store;
	char name[SEGMENT_NAME];

	assert(!g->is_doomed);
	take_out(l, g);
	account_nothing(g);
	segment_name(l, g->first, name);
	g->doomed_name = xstrdup(name);
	g->is_doomed = true;
	g->doomed_at = lsn == 0 && s->record.is_open && l->durable ? DOOMED_IN_RECORD : lsn;
	if (s->journal != NULL)
		journal_drop(s->journal, g->lsn);
	g->lsn = 0;
	TAILQ_REMOVE(&s->chains.all, g, link);
	s->chains.segments--;
	TAILQ_INSERT_TAIL(&s->chains.doomed, g, link);
	if (s->chains.spills == NULL) /* the store ends: the next start has it removed */
		segment_free_doomed(&s->chains, g);
}

/* A spill that appends to it sees to it when it has ended. And recovery has to read on first: the SEG of such a spill may
 * come after the ACK of all that was there before. */
void
segment_doom(struct lane *l, struct segment *g, uint64_t lsn)
{
	if (!g->is_appended && !l->store->recovering)
		doom(l, g, lsn);
}

void
segments_close(struct lane *l, uint64_t lsn)
{
	reader_cancel(l);
	while (l->segments > 0)
		doom(l, l->segment[l->segments - 1], lsn);
	l->unread = l->unread_bytes = 0;
}

/* ---- SEG ---- */

static bool
fits(const struct lane *l, const struct op_seg *o, uint64_t removed)
{
	uint32_t i = segments_find(l, o->first);

	if (o->first > o->last || o->last - o->first == UINT64_MAX || o->last == UINT64_MAX ||
	    o->end < FILE_HEADER || removed > o->last - o->first + 1)
		return false;
	if (i < l->segments && l->segment[i]->first == o->first)
		i++;
	return i == l->segments || l->segment[i]->first > o->last;
}

static bool
take_removed(const struct op_seg *o, struct rangeset *to)
{
	struct range r;
	uint32_t i;

	for (i = 0; i < o->removed_n; i++) {
		op_range(o->raw_removed, i, &r);
		if (r.first < o->first || r.last > o->last || r.first > r.last)
			return false;
		rangeset_add(to, r.first, r.last);
	}
	return true;
}

static void
take_exceptions(struct segment *g, const struct op_seg *o)
{
	struct op_seg_exception x;
	uint32_t i;

	g->exceptions = 0;
	for (i = 0; i < o->exceptions; i++) {
		op_exception(o->raw_exceptions, i, &x);
		segment_set_state(g, x.range, &x.state);
	}
}

/* During recovery nothing was handed to anybody: all that lives is unread. */
static void
unread_moves(struct lane *l, uint64_t live, uint64_t bytes, uint64_t live_was, uint64_t bytes_was)
{
	l->unread = l->unread + live - live_was;
	l->unread_bytes += bytes;
	l->unread_bytes -= bytes_was < l->unread_bytes ? bytes_was : l->unread_bytes;
}

/* Live code took segments that were emptied out of the chain, and the last one that stayed may have been continued over
 * where they were. Recovery, which keeps them (segment_doom), does so now. */
static void
drop_empty(struct lane *l, uint64_t first, uint64_t last)
{
	uint32_t i = segments_find(l, first);

	while (i < l->segments && l->segment[i]->first <= last) {
		if (l->segment[i]->first != first && l->segment[i]->live == 0)
			doom(l, l->segment[i], 0);
		else
			i++;
	}
}

struct segment *
segment_put(struct lane *l, const struct op_seg *o, uint64_t lsn)
{
	struct store *s = l->store;
	struct rangeset removed = { 0 };
	struct segment *g;
	uint64_t live;

	if (s->recovering)
		drop_empty(l, o->first, o->last);
	if (!take_removed(o, &removed) || !fits(l, o, removed.count)) {
		rangeset_fini(&removed);
		s->stats.damaged++;
		log_error("store: a segment of queue %" PRIu64 " lane %" PRIu32
		          ", messages %" PRIu64 " to %" PRIu64
		          ", contradicts what is known; it is left out",
		    l->name.queue, l->name.lane, o->first, o->last);
		return NULL;
	}
	live = o->last - o->first + 1 - removed.count;
	g = segment_by_first(l, o->first);
	if (g == NULL)
		g = segment_new(l, o->first);
	if (s->recovering) {
		unread_moves(l, live, o->bytes, g->live, g->bytes);
		g->is_closed = true;
	}
	rangeset_fini(&g->removed);
	g->removed = removed;
	g->last = o->last;
	g->end = o->end;
	g->live = live;
	g->bytes = o->bytes;
	g->latest_expiry_ms = o->latest_expiry_ms;
	g->messages = live + removed.count; /* gaps included; who knows better says so */
	take_exceptions(g, o);
	if (s->journal != NULL) {
		journal_hold(s->journal, lsn);
		journal_drop(s->journal, g->lsn);
	}
	g->lsn = lsn;
	if (l->chain_end < g->last)
		l->chain_end = g->last;
	if (l->next_seq <= g->last)
		l->next_seq = g->last + 1;
	account(g);
	return g;
}

/* The operation of a segment as it is, encoded; the caller frees. */
uint8_t *
seg_encode(const struct lane *l, const struct segment *g, size_t *n)
{
	struct op_seg o = { .lane = l->name,
		.first = g->first,
		.last = g->last,
		.end = g->end,
		.live = g->live,
		.bytes = g->bytes,
		.latest_expiry_ms = g->latest_expiry_ms,
		.removed = g->removed.r,
		.removed_n = g->removed.n,
		.exception = g->exception,
		.exceptions = g->exceptions };
	uint8_t *p;

	*n = op_seg_size(&o);
	p = xmalloc(*n);
	op_seg_encode(&o, p);
	return p;
}

/* Nobody waits for a SEG: until it is durable the journal has what it stands for. But what that holds, it holds. */
uint64_t
seg_append(struct store *s, const uint8_t *p, size_t n)
{
	static const struct sync_setting soon = { .policy = SYNC_POLICY_MS, .ms = 1000 };
	uint64_t lsn;
	uint8_t *to;

	assert(!s->record.is_open && !s->recovering);
	to = store_append(s, (uint32_t)n, 1, soon, &lsn);
	memcpy(to, p, n);
	return lsn;
}

void
segment_append(struct lane *l, struct segment *g)
{
	struct store *s = l->store;
	uint64_t lsn;
	uint8_t *p;
	size_t n;

	if (!l->durable)
		return;
	if (g->acks.n > 0)
		lane_flush(l);
	if (g->is_doomed)
		return;
	p = seg_encode(l, g, &n);
	lsn = seg_append(s, p, n);
	free(p);
	journal_hold(s->journal, lsn);
	journal_drop(s->journal, g->lsn);
	g->lsn = lsn;
}

/* ---- what leaves ---- */

/* n of g are gone, so many of them unread; their bytes are known, or guessed. */
static void
subtract(struct segment *g, uint64_t n, uint64_t bytes)
{
	assert(n <= g->live);
	g->live -= n;
	if (g->live == 0 || bytes > g->bytes)
		bytes = g->bytes;
	g->bytes -= bytes;
	account(g);
}

static void
subtract_unread(struct lane *l, uint64_t n, uint64_t bytes)
{
	assert(n <= l->unread);
	l->unread -= n;
	if (l->unread == 0 || bytes > l->unread_bytes)
		bytes = l->unread_bytes;
	l->unread_bytes -= bytes;
}

uint64_t
segment_remove(struct lane *l, struct segment *g, uint64_t first, uint64_t last, uint64_t bytes)
{
	uint64_t n, unread;

	if (first < g->first)
		first = g->first;
	if (last > g->last)
		last = g->last;
	if (first > last)
		return 0;
	unread = l->read_seq > last
	             ? 0
	             : segment_live_in(g, first > l->read_seq ? first : l->read_seq, last);
	n = rangeset_add(&g->removed, first, last);
	if (n == 0)
		return 0;
	subtract(g, n, bytes);
	if (unread > l->unread) /* nothing is, whatever read_seq says */
		unread = l->unread;
	if (unread > 0)
		subtract_unread(l, unread, n == unread ? bytes : bytes / n * unread);
	return n;
}

/* Journalled with the next lane_flush(); a lane that is not durable has nothing to journal. */
static void
merge_ack(struct lane *l, struct segment *g, uint64_t first, uint64_t last, uint64_t bytes)
{
	if (l->durable) {
		rangeset_add(&g->acks, first, last);
		g->acks_bytes += bytes;
		lane_merged_in_chain(l, first, last);
	} else if (g->live == 0 && !g->is_doomed) {
		segment_doom(l, g, 0);
	}
}

bool
segment_ack(struct lane *l, uint64_t seq, uint64_t body_bytes)
{
	uint64_t unread = l->unread;
	struct segment *g;

	if (seq > l->chain_end)
		return !l->durable && spill_note_ack(l, seq);
	g = lane_segment(l, seq);
	if (g != NULL && segment_remove(l, g, seq, seq, body_bytes) > 0)
		merge_ack(l, g, seq, seq, body_bytes);
	/* An unread one, out of turn, and the last of them. */
	if (unlikely(unread > 0 && l->unread == 0))
		reader_reset(l);
	return true;
}

void
lane_kept(const struct lane *l, uint64_t *messages, uint64_t *bytes)
{
	*messages = l->journalled;
	*bytes = l->journalled_bytes;
	for (uint32_t i = 0; i < l->segments; i++) {
		*messages += l->segment[i]->live;
		*bytes += l->segment[i]->bytes;
	}
}

uint64_t
segment_bytes_in(const struct segment *g, uint64_t first, uint64_t last)
{
	uint64_t n = segment_live_in(g, first, last);

	if (n == g->live || n == 0)
		return n == 0 ? 0 : g->bytes;
	return (uint64_t)((double)g->bytes * (double)n / (double)g->live);
}

uint64_t
segment_ack_range(struct lane *l, struct segment *g, uint64_t first, uint64_t last,
    enum ack_reason reason, uint64_t *bytes)
{
	struct rangeset live = { 0 };
	uint64_t n, size;
	uint32_t i;

	if (first < g->first)
		first = g->first;
	if (last > g->last)
		last = g->last;
	n = segment_live_in(g, first, last);
	if (n == 0)
		return 0;
	size = segment_bytes_in(g, first, last);
	lane_acks_reason(l, reason);
	rangeset_add(&live, first, last);
	for (i = rangeset_find(&g->removed, first);
	     i < g->removed.n && g->removed.r[i].first <= last; i++)
		rangeset_remove(&live, g->removed.r[i].first, g->removed.r[i].last);
	segment_remove(l, g, first, last, size);
	for (i = 0; i < live.n; i++)
		merge_ack(l, g, live.r[i].first, live.r[i].last, i == 0 ? size : 0);
	rangeset_fini(&live);
	*bytes += size;
	return n;
}

uint64_t
segments_ack_from(struct lane *l, uint64_t first)
{
	uint64_t n = 0, bytes = 0;
	uint32_t i = l->segments;

	/* From the end: what a lane that is not durable empties leaves the array at once. */
	while (i > 0 && l->segment[i - 1]->last >= first) {
		i--;
		n += segment_ack_range(l, l->segment[i], first, UINT64_MAX, l->acks_reason, &bytes);
	}
	if (first <= l->read_seq)
		l->unread = l->unread_bytes = 0; /* nothing is left, whatever was counted */
	if (l->unread == 0)
		reader_reset(l);
	return n;
}

uint64_t
lane_expire_unread(struct lane *l, uint64_t now_ms, uint64_t *bytes)
{
	uint64_t n = 0;
	uint32_t i;

	*bytes = 0;
	if (l->unread == 0)
		return 0;
	i = segments_find(l, l->read_seq);
	while (i < l->segments) {
		struct segment *g = l->segment[i];
		uint64_t last = g->last;

		if (g->live > 0) { /* else its ack waits for the flush */
			if (g->first < l->read_seq || g->latest_expiry_ms == 0 ||
			    g->latest_expiry_ms > now_ms)
				break;
			n += segment_ack_range(l, g, g->first, g->last, ACK_EXPIRED, bytes);
		}
		l->read_seq = last + 1;
		i = segments_find(l, l->read_seq);
	}
	if (l->unread == 0)
		reader_reset(l);
	return n;
}

/* ---- states ---- */

/* Index of the first exception whose last is >= seq. */
static uint32_t
find_exception(const struct segment *g, uint64_t seq)
{
	uint32_t low = 0, high = g->exceptions;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (g->exception[middle].range.last < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Puts n of `with` in place of exceptions [from, to). */
static void
splice(
    struct segment *g, uint32_t from, uint32_t to, const struct op_seg_exception *with, uint32_t n)
{
	uint32_t after = g->exceptions - to, count = from + n + after;

	if (count > g->exceptions_cap) {
		g->exceptions_cap = count + count / 2 + 4;
		g->exception = xrealloc(g->exception, g->exceptions_cap * sizeof(*g->exception));
	}
	if (after > 0)
		memmove(g->exception + from + n, g->exception + to, after * sizeof(*g->exception));
	memcpy(g->exception + from, with, n * sizeof(*with));
	g->exceptions = count;
}

/* The new one takes its place: what it covers goes, what it cuts keeps its ends, and a neighbour with the same state
 * becomes one with it. */
void
segment_set_state(struct segment *g, struct range range, const struct op_state *state)
{
	struct op_seg_exception left, right, middle = { range, *state }, with[3];
	bool has_left = false, has_right = false;
	uint32_t from, to, n = 0;

	if (middle.range.first < g->first)
		middle.range.first = g->first;
	if (middle.range.last > g->last)
		middle.range.last = g->last;
	if (middle.range.first > middle.range.last)
		return;
	from = find_exception(g, middle.range.first == 0 ? 0 : middle.range.first - 1);
	for (to = from; to < g->exceptions; to++) {
		const struct op_seg_exception *x = &g->exception[to];

		if (x->range.first > middle.range.last + 1)
			break;
		if (op_state_same(&x->state, state)) {
			if (x->range.first < middle.range.first)
				middle.range.first = x->range.first;
			if (x->range.last > middle.range.last)
				middle.range.last = x->range.last;
			continue;
		}
		if (x->range.first < middle.range.first) {
			has_left = true;
			left = *x;
			if (left.range.last >= middle.range.first)
				left.range.last = middle.range.first - 1;
		}
		if (x->range.last > middle.range.last) {
			has_right = true;
			right = *x;
			if (right.range.first <= middle.range.last)
				right.range.first = middle.range.last + 1;
		}
	}
	if (has_left)
		with[n++] = left;
	with[n++] = middle;
	if (has_right)
		with[n++] = right;
	splice(g, from, to, with, n);
}

const struct op_state *
segment_state(const struct segment *g, uint64_t seq)
{
	uint32_t i = find_exception(g, seq);

	return i < g->exceptions && g->exception[i].range.first <= seq ? &g->exception[i].state
	                                                               : NULL;
}
