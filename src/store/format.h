/* SPDX-License-Identifier: Apache-2.0
 * Bytes on disk, all little-endian: the `store` file, file headers, record headers, the two records that only the journal
 * itself uses (CHUNK, OPEN). Operations inside records: op.h. */
#ifndef STORE_FORMAT_H
#define STORE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum {
	FORMAT_VERSION = 1,
	FILE_HEADER = 4096,   /* bytes before the first record */
	HEADER_USED = 512,    /* what of it counts */
	RECORD_HEADER = 24,
	RECORD_ALIGN = 8
};

enum file_kind { FILE_JOURNAL = 1, FILE_SEGMENT = 2 };
enum record_kind { RECORD_OPS = 1, RECORD_CHUNK = 2, RECORD_OPEN = 3, RECORD_VOID = 4 /* filler: nothing */ };

/* LSN: number of the journal file << 32 | offset of the record in it. File numbers start at 1 and never repeat. */
static inline uint64_t
lsn_of(uint32_t file, uint32_t at)
{
	return (uint64_t)file << 32 | at;
}
static inline uint32_t
lsn_file(uint64_t lsn)
{
	return (uint32_t)(lsn >> 32);
}
static inline uint32_t
lsn_at(uint64_t lsn)
{
	return (uint32_t)lsn;
}

/* The file `store`: written once. */
struct store_id {
	uint32_t format;
	uint64_t id, seed; /* random; seed: of every checksum, so that no payload can look like a record */
};
enum { STORE_FILE_SIZE = 64 };
void store_id_encode(const struct store_id *s, uint8_t to[STORE_FILE_SIZE]);
/* 0; -EPROTONOSUPPORT: a newer format (s->format is set); -EBADMSG: not ours or damaged. */
int store_id_decode(struct store_id *s, const uint8_t *p, size_t n) MUSTUSE;

struct file_header {
	enum file_kind kind;
	uint32_t format;
	uint64_t store_id;
	uint64_t number;	/* journal: of the file; segment: its first seq */
	uint64_t size;		/* journal: of the file, header included; segment: 0, or its end when it was rewritten */
	uint64_t queue;		/* segments only */
	uint32_t lane;
};
void file_header_encode(const struct file_header *h, uint64_t seed, uint8_t to[HEADER_USED]);
/* As store_id_decode. */
int file_header_decode(struct file_header *h, uint64_t seed, const uint8_t from[HEADER_USED]) MUSTUSE;

struct record_header {
	uint32_t length;	/* of the payload */
	uint8_t kind, flags;	/* flags: 0 */
	uint16_t ops;		/* in the payload */
	uint64_t lsn;		/* in segments: the seq */
	uint64_t sum;		/* xxh3 of the payload, seeded by xxh3 of the 16 bytes before, seeded by the store's seed */
};
/* Bytes that a record takes, padding included. */
static inline uint64_t
record_size(uint64_t payload)
{
	return (RECORD_HEADER + payload + RECORD_ALIGN - 1) & ~(uint64_t)(RECORD_ALIGN - 1);
}
void record_header_encode(const struct record_header *h, uint8_t *to);	/* without the sum */
void record_header_decode(struct record_header *h, const uint8_t *from);
void record_seal(uint8_t *record, uint64_t seed);	/* header + payload: computes and writes the sum */
/* Is there a whole, right record with this lsn (seq) at p, within n bytes? */
bool record_check(const uint8_t *p, uint64_t n, uint64_t lsn, uint64_t seed, struct record_header *h) MUSTUSE;

struct chunk_record {	/* the first record of each hand-over; stamped by the journal thread */
	uint64_t durable;	/* everything before it was synced when this was written */
	uint32_t oldest;	/* first file that is still needed */
	uint32_t reserved;
	uint64_t next_id;	/* of the broker's objects: none that was given out is above */
	uint64_t clock_ms;
};
struct open_record {	/* the first record of each file */
	uint64_t previous_end;	/* LSN where the file before ends; 0: there is none */
	uint64_t next_id;
	uint64_t clock_ms;	/* wall clock */
};
enum { CHUNK_PAYLOAD = 32, OPEN_PAYLOAD = 24 };
void chunk_encode(const struct chunk_record *c, uint8_t to[CHUNK_PAYLOAD]);
void chunk_decode(struct chunk_record *c, const uint8_t from[CHUNK_PAYLOAD]);
void open_encode(const struct open_record *o, uint8_t to[OPEN_PAYLOAD]);
void open_decode(struct open_record *o, const uint8_t from[OPEN_PAYLOAD]);

#endif
