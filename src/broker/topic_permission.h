/* SPDX-License-Identifier: Apache-2.0
 * Topic permissions: which routing keys a user may publish to a topic exchange with (write), and bind from it with (read).
 * Who has none for an exchange may use all. {username} and {vhost} in a pattern stand for the names, taken literally;
 * {client_id} stays as it is, for an AMQP client has none. Kept by the store. */
#ifndef BROKER_TOPIC_PERMISSION_H
#define BROKER_TOPIC_PERMISSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/user.h"

struct client;
struct exchange;
struct pattern;
struct user;
struct vhost;

enum topic_right { TOPIC_WRITE, TOPIC_READ, TOPIC_RIGHTS };

struct topic_permission {
	struct user *user;		/* borrowed, owns us */
	struct vhost *vhost;		/* borrowed: we go with it */
	char *exchange;			/* owned: name; it need not be there */
	uint64_t id;
	char *text[TOPIC_RIGHTS];	/* owned, as given */
	struct pattern *pattern[TOPIC_RIGHTS]; /* owned; NULL: matches no key */
	struct topic_permission *next;	/* user->topic_permissions, by id */
	LIST_ENTRY(topic_permission) vhost_link;	/* vhost->topic_permissions */
};

enum { TOPIC_PERMISSIONS_MAX = 1024 }; /* of a user */

/* NULL, or the refusal of a pattern or a name. In effect at once. */
const struct error *topic_permission_set(struct user *u, struct vhost *vh, struct span exchange, const char *write,
    const char *read, bool *created) MUSTUSE;
struct topic_permission *topic_permission_find(const struct user *u, const struct vhost *vh, struct span exchange);
void topic_permission_clear(struct topic_permission *p);
/* Some of a vhost: *left goes down by as many. True: there are more. */
bool topic_permissions_drop_some(struct vhost *vh, unsigned *left);
/* Of a user in a vhost: how many there were. */
uint32_t topic_permissions_drop(struct user *u, const struct vhost *vh);
void topic_permissions_free(struct user *u);
/* From what the store had. */
const struct error *topic_permission_restore(struct user *u, struct vhost *vh, struct span exchange,
    const char *const text[TOPIC_RIGHTS], uint64_t id) MUSTUSE;

const struct error *topic_permission_refuses(const struct user *u, enum topic_right right, const struct exchange *x,
    struct span key) MUSTUSE;
/* NULL, or 403 "access to topic 'a.b' in exchange 'x' in vhost '/' refused for user 'u'". For exchanges of type topic; others
 * are open. Nothing is done for a user who has none. */
static inline const struct error *
topic_permission_check(const struct user *u, enum topic_right right, const struct exchange *x, struct span key)
{
	return unlikely(u->topic_permissions != NULL) ? topic_permission_refuses(u, right, x, key) : NULL;
}
/* For the keys in CC and BCC of a message, of which there may be a thousand: 406 where they take too long in all; end: what
 * topic_permission_end() said before the first of them. */
uint64_t topic_permission_end(const struct exchange *x);
const struct error *topic_permission_check_copy(const struct user *u, const struct exchange *x, struct span key,
    uint64_t end) MUSTUSE;
/* For one key, the exchange by name; one that is not there is open. */
const struct error *topic_permission_check_name(const struct client *c, enum topic_right right, struct span exchange,
    struct span key) MUSTUSE;

#endif
