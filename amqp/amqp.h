/* SPDX-License-Identifier: Apache-2.0
 * The AMQP 0-9-1 endpoint: accepted sockets in, channels and their work. What the node calls. */
#ifndef AMQP_AMQP_H
#define AMQP_AMQP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "store/store.h"

struct arrival;
struct broker;
struct channel;
struct config;
struct confirm_run;
struct connection;
struct listener;
struct loop;
struct reply_to;

LIST_HEAD(connection_list, connection);
TAILQ_HEAD(confirming_list, channel);
TAILQ_HEAD(confirm_run_list, confirm_run);
TAILQ_HEAD(parked_list, channel);
TAILQ_HEAD(ending_list, channel);

/* What a parked channel waits for (park.h). */
enum park_reason {
	PARK_MEMORY,	/* the memory alarm, or the end of maintenance, at a publish */
	PARK_STORE,	/* the disk is full or far behind, at a persistent message */
	PARK_LAG,	/* a queue that it publishes to has too much in memory */
	PARK_LETTERS,	/* too many dead letters of a queue that it publishes to wait for their turn */
	PARK_WRITTEN,	/* its answer is held back until what it says is written, */
	PARK_DURABLE,	/* or durable */
	PARK_LOAD,	/* messages are being read from disk for its basic.get */
	PARK_DUE,	/* nothing any more, but its frames had no place in the turn yet */
	PARK_REASONS
};

struct amqp {
	struct loop *loop;			/* borrowed */
	struct broker *broker;			/* borrowed */
	const struct config *cfg;		/* borrowed */
	const char *version;			/* of Hermes */
	struct connection_list connections;	/* owned */
	struct connection_list dead;		/* freed by amqp_reap */
	struct channel *dead_channels;		/* the same; chained by dead_next */
	struct ending_list ending;		/* channels whose sessions end in the turns to come */
	struct connection_list leaving;		/* connections whose exclusive queues go, after that */
	bool is_replaying;			/* frames of a parked channel are handled: none can be shown again */
	struct confirming_list confirming;	/* channels with confirms to send this turn */
	struct confirm_run_list confirm_runs[2];	/* owned: wait for [false] the written, [true] the durable position */
	struct confirm_run_list spare_runs;	/* owned */
	unsigned spare_run_count;
	uint64_t turn;				/* calls of amqp_run() so far */
	struct parked_list parked[PARK_REASONS];	/* in order of parking */
	uint64_t lags_ended;			/* of the store, when those who wait for one were looked at last */
	enum store_hold hold;			/* why persistent messages are not taken, as of this turn */
	const char *hold_text;			/* what clients are told of it; NULL: nothing */
	uint32_t connection_count;
	uint64_t content_in_flight;		/* bytes of content not complete yet, all connections */
	struct reply_to *reply_to;		/* borrowed: hash of those who take direct replies, by id (reply_to.c) */
	uint64_t reply_number;			/* messages with an address for direct replies so far */
	bool hard_seen;				/* parked channels were looked at for the hard memory limit */
	uint64_t alarm_seen;			/* and put in order for this memory alarm or maintenance; 0: not */
	bool told_blocked;			/* some connection was told connection.blocked and not yet the end of it */
	bool stopping;
};

struct amqp *amqp_new(struct loop *l, struct broker *b, const struct config *cfg, const char *version);
/* A socket that was accepted by ls (NULL: nobody counts it); what the arrival owns is amqp's. */
void amqp_arrive(struct amqp *a, const struct arrival *from, struct listener *ls);

/* After broker_run: sends confirms, resumes parked channels that may go on. True: there is more. */
bool amqp_run(struct amqp *a);
void amqp_reap(struct amqp *a);

/* Stop: connection.close 320 to every client, nothing new is taken. Done when amqp_idle(). */
void amqp_stop(struct amqp *a, const char *reason);
bool amqp_idle(const struct amqp *a);
void amqp_free(struct amqp **ap);		/* closes what is left */

#endif
