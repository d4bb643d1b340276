/* SPDX-License-Identifier: Apache-2.0
 * Bytes of segment files: a header of FILE_HEADER bytes, then MSG records of one target, with the seq in the LSN's place.
 * What is written is only ever appended; a file that was rewritten says its end in its header. For workers: nothing here
 * touches a lane. Everything read is checked; what is damaged is skipped and told. */
#ifndef STORE_SEGMENT_FILE_H
#define STORE_SEGMENT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "store/disk.h"
#include "store/op.h"
#include "store/store_priv.h"

/* ---- reading ---- */

struct segment_record {
	uint32_t at;	/* of its payload in `p` */
	uint32_t length; /* of its payload */
	uint64_t seq;
};
struct segment_damage {
	uint64_t from, to; /* offsets in the file */
};
enum { SEGMENT_DAMAGE = 8 };

/* Set what is wanted, zero the rest, call segment_read(), look at the results, segment_read_fini(). */
struct segment_read {
	struct disk *disk;
	struct store_id id;
	struct op_lane lane;
	char name[SEGMENT_NAME];
	uint64_t first, last;	/* seqs that are in it */
	uint64_t after;		/* only records with a higher seq can be right; at the start first - 1 */
	uint64_t at, end;	/* from this record's offset (FILE_HEADER: the first), up to where records count */
	uint32_t want;		/* bytes; a longer record is read whole */

	/* Results. 0; -ENOENT: there is no such file; -EIO: it cannot be opened; others (no memory, no descriptor, no
	 * permission): try again later. */
	int error;
	uint8_t *p;		/* owned */
	uint32_t n;
	struct segment_record *record;	/* owned: whole, right, ascending */
	uint32_t records;
	uint64_t next;		/* where to go on; >= end: nothing more */
	uint64_t header_end;	/* read at FILE_HEADER only; not 0: it was rewritten, and this counts instead of `end` */
	struct segment_damage damage[SEGMENT_DAMAGE];	/* the first ones */
	uint32_t damages;	/* all of them */
	uint64_t cap;
};
void segment_read(struct segment_read *r);
void segment_read_fini(struct segment_read *r);
/* The message of a record. 0 or -EBADMSG: a right checksum, but not what has to be there. */
int segment_message(const struct segment_read *r, const struct segment_record *record, struct op_msg *out) MUSTUSE;

/* ---- writing ---- */

struct segment_writer {
	struct disk *disk;
	struct disk_file *file;
	uint64_t seed;
	uint8_t *buffer;	/* owned */
	uint32_t n;		/* bytes in it */
	uint64_t at;		/* offset of its first byte */
	int error;		/* the first one; everything after does nothing */
};
enum { SEGMENT_BUFFER = 1 << 20 };
void segment_writer_init(struct segment_writer *w, struct disk *d, uint64_t seed);
void segment_writer_fini(struct segment_writer *w);
/* A new file, also where one lies that a failed job left; its header is buffered. */
void segment_create(struct segment_writer *w, const char *name, const struct file_header *h);
void segment_continue(struct segment_writer *w, const char *name, uint64_t end);
uint64_t segment_end(const struct segment_writer *w);	/* offset behind what was written so far */
/* A record with m's one target. */
void segment_write(struct segment_writer *w, struct op_msg *m, struct op_target target);
void segment_write_raw(struct segment_writer *w, const uint8_t *p, uint64_t n);
/* A rewritten file: its end goes into its header. */
void segment_seal(struct segment_writer *w, struct file_header *h);
/* Everything out, synced (or not), closed. */
void segment_finish(struct segment_writer *w, bool sync);

/* ---- between segments.c, spill.c, read_ahead.c, rewrite.c ---- */

void chains_submit(struct store *s, struct worker_job *job);	/* its done does chains.jobs-- */
uint32_t segments_find(const struct lane *l, uint64_t seq);	/* index of the first one whose last is >= seq */
struct segment *segment_by_first(const struct lane *l, uint64_t first);
uint64_t segment_live_in(const struct segment *g, uint64_t first, uint64_t last);
/* Of the bodies of these: exact where they are all of g, else by their number. */
uint64_t segment_bytes_in(const struct segment *g, uint64_t first, uint64_t last);
void segment_set_file(struct segment *g, uint64_t end, uint64_t messages, bool is_closed);
/* Everything of g that lives in first..last is removed and its ACK merged; returns how many, adds their bytes. */
uint64_t segment_ack_range(struct lane *l, struct segment *g, uint64_t first, uint64_t last, enum ack_reason reason,
    uint64_t *bytes);
/* doomed_at of one that an open record emptied: which LSN that gets is not known yet. */
#define DOOMED_IN_RECORD UINT64_MAX
void segment_free_doomed(struct chains *c, struct segment *g);
void segment_unlink(struct store *s, const char *name);	/* by a worker */
uint8_t *seg_encode(const struct lane *l, const struct segment *g, size_t *n);	/* the caller frees */
uint64_t seg_append(struct store *s, const uint8_t *p, size_t n);
struct spill_list *spills_new(void);
void spills_free(struct spill_list **lp);
bool spill_note_ack(struct lane *l, uint64_t seq);
struct reader_list *readers_new(void);
void readers_free(struct reader_list **lp);
void reader_reset(struct lane *l);	/* what was read ahead is of no use: everything went, or was rewritten */
/* The first unread message stands there (known from the spill that wrote it). */
void reader_starts_at(struct lane *l, const struct segment *g, uint64_t at);

#endif
