/* SPDX-License-Identifier: Apache-2.0
 * What a store has to hold, kept in the simplest way: every message and object in arrays, with where in the journal it was
 * published, removed and changed. After a cut the journal ends somewhere; what must be there follows from that end alone.
 *
 * Merged operations get their place when their turn ends. So the model knows of each event that its record stands behind
 * one LSN and not behind another; an end between the two leaves open whether it happened (TRUTH_MAYBE). */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/op.h"
#include "store/store.h"

enum truth { TRUTH_NO, TRUTH_MAYBE, TRUTH_YES };

struct model_when {
	uint64_t exact;	 /* LSN of its record; or 0, and: */
	uint64_t after;	 /* its record stands behind this one, */
	uint32_t turn;	 /* and not behind the last one of this turn */
};
#define MODEL_LONG_AGO ((struct model_when) { .exact = 1 })
#define MODEL_WHO_KNOWS ((struct model_when) { .turn = UINT32_MAX })

struct model_change {
	struct model_when when;
	struct op_state state;
};

enum model_where { MODEL_READY, MODEL_OUT, MODEL_GONE };
enum { MODEL_ALTERNATIVES = 4 };

struct model_entry { /* a message in a lane */
	uint64_t seq;
	uint32_t msg;		/* index into model.msg */
	bool persistent;	/* has a MSG record; else it survives only by luck */
	bool maybe;		/* whether it lives is not known before it is read */
	enum model_where where;
	void *item;		/* owner's reference; NULL: it lies in the chain only */
	uint64_t published;	/* LSN; 0: before the last recovery */
	struct model_when removed; /* where == GONE */
	struct op_state state;
	bool is_doubtful;	/* a record about it was damaged */
	bool is_known;		/* the state; else it is one of the alternatives, until it is read */
	bool recovered;		/* from an earlier run: where it lies now is durable */
	/* At the start of this run. */
	struct op_state alternative[MODEL_ALTERNATIVES];
	uint32_t alternatives;	/* 0: any */
	struct model_change *change; /* owned; in this run */
	uint32_t changes;
};

struct model_lane {
	struct op_lane name;
	bool durable, is_open;
	bool ghosts;		/* what was removed may be back: a record was damaged */
	struct sync_setting sync;
	struct lane *lane;
	struct model_entry *e; /* owned; ascending by seq */
	uint32_t n, cap, low;  /* low: none before is alive */
	uint64_t next_seq, highest; /* highest: given out, known to be on disk */
	uint64_t delivered;	/* highest one that was given out, */
	struct model_when marked; /* and when that was noted */
	uint64_t lost;		/* reported as damaged, not yet found missing */
	uint64_t read_bound;	/* the next one handed over by lane_each() is not below */
	uint64_t chained;	/* the chain's end, as the owner was told */
};

struct model_version {
	uint64_t lsn;	  /* 0: before the last recovery */
	uint32_t version; /* of its state; 0: gone */
};
struct model_object {
	enum object_kind kind;
	uint64_t id;
	bool unknown; /* its record was damaged: anything may be there */
	bool seen;
	struct model_version *v; /* owned, ascending */
	uint32_t n;
};

struct model_key { /* of a window */
	uint64_t seq, at_ms;
	uint64_t lsn; /* of its record; 0: before the last recovery; UINT64_MAX: in the open one */
	bool is_volatile;
	bool is_doubtful; /* a record about it was damaged */
	bool is_lost, was_lost; /* not found at the last start */
};
struct model_window {
	uint64_t queue, low, next; /* low: none before has to be there */
	uint32_t size;
	struct window *w;
	struct model_key *key; /* owned; ascending by seq */
	uint32_t n, cap;
};

struct model_msg { /* what was published: content follows from `id` */
	uint64_t id, body_size, arrived_ms, expires_ms, due_ms;
	uint8_t flags, prio;
};

struct model {
	struct model_msg *msg; /* owned */
	uint32_t msgs, msgs_cap;
	struct model_lane **lane; /* owned */
	uint32_t lanes;
	struct model_window *window; /* owned */
	uint32_t windows;
	struct model_object *object; /* owned */
	uint32_t objects;
	uint64_t *turn_end; /* owned; LSN of the last record of each turn that has ended */
	uint32_t turns, turns_cap;
	uint64_t *end; /* owned; after a cut: where journal files end */
	uint32_t ends;
	uint64_t first_file; /* files below were given up long ago */
};

void model_fini(struct model *m);
/* All of it, but for what the owner has in memory. */
void model_copy(struct model *to, const struct model *from);
struct model_msg *model_new_msg(struct model *m, uint32_t *index);
struct model_lane *model_new_lane(struct model *m, struct op_lane name, bool durable);
struct model_lane *model_find_lane(const struct model *m, struct op_lane name);
struct model_object *model_object(struct model *m, enum object_kind kind, uint64_t id); /* makes it */
void model_object_set(struct model_object *o, uint64_t lsn, uint32_t version);
uint32_t model_object_version(const struct model_object *o); /* the newest; 0: there is none */

void model_end_turn(struct model *m, uint64_t last_lsn);
struct model_when model_now(const struct model *m, uint64_t last_lsn);

/* The lane's message with this seq, dead or alive; NULL: none was ever there. */
struct model_entry *model_find(const struct model_lane *l, uint64_t seq);
struct model_entry *model_add(struct model_lane *l, uint64_t seq, uint32_t msg, bool persistent, uint64_t lsn);
/* One that nobody knew of, between the others. */
struct model_entry *model_insert(struct model_lane *l, uint64_t seq, uint32_t msg);
void model_remove(struct model_entry *e, struct model_when when);
void model_set_state(struct model_entry *e, const struct op_state *s, struct model_when when);
/* The lowest ready one; NULL: none. */
struct model_entry *model_first_ready(struct model_lane *l);
bool model_state_eq(const struct op_state *a, const struct op_state *b);

/* ---- after a cut ---- */

/* Is the record with this LSN below the journal's end? */
bool model_is_in(const struct model *m, uint64_t lsn);
enum truth model_happened(const struct model *m, const struct model_when *w);
/* The lane as it has to be: entries that cannot live are removed, doubts noted, all others ready. */
void model_settle_lane(const struct model *m, struct model_lane *l);
void model_settle_object(const struct model *m, struct model_object *o);
/* A state that was read: false: it cannot be. */
bool model_resolve_state(struct model_entry *e, const struct op_state *s);
/* All events before are history: a new run begins. */
void model_new_run(struct model *m);
/* Messages that lie in files only: at least and at most. */
void model_unread(const struct model_lane *l, uint64_t *least, uint64_t *most);

#endif
