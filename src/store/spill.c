/* SPDX-License-Identifier: Apache-2.0
 * Spill: the oldest messages that a lane has in memory go to the end of its chain.
 *
 *	core	pins the items of the oldest live slots, in which state they are		spill_begin
 *	worker	writes them into one or more segment files, each synced, then the folder	spill_write.c
 *	core	file by file, one a slice: what was acknowledged meanwhile goes into SEG's removed set, what was requeued
 *		into its exceptions; SEG is appended and applied (slots go, chain end moves), items are let go	spill_enter.c
 *
 * A crash before SEG is durable: the journal still has every message, the file has no SEG (or its SEG an earlier end), and
 * what it has too much does not count. The disk is full, as a write or a sync says: the files that are whole enter, the
 * rest stays in the journal and is put into another file after a second. A sync or write that fails otherwise ends the
 * node.
 *
 * The last file may be the lane's last segment, continued. Nothing below the end of its newest SEG changes; it is not
 * doomed or rewritten meanwhile. */
#include "store/spill_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

enum {
	RUNNING_MAX = 8,        /* jobs over all lanes */
	JOB_BYTES = 64 << 20,   /* of bodies a job */
	LAGGING_LOOKED_AT = 64, /* lanes a turn */
	JOB_MESSAGES = 49152,   /* three files: pinned in one go, about a millisecond */
	SHARE_SPILLS = 4,       /* of lanes that share their bounds, at a time */
	SLOT_COST = 100,        /* bytes that a message takes beside its body, about */
	RETRY_MS = 1000
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
	if (l->share != NULL)
		l->share->spills--;
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
	if (l->share != NULL)
		l->share->spills++;
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

/* Of lanes that share their bounds the largest goes first, as one file for much is better than many for little. The last
 * quarter of it stays. */
static void
look_at_share(struct lane_share *sh)
{
	struct lane *l = NULL, *k;

	if (sh->spills >= SHARE_SPILLS)
		return;
	TAILQ_FOREACH (k, &sh->lanes, share_link) {
		if (k->live > 0 && may_spill(k) &&
		    (l == NULL || k->bytes + k->live * SLOT_COST > l->bytes + l->live * SLOT_COST))
			l = k;
	}
	if (l != NULL)
		enqueue(l, l->low + (l->high - 1 - l->low) / 4 * 3, l->bytes / 4, NULL, 0);
}

/* The job begins with spill_turn(): one message may send ten lanes over their bounds, and pinning takes its time. */
void
spill_look(const struct store *s, struct lane *l)
{
	uint64_t span = l->high - l->low, through = 0, keep = UINT64_MAX;

	if (l->share != NULL && lane_is_over(s, l, 1))
		look_at_share(l->share);
	if (l->live == 0 || !may_spill(l))
		return;
	if (l->share == NULL && span > s->cfg.lane_entries)
		through = l->high - 1 - s->cfg.lane_entries / 2;
	if (lane_is_sparse(l) && through < l->high - 1 - LANE_SPARSE / 2)
		through = l->high - 1 - LANE_SPARSE / 2;
	if (l->share == NULL && l->bytes > s->cfg.lane_bytes)
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

/* ---- the end ---- */

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
		if (!lane_is_over(s, l, 1)) {
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

		spill_enter_file(sp, f);
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
