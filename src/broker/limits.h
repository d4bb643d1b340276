/* SPDX-License-Identifier: Apache-2.0
 * Limits that operators set on a vhost (max-connections, max-queues) or a user (max-connections, max-channels), and the
 * refusals of what would go beyond them, with RabbitMQ's texts. A negative limit is none, but is listed. */
#ifndef BROKER_LIMITS_H
#define BROKER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

struct user;
struct vhost;

enum vhost_limit { VHOST_MAX_CONNECTIONS, VHOST_MAX_QUEUES, VHOST_LIMITS };
enum user_limit { USER_MAX_CONNECTIONS, USER_MAX_CHANNELS, USER_LIMITS };

struct limit {
	bool is_set;
	int64_t value;
};

/* By enum: "max-connections", ... */
extern const char *const vhost_limit_names[VHOST_LIMITS];
extern const char *const user_limit_names[USER_LIMITS];
/* VHOST_LIMITS, USER_LIMITS: unknown */
enum vhost_limit vhost_limit_find(struct span name);
enum user_limit user_limit_find(struct span name);

/* Kept by the store. To take away what is not set is fine. */
void vhost_limit_set(struct vhost *vh, enum vhost_limit which, int64_t value);
void vhost_limit_clear(struct vhost *vh, enum vhost_limit which);
void user_limit_set(struct user *u, enum user_limit which, int64_t value);
void user_limit_clear(struct user *u, enum user_limit which);

/* Is any set? */
bool vhost_has_limits(const struct vhost *vh);
bool user_has_limits(const struct user *u);

/* connection.open: 530 for the vhost's limit, then the user's. */
const struct error *limits_check_connection(const struct vhost *vh, const struct user *u) MUSTUSE;
/* channel.open: 530. */
const struct error *limits_check_channel(const struct user *u) MUSTUSE;
/* queue.declare of a new queue: 406. */
const struct error *limits_check_queue(const struct vhost *vh, struct span name) MUSTUSE;

#endif
