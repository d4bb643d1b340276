/* SPDX-License-Identifier: Apache-2.0
 * The store as the broker sees it: lanes of messages that survive, and objects. src/store/README.md tells how it works.
 *
 * A lane is (queue id, lane number): messages by seq, each an opaque item of the broker. Its messages with seq <= chain
 * end lie in segment files (the chain), the later ones in the journal and in memory. Live code calls the functions below;
 * each appends an operation and applies it, with the same function by which recovery applies what it reads.
 *
 * Core thread only, but for store_ops.describe. Nothing here blocks once store_recover() has returned. Calls upwards are
 * made only from store_events() and store_turn(). */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/histogram.h"
#include "base/worker.h"
#include "store/disk.h"
#include "store/op.h"
#include "store/stats.h"
#include "store/window.h"

struct store;
struct lane;
struct lane_share;

enum sync_policy { SYNC_POLICY_DEFAULT, SYNC_POLICY_ALWAYS, SYNC_POLICY_MS, SYNC_POLICY_NEVER };
struct sync_setting {
	enum sync_policy policy;
	uint32_t ms; /* SYNC_POLICY_MS */
};

struct store_config {
	uint64_t journal_file_size, journal_max;	/* bytes; file size 0: by the size of the disk, at most 32 MiB */
	struct sync_setting sync;		/* of the node; never DEFAULT */
	uint64_t lane_entries, lane_bytes;	/* most of a lane in memory; beyond it the oldest are spilled */
	uint64_t garbage_max;			/* bytes of dead messages in segments before one is rewritten: 64 MiB */
	uint64_t segment_bytes, segment_messages;	/* of a segment file that is full; 0: 16 MiB, 16,384. For tests */
	bool threads;				/* false: tests drive journal_step and workers_step */
};

struct store_ops {
	/* An item for a message that is read: one reference, the caller's. NULL: no memory (then the read is tried again
	 * later; during recovery the start fails). */
	void *(*make)(void *arg, const struct op_msg *m);
	void (*ref)(void *item);
	void (*unref)(void *item);
	/* Any thread, the item has a reference meanwhile: fills names, props, body (or copy_body and item), body_size, flags
	 * (PERSISTENT), prio, arrived_ms, expires_ms, due_ms. Not targets and state, which are the lane's. */
	void (*describe)(const void *item, struct op_msg *out);
	uint64_t (*body_size)(const void *item);

	/* Messages up to `through` lie in the chain now. The owner lets go of those that it does not want to keep in memory:
	 * returns the seq of the first ready one that it let go, or through + 1. Those that were let go come back by
	 * lane_read(). Not called where the lane had unread messages before: then all up to `through` that were in memory
	 * behind the unread ones have to be let go (returned value is ignored); is_behind says so. */
	uint64_t (*spilled)(struct lane *l, uint64_t through, bool is_behind);
	/* A message of the chain was read, in order of seq; the reference is the receiver's. expires_ms 0: never. */
	void (*loaded)(struct lane *l, void *item, uint64_t seq, const struct op_state *state, const struct op_msg *m);
	/* A read has ended (lane_unread() and lane_is_reading() say what is left). */
	void (*load_done)(struct lane *l);
	/* Messages that were damaged and are skipped: the owner's counts change. */
	void (*lost)(struct lane *l, uint64_t count, uint64_t bytes);
	/* The newest records of objects were damaged while the node runs: the owner calls store_put() for every one that
	 * store_is_lost(), as it is now. NULL: it cannot. */
	void (*put_again)(void *arg);
};

struct store *store_new(const struct store_config *c, struct disk *d, struct workers *w, const struct store_ops *ops,
    void *arg);
/* Reads what is there (blocks). 0, or -errno and a line that says what is wrong in err (STORE_ERROR). */
enum { STORE_ERROR = 512 };
struct store_report {
	uint64_t records, damaged, torn, messages, lanes, next_id;
	uint64_t clock_ms; /* the last one journalled; 0: new */
	bool is_new;
};
int store_recover(struct store *s, struct store_report *r, char err[STORE_ERROR]) MUSTUSE;
/* Everything is written and synced; nothing may be appended afterwards. Lanes go without GONE. */
void store_free(struct store **sp);

/* ---- after recovery: the owner links, then says so ---- */

typedef void store_object_fn(void *arg, uint64_t id, struct span state);
/* Every object of a kind, in ascending order of ids. The bytes are good until store_linked(). */
void store_each_object(struct store *s, enum object_kind kind, store_object_fn *f, void *arg);
/* The lane of an object that was recovered, for its owner; makes one that is not there. */
typedef void lane_entry_fn(void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m);
/* Its messages that are in memory (beyond the chain), ascending; the reference moves to the owner. Once. m: arrived,
 * expires, due, flags only. */
void lane_each(struct lane *l, lane_entry_fn *f, void *arg);
/* Every lane with a number from `from` on that was recovered; f may call lane_open() for it. */
typedef void store_lane_fn(void *arg, uint64_t queue, uint32_t number);
void store_each_lane(struct store *s, uint32_t from, store_lane_fn *f, void *arg);
/* What nobody asked for with lane_open() or an object is gone: lanes, segments. Messages in them were of queues whose
 * records were damaged: they are told and counted (stats.damaged_messages). */
void store_linked(struct store *s);

/* ---- lanes ---- */

/* Numbers from here on are for messages that are due later; of a queue or an exchange. Below: priority levels. */
enum { LANE_LATER = 256 };
/* owner: what lane_owner() returns. A lane that is not durable (of a transient queue) journals nothing; it serves spilling
 * only. */
struct lane *lane_open(struct store *s, uint64_t queue, uint32_t number, bool durable, void *owner);
/* Has it messages, or did it before the restart? */
bool lane_is_there(struct store *s, uint64_t queue, uint32_t number);
/* Its messages, chain and files are gone. For durable ones after store_gone() of the queue, which journals it. The owner
 * keeps the items of entries and deliveries that it has. */
void lane_close(struct lane **lp);
/* Lanes of one queue share the bounds of one lane (lane_entries, lane_bytes): together they have no more in memory. Once a
 * lane; NULL: it shares no more, as when it closes. The share is the caller's and outlives its lanes' membership. */
struct lane_share *lane_share_new(void);
void lane_share_free(struct lane_share **shp);
void lane_set_share(struct lane *l, struct lane_share *sh);
void *lane_owner(const struct lane *l);
uint32_t lane_number(const struct lane *l);
void lane_set_sync(struct lane *l, struct sync_setting s); /* DEFAULT: the node's */
uint64_t lane_next_seq(const struct lane *l);	/* none that was given out is at or above it */
uint64_t lane_delivered(const struct lane *l);	/* recovered: messages up to it may have been delivered */

/* What a confirm has to wait for: store_reached(). lsn 0: nothing. */
struct store_wait {
	uint64_t lsn;
	bool durable; /* else written */
	bool lags;    /* of store_publish: a lane it went to has twice as much in memory as it may (store_last_lag) */
};
struct lane_place {
	struct lane *lane;
	uint64_t seq;	/* rising in each lane */
};
/* A persistent message enters durable lanes: one MSG operation, in a record of its own or in the open one. The lanes
 * remember the item without a reference: it must live until it is acknowledged or its lane closed. */
struct store_wait store_publish(struct store *s, const struct lane_place *place, uint32_t n, void *item);
/* The same, and durable windows remember a key each: its operation is in the record of the message. */
struct window_key {
	struct window *window;
	struct op_key key;
};
struct store_wait store_publish_keys(struct store *s, const struct lane_place *place, uint32_t n, void *item,
    const struct window_key *key, uint32_t keys);
/* A message that is not persistent, in a durable lane: nothing is journalled, but it is spilled with the others. True: the
 * lane lags. */
bool lane_add_volatile(struct lane *l, uint64_t seq, void *item);
/* Messages are gone: merged per lane and turn into ACK operations. Unknown seqs are ignored. */
void lane_ack(struct lane *l, uint64_t seq, uint64_t body_bytes, enum ack_reason reason);
/* Ready ones behind all that were delivered, all at once: from `first` on, the chain's unread ones included (purge). */
void lane_ack_from(struct lane *l, uint64_t first, enum ack_reason reason);
/* Requeued: redelivered, and its counts. Merged per turn into STATE operations. */
void lane_set_state(struct lane *l, uint64_t seq, const struct op_state *state);
/* A message with this seq was given out and waits for acknowledgement. One MARK a turn. */
void lane_mark_delivered(struct lane *l, uint64_t seq);

/* Several operations that have to be all there or not at all (tx.commit, dead letter): everything between the two, the
 * acknowledgements made in between included, is one record. Does not nest. */
void store_begin(struct store *s);
struct store_wait store_end(struct store *s);
bool store_record_is_open(const struct store *s);
enum { STORE_RECORD_MAX = 64 << 20, STORE_RECORD_OPS = 65535 };

/* ---- the chain ---- */

uint64_t lane_unread(const struct lane *l);	/* messages that lie in files only, and are to be read before others */
void lane_note_damage(struct lane *l);	/* its owner found that counts do not agree */
uint64_t lane_unread_bytes(const struct lane *l);	/* of their bodies */
/* Of a durable lane: messages that survive a restart, and bytes of their bodies. (What is not persistent and was spilled
 * with others is among them while it lies there.) */
void lane_kept(const struct lane *l, uint64_t *messages, uint64_t *bytes);
bool lane_is_reading(const struct lane *l);
/* Reads on, about `bytes` of messages (at least one), if there is something unread and no read under way. */
void lane_read(struct lane *l, uint64_t bytes);
/* Unread ones, looked at without being taken: nothing of the lane changes. From `from` on, in order, those that are unread
 * when they come up; the lane may close meanwhile (then there is nothing more). To be freed before store_free(). */
struct lane_look;
struct lane_look *lane_look_new(struct lane *l, uint64_t from);
void lane_look_free(struct lane_look **kp);	/* of NULL: nothing */
void lane_look_from(struct lane_look *k, uint64_t seq);	/* passes over those before */
struct lane_seen {
	void *item; /* one reference, the caller's */
	uint64_t seq, expires_ms;	/* 0: never */
	struct op_state state;
};
/* LATER: a worker reads, or the disk or memory is short: ask again in a later turn. */
enum look_result { LOOK_GOT, LOOK_LATER, LOOK_END };
enum look_result lane_look_next(struct lane_look *k, struct lane_seen *out);
bool lane_has_unread(const struct lane *l, uint64_t seq);
/* The number of the n-th (from 0) of those from `from` on; 0: they are fewer. */
uint64_t lane_nth_unread(const struct lane *l, uint64_t from, uint64_t n);
/* Puts the oldest messages in memory into the chain, down to `keep_bytes`; for memory pressure. For lanes that are not
 * durable the owner says which: items ascending by seq, all ready, the first after all others. False: a job is under way. */
struct lane_item {
	void *item;
	uint64_t seq;
	struct op_state state;
};
bool lane_spill(struct lane *l, uint64_t keep_bytes);
bool lane_spill_items(struct lane *l, const struct lane_item *items, uint32_t n);
/* All of them up to `through`. False: none is in memory. */
bool lane_spill_through(struct lane *l, uint64_t through);
uint64_t lane_memory_bytes(const struct lane *l);	/* of message bodies in memory beyond the chain */
/* Segments at the head of the unread part in which everything has expired are dropped unread; returns messages. */
uint64_t lane_expire_unread(struct lane *l, uint64_t now_ms, uint64_t *bytes);

/* ---- objects ---- */

/* An object's full state; the last one wins. Waits for `always` whatever the policy. Nothing if `state` is what was put
 * last is the caller's to know. */
void store_put(struct store *s, enum object_kind kind, uint64_t id, struct span state);
void store_gone(struct store *s, enum object_kind kind, uint64_t id);
bool store_is_lost(const struct store *s, enum object_kind kind, uint64_t id);
/* Of the last PUT or GONE, whoever made it; lsn 0 when it is durable. */
struct store_wait store_objects_wait(const struct store *s);

/* ---- the turn ---- */

static inline bool store_must_wait(const struct store *s, struct store_wait w);
bool store_reached(const struct store *s, struct store_wait w);
/* Everything so far: purge-ok waits for it. Flushes what was merged into the journal's buffer first. */
struct store_wait store_wait_all(struct store *s);

int store_fd(const struct store *s);	/* readable when positions moved (workers_fd is the pool's) */
/* Takes positions. True: one moved, confirms may go. */
bool store_events(struct store *s);
/* End of a turn: merged operations, roll, spill and rewrite in slices (about a millisecond), then the hand-over.
 * next_id: of the broker. True: there is more to do. */
bool store_turn(struct store *s, uint64_t next_id, uint64_t now_ms);

/* Why publishers of persistent messages have to wait. */
enum store_hold { STORE_FINE, STORE_BACKLOG /* 64 MiB not synced */, STORE_JOURNAL_FULL, STORE_DISK_FULL };
enum store_hold store_hold(const struct store *s);
bool store_is_behind(const struct store *s);	/* the first of these, which another one may hide */
/* A durable lane lags when its messages come in faster than they get out of memory. Who publishes into one waits until
 * this one does not any more; the number of lags that have ended rises then. */
bool store_lags(const struct store *s);	/* any lane */
struct op_lane store_last_lag(const struct store *s);	/* of the last publish that went to one */
bool store_lane_lags(struct store *s, struct op_lane lane);
uint64_t store_lags_ended(const struct store *s);
int store_failed(const struct store *s);	/* the disk failed: nothing may be confirmed, the node ends. 0: fine */

void store_stats(const struct store *s, struct store_stats *out);
/* How long syncs of the journal took, by histogram_us, and how large its writes were, by histogram_writes. */
void store_histograms(const struct store *s, struct histogram *syncs, struct histogram *batches);

/* ---- snapshot ---- */

/* Copies the state as of now into `path` (absolute; made, must not be there: -EEXIST) in the background. done: 0 or
 * -errno and a text (-EINVAL: nothing can be made at this path), on the core thread. One at a time: -EBUSY. The snapshot
 * is a data folder with a manifest. */
typedef void store_snapshot_fn(void *arg, int error, const char *text);
int store_snapshot(struct store *s, const char *path, store_snapshot_fn *done, void *arg) MUSTUSE;
/* The node stops: done is not called any more, what was written stays without a manifest. store_free() does it, too. */
void store_snapshot_cancel(struct store *s);

/* Offline: is this data folder whole? Writes lines to `say`. 0: whole; 1: damage; -errno: cannot be read. */
typedef void store_say_fn(void *arg, const char *line);
int store_check(const char *path, store_say_fn *say, void *arg);
/* The same with figures. `progress`, if there is one, is called after each piece of a segment file that was read. */
struct store_check_ask {
	store_say_fn *say;
	void (*progress)(void *arg, uint64_t done, uint64_t bytes);
	void *arg;
};
struct store_check_report {
	uint32_t format;	/* of the folder, also one that cannot be read; 0: not known */
	uint64_t records, in_journal;	/* of the journal; messages in it */
	uint64_t segments, in_segments;
	uint64_t torn;		/* bytes at the journal's end that were being written */
	uint64_t damaged;	/* places */
};
int store_check_with(const char *path, const struct store_check_ask *ask, struct store_check_report *out);
/* The newest format that this version reads, and writes; it reads all before. */
uint32_t store_format(void);
/* Copies a snapshot (never links) into `to`, which is made or empty, and checks the copy as store_check() does. 0, 1 or
 * -errno, with a line that says why. */
struct store_restore_ask {
	struct store_check_ask check; /* its arg is that of `copied`, too */
	void (*copied)(void *arg, uint64_t done, uint64_t bytes); /* after each piece; NULL: nobody asks */
};
int store_restore(const char *from, const char *to, const struct store_restore_ask *ask);

static inline bool
store_must_wait(const struct store *s, struct store_wait w)
{
	return w.lsn != 0 && !store_reached(s, w);
}

#endif
