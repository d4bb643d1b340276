/* SPDX-License-Identifier: Apache-2.0
 * The broker: all vhosts, users and clients of a node, and the work that a turn of the loop owes them. A
 * deterministic core: time and input come in as arguments, effects leave through session_ops.
 *
 * Re-entrancy: a call into the broker never calls out except session_ops.deliver (append to output) and msg_unref.
 * All else that follows from it is put on a list that broker_run() works off: so no list changes under its walker. */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/histogram.h"
#include "base/log.h"
#include "base/wheel.h"
#include "broker/memory.h"
#include "broker/notice.h"
#include "broker/series.h"
#include "broker/stats.h"
#include "broker/walk.h"
#include "broker/tap.h"

struct config;
struct vhost;
struct user;
struct client;
struct parameter;
struct workers;
struct queue;
struct consumer;
struct entry_block;
struct store;
struct strand;
struct lane_place;
struct dedups;
struct delay;
struct delay_garbage;
struct drain;
struct history;
struct transfers;

TAILQ_HEAD(queue_list, queue);
TAILQ_HEAD(chained_list, strand);
TAILQ_HEAD(consumer_list, consumer);
TAILQ_HEAD(client_list, client);
TAILQ_HEAD(returning_list, returning);
TAILQ_HEAD(waking_list, session);
TAILQ_HEAD(quorum_list, quorum);
TAILQ_HEAD(delay_work, delay);
TAILQ_HEAD(dead_list, dead_letters);
TAILQ_HEAD(vhost_list, vhost);
TAILQ_HEAD(user_list, user);
TAILQ_HEAD(policy_walk_list, vhost);

struct broker {
	const struct config *cfg;	/* borrowed, outlives the broker */
	struct wheel *wheel;		/* borrowed: the loop's */
	uint64_t now_ms;		/* written by the node once a turn */
	uint32_t tracing;		/* vhosts that are traced, and the log, if messages are followed there (trace.h) */
	uint32_t watched;		/* the same, and taps on exchanges (tap.h): all that a publish has to ask for */
	uint64_t next_id;		/* of queues, exchanges, clients: rising, never reused */
	uint64_t permission_epoch;	/* rises when anybody's rights change: remembered answers are void */
	struct vhost *vhosts;		/* owned, uthash by name */
	struct vhost_list gone_vhosts;	/* owned: deleted, not empty yet */
	struct vhost *own;		/* owned: vhost_own(); NULL: nobody asked for it */
	struct user *users;		/* owned, uthash by name; deleted ones live while others keep them */
	struct user_list gone_users;	/* of deleted ones, those that have rights left: a reference each */
	struct parameter *parameters;	/* owned: global ones, uthash */
	uint32_t settings_read;		/* how often the settings were applied: in_settings.h */
	const char *settings_file;	/* borrowed: their name, for the log; NULL: there is none */
	struct workers *hashers;	/* borrowed: hash passwords; NULL: at once */
	uint32_t logins_waiting;	/* for them */
	struct client_list clients;	/* borrowed: amqp/ owns them */
	struct client_list forced;	/* of them, those to be closed: client_force_close() */
	struct queue_list runnable;	/* queues with ready messages and a consumer that may take one */
	struct consumer_list cancelled;	/* consumers whose queue is gone, and is to forget them; their clients are to be told */
	struct returning_list returning; /* deliveries of sessions that ended, on their way back to their queues */
	struct waking_list waking;	/* sessions whose limit has room for consumers that wait */
	struct quorum_list moving;	/* quorum queues with messages on their way to the tail */
	uint32_t returned;		/* how many came back that way since the last broker_run() */
	struct queue_list untidy;	/* queues whose head may have expired, or that hold more than they may */
	struct dead_list dead;		/* queues that have dead letters to send */
	struct dead_list dead_waiting;	/* queues whose first one was not taken, or not now: tried again later */
	uint64_t letter_bytes, kept_bytes;	/* of those that stats.dead_letters and dead_letters_kept count, in memory */
	uint64_t letters_eased;		/* rises when some queue that made more than can be sent has few again */
	uint32_t letter_lists;		/* letter_target.c's */
	uint64_t firsts;		/* read for queue_fetch_first() in the second that began at firsts_ms */
	uint64_t firsts_ms;
	bool letters_late;		/* what was published went to such a queue, or is traced (notice_pace()): who did it clears it */
	uint32_t refusing;		/* queues that refuse what comes when they are full */
	uint32_t ended;			/* steps of ends of sessions and clients since then, see BROKER_END_MAX */
	struct queue_list deleted;	/* queues that are gone and nobody waits for: freed by broker_reap() */
	struct delay *delays;		/* uthash by exchange id: what waits in x-delayed-message exchanges, which own it */
	struct delay_work delay_work;	/* of them, those that have something to do */
	struct delay_garbage *delay_garbage;	/* owned: messages of deleted ones, freed in slices */
	struct entry_block *garbage;	/* owned: blocks of purged entries, freed in slices */
	uint64_t work;			/* entries, matches and the like gone through so far: who hands in requests one after
					 * the other looks at the clock when it has risen by some hundreds */
	struct store *store;		/* borrowed; NULL: nothing survives and nothing waits (persist.h) */
	uint64_t loads;			/* rises when messages came back from disk: who got GET_LATER asks again */
	struct chained_list chained;	/* parts of queues whose next messages lie on disk only */
	struct lane_place *place;	/* owned: durable queues of the message that is being published (persist.c) */
	uint32_t places;		/* there is room for so many */
	struct queue **choice;		/* owned: of its queues those that do not refuse it (publish.c) */
	uint32_t choices;		/* there is room for so many */
	struct dedups *dedup;		/* owned; NULL: no queue and no exchange deduplicates (dedup.h) */
	struct transfers *transfers;	/* owned; NULL: there was none (transfer.h) */
	bool disk_low;			/* written by the node: free disk space is under disk.min_free */
	uint64_t retention_ms;		/* store.retention_hours; 0: for ever */
	struct queue_list queues;	/* borrowed: all queues of all vhosts */
	struct spill_walk {		/* memory pressure: where the search for long queues stands (pressure.c) */
		struct queue *next;	/* borrowed: in queues; NULL: the first */
		uint64_t least, best, pause_ms;
		bool transient, did;
	} spill;
	uint64_t policy_changes;	/* so far */
	struct policy_walk_list policy_walks;	/* borrowed: vhosts where not all have learnt of them (policy_apply.c) */
	struct walk_list walks;		/* borrowed: lists that are gone through at this moment */
	struct series_list series;	/* what is sampled, all of it: borrowed */
	struct series node;		/* of stats */
	struct {			/* who watches exchanges and queues (tap.c) */
		struct tap_list all;	/* borrowed */
		uint32_t queues;	/* of them, those on queues */
		struct tap_stats stats;
	} tap;
	struct history *history;	/* owned; NULL: nothing is sampled (history.h) */
	struct exchange *events;	/* borrowed: amq.rabbitmq.event of the default vhost; NULL: that is gone (event.h) */
	const struct log_who *actor;	/* borrowed: for whom something is done at this moment; NULL: nobody, it is the broker's own doing */
	bool told_memory, told_disk;	/* alarms, as events have them */
	bool is_followed;		/* trace_follow() */
	bool is_silent;			/* what is made or ends now is no event */
	struct notices notices;		/* what the broker has to say (notice.h) */
	struct message_stats no_stats;	/* what belongs to no vhost is counted here, and nobody looks */
	struct queue_depth no_depth;
	struct memory memory;
	struct drain *drain;		/* owned; NULL: publishers are let in (drain.h) */
	uint64_t drains;		/* times that it began */
	struct broker_stats stats;
	struct delivery_stats quorum_stats;	/* what of them is of quorum queues */
	struct histogram sizes;		/* of published messages, by histogram_sizes; not those of the first place */
	struct histogram confirm_waits;	/* by histogram_us: how long those waited that stats.confirm_waited counts */
	struct back_pressure pressure[PRESSURES];
	uint64_t exchanges_uncounted;	/* publishes of channels to more exchanges than they count (session.h) */
	bool closing;			/* it stops: nothing new is accepted */
};

/* With vhost "/", or the default_vhost of the settings, and the default accounts unless the settings name one: those are
 * users_begin's to make. */
struct broker *broker_new(const struct config *cfg, struct wheel *wheel, uint64_t now_ms);
void broker_free(struct broker **bp);

/* A client that ends may have a hundred thousand queues of its own and more consumers. They go in steps: so many between
 * two calls of broker_run(). One consumer is a step, a queue END_QUEUE. */
enum { BROKER_END_MAX = 2048, BROKER_END_QUEUE = 4 };

/* Works off what became due: deliveries that come back, expired messages, dead letters, runnable queues, cancellations, garbage; each bounded, in all about a millisecond.
 * True: there is more, do not wait for events. */
bool broker_run(struct broker *b);

/* Frees what was unlinked; at the end of a turn, when nobody holds pointers. */
void broker_reap(struct broker *b);

#endif
