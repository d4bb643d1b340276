/* SPDX-License-Identifier: Apache-2.0
 * Accounts and the one function by which anybody logs in. */
#ifndef BROKER_USER_H
#define BROKER_USER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/mac.h"
#include "broker/map.h"

struct broker;
struct permission;
struct vhost;

enum user_tag {	/* RabbitMQ's */
	TAG_ADMINISTRATOR = 1, TAG_MONITORING = 2, TAG_POLICYMAKER = 4, TAG_MANAGEMENT = 8, TAG_IMPERSONATOR = 16
};

struct user {
	char *name;			/* owned */
	uint8_t salt[16], hash[MAC_PASSWORD_SIZE];
	bool has_password;		/* nobody logs in without one */
	bool has_seen;
	uint8_t seen[MAC_SIZE];		/* of name and password of the last login that was right: see user_login */
	uint32_t tags;			/* set of TAG_* */
	bool loopback_only;
	struct permission *permissions;	/* owned; by vhost */
	UT_hash_handle hh;
};

/* Makes the default accounts that INTERFACES names, from the settings. */
void users_default(struct broker *b);
/* Every right in this vhost for all administrators who have none there: of vhosts that the settings make, which nobody
 * could open otherwise. */
void users_admit_administrators(struct broker *b, struct vhost *vh);
/* Adds a user, or gives one that is there another password, tags and loopback_only. */
struct user *user_add(struct broker *b, const char *name, const char *password, uint32_t tags, bool loopback_only);
struct user *user_find(const struct broker *b, struct span name);
void users_free(struct broker *b);

/* The user, or NULL with the reason for the log in *why (static text). Costs the same for unknown names as for wrong
 * passwords. `loopback`: the real peer address is on loopback. Cheap when repeated (a cache keyed per process). */
struct user *user_login(struct broker *b, struct span name, struct span password, bool loopback, const char **why);

#endif
