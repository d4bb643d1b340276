/* SPDX-License-Identifier: Apache-2.0
 * Users are objects with rows of their own; permissions are parts of a user or of a vhost. Rows know their object by its
 * id too, so that one that was taken away and made again is listed once. */
#include "mgmt/access_lists.h"

#include "base/attr.h"
#include "broker/broker.h"
#include "broker/limits.h"
#include "broker/permission.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/access_out.h"
#include "mgmt/list_order.h"

/* Whoever may ask for these lists is an administrator; he need not be one any more. */
static bool
sees_access(const struct scope *s)
{
	return s->user != NULL && s->all_vhosts;
}

/* ---- users ---- */

static void *
find_user(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	return sees_access(scope) ? object : NULL;
}

static void *
find_user_without(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	const struct user *u = object;

	return sees_access(scope) && u->permissions == NULL ? object : NULL;
}

static void
add_user(struct listing *l, const struct row_id *id, struct user *u)
{
	char order[LIST_ORDER];

	if (u != NULL)
		listing_add(l, id, span_str(u->name), list_order(order, u->id, 0), u);
}

static void
collect_user(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	add_user(l, &id, find_user(scope, object, &id));
}

static void
collect_user_without(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	add_user(l, &id, find_user_without(scope, object, &id));
}

static void
write_user(const struct doc *d, void *item)
{
	out_user(d->out, item, true);
}

const struct listing_source user_list = {
	.kinds = { SERIES_USER, SERIES_USER },
	.paging = PAGING_IF_TOLD,
	.collect = collect_user,
	.find = find_user,
	.write = write_user,
};
const struct listing_source user_without_permissions_list = {
	.kinds = { SERIES_USER, SERIES_USER },
	.paging = PAGING_IF_TOLD,
	.collect = collect_user_without,
	.find = find_user_without,
	.write = write_user,
};

/* ---- permissions: object is the user; a, the vhost; b, its own id ---- */

static bool
is_in_scope(const struct scope *s, const struct vhost *vh)
{
	if (!sees_access(s) || vh->is_deleted)
		return false;
	return (s->vhost == NULL || s->vhost == vh) && (s->peer == NULL || s->peer == &vh->series);
}

static struct row_id
right_id(const struct user *u, const struct vhost *vh, uint64_t id)
{
	const struct series_list *all = &vh->broker->series;

	return (struct row_id){
		.object = series_ref(all, &u->series), .a = series_ref(all, &vh->series), .b = id
	};
}

static const struct vhost *
vhost_of(const struct scope *scope, const struct user *u, const struct row_id *id)
{
	struct series *s = series_find(&u->broker->series, id->a);

	return s != NULL && is_in_scope(scope, series_object(s)) ? series_object(s) : NULL;
}

static void *
find_permission(const struct scope *scope, void *object, const struct row_id *id)
{
	const struct vhost *vh = vhost_of(scope, object, id);
	struct permission *p = vh != NULL ? permission_find(object, vh) : NULL;

	return p != NULL && p->id == id->b ? p : NULL;
}

static void
add_permission(struct listing *l, const struct scope *scope, struct permission *p)
{
	struct row_id id;
	char order[LIST_ORDER];

	if (p->user->is_deleted || !is_in_scope(scope, p->vhost))
		return;
	id = right_id(p->user, p->vhost, p->id);
	listing_add(l, &id, span_str(p->user->name), list_order(order, p->user->id, p->id), p);
}

static const void *
first_permission_of_user(const struct series *s)
{
	const struct user *u = series_object(s);

	return WALK_LINK(u->permissions, hh);
}

static const void *
add_permission_of_user(struct listing *l, const struct scope *scope, const void *at)
{
	struct permission *p = WALK_AT(at, permission, hh);

	add_permission(l, scope, p);
	return WALK_LINK((struct permission *)p->hh.next, hh);
}

static const void *
first_permission_of_vhost(const struct series *s)
{
	const struct vhost *vh = series_object(s);

	return WALK_LINK(LIST_FIRST(&vh->permissions), vhost_link);
}

static const void *
add_permission_of_vhost(struct listing *l, const struct scope *scope, const void *at)
{
	struct permission *p = WALK_AT(at, permission, vhost_link);

	add_permission(l, scope, p);
	return WALK_LINK(LIST_NEXT(p, vhost_link), vhost_link);
}

static void
write_permission(const struct doc *d, void *item)
{
	out_permission(d->out, item);
}

#define RIGHTS(kind, first, add, what)                                                          \
	{                                                                                       \
		.kinds = { kind, kind }, .paging = PAGING_IF_TOLD, .parts = { { first, add } }, \
		.find = find_##what, .write = write_##what                                      \
	}
const struct listing_source permission_list =
    RIGHTS(SERIES_USER, first_permission_of_user, add_permission_of_user, permission);
const struct listing_source vhost_permission_list =
    RIGHTS(SERIES_VHOST, first_permission_of_vhost, add_permission_of_vhost, permission);

/* ---- one's own: nobody has to be an administrator for them ---- */

static void *
find_own(const struct scope *scope, void *object, const struct row_id *id)
{
	const struct user *u = object;
	const struct series *s = series_find(&u->broker->series, id->a);
	const struct vhost *vh = s != NULL ? series_object(s) : NULL;
	struct permission *p;

	if (vh == NULL || vh->is_deleted || scope->user != u)
		return NULL;
	p = permission_find(u, vh);
	return p != NULL && p->id == id->b ? p : NULL;
}

static const void *
add_own(struct listing *l, const struct scope *scope, const void *at)
{
	struct permission *p = WALK_AT(at, permission, hh);
	char order[LIST_ORDER];

	if (p->user == scope->user && !p->vhost->is_deleted) {
		struct row_id id = right_id(p->user, p->vhost, p->id);

		listing_add(
		    l, &id, span_str(p->vhost->name), list_order(order, p->vhost->id, p->id), p);
	}
	return WALK_LINK((struct permission *)p->hh.next, hh);
}

const struct listing_source own_permission_list = {
	.kinds = { SERIES_USER, SERIES_USER },
	.paging = PAGING_IF_TOLD,
	.parts = { { first_permission_of_user, add_own } },
	.find = find_own,
	.write = write_permission,
};

/* ---- topic permissions: the same, with the exchange as text ---- */

static void *
find_topic(const struct scope *scope, void *object, const struct row_id *id)
{
	const struct vhost *vh = vhost_of(scope, object, id);
	struct topic_permission *p =
	    vh != NULL ? topic_permission_find(object, vh, id->text) : NULL;

	return p != NULL && p->id == id->b ? p : NULL;
}

static void
add_topic(struct listing *l, const struct scope *scope, struct topic_permission *p)
{
	struct row_id id;
	char order[LIST_ORDER];

	if (p->user->is_deleted || !is_in_scope(scope, p->vhost))
		return;
	id = right_id(p->user, p->vhost, p->id);
	id.text = span_str(p->exchange);
	listing_add(l, &id, span_str(p->user->name), list_order(order, p->user->id, p->id), p);
}

static const void *
first_topic_of_user(const struct series *s)
{
	const struct user *u = series_object(s);

	return WALK_LINK(u->topic_permissions, next);
}

static const void *
add_topic_of_user(struct listing *l, const struct scope *scope, const void *at)
{
	struct topic_permission *p = WALK_AT(at, topic_permission, next);

	add_topic(l, scope, p);
	return WALK_LINK(p->next, next);
}

static const void *
first_topic_of_vhost(const struct series *s)
{
	const struct vhost *vh = series_object(s);

	return WALK_LINK(LIST_FIRST(&vh->topic_permissions), vhost_link);
}

static const void *
add_topic_of_vhost(struct listing *l, const struct scope *scope, const void *at)
{
	struct topic_permission *p = WALK_AT(at, topic_permission, vhost_link);

	add_topic(l, scope, p);
	return WALK_LINK(LIST_NEXT(p, vhost_link), vhost_link);
}

static void
write_topic(const struct doc *d, void *item)
{
	out_topic_permission(d->out, item);
}

const struct listing_source topic_permission_list =
    RIGHTS(SERIES_USER, first_topic_of_user, add_topic_of_user, topic);
const struct listing_source vhost_topic_permission_list =
    RIGHTS(SERIES_VHOST, first_topic_of_vhost, add_topic_of_vhost, topic);

/* ---- limits ---- */

static void *
find_user_limits(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	const struct user *u = object;

	return scope->user != NULL && user_has_limits(u) ? object : NULL;
}

static void
collect_user_limits(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	add_user(l, &id, find_user_limits(scope, object, &id));
}

static void
write_user_limits(const struct doc *d, void *item)
{
	const struct user *u = item;

	out_begin(d->out, '{');
	OUT_TEXT(d->out, "user", u->name);
	OUT_PUT(d->out, "value", out_user_limits, u);
	out_end(d->out, '}');
}

const struct listing_source user_limit_list = {
	.kinds = { SERIES_USER, SERIES_USER },
	.collect = collect_user_limits,
	.find = find_user_limits,
	.write = write_user_limits,
};

/* Users with the tag monitoring see those of all vhosts. */
static void *
find_vhost_limits(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	struct vhost *vh = object;
	bool sees = (scope->user != NULL && scope->all_users && scope->vhost == NULL) ||
	            scope_sees(scope, vh);

	return sees && vhost_has_limits(vh) ? vh : NULL;
}

static void
collect_vhost_limits(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct vhost *vh = find_vhost_limits(scope, object, &id);
	char order[LIST_ORDER];

	if (vh != NULL)
		listing_add(l, &id, span_str(vh->name), list_order(order, vh->id, 0), vh);
}

static void
write_vhost_limits(const struct doc *d, void *item)
{
	const struct vhost *vh = item;

	out_begin(d->out, '{');
	OUT_TEXT(d->out, "vhost", vh->name);
	OUT_PUT(d->out, "value", out_vhost_limits, vh);
	out_end(d->out, '}');
}

const struct listing_source vhost_limit_list = {
	.kinds = { SERIES_VHOST, SERIES_VHOST },
	.collect = collect_vhost_limits,
	.find = find_vhost_limits,
	.write = write_vhost_limits,
};
