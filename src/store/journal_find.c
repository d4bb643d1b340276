/* SPDX-License-Identifier: Apache-2.0
 * The start: which journal files there are, where each ends, and which of them count.
 *
 * The end E is the first place that holds no record and was not known to be synced: every CHUNK record, also one behind a
 * tear, says truly what was durable when it was written. What lies behind E is void, however right it looks. Files hang
 * together by what their OPEN records say about the file before, not by their numbers: a start that was cut off leaves
 * numbers that nothing belongs to. Nothing here writes. */
#include "store/journal_find.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

enum {
	SLOTS_MAX = 1 << 16,
	SAY_MOST = 20 /* lines about damage */
};

/* What one walk over a file saw. */
struct extent {
	bool any;
	uint64_t last;    /* end of the last record */
	uint64_t durable; /* highest LSN that a CHUNK record calls synced */
	uint32_t tears;   /* places without a record, with one behind them */
	bool has_open;
	struct open_record open;
	struct stamps stamps;
};

int
recovery_refuse(struct recovery *v, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(v->err, JOURNAL_ERROR, fmt, ap);
	va_end(ap);
	return error;
}

void
recovery_damage(struct recovery *v, const char *fmt, ...)
{
	char what[JOURNAL_ERROR];
	va_list ap;

	if (v->report->damaged++ > SAY_MOST)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	log_error("journal damaged: %s%s", what,
	    v->report->damaged > SAY_MOST ? "; further places are only counted" : "");
}

int
recovery_open(struct recovery *v, const struct found *x, struct scan *s)
{
	int r = scan_open(s, v->j, x->slot, x->number, x->size);

	return r == 0
	           ? 0
	           : recovery_refuse(v, r, "cannot open journal/%08u: %s", x->slot, strerror(-r));
}

int
recovery_no_memory(struct recovery *v, const struct scan *s)
{
	return recovery_refuse(v, s->error, "no memory to read a record of journal/%08u", s->slot);
}

static void survey(struct scan *s, uint64_t limit, struct extent *e);

/* ---- which files there are ---- */

static void
note_slot(void *arg, const char *name, uint64_t size)
{
	struct recovery *v = arg;
	uint32_t slot;

	if (!slot_name_parse(name, &slot))
		return;
	if (v->n == SLOTS_MAX) {
		v->error = -E2BIG;
		return;
	}
	if (v->n == v->cap) {
		v->cap = v->cap == 0 ? 64 : v->cap * 2;
		v->found = xrealloc(v->found, v->cap * sizeof *v->found);
	}
	v->found[v->n++] = (struct found){ .slot = slot, .actual = size, .size = size };
	if (slot >= atomic_load(&v->j->next_slot))
		atomic_store(&v->j->next_slot, slot + 1);
}

/* Was something of this file synced, by what it says itself? Then its header was, too. */
static bool
has_synced(struct scan *s)
{
	struct extent e;

	survey(s, s->size, &e);
	return lsn_file(e.durable) == s->number && lsn_at(e.durable) > FILE_HEADER;
}

static bool
is_zero(const uint8_t *p, size_t n)
{
	return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

/* A slot that was never used has zeros where the first record belongs, too. */
static bool
is_begun(struct disk *d, struct disk_file *f)
{
	uint8_t p[RECORD_HEADER];

	return disk_read_all(d, f, p, sizeof p, FILE_HEADER) != 0 || !is_zero(p, sizeof p);
}

/* A file without a right header: its records tell its number too. A header of zeros may also be one that a power cut
 * kept from the disk; then nothing of the file was synced. */
static int
number_by_records(struct recovery *v, struct found *x, bool no_header)
{
	struct scan s;
	int r = recovery_open(v, x, &s);

	if (r != 0)
		return r;
	x->number = scan_number(&s);
	if (x->number != 0 && no_header && !has_synced(&s))
		x->number = 0;
	x->has_bad_header = x->number != 0;
	if (s.error != 0)
		r = recovery_no_memory(v, &s);
	scan_close(&s);
	return r;
}

static int
read_header(struct recovery *v, struct found *x, struct disk_file *f)
{
	uint8_t p[HEADER_USED] = { 0xff }; /* where it cannot be read: something was there */
	struct file_header h = { 0 };
	int r = disk_read_all(v->j->disk, f, p, sizeof p, 0);

	if (r == 0)
		r = file_header_decode(&h, v->j->id.seed, p);
	if (r == -EPROTONOSUPPORT)
		return recovery_refuse(v, r,
		    "journal/%08u has format %u, this version reads up to %d", x->slot, h.format,
		    FORMAT_VERSION);
	if (r != 0 || h.kind != FILE_JOURNAL || h.store_id != v->j->id.id || h.number == 0 ||
	    h.number >= UINT32_MAX)
		return !is_zero(p, sizeof p) || is_begun(v->j->disk, f)
		           ? number_by_records(v, x, is_zero(p, sizeof p))
		           : 0;
	x->number = (uint32_t)h.number;
	if (h.size < x->size)
		x->size = h.size;
	return 0;
}

static int
read_headers(struct recovery *v)
{
	char name[JOURNAL_NAME];
	struct disk_file *f;
	int r;

	for (uint32_t i = 0; i < v->n; i++) {
		slot_name(v->found[i].slot, name);
		r = v->j->disk->ops->open(v->j->disk, name, DISK_READ, &f);
		if (r != 0)
			return recovery_refuse(v, r, "cannot open %s: %s", name, strerror(-r));
		r = read_header(v, &v->found[i], f);
		v->j->disk->ops->close(f);
		if (r != 0)
			return r;
		if (v->found[i].number > v->highest)
			v->highest = v->found[i].number;
	}
	return 0;
}

static int
by_number(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->has_bad_header != y->has_bad_header)
		return x->has_bad_header ? 1 : -1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* Two of one number: somebody copied files. The one that is used first stays. */
static void
drop_doubles(struct recovery *v)
{
	uint32_t number = 0;
	bool again = false;

	qsort(v->found, v->n, sizeof *v->found, by_number);
	for (uint32_t i = 0; i < v->n; i++) {
		if (v->found[i].number != 0 && v->found[i].number == number) {
			recovery_damage(v,
			    "journal/%08u says that it is file %u, as another one does",
			    v->found[i].slot, number);
			v->found[i].number = 0;
			again = true;
		} else {
			number = v->found[i].number;
		}
	}
	if (again)
		qsort(v->found, v->n, sizeof *v->found, by_number);
}

static int
find_files(struct recovery *v)
{
	struct disk *d = v->j->disk;
	int r = d->ops->make_folder(d, "journal");

	if (r == 0)
		r = d->ops->sync_folder(d, "");
	if (r == 0)
		r = d->ops->list(d, "journal", note_slot, v);
	if (r == 0)
		r = v->error;
	if (r == 0 && v->n > 0) /* a slot may have been made just before a kill */
		r = d->ops->sync_folder(d, "journal");
	if (r != 0)
		return recovery_refuse(v, r, "cannot read the folder journal: %s", strerror(-r));
	r = read_headers(v);
	if (r == 0 && v->n > 0)
		drop_doubles(v);
	return r;
}

/* The file with the highest number that is not above this one; NULL: none. */
static struct found *
file_up_to(struct recovery *v, uint32_t number)
{
	for (uint32_t i = v->n; i > 0; i--)
		if (v->found[i - 1].number != 0 && v->found[i - 1].number <= number)
			return &v->found[i - 1];
	return NULL;
}

/* ---- where a file ends ---- */

static void
note_record(struct extent *e, const struct walk *w)
{
	struct chunk_record c;

	e->any = true;
	e->last = w->at;
	if (w->h.kind == RECORD_OPEN && w->here == FILE_HEADER && w->h.length >= OPEN_PAYLOAD) {
		open_decode(&e->open, w->payload);
		e->has_open = true;
	}
	if (w->h.kind != RECORD_CHUNK || w->h.length < CHUNK_PAYLOAD)
		return;
	chunk_decode(&c, w->payload);
	if (c.durable > e->durable && c.durable <= w->h.lsn)
		e->durable = c.durable;
	e->stamps = (struct stamps){ true, c.oldest, c.next_id, c.clock_ms };
}

/* Over everything below the limit. */
static void
survey(struct scan *s, uint64_t limit, struct extent *e)
{
	struct walk w;

	*e = (struct extent){ .last = FILE_HEADER };
	walk_init(&w, s, limit);
	while (walk_step(&w)) {
		if (w.bad_to > w.bad_from)
			e->tears++;
		note_record(e, &w);
	}
}

/* Offset in this file below which everything was synced. */
static uint64_t
durable_in(const struct scan *s, uint64_t durable)
{
	if (lsn_file(durable) < s->number)
		return FILE_HEADER;
	if (lsn_at(durable) > s->size)
		return s->size;
	return lsn_at(durable) < FILE_HEADER ? FILE_HEADER : lsn_at(durable);
}

/* The first place that is no record and was not durable; e: what is below it. */
static uint64_t
find_tear(struct scan *s, uint64_t durable, struct extent *e)
{
	struct walk w;

	*e = (struct extent){ .last = FILE_HEADER };
	walk_init(&w, s, durable);
	while (walk_step(&w))
		note_record(e, &w);
	w.at = durable; /* what is damaged before it does not move the end down */
	w.limit = s->size;
	while (scan_has(s, w.at, w.limit) && walk_step(&w))
		note_record(e, &w);
	return w.at;
}

/* E of this file. Sets e for what is below, and v->durable. A file that others follow has been synced to its end, but what
 * lies behind that end may look right too: there only its own CHUNK records can tell. Others that know of it may be void,
 * and then the next start would not hear them and find another end. */
static int
find_end(struct recovery *v, struct found *x, bool is_last, struct extent *e, uint64_t *behind)
{
	struct scan s;
	uint64_t durable;
	int r = recovery_open(v, x, &s);

	if (r != 0)
		return r;
	survey(&s, s.size, e);
	if (e->durable > v->durable)
		v->durable = e->durable;
	durable =
	    durable_in(&s, is_last && lsn_file(v->durable) <= x->number ? v->durable : e->durable);
	x->end = *behind = e->last;
	if (e->tears > 0 || e->last < durable)
		x->end = find_tear(&s, durable, e);
	if (s.error != 0)
		r = recovery_no_memory(v, &s);
	else if (s.unreadable > 0)
		recovery_damage(v, "journal/%08u (file %u) cannot be read everywhere, places: %llu",
		    x->slot, x->number, (unsigned long long)s.unreadable);
	scan_close(&s);
	return r;
}

/* Bytes of something that was begun at the end of the file and is not whole. */
static uint64_t
torn_record(struct recovery *v, const struct found *x)
{
	uint8_t p[RECORD_HEADER];
	struct record_header h;
	struct disk_file *f;
	char name[JOURNAL_NAME];
	int r;

	slot_name(x->slot, name);
	if (v->j->disk->ops->open(v->j->disk, name, DISK_READ, &f) != 0)
		return 0;
	r = disk_read_all(v->j->disk, f, p, sizeof p, x->end);
	v->j->disk->ops->close(f);
	if (r != 0)
		return 0;
	record_header_decode(&h, p);
	if (h.lsn != lsn_of(x->number, (uint32_t)x->end))
		return 0;
	return record_size(h.length) < x->size - x->end ? record_size(h.length) : x->size - x->end;
}

static void
report_tear(struct recovery *v, const struct found *x, uint64_t behind)
{
	uint64_t torn = torn_record(v, x);

	if (behind > x->end && behind - x->end > torn)
		torn = behind - x->end;
	if (torn == 0)
		return;
	v->report->torn += torn;
	log_warning("journal: %llu bytes that were not written completely are cut off at %llu of "
	            "journal/%08u",
	    (unsigned long long)torn, (unsigned long long)x->end, x->slot);
}

/* The last file with anything before its tear. Those above it are void. */
static int
find_last(struct recovery *v)
{
	struct found *x = file_up_to(v, UINT32_MAX);
	struct extent e;
	uint64_t behind;
	int r;

	for (; x != NULL; x = file_up_to(v, x->number - 1)) {
		r = find_end(v, x, true, &e, &behind);
		if (r != 0)
			return r;
		report_tear(v, x, behind);
		if (x->end == FILE_HEADER)
			continue;
		v->last = (uint32_t)(x - v->found);
		v->stamps = e.stamps;
		v->open = e.open;
		v->has_open = e.has_open;
		x->in_chain = true;
		return 0;
	}
	v->last = v->n;
	return 0;
}

/* ---- which files it goes on in, downwards ---- */

/* LSN where the file before this one ends, by its OPEN record or its first chunk; 0: not known, or there was none. */
static int
previous_end(struct recovery *v, struct found *x, uint64_t *out, bool *is_first)
{
	struct scan s;
	struct walk w;
	struct chunk_record c;
	struct open_record o;
	int r = recovery_open(v, x, &s);

	if (r != 0)
		return r;
	*out = 0;
	*is_first = false;
	walk_init(&w, &s, x->end);
	while (*out == 0 && !*is_first && walk_step(&w)) {
		if (w.h.kind == RECORD_OPEN && w.here == FILE_HEADER &&
		    w.h.length >= OPEN_PAYLOAD) {
			open_decode(&o, w.payload);
			*out = o.previous_end;
			*is_first = *out == 0;
		} else if (w.h.kind == RECORD_CHUNK && w.h.length >= CHUNK_PAYLOAD) {
			chunk_decode(&c, w.payload);
			*out = c.durable;
			break;
		}
	}
	if (lsn_file(*out) >= x->number)
		*out = 0;
	if (s.error != 0)
		r = recovery_no_memory(v, &s);
	scan_close(&s);
	return r;
}

/* Stamps of the last CHUNK record below the file's end, if there were none above. */
static int
look_for_stamps(struct recovery *v, struct found *x)
{
	struct scan s;
	struct extent e;
	int r;

	if (v->stamps.is_set)
		return 0;
	r = recovery_open(v, x, &s);
	if (r != 0)
		return r;
	survey(&s, x->end, &e);
	v->stamps = e.stamps;
	if (s.error != 0)
		r = recovery_no_memory(v, &s);
	scan_close(&s);
	return r;
}

/* The file before x. NULL in *out: there is none that is needed. */
static int
step_down(struct recovery *v, struct found *x, struct found **out)
{
	struct found *y;
	struct extent e;
	uint64_t end, behind;
	bool is_first;
	int r = previous_end(v, x, &end, &is_first);

	*out = NULL;
	if (r != 0 || is_first || x->number <= 1)
		return r;
	if (end != 0 && lsn_file(end) < v->stamps.oldest)
		return 0;
	y = file_up_to(v, end != 0 ? lsn_file(end) : x->number - 1);
	if (end != 0 && (y == NULL || y->number != lsn_file(end))) {
		recovery_damage(v, "file %u is missing", lsn_file(end));
		v->missing++;
		end = 0;
	}
	if (y == NULL || y->number < v->stamps.oldest)
		return 0;
	if (end != 0)
		y->end = lsn_at(end) > FILE_HEADER ? lsn_at(end) : FILE_HEADER;
	else if ((r = find_end(v, y, false, &e, &behind)) != 0)
		return r;
	*out = y;
	return 0;
}

static int
build_chain(struct recovery *v)
{
	struct found *x = &v->found[v->last], *below;
	int r;

	for (; x != NULL; x = below) {
		x->in_chain = true;
		if (x->has_bad_header)
			recovery_damage(
			    v, "the header of journal/%08u (file %u)", x->slot, x->number);
		r = look_for_stamps(v, x);
		if (r == 0)
			r = step_down(v, x, &below);
		if (r != 0)
			return r;
	}
	return 0;
}

int
recovery_find(struct recovery *v)
{
	int r = find_files(v);

	if (r == 0)
		r = find_last(v);
	if (r == 0 && v->last < v->n)
		r = build_chain(v);
	return r;
}
