/* SPDX-License-Identifier: Apache-2.0
 * Configure, write and read rights of a user in a vhost: the one function that every operation asks
 * (https://www.rabbitmq.com/docs/access-control says which operation needs what). Kept by the store. */
#ifndef BROKER_PERMISSION_H
#define BROKER_PERMISSION_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/map.h"

struct client;
struct pattern;
struct user;
struct vhost;

enum permission_kind { PERM_CONFIGURE, PERM_WRITE, PERM_READ, PERM_KINDS };

struct permission {
	struct user *user;		/* borrowed, owns us */
	struct vhost *vhost;		/* borrowed: we go with it */
	uint64_t id;
	char *text[PERM_KINDS];		/* owned, as given */
	struct pattern *pattern[PERM_KINDS]; /* owned; NULL: matches no name */
	UT_hash_handle hh;		/* in user->permissions, by vhost */
	LIST_ENTRY(permission) vhost_link;	/* vhost->permissions */
};

/* All of a user: for (p = u->permissions; p != NULL; p = p->hh.next). Of a vhost: vhost->permissions. Those in a vhost that
 * is deleted mean nothing any more, but may be there for some turns. */

/* Patterns are PCRE2, matched anywhere unless anchored, with match limits. NULL, or the refusal for a pattern that does not
 * compile. In effect at once. */
const struct error *permission_set(struct user *u, struct vhost *vh, const char *configure, const char *write,
    const char *read) MUSTUSE;
/* A deleted user has none. */
struct permission *permission_find(const struct user *u, const struct vhost *vh);
void permission_clear(struct permission *p);
/* Some of a vhost: *left goes down by as many. True: there are more. */
bool permissions_drop_some(struct vhost *vh, unsigned *left);
void permissions_free(struct user *u);
/* From what the store had. */
const struct error *permission_restore(struct user *u, struct vhost *vh, const char *const text[PERM_KINDS],
    uint64_t id) MUSTUSE;

/* May the user open connections in this vhost at all? */
bool permission_vhost(const struct user *u, const struct vhost *vh);

/* NULL, or 403 "access to queue 'q' in vhost '/' refused for user 'u'". `what` is "queue" or "exchange"; the default
 * exchange's name is "amq.default" to patterns. */
const struct error *permission_check(const struct client *c, enum permission_kind kind, const char *what,
    struct span name) MUSTUSE;
/* The same for somebody who is no client: HTTP. */
const struct error *permission_check_user(const struct user *u, const struct vhost *vh, enum permission_kind kind,
    const char *what, struct span name) MUSTUSE;

#endif
