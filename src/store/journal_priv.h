/* SPDX-License-Identifier: Apache-2.0
 * Private to the journal: journal.c (core side), journal_writer.c (its thread), journal_slots.c (files made and used
 * again), journal_find.c and journal_recover.c (the start), journal_scan.c (looking for records in a file).
 *
 * Who touches what: everything is the core thread's but `shared` (under its lock, never held during I/O), `w` (the
 * journal thread's) and the atomics. A chunk belongs to the core thread until it is handed over, and again once it is on
 * the list of those done with; so does the file that it goes to, whose slot the journal thread writes once. */
#ifndef STORE_JOURNAL_PRIV_H
#define STORE_JOURNAL_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "store/journal.h"

enum {
	BUFFER_SIZE = 1 << 20,
	BUFFERS_KEPT = 4, /* unused ones */
	CHUNK_RECORD = RECORD_HEADER + CHUNK_PAYLOAD,
	OPEN_RECORD = RECORD_HEADER + OPEN_PAYLOAD,
	FILE_MIN = 64 << 10,
	SPARES_WANTED = 2,
	SPARES_MOST = 3, /* one more than wanted: a file that is given up takes the place of the next spare */
	OLDEST_WITHIN_MS = 100, /* until a file that is given up is so on disk */
	SPACE_RETRY_MS = 100,
	SPARE_RETRY_MS = 500
};
#define NO_SLOT UINT32_MAX
#define FILE_MAX ((uint64_t)UINT32_MAX - 4095) /* offsets have 32 bits */

struct buffer { /* memory that chunks lie in, one behind the other */
	uint8_t *p; /* owned */
	uint32_t cap, used;
	uint32_t chunks; /* that are not done with */
	struct buffer *next;
};

struct jfile {
	uint32_t number;
	uint64_t size;
	uint64_t end; /* offset behind what was appended */
	uint64_t live;
	uint64_t previous_end; /* LSN */
	uint64_t given_up_at;  /* once this LSN is durable the slot may be used again; 0: not yet */
	_Atomic uint32_t slot; /* NO_SLOT until the file is begun */
};

struct chunk {
	struct chunk *next;
	struct jfile *file;    /* borrowed: a file that is not durable is not given up */
	struct buffer *buffer; /* borrowed, and counted in its `chunks` */
	uint8_t *p;
	uint32_t n, at; /* bytes; offset in the file */
	bool begins;	/* the file: an OPEN record stands before the CHUNK record */
	enum sync_need need;
	uint32_t within_ms;
	uint32_t oldest;
	uint64_t next_id, clock_ms;
	uint64_t through; /* bytes appended to the journal up to its end */
};

struct chunks {
	struct chunk *first, **end;
};

struct writer { /* the journal thread's */
	struct chunks pending;
	struct chunks done;
	struct jfile *file; /* NULL: none is open */
	struct disk_file *f;
	uint64_t written, durable; /* LSNs */
	uint64_t written_through, durable_through; /* bytes appended up to them */
	uint64_t touched; /* offset below which the file was written before, if only with zeros */
	int shortage;	  /* why the last step left something; 0: it did not */
	bool is_due;	  /* something waits for a sync now */
	uint64_t due_us;  /* or by this time; 0: nothing does */
};

struct slot_job;

struct journal {
	struct disk *disk;	 /* borrowed */
	struct workers *workers; /* borrowed; NULL: no spares are made, no slots removed */
	struct journal_config cfg;
	struct store_id id;
	int fd;

	/* the chunk that is open; room 0: none is */
	uint8_t *next;
	uint32_t room; /* bytes that fit into chunk, buffer and file */
	uint64_t end;  /* LSN of the next byte */
	struct chunk *open;
	struct chunks closed; /* not handed over yet */
	struct buffer *buffer;
	struct buffer *unused_buffers;
	uint32_t unused_buffers_n;
	struct chunk *unused_chunks;
	uint64_t appended; /* bytes, without the open chunk */

	struct jfile **file; /* owned, ascending; the last is appended to */
	uint32_t files, files_cap;
	uint64_t files_bytes;  /* of all of them */
	uint64_t needed_bytes; /* of those that are not given up */
	uint32_t oldest, oldest_announced;
	uint32_t run_began; /* number of the file that the start made */
	uint64_t next_id, clock_ms; /* of the last hand-over */

	uint64_t written, durable, durable_through; /* as last taken */
	struct journal_stats stats; /* the core's part */

	/* slots */
	unsigned slots_held;
	struct slot_job *slot_job; /* under way */
	uint32_t *doomed;	   /* owned: slots to be removed */
	uint32_t doomed_n, doomed_cap;
	bool spares_short; /* the last one found no space */
	bool is_recovered, has_thread;

	pthread_t thread;
	struct {
		pthread_mutex_t lock;
		pthread_cond_t work;
		struct chunks queue, done;
		uint32_t spare[SPARES_MOST];
		uint32_t spares;
		bool asleep, stop;
		bool nudged; /* there is a reminder to look after */
	} shared;
	struct writer w;

	_Atomic uint64_t now_written, now_durable, now_durable_through;
	_Atomic int failed;		/* -errno */
	atomic_bool no_space;		/* a write waits */
	atomic_bool wants_retry, retry; /* to make a spare: the core wants to be told; it is time */
	_Atomic uint32_t next_slot;
	_Atomic uint64_t chunks, writes, syncs, sync_us, sync_max_us, created;
	_Atomic uint64_t sync_times[HISTOGRAM_MAX]; /* syncs by histogram_us */
	_Atomic uint64_t batches[HISTOGRAM_MAX];    /* writes of records, by histogram_writes */
	_Atomic uint64_t batch_bytes;
};

static inline void
chunks_init(struct chunks *l)
{
	l->first = NULL;
	l->end = &l->first;
}

static inline void
chunks_push(struct chunks *l, struct chunk *c)
{
	c->next = NULL;
	*l->end = c;
	l->end = &c->next;
}

/* All of `from` go to the end of `to`. */
static inline void
chunks_move(struct chunks *to, struct chunks *from)
{
	if (from->first == NULL)
		return;
	*to->end = from->first;
	to->end = from->end;
	chunks_init(from);
}

/* ---- journal.c ---- */
struct jfile *journal_add_file(struct journal *j, uint32_t number, uint64_t size);
/* A file with nothing but OPEN and CHUNK in it: what a start begins. */
void journal_begin(struct journal *j, uint32_t number, uint64_t size, uint64_t previous_end);
void journal_set_file_size(struct journal *j, struct jfile *f, uint64_t size); /* of one that is needed */

/* ---- journal_writer.c ---- */
enum writer_result { WRITER_IDLE, WRITER_DONE, WRITER_BLOCKED };
/* Writes all that waits and syncs what is due; is_time: also what would be due later. */
enum writer_result writer_step(struct journal *j, bool is_time);
void writer_start(struct journal *j); /* the thread */
void writer_stop(struct journal *j);  /* after everything was written, or cannot be */

/* ---- journal_slots.c ---- */
void slot_name(uint32_t slot, char out[JOURNAL_NAME]);
bool slot_name_parse(const char *name, uint32_t *slot);
void slots_add_spare(struct journal *j, uint32_t slot); /* or dooms it, when there are enough */
void slots_doom(struct journal *j, uint32_t slot);
uint32_t slots_spares(struct journal *j);
/* The journal thread: a spare leaves the list; NO_SLOT: there is none. */
uint32_t slots_take(struct journal *j);
void slots_put_back(struct journal *j, uint32_t slot);
void slots_poll(struct journal *j); /* recycles, and makes and removes slots */
void slots_fini(struct journal *j);

/* ---- journal_scan.c ---- */
struct scan {
	struct disk *disk;
	uint64_t seed;
	struct disk_file *f;
	uint32_t slot, number;
	uint64_t size; /* of the file; a multiple of RECORD_ALIGN */
	uint8_t *window; /* owned: bytes from..from + n of the file */
	uint64_t from, n, cap;
	uint64_t hashed; /* bytes of what looked like records and were none */
	uint64_t unreadable; /* places */
	int error;	 /* no memory: nothing found is worth anything */
};
/* 0 or -errno. size: not more than that is looked at. */
int scan_open(struct scan *s, struct journal *j, uint32_t slot, uint32_t number, uint64_t size) MUSTUSE;
void scan_close(struct scan *s);

/* From record to record below a limit, over what is none. The pointer is good until the next step. */
struct walk {
	struct scan *scan;
	uint64_t at, limit;
	uint64_t bad_from, bad_to; /* passed over in this step; equal: nothing */
	uint64_t here;		   /* the record: where, what, its payload */
	struct record_header h;
	const uint8_t *payload;
};
void walk_init(struct walk *w, struct scan *s, uint64_t limit);
bool walk_step(struct walk *w); /* false: the limit; bad_from..bad_to is what is none before it */
/* Of which file are the records in it? By the first one that is found; 0: there is none. */
uint32_t scan_number(struct scan *s);
/* Is there a record at this place? */
bool scan_has(struct scan *s, uint64_t at, uint64_t limit);

#endif
