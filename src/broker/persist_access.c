/* SPDX-License-Identifier: Apache-2.0
 * What operators make, as bytes for the store and back. Permissions name user and vhost by name and id: a later one of
 * the same name gets none of an earlier one's rights. */
#include "broker/persist_access.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/definition.h"
#include "broker/name.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "store/store.h"

static void
put(struct broker *b, enum object_kind kind, uint64_t id, struct definition *d)
{
	store_put(b->store, kind, id, definition_span(d));
	definition_fini(d);
}

static void
gone(struct broker *b, enum object_kind kind, uint64_t id)
{
	if (b->store != NULL)
		store_gone(b->store, kind, id);
}

static void
put_tags(struct definition *d, const struct tags *t)
{
	for (uint32_t i = 0; i < t->count; i++)
		definition_put(d, DEF_TAG, span_str(t->item[i]));
}

static void
put_limits(struct definition *d, const struct limit *l, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (l[i].is_set)
			definition_put_number(
			    d, (enum definition_tag)(DEF_LIMIT + i), (uint64_t)l[i].value);
}

static void
read_limits(struct span state, struct limit *l, unsigned n)
{
	struct span bytes;

	for (unsigned i = 0; i < n; i++) {
		enum definition_tag tag = (enum definition_tag)(DEF_LIMIT + i);

		l[i].is_set = definition_find(state, tag, &bytes);
		l[i].value = (int64_t)definition_number(state, tag);
	}
}

/* tag: room for TAGS_MAX. */
static uint32_t
read_tags(struct span state, struct span *tag)
{
	uint32_t n = 0;

	while (n < TAGS_MAX && definition_next(&state, DEF_TAG, &tag[n]))
		n++;
	return n;
}

static struct span
read_text(struct span state, enum definition_tag tag)
{
	struct span text;

	return definition_find(state, tag, &text) ? text : SPAN_LIT("");
}

/* Owned; what has a NUL inside ends there. */
static char *
read_chars(struct span state, enum definition_tag tag)
{
	struct span text = read_text(state, tag);

	return xstrndup(SPAN_CHARS(text), text.n);
}

/* ---- put ---- */

void
persist_vhost(struct vhost *vh)
{
	struct definition d = { 0 };

	if (vh->broker->store == NULL)
		return;
	definition_put(&d, DEF_NAME, span_str(vh->name));
	definition_put_number(&d, DEF_SINCE, vh->since);
	definition_put_number(
	    &d, DEF_FLAGS, (vh->is_deleted ? DEF_DELETED : 0u) | (vh->tracing ? DEF_TRACING : 0u));
	definition_put(&d, DEF_DESCRIPTION, span_str(vh->description));
	if (vh->default_queue_type != NULL)
		definition_put(&d, DEF_QUEUE_TYPE, span_str(vh->default_queue_type));
	put_tags(&d, &vh->tags);
	put_limits(&d, vh->limit, VHOST_LIMITS);
	put(vh->broker, OBJECT_VHOST, vh->id, &d);
}

void
persist_vhost_gone(struct vhost *vh)
{
	gone(vh->broker, OBJECT_VHOST, vh->id);
}

void
persist_user(struct user *u)
{
	struct definition d = { 0 };

	if (u->broker->store == NULL)
		return;
	definition_put(&d, DEF_NAME, span_str(u->name));
	definition_put_number(&d, DEF_FLAGS,
	    (u->loopback_only ? DEF_LOOPBACK : 0u) | (u->is_default ? DEF_DEFAULT : 0u) |
	        (u->of_settings ? DEF_SETTINGS : 0u));
	definition_put_number(&d, DEF_PASSWORD_KIND, u->password.kind);
	definition_put(&d, DEF_PASSWORD, span_of(u->password.bytes, u->password.n));
	put_tags(&d, &u->tag_list);
	put_limits(&d, u->limit, USER_LIMITS);
	put(u->broker, OBJECT_USER, u->id, &d);
}

void
persist_user_gone(struct user *u)
{
	gone(u->broker, OBJECT_USER, u->id);
}

static void
put_user_and_vhost(struct definition *d, const struct user *u, const struct vhost *vh)
{
	definition_put(d, DEF_USER, span_str(u->name));
	definition_put_number(d, DEF_USER_ID, u->id);
	definition_put(d, DEF_VHOST, span_str(vh->name));
	definition_put_number(d, DEF_VHOST_ID, vh->id);
}

void
persist_permission(struct permission *p)
{
	struct definition d = { 0 };

	if (p->user->broker->store == NULL)
		return;
	put_user_and_vhost(&d, p->user, p->vhost);
	definition_put(&d, DEF_CONFIGURE, span_str(p->text[PERM_CONFIGURE]));
	definition_put(&d, DEF_WRITE, span_str(p->text[PERM_WRITE]));
	definition_put(&d, DEF_READ, span_str(p->text[PERM_READ]));
	put(p->user->broker, OBJECT_PERMISSION, p->id, &d);
}

void
persist_permission_gone(struct permission *p)
{
	gone(p->user->broker, OBJECT_PERMISSION, p->id);
}

/* A permission too, with an exchange. */
void
persist_topic_permission(struct topic_permission *p)
{
	struct definition d = { 0 };

	if (p->user->broker->store == NULL)
		return;
	put_user_and_vhost(&d, p->user, p->vhost);
	definition_put(&d, DEF_EXCHANGE, span_str(p->exchange));
	definition_put(&d, DEF_WRITE, span_str(p->text[TOPIC_WRITE]));
	definition_put(&d, DEF_READ, span_str(p->text[TOPIC_READ]));
	put(p->user->broker, OBJECT_PERMISSION, p->id, &d);
}

void
persist_topic_permission_gone(struct topic_permission *p)
{
	gone(p->user->broker, OBJECT_PERMISSION, p->id);
}

void
persist_parameter(struct parameter *p)
{
	struct definition d = { 0 };

	if (p->broker->store == NULL)
		return;
	if (p->vhost != NULL) {
		definition_put(&d, DEF_VHOST, span_str(p->vhost->name));
		definition_put_number(&d, DEF_VHOST_ID, p->vhost->id);
		definition_put(&d, DEF_COMPONENT, span_str(p->component));
	}
	definition_put(&d, DEF_NAME, span_str(p->name));
	definition_put(&d, DEF_VALUE, span_str(p->value));
	put(p->broker, OBJECT_PARAMETER, p->id, &d);
}

void
persist_parameter_gone(struct parameter *p)
{
	gone(p->broker, OBJECT_PARAMETER, p->id);
}

/* ---- the start ---- */

struct found {
	uint64_t id;
	struct span state; /* good until store_linked() */
};

struct found_list {
	struct broker *b;
	struct found *found; /* owned: all of a kind, ascending */
	size_t n, cap;
};

static void
collect(void *arg, uint64_t id, struct span state)
{
	struct found_list *l = arg;

	if (l->n == l->cap) {
		l->cap = l->cap > 0 ? l->cap * 2 : 64;
		l->found = xrealloc(l->found, l->cap * sizeof *l->found);
	}
	l->found[l->n++] = (struct found){ id, state };
	if (id > l->b->next_id)
		l->b->next_id = id;
}

static const char unusable[] = "it cannot be read, or what it belongs to is gone";
/* The end of the process cut its vhost's deletion short: it goes with that, which is no news. */
static const char with_vhost[] = "its vhost is being deleted";
/* The same of a user: of a deleted one nothing is left but these. Where its record was damaged, that was said. */
static const char with_user[] = "its user is gone";

/* As operators know it. */
static struct span
name_of(struct span state)
{
	struct span name = { NULL, 0 };

	if (!definition_find(state, DEF_NAME, &name) && !definition_find(state, DEF_KEY, &name))
		(void)definition_find(state, DEF_USER, &name);
	return name;
}

void
persist_link_kind(struct broker *b, enum object_kind kind, const char *what, persist_link_fn *f)
{
	struct found_list l = { .b = b };

	store_each_object(b->store, kind, collect, &l);
	for (size_t i = l.n; i-- > 0;) {
		struct span state = l.found[i].state;
		const char *why = f(b, l.found[i].id, state);

		if (why == NULL)
			continue;
		log_line(why == with_vhost || why == with_user ? LOG_DEBUG : LOG_ERROR, NULL,
		    "%s '%.*s' (%llu) is left out: %s", what, SPAN_FMT(name_of(state)),
		    (unsigned long long)l.found[i].id, why);
		store_gone(b->store, kind, l.found[i].id);
	}
	free(l.found);
}

/* The live vhost that the state names; NULL: none, and *why says what that means. */
static struct vhost *
vhost_of(const struct broker *b, struct span state, const char **why)
{
	uint64_t id = definition_number(state, DEF_VHOST_ID);
	const struct vhost *old;
	struct vhost *vh = NULL;
	struct span name;

	*why = unusable;
	if (definition_name(state, DEF_VHOST, &name))
		vh = vhost_find(b, name);
	if (vh != NULL && vh->id == id)
		return vh;
	TAILQ_FOREACH (old, &b->gone_vhosts, gone_link)
		if (old->id == id)
			*why = with_vhost;
	return NULL;
}

static const char *
link_vhost(struct broker *b, uint64_t id, struct span state)
{
	uint64_t flags = definition_number(state, DEF_FLAGS);
	struct span name, tag[TAGS_MAX];
	struct vhost_spec spec = { .description = read_text(state, DEF_DESCRIPTION),
		.default_queue_type = read_text(state, DEF_QUEUE_TYPE),
		.tag = tag,
		.tag_count = read_tags(state, tag),
		.tracing = (flags & DEF_TRACING) != 0 };
	const struct error *e;
	struct vhost *vh;
	char *text;

	if (!definition_name(state, DEF_NAME, &name) || name.n == 0)
		return unusable;
	text = xstrndup(SPAN_CHARS(name), name.n);
	vh = (flags & DEF_DELETED) != 0 ? vhost_restore_gone(b, text, id)
	                                : vhost_restore(b, text, id);
	free(text);
	if (vh == NULL)
		return unusable;
	vh->since = definition_number(state, DEF_SINCE);
	read_limits(state, vh->limit, VHOST_LIMITS);
	e = vhost_fill(vh, &spec);
	if (e != NULL)
		log_error("what is said of vhost '%s' cannot be read: %s", vh->name, e->text);
	return NULL;
}

static const char *
link_user(struct broker *b, uint64_t id, struct span state)
{
	uint64_t flags = definition_number(state, DEF_FLAGS);
	uint64_t kind = definition_number(state, DEF_PASSWORD_KIND);
	struct span name, tag[TAGS_MAX];
	struct password password;
	const struct user_spec spec = { .password = &password,
		.tag = tag,
		.tag_count = read_tags(state, tag),
		.loopback_only = (flags & DEF_LOOPBACK) != 0,
		.of_settings = (flags & DEF_SETTINGS) != 0 };
	struct user *u;

	if (!definition_name(state, DEF_NAME, &name) || name.n == 0 || kind >= PASSWORD_KINDS ||
	    !password_from(&password, (enum password_kind)kind, read_text(state, DEF_PASSWORD)) ||
	    user_find(b, name) != NULL)
		return unusable;
	u = user_make(b, name, id);
	if (user_fill(u, &spec) != NULL) {
		user_drop(u);
		return unusable;
	}
	u->is_default = (flags & DEF_DEFAULT) != 0;
	read_limits(state, u->limit, USER_LIMITS);
	return NULL;
}

static const char *
link_permission(struct broker *b, uint64_t id, struct span state)
{
	struct span name, exchange;
	struct user *u = NULL;
	const char *why;
	struct vhost *vh = vhost_of(b, state, &why);
	char *text[PERM_KINDS];
	const struct error *e;

	if (vh == NULL)
		return why;
	if (definition_name(state, DEF_USER, &name))
		u = user_find(b, name);
	if (u == NULL || u->id != definition_number(state, DEF_USER_ID))
		return with_user;
	text[PERM_CONFIGURE] = read_chars(state, DEF_CONFIGURE);
	text[PERM_WRITE] = read_chars(state, DEF_WRITE);
	text[PERM_READ] = read_chars(state, DEF_READ);
	if (definition_name(state, DEF_EXCHANGE, &exchange))
		e = topic_permission_restore(u, vh, exchange,
		    (const char *const[]){
		        [TOPIC_WRITE] = text[PERM_WRITE], [TOPIC_READ] = text[PERM_READ] },
		    id);
	else
		e = permission_restore(u, vh, (const char *const *)text, id);
	for (int i = 0; i < PERM_KINDS; i++)
		free(text[i]);
	return e == NULL ? NULL : e->text;
}

static const char *
link_parameter(struct broker *b, uint64_t id, struct span state)
{
	struct span name, vhost, component = SPAN_LIT("");
	struct vhost *vh = NULL;
	const char *why;

	if (!definition_name(state, DEF_NAME, &name) || name.n == 0)
		return unusable;
	if (definition_name(state, DEF_VHOST, &vhost)) {
		vh = vhost_of(b, state, &why);
		if (vh == NULL)
			return why;
		if (!definition_name(state, DEF_COMPONENT, &component))
			return unusable;
	}
	(void)parameter_restore(b, vh, component, name, read_text(state, DEF_VALUE), id);
	return NULL;
}

/* The vhost that a new broker made for itself. Versions that kept no accounts did not keep it either: what is in the store
 * under its name belongs to it. */
static void
keep_first_vhost(struct broker *b, const char *name)
{
	struct vhost *vh = vhost_add(b, name);
	const struct vhost *old;

	if (vh == NULL)
		return;
	vh->since = 0;
	TAILQ_FOREACH (old, &b->gone_vhosts, gone_link)
		if (strcmp(old->name, name) == 0)
			vh->since = vh->id;
	persist_vhost(vh);
}

static void
has_one(void *arg, uint64_t id UNUSED, struct span state UNUSED)
{
	*(bool *)arg = true;
}

void
persist_link_vhosts(struct broker *b)
{
	bool has_users = false;
	char *first = xstrdup(b->vhosts->name);

	/* What it has made for itself was only for the case that the store has nothing. */
	store_each_object(b->store, OBJECT_USER, has_one, &has_users);
	users_free(b);
	while (b->vhosts != NULL)
		vhost_drop(b->vhosts);
	persist_link_kind(b, OBJECT_VHOST, "vhost", link_vhost);
	if (!has_users)
		keep_first_vhost(b, first);
	free(first);
}

/* Lists begin with what was made first, before a restart and after it. */
#define BY_ID(type)                                                         \
	static int type##_by_id(const struct type *x, const struct type *y) \
	{                                                                   \
		return x->id < y->id ? -1 : x->id > y->id;                  \
	}
BY_ID(user)
BY_ID(vhost)
BY_ID(permission)
BY_ID(parameter)

static void
sort_all(struct broker *b)
{
	HASH_SRT(hh, b->users, user_by_id);
	HASH_SRT(hh, b->vhosts, vhost_by_id);
	HASH_SRT(hh, b->parameters, parameter_by_id);
	for (struct vhost *vh = b->vhosts; vh != NULL; vh = vh->hh.next)
		HASH_SRT(hh, vh->parameters, parameter_by_id);
	for (struct user *u = b->users; u != NULL; u = u->hh.next)
		HASH_SRT(hh, u->permissions, permission_by_id);
}

void
persist_link_access(struct broker *b)
{
	persist_link_kind(b, OBJECT_PARAMETER, "parameter", link_parameter);
	persist_link_kind(b, OBJECT_USER, "user", link_user);
	persist_link_kind(b, OBJECT_PERMISSION, "permission", link_permission);
	sort_all(b);
	users_go_on(b);
}

void
persist_access_again(struct broker *b)
{
	struct vhost *vh;
	struct topic_permission *t;
	struct permission *p;
	struct parameter *v;

#define AGAIN(kind, o, f)                           \
	if (store_is_lost(b->store, kind, (o)->id)) \
	f(o)
	for (vh = b->vhosts; vh != NULL; vh = vh->hh.next) {
		AGAIN(OBJECT_VHOST, vh, persist_vhost);
		for (v = vh->parameters; v != NULL; v = v->hh.next)
			AGAIN(OBJECT_PARAMETER, v, persist_parameter);
	}
	TAILQ_FOREACH (vh, &b->gone_vhosts, gone_link)
		AGAIN(OBJECT_VHOST, vh, persist_vhost);
	for (v = b->parameters; v != NULL; v = v->hh.next)
		AGAIN(OBJECT_PARAMETER, v, persist_parameter);
	for (struct user *u = b->users; u != NULL; u = u->hh.next) {
		AGAIN(OBJECT_USER, u, persist_user);
		for (p = u->permissions; p != NULL; p = p->hh.next)
			AGAIN(OBJECT_PERMISSION, p, persist_permission);
		for (t = u->topic_permissions; t != NULL; t = t->next)
			AGAIN(OBJECT_PERMISSION, t, persist_topic_permission);
	}
#undef AGAIN
}
