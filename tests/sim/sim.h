/* SPDX-License-Identifier: Apache-2.0
 * The simulation of the store: one world from one seed. sim_store.c runs it, sim_owner.c is what the broker is to the
 * store, sim_work.c does random work, sim_recover.c cuts, starts again and compares with the model, sim_damage.c flips
 * bits. */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "store/format.h"
#include "store/store.h"
#include "tests/sim/disk_sim.h"
#include "tests/sim/model.h"
#include "tests/sim/rnd.h"

enum { SIM_LANES = 8, SIM_BODY_MAX = 300000, SIM_KEYS = 3 };

enum sim_step {
	STEP_PUBLISH, STEP_VOLATILE, STEP_DELIVER, STEP_ACK, STEP_REQUEUE, STEP_PURGE, STEP_ATOMIC, STEP_QUEUE,
	STEP_OBJECT, STEP_READ, STEP_SPILL, STEP_EXPIRE, STEP_TURN, STEP_JOURNAL, STEP_WORKER, STEP_EVENTS, STEP_FLUSH,
	STEP_SYNC, STEP_CAPACITY, STEP_TRANSIENT, STEP_SNAPSHOT, STEPS
};

struct model_entry_ref { /* entries move when others are added */
	struct model_lane *lane;
	uint64_t seq;
};

struct sim {
	uint64_t seed;
	struct rnd r, window_r;
	bool verbose;
	struct model model;
	struct disk *disk;
	struct workers *workers;
	struct store *store;	/* NULL between runs */
	struct lane_share *share; /* owned: of the lanes of every fifth queue */
	struct store_config cfg;
	unsigned weight[STEPS];	/* of each step, in this run */
	uint64_t body_usual, turn_ms;
	uint64_t keep_every;	/* seqs that this divides stay unacknowledged in this run; 0: none */
	uint64_t now_ms, next_id, next_version, next_key;
	uint64_t items;		/* alive */
	unsigned make_fails;	/* in percent; while reading */
	bool recovering, is_closing, damage_expected, has_room;
	bool is_broken;		/* a block cannot be read */
	bool damage_due;	/* the next start has to report some */
	struct store_id id;
	uint32_t oldest;	/* file that was needed at the last start */

	/* What the store said is safe: records with smaller LSN. */
	uint64_t durable, written;	/* positions */
	uint64_t confirmed_durable, confirmed_written; /* highest LSN of waits that were reached */
	struct store_wait *wait;	/* owned; not reached yet */
	uint32_t waits, waits_cap;

	uint64_t published_bytes;
	bool snapshot_runs, snapshot_is_there; /* under way; whole, waits to be looked at */
	uint64_t snapshot_from;	/* LSN: everything up to it has to be in */
	unsigned runs, cuts, recoveries, snapshots, snapshots_seen;
	uint64_t steps, delivered;
	struct store_stats total;	/* summed over the runs */
};

/* Prints seed and text, ends the program with 1. */
NORETURN void sim_fail(const struct sim *s, const char *fmt, ...) PRINTF(2, 3);
#define SIM_CHECK(s, cond, ...)                  \
	do {                                     \
		if (!(cond))                     \
			sim_fail(s, __VA_ARGS__); \
	} while (0)
void sim_say(const struct sim *s, const char *fmt, ...) PRINTF(2, 3);

uint64_t sim_last_lsn(const struct sim *s);

/* Opens it; some have their bounds together. */
struct lane *sim_open_lane(struct sim *s, struct op_lane name, bool durable, struct model_lane *owner);

/* ---- sim_owner.c ---- */
extern const struct store_ops sim_store_ops;
void *sim_item_new(struct sim *s, uint32_t msg);
void sim_item_unref(void *item);
/* Recovery: a message of a lane's memory part, or of its chain; checks all that is known. */
void sim_lane_entry(void *lane, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m);
struct sim *sim_of_lane(const struct model_lane *l);
void sim_set_current(struct sim *s);
void sim_check_lane(struct sim *s, struct model_lane *l);

/* ---- sim_work.c ---- */
void sim_step(struct sim *s);
struct model_lane *sim_new_queue(struct sim *s);
void sim_put_object(struct sim *s, enum object_kind kind, uint64_t id);
uint32_t sim_object_bytes(uint64_t id, uint32_t version, uint8_t *to, uint32_t cap);
void sim_take_positions(struct sim *s);
void sim_turn(struct sim *s);
void sim_ack(struct sim *s, struct model_lane *l, struct model_entry *e, enum ack_reason why);
void sim_flush(struct sim *s);
/* ---- sim_window.c ---- */
void sim_window_new(struct sim *s, uint64_t queue); /* if it is to have one */
void sim_window_close(struct sim *s, uint64_t queue);
/* Keys that the next message brings; where its record stands is said afterwards. */
uint32_t sim_window_keys(struct sim *s, struct window_key key[SIM_KEYS]);
void sim_window_record(struct sim *s, uint64_t lsn);
void sim_window_doubt(struct sim *s, const struct op_dedup *d); /* its record is damaged */
void sim_window_drop(struct sim *s);                            /* the process is gone */
void sim_window_check(struct sim *s); /* after a start, and after the objects were looked at */
void sim_window_drain(struct sim *s);
/* ---- sim_drain.c ---- */
/* Everything out of every lane, in order; then nothing may be left. */
void sim_drain(struct sim *s);
void sim_settle_io(struct sim *s); /* until nothing moves any more */

/* ---- sim_recover.c ---- */
int sim_open(struct sim *s);		/* one start, and if it succeeds the comparison; 0 or -errno */
void sim_start(struct sim *s);		/* opens and verifies, with cuts in between */
bool sim_cut(struct sim *s);		/* ends the run: kill, power cut (true) or stop */
/* Notes in the model where journal files end, as their successors say. */
void sim_find_ends(struct sim *s, uint32_t oldest);
void sim_drop(struct sim *s);		/* the process is gone */

/* ---- sim_damage.c ---- */
void sim_dump_journal(struct sim *s);
void sim_damage(struct sim *s);		/* the node is down: flips a bit below what was durable */

/* ---- sim_snapshot.c ---- */
void sim_snapshot_start(struct sim *s);
void sim_snapshot_look(struct sim *s);
void sim_snapshot_drop(struct sim *s);

#endif
