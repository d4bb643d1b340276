/* SPDX-License-Identifier: Apache-2.0
 * Private to the store: lanes, their messages in memory, their chains.
 *
 *	seq:	... chain: segments[0..n) ............ | memory: ring [low, high) ... | next_seq
 *	                                     chain_end ^
 * The ring has a slot for each seq from the lowest live one beyond the chain on; a hole has no item. It is the lane's only
 * record of what lives in memory, ready and unacknowledged alike, and of where the journal has it. */
#ifndef STORE_LANE_H
#define STORE_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buckets.h"
#include "base/rangeset.h"
#include "store/op.h"
#include "store/store.h"

struct spill;
struct reader;

struct slot {
	void *item;	/* borrowed from the owner; NULL: a hole. During recovery: owned */
	uint64_t lsn;	/* of its newest MSG record, held in the journal; 0: not persistent, none; LSN_OPEN */
};
#define LSN_OPEN UINT64_MAX /* in the open record (store_begin): known at store_end; nothing is held */

struct state_of {
	uint64_t seq;
	struct op_state state;
};

/* Lanes that have bounds together. */
TAILQ_HEAD(lane_list, lane);
struct lane_share {
	struct lane_list lanes;
	uint64_t live, bytes;	/* in memory, of all of them */
	unsigned spills;	/* of them have a job */
};

struct segment {
	TAILQ_ENTRY(segment) link; /* store->chains.all */
	struct lane *lane;	/* borrowed: it outlives its segments, but for doomed ones */
	uint64_t first, last;	/* seqs; names are made of lane and first */
	uint64_t end;		/* offset behind its last record that counts */
	uint64_t live, bytes;	/* messages not removed, and their bodies */
	uint64_t latest_expiry_ms;
	uint64_t messages;	/* records in the file below end; of an earlier run: at least the live ones */
	uint64_t garbage, counted_live;	/* bytes: what store->chains counts of it */
	uint64_t counted_messages;
	struct rangeset removed; /* of first..last, gaps included */
	struct op_seg_exception *exception;	/* owned; ascending, what changed since the file was written */
	uint32_t exceptions, exceptions_cap;
	bool is_closed;		/* never appended to again: full, or of an earlier run */
	bool is_damaged;	/* something of it could not be read: not rewritten, set aside instead of unlinked */
	bool is_rewritten;	/* a job is at it: readers wait */
	bool is_appended;	/* a spill writes to it: not doomed meanwhile */
	bool is_doomed;		/* nothing lives: unlinked once `doomed_at` is durable */
	uint32_t rewrites;	/* how often its file was written anew: offsets are others then */
	uint8_t users;		/* jobs that have its file open: not unlinked, not rewritten meanwhile */
	uint64_t doomed_at;	/* LSN */
	char *doomed_name;	/* owned: the file's, as the lane may be gone by then */
	uint64_t lsn;		/* of its newest SEG record, held in the journal */
	struct rangeset acks;	/* merged in this turn, not journalled yet: in `removed` already */
	uint64_t acks_bytes;
};

struct lane {
	struct store *store;
	struct op_lane name;
	void *owner;
	bool durable, is_linked, is_closed;	/* closed: lives on for its jobs */
	struct sync_setting sync;
	uint64_t next_seq, delivered, chain_end;

	struct slot *ring;	/* owned; NULL until the first message */
	uint32_t mask, ring_home;	/* ring_home: base/slab's, of a small one; SLAB_HEAP */
	uint64_t low, high;	/* seqs [low, high) have slots */
	uint64_t live;		/* slots with an item */
	uint64_t journalled;	/* of them with an lsn */
	uint64_t bytes, journalled_bytes;	/* bodies of all live ones, and of those with an lsn */
	struct lane_share *share;	/* borrowed: its owner's; NULL: it has the bounds for itself */
	TAILQ_ENTRY(lane) share_link;
	bool owns_items;	/* recovered, and its owner has not asked with lane_each() yet */
	uint32_t ring_hint;	/* slots that it had when it was last freed */
	struct state_of *state;	/* owned; hashed by seq (lane_state()): those in memory whose state is not zero */
	uint32_t states, states_cap;

	uint64_t evidence;	/* LSN of a record (MSG or MARK) that shows next_seq; held */
	uint64_t mark;		/* LSN of the newest MARK while something it calls delivered may be alive; held. Roll:
				 * where either of the two is the record, lane_append_mark(). */

	struct rangeset acks;	/* merged in this turn: of the memory part, journalled ones only */
	uint64_t acks_count, acks_bytes;	/* ranges may span seqs that are no messages */
	enum ack_reason acks_reason;
	uint64_t chain_acks_from, chain_acks_to;	/* those of the chain lie in between; 0: none */
	struct rangeset changed; /* seqs whose state is to be journalled */
	bool mark_is_due;
	TAILQ_ENTRY(lane) dirty_link;
	bool is_dirty;
	bool lags;		/* in store->lagging */
	TAILQ_ENTRY(lane) lag_link;

	struct segment **segment;	/* owned, ascending */
	uint32_t segments, segments_cap;
	uint64_t read_seq;	/* unread: live ones of the chain with seq >= read_seq */
	uint64_t unread, unread_bytes;
	struct spill *spill;	/* the job under way (or waiting for its turn), or NULL */
	uint64_t spill_after_ms; /* not before: the disk was full */
	struct reader *reader;
	unsigned jobs;		/* that know this lane: it is freed when they are over */
	struct bucket_node by_name;	/* in store->lanes_by_name */
	TAILQ_ENTRY(lane) all_link;	/* store->lanes, unless it is closed */
};

/* ---- lane.c ---- */
struct lane *lane_find(struct store *s, struct op_lane name);
struct lane *lane_get(struct store *s, struct op_lane name);	/* makes a stub: durable, not linked */
void lane_unuse(struct lane *l);	/* a job is over; frees a closed lane after its last one */
void lane_free(struct lane *l);		/* with its segments' records; files are the caller's */
/* All slots and holds are dropped, nothing is journalled; items that are not its own are not touched. */
void lane_empty(struct lane *l);
struct slot *lane_slot(const struct lane *l, uint64_t seq);	/* NULL: none, or a hole */
void lane_put_slot(struct lane *l, uint64_t seq, void *item, uint64_t lsn);	/* holds lsn; raises next_seq */
void lane_set_lsn(struct lane *l, struct slot *slot, uint64_t lsn);	/* moved: holds follow */
void lane_clear_slot(struct lane *l, uint64_t seq);	/* drops the hold; low moves up */
void lane_clear_through(struct lane *l, uint64_t last);	/* all of them up to it */
/* All of them from `first` on. out: what of them was journalled; the range may span others. */
struct lane_cut {
	uint64_t count, bytes;
	struct range range;
};
void lane_clear_from(struct lane *l, uint64_t first, struct lane_cut *out);
/* Recovery, where a file may say anything: is that seq so near to those in memory that one ring can have both? */
bool lane_is_near(const struct lane *l, uint64_t seq);
/* False: no memory for slots down or up to that seq, or it is not near. */
bool lane_try_room(struct lane *l, uint64_t seq) MUSTUSE;
const struct op_state *lane_state(const struct lane *l, uint64_t seq);	/* zero where nothing is known */
void lane_put_state(struct lane *l, uint64_t seq, const struct op_state *state);	/* of a live one in memory */
void lane_set_evidence(struct lane *l, uint64_t lsn);
/* Puts the hold of *place at lsn, which may be 0. */
void lane_move_hold(struct store *s, uint64_t *place, uint64_t lsn);
/* A message is gone whose body has so many bytes. */
void lane_clear(struct lane *l, uint64_t seq, struct slot *slot, uint64_t bytes);
void lane_shrink(struct lane *l);	/* gives room back that is far too large */
/* The ring spans far more than lives in it: an old message has to go to the chain, however few there are. */
enum { LANE_SPARSE = 131072 };
static inline bool
lane_is_sparse(const struct lane *l)
{
	return l->high - l->low > LANE_SPARSE && l->high - l->low > 4 * l->live;
}

/* ---- merge.c: what a turn merges ---- */
void lane_mark_dirty(struct lane *l);
void lane_merged_in_chain(struct lane *l, uint64_t first, uint64_t last);	/* into some segment's acks */
void lane_flush(struct lane *l);	/* appends what was merged: ACK, STATE, MARK */
void lane_append_mark(struct lane *l);
void lane_acks_reason(struct lane *l, enum ack_reason reason);	/* of what is merged from now on */
void lane_mark_is_due(struct lane *l);	/* at the end of the turn */
void lane_forget_merged(struct lane *l);	/* it closes */

/* ---- segments.c: the chain's records in memory; whoever changes a segment does it through these ---- */
struct segment *lane_segment(const struct lane *l, uint64_t seq);	/* that has seq in first..last, or NULL */
void segment_free(struct segment *g);
/* Appends a SEG operation with the segment's state as of now; moves its hold. Flushes the lane before if acknowledgements
 * of it are not journalled yet (then it may be doomed afterwards: is_doomed). */
void segment_append(struct lane *l, struct segment *g);
/* Nothing lives in it: it leaves the chain, its file is unlinked when `lsn` (0: now) is durable and nobody has it open.
 * While a record is open (lsn of what is in it not known yet): that record's. g stays good until the next segments_reap. */
void segment_doom(struct lane *l, struct segment *g, uint64_t lsn);
bool segments_reap(struct store *s);	/* unlinks what is due, by a worker; every turn. True: more at once */
/* For apply_seg, live and recovery: makes or replaces the segment (o decoded: raw_*), moves the hold to lsn, raises
 * chain_end. Slots are the caller's. While recovering everything in chains counts as unread. NULL: it contradicts itself
 * or overlaps another segment (damage, reported; nothing was changed). */
struct segment *segment_put(struct lane *l, const struct op_seg *o, uint64_t lsn);
/* For apply_ack, recovery: first..last of g (cut to it) are removed. Returns how many were there; bytes of bodies go too.
 * Nothing is journalled. The caller dooms g when live is 0. */
uint64_t segment_remove(struct lane *l, struct segment *g, uint64_t first, uint64_t last, uint64_t bytes);
/* For lane_ack: is seq the chain's? (Or of a spill under way of a lane that is not durable.) Then it is removed and merged
 * into g->acks for lane_flush, which appends ONE ack per segment with acks.n > 0 (count acks.count, bytes acks_bytes),
 * clears them, and dooms the segment with that LSN when live is 0. Lanes that are not durable: all done at once. */
bool segment_ack(struct lane *l, uint64_t seq, uint64_t body_bytes);
/* For lane_ack_from: the same for everything live from `first` on; unread ones too. Returns how many. */
uint64_t segments_ack_from(struct lane *l, uint64_t first);
/* For lane_set_state and apply_state: those of range that are g's. */
void segment_set_state(struct segment *g, struct range range, const struct op_state *state);
const struct op_state *segment_state(const struct segment *g, uint64_t seq);	/* NULL: as in the file */
/* For lane_close: ends reading, dooms all segments (lsn: of the GONE; 0: not durable). A spill under way ends by itself. */
void segments_close(struct lane *l, uint64_t lsn);
void segments_stats(const struct store *s, struct store_stats *out);	/* the gauges of chains */

/* ---- apply.c: the one way to change state; live code after its append, and recovery ---- */
void apply_msg(struct store *s, const struct op_target *t, void *item, uint64_t lsn);
void lane_enter(struct lane *l, uint64_t seq, void *item, uint64_t lsn);	/* the same, lane at hand */
void apply_ack(struct lane *l, const struct op_ack *a);
void apply_state(struct lane *l, const struct op_state_change *c);
void apply_mark(struct lane *l, const struct op_mark *m, uint64_t lsn);
/* Entries up to last leave memory, the file is used. */
void apply_seg(struct lane *l, const struct op_seg *g, uint64_t lsn);
void apply_dedup(struct store *s, const struct op_dedup *d, uint64_t lsn);	/* window.c */
void apply_put(struct store *s, const struct op_object *o, uint64_t lsn);
void apply_gone(struct store *s, const struct op_object *o);
int apply_record(struct store *s, uint64_t lsn, struct span payload) MUSTUSE;	/* recovery: all of a record; 0 or -errno */

#endif
