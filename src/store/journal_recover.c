/* SPDX-License-Identifier: Apache-2.0
 * The start: what journal_find.c found is made durable and replayed, then a new file is begun (STORE: recovery).
 *
 * What is no record below the end is damage: reported, a copy set aside, passed over. Nothing on disk changes its content
 * before the new file is synced; so a cut anywhere repeats it all.
 *
 * No file of an earlier run is appended to, so a start makes one more. That it costs no more disk than what is in it, the
 * new one is small where no spare is there, and room that the earlier ones never used is given back. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "store/journal_find.h"
#include "store/mutant.h"

enum {
	ASIDE_FILES = 16,
	ASIDE_BYTES = 1 << 20, /* of one damaged place */
	COPY = 256 << 10,
	FIRST_SHARE = 8, /* of a file: the first one of a start */
	REST_SHARE = 16  /* of a file: room that is given back, at least */
};

/* The table of files, before anything is held in them. */
static void
fill_table(struct recovery *v)
{
	struct journal *j = v->j;

	for (uint32_t i = 0; i < v->n; i++) {
		const struct found *x = &v->found[i];
		struct jfile *f;

		if (!x->in_chain)
			continue;
		f = journal_add_file(j, x->number, x->actual);
		f->end = x->end;
		atomic_store(&f->slot, x->slot);
	}
	j->oldest = v->stamps.is_set ? v->stamps.oldest : 0;
	if (j->oldest < j->file[0]->number)
		j->oldest = j->file[0]->number;
	if (j->oldest > v->found[v->last].number)
		j->oldest = v->found[v->last].number;
	for (uint32_t i = 0; i < j->files && j->file[i]->number < j->oldest; i++)
		j->needed_bytes -= j->file[i]->size;
	j->oldest_announced = j->oldest;
}

/* ---- what may be in the page cache only is written again ---- */

static int
copy_in_place(struct disk *d, struct disk_file *f, uint64_t from, uint64_t to)
{
	uint8_t *p = xmalloc(COPY);
	uint64_t n;
	int r = 0;

	for (; r == 0 && from < to; from += n) {
		n = to - from < COPY ? to - from : COPY;
		r = disk_read_all(d, f, p, n, from);
		if (r == 0)
			r = disk_write_one(d, f, p, n, from);
	}
	free(p);
	return r;
}

static int
rewrite_tail(struct recovery *v)
{
	const struct found *x = &v->found[v->last];
	struct disk *d = v->j->disk;
	uint64_t from = FILE_HEADER;
	char name[JOURNAL_NAME];
	struct disk_file *f;
	int r;

	if (lsn_file(v->durable) == x->number && lsn_at(v->durable) > from)
		from = lsn_at(v->durable);
	if (from >= x->end || MUTANT(TAIL))
		return 0;
	slot_name(x->slot, name);
	r = d->ops->open(d, name, DISK_WRITE, &f);
	if (r == 0) {
		r = copy_in_place(d, f, from, x->end);
		if (r == 0)
			r = d->ops->sync(f);
		d->ops->close(f);
	}
	return r == 0 ? 0 : recovery_refuse(v, r, "cannot write %s: %s", name, strerror(-r));
}

/* ---- replay ---- */

/* For whoever wants to look into it. That it cannot be kept is no reason not to start. */
static void
set_aside(struct recovery *v, struct scan *s, uint64_t from, uint64_t to)
{
	struct disk *d = v->j->disk;
	char name[80];
	uint64_t n = to - from < ASIDE_BYTES ? to - from : ASIDE_BYTES;
	struct disk_file *f;
	uint8_t *p;

	if (v->asides++ >= ASIDE_FILES || d->ops->make_folder(d, "set-aside") != 0)
		return;
	p = try_malloc(n);
	(void)snprintf(
	    name, sizeof name, "set-aside/journal-%u-%llu", s->number, (unsigned long long)from);
	if (p != NULL && disk_read_all(d, s->f, p, n, from) == 0 &&
	    d->ops->open(d, name, DISK_CREATE, &f) == 0) {
		if (disk_write_one(d, f, p, n, 0) != 0)
			log_warning("cannot write %s", name);
		d->ops->close(f);
	}
	free(p);
}

static int
replay_record(struct recovery *v, const struct walk *w)
{
	int r;

	switch (w->h.kind) {
	case RECORD_OPS:
		v->report->records++;
		v->report->bytes += w->h.length;
		r = v->replay(v->arg, w->h.lsn, span_of(w->payload, w->h.length));
		if (r != 0)
			return recovery_refuse(v, r,
			    "the record at %llu of journal/%08u cannot be used: %s",
			    (unsigned long long)w->here, w->scan->slot, strerror(-r));
		return 0;
	case RECORD_CHUNK:
	case RECORD_OPEN:
	case RECORD_VOID: return 0;
	default:
		return recovery_refuse(v, -EPROTONOSUPPORT,
		    "the record at %llu of journal/%08u is of kind %u, which a newer version wrote",
		    (unsigned long long)w->here, w->scan->slot, w->h.kind);
	}
}

static int
replay_file(struct recovery *v, const struct found *x)
{
	struct scan s;
	struct walk w;
	bool more = true;
	int r = recovery_open(v, x, &s);

	if (r != 0)
		return r;
	walk_init(&w, &s, x->end);
	while (r == 0 && more) {
		more = walk_step(&w);
		if (w.bad_to > w.bad_from && s.error == 0) {
			recovery_damage(v,
			    "%llu bytes at %llu of journal/%08u (file %u) are no record",
			    (unsigned long long)(w.bad_to - w.bad_from),
			    (unsigned long long)w.bad_from, x->slot, x->number);
			set_aside(v, &s, w.bad_from, w.bad_to);
		}
		if (more && r == 0)
			r = replay_record(v, &w);
	}
	if (r == 0 && s.error != 0)
		r = recovery_no_memory(v, &s);
	if (r == 0 && s.size < x->end)
		recovery_damage(v, "journal/%08u (file %u) ends at %llu instead of %llu", x->slot,
		    x->number, (unsigned long long)s.size, (unsigned long long)x->end);
	scan_close(&s);
	return r;
}

static int
replay_all(struct recovery *v)
{
	int r = 0;

	for (uint32_t i = 0; i < v->n && r == 0; i++)
		if (v->found[i].in_chain && v->found[i].number >= v->j->oldest) {
			v->report->ops_files++;
			r = replay_file(v, &v->found[i]);
		}
	return r;
}

/* ---- the new file ---- */

/* What is no file that counts may be used again; what cannot be told is kept while something is missing. */
static void
sort_out_spares(struct recovery *v)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const struct found *x = &v->found[i];

		if (x->in_chain || (x->number == 0 && v->missing > 0))
			continue;
		if (x->actual == v->j->cfg.file_size)
			slots_add_spare(v->j, x->slot);
		else
			slots_doom(v->j, x->slot);
	}
}

static uint64_t
first_size(struct journal *j)
{
	uint64_t size = j->cfg.file_size / FIRST_SHARE & ~(uint64_t)4095;

	if (slots_spares(j) > 0)
		return j->cfg.file_size;
	return size > FILE_MIN ? size : FILE_MIN;
}

/* On a disk that is nearly full a smaller file will do. */
static int
begin(struct recovery *v)
{
	struct journal *j = v->j;
	const struct found *x = v->last < v->n ? &v->found[v->last] : NULL;
	uint64_t end = x == NULL ? 0 : lsn_of(x->number, (uint32_t)x->end);
	struct jfile *f;

	j->w.written = j->w.durable = end;
	atomic_store(&j->now_written, end);
	atomic_store(&j->now_durable, end);
	journal_begin(j, v->highest + 1, first_size(j), end);
	f = j->file[j->files - 1];
	if (x == NULL)
		j->oldest = j->oldest_announced = f->number;
	journal_hand_over(j, v->report->next_id, v->report->clock_ms);
	while (writer_step(j, false) == WRITER_BLOCKED && f->size > FILE_MIN)
		journal_set_file_size(
		    j, f, f->size / 2 >= FILE_MIN ? f->size / 2 & ~(uint64_t)4095 : FILE_MIN);
	if (journal_failed(j) != 0)
		return recovery_refuse(v, journal_failed(j), "cannot write the journal: %s",
		    strerror(-journal_failed(j)));
	if (j->w.pending.first != NULL)
		return recovery_refuse(v, j->w.shortage, "cannot begin a file of the journal: %s",
		    strerror(-j->w.shortage));
	return 0;
}

static int
cut(struct journal *j, struct jfile *f, uint64_t size)
{
	struct disk_file *d;
	char name[JOURNAL_NAME];
	int r;

	slot_name(atomic_load(&f->slot), name);
	r = j->disk->ops->open(j->disk, name, DISK_WRITE, &d);
	if (r != 0)
		return r;
	r = j->disk->ops->resize(d, size);
	j->disk->ops->close(d);
	return r;
}

/* What lies behind the end of a file is void, now that the next one says so, and is synced: a start that finds it cut or
 * not finds the same. Where something is damaged all stays as it is. */
static void
cut_files(struct recovery *v)
{
	struct journal *j = v->j;
	uint64_t size;
	int r = 0;

	for (uint32_t i = 0; i + 1 < j->files && v->report->damaged == 0 && r == 0; i++) {
		struct jfile *f = j->file[i];

		size = (f->end + 4095) & ~(uint64_t)4095;
		if (f->number < j->oldest || f->size < size + j->cfg.file_size / REST_SHARE)
			continue;
		r = cut(j, f, size);
		if (r == 0)
			journal_set_file_size(j, f, size);
		else
			log_warning("journal/%08u cannot be cut to what is in it: %s",
			    atomic_load(&f->slot), strerror(-r));
	}
}

static void
fill_report(struct recovery *v)
{
	struct journal_report *r = v->report;

	r->next_id = v->stamps.next_id;
	r->clock_ms = v->stamps.clock_ms;
	if (v->has_open && v->open.next_id > r->next_id)
		r->next_id = v->open.next_id;
	if (v->has_open && v->open.clock_ms > r->clock_ms)
		r->clock_ms = v->open.clock_ms;
}

static int
read_all(struct recovery *v)
{
	int r = recovery_find(v);

	v->report->is_new = v->highest == 0;
	if (r != 0 || v->last == v->n)
		return r;
	fill_table(v);
	fill_report(v);
	r = rewrite_tail(v);
	return r != 0 ? r : replay_all(v);
}

int
journal_recover(struct journal *j, journal_replay_fn *replay, void *arg,
    struct journal_report *report, char err[JOURNAL_ERROR])
{
	struct recovery v = { .j = j, .replay = replay, .arg = arg, .report = report, .err = err };
	int r;

	assert(!j->is_recovered);
	*report = (struct journal_report){ 0 };
	r = read_all(&v);
	if (r == 0 && v.highest >= UINT32_MAX - 1)
		r = recovery_refuse(&v, -EOVERFLOW, "the journal's file numbers are used up");
	if (r == 0) {
		sort_out_spares(&v);
		r = begin(&v);
	}
	if (r == 0)
		cut_files(&v);
	free(v.found);
	if (r != 0)
		return r;
	j->is_recovered = true;
	if (j->cfg.threads)
		writer_start(j);
	(void)journal_poll(j);
	return 0;
}
