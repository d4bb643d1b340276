/* SPDX-License-Identifier: Apache-2.0
 * Private to the spill: spill.c (which lanes, and when), spill_write.c (the worker that writes the files), spill_enter.c
 * (what it wrote becomes the lane's). */
#ifndef STORE_SPILL_PRIV_H
#define STORE_SPILL_PRIV_H

#include "store/segment_file.h"
#include "store/store_priv.h"

struct spill_item {
	void *item;            /* a reference */
	uint64_t seq, at;      /* at: offset of its record */
	uint64_t bytes;        /* of its body */
	struct op_state state; /* as in the file */
};

struct spill_file {
	char name[SEGMENT_NAME];
	uint64_t first, last;   /* seqs written to it by this job */
	uint64_t end, messages; /* of all of it */
	uint64_t latest_expiry_ms;
	uint32_t item, items; /* which ones */
	bool is_continued, is_closed, never_expires;
};

struct spill {
	struct worker_job job;
	TAILQ_ENTRY(spill) link; /* waiting, ended */
	struct store *store;
	struct lane *lane;            /* one of its jobs */
	uint64_t through, keep_bytes; /* which ones: see spill_begin */
	struct spill_item *item;      /* owned */
	uint32_t items, cap;
	struct segment *continued; /* is_appended, users; NULL: a new file from the start */
	char continued_name[SEGMENT_NAME];
	uint64_t continued_end, continued_messages;
	struct spill_file *file; /* owned: whole and synced; the worker's until it has ended */
	uint32_t files, files_cap, entered;
	struct rangeset acked; /* lanes that are not durable: gone since the start */
	uint64_t bytes;        /* written */
	int error;             /* of what came after the last of the files */
	bool continued_failed; /* then nothing is added to that file any more */
};

/* ---- spill_write.c ---- */
void spill_run(struct worker_job *job);

/* ---- spill_enter.c: SEG is appended and applied, the owner is told; or nothing of it lives and it is unlinked ---- */
void spill_enter_file(struct spill *sp, const struct spill_file *f);

#endif
