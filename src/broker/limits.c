/* SPDX-License-Identifier: Apache-2.0
 * Limits of vhosts and users. */
#include "broker/limits.h"

#include <inttypes.h>

#include "base/bound.h"
#include "broker/event.h"
#include "broker/persist_access.h"
#include "broker/queue.h"
#include "broker/user.h"
#include "broker/vhost.h"

const char *const vhost_limit_names[VHOST_LIMITS] = {
	[VHOST_MAX_CONNECTIONS] = "max-connections",
	[VHOST_MAX_QUEUES] = "max-queues",
};
const char *const user_limit_names[USER_LIMITS] = {
	[USER_MAX_CONNECTIONS] = "max-connections",
	[USER_MAX_CHANNELS] = "max-channels",
};

enum vhost_limit
vhost_limit_find(struct span name)
{
	unsigned i = 0;

	while (i < VHOST_LIMITS && !span_is(name, vhost_limit_names[i]))
		i++;
	return (enum vhost_limit)i;
}

enum user_limit
user_limit_find(struct span name)
{
	unsigned i = 0;

	while (i < USER_LIMITS && !span_is(name, user_limit_names[i]))
		i++;
	return (enum user_limit)i;
}

static bool
change(struct limit *l, bool is_set, int64_t value)
{
	if (l->is_set == is_set && (!is_set || l->value == value))
		return false;
	*l = (struct limit){ is_set, value };
	return true;
}

void
vhost_limit_set(struct vhost *vh, enum vhost_limit which, int64_t value)
{
	if (change(&vh->limit[which], true, value)) {
		persist_vhost(vh);
		event_vhost_limits(vh);
	}
}

void
vhost_limit_clear(struct vhost *vh, enum vhost_limit which)
{
	if (change(&vh->limit[which], false, 0)) {
		persist_vhost(vh);
		event_vhost_limits(vh);
	}
}

void
user_limit_set(struct user *u, enum user_limit which, int64_t value)
{
	if (change(&u->limit[which], true, value)) {
		persist_user(u);
		event_user_limits(u);
	}
}

void
user_limit_clear(struct user *u, enum user_limit which)
{
	if (change(&u->limit[which], false, 0)) {
		persist_user(u);
		event_user_limits(u);
	}
}

/* Then something is refused. */
static inline bool
is_reached(const struct limit *l, uint64_t have, enum bound bound)
{
	if (likely(!l->is_set) || l->value < 0 || have < (uint64_t)l->value)
		return false;
	bound_reached(bound);
	return true;
}

static bool
any_is_set(const struct limit *limit, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (limit[i].is_set)
			return true;
	return false;
}

bool
vhost_has_limits(const struct vhost *vh)
{
	return any_is_set(vh->limit, VHOST_LIMITS);
}

bool
user_has_limits(const struct user *u)
{
	return any_is_set(u->limit, USER_LIMITS);
}

const struct error *
limits_check_connection(const struct vhost *vh, const struct user *u)
{
	const struct limit *l = &vh->limit[VHOST_MAX_CONNECTIONS];

	if (is_reached(l, vh->connections, BOUND_of_vhost))
		return error_make(E_NOT_ALLOWED,
		    "access to vhost '%s' refused for user '%s': connection limit (%" PRId64
		    ") is reached",
		    vh->name, u->name, l->value);
	l = &u->limit[USER_MAX_CONNECTIONS];
	if (is_reached(l, u->connections, BOUND_of_user))
		return error_make(E_NOT_ALLOWED,
		    "connection refused for user '%s': user connection limit (%" PRId64
		    ") is reached",
		    u->name, l->value);
	return NULL;
}

const struct error *
limits_check_channel(const struct user *u)
{
	const struct limit *l = &u->limit[USER_MAX_CHANNELS];

	if (!is_reached(l, u->channels, BOUND_of_user))
		return NULL;
	return error_make(E_NOT_ALLOWED,
	    "number of channels opened for user '%s' has reached the maximum allowed user limit of "
	    "(%" PRId64 ")",
	    u->name, l->value);
}

const struct error *
limits_check_queue(const struct vhost *vh, struct span name)
{
	const struct limit *l = &vh->limit[VHOST_MAX_QUEUES];

	if (!is_reached(l, vh->queues_by_name.count, BOUND_of_vhost))
		return NULL;
	return error_make(E_PRECONDITION_FAILED,
	    "cannot declare queue '%.*s': queue limit in vhost '%s' (%" PRId64 ") is reached",
	    SPAN_FMT(name), vh->name, l->value);
}
