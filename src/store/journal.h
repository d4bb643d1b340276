/* SPDX-License-Identifier: Apache-2.0
 * The journal: one append-only log for the node in files of one size, written and synced by a thread of its own, many
 * records at a time (STORE: files, roll, recovery). It knows records and positions, not what stands in them.
 *
 * The core thread appends: an append gives a record its place (LSN) at once and the caller fills in its payload; what a
 * turn appended is handed over as chunks. The journal thread computes checksums, stamps each chunk's CHUNK record, writes
 * and syncs, and reports two positions: written and durable. It begins file N+1 only after the last sync of file N.
 *
 * Each file counts what in it is still needed (journal_hold, journal_drop). A file is given up by raising `oldest` above
 * it; its slot is used again only once a chunk that says so is durable. */
#ifndef STORE_JOURNAL_H
#define STORE_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/histogram.h"
#include "base/worker.h"
#include "store/disk.h"
#include "store/format.h"

struct journal;

struct journal_config {
	uint64_t file_size;	/* of a new file, header included; the first one of a start may be smaller */
	uint64_t max;		/* bytes of all files; beyond it journal_is_full() */
	bool threads;		/* false: tests call journal_step() */
};

/* How soon what is appended has to be synced; of what one sync covers, the strictest counts. */
enum sync_need { SYNC_NEVER, SYNC_WITHIN, SYNC_NOW };

/* Reads the files. `replay` is called for each RECORD_OPS from `oldest` to the end in order; not 0: stop, and that is the
 * result. Reports damage and a cut tail as log lines and counts them. Then what was not known to be durable is written
 * again in place and synced, and a new file is begun, synced. Blocks; may be called once. 0 or -errno, with the reason in
 * err (JOURNAL_ERROR bytes). A cut anywhere within it repeats it at the next start. */
enum { JOURNAL_ERROR = 256 };
struct journal_report {
	uint64_t records, bytes, ops_files;
	uint64_t damaged;	/* places below what was durable that are not whole */
	uint64_t torn;		/* bytes cut from the end */
	uint64_t next_id;	/* from the last CHUNK or OPEN */
	uint64_t clock_ms;	/* the last one journalled */
	bool is_new;		/* there was no journal */
};
typedef int journal_replay_fn(void *arg, uint64_t lsn, struct span payload);
struct journal *journal_new(struct disk *d, struct workers *w, const struct journal_config *c, const struct store_id *id);
int journal_recover(struct journal *j, journal_replay_fn *replay, void *arg, struct journal_report *r,
    char err[JOURNAL_ERROR]) MUSTUSE;
/* Writes and syncs everything, ends the thread. */
void journal_free(struct journal **jp);

/* Appends a record with `payload` bytes, which the caller fills in before it calls anything else here. *lsn: its place.
 * Never fails: what is too much is asked before (journal_is_full, journal_backlog). ms: for SYNC_WITHIN. */
uint8_t *journal_append(struct journal *j, uint32_t payload, uint16_t ops, enum sync_need need, uint32_t ms,
    uint64_t *lsn) MUSTUSE;
/* Gives what was appended to the journal thread; at the end of a turn. next_id, clock_ms: for the CHUNK record. */
void journal_hand_over(struct journal *j, uint64_t next_id, uint64_t clock_ms);

int journal_fd(const struct journal *j);	/* readable when a position moved or something failed */
/* Takes the positions, and recycles slots. True: one of them moved. */
bool journal_poll(struct journal *j);
/* Ends: every record whose lsn is below is written (durable). UINT64_MAX never. */
uint64_t journal_written(const struct journal *j);
uint64_t journal_durable(const struct journal *j);
uint64_t journal_end(const struct journal *j);	/* where the next record would stand, or a little before */
uint64_t journal_backlog(const struct journal *j);	/* bytes appended and not durable yet */
/* The disk failed: -EIO or what a sync said; 0: fine. Nothing is written any more, positions stay. */
int journal_failed(const struct journal *j);
bool journal_out_of_space(const struct journal *j);	/* a write waits for space (it is tried again every 100 ms) */

/* What is needed of files. lsn 0 is nobody's: both do nothing. */
void journal_hold(struct journal *j, uint64_t lsn);
void journal_drop(struct journal *j, uint64_t lsn);
struct journal_file_info {
	uint32_t number;
	uint64_t size, end;	/* end: offset behind its last record */
	uint64_t live;		/* holds on it */
	bool is_closed;		/* a later file was begun, and all of it is durable */
};
uint32_t journal_oldest(const struct journal *j);	/* number of the oldest file that is needed */
uint32_t journal_first(const struct journal *j);	/* of the oldest one that is still there, given up or not */
uint32_t journal_current(const struct journal *j);	/* number of the file that is appended to */
bool journal_file(const struct journal *j, uint32_t number, struct journal_file_info *out);
void journal_set_oldest(struct journal *j, uint32_t number);	/* files below are given up */
uint32_t journal_files(const struct journal *j);		/* in use or not yet recycled, spares included */
uint64_t journal_file_size(const struct journal *j);		/* of a new file */
uint64_t journal_needed_bytes(const struct journal *j);		/* sizes of the files from the oldest needed one on */
bool journal_is_full(const struct journal *j);		/* over max: publishers have to wait */
void journal_trim(struct journal *j);				/* spares beyond those wanted are removed */
/* Snapshot: while held, no slot is recycled. Counted. */
void journal_hold_slots(struct journal *j);
void journal_release_slots(struct journal *j);

/* Name of the file with this number, for reading by a worker; false: it is gone. */
enum { JOURNAL_NAME = 32 };
bool journal_file_name(const struct journal *j, uint32_t number, char out[JOURNAL_NAME]);

/* Counters, by any name that metrics use (stats.h). */
struct journal_stats {
	uint64_t bytes, records, chunks, writes, syncs, sync_us, sync_max_us, recycled, created;
	struct histogram sync_times; /* by histogram_us */
	struct histogram batches;    /* bytes of writes, by histogram_writes */
};
void journal_stats(const struct journal *j, struct journal_stats *out);

/* Without threads: one batch of the journal thread. What it does is seeded by how many chunks were handed over.
 * False: there was nothing to do. */
bool journal_step(struct journal *j);

#endif
