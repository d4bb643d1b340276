/* SPDX-License-Identifier: Apache-2.0
 * What quorum queues do otherwise than classic ones, as clients know them from RabbitMQ 3.10. There is one node, so what
 * makes them quorum queues there is nothing here; what is left are rules:
 *
 *	declared	durable, with a name, neither exclusive nor auto-delete; deleted without conditions
 *	kept		all their messages, also those that are not persistent
 *	consumers	"exclusive" means nothing; a channel's limit of unacknowledged messages does not hold for them,
 *			and bars new ones
 *	counted		deliveries say how often a message came back; what came back more often than the limit is a
 *			dead letter
 *	returned	to the tail, where no limit would end the turns of a message that nobody can work on. With a
 *			limit, or when its channel is gone, before all others, in the order in which they came back */
#ifndef BROKER_QUORUM_H
#define BROKER_QUORUM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "broker/dead_letter.h"
#include "broker/error.h"
#include "broker/queue.h"
#include "broker/session.h"

struct broker;
struct quorum;

/* The part of a queue that only quorum queues have. */
struct quorum *quorum_new(struct queue *q);
void quorum_free(struct quorum **qp);	/* the queue has neither messages nor deliveries */

/* queue.declare: one that leaves the name to the server; and a new one, when its arguments were found right. */
const struct error *quorum_check_nameless(const struct queue_spec *spec) MUSTUSE;
const struct error *quorum_check_spec(const struct vhost *vh, const struct queue_spec *spec) MUSTUSE;
const struct error *quorum_check_delete(const struct queue *q, bool if_unused, bool if_empty) MUSTUSE;
const struct error *quorum_check_consume(const struct queue *q, const struct session *s) MUSTUSE;
const struct error *quorum_check_get(const struct queue *q) MUSTUSE;

/* SETTING_NONE: none. */
uint64_t quorum_delivery_limit(const struct queue *q);

/* An entry came back, counted already. False: it goes to the returned ones of its strand. True: it is no longer the
 * caller's; it is counted as unacknowledged until it is in its place. */
bool quorum_take_back(struct queue *q, const struct entry *e, enum settle how) MUSTUSE;
/* After some came back: those whose place is the tail go there; where they are many, the rest in the next turns. */
void quorum_returned_done(struct queue *q);
/* A dead letter that may wait for long, until its targets take it: it is one after a restart, too. */
void quorum_mark_dead(struct queue *q, const struct entry *e, enum death_reason why);
/* One that the store had: it comes back if it was out when the node ended. True: as above. */
bool quorum_take_restored(struct queue *q, struct entry *e) MUSTUSE;
bool quorum_run(struct broker *b);	/* for broker.c: the next of them. True: there are more */
uint64_t quorum_purge(struct queue *q);	/* what is on the way to the tail goes; returns how many */
void quorum_forget(struct queue *q);	/* the queue goes, and they with it */

#endif
