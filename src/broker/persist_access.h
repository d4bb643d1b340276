/* SPDX-License-Identifier: Apache-2.0
 * Between the store and what operators make: vhosts, accounts, permissions, parameters. For their modules and for
 * persist_link.c. Without a store nothing is done. */
#ifndef BROKER_PERSIST_ACCESS_H
#define BROKER_PERSIST_ACCESS_H

#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "store/store.h"

struct broker;
struct parameter;
struct permission;
struct topic_permission;
struct user;
struct vhost;

/* PUT: as it is now. GONE: it is not there any more. */
void persist_vhost(struct vhost *vh);	/* a deleted one too, until it is empty */
void persist_vhost_gone(struct vhost *vh);
void persist_user(struct user *u);
void persist_user_gone(struct user *u);
void persist_permission(struct permission *p);
void persist_permission_gone(struct permission *p);
void persist_topic_permission(struct topic_permission *p);
void persist_topic_permission_gone(struct topic_permission *p);
void persist_parameter(struct parameter *p);
void persist_parameter_gone(struct parameter *p);

/* At the start: makes an object of what the store has. NULL, or why it cannot: then it is left out. */
typedef const char *persist_link_fn(struct broker *b, uint64_t id, struct span state);
/* All of a kind, the newest first: of two of one name the older was deleted, and it is the record of that which is damaged.
 * What is left out is said in the log and taken out of the store, so that it does not come back by chance. */
void persist_link_kind(struct broker *b, enum object_kind kind, const char *what, persist_link_fn *f);

/* What the store has, in the order vhosts, users, the rest; the other kinds of objects come after. */
void persist_link_vhosts(struct broker *b);
void persist_link_access(struct broker *b);
/* The store lost some: those are put again. */
void persist_access_again(struct broker *b);

#endif
