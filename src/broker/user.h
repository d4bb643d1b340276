/* SPDX-License-Identifier: Apache-2.0
 * Accounts. They are kept by the store; where it has none, default ones are made (see users_begin). Logins: login.h. */
#ifndef BROKER_USER_H
#define BROKER_USER_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "base/mac.h"
#include "base/password.h"
#include "broker/error.h"
#include "broker/in_settings.h"
#include "broker/limits.h"
#include "broker/map.h"
#include "broker/series.h"
#include "broker/tags.h"

struct broker;
struct permission;
struct topic_permission;
struct vhost;

enum user_tag {	/* RabbitMQ's; others are kept, and open nothing */
	TAG_ADMINISTRATOR = 1, TAG_MONITORING = 2, TAG_POLICYMAKER = 4, TAG_MANAGEMENT = 8, TAG_IMPERSONATOR = 16
};

enum { USERS_MAX = 100000 };

struct user {
	struct broker *broker;		/* borrowed */
	char *name;			/* owned */
	uint64_t id;
	struct password password;
	uint32_t password_changes;	/* since the node began, or it was made */
	bool has_seen;
	uint8_t seen[MAC_SIZE];		/* of name and password of the last login that was right: see login.c */
	uint32_t tags;			/* set of TAG_* */
	struct tags tag_list;		/* all of them, as given */
	bool loopback_only;
	bool is_default;		/* made by users_begin, and not changed since */
	bool of_settings;		/* a file of settings has it, and nobody else has set it since: it goes when it is there
					 * no more */
	struct in_settings in_settings;
	bool is_deleted;		/* cannot be found any more; lives while refs > 0 */
	uint32_t refs;			/* of clients and of others that keep a pointer */
	uint32_t connections, channels;	/* open ones */
	struct limit limit[USER_LIMITS];
	struct series series;		/* until it is deleted */
	struct permission *permissions;	/* owned, uthash by vhost (permission.h) */
	struct topic_permission *topic_permissions;	/* owned, a list (topic_permission.h) */
	UT_hash_handle hh;		/* in broker->users, unless deleted */
	TAILQ_ENTRY(user) gone_link;	/* broker->gone_users */
};

/* All accounts: for (u = b->users; u != NULL; u = u->hh.next), in the order in which they were made. */

struct user_spec {
	struct span name;
	const struct password *password; /* NULL: nobody logs in with one. password_make() or user_hash() make it */
	const struct span *tag;
	uint32_t tag_count;
	bool loopback_only, of_settings;
};
/* Makes a user, or gives one that is there another password, tags and loopback_only; its permissions and limits stay.
 * NULL, or 406 for a name or tag that cannot be kept. *created may be NULL. */
const struct error *user_set(struct broker *b, const struct user_spec *spec, bool *created) MUSTUSE;
/* Does the user, there or not, log in from loopback only once it has that password (NULL: none)? Such accounts are admin and
 * guest while everybody knows their password, which is their name; the settings' default_user if they say so. */
bool user_stays_local(const struct broker *b, struct span name, const struct password *next) MUSTUSE;
struct user *user_find(const struct broker *b, struct span name);
/* It has no rights any more, and its connections are closed: 320 "user 'x' is deleted". What is left of its permissions
 * goes in the turns to come, after a restart as well. */
void user_clear(struct user *u);
/* For broker_run(): goes on with those that were deleted. True: there is more to do. */
bool users_run(struct broker *b);

/* Hashes a clear password (at most PASSWORD_LEN_MAX bytes) in the kind that the node is set to, on a worker if that takes
 * long. done is called once, maybe before this returns. */
typedef void user_hash_fn(void *arg, const struct password *p);
void user_hash(struct broker *b, struct span text, user_hash_fn *done, void *arg);

/* Who keeps a pointer over turns counts itself: a deleted user lives on, without rights. */
struct user *user_ref(struct user *u);
void user_unref(struct user **up);

/* The default accounts that INTERFACES names, from the settings: default_user, or, where the settings have no users, admin
 * and guest, from loopback only; new ones with every right in the vhosts that are there. Nobody else gets any. */
void users_begin(struct broker *b);
/* The store had accounts: default ones follow the settings, unless they were changed; new ones are made if there is none,
 * or in place of those that went. */
void users_go_on(struct broker *b);
/* Somebody brought accounts: admin and guest, whose passwords everybody knows, go unless they were changed. Does nothing
 * where nobody else is there, or where default_user is set. `who` is for the log. */
void users_drop_defaults(struct broker *b, const char *who);
/* Every right in this vhost for all administrators who have none there, but those whose rights the settings list: of
 * vhosts that the settings make, which nobody could open otherwise. */
void users_admit_administrators(struct broker *b, struct vhost *vh);
void users_free(struct broker *b);

/* For persist_access.c: an account without anything; what is to be said of it (nothing is written); one that was never there. */
struct user *user_make(struct broker *b, struct span name, uint64_t id);
const struct error *user_fill(struct user *u, const struct user_spec *spec) MUSTUSE;
void user_drop(struct user *u);

#endif
