/* SPDX-License-Identifier: Apache-2.0
 * What the files of the store share:
 *	store.c		new, turn, waits, stats			recover.c	the start
 *	lane.c		messages in memory			merge.c		ACK, STATE, MARK: once per lane and turn
 *	publish.c	MSG, records of several operations	segments.c	a chain's records in memory
 *	apply.c		what an operation does			objects.c	PUT, GONE
 *	chains.c	all chains: files that go, jobs
 *	look.c		chain, looked at
 *	segment_file.c	bytes of segment files			spill.c		memory -> chain
 *	read_ahead.c	chain -> memory				rewrite.c	sparse segments
 *	roll.c		giving up journal files			snapshot.c, check.c, restore.c
 *	window.c	keys that came lately			keys.c		the same by age and by hash */
#ifndef STORE_STORE_PRIV_H
#define STORE_STORE_PRIV_H

#include "base/buckets.h"
#include "store/journal.h"
#include "store/lane.h"
#include "store/store.h"

TAILQ_HEAD(lane_queue, lane);
TAILQ_HEAD(dying_windows, window);
struct object;
struct roll;
struct rewrite;
struct snapshot;

/* What all chains share: segments.c, spill.c, read_ahead.c. */
TAILQ_HEAD(segment_list, segment);
struct chains {
	struct segment_list all;	/* every segment of a chain; doomed ones are in `doomed` */
	uint64_t segments, messages;	/* of all: how many, and what lives in them */
	struct segment_list doomed;
	uint64_t live_bytes, garbage;	/* of all: estimates by count and bytes of bodies */
	struct spill_list *spills;	/* owned; running, waiting, ended */
	struct reader_list *readers;	/* owned; lanes with something to hand up */
	unsigned jobs;			/* handed to workers, not taken yet */
	bool is_swept;			/* what recovery found empty was doomed */
	int failed;			/* a segment could not be synced or written (EIO): store_failed() */
};

struct store {
	struct store_config cfg;
	struct disk *disk;		/* borrowed */
	struct workers *workers;	/* borrowed */
	const struct store_ops *ops;
	void *arg;			/* for ops->make */
	struct store_id id;
	struct journal *journal;	/* owned */
	TAILQ_HEAD(, lane) lanes;	/* owned, in the order in which they were made */
	struct buckets lanes_by_name;
	struct lane *found;		/* of them, the one that was found last; NULL */
	TAILQ_HEAD(, object) objects;	/* owned, in the order in which they came */
	struct buckets objects_by_key;
	uint64_t objects_lsn;		/* of the last PUT or GONE */
	struct window *windows;		/* owned, uthash by owner: durable ones */
	struct dying_windows dying_windows;	/* owned: closed, and freed in slices */
	struct lane_queue dirty;
	struct lane_queue lagging;	/* over twice their bounds: see spill.c */
	struct op_lane last_lag;	/* of them, the one that was published into last */
	uint64_t lags_ended;
	bool recovering;		/* items are owned by slots, nothing is appended */
	uint64_t next_id, now_ms;	/* of the last turn */
	uint64_t last_lsn;		/* of the last record appended */
	struct {			/* for roll.c: what only the journal has, beside stats.journal_live_bytes */
		uint64_t messages;	/* slots with an lsn; kept by lane.c */
		uint64_t object_bytes;	/* of the newest PUT of each object; kept by objects.c */
	} journal_live;
	struct {			/* store_begin() */
		bool is_open;
		uint8_t *p;		/* owned: payload so far */
		uint32_t n, cap, ops;
		struct sync_setting sync;	/* the strictest of what is in it */
		struct pending *pending;	/* owned: what gets the record's LSN at its end */
		uint32_t pendings, pendings_cap;
	} record;
	struct op_target *target;	/* owned: room for store_publish() */
	uint32_t targets_cap;
	uint32_t top_lane;	/* highest priority level that a recovered lane has */
	struct roll *roll;		/* owned; NULL: none under way */
	struct rewrite *rewrite;
	struct snapshot *snapshot;
	struct chains chains;
	uint32_t snapshot_holds;	/* > 0: no roll step 5, no unlinks, no rewrites */
	struct store_stats stats;
};

/* Appends operations: into the open record, or a record of their own (with this need; the ms of SYNC_WITHIN). Returns the
 * place to encode them to; *lsn: 0 while a record is open (store_end knows it: then slots and objects are set there). */
uint8_t *store_append(struct store *s, uint32_t n, uint16_t ops, struct sync_setting sync, uint64_t *lsn);
struct sync_setting store_sync_of(const struct store *s, const struct lane *l);
struct sync_setting sync_stricter(struct sync_setting a, struct sync_setting b);
void record_forget(struct store *s, const struct lane *l);	/* it closes */
void record_forget_window(struct store *s, const struct window *w);
void record_remember_window(struct store *s, struct window *w);
void record_remember_object(struct store *s, enum object_kind kind, uint64_t id);
void record_free(struct store *s);
void store_flush(struct store *s);	/* lane_flush() of all */
void object_set_lsn(struct store *s, enum object_kind kind, uint64_t id, uint64_t lsn);

/* The object's newest PUT, 0 when there is none (roll: is this record it?). */
uint64_t object_lsn(const struct store *s, enum object_kind kind, uint64_t id);
void object_gone(struct store *s, enum object_kind kind, uint64_t id);	/* also of one that is not known */
void object_put_again(struct store *s, const struct op_object *o);	/* roll: the same bytes, moved */
/* Roll: the PUTs that stand in this journal file cannot be read any more. Their holds are dropped, the owner is asked to
 * put them again; what it does not is logged, and counted (stats.damaged). */
void objects_lost(struct store *s, uint32_t file);
void objects_free(struct store *s);
bool object_exists(const struct store *s, enum object_kind kind, uint64_t id);
void objects_forget_states(struct store *s);	/* store_linked */

/* ---- segment_file.c ---- */
enum { SEGMENT_BYTES = 16 << 20, SEGMENT_MESSAGES = 16384, SEGMENT_NAME = 80 };
void segment_name(const struct lane *l, uint64_t first, char out[SEGMENT_NAME]);	/* segments/... or transient/... */
void segment_name_of(struct op_lane lane, bool durable, uint64_t first, char out[SEGMENT_NAME]);
/* False: this is no name of a segment file. */
bool segment_name_parse(const char *name, struct op_lane *lane, uint64_t *first);

/* ---- spill.c ---- */
/* Has the lane, with those that it shares its bounds with, more than so many times as much in memory as it may? */
static inline bool
lane_is_over(const struct store *s, const struct lane *l, unsigned times)
{
	uint64_t entries = l->high - l->low, bytes = l->bytes;

	if (unlikely(l->share != NULL)) {
		entries = l->share->live;
		bytes = l->share->bytes;
	}
	return entries > times * s->cfg.lane_entries || bytes > times * s->cfg.lane_bytes;
}

bool spill_start(struct lane *l, uint64_t through, const struct lane_item *items, uint32_t n);	/* false: one is under way */
void spill_look(const struct store *s, struct lane *l);	/* after a message came in: over its bounds? */
void spill_look_at_lag(struct lane *l);	/* it came over twice its bounds */
void spill_lag_ends(struct lane *l);	/* it closes, or is within its bounds */
unsigned spills_running(const struct store *s);	/* and waiting */
bool spill_turn(struct store *s);	/* what jobs have written enters chains: SEG, ops->spilled. Every turn; true: more */
/* ---- read_ahead.c, rewrite.c, roll.c, snapshot.c: slices of the turn; true: more to do at once ---- */
bool roll_turn(struct store *s);
bool read_turn(struct store *s);	/* hands up what was read: ops->loaded, ops->load_done */
bool rewrite_turn(struct store *s);
void roll_free(struct store *s);
void rewrite_free(struct store *s);
void reader_cancel(struct lane *l);	/* its lane closes; segments_close() calls it */
void chains_init(struct store *s);	/* store_new */
void chains_free(struct store *s);	/* store_free, before lanes are freed: waits for the jobs of chains */
void snapshot_turn(struct store *s);
/* check.c, restore.c: the same on any disk. */
int store_check_disk(struct disk *d, const struct store_check_ask *ask, struct store_check_report *out);
int store_restore_disk(struct disk *from, struct disk *to, const struct store_restore_ask *ask);

#endif
