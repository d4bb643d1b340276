/* SPDX-License-Identifier: Apache-2.0
 * Bytes of segment files: see the header.
 *
 * Reading takes a piece, walks its records, and stops in front of one that is not whole in it; the next piece begins
 * there. At the first damaged record the rest of the file is read (segments are 16 MiB), and the next right record is
 * looked for at every place where one may stand. Which messages were lost is not decided here: whoever knows which seqs
 * live sees which of them are missing. */
#include "store/segment_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/format.h"
#include "store/mutant.h"

enum {
	BLOCK = 4096,           /* what is read at a time where a larger read failed */
	SCAN_BUDGET = 256 << 20 /* bytes hashed at most when looking for the next right record */
};

/* ---- names ---- */

void
segment_name_of(struct op_lane lane, bool durable, uint64_t first, char out[SEGMENT_NAME])
{
	int n = snprintf(out, SEGMENT_NAME, "%s/%016" PRIx64 "-%08" PRIx32 "-%016" PRIx64 ".seg",
	    durable ? "segments" : "transient", lane.queue, lane.lane, first);

	assert(n > 0 && n < SEGMENT_NAME);
}

void
segment_name(const struct lane *l, uint64_t first, char out[SEGMENT_NAME])
{
	segment_name_of(l->name, l->durable, first, out);
}

static bool
parse_hex(const char **p, unsigned digits, uint64_t *out)
{
	uint64_t v = 0;
	unsigned i;

	for (i = 0; i < digits; i++) {
		char c = (*p)[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			return false;
	}
	*p += digits;
	*out = v;
	return true;
}

bool
segment_name_parse(const char *name, struct op_lane *lane, uint64_t *first)
{
	const char *p = strrchr(name, '/');
	uint64_t queue, number, seq;

	p = p == NULL ? name : p + 1;
	if (!parse_hex(&p, 16, &queue) || *p++ != '-' || !parse_hex(&p, 8, &number) ||
	    *p++ != '-' || !parse_hex(&p, 16, &seq) || strcmp(p, ".seg") != 0)
		return false;
	lane->queue = queue;
	lane->lane = (uint32_t)number;
	*first = seq;
	return true;
}

/* ---- reading ---- */

/* As far as the disk gives them: where a large read fails, block by block, zeros for what cannot be read. */
static int
read_bytes(struct disk_file *f, struct disk *d, uint8_t *to, uint64_t n, uint64_t at)
{
	ssize_t got = d->ops->read(f, to, n, at);
	uint64_t done, step;

	if (got >= 0) {
		if ((uint64_t)got < n)
			memset(to + got, 0, n - (uint64_t)got);
		return 0;
	}
	if (got != -EIO)
		return (int)got;
	for (done = 0; done < n; done += step) {
		step = BLOCK - (at + done) % BLOCK;
		if (step > n - done)
			step = n - done;
		got = d->ops->read(f, to + done, step, at + done);
		if (got < 0)
			got = 0;
		if ((uint64_t)got < step)
			memset(to + done + got, 0, step - (uint64_t)got);
	}
	return 0;
}

/* Makes it n bytes from `at` on. */
static int
read_up_to(struct segment_read *r, struct disk_file *f, uint64_t n)
{
	int error;

	if (n > UINT32_MAX)
		n = UINT32_MAX;
	if (n <= r->n)
		return 0;
	if (n > r->cap) {
		uint8_t *p = try_realloc(r->p, n);

		if (p == NULL)
			return -ENOMEM;
		r->p = p;
		r->cap = n;
	}
	error = read_bytes(f, r->disk, r->p + r->n, n - r->n, r->at + r->n);
	if (error == 0)
		r->n = (uint32_t)n;
	return error;
}

static void
damaged(struct segment_read *r, uint64_t from, uint64_t to)
{
	if (r->damages < SEGMENT_DAMAGE)
		r->damage[r->damages] = (struct segment_damage){ from, to };
	r->damages++;
}

static void
check_header(struct segment_read *r, struct disk_file *f, uint64_t size)
{
	uint8_t bytes[HEADER_USED] = { 0 };
	struct file_header h;

	if (read_bytes(f, r->disk, bytes, sizeof bytes, 0) != 0 ||
	    file_header_decode(&h, r->id.seed, bytes) != 0 || h.kind != FILE_SEGMENT ||
	    h.store_id != r->id.id || h.queue != r->lane.queue || h.lane != r->lane.lane ||
	    h.number != r->first) {
		damaged(r, 0, HEADER_USED); /* each record says itself whose it is */
		return;
	}
	if (h.size >= FILE_HEADER && h.size <= size) {
		r->header_end = h.size;
		r->end = h.size;
	}
}

static bool
may_be_record(
    const struct segment_read *r, const uint8_t *p, uint64_t room, struct record_header *h)
{
	record_header_decode(h, p);
	return h->kind == RECORD_OPS && h->flags == 0 && h->ops == 1 && h->lsn > r->after &&
	       h->lsn <= r->last && record_size(h->length) <= room;
}

static bool
is_record(const struct segment_read *r, uint64_t pos, struct record_header *h)
{
	const uint8_t *p = r->p + pos;
	uint64_t room = r->n - pos, seq;

	if (room < RECORD_HEADER || !may_be_record(r, p, room, h))
		return false;
	seq = h->lsn;
	return record_check(p, room, seq, r->id.seed, h);
}

/* Where the next right record stands behind pos; n where there is none. */
static uint64_t
resync(struct segment_read *r, uint64_t pos)
{
	uint64_t hashed = 0;
	struct record_header h;

	for (pos += RECORD_ALIGN; pos + RECORD_HEADER <= r->n; pos += RECORD_ALIGN) {
		if (!may_be_record(r, r->p + pos, r->n - pos, &h))
			continue;
		hashed += h.length;
		if (is_record(r, pos, &h))
			return pos;
		if (hashed > SCAN_BUDGET)
			break;
	}
	return r->n;
}

static int
add_record(struct segment_read *r, uint64_t pos, const struct record_header *h)
{
	if ((r->records & (r->records - 1)) == 0 && (r->records == 0 || r->records >= 64)) {
		uint32_t cap = r->records == 0 ? 64 : 2 * r->records;
		struct segment_record *list = try_realloc(r->record, cap * sizeof(*list));

		if (list == NULL)
			return -ENOMEM;
		r->record = list;
	}
	r->record[r->records++] =
	    (struct segment_record){ (uint32_t)(pos + RECORD_HEADER), h->length, h->lsn };
	r->after = h->lsn;
	return 0;
}

static int
walk(struct segment_read *r, struct disk_file *f)
{
	uint64_t pos = 0, all = r->end - r->at;
	struct record_header h;
	int error = 0;

	while (error == 0 && pos < all) {
		uint64_t need = RECORD_HEADER;

		if (pos + need <= r->n) {
			record_header_decode(&h, r->p + pos);
			need = record_size(h.length);
		}
		if (pos + need <= all && pos + need > r->n) {
			if (pos > 0)
				break; /* the next piece begins here */
			error = read_up_to(r, f, need);
			continue;
		}
		if (pos + need <= all && is_record(r, pos, &h)) {
			error = add_record(r, pos, &h);
			pos += need;
			continue;
		}
		error = read_up_to(r, f, all);
		if (error == 0) {
			uint64_t to = resync(r, pos);

			damaged(r, r->at + pos, r->at + to);
			pos = to;
			if (to >= r->n)
				pos = all;
		}
	}
	r->next = r->at + pos;
	return error;
}

void
segment_read(struct segment_read *r)
{
	struct disk_file *f;
	uint64_t size = 0, asked;

	r->error = r->disk->ops->open(r->disk, r->name, DISK_READ, &f);
	if (r->error != 0)
		return;
	r->error = r->disk->ops->size(f, &size);
	if (r->error != 0)
		goto out;
	if (r->at == FILE_HEADER)
		check_header(r, f, size);
	asked = r->end;
	if (r->end > size) /* cut short by somebody */
		r->end = size;
	r->next = r->end;
	if (r->at < r->end) {
		uint64_t n = r->end - r->at;

		r->error = read_up_to(r, f, n < r->want ? n : r->want);
		if (r->error == 0)
			r->error = walk(r, f);
	}
	if (r->end < asked && r->next >= r->end)
		damaged(r, r->end, asked);
out:
	r->disk->ops->close(f);
}

void
segment_read_fini(struct segment_read *r)
{
	free(r->p);
	free(r->record);
	r->p = NULL;
	r->record = NULL;
	r->n = r->records = 0;
	r->cap = 0;
}

int
segment_message(
    const struct segment_read *r, const struct segment_record *record, struct op_msg *out)
{
	struct span payload = span_of(r->p + record->at, record->length);
	struct op_target target;
	struct op op;
	size_t at = 0;
	int error = 0;

	if (!op_next(payload, &at, &op, &error) || op.kind != OP_MSG)
		return -EBADMSG;
	error = op_msg_decode(op.body, out);
	if (error != 0 || out->targets != 1)
		return -EBADMSG;
	op_msg_target(out, 0, &target);
	if (target.queue != r->lane.queue || target.lane != r->lane.lane ||
	    target.seq != record->seq)
		return -EBADMSG;
	return 0;
}

/* ---- writing ---- */

void
segment_writer_init(struct segment_writer *w, struct disk *d, uint64_t seed)
{
	*w = (struct segment_writer){ .disk = d, .seed = seed };
	w->buffer = xmalloc(SEGMENT_BUFFER);
}

void
segment_writer_fini(struct segment_writer *w)
{
	if (w->file != NULL)
		w->disk->ops->close(w->file);
	w->file = NULL;
	free(w->buffer);
	w->buffer = NULL;
}

void
segment_create(struct segment_writer *w, const char *name, const struct file_header *h)
{
	assert(w->file == NULL);
	w->error = w->disk->ops->open(w->disk, name, DISK_CREATE, &w->file);
	if (w->error == -EEXIST) {
		w->error = w->disk->ops->unlink(w->disk, name);
		if (w->error == 0)
			w->error = w->disk->ops->open(w->disk, name, DISK_CREATE, &w->file);
	}
	if (w->error != 0)
		w->file = NULL;
	memset(w->buffer, 0, FILE_HEADER);
	file_header_encode(h, w->seed, w->buffer);
	w->n = FILE_HEADER;
	w->at = 0;
}

void
segment_continue(struct segment_writer *w, const char *name, uint64_t end)
{
	assert(w->file == NULL);
	w->error = w->disk->ops->open(w->disk, name, DISK_WRITE, &w->file);
	if (w->error != 0)
		w->file = NULL;
	w->n = 0;
	w->at = end;
}

uint64_t
segment_end(const struct segment_writer *w)
{
	return w->at + w->n;
}

static void
flush(struct segment_writer *w)
{
	if (w->error == 0 && w->n > 0)
		w->error = disk_write_one(w->disk, w->file, w->buffer, w->n, w->at);
	w->at += w->n;
	w->n = 0;
}

static void
encode(
    const struct segment_writer *w, uint8_t *to, const struct op_msg *m, size_t size, uint64_t seq)
{
	struct record_header h = {
		.length = (uint32_t)size, .kind = RECORD_OPS, .ops = 1, .lsn = seq
	};
	uint64_t end = RECORD_HEADER + size;

	record_header_encode(&h, to);
	op_msg_encode(m, to + RECORD_HEADER);
	memset(to + end, 0, record_size(size) - end);
	record_seal(to, w->seed);
}

void
segment_write(struct segment_writer *w, struct op_msg *m, struct op_target target)
{
	uint64_t total;
	uint8_t *p;
	size_t size;

	if (w->error != 0)
		return;
	m->target = &target;
	m->targets = 1;
	size = op_msg_size(m);
	total = record_size(size);
	assert(size <= UINT32_MAX);
	if (total > SEGMENT_BUFFER - w->n)
		flush(w);
	if (total <= SEGMENT_BUFFER) {
		encode(w, w->buffer + w->n, m, size, target.seq);
		w->n += (uint32_t)total;
	} else if ((p = try_malloc(total)) != NULL) {
		encode(w, p, m, size, target.seq);
		segment_write_raw(w, p, total);
		free(p);
	} else {
		w->error = -ENOMEM;
	}
	m->target = NULL;
}

void
segment_write_raw(struct segment_writer *w, const uint8_t *p, uint64_t n)
{
	if (n > SEGMENT_BUFFER - w->n)
		flush(w);
	if (n <= SEGMENT_BUFFER) {
		memcpy(w->buffer + w->n, p, n);
		w->n += (uint32_t)n;
		return;
	}
	if (w->error == 0)
		w->error = disk_write_one(w->disk, w->file, p, n, w->at);
	w->at += n;
}

void
segment_seal(struct segment_writer *w, struct file_header *h)
{
	uint8_t bytes[HEADER_USED];

	h->size = segment_end(w);
	file_header_encode(h, w->seed, bytes);
	flush(w);
	if (w->error == 0)
		w->error = disk_write_one(w->disk, w->file, bytes, sizeof bytes, 0);
}

void
segment_finish(struct segment_writer *w, bool sync)
{
	flush(w);
	if (w->file == NULL)
		return;
	if (sync && w->error == 0 && !MUTANT(SEGMENT)) {
		w->error = w->disk->ops->sync(w->file);
		/* No file whose sync failed is synced again. A full disk has its messages in the journal. */
		if (w->error == -ENOMEM || w->error == -EMFILE || w->error == -ENFILE)
			w->error = -EIO;
	}
	w->disk->ops->close(w->file);
	w->file = NULL;
}
