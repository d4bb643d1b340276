/* SPDX-License-Identifier: Apache-2.0
 * Between the broker and the store: what of it survives a restart, how it comes back, and what callers have to wait for.
 * broker->store is NULL in tests that need none: then nothing survives and nothing waits. */
#ifndef BROKER_PERSIST_H
#define BROKER_PERSIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/broker.h"
#include "store/store.h"

struct binding;
struct definition;
struct exchange;
struct msg;
struct queue;
struct strand;
struct vhost;

extern const struct store_ops persist_store_ops;	/* for store_new(); its arg: the broker */

/* After store_recover(), before settings are declared and ports opened: vhosts, exchanges, queues with their messages,
 * bindings. Then store_linked(). What cannot be linked is said in the log and left out. */
void persist_link(struct broker *b);

/* Before store_free(): nothing survives and nothing waits from here on. */
void persist_unlink(struct broker *b);

/* "always", "never", or a time up to a minute such as "50ms". 0 or -EINVAL. */
int sync_parse(struct span text, struct sync_setting *out) MUSTUSE;

/* publish.c's: m is about to enter these queues. One record for the durable ones if it is persistent, before they get it. */
void persist_message(struct broker *b, struct msg *m, struct queue *const *queue, uint32_t n, struct store_wait *wait);

/* Durable objects were made, changed or go: PUT, GONE. Nothing for those that are not durable. What operators make:
 * persist_access.h. */
void persist_exchange(struct exchange *x);
void persist_exchange_gone(struct exchange *x);
void persist_queue(struct queue *q);		/* opens its first lane, too */
void persist_queue_again(struct queue *q);	/* what is kept of it changed */
void persist_queue_lanes(struct queue *q);	/* the store has the queue: opens the lanes that it has, too */
void persist_strand_lane(struct strand *s);	/* if its queue is durable */
void persist_queue_gone(struct queue *q);	/* closes all of them */
void persist_binding(struct binding *b);
void persist_binding_gone(struct binding *b);

/* Any object: its full state, whose memory is given up; gone. Nothing where nothing survives. */
void persist_object(struct broker *b, enum object_kind kind, uint64_t id, struct definition *d);
void persist_object_gone(struct broker *b, enum object_kind kind, uint64_t id);

/* What an answer has to wait for: lsn 0 nothing. */
struct store_wait persist_objects_wait(const struct broker *b);	/* declare, bind, delete */
struct store_wait persist_all_wait(struct broker *b);			/* purge */
bool persist_must_wait(const struct broker *b, struct store_wait w);

/* Publishers of persistent messages have to wait: a static text for connection.blocked and the log; NULL: they need not. */
const char *persist_hold(const struct broker *b);

#endif
