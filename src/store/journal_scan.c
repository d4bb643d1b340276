/* SPDX-License-Identifier: Apache-2.0
 * Looking for records in a journal file of which nothing is known for sure. A record is found by the word that says its
 * own place, and believed for its checksum. The file is read through a window of a mebibyte, or of one long record.
 * What cannot be read is looked at as zeros. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/journal_priv.h"

enum { WINDOW = 1 << 20, PIECE = 4096 };
/* Who can make a payload full of words that say their place makes us compute sums over and over. */
#define HASH_BUDGET ((uint64_t)1 << 30)

int
scan_open(struct scan *s, struct journal *j, uint32_t slot, uint32_t number, uint64_t size)
{
	char name[JOURNAL_NAME];
	uint64_t actual;
	int r;

	*s = (struct scan){ .disk = j->disk, .seed = j->id.seed, .slot = slot, .number = number };
	slot_name(slot, name);
	r = j->disk->ops->open(j->disk, name, DISK_READ, &s->f);
	if (r != 0)
		return r;
	r = j->disk->ops->size(s->f, &actual);
	if (r != 0) {
		scan_close(s);
		return r;
	}
	if (size > actual)
		size = actual;
	if (size > FILE_MAX)
		size = FILE_MAX;
	s->size = size & ~(uint64_t)(RECORD_ALIGN - 1);
	return 0;
}

void
scan_close(struct scan *s)
{
	if (s->f != NULL)
		s->disk->ops->close(s->f);
	s->f = NULL;
	free(s->window);
	s->window = NULL;
	s->n = s->cap = 0;
}

/* Piece by piece, because one of them cannot be read. */
static void
read_pieces(struct scan *s, uint64_t at, uint64_t n)
{
	uint64_t i = 0, len;

	memset(s->window, 0, n);
	for (; i < n; i += len) {
		len =
		    PIECE -
		    (at + i) %
		        PIECE; /* each is one of the disk's: its neighbours are not lost with it */
		if (len > n - i)
			len = n - i;
		if (s->disk->ops->read(s->f, s->window + i, len, at + i) < 0) {
			memset(s->window + i, 0, len);
			s->unreadable++;
		}
	}
}

/* n bytes at this place; NULL: the file is shorter, or there is no memory. */
static const uint8_t *
look(struct scan *s, uint64_t at, uint64_t n)
{
	uint64_t want;
	uint8_t *p;
	ssize_t r;

	if (at >= s->from && at + n <= s->from + s->n)
		return s->window + (at - s->from);
	if (at > s->size || n > s->size - at || s->error != 0)
		return NULL;
	want = n > WINDOW ? n : WINDOW;
	if (want > s->size - at)
		want = s->size - at;
	if (want > s->cap) {
		p = try_realloc(s->window, want);
		if (p == NULL) {
			s->error = -ENOMEM;
			return NULL;
		}
		s->window = p;
		s->cap = want;
	}
	r = s->disk->ops->read(s->f, s->window, want, at);
	if (r < 0)
		read_pieces(s, at, want);
	else if ((uint64_t)r < want)
		memset(s->window + r, 0, want - (uint64_t)r);
	s->from = at;
	s->n = want;
	return s->window;
}

/* The record at this place, whole within the limit; NULL: there is none. */
static const uint8_t *
record_at(struct scan *s, uint64_t at, uint64_t limit, struct record_header *h)
{
	uint64_t lsn = lsn_of(s->number, (uint32_t)at), n;
	const uint8_t *p;

	if (at + RECORD_HEADER > limit || (p = look(s, at, RECORD_HEADER)) == NULL)
		return NULL;
	record_header_decode(h, p);
	n = RECORD_HEADER + (uint64_t)h->length;
	if (h->lsn != lsn || n > limit - at || (p = look(s, at, n)) == NULL)
		return NULL;
	if (record_check(p, n, lsn, s->seed, h))
		return p;
	s->hashed += n;
	return NULL;
}

uint32_t
scan_number(struct scan *s)
{
	struct record_header h;
	uint64_t word;
	const uint8_t *p;

	for (uint64_t at = FILE_HEADER; at + RECORD_HEADER <= s->size && s->hashed < HASH_BUDGET;
	     at += RECORD_ALIGN) {
		p = look(s, at, RECORD_HEADER);
		if (p == NULL)
			return 0;
		memcpy(&word, p + 8, sizeof word);
		word = le64toh(word);
		if (lsn_at(word) != at || lsn_file(word) == 0 || lsn_file(word) == UINT32_MAX)
			continue;
		s->number = lsn_file(word);
		if (record_at(s, at, s->size, &h) != NULL)
			return s->number;
	}
	return 0;
}

bool
scan_has(struct scan *s, uint64_t at, uint64_t limit)
{
	struct record_header h;

	return record_at(s, at, limit, &h) != NULL;
}

/* The next place from `at` on whose second word says its own place, within the window that begins there; its end if there
 * is none. */
static uint64_t
next_candidate(struct scan *s, uint64_t at, uint64_t limit)
{
	uint64_t end, word, lsn = lsn_of(s->number, 0);
	const uint8_t *p = look(s, at, RECORD_HEADER);

	if (p == NULL)
		return limit;
	end = s->from + s->n < limit ? s->from + s->n : limit;
	for (; at + RECORD_HEADER <= end; at += RECORD_ALIGN, p += RECORD_ALIGN) {
		memcpy(&word, p + 8, sizeof word);
		if (le64toh(word) == (lsn | at))
			break;
	}
	return at;
}

/* The first record from `at` on; the limit if there is none. */
static uint64_t
next_record(struct scan *s, uint64_t at, uint64_t limit)
{
	struct record_header h;
	uint64_t to;

	while (at + RECORD_HEADER <= limit && s->hashed < HASH_BUDGET) {
		to = next_candidate(s, at, limit);
		if (to == at && record_at(s, at, limit, &h) != NULL)
			return at;
		at = to > at ? to : at + RECORD_ALIGN;
	}
	return limit;
}

void
walk_init(struct walk *w, struct scan *s, uint64_t limit)
{
	*w = (struct walk){ .scan = s, .at = FILE_HEADER, .limit = limit };
	if (w->limit > s->size)
		w->limit = s->size;
}

bool
walk_step(struct walk *w)
{
	const uint8_t *p;

	w->bad_from = w->bad_to = 0;
	if (w->at >= w->limit)
		return false;
	p = record_at(w->scan, w->at, w->limit, &w->h);
	if (p == NULL) {
		w->bad_from = w->at;
		w->bad_to = w->at = next_record(w->scan, w->at + RECORD_ALIGN, w->limit);
		if (w->at >= w->limit || (p = record_at(w->scan, w->at, w->limit, &w->h)) == NULL)
			return false;
	}
	w->here = w->at;
	w->payload = p + RECORD_HEADER;
	w->at += record_size(w->h.length);
	if (w->at > w->limit)
		w->at = w->limit;
	return true;
}
