/* SPDX-License-Identifier: Apache-2.0
 * Between the store and what operators make: vhosts, accounts, permissions, parameters. For their modules and for
 * persist_link.c. Without a store nothing is done. */
#ifndef BROKER_PERSIST_ACCESS_H
#define BROKER_PERSIST_ACCESS_H

#include "base/attr.h"
#include "base/bytes.h"

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

/* At the start: what the store has, in the order vhosts, users, the rest; the other kinds of objects come after. */
void persist_link_vhosts(struct broker *b);
void persist_link_access(struct broker *b);
/* The store lost some: those are put again. */
void persist_access_again(struct broker *b);

#endif
