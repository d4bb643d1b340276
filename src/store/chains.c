/* SPDX-License-Identifier: Apache-2.0
 * All chains together: their jobs, the files that go, figures, beginning and end. */
#include "store/store_priv.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/wake.h"
#include "store/mutant.h"
#include "store/segment_file.h"

enum {
	REAP_BATCH = 64, /* names a job */
	REAP_LOOK = 1024 /* segments a turn */
};

/* ---- files that go ---- */

struct unlinking {
	struct worker_job job;
	struct store *store;
	char *name[REAP_BATCH]; /* owned */
	bool is_damaged[REAP_BATCH];
	int error[REAP_BATCH];
	unsigned n;
};

/* What could not be read is kept for whoever may want to look at it. */
static int
set_aside(struct disk *d, const char *name)
{
	const char *slash = strrchr(name, '/');
	char *to = xasprintf("set-aside/%s", slash == NULL ? name : slash + 1);
	int error = d->ops->make_folder(d, "set-aside");

	if (error == 0)
		error = d->ops->rename(d, name, to);
	free(to);
	return error;
}

static void
unlink_run(struct worker_job *job)
{
	struct unlinking *u = container_of(job, struct unlinking, job);
	struct disk *d = u->store->disk;
	unsigned i;

	for (i = 0; i < u->n; i++) {
		u->error[i] =
		    u->is_damaged[i] ? set_aside(d, u->name[i]) : d->ops->unlink(d, u->name[i]);
	}
}

static void
unlink_done(struct worker_job *job)
{
	struct unlinking *u = container_of(job, struct unlinking, job);
	unsigned i;

	u->store->chains.jobs--;
	for (i = 0; i < u->n; i++) {
		if (u->error[i] != 0 && u->error[i] != -ENOENT)
			log_warning(
			    "store: %s cannot be removed: %s", u->name[i], strerror(-u->error[i]));
		free(u->name[i]);
	}
	free(u);
}

/* Adds a name to the batch *up, which goes to a worker when it is full. */
static void
unlink_add(struct store *s, struct unlinking **up, const char *name, bool is_damaged)
{
	struct unlinking *u = *up;

	if (u == NULL) {
		u = *up = xcalloc(1, sizeof *u);
		u->job.run = unlink_run;
		u->job.done = unlink_done;
		u->job.writes = true;
		u->store = s;
	}
	u->is_damaged[u->n] = is_damaged;
	u->name[u->n++] = xstrdup(name);
	if (u->n == REAP_BATCH) {
		chains_submit(s, &u->job);
		*up = NULL;
	}
}

void
segment_unlink(struct store *s, const char *name)
{
	struct unlinking *u = NULL;

	unlink_add(s, &u, name, false);
	chains_submit(s, &u->job);
}

/* Once, after recovery. */
static void
doom_empty(struct store *s)
{
	struct segment *g, *next;

	s->chains.is_swept = true;
	for (g = TAILQ_FIRST(&s->chains.all); g != NULL; g = next) {
		next = TAILQ_NEXT(g, link);
		if (g->live == 0 && g->acks.n == 0)
			segment_doom(g->lane, g, 0);
	}
}

/* Does nothing need its file any more? */
static bool
may_go(const struct segment *g, uint64_t durable)
{
	return g->users == 0 && (g->doomed_at == 0 || g->doomed_at < durable || MUTANT(UNLINK));
}

/* Some of them; those that have to wait go to the end. */
bool
segments_reap(struct store *s)
{
	uint64_t durable = s->journal == NULL ? UINT64_MAX : journal_durable(s->journal);
	unsigned looked = 0, gone = 0;
	struct unlinking *u = NULL;
	struct segment *g, *last;
	bool is_last;

	assert(!s->record.is_open && !s->recovering);
	if (!s->chains.is_swept)
		doom_empty(s);
	if (s->snapshot_holds > 0)
		return false;
	last = TAILQ_LAST(&s->chains.doomed, segment_list);
	is_last = last == NULL;
	for (; !is_last && looked < REAP_LOOK; looked++) {
		g = TAILQ_FIRST(&s->chains.doomed);
		is_last = g == last;
		if (g->doomed_at == DOOMED_IN_RECORD)
			g->doomed_at = s->last_lsn;
		if (may_go(g, durable)) {
			unlink_add(s, &u, g->doomed_name, g->is_damaged);
			segment_free_doomed(&s->chains, g);
			gone++;
		} else {
			TAILQ_REMOVE(&s->chains.doomed, g, link);
			TAILQ_INSERT_TAIL(&s->chains.doomed, g, link);
		}
	}
	if (u != NULL)
		chains_submit(s, &u->job);
	return !is_last && gone > 0;
}

/* ---- all chains ---- */

void
segments_stats(const struct store *s, struct store_stats *out)
{
	const struct chains *c = &s->chains;

	out->segments = c->segments;
	out->segment_bytes = c->live_bytes + c->garbage + c->segments * FILE_HEADER;
	out->segment_live = c->messages;
	out->segment_garbage = c->garbage;
}

void
chains_submit(struct store *s, struct worker_job *job)
{
	s->chains.jobs++;
	workers_submit(s->workers, job);
}

void
chains_init(struct store *s)
{
	TAILQ_INIT(&s->chains.all);
	TAILQ_INIT(&s->chains.doomed);
	s->chains.spills = spills_new();
	s->chains.readers = readers_new();
}

static void
wait_for_jobs(struct store *s)
{
	while (s->chains.jobs > 0) {
		if (s->cfg.threads)
			wake_wait(workers_fd(s->workers), 100);
		else
			(void)workers_step(s->workers, 0);
		workers_take(s->workers);
	}
}

void
chains_free(struct store *s)
{
	struct segment *g;
	struct lane *l;

	wait_for_jobs(s);
	TAILQ_FOREACH (l, &s->lanes, all_link)
		reader_cancel(l);
	spills_free(&s->chains.spills);
	rewrite_free(s);
	readers_free(&s->chains.readers);
	while ((g = TAILQ_FIRST(&s->chains.doomed)) != NULL)
		segment_free_doomed(&s->chains, g);
}
