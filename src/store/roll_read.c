/* SPDX-License-Identifier: Apache-2.0
 * Reading a journal file that is rolled, on a worker: a piece at a time, its records checked. What is no record is
 * passed over and counted; the next one is found by its own LSN. */
#include "store/roll_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	PIECE = 1 << 20,
	BLOCK = 4096,      /* of a piece that cannot be read at once */
	RECORDS_MIN = 1024 /* room for so many in a piece's list at first */
};

static void
note_record(struct piece *p, size_t at, uint32_t length, uint64_t lsn)
{
	if (p->records == p->records_cap) {
		p->records_cap = p->records_cap == 0 ? RECORDS_MIN : p->records_cap * 2;
		p->record = xrealloc(p->record, p->records_cap * sizeof *p->record);
	}
	p->record[p->records++] =
	    (struct record_at){ .at = (uint32_t)at, .length = length, .lsn = lsn };
}

/* Block by block, because they cannot be read at once: zeros where it fails. */
static void
read_blocks(struct piece *p, struct disk_file *f, uint64_t n)
{
	uint64_t at, step;

	for (at = 0; at < n; at += step) {
		step = BLOCK - (p->at + at) % BLOCK;
		if (step > n - at)
			step = n - at;
		if (p->disk->ops->read(f, p->p + at, step, p->at + at) != (ssize_t)step)
			memset(p->p + at, 0, step);
	}
	p->n = n;
}

/* Reads n bytes, or as many as there are. */
static bool
read_bytes(struct piece *p, uint64_t n)
{
	struct disk_file *f;
	uint8_t *bigger = try_realloc(p->p, n);
	ssize_t got;

	if (bigger == NULL) {
		p->error = -ENOMEM;
		return false;
	}
	p->p = bigger;
	p->n = 0;
	p->error = p->disk->ops->open(p->disk, p->name, DISK_READ, &f);
	if (p->error != 0)
		return false;
	got = p->disk->ops->read(f, p->p, n, p->at);
	if (got == -EIO)
		read_blocks(p, f, n);
	p->disk->ops->close(f);
	if (got >= 0)
		p->n = (size_t)got;
	else if (got != -EIO)
		p->error = (int)got;
	return p->error == 0;
}

/* A record may be longer than what was read: then all of it is read. */
static void
take_records(struct piece *p)
{
	uint64_t left = p->end - p->at;
	struct record_header h;
	size_t at = 0;

	while (at < p->n) {
		uint64_t lsn = lsn_of(p->file, (uint32_t)(p->at + at));

		if (record_check(p->p + at, p->n - at, lsn, p->seed, &h)) {
			if (h.kind == RECORD_OPS)
				note_record(p, at + RECORD_HEADER, h.length, lsn);
			at += record_size(h.length);
			continue;
		}
		if (p->n < left && p->n - at >= RECORD_HEADER) {
			record_header_decode(&h, p->p + at);
			if (h.lsn == lsn && at + record_size(h.length) > p->n &&
			    at + record_size(h.length) <= left)
				break; /* goes on behind the piece */
		} else if (p->n < left) {
			break;
		}
		p->damaged += RECORD_ALIGN;
		at += RECORD_ALIGN;
	}
	p->next = p->at + (at < left ? at : left);
}

void
piece_read(struct worker_job *job)
{
	struct piece *p = container_of(job, struct piece, job);
	uint64_t left = p->end - p->at, n = left < PIECE ? left : PIECE;
	struct record_header h;

	if (read_bytes(p, n))
		take_records(p);
	if (p->error == 0 && p->next == p->at && p->n >= RECORD_HEADER) {
		record_header_decode(
		    &h, p->p); /* checked above: it is not longer than what is left */
		if (read_bytes(p, record_size(h.length)))
			take_records(p);
	}
	if (p->error == -ENOMEM) {
		p->next = p->at; /* tried again */
	} else if (p->error != 0) {
		p->damaged += n;
		p->next = p->at + n;
	} else if (p->next == p->at) { /* shorter than it was */
		p->damaged += left;
		p->next = p->end;
	}
}

void
piece_free(struct piece **pp)
{
	struct piece *p = *pp;

	if (p == NULL)
		return;
	*pp = NULL;
	free(p->p);
	free(p->record);
	free(p);
}
