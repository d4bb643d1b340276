/* SPDX-License-Identifier: Apache-2.0
 * Sparse segments: one message that is not acknowledged keeps a whole file. When all chains together hold more garbage
 * than what lives in them + cfg.garbage_max, the emptiest segment is written again without what is gone; one that is
 * nearly empty already above cfg.garbage_max. One at a time.
 *
 * The new file lies beside the old one under a temporary name, is synced, takes its name, and the folder is synced; its
 * header says where it ends. Left out is only what was removed by an ACK that is durable before the job begins: after a
 * crash the file may be the old or the new one, and with either the SEG and the ACKs in the journal name every message
 * that is not in it as removed. So a SEG with the old end may be found beside the new file: then the header counts. */
#include "store/store_priv.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/mutant.h"
#include "store/segment_file.h"

enum {
	PIECE = 1 << 20,
	LOOK_MS = 1000,
	LOOK = 4096,       /* segments a turn: there may be one for each of 100,000 lanes */
	NEARLY_EMPTY = 90, /* percent of a file */
	LEAST = 25         /* percent: less is never worth it */
};

enum state { IDLE, WAITING /* for ACKs to be durable */, RUNNING, ENDED };

struct rewrite {
	struct worker_job job;
	struct store *store;
	enum state state;
	uint64_t look_ms;   /* not before */
	uint64_t looked;    /* segments, since one was found or all were seen */
	uint64_t acked_lsn; /* the newest ACK that `gone` may hold */
	struct lane *lane;  /* one of its jobs */
	struct segment *g;  /* one of its users */
	struct rangeset gone;
	bool durable;
	uint64_t first, last, end;
	struct op_lane name;
	char file[SEGMENT_NAME], temporary[SEGMENT_NAME];

	/* results */
	int error; /* -EBADMSG: the old file is damaged */
	uint64_t new_end, kept;
};

/* ---- on a worker ---- */

static void
copy_records(struct rewrite *rw, struct segment_writer *w, const struct segment_read *r)
{
	uint32_t i;

	for (i = 0; i < r->records; i++) {
		const struct segment_record *rec = &r->record[i];

		if (rangeset_has(&rw->gone, rec->seq))
			continue;
		segment_write_raw(w, r->p + rec->at - RECORD_HEADER, record_size(rec->length));
		rw->kept++;
	}
}

static int
copy_pieces(struct rewrite *rw, struct segment_writer *w)
{
	struct segment_read r = { .disk = rw->store->disk,
		.id = rw->store->id,
		.lane = rw->name,
		.first = rw->first,
		.last = rw->last,
		.after = rw->first - 1,
		.at = FILE_HEADER,
		.end = rw->end,
		.want = PIECE };
	int error = 0;

	memcpy(r.name, rw->file, sizeof r.name);
	while (error == 0 && r.at < r.end) {
		segment_read(&r);
		error = r.error;
		if (error == 0 && r.damages > 0)
			error = -EBADMSG;
		if (error == 0)
			copy_records(rw, w, &r);
		if (w->error != 0)
			error = w->error;
		segment_read_fini(&r);
		r.at = r.next;
	}
	return error;
}

static int
write_new(struct rewrite *rw)
{
	struct disk *d = rw->store->disk;
	struct file_header h = { .kind = FILE_SEGMENT,
		.format = FORMAT_VERSION,
		.store_id = rw->store->id.id,
		.number = rw->first,
		.queue = rw->name.queue,
		.lane = rw->name.lane };
	struct segment_writer w;
	int error;

	segment_writer_init(&w, d, rw->store->id.seed);
	segment_create(&w, rw->temporary, &h);
	error = w.error != 0 ? w.error : copy_pieces(rw, &w);
	if (error == -ENOENT || error == -EIO)
		error = w.error != 0 ? -EIO : -EBADMSG; /* reading: damage */
	if (error == 0 && rw->kept == 0)
		error = -EBADMSG; /* something lived */
	if (error == 0) {
		segment_seal(&w, &h);
		rw->new_end = h.size;
		segment_finish(&w, rw->durable);
		error = w.error;
	}
	segment_writer_fini(&w);
	return error;
}

static void
rewrite_run(struct worker_job *job)
{
	struct rewrite *rw = container_of(job, struct rewrite, job);
	struct disk *d = rw->store->disk;

	rw->kept = 0;
	rw->error = write_new(rw);
	if (rw->error == 0)
		rw->error = d->ops->rename(d, rw->temporary, rw->file);
	if (rw->error != 0) {
		(void)d->ops->unlink(d, rw->temporary);
		return;
	}
	if (rw->durable && d->ops->sync_folder(d, "segments") != 0)
		rw->error = -EIO;
}

static void
rewrite_done(struct worker_job *job)
{
	struct rewrite *rw = container_of(job, struct rewrite, job);

	rw->store->chains.jobs--;
	rw->state = ENDED;
}

/* ---- choosing ---- */

static bool
may_be_rewritten(const struct segment *g)
{
	return g->users == 0 && g->live > 0 && !g->is_damaged && !g->is_appended &&
	       !g->lane->is_closed;
}

static uint64_t
percent_dead(const struct segment *g)
{
	return g->end > FILE_HEADER ? g->garbage * 100 / (g->end - FILE_HEADER) : 0;
}

/* Of the first LOOK of the list, which go to its end, so that the next look has others. */
static struct segment *
emptiest(struct rewrite *rw)
{
	struct segment_list *all = &rw->store->chains.all;
	uint64_t n = rw->store->chains.segments;
	struct segment *g, *best = NULL;

	for (n = n < LOOK ? n : LOOK; n > 0; n--) {
		g = TAILQ_FIRST(all);
		TAILQ_REMOVE(all, g, link);
		TAILQ_INSERT_TAIL(all, g, link);
		rw->looked++;
		if (may_be_rewritten(g) && (best == NULL || percent_dead(g) > percent_dead(best)))
			best = g;
	}
	return best;
}

static struct segment *
choose(struct rewrite *rw)
{
	const struct store *s = rw->store;
	const struct chains *c = &s->chains;
	struct segment *g;

	if (c->garbage <= s->cfg.garbage_max)
		return NULL;
	g = emptiest(rw);
	if (g == NULL)
		return NULL;
	if (percent_dead(g) > NEARLY_EMPTY ||
	    (c->garbage > c->live_bytes + s->cfg.garbage_max && percent_dead(g) >= LEAST))
		return g;
	return NULL;
}

/* ---- the job ---- */

static void
prepare(struct rewrite *rw, struct segment *g)
{
	struct store *s = rw->store;
	struct lane *l = g->lane;
	uint32_t i;

	if (g->acks.n > 0)
		lane_flush(l);
	if (g->is_doomed)
		return;
	rangeset_fini(&rw->gone);
	for (i = 0; i < g->removed.n; i++)
		rangeset_add(&rw->gone, g->removed.r[i].first, g->removed.r[i].last);
	rw->acked_lsn = s->last_lsn;
	rw->g = g;
	rw->lane = l;
	rw->durable = l->durable;
	rw->name = l->name;
	rw->first = g->first;
	segment_name(l, g->first, rw->file);
	memcpy(rw->temporary, rw->file, sizeof rw->temporary);
	memcpy(strrchr(rw->temporary, '.'), ".new", 5);
	g->is_closed = true;
	g->users++;
	l->jobs++;
	rw->state = WAITING;
}

static void
release(struct rewrite *rw)
{
	struct lane *l = rw->lane;

	rw->g->users--;
	rw->g->is_rewritten = false;
	rw->g = NULL;
	rw->lane = NULL;
	rangeset_fini(&rw->gone);
	rw->state = IDLE;
	if (!l->is_closed)
		reader_reset(l); /* offsets are others, and it may wait */
	lane_unuse(l);
}

static void
begin(struct rewrite *rw)
{
	struct store *s = rw->store;
	struct segment *g = rw->g;

	if (g->is_doomed || rw->lane->is_closed) {
		release(rw);
		return;
	}
	if (s->snapshot_holds > 0 || g->users > 1 ||
	    (rw->durable && rw->acked_lsn != 0 && journal_durable(s->journal) <= rw->acked_lsn &&
	        !MUTANT(REWRITE)))
		return;
	rw->last = g->last;
	rw->end = g->end;
	g->is_rewritten = true;
	rw->state = RUNNING;
	rw->job.run = rewrite_run;
	rw->job.done = rewrite_done;
	rw->job.writes = true;
	chains_submit(s, &rw->job);
}

static void
failed(struct rewrite *rw)
{
	struct store *s = rw->store;

	if (rw->error == -EBADMSG) {
		rw->g->is_damaged = true; /* whoever reads it says where */
	} else if (!disk_is_short(rw->error)) {
		if (s->chains.failed == 0)
			log_error(
			    "store: %s cannot be rewritten: %s", rw->file, strerror(-rw->error));
		s->chains.failed = rw->error;
	}
	rw->look_ms = s->now_ms + LOOK_MS;
}

static void
finish(struct rewrite *rw)
{
	struct store *s = rw->store;
	struct segment *g = rw->g;

	if (rw->error != 0) {
		failed(rw);
	} else if (!g->is_doomed) {
		segment_set_file(g, rw->new_end, rw->kept, true);
		g->rewrites++;
		segment_append(rw->lane, g);
		s->stats.rewritten++;
		s->stats.rewritten_bytes += rw->new_end;
	}
	release(rw);
}

bool
rewrite_turn(struct store *s)
{
	struct rewrite *rw = s->rewrite;
	struct segment *g;

	if (rw == NULL) {
		if (s->chains.garbage <= s->cfg.garbage_max)
			return false;
		rw = s->rewrite = xcalloc(1, sizeof *rw);
		rw->store = s;
	}
	if (rw->state == ENDED)
		finish(rw);
	if (rw->state == WAITING)
		begin(rw);
	if (rw->state != IDLE || s->now_ms < rw->look_ms || s->chains.failed != 0 ||
	    s->snapshot_holds > 0)
		return false;
	g = choose(rw);
	if (g == NULL) {
		if (rw->looked < s->chains.segments && s->chains.garbage > s->cfg.garbage_max)
			return false; /* the next turn looks on */
		rw->look_ms = s->now_ms + LOOK_MS;
		rw->looked = 0;
		return false;
	}
	rw->looked = 0;
	prepare(rw, g);
	if (rw->state == WAITING)
		begin(rw);
	return rw->state == IDLE;
}

void
rewrite_free(struct store *s)
{
	struct rewrite *rw = s->rewrite;

	if (rw == NULL)
		return;
	assert(rw->state != RUNNING);
	if (rw->state != IDLE)
		release(rw);
	s->rewrite = NULL;
	free(rw);
}
