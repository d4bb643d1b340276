/* SPDX-License-Identifier: Apache-2.0
 * Spill: the oldest messages that a lane has in memory go to the end of its chain.
 *
 *	core	pins the items of the oldest live slots, in which state they are		spill_begin
 *	worker	writes them into one or more segment files, each synced, then the folder	spill_run
 *	core	file by file, one a slice: what was acknowledged meanwhile goes into SEG's removed set, what was requeued
 *		into its exceptions; SEG is appended and applied (slots go, chain end moves), items are let go	enter_file
 *
 * A crash before SEG is durable: the journal still has every message, the file has no SEG (or its SEG an earlier end), and
 * what it has too much does not count. The disk is full, as a write or a sync says: the files that are whole enter, the
 * rest stays in the journal and is put into another file after a second. A sync or write that fails otherwise ends the
 * node.
 *
 * The last file may be the lane's last segment, continued. Nothing below the end of its newest SEG changes; it is not
 * doomed or rewritten meanwhile. */
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
	RUNNING_MAX = 8,        /* jobs over all lanes */
	JOB_BYTES = 64 << 20,   /* of bodies a job */
	LAGGING_LOOKED_AT = 64, /* lanes a turn */
	JOB_MESSAGES = 49152,   /* three files: pinned in one go, about a millisecond */
	RETRY_MS = 1000
};

struct spill_item {
	void *item;            /* a reference */
	uint64_t seq, at;      /* at: offset of its record */
	uint64_t bytes;        /* of its body */
	struct op_state state; /* as in the file */
};

struct spill_file {
	char name[SEGMENT_NAME];
	uint64_t first, last;   /* seqs written to it by this job */
	uint64_t end, messages; /* of all of it */
	uint64_t latest_expiry_ms;
	uint32_t item, items; /* which ones */
	bool is_continued, is_closed, never_expires;
};

struct spill {
	struct worker_job job;
	TAILQ_ENTRY(spill) link; /* waiting, ended */
	struct store *store;
	struct lane *lane;            /* one of its jobs */
	uint64_t through, keep_bytes; /* which ones: see spill_begin */
	struct spill_item *item;      /* owned */
	uint32_t items, cap;
	struct segment *continued; /* is_appended, users; NULL: a new file from the start */
	char continued_name[SEGMENT_NAME];
	uint64_t continued_end, continued_messages;
	struct spill_file *file; /* owned: whole and synced; the worker's until it has ended */
	uint32_t files, files_cap, entered;
	struct rangeset acked; /* lanes that are not durable: gone since the start */
	uint64_t bytes;        /* written */
	int error;             /* of what came after the last of the files */
	bool continued_failed; /* then nothing is added to that file any more */
};

TAILQ_HEAD(spill_queue, spill);
struct spill_list {
	struct spill_queue waiting, ended;
	unsigned running; /* with the ended ones */
	unsigned waits;
	uint32_t pinned; /* messages, since the last spill_turn() */
};

struct spill_list *
spills_new(void)
{
	struct spill_list *list = xcalloc(1, sizeof *list);

	TAILQ_INIT(&list->waiting);
	TAILQ_INIT(&list->ended);
	return list;
}

unsigned
spills_running(const struct store *s)
{
	return s->chains.spills->running + s->chains.spills->waits;
}

/* ---- on a worker ---- */

static struct spill_file *
add_file(struct spill *sp)
{
	if (sp->files == sp->files_cap) {
		sp->files_cap = sp->files_cap == 0 ? 4 : 2 * sp->files_cap;
		sp->file = xrealloc(sp->file, sp->files_cap * sizeof(*sp->file));
	}
	memset(&sp->file[sp->files], 0, sizeof *sp->file);
	return &sp->file[sp->files]; /* counted when it is whole */
}

static void
begin_file(struct spill *sp, struct segment_writer *w, uint32_t item)
{
	struct spill_file *f = add_file(sp);
	struct lane *l = sp->lane; /* its name and kind do not change */
	struct file_header h = { .kind = FILE_SEGMENT,
		.format = FORMAT_VERSION,
		.store_id = sp->store->id.id,
		.number = sp->item[item].seq,
		.queue = l->name.queue,
		.lane = l->name.lane };

	f->item = item;
	f->first = sp->item[item].seq;
	if (item == 0 && sp->continued != NULL) {
		f->is_continued = true;
		f->messages = sp->continued_messages;
		memcpy(f->name, sp->continued_name, sizeof f->name);
		segment_continue(w, f->name, sp->continued_end);
		return;
	}
	segment_name(l, f->first, f->name);
	segment_create(w, f->name, &h);
}

/* Written and synced it is one of the job's; otherwise nothing of it stays, and nothing comes after it. */
static void
end_file(struct spill *sp, struct segment_writer *w)
{
	struct spill_file *f = &sp->file[sp->files];

	f->end = segment_end(w);
	segment_finish(w, sp->lane->durable);
	sp->error = w->error;
	if (sp->error == 0)
		sp->files++;
	else if (!f->is_continued)
		(void)w->disk->ops->unlink(w->disk, f->name);
	else
		sp->continued_failed = true;
}

static bool
is_full(const struct spill *sp, const struct segment_writer *w, uint64_t size)
{
	const struct spill_file *f = &sp->file[sp->files];

	return f->messages >= sp->store->cfg.segment_messages ||
	       (f->messages > 0 && segment_end(w) + size > sp->store->cfg.segment_bytes);
}

static void
write_item(struct spill *sp, struct segment_writer *w, uint32_t i)
{
	struct op_target target = { sp->lane->name.queue, sp->item[i].seq, sp->lane->name.lane };
	struct op_msg m = { .target = &target, .targets = 1 };
	struct spill_file *f;
	uint64_t size;

	sp->store->ops->describe(sp->item[i].item, &m);
	m.state = sp->item[i].state;
	m.target = &target;
	m.targets = 1;
	size = record_size(op_msg_size(&m));
	if (i > 0 && is_full(sp, w, size)) {
		sp->file[sp->files].is_closed = true;
		end_file(sp, w);
		if (sp->error != 0)
			return;
		begin_file(sp, w, i);
	}
	f = &sp->file[sp->files];
	sp->item[i].at = segment_end(w);
	sp->item[i].bytes = m.body_size;
	segment_write(w, &m, target);
	f->last = target.seq;
	f->items++;
	f->messages++;
	if (m.expires_ms == 0)
		f->never_expires = true;
	else if (m.expires_ms > f->latest_expiry_ms)
		f->latest_expiry_ms = m.expires_ms;
	sp->bytes += size;
}

/* Of the new files. Without a name on disk none of them counts. */
static void
sync_names(struct spill *sp)
{
	struct disk *d = sp->store->disk;
	uint32_t continued = sp->files > 0 && sp->file[0].is_continued;
	int error;

	if (sp->files == continued)
		return;
	error = d->ops->sync_folder(d, "segments");
	if (error == 0)
		return;
	sp->error = error;
	while (sp->files > continued)
		(void)d->ops->unlink(d, sp->file[--sp->files].name);
}

static void
spill_run(struct worker_job *job)
{
	struct spill *sp = container_of(job, struct spill, job);
	struct disk *d = sp->store->disk;
	struct segment_writer w;
	uint32_t i;

	segment_writer_init(&w, d, sp->store->id.seed);
	begin_file(sp, &w, 0);
	for (i = 0; i < sp->items && w.error == 0 && sp->error == 0; i++)
		write_item(sp, &w, i);
	if (sp->error == 0)
		end_file(sp, &w);
	segment_writer_fini(&w);
	if (sp->lane->durable && !MUTANT(SEGMENT_NAME))
		sync_names(sp);
}

static void
spill_done(struct worker_job *job)
{
	struct spill *sp = container_of(job, struct spill, job);

	sp->store->chains.jobs--;
	TAILQ_INSERT_TAIL(&sp->store->chains.spills->ended, sp, link);
}

/* ---- the start ---- */

static void
add_item(struct spill *sp, void *item, uint64_t seq, const struct op_state *state)
{
	if (sp->items == sp->cap) {
		sp->cap = sp->cap == 0 ? 256 : 2 * sp->cap;
		sp->item = xrealloc(sp->item, sp->cap * sizeof(*sp->item));
	}
	sp->store->ops->ref(item);
	sp->item[sp->items++] = (struct spill_item){ .item = item, .seq = seq, .state = *state };
}

/* The oldest live ones: those up to `through`, and more until only keep_bytes stay. */
static void
collect(struct spill *sp)
{
	struct lane *l = sp->lane;
	uint64_t taken = 0, seq, size;

	sp->cap = l->live < JOB_MESSAGES ? (uint32_t)l->live : JOB_MESSAGES;
	sp->item = xrealloc(sp->item, (sp->cap + 1) * sizeof(*sp->item));
	for (seq = l->low; seq < l->high && sp->items < JOB_MESSAGES; seq++) {
		const struct slot *slot = lane_slot(l, seq);

		if (slot == NULL)
			continue;
		if (seq > sp->through && (taken >= l->bytes || l->bytes - taken <= sp->keep_bytes))
			break;
		size = sp->store->ops->body_size(slot->item);
		if (taken + size > JOB_BYTES && sp->items > 0)
			break;
		add_item(sp, slot->item, seq, lane_state(l, seq));
		taken += size;
	}
}

/* A lane's last segment goes on if it is of this run, has room, and nothing else is at it. */
static void
choose_file(struct spill *sp)
{
	struct lane *l = sp->lane;
	struct segment *g = l->segments > 0 ? l->segment[l->segments - 1] : NULL;

	if (g == NULL || g->is_closed || g->is_rewritten || g->live == 0 ||
	    g->end >= sp->store->cfg.segment_bytes ||
	    g->messages >= sp->store->cfg.segment_messages)
		return;
	sp->continued = g;
	sp->continued_end = g->end;
	sp->continued_messages = g->messages;
	segment_name(l, g->first, sp->continued_name);
	g->is_appended = true;
	g->users++;
}

static void
spill_free(struct spill *sp)
{
	uint32_t i;

	for (i = 0; i < sp->items; i++)
		if (sp->item[i].item != NULL)
			sp->store->ops->unref(sp->item[i].item);
	rangeset_fini(&sp->acked);
	free(sp->item);
	free(sp->file);
	free(sp);
}

static void
spill_over(struct spill *sp)
{
	struct lane *l = sp->lane;

	l->spill = NULL;
	spill_free(sp);
	lane_unuse(l);
}

/* Returns how many messages it pinned. */
static uint32_t
spill_begin(struct spill *sp)
{
	struct store *s = sp->store;
	uint32_t items;

	if (!sp->lane->is_closed && sp->items == 0)
		collect(sp);
	if (sp->lane->is_closed || sp->items == 0) {
		spill_over(sp);
		return 0;
	}
	items = sp->items;
	choose_file(sp);
	sp->job.run = spill_run;
	sp->job.done = spill_done;
	sp->job.writes = true;
	s->chains.spills->running++;
	chains_submit(s, &sp->job);
	return items;
}

/* Returns true when more could begin: the next turn has them, as pinning takes its time. */
static bool
begin_waiting(struct store *s)
{
	struct spill_list *list = s->chains.spills;
	struct spill *sp;

	while (list->running < RUNNING_MAX && (sp = TAILQ_FIRST(&list->waiting)) != NULL) {
		if (list->pinned > JOB_MESSAGES / 2)
			return true;
		TAILQ_REMOVE(&list->waiting, sp, link);
		list->waits--;
		list->pinned += spill_begin(sp);
	}
	return false;
}

/* Lanes take their turn. */
static void
enqueue(struct lane *l, uint64_t through, uint64_t keep_bytes, const struct lane_item *items,
    uint32_t n)
{
	struct store *s = l->store;
	struct spill *sp = xcalloc(1, sizeof *sp);
	uint32_t i;

	sp->store = s;
	sp->lane = l;
	sp->through = through;
	sp->keep_bytes = keep_bytes;
	l->spill = sp;
	l->jobs++;
	for (i = 0; i < n && i < JOB_MESSAGES; i++)
		add_item(sp, items[i].item, items[i].seq, &items[i].state);
	TAILQ_INSERT_TAIL(&s->chains.spills->waiting, sp, link);
	s->chains.spills->waits++;
}

static bool
may_spill(const struct lane *l)
{
	const struct store *s = l->store;

	return l->spill == NULL && !l->is_closed && !s->recovering && s->chains.failed == 0 &&
	       s->now_ms >= l->spill_after_ms;
}

bool
spill_start(struct lane *l, uint64_t through, const struct lane_item *items, uint32_t n)
{
	if (!may_spill(l))
		return false;
	enqueue(l, through, UINT64_MAX, items, n);
	(void)begin_waiting(l->store);
	return true;
}

/* The job begins with spill_turn(): one message may send ten lanes over their bounds, and pinning takes its time. */
void
spill_look(const struct store *s, struct lane *l)
{
	uint64_t span = l->high - l->low, through = 0, keep = UINT64_MAX;

	if (l->live == 0 || !may_spill(l))
		return;
	if (span > s->cfg.lane_entries)
		through = l->high - 1 - s->cfg.lane_entries / 2;
	if (lane_is_sparse(l) && through < l->high - 1 - LANE_SPARSE / 2)
		through = l->high - 1 - LANE_SPARSE / 2;
	if (l->bytes > s->cfg.lane_bytes)
		keep = s->cfg.lane_bytes / 2;
	if (through != 0 || keep != UINT64_MAX)
		enqueue(l, through, keep, NULL, 0);
}

uint64_t
lane_memory_bytes(const struct lane *l)
{
	return l->bytes;
}

bool
lane_spill(struct lane *l, uint64_t keep_bytes)
{
	if (!l->durable || l->live == 0 || l->bytes <= keep_bytes)
		return l->spill == NULL;
	if (!may_spill(l))
		return false;
	enqueue(l, 0, keep_bytes, NULL, 0);
	(void)begin_waiting(l->store);
	return true;
}

bool
lane_spill_through(struct lane *l, uint64_t through)
{
	if (!l->durable || l->live == 0 || l->low > through)
		return false;
	(void)spill_start(l, through, NULL, 0); /* where a job is under way, later */
	return true;
}

bool
lane_spill_items(struct lane *l, const struct lane_item *items, uint32_t n)
{
	assert(!l->durable);
	if (n == 0)
		return l->spill == NULL;
	assert(items[0].seq > l->chain_end);
	return spill_start(l, items[n - 1].seq, items, n);
}

bool
spill_note_ack(struct lane *l, uint64_t seq)
{
	struct spill *sp = l->spill;

	if (sp == NULL || sp->items == 0 || seq < sp->item[0].seq ||
	    seq > sp->item[sp->items - 1].seq)
		return false;
	rangeset_add(&sp->acked, seq, seq);
	return true;
}

/* ---- what a job wrote enters the chain ---- */

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

static void
enter_file(struct spill *sp, const struct spill_file *f)
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

static void
release_continued(struct spill *sp)
{
	struct segment *g = sp->continued;

	if (g == NULL)
		return;
	sp->continued = NULL;
	g->is_closed |= sp->continued_failed;
	g->is_appended = false;
	g->users--;
	if (!g->is_doomed && g->live == 0 && g->acks.n == 0)
		segment_doom(sp->lane, g, sp->lane->durable ? sp->store->last_lsn : 0);
}

static void
say_error(struct spill *sp)
{
	static struct log_limit limit = { .burst = 5 };
	struct store *s = sp->store;

	if (sp->error == 0)
		return;
	sp->lane->spill_after_ms = s->now_ms + RETRY_MS;
	if (!disk_is_short(sp->error)) {
		if (s->chains.failed == 0)
			log_error("store: a segment of queue %" PRIu64 " cannot be written: %s",
			    sp->lane->name.queue, strerror(-sp->error));
		s->chains.failed = sp->error;
	} else if (log_allowed(&limit)) {
		log_warning("store: a segment of queue %" PRIu64
		            " cannot be written, its messages stay "
		            "where they are: %s",
		    sp->lane->name.queue, strerror(-sp->error));
	}
}

/* Nothing of it enters: the lane closed, or the disk failed. */
static void
abandon(struct spill *sp)
{
	uint32_t i;

	for (i = sp->entered; i < sp->files; i++)
		if (!sp->file[i].is_continued)
			segment_unlink(sp->store, sp->file[i].name);
	sp->entered = sp->files;
}

static void
unpin(struct spill *sp, const struct spill_file *f)
{
	uint32_t i;

	for (i = f->item; i < f->item + f->items; i++) {
		sp->store->ops->unref(sp->item[i].item);
		sp->item[i].item = NULL;
	}
}

/* The last of its files has entered, or there was none. */
static void
end_job(struct spill *sp)
{
	struct spill_list *list = sp->store->chains.spills;
	struct store *s = sp->store;
	struct lane *l = sp->lane;

	say_error(sp);
	s->stats.spilled_bytes += sp->bytes;
	TAILQ_REMOVE(&list->ended, sp, link);
	list->running--;
	l->jobs++;
	spill_over(sp);
	if (!l->is_closed)
		spill_look(s, l);
	lane_unuse(l);
}

void
spill_look_at_lag(struct lane *l)
{
	l->lags = true;
	TAILQ_INSERT_TAIL(&l->store->lagging, l, lag_link);
}

void
spill_lag_ends(struct lane *l)
{
	if (!l->lags)
		return;
	l->lags = false;
	l->store->lags_ended++;
	TAILQ_REMOVE(&l->store->lagging, l, lag_link);
}

/* Lanes leave the list when they are within their bounds again, by jobs or because they were consumed. Nobody
 * publishes into them meanwhile, so it is here that another job is begun. */
static void
look_at_lagging(struct store *s)
{
	struct lane *l, *next;
	unsigned n = 0;

	for (l = TAILQ_FIRST(&s->lagging); l != NULL && n < LAGGING_LOOKED_AT; l = next, n++) {
		next = TAILQ_NEXT(l, lag_link);
		if (l->high - l->low <= s->cfg.lane_entries && l->bytes <= s->cfg.lane_bytes) {
			spill_lag_ends(l);
			continue;
		}
		TAILQ_REMOVE(&s->lagging, l, lag_link);
		TAILQ_INSERT_TAIL(&s->lagging, l, lag_link);
		if (l->spill == NULL)
			spill_look(s, l);
	}
}

/* One file, or the beginning of jobs: each takes about a millisecond. */
bool
spill_turn(struct store *s)
{
	struct spill_list *list = s->chains.spills;
	struct spill *sp = TAILQ_FIRST(&list->ended);

	list->pinned = 0;
	look_at_lagging(s);
	if (sp == NULL)
		return begin_waiting(s);
	if (sp->lane->is_closed || s->chains.failed != 0)
		abandon(sp);
	if (sp->entered < sp->files) {
		struct spill_file *f = &sp->file[sp->entered++];

		enter_file(sp, f);
		unpin(sp, f);
	}
	if (sp->entered == 1 || sp->entered == sp->files)
		release_continued(sp);
	if (sp->entered == sp->files)
		end_job(sp);
	return !TAILQ_EMPTY(&list->ended) ||
	       (list->running < RUNNING_MAX && !TAILQ_EMPTY(&list->waiting));
}

void
spills_free(struct spill_list **lp)
{
	struct spill_list *list = *lp;
	struct spill *sp;

	*lp = NULL;
	while ((sp = TAILQ_FIRST(&list->waiting)) != NULL) {
		TAILQ_REMOVE(&list->waiting, sp, link);
		spill_over(sp);
	}
	while ((sp = TAILQ_FIRST(&list->ended)) != NULL) {
		TAILQ_REMOVE(&list->ended, sp, link);
		release_continued(sp);
		spill_over(sp);
	}
	free(list);
}
