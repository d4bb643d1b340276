/* SPDX-License-Identifier: Apache-2.0
 * Reading a chain: what is in files only comes back in order, piece by piece, before it is needed.
 *
 * A worker reads a piece of a segment and checks its records (segment_file.c); the next piece is asked for as soon as
 * where it begins is known, so that it is read while this one is handed up. read_turn() hands up, a slice a turn: a record
 * whose seq lives becomes an item of the owner's. What was read and not asked for stays as bytes, unless many lanes
 * have such rests.
 *
 * Every seq of a segment that is not in its removed set has a record. So what is missing when the next record or the end
 * of the file comes up was lost to damage, whatever its kind: it is reported, acknowledged, and the lane goes on. So is
 * what a segment counts that has no place in its file: its SEG is wrong. */
#include "store/store_priv.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/segment_file.h"

enum {
	PIECE = 1 << 20,
	PIECE_MIN = 64 << 10,
	PIECES_MAX = 64,       /* of all lanes; beyond it nothing is read ahead or kept */
	AHEAD = 2,             /* pieces of a lane: the one that is handed up, and the next */
	SLICE_MESSAGES = 2048, /* handed up a turn */
	SLICE_BYTES = 1 << 20,
	RETRY_MS = 1000
};

struct piece {
	struct worker_job job;
	TAILQ_ENTRY(piece) link;
	struct store *store;
	struct reader *reader; /* NULL: nobody wants it any more */
	struct segment *g;     /* one of its users; NULL once read */
	struct segment_read r;
	uint64_t last;       /* seq: what is missing up to here at the end of the file is lost */
	uint64_t after, end; /* as asked for */
	uint32_t record;     /* the next one to be handed up */
	bool is_done, is_reported;
};

struct reader {
	TAILQ_ENTRY(reader) link; /* readers->listed */
	bool is_listed;
	struct lane *lane;
	uint64_t wanted; /* bytes still to be handed up; 0: no read under way */
	TAILQ_HEAD(piece_list, piece) pieces; /* owned; in order */
	unsigned n;
	/* Where the next piece begins: segment, offset, and the seq that lies before. first 0: not known. */
	uint64_t first, at, after;
	uint64_t retry_ms; /* nothing before: the disk, or memory, was short */
};

struct reader_list {
	TAILQ_HEAD(reader_queue, reader) listed; /* with something to do for read_turn() */
	unsigned pieces;
};

struct reader_list *
readers_new(void)
{
	struct reader_list *list = xcalloc(1, sizeof *list);

	TAILQ_INIT(&list->listed);
	return list;
}

void
readers_free(struct reader_list **lp)
{
	struct reader_list *list = *lp;
	struct reader *rd;

	*lp = NULL;
	while ((rd = TAILQ_FIRST(&list->listed)) != NULL) {
		TAILQ_REMOVE(&list->listed, rd, link);
		rd->is_listed = false;
	}
	free(list);
}

static void
list(struct reader *rd)
{
	if (!rd->is_listed)
		TAILQ_INSERT_TAIL(&rd->lane->store->chains.readers->listed, rd, link);
	rd->is_listed = true;
}

static void
unlist(struct reader *rd)
{
	if (rd->is_listed)
		TAILQ_REMOVE(&rd->lane->store->chains.readers->listed, rd, link);
	rd->is_listed = false;
}

/* ---- pieces ---- */

static void
piece_free(struct piece *p)
{
	if (p->store->chains.readers != NULL)
		p->store->chains.readers->pieces--;
	segment_read_fini(&p->r);
	free(p);
}

static void
piece_drop(struct reader *rd, struct piece *p)
{
	TAILQ_REMOVE(&rd->pieces, p, link);
	rd->n--;
	p->reader = NULL;
	if (p->is_done)
		piece_free(p);
}

static void
drop_all(struct reader *rd)
{
	while (!TAILQ_EMPTY(&rd->pieces))
		piece_drop(rd, TAILQ_FIRST(&rd->pieces));
}

static void
piece_run(struct worker_job *job)
{
	struct piece *p = container_of(job, struct piece, job);

	segment_read(&p->r);
}

static bool
is_lost(int error)
{
	return error == -ENOENT || error == -EIO;
}

static void request(struct reader *rd);

static void
piece_done(struct worker_job *job)
{
	struct piece *p = container_of(job, struct piece, job);
	struct reader *rd = p->reader;
	struct segment *g = p->g;

	p->store->chains.jobs--;
	p->is_done = true;
	p->g = NULL;
	g->users--;
	if (rd == NULL) {
		piece_free(p);
		return;
	}
	if (p->r.error != 0 && !is_lost(p->r.error)) {
		static struct log_limit limit = { .burst = 5 };

		if (log_allowed(&limit))
			log_warning(
			    "store: %s cannot be read now: %s", p->r.name, strerror(-p->r.error));
		rd->retry_ms = p->store->now_ms + RETRY_MS;
		piece_drop(rd, p);
		list(rd);
		return;
	}
	if (p->r.header_end != 0 && p->r.header_end != g->end && !g->is_doomed)
		segment_set_file(
		    g, p->r.header_end, g->live, true); /* rewritten just before a crash */
	if (p->r.error != 0)
		p->r.next = p->r.end;
	rd->at = p->r.next;
	if (rd->at >= p->r.end && rd->at < p->end) /* the file ends early: it is not tried again */
		rd->at = p->end;
	rd->after = p->r.after;
	if (rd->wanted > 0)
		list(rd);
	request(rd);
}

/* The segment in which the next piece begins; NULL: nothing can be read (now). */
static struct segment *
find_place(struct reader *rd)
{
	struct lane *l = rd->lane;
	uint32_t i = segments_find(l, rd->first != 0 ? rd->first : l->read_seq);

	for (; i < l->segments; i++) {
		struct segment *g = l->segment[i];
		uint64_t from = l->read_seq;

		if (g->first != rd->first) {
			rd->first = g->first;
			rd->at = FILE_HEADER;
			rd->after = g->first - 1;
		}
		if (from <= rd->after)
			from = rd->after + 1;
		if (rd->at < g->end && segment_live_in(g, from, g->last) > 0)
			return g->is_rewritten ? NULL : g;
	}
	return NULL;
}

static uint32_t
piece_size(const struct reader *rd)
{
	if (rd->lane->store->chains.readers->pieces < PIECES_MAX)
		return PIECE;
	if (rd->wanted < PIECE_MIN)
		return PIECE_MIN;
	return rd->wanted < PIECE ? (uint32_t)rd->wanted : PIECE;
}

static void
request(struct reader *rd)
{
	struct store *s = rd->lane->store;
	struct piece *last = TAILQ_LAST(&rd->pieces, piece_list), *p;
	struct segment *g;

	if (rd->n >= AHEAD || (last != NULL && !last->is_done) || rd->lane->unread == 0 ||
	    s->now_ms < rd->retry_ms)
		return;
	if (s->chains.readers->pieces >= PIECES_MAX && (rd->n > 0 || rd->wanted == 0))
		return;
	g = find_place(rd);
	if (g == NULL)
		return;
	p = xcalloc(1, sizeof *p);
	p->job.run = piece_run;
	p->job.done = piece_done;
	p->store = s;
	p->reader = rd;
	p->g = g;
	p->last = g->last;
	p->after = rd->after;
	p->end = g->end;
	p->r = (struct segment_read){ .disk = s->disk,
		.id = s->id,
		.lane = rd->lane->name,
		.first = g->first,
		.last = g->last,
		.after = rd->after,
		.at = rd->at,
		.end = g->end,
		.want = piece_size(rd) };
	segment_name(rd->lane, g->first, p->r.name);
	g->users++;
	s->chains.readers->pieces++;
	TAILQ_INSERT_TAIL(&rd->pieces, p, link);
	rd->n++;
	chains_submit(s, &p->job);
}

/* ---- damage ---- */

static void
report(struct lane *l, struct segment *g, struct piece *p)
{
	uint32_t i;

	if (p->is_reported)
		return;
	p->is_reported = true;
	if (p->r.error != 0) {
		log_error("store: %s cannot be read: %s", p->r.name, strerror(-p->r.error));
		l->store->stats.damaged++;
		g->is_damaged = true;
	}
	if (p->r.damages == 0)
		return;
	for (i = 0; i < p->r.damages && i < SEGMENT_DAMAGE; i++)
		log_error("store: %s is damaged from offset %" PRIu64 " to %" PRIu64, p->r.name,
		    p->r.damage[i].from, p->r.damage[i].to);
	if (p->r.damages > SEGMENT_DAMAGE)
		log_error("store: %s: further damaged places: %" PRIu32, p->r.name,
		    p->r.damages - SEGMENT_DAMAGE);
	l->store->stats.damaged += p->r.damages;
	g->is_damaged = true;
}

/* Unread ones up to last that nothing was read of. Returns false when there are none. */
static bool
lose(struct lane *l, struct segment *g, uint64_t last)
{
	uint64_t first = l->read_seq > g->first ? l->read_seq : g->first, n, bytes = 0;
	char name[SEGMENT_NAME];

	if (last < first)
		return false;
	segment_name(l, g->first, name);
	n = segment_ack_range(l, g, first, last, ACK_DROPPED, &bytes);
	l->read_seq = last + 1;
	if (n == 0)
		return false;
	g->is_damaged = true;
	log_error("store: %s: %" PRIu64 " messages from %" PRIu64 " to %" PRIu64
	          " of queue %" PRIu64 " are lost",
	    name, n, first, last, l->name.queue);
	l->store->stats.damaged_messages += n;
	l->store->ops->lost(l, n, bytes);
	return true;
}

/* Unread ones of the segments before seq, that have no place in their files. */
static bool
lose_before(struct lane *l, uint64_t seq)
{
	bool lost = false;
	uint32_t i;

	while (l->read_seq < seq && (i = segments_find(l, l->read_seq)) < l->segments &&
	       l->segment[i]->first < seq) {
		if (!lose(l, l->segment[i], l->segment[i]->last))
			continue; /* read_seq went on */
		l->store->stats.damaged++;
		lost = true;
	}
	return lost;
}

/* Nothing is left that could be read, but the count says so. */
static void
lose_rest(struct lane *l)
{
	uint64_t n, bytes;

	lose_before(l, UINT64_MAX);
	n = l->unread;
	bytes = l->unread_bytes;
	l->unread = l->unread_bytes = 0;
	if (n == 0)
		return;
	log_error("store: queue %" PRIu64 " counted %" PRIu64 " messages that no file has",
	    l->name.queue, n);
	l->store->stats.damaged++;
	l->store->stats.damaged_messages += n;
	l->store->ops->lost(l, n, bytes);
}

/* ---- handing up ---- */

enum step { STEP_ON, STEP_WAIT /* for a worker */, STEP_NO_MEMORY };

struct slice {
	uint64_t messages, bytes; /* still allowed */
};

/* The record that is next in p. */
static enum step
hand_up_one(struct reader *rd, struct piece *p, struct segment *g, struct slice *left)
{
	struct lane *l = rd->lane;
	struct store *s = l->store;
	const struct segment_record *rec = &p->r.record[p->record];
	const struct op_state *state;
	uint64_t seq = rec->seq, size = RECORD_HEADER + (uint64_t)rec->length;
	struct op_state as_is;
	struct op_msg m;
	void *item;

	left->messages -= left->messages > 0;
	if (seq < l->read_seq || seq > g->last || rangeset_has(&g->removed, seq)) {
		p->record++;
		return STEP_ON;
	}
	if (lose_before(l, g->first) || lose(l, g, seq - 1))
		return STEP_ON; /* the owner was told: look again */
	if (segment_message(&p->r, rec, &m) != 0) {
		p->record++;
		s->stats.damaged++;
		log_error(
		    "store: %s: the record of message %" PRIu64 " is not one", p->r.name, seq);
		lose(l, g, seq);
		return STEP_ON;
	}
	item = s->ops->make(s->arg, &m);
	if (item == NULL)
		return STEP_NO_MEMORY;
	state = segment_state(g, seq);
	as_is = state != NULL ? *state : m.state;
	p->record++;
	l->read_seq = seq + 1;
	assert(l->unread > 0);
	l->unread--;
	l->unread_bytes -= m.body_size < l->unread_bytes ? m.body_size : l->unread_bytes;
	if (l->unread == 0)
		l->unread_bytes = 0;
	rd->wanted -= size < rd->wanted ? size : rd->wanted;
	left->bytes -= size < left->bytes ? size : left->bytes;
	s->stats.loaded++;
	s->stats.loaded_bytes += size;
	s->ops->loaded(l, item, seq, &as_is, &m);
	return STEP_ON;
}

/* Both may be gone afterwards: the owner was called. */
static enum step
step(struct reader *rd, struct slice *left)
{
	struct lane *l = rd->lane;
	struct piece *p = TAILQ_FIRST(&rd->pieces);
	struct segment *g;

	if (p == NULL) {
		request(rd);
		p = TAILQ_FIRST(&rd->pieces);
	}
	if (p == NULL || !p->is_done)
		return STEP_WAIT;
	g = segment_by_first(l, p->r.first);
	if (g == NULL) { /* all of it went meanwhile */
		piece_drop(rd, p);
		return STEP_ON;
	}
	report(l, g, p);
	if (p->record < p->r.records)
		return hand_up_one(rd, p, g, left);
	if (p->r.next >= p->r.end && lose(l, g, p->last))
		return STEP_ON; /* once more: nothing is missing then */
	piece_drop(rd, p);
	request(rd);
	return STEP_ON;
}

/* The rest of what was read stays, unless there are many of them. */
static void
keep_or_drop(struct reader *rd)
{
	struct piece *p = TAILQ_FIRST(&rd->pieces);

	if (rd->lane->store->chains.readers->pieces <= PIECES_MAX || p == NULL)
		return;
	rd->first = p->r.first;
	rd->at = p->r.at;
	rd->after = p->after;
	if (p->is_done && p->record > 0 && p->record < p->r.records) {
		rd->at = p->r.at + p->r.record[p->record].at - RECORD_HEADER;
		rd->after = p->r.record[p->record - 1].seq;
	}
	drop_all(rd);
}

static void
read_ends(struct reader *rd)
{
	struct lane *l = rd->lane;

	rd->wanted = 0;
	unlist(rd);
	if (l->unread == 0)
		reader_cancel(l);
	else
		keep_or_drop(rd);
	l->store->ops->load_done(l); /* may ask for the next read */
}

/* Is there what lists it again: a piece under way, the end of a rewrite, or time? */
static bool
will_come(struct reader *rd)
{
	struct segment *g;

	if (rd->lane->store->now_ms < rd->retry_ms) {
		list(rd);
		return true;
	}
	if (rd->n > 0)
		return true;
	g = segment_by_first(rd->lane, rd->first);
	return g != NULL && g->is_rewritten;
}

/* Returns false when the slice is used up. */
static bool
hand_up(struct reader *rd, struct slice *left)
{
	struct lane *l = rd->lane;
	enum step result = STEP_ON;

	if (l->store->now_ms < rd->retry_ms)
		result = STEP_WAIT;
	while (rd->wanted > 0 && l->unread > 0 && result == STEP_ON) {
		if (left->messages == 0 || left->bytes == 0) {
			list(rd);
			return false;
		}
		result = step(rd, left);
		if (l->is_closed || l->reader != rd)
			return true;
	}
	if (result == STEP_NO_MEMORY) /* the next read waits */
		rd->retry_ms = l->store->now_ms + RETRY_MS;
	if (result == STEP_WAIT && will_come(rd))
		return true;
	if (result == STEP_WAIT)
		lose_rest(l);
	read_ends(rd);
	return true;
}

bool
read_turn(struct store *s)
{
	struct reader_list *readers = s->chains.readers;
	struct slice left = { SLICE_MESSAGES, SLICE_BYTES };
	struct reader *rd;
	unsigned n = 0;

	/* As many as are listed now: who asks for more meanwhile comes with the next turn. */
	TAILQ_FOREACH (rd, &readers->listed, link)
		n++;
	for (; n > 0 && (rd = TAILQ_FIRST(&readers->listed)) != NULL; n--) {
		struct lane *l = rd->lane;
		bool goes_on;

		unlist(rd);
		l->jobs++;
		goes_on = hand_up(rd, &left);
		lane_unuse(l);
		if (!goes_on)
			return true;
	}
	TAILQ_FOREACH (rd, &readers->listed, link)
		if (s->now_ms >= rd->retry_ms)
			return true;
	return false;
}

/* ---- the lane's side ---- */

static struct reader *
reader_get(struct lane *l)
{
	struct reader *rd = l->reader;

	if (rd == NULL) {
		rd = l->reader = xcalloc(1, sizeof *rd);
		rd->lane = l;
		TAILQ_INIT(&rd->pieces);
	}
	return rd;
}

void
reader_cancel(struct lane *l)
{
	struct reader *rd = l->reader;

	if (rd == NULL)
		return;
	drop_all(rd);
	unlist(rd);
	l->reader = NULL;
	free(rd);
}

void
reader_reset(struct lane *l)
{
	struct reader *rd = l->reader;

	if (rd == NULL)
		return;
	drop_all(rd);
	rd->first = rd->at = rd->after = 0;
	if (rd->wanted > 0)
		list(rd);
}

void
reader_starts_at(struct lane *l, const struct segment *g, uint64_t at)
{
	struct reader *rd = reader_get(l);

	drop_all(rd);
	rd->first = g->first;
	rd->at = at;
	rd->after = l->read_seq - 1;
}

uint64_t
lane_unread(const struct lane *l)
{
	return l->unread;
}

void
lane_note_damage(struct lane *l)
{
	l->store->stats.damaged++;
}

uint64_t
lane_unread_bytes(const struct lane *l)
{
	return l->unread_bytes;
}

bool
lane_is_reading(const struct lane *l)
{
	return l->reader != NULL && l->reader->wanted > 0;
}

void
lane_read(struct lane *l, uint64_t bytes)
{
	struct reader *rd;

	if (l->unread == 0 || l->is_closed || lane_is_reading(l))
		return;
	rd = reader_get(l);
	rd->wanted = bytes > 0 ? bytes : 1;
	request(rd);
	list(rd);
}
