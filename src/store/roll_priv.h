/* SPDX-License-Identifier: Apache-2.0
 * Private to the roll: roll.c (which file, in which order), roll_pace.c (when, how much), roll_read.c (the worker that
 * reads it), roll_move.c (what becomes of its records), roll_spill.c (lanes that are spilled instead). */
#ifndef STORE_ROLL_PRIV_H
#define STORE_ROLL_PRIV_H

#include "store/store_priv.h"

enum {
	ROLL_LIMIT = 64 << 10, /* lanes with more in memory are spilled */
	ROLL_ENTRY_COST = 100, /* bytes of a message's record beside its body, about */
	ROLL_SPARES = 2,       /* of the journal */
	ROLL_QUIET_MS = 1000,  /* so long little was appended: it is quiet */
	ROLL_BUCKETS = 16
};

struct record_at {
	uint32_t at, length; /* in the piece: its payload */
	uint64_t lsn;
};

/* A piece of F on its way: read and checked by a worker, then gone through. It may outlive the roll. */
struct piece {
	struct worker_job job;
	struct roll *roll; /* NULL: nobody wants it any more */
	bool is_read;      /* core thread's */
	struct disk *disk; /* borrowed: outlives the jobs */
	uint64_t seed;
	char name[JOURNAL_NAME];
	uint32_t file;
	uint64_t at, end; /* of the file: where the piece begins, where records end */
	uint8_t *p;       /* owned */
	size_t n;
	struct record_at *record; /* owned */
	uint32_t records, records_cap;
	uint64_t next;    /* where the next piece begins */
	uint64_t damaged; /* bytes that are no whole records */
	int error;        /* -errno of the read */
};

struct wanted;
TAILQ_HEAD(wanted_list, wanted);

enum phase { IDLE, READING, SPILLING, SEARCHING, WAITING };

struct roll {
	struct store *store;
	enum phase phase;
	uint32_t file;       /* F; 0: none */
	uint64_t at, end;    /* where the next piece begins; behind its last record */
	struct piece *piece; /* owned: being read, or being gone through */
	struct piece *ahead; /* owned: the next one, or NULL */
	uint32_t record;     /* of the piece: the next one */
	size_t op_at;        /* in its payload */
	uint32_t target_at;  /* of its message */

	struct wanted *wanted;              /* owned, by key */
	struct wanted_list bucket[ROLL_BUCKETS]; /* by size: the biggest are spilled first */
	struct wanted_list running;
	unsigned spills;        /* in running */
	uint64_t limit;         /* bytes; see ROLL_LIMIT */
	uint64_t second, files; /* made for small lanes in this second */

	struct lane *cursor; /* SEARCHING: the lane that comes next, kept by its jobs; NULL: from the first on */
	uint64_t cursor_seq; /* of the cursor's lane: nothing below it is in the file any more */
	uint64_t retry_ms;

	uint64_t published; /* bytes that others appended, when looked at last */
	uint64_t looked_ms;
	uint64_t allowed, allowed_ms; /* bytes_allowed(), and until when it holds */
	uint32_t allowed_at;          /* while this is the current file */
	uint64_t heard, quiet_ms;     /* the same at the last look whether it is quiet; the next one */
	bool is_quiet;
	uint64_t budget;      /* bytes that may be moved */
	uint64_t records;     /* the same in records */
	uint64_t work, most_work, moved; /* in this slice */
};

/* ---- roll_pace.c ---- */
bool roll_is_due(struct roll *r); /* does the oldest file have to go? */
void roll_listen(struct roll *r); /* is it quiet? Each turn */
void roll_gain(struct roll *r);   /* what this slice may do */
bool roll_may_move(const struct roll *r, uint64_t n); /* so many bytes, now */
void roll_count_moved(struct roll *r, uint64_t payload);
bool roll_slice_is_over(const struct roll *r);
static inline uint64_t
lane_weight(const struct lane *l)
{
	return l->bytes + l->live * ROLL_ENTRY_COST;
}

/* ---- roll_read.c ---- */
void piece_free(struct piece **pp);
void piece_read(struct worker_job *job); /* on a worker */

/* ---- roll_move.c: both answer false when they are to be called again, not at once ---- */
bool roll_walk_piece(struct roll *r);
bool roll_search(struct roll *r); /* all lanes, for what they still hold of the file */
void roll_forget_cursor(struct roll *r);

/* ---- roll_spill.c ---- */
void roll_want_spill(struct roll *r, const struct lane *l, uint64_t seq);
void roll_spill_on(struct roll *r); /* none is left when r->wanted is NULL */
void roll_forget_wanted(struct roll *r);

#endif
