/* SPDX-License-Identifier: Apache-2.0
 * The journal's core side: places for records, chunks, positions, what holds which file. See the header.
 *
 * A record gets its place in the file and in memory at once. Chunks lie one behind the other in a buffer, so that many
 * small turns need little memory and go out in one piece; a buffer is used from its beginning again when all chunks in
 * it are done with. */
#include "store/journal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/wake.h"
#include "store/journal_priv.h"

struct journal *
journal_new(
    struct disk *d, struct workers *w, const struct journal_config *c, const struct store_id *id)
{
	struct journal *j = xcalloc(1, sizeof *j);
	pthread_condattr_t attr;

	assert(c->file_size >= FILE_MIN && c->file_size <= FILE_MAX);
	j->disk = d;
	j->workers = w;
	j->cfg = *c;
	j->cfg.file_size &= ~(uint64_t)4095;
	j->id = *id;
	j->fd = wake_new();
	chunks_init(&j->closed);
	chunks_init(&j->shared.queue);
	chunks_init(&j->shared.done);
	chunks_init(&j->w.pending);
	chunks_init(&j->w.done);
	pthread_mutex_init(&j->shared.lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&j->shared.work, &attr);
	pthread_condattr_destroy(&attr);
	return j;
}

/* ---- files ---- */

/* Numbers are nearly always without gaps. */
static struct jfile *
find_file(const struct journal *j, uint32_t number)
{
	uint32_t low = 0, high = j->files, mid;

	if (high == 0 || number < j->file[0]->number)
		return NULL;
	mid = number - j->file[0]->number;
	if (mid < high && j->file[mid]->number == number)
		return j->file[mid];
	while (low < high) {
		mid = low + (high - low) / 2;
		if (j->file[mid]->number == number)
			return j->file[mid];
		if (j->file[mid]->number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static struct jfile *
current_file(const struct journal *j)
{
	assert(j->files > 0);
	return j->file[j->files - 1];
}

/* Behind all others. */
struct jfile *
journal_add_file(struct journal *j, uint32_t number, uint64_t size)
{
	struct jfile *f = xcalloc(1, sizeof *f);

	assert(j->files == 0 || current_file(j)->number < number);
	if (j->files == j->files_cap) {
		j->files_cap = j->files_cap == 0 ? 16 : j->files_cap * 2;
		j->file = xrealloc(j->file, j->files_cap * sizeof(struct jfile *));
	}
	f->number = number;
	f->size = size;
	f->end = FILE_HEADER;
	atomic_init(&f->slot, NO_SLOT);
	j->file[j->files++] = f;
	j->files_bytes += size;
	j->needed_bytes += size;
	return f;
}

void
journal_set_file_size(struct journal *j, struct jfile *f, uint64_t size)
{
	assert(f->number >= j->oldest);
	j->files_bytes += size - f->size;
	j->needed_bytes += size - f->size;
	f->size = size;
}

/* ---- buffers ---- */

static struct buffer *
buffer_get(struct journal *j, uint64_t n)
{
	struct buffer *b = j->unused_buffers;

	if (n <= BUFFER_SIZE && b != NULL) {
		j->unused_buffers = b->next;
		j->unused_buffers_n--;
		b->used = 0;
		return b;
	}
	b = xcalloc(1, sizeof *b);
	b->cap = n <= BUFFER_SIZE ? BUFFER_SIZE : (uint32_t)n;
	b->p = xmalloc(b->cap);
	mem_add(MEM_JOURNAL, b->cap);
	return b;
}

static void
buffer_free(struct buffer *b)
{
	mem_sub(MEM_JOURNAL, b->cap);
	free(b->p);
	free(b);
}

static void
buffer_put(struct journal *j, struct buffer *b)
{
	if (b->cap != BUFFER_SIZE || j->unused_buffers_n >= BUFFERS_KEPT) {
		buffer_free(b);
		return;
	}
	b->next = j->unused_buffers;
	j->unused_buffers = b;
	j->unused_buffers_n++;
}

/* The current buffer has room for n bytes more. */
static void
buffer_reserve(struct journal *j, uint64_t n)
{
	struct buffer *b = j->buffer;

	if (b != NULL && b->chunks == 0)
		b->used = 0;
	if (b != NULL && b->cap - b->used >= n)
		return;
	if (b != NULL && b->chunks == 0)
		buffer_put(j, b); /* else it goes with the last chunk in it */
	j->buffer = buffer_get(j, n);
}

/* ---- chunks ---- */

static void
chunk_close(struct journal *j)
{
	struct chunk *c = j->open;

	c->n = (uint32_t)(j->next - c->p);
	c->buffer->used += c->n;
	j->appended += c->n;
	c->through = j->appended;
	current_file(j)->end = lsn_at(j->end);
	chunks_push(&j->closed, c);
	j->open = NULL;
	j->room = 0;
}

/* In the current file, at its end. The records that head it are filled in by the journal thread. */
static void
chunk_open(struct journal *j, uint64_t n)
{
	struct jfile *f = current_file(j);
	bool begins = f->end == FILE_HEADER;
	uint32_t head = CHUNK_RECORD + (begins ? OPEN_RECORD : 0);
	struct chunk *c = j->unused_chunks;
	uint64_t in_file, in_buffer;

	buffer_reserve(j, head + n);
	if (c != NULL)
		j->unused_chunks = c->next;
	else
		c = xmalloc(sizeof *c);
	*c = (struct chunk){
		.file = f,
		.buffer = j->buffer,
		.p = j->buffer->p + j->buffer->used,
		.at = (uint32_t)f->end,
		.begins = begins,
		.oldest = j->oldest,
		.need = SYNC_NEVER,
		.within_ms = UINT32_MAX,
	};
	j->buffer->chunks++;
	j->open = c;
	j->next = c->p + head;
	j->end = lsn_of(f->number, c->at + head);
	in_file = f->size - c->at - head;
	in_buffer = j->buffer->cap - j->buffer->used - head;
	j->room = (uint32_t)(in_file < in_buffer ? in_file : in_buffer);
}

/* The next file, long enough for a record of n bytes. */
static void
begin_file(struct journal *j, uint64_t n)
{
	struct jfile *before = current_file(j), *f;
	uint64_t least = FILE_HEADER + OPEN_RECORD + CHUNK_RECORD + n;

	assert(before->number < NO_SLOT - 1 && least <= FILE_MAX);
	f = journal_add_file(j, before->number + 1,
	    least <= j->cfg.file_size ? j->cfg.file_size : (least + 4095) & ~(uint64_t)4095);
	f->previous_end = lsn_of(before->number, (uint32_t)before->end);
}

void
journal_begin(struct journal *j, uint32_t number, uint64_t size, uint64_t previous_end)
{
	struct jfile *f = journal_add_file(j, number, size);

	f->previous_end = previous_end;
	j->run_began = number;
	j->end = lsn_of(number, FILE_HEADER);
	chunk_open(j, 0);
	j->open->need = SYNC_NOW;
}

static void
make_room(struct journal *j, uint64_t n)
{
	if (j->open != NULL)
		chunk_close(j);
	if (current_file(j)->end + CHUNK_RECORD + n > current_file(j)->size)
		begin_file(j, n);
	chunk_open(j, n);
	assert(j->room >= n);
}

uint8_t *
journal_append(struct journal *j, uint32_t payload, uint16_t ops, enum sync_need need, uint32_t ms,
    uint64_t *lsn)
{
	struct record_header h = { .length = payload, .kind = RECORD_OPS, .ops = ops };
	uint64_t n = record_size(payload);
	uint8_t *p;

	if (unlikely(n > j->room))
		make_room(j, n);
	p = j->next;
	h.lsn = j->end;
	j->next += n;
	j->end += n;
	j->room -= (uint32_t)n;
	if (need > j->open->need)
		j->open->need = need;
	if (need == SYNC_WITHIN && ms < j->open->within_ms)
		j->open->within_ms = ms;
	memset(p + n - RECORD_ALIGN, 0, RECORD_ALIGN); /* the padding */
	record_header_encode(&h, p);
	j->stats.records++;
	*lsn = h.lsn;
	return p + RECORD_HEADER;
}

/* Files that are given up are so on disk with the chunk that ends here. What a chunk says stands at its head, before
 * its records, so it may say only what was decided before it was opened: the copies and acknowledgements that the
 * decision rests on have to be in earlier chunks. */
static void
announce_oldest(struct journal *j)
{
	for (uint32_t i = 0; i < j->files && j->file[i]->number < j->oldest; i++)
		if (j->file[i]->given_up_at == 0)
			j->file[i]->given_up_at = j->end;
	j->oldest_announced = j->oldest;
}

static void
require_oldest(struct journal *j)
{
	if (j->open == NULL || j->open->oldest != j->oldest)
		make_room(j, 0);
	if (j->open->need == SYNC_NEVER)
		j->open->need = SYNC_WITHIN;
	if (j->open->within_ms > OLDEST_WITHIN_MS)
		j->open->within_ms = OLDEST_WITHIN_MS;
}

void
journal_hand_over(struct journal *j, uint64_t next_id, uint64_t clock_ms)
{
	bool wake;

	j->next_id = next_id;
	j->clock_ms = clock_ms;
	if (j->oldest_announced != j->oldest)
		require_oldest(j);
	if (j->open != NULL)
		chunk_close(j);
	if (j->closed.first == NULL)
		return;
	if (j->oldest_announced != j->oldest)
		announce_oldest(j);
	for (struct chunk *c = j->closed.first; c != NULL; c = c->next) {
		c->next_id = next_id;
		c->clock_ms = clock_ms;
		j->stats.chunks++;
	}
	pthread_mutex_lock(&j->shared.lock);
	chunks_move(&j->shared.queue, &j->closed);
	wake = j->shared.asleep;
	j->shared.asleep = false;
	pthread_mutex_unlock(&j->shared.lock);
	if (wake)
		pthread_cond_signal(&j->shared.work);
	if (!j->cfg.threads)
		atomic_store(&j->retry, true);
}

/* ---- positions ---- */

static void
give_back(struct journal *j, struct chunk *c)
{
	struct buffer *b = c->buffer;

	assert(b->chunks > 0);
	b->chunks--;
	if (b->chunks == 0 && b == j->buffer && b->cap > BUFFER_SIZE)
		j->buffer = NULL; /* one long record's: not kept */
	if (b->chunks == 0 && b != j->buffer)
		buffer_put(j, b);
	c->next = j->unused_chunks;
	j->unused_chunks = c;
}

static void
take_done(struct journal *j)
{
	struct chunk *c, *next;

	pthread_mutex_lock(&j->shared.lock);
	c = j->shared.done.first;
	chunks_init(&j->shared.done);
	pthread_mutex_unlock(&j->shared.lock);
	for (; c != NULL; c = next) {
		next = c->next;
		give_back(j, c);
	}
}

int
journal_fd(const struct journal *j)
{
	return j->fd;
}

bool
journal_poll(struct journal *j)
{
	uint64_t written = j->written, durable = j->durable;

	wake_clear(j->fd);
	j->written = atomic_load_explicit(&j->now_written, memory_order_acquire);
	j->durable = atomic_load_explicit(&j->now_durable, memory_order_acquire);
	j->durable_through = atomic_load_explicit(&j->now_durable_through, memory_order_acquire);
	take_done(j);
	slots_poll(j);
	return j->written != written || j->durable != durable;
}

uint64_t
journal_written(const struct journal *j)
{
	return j->written;
}

uint64_t
journal_durable(const struct journal *j)
{
	return j->durable;
}

uint64_t
journal_end(const struct journal *j)
{
	return j->end;
}

uint64_t
journal_backlog(const struct journal *j)
{
	uint64_t open = j->open == NULL ? 0 : (uint64_t)(j->next - j->open->p);

	return j->appended + open - j->durable_through;
}

int
journal_failed(const struct journal *j)
{
	return atomic_load_explicit(&j->failed, memory_order_acquire);
}

/* The reserve of spares counts: it is for what frees space. */
bool
journal_out_of_space(const struct journal *j)
{
	return j->spares_short || atomic_load_explicit(&j->no_space, memory_order_relaxed);
}

/* ---- what is needed of files ---- */

void
journal_hold(struct journal *j, uint64_t lsn)
{
	struct jfile *f;

	if (lsn == 0)
		return;
	f = find_file(j, lsn_file(lsn));
	assert(f != NULL);
	f->live++;
}

void
journal_drop(struct journal *j, uint64_t lsn)
{
	struct jfile *f;

	if (lsn == 0)
		return;
	f = find_file(j, lsn_file(lsn));
	assert(f != NULL && f->live > 0);
	f->live--;
}

uint32_t
journal_oldest(const struct journal *j)
{
	for (uint32_t i = 0; i < j->files; i++)
		if (j->file[i]->number >= j->oldest)
			return j->file[i]->number;
	return j->oldest;
}

uint32_t
journal_first(const struct journal *j)
{
	assert(j->files > 0);
	return j->file[0]->number;
}

uint32_t
journal_current(const struct journal *j)
{
	return current_file(j)->number;
}

bool
journal_file(const struct journal *j, uint32_t number, struct journal_file_info *out)
{
	const struct jfile *f = find_file(j, number);
	uint64_t end;

	if (f == NULL)
		return false;
	end = f == current_file(j) ? lsn_at(j->end) : f->end;
	*out = (struct journal_file_info){
		.number = number,
		.size = f->size,
		.end = end,
		.live = f->live,
		.is_closed = f != current_file(j) && lsn_of(number, (uint32_t)end) <= j->durable,
	};
	return true;
}

void
journal_set_oldest(struct journal *j, uint32_t number)
{
	assert(number <= journal_current(j));
	if (number <= j->oldest)
		return;
	for (uint32_t i = 0; i < j->files && j->file[i]->number < number; i++) {
		assert(j->file[i]->live == 0);
		if (j->file[i]->number >= j->oldest)
			j->needed_bytes -= j->file[i]->size;
	}
	j->oldest = number;
}

uint32_t
journal_files(const struct journal *j)
{
	return j->files + slots_spares((struct journal *)(uintptr_t)j) + (j->slot_job != NULL);
}

uint64_t
journal_file_size(const struct journal *j)
{
	return j->cfg.file_size;
}

uint64_t
journal_needed_bytes(const struct journal *j)
{
	return j->needed_bytes;
}

bool
journal_is_full(const struct journal *j)
{
	return j->files_bytes > j->cfg.max;
}

void
journal_hold_slots(struct journal *j)
{
	j->slots_held++;
}

void
journal_release_slots(struct journal *j)
{
	assert(j->slots_held > 0);
	if (--j->slots_held == 0)
		wake_up(j->fd); /* the next poll recycles */
}

bool
journal_file_name(const struct journal *j, uint32_t number, char out[JOURNAL_NAME])
{
	const struct jfile *f = find_file(j, number);
	uint32_t slot = f == NULL ? NO_SLOT : atomic_load_explicit(&f->slot, memory_order_acquire);

	if (slot == NO_SLOT)
		return false;
	slot_name(slot, out);
	return true;
}

void
journal_stats(const struct journal *j, struct journal_stats *out)
{
	*out = j->stats;
	out->bytes = j->appended;
	out->writes = atomic_load_explicit(&j->writes, memory_order_relaxed);
	out->syncs = atomic_load_explicit(&j->syncs, memory_order_relaxed);
	out->sync_us = atomic_load_explicit(&j->sync_us, memory_order_relaxed);
	out->sync_max_us = atomic_load_explicit(&j->sync_max_us, memory_order_relaxed);
	out->created = atomic_load_explicit(&j->created, memory_order_relaxed);
	for (unsigned i = 0; i < HISTOGRAM_MAX; i++) {
		out->sync_times.count[i] =
		    atomic_load_explicit(&j->sync_times[i], memory_order_relaxed);
		out->batches.count[i] = atomic_load_explicit(&j->batches[i], memory_order_relaxed);
	}
	out->sync_times.sum = out->sync_us;
	out->batches.sum = atomic_load_explicit(&j->batch_bytes, memory_order_relaxed);
}

/* ---- the end ---- */

static void
free_chunks(struct journal *j, struct chunks *l)
{
	struct chunk *c, *next;

	for (c = l->first; c != NULL; c = next) {
		next = c->next;
		give_back(j, c);
	}
	chunks_init(l);
}

static void
free_memory(struct journal *j)
{
	struct chunk *c;
	struct buffer *b;

	free_chunks(j, &j->closed);
	free_chunks(j, &j->shared.queue);
	free_chunks(j, &j->shared.done);
	free_chunks(j, &j->w.pending);
	free_chunks(j, &j->w.done);
	while ((c = j->unused_chunks) != NULL) {
		j->unused_chunks = c->next;
		free(c);
	}
	if (j->buffer != NULL)
		buffer_free(j->buffer);
	while ((b = j->unused_buffers) != NULL) {
		j->unused_buffers = b->next;
		buffer_free(b);
	}
	for (uint32_t i = 0; i < j->files; i++)
		free(j->file[i]);
	free(j->file);
}

void
journal_free(struct journal **jp)
{
	struct journal *j = *jp;

	*jp = NULL;
	if (j->is_recovered)
		journal_hand_over(j, j->next_id, j->clock_ms);
	else if (j->open != NULL)
		chunk_close(j);
	writer_stop(j);
	slots_fini(j);
	free_memory(j);
	pthread_cond_destroy(&j->shared.work);
	pthread_mutex_destroy(&j->shared.lock);
	wake_free(&j->fd);
	free(j);
}
