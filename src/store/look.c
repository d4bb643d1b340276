/* SPDX-License-Identifier: Apache-2.0
 * Looking at what of a lane lies in files only, without taking it: unlike read_ahead.c nothing of the lane changes, and
 * damage is passed over, for whoever reads it in earnest tells of it. A worker reads a piece of a segment file; between two
 * pieces nothing is held, so that the file may be rewritten, or go. */
#include "store/store_priv.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "store/segment_file.h"

enum { PIECE = 1 << 20, RETRY_MS = 1000, USERS_MAX = 200 };

struct lane_look {
	struct worker_job job;
	struct lane *lane;         /* we are one of its jobs, so it lives */
	struct segment *g;         /* while is_busy: one of its users */
	struct segment_read r;     /* while has_piece */
	uint64_t seq;              /* those before were seen */
	uint64_t last, end;        /* of the segment, as asked for */
	uint64_t first, at, after; /* where the next piece begins; first 0: not known */
	uint64_t retry_ms;
	uint32_t rewrites; /* of the segment, when `at` was known */
	uint32_t record;   /* the next one of the piece */
	bool is_busy, has_piece, is_over;
};

struct lane_look *
lane_look_new(struct lane *l, uint64_t from)
{
	struct lane_look *k = xcalloc(1, sizeof *k);

	k->lane = l;
	k->seq = from;
	l->jobs++;
	return k;
}

static void
look_end(struct lane_look *k)
{
	if (k->has_piece)
		segment_read_fini(&k->r);
	lane_unuse(k->lane);
	free(k);
}

void
lane_look_free(struct lane_look **kp)
{
	struct lane_look *k = *kp;

	*kp = NULL;
	if (k == NULL)
		return;
	k->is_over = true;
	if (!k->is_busy)
		look_end(k);
}

void
lane_look_from(struct lane_look *k, uint64_t seq)
{
	if (seq > k->seq)
		k->seq = seq;
}

/* ---- pieces ---- */

static void
look_run(struct worker_job *job)
{
	segment_read(&container_of(job, struct lane_look, job)->r);
}

static void
look_done(struct worker_job *job)
{
	struct lane_look *k = container_of(job, struct lane_look, job);
	struct store *s = k->lane->store;
	struct segment *g = k->g;

	s->chains.jobs--;
	g->users--;
	k->g = NULL;
	k->is_busy = false;
	k->has_piece = true;
	if (k->is_over) {
		look_end(k);
		return;
	}
	k->record = 0;
	if (k->r.error != 0 && k->r.error != -ENOENT && k->r.error != -EIO) {
		k->retry_ms = s->now_ms + RETRY_MS;
		k->r.records = 0;
		return;
	}
	if (k->r.header_end != 0 && k->r.header_end != g->end && !g->is_doomed)
		segment_set_file(g, k->r.header_end, g->live, true); /* as in read_ahead.c */
	k->at = k->r.error != 0 || k->r.next >= k->r.end ? k->end : k->r.next;
	if (k->r.error == 0)
		k->after = k->r.after;
}

static void
ask(struct lane_look *k, struct segment *g)
{
	struct lane *l = k->lane;
	struct store *s = l->store;

	k->job = (struct worker_job){ .run = look_run, .done = look_done };
	k->g = g;
	k->last = g->last;
	k->end = g->end;
	k->r = (struct segment_read){ .disk = s->disk,
		.id = s->id,
		.lane = l->name,
		.first = g->first,
		.last = g->last,
		.after = k->after,
		.at = k->at,
		.end = g->end,
		.want = PIECE };
	segment_name(l, g->first, k->r.name);
	k->is_busy = true;
	g->users++;
	chains_submit(s, &k->job);
}

/* END: there is nothing more. */
static enum look_result
next_piece(struct lane_look *k)
{
	struct lane *l = k->lane;
	uint64_t from = k->seq > l->read_seq ? k->seq : l->read_seq;

	if (l->store->now_ms < k->retry_ms)
		return LOOK_LATER;
	for (uint32_t i = segments_find(l, from); i < l->segments; i++) {
		struct segment *g = l->segment[i];

		if (g->first != k->first || g->rewrites != k->rewrites) {
			k->first = g->first;
			k->rewrites = g->rewrites;
			k->at = FILE_HEADER;
			k->after = g->first - 1;
		}
		if (k->at >= g->end ||
		    segment_live_in(g, from > k->after ? from : k->after + 1, g->last) == 0)
			continue;
		if (!g->is_rewritten && g->users < USERS_MAX)
			ask(k, g);
		return LOOK_LATER;
	}
	return LOOK_END;
}

/* ---- messages ---- */

bool
lane_has_unread(const struct lane *l, uint64_t seq)
{
	const struct segment *g = lane_segment(l, seq);

	return g != NULL && seq >= l->read_seq && l->unread > 0 && !rangeset_has(&g->removed, seq);
}

/* The next record of the piece. END: the piece is used up; LATER: there is no memory now. */
static enum look_result
next_record(struct lane_look *k, struct lane_seen *out)
{
	struct lane *l = k->lane;

	for (; k->record < k->r.records; k->record++) {
		const struct segment_record *rec = &k->r.record[k->record];
		const struct op_state *state;
		struct op_msg m;

		if (rec->seq < k->seq || !lane_has_unread(l, rec->seq) ||
		    segment_message(&k->r, rec, &m) != 0)
			continue;
		out->item = l->store->ops->make(l->store->arg, &m);
		if (out->item == NULL)
			return LOOK_LATER;
		state = segment_state(lane_segment(l, rec->seq), rec->seq);
		out->seq = rec->seq;
		out->state = state != NULL ? *state : m.state;
		out->expires_ms = m.expires_ms;
		k->seq = rec->seq + 1;
		k->record++;
		return LOOK_GOT;
	}
	return LOOK_END;
}

enum look_result
lane_look_next(struct lane_look *k, struct lane_seen *out)
{
	enum look_result found;

	if (k->lane->is_closed || k->lane->unread == 0)
		return LOOK_END;
	if (k->is_busy)
		return LOOK_LATER;
	if (k->has_piece) {
		found = next_record(k, out);
		if (found != LOOK_END)
			return found;
		segment_read_fini(&k->r);
		k->has_piece = false;
	}
	return next_piece(k);
}

/* Within one segment: its live ones are what lies between the ranges of those that are gone. */
static uint64_t
nth_in(const struct segment *g, uint64_t from, uint64_t n)
{
	const struct rangeset *gone = &g->removed;

	if (from < g->first)
		from = g->first;
	for (uint32_t i = rangeset_find(gone, from); i < gone->n; i++) {
		if (gone->r[i].first > from) {
			if (gone->r[i].first - from > n)
				break;
			n -= gone->r[i].first - from;
		}
		from = gone->r[i].last + 1;
	}
	return from + n;
}

uint64_t
lane_nth_unread(const struct lane *l, uint64_t from, uint64_t n)
{
	if (from < l->read_seq)
		from = l->read_seq;
	if (l->unread == 0)
		return 0;
	for (uint32_t i = segments_find(l, from); i < l->segments; i++) {
		uint64_t live = segment_live_in(l->segment[i], from, l->segment[i]->last);

		if (n < live)
			return nth_in(l->segment[i], from, n);
		n -= live;
	}
	return 0;
}
