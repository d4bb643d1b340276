/* SPDX-License-Identifier: Apache-2.0
 * A copy of a running node's state, which is a data folder itself:
 *
 * 1. When all that was appended so far is durable, S = the durable LSN: from here on no journal file is used again, no
 *    segment unlinked or rewritten. Which segments there are is noted, with those that are empty and not unlinked yet.
 * 2. A worker copies the journal's files, of the last one what stands below S. They are copied because their slots are
 *    used again later; nothing below S ever changes. Then the journal may go on with its files.
 * 3. It links the segments: what counts in them never changes either. (Another file system: copies.) Each of them has to
 *    be there.
 * 4. The `store` file, then the manifest, which says that all is there.
 *
 * The worker does a little at a time and comes back, so that other jobs have their turn and a node that stops does not
 * wait. Names are those of the data folder's disk; an absolute path leads out of it. */
#include "store/store_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/file_copy.h"
#include "store/manifest.h"

enum { COPY_BYTES = 4 << 20, LINKS = 256 /* at a time */, TEXT = 512 };

enum stage { STAGE_FOLDERS, STAGE_JOURNAL, STAGE_SEGMENTS, STAGE_END, STAGE_OVER };

struct journal_part {
	char name[JOURNAL_NAME];
	uint64_t end, size; /* what is copied; how long the file is */
};

struct segment_part {
	struct op_lane lane;
	uint64_t first;
};

struct snapshot {
	struct worker_job job;
	struct store *store; /* NULL: cancelled */
	struct disk *disk;   /* borrowed: outlives the jobs */
	char *path;          /* owned */
	store_snapshot_fn *done;
	void *arg;
	bool is_waiting; /* for `begin` to be durable */
	bool holds_slots;
	uint64_t begin; /* LSN of the empty record */

	/* the worker's while a job is under way */
	enum stage stage;
	struct journal_part *journal; /* owned */
	uint32_t journals, journal_next;
	struct segment_part *segment; /* owned */
	uint32_t segments, segment_next;
	bool copies; /* no links to there */
	struct file_copy copy;
	bool is_copying;
	char *copy_name; /* owned: in the snapshot, for the manifest */
	struct manifest manifest;
	int error;
	char text[TEXT];
};

/* ---- the worker ---- */

static void
fail(struct snapshot *n, int error, const char *what, const char *name)
{
	n->error = error;
	(void)snprintf(n->text, sizeof n->text, "%s %s: %s", what, name, strerror(-error));
}

static void
nothing(void *arg, const char *name, uint64_t size)
{
	(void)arg;
	(void)name;
	(void)size;
}

/* Is that a place where the folder can be? If not, it is the caller's mistake. */
static bool
make_top(struct snapshot *n)
{
	const struct disk_ops *ops = n->disk->ops;
	int e = ops->list(n->disk, n->path, nothing, NULL);

	n->error = -EEXIST;
	if (e == 0) {
		(void)snprintf(n->text, sizeof n->text, "%s is there already", n->path);
		return false;
	}
	if (e == -ENOENT)
		e = ops->make_folder(n->disk, n->path);
	if (e == -ENOENT)
		(void)snprintf(n->text, sizeof n->text,
		    "cannot make %s: the folder that it is to be in is not there", n->path);
	else if (e == -EACCES || e == -EROFS)
		(void)snprintf(n->text, sizeof n->text,
		    "cannot make %s: %s; the node writes it itself, as its own user", n->path,
		    strerror(-e));
	else if (e != 0)
		fail(n, e, "cannot make", n->path);
	n->error = e == 0 || e == -EIO || e == -ENOSPC ? e : -EINVAL;
	return e == 0;
}

static void
make_folders(struct snapshot *n)
{
	static const char *const below[] = { "journal", "segments" };

	if (!make_top(n))
		return;
	for (size_t i = 0; i < COUNT_OF(below) && n->error == 0; i++) {
		char *folder = xasprintf("%s/%s", n->path, below[i]);
		int e = n->disk->ops->make_folder(n->disk, folder);

		if (e != 0)
			fail(n, e, "cannot make", folder);
		free(folder);
	}
	if (n->error == 0)
		n->stage = STAGE_JOURNAL;
}

/* NAME of the data folder to NAME of the snapshot. */
static void
begin_copy(struct snapshot *n, const char *name, uint64_t end, uint64_t size)
{
	char *to = xasprintf("%s/%s", n->path, name);
	int e = file_copy_begin(&n->copy, n->disk, name, n->disk, to, end, size);

	if (e != 0)
		fail(n, e, "cannot copy", name);
	n->is_copying = e == 0;
	free(n->copy_name);
	n->copy_name = xstrdup(name);
	free(to);
}

static void
copy_on(struct snapshot *n)
{
	int e = 1;

	for (uint64_t from = n->copy.at; e == 1 && n->copy.at - from < COPY_BYTES;)
		e = file_copy_step(&n->copy);
	if (e == 1)
		return;
	n->is_copying = false;
	if (e < 0)
		fail(n, e, "cannot copy", n->copy_name);
	else
		manifest_add(&n->manifest, n->copy_name, n->copy.size);
}

static void
next_journal_file(struct snapshot *n)
{
	struct journal_part *j;

	if (n->journal_next == n->journals) {
		n->stage = STAGE_SEGMENTS;
		return;
	}
	j = &n->journal[n->journal_next++];
	begin_copy(n, j->name, j->end, j->size);
}

/* The size of what was linked: a file of the same name may take its place meanwhile. */
static int
linked_size(struct snapshot *n, const char *name, uint64_t *size)
{
	struct disk_file *f;
	int e = n->disk->ops->open(n->disk, name, DISK_READ, &f);

	if (e != 0)
		return e;
	e = n->disk->ops->size(f, size);
	n->disk->ops->close(f);
	return e;
}

static void
link_segment(struct snapshot *n, const char *name)
{
	char *to = xasprintf("%s/%s", n->path, name);
	int e = n->copies ? -EXDEV : n->disk->ops->link(n->disk, name, to);
	uint64_t size;

	if (e == 0 && (e = linked_size(n, to, &size)) == 0) {
		manifest_add(&n->manifest, name, size);
	} else if (e == -EXDEV || e == -EPERM || e == -EOPNOTSUPP || e == -EMLINK) {
		n->copies |= e != -EMLINK;
		begin_copy(n, name, UINT64_MAX, 0);
	} else {
		fail(n, e, "cannot link", name);
	}
	free(to);
}

static void
next_segments(struct snapshot *n)
{
	char name[SEGMENT_NAME];

	for (int i = 0; i < LINKS && !n->is_copying && n->error == 0; i++) {
		if (n->segment_next == n->segments) {
			n->stage = STAGE_END;
			return;
		}
		segment_name_of(n->segment[n->segment_next].lane, true,
		    n->segment[n->segment_next].first, name);
		n->segment_next++;
		link_segment(n, name);
	}
}

static void
sync_folder(struct snapshot *n, const char *path)
{
	int e = n->error != 0 ? 0 : n->disk->ops->sync_folder(n->disk, path);

	if (e != 0)
		fail(n, e, "cannot sync", path);
}

/* "" where there is none: the data folder. */
static char *
folder_above(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return xstrdup("");
	return slash == path ? xstrdup("/") : xstrndup(path, (size_t)(slash - path));
}

static void
end_snapshot(struct snapshot *n)
{
	char *journal = xasprintf("%s/journal", n->path), *above = folder_above(n->path);
	char *segments = xasprintf("%s/segments", n->path);
	char *manifest = xasprintf("%s/" MANIFEST_NAME, n->path);
	int e;

	begin_copy(n, "store", STORE_FILE_SIZE, 0);
	while (n->is_copying && n->error == 0)
		copy_on(n);
	sync_folder(n, journal);
	sync_folder(n, segments);
	manifest_seal(&n->manifest);
	if (n->error == 0) {
		e = disk_replace(n->disk, manifest, n->manifest.p, n->manifest.n);
		if (e != 0)
			fail(n, e, "cannot write", manifest);
	}
	sync_folder(n, above);
	n->stage = STAGE_OVER;
	free(manifest);
	free(segments);
	free(above);
	free(journal);
}

static void
run(struct worker_job *job)
{
	struct snapshot *n = container_of(job, struct snapshot, job);

	if (n->is_copying) {
		copy_on(n);
		return;
	}
	switch (n->stage) {
	case STAGE_FOLDERS: make_folders(n); break;
	case STAGE_JOURNAL: next_journal_file(n); break;
	case STAGE_SEGMENTS: next_segments(n); break;
	case STAGE_END: end_snapshot(n); break;
	case STAGE_OVER: break;
	}
}

/* ---- the core thread ---- */

static void
snapshot_free(struct snapshot *n)
{
	file_copy_cancel(&n->copy);
	free(n->segment);
	free(n->journal);
	manifest_fini(&n->manifest);
	free(n->copy_name);
	free(n->path);
	free(n);
}

static void
release_slots(struct snapshot *n)
{
	if (n->holds_slots)
		journal_release_slots(n->store->journal);
	n->holds_slots = false;
}

/* No longer the store's. */
static void
detach(struct snapshot *n)
{
	struct store *s = n->store;

	release_slots(n);
	if (!n->is_waiting)
		s->snapshot_holds--;
	s->snapshot = NULL;
	n->store = NULL;
}

static void
finish(struct snapshot *n)
{
	store_snapshot_fn *done = n->done;

	detach(n);
	if (n->error == 0)
		log_info("snapshot written: %s", n->path);
	else
		log_error("snapshot failed: %s%s", n->text,
		    n->stage > STAGE_FOLDERS ? "; what was written so far stays there" : "");
	done(n->arg, n->error, n->text);
	snapshot_free(n);
}

static void
on_done(struct worker_job *job)
{
	struct snapshot *n = container_of(job, struct snapshot, job);

	if (n->store == NULL) {
		snapshot_free(n);
		return;
	}
	if (n->error != 0 || n->stage == STAGE_OVER) {
		finish(n);
		return;
	}
	if (n->stage > STAGE_JOURNAL)
		release_slots(n);
	workers_submit(n->store->workers, &n->job);
}

/* Files below S that are there, also those that were given up and wait to be used again: the chunk that says so may be
 * one that is not durable yet. */
static void
note_journal(struct snapshot *n, uint64_t durable)
{
	struct journal *j = n->store->journal;
	uint32_t first = journal_first(j), last = lsn_file(durable);

	n->journal = xcalloc(last - first + 1, sizeof *n->journal);
	for (uint32_t i = first; i <= last; i++) {
		struct journal_part *p = &n->journal[n->journals];
		struct journal_file_info info;

		if (!journal_file(j, i, &info) || !journal_file_name(j, i, p->name))
			continue;
		p->end = i == last ? lsn_at(durable) : info.end;
		p->size = info.size;
		n->journals++;
	}
}

static void
note_segments(struct snapshot *n)
{
	const struct chains *c = &n->store->chains;
	const struct segment *g;
	uint32_t most = 0;

	TAILQ_FOREACH (g, &c->all, link)
		most++;
	TAILQ_FOREACH (g, &c->doomed, link)
		most++;
	n->segment = xcalloc(most + 1, sizeof *n->segment);
	TAILQ_FOREACH (g, &c->all, link)
		if (g->lane->durable)
			n->segment[n->segments++] =
			    (struct segment_part){ g->lane->name, g->first };
	TAILQ_FOREACH (g, &c->doomed, link) {
		struct segment_part *p = &n->segment[n->segments];

		n->segments += strncmp(g->doomed_name, "segments/", 9) == 0 &&
		               segment_name_parse(g->doomed_name, &p->lane, &p->first);
	}
}

void
snapshot_turn(struct store *s)
{
	struct snapshot *n = s->snapshot;
	uint64_t durable;

	if (n == NULL || !n->is_waiting)
		return;
	if (store_failed(s) != 0) {
		n->error = store_failed(s);
		(void)snprintf(n->text, sizeof n->text, "the node's disk failed");
		finish(n);
		return;
	}
	durable = journal_durable(s->journal);
	if (durable <= n->begin)
		return;
	n->is_waiting = false;
	s->snapshot_holds++;
	journal_hold_slots(s->journal);
	n->holds_slots = true;
	note_journal(n, durable);
	note_segments(n);
	workers_submit(s->workers, &n->job);
}

int
store_snapshot(struct store *s, const char *path, store_snapshot_fn *done, void *arg)
{
	struct snapshot *n;
	size_t length = strlen(path);

	if (s->snapshot != NULL)
		return -EBUSY;
	while (length > 1 && path[length - 1] == '/')
		length--;
	n = xcalloc(1, sizeof *n);
	n->job.run = run;
	n->job.done = on_done;
	n->job.writes = true;
	n->store = s;
	n->disk = s->disk;
	n->path = xstrndup(path, length);
	n->done = done;
	n->arg = arg;
	manifest_init(&n->manifest);
	n->begin = store_wait_all(s).lsn;
	n->is_waiting = true;
	s->snapshot = n;
	return 0;
}

void
store_snapshot_cancel(struct store *s)
{
	struct snapshot *n = s->snapshot;
	bool is_running;

	if (n == NULL)
		return;
	is_running = !n->is_waiting;
	detach(n);
	if (!is_running)
		snapshot_free(n);
}
