/* SPDX-License-Identifier: Apache-2.0
 * Topic permissions: see the header. */
#include "broker/topic_permission.h"

#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/event.h"
#include "broker/exchange.h"
#include "broker/name.h"
#include "broker/pattern.h"
#include "broker/permission_pattern.h"
#include "broker/persist_access.h"
#include "broker/user.h"
#include "broker/vhost.h"

struct topic_permission *
topic_permission_find(const struct user *u, const struct vhost *vh, struct span exchange)
{
	struct topic_permission *p = u->topic_permissions;

	while (p != NULL && (p->vhost != vh || !span_is(exchange, p->exchange)))
		p = p->next;
	return p;
}

/* ---- set, clear ---- */

static size_t
size_of(const struct topic_permission *p)
{
	return sizeof *p + strlen(p->exchange) + 1;
}

static void
free_one(struct topic_permission *p)
{
	struct topic_permission **at = &p->user->topic_permissions;
	const struct walk_list *walks = &p->user->broker->walks;

	walk_pass(walks, &p->next, WALK_LINK(p->next, next));
	walk_pass(walks, &p->vhost_link, WALK_LINK(LIST_NEXT(p, vhost_link), vhost_link));
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	LIST_REMOVE(p, vhost_link);
	permission_patterns_free(p->pattern, p->text, TOPIC_RIGHTS);
	mem_sub(MEM_TOPOLOGY, size_of(p));
	free(p->exchange);
	free(p);
}

const struct error *
topic_permission_restore(struct user *u, struct vhost *vh, struct span exchange,
    const char *const text[TOPIC_RIGHTS], uint64_t id)
{
	const struct pattern_variables names = { .username = u->name, .vhost = vh->name };
	struct topic_permission *p = topic_permission_find(u, vh, exchange), **at;
	bool is_new = p == NULL;
	const struct error *e;

	if (is_new) {
		p = xcalloc(1, sizeof *p);
		p->user = u;
		p->vhost = vh;
		p->id = id;
		p->exchange = xstrndup(SPAN_CHARS(exchange), exchange.n);
		mem_add(MEM_TOPOLOGY, size_of(p));
		for (at = &u->topic_permissions; *at != NULL && (*at)->id < id;)
			at = &(*at)->next;
		p->next = *at;
		*at = p;
		LIST_INSERT_HEAD(&vh->topic_permissions, p, vhost_link);
	}
	e = permission_patterns_set(p->pattern, p->text, text, TOPIC_RIGHTS, &names);
	if (e != NULL && is_new)
		free_one(p);
	return e;
}

const struct error *
topic_permission_set(struct user *u, struct vhost *vh, struct span exchange, const char *write,
    const char *read, bool *created)
{
	const char *const text[TOPIC_RIGHTS] = { [TOPIC_WRITE] = write, [TOPIC_READ] = read };
	const struct error *e = name_check("an exchange's name", exchange);
	bool is_new = topic_permission_find(u, vh, exchange) == NULL;
	uint32_t n = 0;

	for (const struct topic_permission *p = u->topic_permissions; p != NULL; p = p->next)
		n++;
	if (e == NULL && is_new && n >= TOPIC_PERMISSIONS_MAX) {
		bound_reached(BOUND_topic_permissions);
		e = error_make(E_PRECONDITION_FAILED,
		    "user '%s' has %u topic permissions, more are not allowed", u->name, n);
	}
	if (e == NULL && is_new)
		e = memory_check_topology(
		    &vh->broker->memory, "set topic permissions of", span_str(u->name), vh->name);
	if (e == NULL)
		e = topic_permission_restore(u, vh, exchange, text, vh->broker->next_id + 1);
	if (e != NULL)
		return e;
	vh->broker->next_id++;
	vh->broker->permission_epoch++;
	persist_topic_permission(topic_permission_find(u, vh, exchange));
	event_topic_permission(topic_permission_find(u, vh, exchange), true);
	if (created != NULL)
		*created = is_new;
	return NULL;
}

void
topic_permission_clear(struct topic_permission *p)
{
	p->vhost->broker->permission_epoch++;
	event_topic_permission(p, false);
	persist_topic_permission_gone(p);
	free_one(p);
}

uint32_t
topic_permissions_drop(struct user *u, const struct vhost *vh)
{
	struct topic_permission *p, *next;
	uint32_t n = 0;

	for (p = u->topic_permissions; p != NULL; p = next) {
		next = p->next;
		if (p->vhost != vh)
			continue;
		topic_permission_clear(p);
		n++;
	}
	return n;
}

bool
topic_permissions_drop_some(struct vhost *vh, unsigned *left)
{
	for (; *left > 0 && !LIST_EMPTY(&vh->topic_permissions); --*left)
		topic_permission_clear(LIST_FIRST(&vh->topic_permissions));
	return !LIST_EMPTY(&vh->topic_permissions);
}

void
topic_permissions_free(struct user *u)
{
	while (u->topic_permissions != NULL)
		free_one(u->topic_permissions);
}

/* ---- the check ---- */

const struct error *
topic_permission_refuses(
    const struct user *u, enum topic_right right, const struct exchange *x, struct span key)
{
	const struct topic_permission *p;

	if (x->type != EXCHANGE_TOPIC)
		return NULL;
	p = topic_permission_find(u, x->vhost, span_of(x->name, x->name_len));
	/* Keys, other than names, may be empty: "" and "^$" match that one. */
	if (p == NULL || (p->pattern[right] == NULL ? key.n == 0
	                                            : permission_pattern_allows(x->vhost->broker,
	                                                  p->pattern[right], u, key)))
		return NULL;
	return error_make(E_ACCESS_REFUSED,
	    "access to topic '%.*s' in exchange '%s' in vhost '%s' refused for user '%s'",
	    SPAN_FMT(key), x->name, x->vhost->name, u->name);
}

/* Of a message, in units of broker->work. */
enum { COPIES_WORK = 1024 };

uint64_t
topic_permission_end(const struct exchange *x)
{
	return x->vhost->broker->work + COPIES_WORK;
}

const struct error *
topic_permission_check_copy(
    const struct user *u, const struct exchange *x, struct span key, uint64_t end)
{
	if (x->vhost->broker->work > end)
		return error_make(E_PRECONDITION_FAILED,
		    "the topic permissions of user '%s' take more than %d steps for the keys in CC "
		    "and BCC",
		    u->name, COPIES_WORK * PATTERN_STEPS_WORK);
	return topic_permission_check(u, TOPIC_WRITE, x, key);
}

const struct error *
topic_permission_check_name(
    const struct client *c, enum topic_right right, struct span exchange, struct span key)
{
	const struct exchange *x;

	if (likely(c->user->topic_permissions == NULL))
		return NULL;
	x = exchange_find(c->vhost, exchange);
	return x != NULL ? topic_permission_check(c->user, right, x, key) : NULL;
}
