/* SPDX-License-Identifier: Apache-2.0
 * A virtual host: its exchanges and queues by name, what operators say about it, and how it ends. */
#ifndef BROKER_VHOST_H
#define BROKER_VHOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/buckets.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/in_settings.h"
#include "broker/limits.h"
#include "broker/map.h"
#include "broker/policy.h"
#include "broker/series.h"
#include "broker/stats.h"
#include "broker/tags.h"

struct alternate;
struct broker;
struct exchange;
struct parameter;
struct permission;
struct topic_permission;
struct queue;

enum { VHOSTS_MAX = 10000 };

struct vhost {
	struct broker *broker;			/* borrowed, owns us */
	char *name;				/* owned; no NUL inside */
	uint64_t id;
	uint64_t since;				/* what names it in the store belongs to it from this id on; what is older was
						 * in an earlier one of its name */
	struct exchange *exchanges;		/* owned, uthash by name */
	TAILQ_HEAD(, queue) queues;		/* owned, in the order in which they were declared */
	struct buckets queues_by_name, queues_by_id;	/* their `count` is how many there are */
	struct exchange *default_exchange;	/* borrowed from exchanges: name "" */
	struct alternate *alternates;		/* owned, uthash by name: who names it as its alternate (alternate.c) */
	struct policy *policies[POLICY_KINDS];	/* owned, uthash by name (policy.c) */
	struct policy_list policy_order[POLICY_KINDS];
	/* policy_apply.c: how far what is in it has learnt of changes of its policies. */
	struct policy_walk {
		bool is_on;			/* in broker->policy_walks; else all of it has */
		bool has_begun;			/* this round */
		uint64_t since;			/* the first change that not all have learnt of */
		uint64_t again;			/* the first one since this round has begun; 0: none */
		struct queue *queue;		/* borrowed: the next; NULL: all know */
		struct exchange *exchange;
		TAILQ_ENTRY(vhost) link;
	} policy_walk;
	struct exchange *unbound;		/* auto-delete exchanges whose last binding went, on their way out */
	struct message_stats stats;		/* of all its channels so far */
	struct queue_depth depth;
	struct traffic_stats traffic;		/* of its clients, as of client_count_traffic() of each */
	struct series series;
	uint64_t epoch;				/* rises when an exchange is deleted: pointers kept to one are void */
	char *description;			/* owned; never NULL */
	struct tags tags;
	char *default_queue_type;		/* owned: "quorum", ...; NULL: nobody said */
	bool tracing;
	struct limit limit[VHOST_LIMITS];
	struct in_settings in_settings;		/* rights: unused */
	uint32_t connections;			/* open ones */
	LIST_HEAD(, client) clients, told;	/* borrowed: these; told: that they are to be closed, as it is deleted */
	LIST_HEAD(, dead_letters) letters;	/* borrowed: of its queues, those with dead letters, deleted ones too */
	LIST_HEAD(, permission) permissions;	/* borrowed: of all users in it */
	LIST_HEAD(, topic_permission) topic_permissions;	/* the same */
	struct parameter *parameters;		/* owned, uthash (parameter.h) */
	char *gone_by;				/* owned: the user who deleted it; NULL: nobody, or before a restart */
	bool is_deleted;			/* on broker->gone_vhosts: what is in it goes, turn by turn */
	UT_hash_handle hh;			/* in broker->vhosts, unless deleted */
	TAILQ_ENTRY(vhost) gone_link;
};

/* All: for (vh = b->vhosts; vh != NULL; vh = vh->hh.next). */

/* With the predeclared exchanges: "", amq.direct, amq.fanout, amq.topic, amq.headers, amq.match,
 * amq.rabbitmq.trace. NULL: name taken, empty or over 255 bytes. */
struct vhost *vhost_add(struct broker *b, const char *name);
struct vhost *vhost_find(const struct broker *b, struct span name);
/* The broker's own, made when it is wanted: its name is empty, which no other's can be, so nobody finds it; it is in no list
 * and has no limits, and there are no events of what is in it. Its queues do not survive a restart, durable ones neither. */
struct vhost *vhost_own(struct broker *b);
static inline bool
vhost_is_own(const struct vhost *vh)
{
	return vh->name[0] == '\0';
}
void vhost_empty_own(struct broker *b); /* for persist_link.c: queues that a restart left there go */

/* What operators may say; members that are not given (p NULL, tag NULL, tracing < 0) stay as they are. */
struct vhost_spec {
	struct span description, default_queue_type;
	const struct span *tag;
	uint32_t tag_count;
	int tracing;
};
/* Makes a vhost, or changes one. NULL, or 406: a name that cannot be kept, an unknown queue type. */
const struct error *vhost_set(struct broker *b, struct span name, const struct vhost_spec *spec, struct vhost **out,
    bool *created) MUSTUSE;
/* It is gone and its name free at once; its connections are closed (320 "vhost 'x' is deleted"), its permissions and
 * parameters go, its queues and exchanges follow in the turns to come. After a restart the rest of them goes. */
void vhost_clear(struct vhost *vh);

/* For broker.c: goes on with those that were deleted. True: there is more to do. */
bool vhosts_run(struct broker *b);
void vhosts_free(struct broker *b);		/* with their exchanges and what queues are left */

/* For persist_access.c. What is said of it, without writing it; one that was never there. */
const struct error *vhost_fill(struct vhost *vh, const struct vhost_spec *spec) MUSTUSE;
void vhost_drop(struct vhost *vh);
/* From what the store had. NULL: there is one of this name. */
struct vhost *vhost_restore(struct broker *b, const char *name, uint64_t id);
struct vhost *vhost_restore_gone(struct broker *b, const char *name, uint64_t id);
/* The one that an object of this id belongs to, which may be deleted; NULL: none. */
struct vhost *vhost_of_object(const struct broker *b, struct span name, uint64_t id);

#endif
