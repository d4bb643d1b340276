/* SPDX-License-Identifier: Apache-2.0
 * Bytes on disk: see the header.
 *
 *	store file	8 magic, 4 format, 4 zero, 8 id, 8 seed, 24 zeros, 8 xxh3(no seed; the 56 before)
 *	file header	8 magic, 4 format, 4 kind, 8 store id, 8 number, 8 size, 8 queue, 4 lane, zeros, at 504:
 *			8 xxh3(seed; the 504 before)
 *	record header	4 length, 1 kind, 1 flags, 2 operations, 8 lsn, 8 xxh3(xxh3(seed; the 16 before); payload)
 *
 * Changing them: raise FORMAT_VERSION, keep reading every older version. Magic, format and checksum stay where they are
 * in all versions, so that an older program can say that it is too old. */
#include "store/format.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

static const char store_magic[8] = "hermesS\n", file_magic[8] = "hermesF\n";

enum {
	STORE_SUM = STORE_FILE_SIZE - 8,
	HEADER_SUM = HEADER_USED - 8,
	RECORD_SUM = RECORD_HEADER - 8 /* bytes of a record header that are summed */
};

static void
put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static void
put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}

static void
put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static uint16_t
get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t
get_le32(const uint8_t *p)
{
	return get_le16(p) | (uint32_t)get_le16(p + 2) << 16;
}

static uint64_t
get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

/* ---- the store's file ---- */

void
store_id_encode(const struct store_id *s, uint8_t to[STORE_FILE_SIZE])
{
	memset(to, 0, STORE_FILE_SIZE);
	memcpy(to, store_magic, sizeof store_magic);
	put_le32(to + 8, s->format);
	put_le64(to + 16, s->id);
	put_le64(to + 24, s->seed);
	put_le64(to + STORE_SUM, XXH3_64bits(to, STORE_SUM));
}

int
store_id_decode(struct store_id *s, const uint8_t *p, size_t n)
{
	uint32_t format;

	if (n < STORE_FILE_SIZE || memcmp(p, store_magic, sizeof store_magic) != 0 ||
	    get_le64(p + STORE_SUM) != XXH3_64bits(p, STORE_SUM))
		return -EBADMSG;
	format = get_le32(p + 8);
	if (format == 0)
		return -EBADMSG;
	s->format = format;
	if (format > FORMAT_VERSION)
		return -EPROTONOSUPPORT;
	s->id = get_le64(p + 16);
	s->seed = get_le64(p + 24);
	return 0;
}

/* ---- file headers ---- */

void
file_header_encode(const struct file_header *h, uint64_t seed, uint8_t to[HEADER_USED])
{
	memset(to, 0, HEADER_USED);
	memcpy(to, file_magic, sizeof file_magic);
	put_le32(to + 8, h->format);
	put_le32(to + 12, h->kind);
	put_le64(to + 16, h->store_id);
	put_le64(to + 24, h->number);
	put_le64(to + 32, h->size);
	put_le64(to + 40, h->queue);
	put_le32(to + 48, h->lane);
	put_le64(to + HEADER_SUM, XXH3_64bits_withSeed(to, HEADER_SUM, seed));
}

int
file_header_decode(struct file_header *h, uint64_t seed, const uint8_t from[HEADER_USED])
{
	uint32_t format, kind;

	if (memcmp(from, file_magic, sizeof file_magic) != 0 ||
	    get_le64(from + HEADER_SUM) != XXH3_64bits_withSeed(from, HEADER_SUM, seed))
		return -EBADMSG;
	format = get_le32(from + 8);
	kind = get_le32(from + 12);
	if (format > FORMAT_VERSION) {
		h->format = format;
		return -EPROTONOSUPPORT;
	}
	if (format == 0 || (kind != FILE_JOURNAL && kind != FILE_SEGMENT))
		return -EBADMSG;
	*h = (struct file_header){
		.kind = kind,
		.format = format,
		.store_id = get_le64(from + 16),
		.number = get_le64(from + 24),
		.size = get_le64(from + 32),
		.queue = get_le64(from + 40),
		.lane = get_le32(from + 48),
	};
	return 0;
}

/* ---- records ---- */

void
record_header_encode(const struct record_header *h, uint8_t *to)
{
	put_le32(to, h->length);
	to[4] = h->kind;
	to[5] = h->flags;
	put_le16(to + 6, h->ops);
	put_le64(to + 8, h->lsn);
	put_le64(to + RECORD_SUM, 0);
}

void
record_header_decode(struct record_header *h, const uint8_t *from)
{
	h->length = get_le32(from);
	h->kind = from[4];
	h->flags = from[5];
	h->ops = get_le16(from + 6);
	h->lsn = get_le64(from + 8);
	h->sum = get_le64(from + RECORD_SUM);
}

/* The sum of the header's first part seeds that of the payload: they are not one run of bytes. */
static uint64_t
record_sum(const uint8_t *record, uint32_t length, uint64_t seed)
{
	return XXH3_64bits_withSeed(
	    record + RECORD_HEADER, length, XXH3_64bits_withSeed(record, RECORD_SUM, seed));
}

void
record_seal(uint8_t *record, uint64_t seed)
{
	put_le64(record + RECORD_SUM, record_sum(record, get_le32(record), seed));
}

bool
record_check(const uint8_t *p, uint64_t n, uint64_t lsn, uint64_t seed, struct record_header *h)
{
	struct record_header got;

	if (n < RECORD_HEADER)
		return false;
	record_header_decode(&got, p);
	if (got.lsn != lsn || got.length > n - RECORD_HEADER ||
	    got.sum != record_sum(p, got.length, seed))
		return false;
	*h = got;
	return true;
}

/* ---- the journal's own records ---- */

void
chunk_encode(const struct chunk_record *c, uint8_t to[CHUNK_PAYLOAD])
{
	put_le64(to, c->durable);
	put_le32(to + 8, c->oldest);
	put_le32(to + 12, c->reserved);
	put_le64(to + 16, c->next_id);
	put_le64(to + 24, c->clock_ms);
}

void
chunk_decode(struct chunk_record *c, const uint8_t from[CHUNK_PAYLOAD])
{
	c->durable = get_le64(from);
	c->oldest = get_le32(from + 8);
	c->reserved = get_le32(from + 12);
	c->next_id = get_le64(from + 16);
	c->clock_ms = get_le64(from + 24);
}

void
open_encode(const struct open_record *o, uint8_t to[OPEN_PAYLOAD])
{
	put_le64(to, o->previous_end);
	put_le64(to + 8, o->next_id);
	put_le64(to + 16, o->clock_ms);
}

void
open_decode(struct open_record *o, const uint8_t from[OPEN_PAYLOAD])
{
	o->previous_end = get_le64(from);
	o->next_id = get_le64(from + 8);
	o->clock_ms = get_le64(from + 16);
}
