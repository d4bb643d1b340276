/* SPDX-License-Identifier: Apache-2.0
 * The journal thread: seals, writes and syncs what was handed over.
 *
 * A step takes all chunks that wait, stamps each one's CHUNK record with what is durable by then, writes runs of them with
 * one call, syncs once if anything needs it, and wakes the core thread once. Before the first chunk of a file everything in
 * the file before is synced, then the new one's header. A shortage (disk full, no descriptor) leaves the rest waiting; any
 * other error ends writing for good: positions stay where they are, so nothing is confirmed any more. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/wake.h"
#include "store/journal_priv.h"
#include "store/mutant.h"

enum {
	RUN_BYTES = 8 << 20,
	UNSYNCED_MOST =
	    16 << 20, /* then a sync is due, whatever the need: publishers wait at 64 MiB */
	ZEROS_AHEAD = 128 << 10,
	STACK = 256 << 10
};

/* Behind a run, where the file was never written before: so most syncs find blocks that the file system knows. */
static uint8_t zeros[ZEROS_AHEAD];

static uint64_t
end_of(const struct chunk *c)
{
	return lsn_of(c->file->number, c->at + c->n);
}

/* The first one is done with. */
static void
retire_first(struct writer *w)
{
	struct chunk *c = w->pending.first;

	w->pending.first = c->next;
	if (c->next == NULL)
		w->pending.end = &w->pending.first;
	chunks_push(&w->done, c);
}

/* ---- syncs ---- */

static void
count_sync(struct journal *j, uint64_t us)
{
	atomic_fetch_add_explicit(&j->syncs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&j->sync_us, us, memory_order_relaxed);
	atomic_fetch_add_explicit(
	    &j->sync_times[histogram_place(histogram_us, us)], 1, memory_order_relaxed);
	if (us > atomic_load_explicit(&j->sync_max_us, memory_order_relaxed))
		atomic_store_explicit(&j->sync_max_us, us, memory_order_relaxed);
}

/* Never tried again: a shortage that a sync reports is a failure like any other. */
static int
sync_file(struct journal *j, struct disk_file *f)
{
	uint64_t before = clock_mono_us();
	int r = j->disk->ops->sync(f);

	count_sync(j, clock_mono_us() - before);
	return disk_is_short(r) ? -EIO : r;
}

static int
sync_written(struct journal *j)
{
	struct writer *w = &j->w;
	int r;

	w->is_due = false;
	w->due_us = 0;
	if (w->durable == w->written)
		return 0;
	r = sync_file(j, w->f);
	if (r != 0)
		return r;
	w->durable = w->written;
	w->durable_through = w->written_through;
	atomic_store_explicit(&j->now_durable_through, w->durable_through, memory_order_release);
	atomic_store_explicit(&j->now_durable, w->durable, memory_order_release);
	return 0;
}

/* ---- files ---- */

/* A slot of its own, made at once: no spare is there, or the file is longer than others. No zeros: they take too long. */
static int
create_slot(struct journal *j, uint64_t size, uint32_t *slot, struct disk_file **out)
{
	const struct disk_ops *ops = j->disk->ops;
	char name[JOURNAL_NAME];
	int r;

	do {
		*slot = atomic_fetch_add(&j->next_slot, 1);
		slot_name(*slot, name);
		r = ops->open(j->disk, name, DISK_CREATE, out);
	} while (r == -EEXIST);
	if (r != 0)
		return r;
	r = ops->resize(*out, size);
	if (r != 0) {
		ops->close(*out);
		(void)ops->unlink(j->disk, name);
		return r;
	}
	atomic_fetch_add_explicit(&j->created, 1, memory_order_relaxed);
	return 0;
}

static int
write_header(struct journal *j, const struct jfile *file, struct disk_file *f)
{
	struct file_header h = {
		.kind = FILE_JOURNAL,
		.format = FORMAT_VERSION,
		.store_id = j->id.id,
		.number = file->number,
		.size = file->size,
	};
	uint8_t header[FILE_HEADER] = { 0 };
	int r;

	file_header_encode(&h, j->id.seed, header);
	r = disk_write_one(j->disk, f, header, sizeof header, 0);
	return r != 0 ? r : sync_file(j, f);
}

/* A spare, or a new one. */
static int
open_slot(struct journal *j, const struct jfile *file, uint32_t *slot, struct disk_file **out,
    bool *is_new)
{
	char name[JOURNAL_NAME];
	int r;

	*slot = file->size == j->cfg.file_size ? slots_take(j) : NO_SLOT;
	*is_new = *slot == NO_SLOT;
	if (*is_new)
		return create_slot(j, file->size, slot, out);
	slot_name(*slot, name);
	r = j->disk->ops->open(j->disk, name, DISK_WRITE, out);
	if (disk_is_short(r))
		slots_put_back(j, *slot);
	return r;
}

static int
begin_file(struct journal *j, struct jfile *file)
{
	struct disk_file *f;
	char name[JOURNAL_NAME];
	uint32_t slot;
	bool is_new;
	int r = open_slot(j, file, &slot, &f, &is_new);

	if (r != 0)
		return r;
	r = write_header(j, file, f);
	if (r == 0 && is_new) {
		r = j->disk->ops->sync_folder(j->disk, "journal");
		r = disk_is_short(r) ? -EIO : r;
	}
	if (r == 0) {
		j->w.file = file;
		j->w.f = f;
		j->w.touched = is_new ? FILE_HEADER : file->size;
		atomic_store_explicit(&file->slot, slot, memory_order_release);
		return 0;
	}
	j->disk->ops->close(f);
	if (is_new) {
		slot_name(slot, name);
		(void)j->disk->ops->unlink(j->disk, name);
	} else if (disk_is_short(r)) {
		slots_put_back(j, slot);
	}
	return r;
}

static void
close_file(struct journal *j)
{
	if (j->w.f != NULL)
		j->disk->ops->close(j->w.f);
	j->w.f = NULL;
	j->w.file = NULL;
}

/* Everything in the file before is durable before the next one is touched. */
static int
change_file(struct journal *j, struct jfile *file)
{
	int r;

	if (MUTANT(FILE_ORDER))
		j->w.durable = j->w.written;
	r = sync_written(j);
	if (r != 0)
		return r;
	close_file(j);
	return begin_file(j, file);
}

/* ---- chunks ---- */

static uint8_t *
stamp_record(uint8_t *p, uint64_t lsn, uint8_t kind, uint32_t payload)
{
	struct record_header h = { .length = payload, .kind = kind, .lsn = lsn };

	record_header_encode(&h, p);
	return p + RECORD_HEADER;
}

/* OPEN and CHUNK are filled in, and every record gets its sum. */
static void
seal(struct journal *j, struct chunk *c)
{
	uint64_t lsn = lsn_of(c->file->number, c->at);
	struct chunk_record stamp = { j->w.durable, c->oldest, 0, c->next_id, c->clock_ms };
	struct open_record opens = { c->file->previous_end, c->next_id, c->clock_ms };
	struct record_header h;
	uint8_t *p = c->p;
	uint32_t at = 0;

	if (c->begins) {
		open_encode(&opens, stamp_record(p, lsn, RECORD_OPEN, OPEN_PAYLOAD));
		p += OPEN_RECORD;
		lsn += OPEN_RECORD;
	}
	chunk_encode(&stamp, stamp_record(p, lsn, RECORD_CHUNK, CHUNK_PAYLOAD));
	while (at < c->n) {
		record_header_decode(&h, c->p + at);
		assert(h.lsn == lsn_of(c->file->number, c->at + at));
		record_seal(c->p + at, j->id.seed);
		at += (uint32_t)record_size(h.length);
	}
	assert(at == c->n);
}

/* Chunks from the first on that go to its file, as one run of bytes in it; returns how many. */
static unsigned
gather(struct journal *j, struct iovec iov[DISK_IOV_MAX], int *vectors)
{
	struct chunk *first = j->w.pending.first;
	uint64_t bytes = 0;
	unsigned chunks = 0;
	int n = 0;

	for (struct chunk *c = first; c != NULL && c->file == first->file; c = c->next) {
		bool joins = n > 0 && (uint8_t *)iov[n - 1].iov_base + iov[n - 1].iov_len == c->p;

		if (chunks > 0 && (bytes + c->n > RUN_BYTES || (!joins && n == DISK_IOV_MAX)))
			break;
		assert(c->at == first->at + bytes);
		seal(j, c);
		if (joins)
			iov[n - 1].iov_len += c->n;
		else
			iov[n++] = (struct iovec){ c->p, c->n };
		bytes += c->n;
		chunks++;
	}
	*vectors = n;
	return chunks;
}

/* Returns up to where the file will have been written. */
static uint64_t
add_zeros(const struct writer *w, uint64_t at, struct iovec *iov, int *n)
{
	uint64_t more;

	for (int i = 0; i < *n; i++)
		at += iov[i].iov_len;
	if (at <= w->touched || *n == DISK_IOV_MAX)
		return w->touched;
	more = w->file->size - at < ZEROS_AHEAD ? w->file->size - at : ZEROS_AHEAD;
	if (more > 0)
		iov[(*n)++] = (struct iovec){ zeros, more };
	return at + more;
}

static void
note_need(struct writer *w, const struct chunk *c)
{
	uint64_t due;

	if (c->need == SYNC_NOW)
		w->is_due = true;
	if (c->need != SYNC_WITHIN)
		return;
	due = clock_mono_us() + (uint64_t)c->within_ms * 1000;
	if (w->due_us == 0 || due < w->due_us)
		w->due_us = due;
}

static void
count_batch(struct journal *j, uint64_t bytes)
{
	atomic_fetch_add_explicit(&j->writes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&j->batch_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(
	    &j->batches[histogram_place(histogram_writes, bytes)], 1, memory_order_relaxed);
}

/* One run. The buffers are not given back before the end of the step, because the next run may join them. */
static int
write_run(struct journal *j)
{
	struct writer *w = &j->w;
	struct iovec iov[DISK_IOV_MAX];
	uint32_t at = w->pending.first->at;
	uint64_t touched, bytes = 0;
	unsigned chunks;
	int n, r;

	if (w->file != w->pending.first->file) {
		r = change_file(j, w->pending.first->file);
		if (r != 0)
			return r;
	}
	chunks = gather(j, iov, &n);
	touched = add_zeros(w, at, iov, &n);
	r = j->disk->ops->write(w->f, iov, n, at);
	if (r != 0)
		return r;
	w->touched = touched;
	for (; chunks > 0; chunks--) {
		note_need(w, w->pending.first);
		bytes += w->pending.first->n;
		w->written = end_of(w->pending.first);
		w->written_through = w->pending.first->through;
		retire_first(w);
	}
	count_batch(j, bytes);
	if (w->written_through - w->durable_through > UNSYNCED_MOST)
		w->is_due = true;
	atomic_store_explicit(&j->now_written, w->written, memory_order_release);
	return 0;
}

/* ---- a step ---- */

static void
take_queue(struct journal *j)
{
	pthread_mutex_lock(&j->shared.lock);
	chunks_move(&j->w.pending, &j->shared.queue);
	pthread_mutex_unlock(&j->shared.lock);
}

static void
give_done(struct journal *j)
{
	pthread_mutex_lock(&j->shared.lock);
	chunks_move(&j->shared.done, &j->w.done);
	pthread_mutex_unlock(&j->shared.lock);
}

static void
drop_pending(struct journal *j)
{
	while (j->w.pending.first != NULL)
		retire_first(&j->w);
	j->w.is_due = false;
	j->w.due_us = 0;
}

static bool
is_due(const struct writer *w, bool is_time)
{
	return w->is_due || (is_time && w->due_us != 0);
}

/* Tells a change; returns whether there is one. */
static bool
set_no_space(struct journal *j, bool no_space)
{
	if (atomic_load_explicit(&j->no_space, memory_order_relaxed) == no_space)
		return false;
	atomic_store_explicit(&j->no_space, no_space, memory_order_relaxed);
	return true;
}

enum writer_result
writer_step(struct journal *j, bool is_time)
{
	struct writer *w = &j->w;
	uint64_t written = w->written, durable = w->durable;
	bool tell, had_work;
	int r = 0, synced = 0;

	take_queue(j);
	had_work = w->pending.first != NULL;
	while (w->pending.first != NULL && r == 0 && atomic_load(&j->failed) == 0)
		r = write_run(j);
	if ((r == 0 || disk_is_short(r)) && is_due(w, is_time) && atomic_load(&j->failed) == 0)
		synced = sync_written(j);
	w->shortage = disk_is_short(r) ? r : 0;
	tell = set_no_space(j, w->shortage != 0);
	if (synced != 0 || (r != 0 && !disk_is_short(r)))
		atomic_store_explicit(&j->failed, synced != 0 ? synced : r, memory_order_release);
	if (atomic_load(&j->failed) != 0) {
		tell |= had_work || synced != 0;
		drop_pending(j);
	}
	give_done(j);
	if (tell || w->written != written || w->durable != durable)
		wake_up(j->fd);
	if (w->pending.first != NULL)
		return w->written != written ? WRITER_DONE : WRITER_BLOCKED;
	return had_work || w->durable != durable ? WRITER_DONE : WRITER_IDLE;
}

bool
journal_step(struct journal *j)
{
	assert(!j->has_thread);
	return writer_step(j, j->shared.queue.first == NULL) == WRITER_DONE;
}

/* ---- the thread ---- */

static struct timespec
time_of(uint64_t us)
{
	return (struct timespec){ .tv_sec = (time_t)(us / 1000000),
		.tv_nsec = (long)(us % 1000000) * 1000 };
}

/* Sleeps until there is something to do, or this time (UINT64_MAX: none). Returns whether the time has come. */
static bool
sleep_until(struct journal *j, uint64_t us)
{
	struct timespec t = time_of(us);
	int r = 0;

	pthread_mutex_lock(&j->shared.lock);
	while (j->shared.queue.first == NULL && !j->shared.stop && !j->shared.nudged &&
	       r != ETIMEDOUT) {
		j->shared.asleep = true;
		if (us == UINT64_MAX)
			r = pthread_cond_wait(&j->shared.work, &j->shared.lock);
		else
			r = pthread_cond_timedwait(&j->shared.work, &j->shared.lock, &t);
	}
	j->shared.asleep = false;
	j->shared.nudged = false;
	pthread_mutex_unlock(&j->shared.lock);
	return r == ETIMEDOUT;
}

/* A spare could not be made for want of space: the core thread is told when to try again. */
static void
remind(struct journal *j)
{
	if (!atomic_load_explicit(&j->wants_retry, memory_order_relaxed))
		return;
	atomic_store(&j->wants_retry, false);
	atomic_store(&j->retry, true);
	wake_up(j->fd);
}

/* Nothing to write: until the next sync is due, or the next reminder. */
static void
wait_for_work(struct journal *j)
{
	uint64_t until = j->w.due_us == 0 ? UINT64_MAX : j->w.due_us, remind_us = UINT64_MAX;

	if (atomic_load_explicit(&j->wants_retry, memory_order_relaxed))
		remind_us = clock_mono_us() + SPARE_RETRY_MS * 1000;
	if (sleep_until(j, remind_us < until ? remind_us : until) && remind_us <= until)
		remind(j);
}

/* A write waits for space: new work changes nothing about that. False: the end has come. */
static bool
wait_for_space(struct journal *j)
{
	uint64_t us = clock_mono_us() + SPACE_RETRY_MS * 1000;
	struct timespec t = time_of(us);
	bool stop;

	pthread_mutex_lock(&j->shared.lock);
	while (!j->shared.stop &&
	       pthread_cond_timedwait(&j->shared.work, &j->shared.lock, &t) != ETIMEDOUT)
		continue;
	stop = j->shared.stop;
	pthread_mutex_unlock(&j->shared.lock);
	return !stop;
}

static bool
is_over(struct journal *j)
{
	bool over;

	pthread_mutex_lock(&j->shared.lock);
	over = j->shared.stop && j->shared.queue.first == NULL;
	pthread_mutex_unlock(&j->shared.lock);
	return over;
}

static void *
writer_thread(void *arg)
{
	struct journal *j = arg;

	for (;;) {
		(void)writer_step(j, j->w.due_us != 0 && clock_mono_us() >= j->w.due_us);
		if (j->w.pending.first != NULL) {
			if (!wait_for_space(j))
				break;
		} else {
			if (is_over(j))
				break;
			wait_for_work(j);
		}
	}
	return NULL;
}

/* Signals are the core thread's. */
void
writer_start(struct journal *j)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int r;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&j->thread, &attr, writer_thread, j);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r != 0) {
		log_error("cannot start the journal's thread: %s", strerror(r));
		log_flush();
		abort();
	}
	j->has_thread = true;
}

/* What the thread left is written by the caller, and all of it synced, whatever its need was. */
void
writer_stop(struct journal *j)
{
	int r;

	if (j->has_thread) {
		pthread_mutex_lock(&j->shared.lock);
		j->shared.stop = true;
		pthread_mutex_unlock(&j->shared.lock);
		pthread_cond_signal(&j->shared.work);
		pthread_join(j->thread, NULL);
		j->has_thread = false;
	}
	while (writer_step(j, true) == WRITER_DONE)
		continue;
	if (j->w.pending.first != NULL)
		log_warning("the end of the journal could not be written: no space");
	if (journal_failed(j) == 0) {
		r = sync_written(j);
		if (r != 0)
			log_error("the end of the journal could not be synced: %s", strerror(-r));
	}
	close_file(j);
}
