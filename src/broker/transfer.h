/* SPDX-License-Identifier: Apache-2.0
 * Jobs that operators start: messages of a queue moved to another one or to an exchange, and dead letters sent back to where
 * they came from. They go on in slices of broker_run(), at a rate if one was asked for. For each message one record of the
 * store has it in its new queues and gone from the old one: whenever the node is killed, it is in one of the two, once (in
 * none, if the new one is not durable). The job itself does not survive a restart.
 *
 * The table of jobs is bounded; those that have ended are kept for an hour, or until their place is wanted. */
#ifndef BROKER_TRANSFER_H
#define BROKER_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/peek.h"

struct broker;
struct death_history;
struct msg;
struct props;
struct queue;
struct user;
struct vhost;

enum {
	TRANSFERS_MAX = 100,	     /* in the table */
	TRANSFERS_AT_ONCE = 16,	     /* that have not ended */
	TRANSFER_LETTERS_MAX = 10000, /* chosen ones of a replay */
	TRANSFER_RATE_MAX = 1000000,
	TRANSFER_REASONS = 8, /* different ones that are told; others are only counted */
	TRANSFER_REASON_SIZE = 160
};

enum transfer_kind { TRANSFER_MOVE, TRANSFER_REPLAY };
enum transfer_state { TRANSFER_RUNNING, TRANSFER_DONE, TRANSFER_CANCELLED, TRANSFER_FAILED };

struct name_copy {
	char *p; /* owned; NUL added. NULL: not set */
	size_t n;
};

/* A letter that was chosen. */
struct letter_id {
	uint64_t seq;
	uint8_t priority;
};

struct transfer {
	TAILQ_ENTRY(transfer) link;
	struct broker *broker; /* borrowed */
	uint64_t id;
	enum transfer_kind kind;
	enum transfer_state state;
	struct name_copy user, vhost, queue;
	uint64_t vhost_id, queue_id, user_id;
	struct name_copy to_queue, exchange, key; /* a move's; either the first or the others */
	uint64_t to_queue_id;
	struct letter_id *chosen; /* owned, in the order of the queue; NULL: all */
	uint32_t chosen_count, chosen_at;
	uint64_t most;		  /* messages to be moved; UINT64_MAX: all */
	uint64_t total;		  /* about so many, when it began */
	uint64_t done, failed;	  /* failed: they stay */
	uint64_t rate;		  /* messages a second; 0: as fast as it goes */
	uint64_t started_ms, ended_ms;
	char why[TRANSFER_REASON_SIZE]; /* FAILED */
	const char *waits; /* static; what it waits for, while it runs: a short machine. NULL: it goes on */
	struct transfer_reason {
		char text[TRANSFER_REASON_SIZE];
		uint64_t count;
	} reason[TRANSFER_REASONS];
	unsigned reasons;
	/* transfer.c's */
	struct peek peek;
	unsigned batch;	/* so many are taken at once */
	uint64_t credit_us, credit_ms;
	uint64_t due_ms; /* there has to be a turn for it then; 0: it goes on at once */
	bool is_gated;	 /* and nothing is done before */
	uint64_t mark_ms, mark_done, last_rate;
	uint64_t epoch; /* of permissions, when they were looked at */
};

/* What is wanted; the texts are copied. Rights to what is named here were checked by transfer_start. */
struct transfer_spec {
	enum transfer_kind kind;
	struct queue *queue;
	const struct user *user;
	struct queue *to_queue;	  /* NULL: to the exchange; of a replay: neither */
	struct span exchange, key;
	struct letter_id *chosen; /* taken over; NULL: all */
	uint32_t chosen_count;
	uint64_t most, rate;
};

/* Read on the queue; a move: write on the destination (an exchange's topic permissions, too), which has to be there: 403, 404.
 * 406 when the table is full. */
const struct error *transfer_start(const struct transfer_spec *spec, struct transfer **out) MUSTUSE;
struct transfer *transfer_find(const struct broker *b, uint64_t id);
void transfer_cancel(struct transfer *t);	/* one that has ended: nothing */
uint64_t transfer_rate(const struct transfer *t);	/* messages a second, of late */

/* All of them, the latest first. NULL: no more. */
struct transfer *transfer_next(const struct broker *b, const struct transfer *after);

/* For broker.c. True: there is more to do at once. */
bool transfers_run(struct broker *b);
/* They go, whatever their state; before the store does. */
void transfers_stop(struct broker *b);

/* transfer_send.c: one message, seen by peek.h. NULL: it was sent, or TRANSFER_GONE: it is not in the queue any more; else why
 * it stays. *work: what it cost, in copied bytes. u: who does it, borrowed. */
extern const char TRANSFER_GONE[];
const char *transfer_send(struct transfer *t, struct queue *q, struct user *u, const struct entry *e, uint64_t *work);

/* transfer_restore.c: the letter as it was published to that exchange with that key, without what its deaths wrote into its
 * headers, with the CC and the expiration that they took away. NULL: no memory. Times are the caller's. */
struct msg *transfer_restore(struct msg *m, const struct props *pr, const struct death_history *seen, struct span exchange,
    struct span key);

#endif
