/* SPDX-License-Identifier: Apache-2.0
 * Slots: the files in journal/ that the journal's files live in, one after the other. Their names are only numbers; which
 * journal file a slot holds stands in its header, so that using it again needs no rename.
 *
 * Spares are made ahead by a worker: allocated, filled with zeros (a sync of blocks that were written before is faster),
 * synced. A slot whose file was given up becomes a spare when there are too few, and is removed otherwise. One job at a
 * time. No spare is made before the first file of a run was used a little: a node that writes hardly anything needs none. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/journal_priv.h"
#include "store/mutant.h"

enum {
	ZEROS = 256 << 10,
	SYNC_EVERY = 4 << 20, /* bytes of zeros: others' syncs do not wait for 32 MiB of them */
	USED_SHARE = 16 /* of a file; so much of the first one is used before spares are made */
};

struct slot_job {
	struct worker_job job;
	struct journal *journal; /* NULL: it has gone. Core thread */
	struct disk *disk;
	uint32_t make;    /* NO_SLOT: none */
	uint32_t *remove; /* owned */
	uint32_t removes;
	uint64_t size;
	int result;
	atomic_bool cancelled;
};

void
slot_name(uint32_t slot, char out[JOURNAL_NAME])
{
	(void)snprintf(out, JOURNAL_NAME, "journal/%08u", slot);
}

/* Without the folder. Nothing but what slot_name() makes. */
bool
slot_name_parse(const char *name, uint32_t *slot)
{
	char again[JOURNAL_NAME];
	uint64_t n = 0;

	if (*name == '\0' || strlen(name) > 10)
		return false;
	for (const char *p = name; *p != '\0'; p++) {
		if (*p < '0' || *p > '9')
			return false;
		n = n * 10 + (uint64_t)(*p - '0');
	}
	if (n >= NO_SLOT)
		return false;
	slot_name((uint32_t)n, again);
	*slot = (uint32_t)n;
	return strcmp(strchr(again, '/') + 1, name) == 0;
}

/* ---- the list of spares ---- */

uint32_t
slots_spares(struct journal *j)
{
	uint32_t n;

	pthread_mutex_lock(&j->shared.lock);
	n = j->shared.spares;
	pthread_mutex_unlock(&j->shared.lock);
	return n;
}

uint32_t
slots_take(struct journal *j)
{
	uint32_t slot = NO_SLOT;

	pthread_mutex_lock(&j->shared.lock);
	if (j->shared.spares > 0)
		slot = j->shared.spare[--j->shared.spares];
	pthread_mutex_unlock(&j->shared.lock);
	return slot;
}

static bool
try_add(struct journal *j, uint32_t slot)
{
	bool fits;

	pthread_mutex_lock(&j->shared.lock);
	fits = j->shared.spares < SPARES_MOST;
	if (fits)
		j->shared.spare[j->shared.spares++] = slot;
	pthread_mutex_unlock(&j->shared.lock);
	return fits;
}

/* Where there are enough by now, one more file than needed stays until the next start. */
void
slots_put_back(struct journal *j, uint32_t slot)
{
	(void)try_add(j, slot);
}

void
slots_doom(struct journal *j, uint32_t slot)
{
	if (j->doomed_n == j->doomed_cap) {
		j->doomed_cap = j->doomed_cap == 0 ? 16 : j->doomed_cap * 2;
		j->doomed = xrealloc(j->doomed, j->doomed_cap * sizeof *j->doomed);
	}
	j->doomed[j->doomed_n++] = slot;
}

void
slots_add_spare(struct journal *j, uint32_t slot)
{
	if (!try_add(j, slot))
		slots_doom(j, slot);
}

/* ---- the job ---- */

static int
fill_with_zeros(struct slot_job *s, struct disk_file *f)
{
	const struct disk_ops *ops = s->disk->ops;
	uint8_t *zeros = xcalloc(1, ZEROS);
	uint64_t at = 0, n;
	int r = ops->resize(f, s->size);

	while (r == 0 && at < s->size) {
		if (atomic_load_explicit(&s->cancelled, memory_order_relaxed)) {
			r = -ECANCELED;
			break;
		}
		n = s->size - at < ZEROS ? s->size - at : ZEROS;
		r = disk_write_one(s->disk, f, zeros, n, at);
		at += n;
		if (r == 0 && (at % SYNC_EVERY == 0 || at == s->size)) {
			r = ops->sync(f);
			r = disk_is_short(r) ? -EIO : r;
		}
	}
	free(zeros);
	return r;
}

static int
make_slot(struct slot_job *s)
{
	const struct disk_ops *ops = s->disk->ops;
	char name[JOURNAL_NAME];
	struct disk_file *f;
	int r;

	slot_name(s->make, name);
	r = ops->open(s->disk, name, DISK_CREATE, &f);
	if (r != 0)
		return r;
	r = fill_with_zeros(s, f);
	ops->close(f);
	if (r == 0) {
		r = ops->sync_folder(s->disk, "journal");
		return disk_is_short(r) ? -EIO : r;
	}
	(void)ops->unlink(s->disk, name);
	return r;
}

/* A removal that fails is of no consequence: the next start finds the file. */
static void
run_job(struct worker_job *job)
{
	struct slot_job *s = container_of(job, struct slot_job, job);
	char name[JOURNAL_NAME];

	for (uint32_t i = 0; i < s->removes; i++) {
		slot_name(s->remove[i], name);
		(void)s->disk->ops->unlink(s->disk, name);
	}
	if (s->make != NO_SLOT)
		s->result = make_slot(s);
}

/* A disk that fails here fails for the journal too. */
static void
end_making(struct journal *j, const struct slot_job *s)
{
	int none = 0;

	if (s->result == 0) {
		j->spares_short = false;
		atomic_fetch_add_explicit(&j->created, 1, memory_order_relaxed);
		slots_add_spare(j, s->make);
	} else if (disk_is_short(s->result)) {
		j->spares_short = true;
		atomic_store(&j->wants_retry, true);
		pthread_mutex_lock(&j->shared.lock);
		j->shared.nudged = true;
		pthread_mutex_unlock(&j->shared.lock);
		pthread_cond_signal(&j->shared.work);
	} else if (s->result != -EEXIST) {
		atomic_compare_exchange_strong(&j->failed, &none, s->result);
	}
}

static void
end_job(struct worker_job *job)
{
	struct slot_job *s = container_of(job, struct slot_job, job);
	struct journal *j = s->journal;

	if (j != NULL) {
		j->slot_job = NULL;
		if (s->make != NO_SLOT)
			end_making(j, s);
		slots_poll(j);
	}
	free(s->remove);
	free(s);
}

/* ---- the core's part of a poll ---- */

static bool
may_recycle(const struct journal *j, const struct jfile *f)
{
	return f->number < j->oldest &&
	       (MUTANT(REUSE) || (f->given_up_at != 0 && f->given_up_at <= j->durable));
}

/* Files that no start needs any more leave the table. */
static void
recycle(struct journal *j)
{
	struct jfile *f;
	uint32_t n = 0, slot;

	if (j->slots_held > 0)
		return;
	for (; n + 1 < j->files && may_recycle(j, j->file[n]); n++) {
		f = j->file[n];
		slot = atomic_load_explicit(&f->slot, memory_order_acquire);
		assert(slot != NO_SLOT);
		if (f->size == j->cfg.file_size)
			slots_add_spare(j, slot);
		else
			slots_doom(j, slot);
		j->files_bytes -= f->size;
		j->stats.recycled++;
		free(f);
	}
	if (n == 0)
		return;
	j->files -= n;
	memmove(j->file, j->file + n, j->files * sizeof(struct jfile *));
}

void
journal_trim(struct journal *j)
{
	uint32_t slot;

	while (slots_spares(j) > SPARES_WANTED && (slot = slots_take(j)) != NO_SLOT)
		slots_doom(j, slot);
	if (j->doomed_n > 0)
		slots_poll(j);
}

/* Of the file that the start made, which may be smaller than others. */
static bool
is_used_a_little(const struct journal *j)
{
	const struct jfile *f = j->file[j->files - 1];
	uint64_t a_little = j->cfg.file_size / USED_SHARE, half = f->size / 2;

	return f->number != j->run_began || lsn_at(j->end) >= (a_little < half ? a_little : half);
}

static bool
wants_spare(struct journal *j)
{
	if (slots_spares(j) >= SPARES_WANTED) {
		j->spares_short = false;
		return false;
	}
	/* Once one was short it is tried until it succeeds: publishers wait for that. */
	if (!j->spares_short && !is_used_a_little(j))
		return false;
	return !j->spares_short || atomic_exchange(&j->retry, false);
}

void
slots_poll(struct journal *j)
{
	struct slot_job *s;
	bool makes;

	if (!j->is_recovered || journal_failed(j) != 0)
		return;
	recycle(j);
	if (j->workers == NULL || j->slot_job != NULL)
		return;
	makes = wants_spare(j);
	if (!makes && j->doomed_n == 0)
		return;
	s = xcalloc(1, sizeof *s);
	s->job.run = run_job;
	s->job.done = end_job;
	s->job.writes = true;
	s->journal = j;
	s->disk = j->disk;
	s->make = makes ? atomic_fetch_add(&j->next_slot, 1) : NO_SLOT;
	s->size = j->cfg.file_size;
	s->remove = j->doomed;
	s->removes = j->doomed_n;
	j->doomed = NULL;
	j->doomed_n = j->doomed_cap = 0;
	j->slot_job = s;
	workers_submit(j->workers, &s->job);
}

void
slots_fini(struct journal *j)
{
	if (j->slot_job != NULL) {
		j->slot_job->journal = NULL;
		atomic_store(&j->slot_job->cancelled, true);
	}
	free(j->doomed);
}
