/* SPDX-License-Identifier: Apache-2.0
 * Configure, write and read rights of a user in a vhost: the one function that every operation asks
 * (https://www.rabbitmq.com/docs/access-control says which operation needs what). */
#ifndef BROKER_PERMISSION_H
#define BROKER_PERMISSION_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

struct client;
struct user;
struct vhost;

enum permission_kind { PERM_CONFIGURE, PERM_WRITE, PERM_READ };

/* Patterns are PCRE2, matched anywhere unless anchored, with match limits. ".*" and "" are not even run. NULL, or the
 * refusal for a pattern that does not compile. */
const struct error *permission_set(struct user *u, struct vhost *vh, const char *configure, const char *write,
    const char *read) MUSTUSE;
void permissions_free(struct user *u);

/* May the user open connections in this vhost at all? */
bool permission_vhost(const struct user *u, const struct vhost *vh);

/* NULL, or 403 "access to queue 'q' in vhost '/' refused for user 'u'". `what` is "queue" or "exchange"; the default
 * exchange's name is "amq.default" to patterns. */
const struct error *permission_check(const struct client *c, enum permission_kind kind, const char *what,
    struct span name) MUSTUSE;

#endif
