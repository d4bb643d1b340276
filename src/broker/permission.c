/* SPDX-License-Identifier: Apache-2.0
 * Permissions: see the header. */
#include "broker/permission.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/event.h"
#include "broker/pattern.h"
#include "broker/permission_pattern.h"
#include "broker/persist_access.h"
#include "broker/user.h"
#include "broker/vhost.h"

struct permission *
permission_find(const struct user *u, const struct vhost *vh)
{
	struct permission *p = NULL;

	if (!u->is_deleted)
		HASH_FIND_PTR(u->permissions, &vh, p);
	return p;
}

static void
free_permission(struct permission *p)
{
	const struct walk_list *walks = &p->user->broker->walks;

	walk_pass(walks, &p->hh, WALK_LINK((struct permission *)p->hh.next, hh));
	walk_pass(walks, &p->vhost_link, WALK_LINK(LIST_NEXT(p, vhost_link), vhost_link));
	HASH_DEL(p->user->permissions, p);
	LIST_REMOVE(p, vhost_link);
	permission_patterns_free(p->pattern, p->text, PERM_KINDS);
	mem_sub(MEM_TOPOLOGY, sizeof *p);
	free(p);
}

const struct error *
permission_restore(
    struct user *u, struct vhost *vh, const char *const text[PERM_KINDS], uint64_t id)
{
	struct permission *p = permission_find(u, vh);
	bool is_new = p == NULL;
	const struct error *e;

	if (is_new) {
		p = xcalloc(1, sizeof *p);
		mem_add(MEM_TOPOLOGY, sizeof *p);
		p->user = u;
		p->vhost = vh;
		p->id = id;
		HASH_ADD_PTR(u->permissions, vhost, p);
		LIST_INSERT_HEAD(&vh->permissions, p, vhost_link);
	}
	e = permission_patterns_set(p->pattern, p->text, text, PERM_KINDS, NULL);
	if (e != NULL && is_new)
		free_permission(p);
	return e;
}

const struct error *
permission_set(
    struct user *u, struct vhost *vh, const char *configure, const char *write, const char *read)
{
	const char *const text[PERM_KINDS] = {
		[PERM_CONFIGURE] = configure, [PERM_WRITE] = write, [PERM_READ] = read
	};
	const struct error *e = NULL;

	if (permission_find(u, vh) == NULL)
		e = memory_check_topology(
		    &vh->broker->memory, "set permissions of", span_str(u->name), vh->name);
	if (e == NULL)
		e = permission_restore(u, vh, text, vh->broker->next_id + 1);
	if (e != NULL)
		return e;
	vh->broker->next_id++;
	vh->broker->permission_epoch++;
	persist_permission(permission_find(u, vh));
	event_permission(permission_find(u, vh), true);
	return NULL;
}

void
permission_clear(struct permission *p)
{
	p->vhost->broker->permission_epoch++;
	event_permission(p, false);
	persist_permission_gone(p);
	free_permission(p);
}

bool
permissions_drop_some(struct vhost *vh, unsigned *left)
{
	for (; *left > 0 && !LIST_EMPTY(&vh->permissions); --*left)
		permission_clear(LIST_FIRST(&vh->permissions));
	return !LIST_EMPTY(&vh->permissions);
}

void
permissions_free(struct user *u)
{
	while (u->permissions != NULL)
		free_permission(u->permissions);
}

/* ---- checks ---- */

bool
permission_vhost(const struct user *u, const struct vhost *vh)
{
	return permission_find(u, vh) != NULL;
}

const struct error *
permission_check_user(const struct user *u, const struct vhost *vh, enum permission_kind kind,
    const char *what, struct span name)
{
	const struct permission *p = permission_find(u, vh);

	if (name.n == 0)
		name = SPAN_LIT("amq.default");
	/* What a client made in a deleted vhost might be taken for a later one's of the same name. */
	if (p != NULL && !vh->is_deleted &&
	    permission_pattern_allows(vh->broker, p->pattern[kind], u, name))
		return NULL;
	return error_make(E_ACCESS_REFUSED,
	    "access to %s '%.*s' in vhost '%s' refused for user '%s'", what, SPAN_FMT(name),
	    vh->name, u->name);
}

const struct error *
permission_check(
    const struct client *c, enum permission_kind kind, const char *what, struct span name)
{
	assert(c->user != NULL && c->vhost != NULL);
	return permission_check_user(c->user, c->vhost, kind, what, name);
}
