/* SPDX-License-Identifier: Apache-2.0
 * A virtual host: its exchanges and queues by name. */
#ifndef BROKER_VHOST_H
#define BROKER_VHOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/buckets.h"
#include "base/bytes.h"
#include "broker/map.h"

struct alternate;
struct broker;
struct exchange;
struct queue;

struct vhost {
	struct broker *broker;			/* borrowed, owns us */
	char *name;				/* owned; no NUL inside */
	uint64_t id;
	struct exchange *exchanges;		/* owned, uthash by name */
	TAILQ_HEAD(, queue) queues;		/* owned, in the order in which they were declared */
	struct buckets queues_by_name, queues_by_id;	/* their `count` is how many there are */
	struct exchange *default_exchange;	/* borrowed from exchanges: name "" */
	struct alternate *alternates;		/* owned, uthash by name: who names it as its alternate (alternate.c) */
	struct exchange *unbound;		/* auto-delete exchanges whose last binding went, on their way out */
	uint64_t epoch;				/* rises when an exchange is deleted: pointers kept to one are void */
	UT_hash_handle hh;
};

/* With the predeclared exchanges: "", amq.direct, amq.fanout, amq.topic, amq.headers, amq.match,
 * amq.rabbitmq.trace. NULL: name taken, empty or over 255 bytes. */
struct vhost *vhost_add(struct broker *b, const char *name);
struct vhost *vhost_restore(struct broker *b, const char *name, uint64_t id); /* from what the store had */
struct vhost *vhost_find(const struct broker *b, struct span name);
void vhosts_free(struct broker *b);		/* with their exchanges and what queues are left */

#endif
