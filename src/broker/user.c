/* SPDX-License-Identifier: Apache-2.0
 * Accounts: made, changed, deleted; the default ones; hashing what operators set. */
#include "broker/user.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/event.h"
#include "broker/name.h"
#include "broker/permission.h"
#include "broker/persist_access.h"
#include "broker/topic_permission.h"
#include "broker/vhost.h"

/* Rights of a deleted user that go at once: those of most; and of a turn. */
enum { DROP_AT_ONCE = 16, DROP_MAX = 256 };

static const struct {
	const char *name;
	enum user_tag tag;
} known_tags[] = {
	{ "administrator", TAG_ADMINISTRATOR },
	{ "monitoring", TAG_MONITORING },
	{ "policymaker", TAG_POLICYMAKER },
	{ "management", TAG_MANAGEMENT },
	{ "impersonator", TAG_IMPERSONATOR },
};

struct user *
user_find(const struct broker *b, struct span name)
{
	struct user *u = NULL;

	HASH_FIND(hh, b->users, SPAN_CHARS(name), name.n, u);
	return u;
}

static void
read_tags(struct user *u)
{
	u->tags = 0;
	for (size_t i = 0; i < COUNT_OF(known_tags); i++)
		if (tags_have(&u->tag_list, known_tags[i].name))
			u->tags |= known_tags[i].tag;
}

/* Bytes of a user without tags and rights, which count themselves; MEM_TOPOLOGY. */
static size_t
size_of(const struct user *u)
{
	return sizeof *u + strlen(u->name) + 1;
}

struct user *
user_make(struct broker *b, struct span name, uint64_t id)
{
	struct user *u = xcalloc(1, sizeof *u);

	u->broker = b;
	u->id = id;
	u->name = xstrndup(SPAN_CHARS(name), name.n);
	mem_add(MEM_TOPOLOGY, size_of(u));
	series_init(&b->series, &u->series, SERIES_USER, b->now_ms);
	HASH_ADD_KEYPTR(hh, b->users, u->name, name.n, u);
	return u;
}

static bool
same_password(const struct password *a, const struct password *b)
{
	return a->kind == b->kind && a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

const struct error *
user_fill(struct user *u, const struct user_spec *spec)
{
	const struct password none = { 0 }, *next = spec->password != NULL ? spec->password : &none;
	const struct error *e = tags_set(&u->tag_list, spec->tag, spec->tag_count);

	if (e != NULL)
		return e;
	read_tags(u);
	u->loopback_only = spec->loopback_only;
	u->of_settings = spec->of_settings;
	u->password_changes += !same_password(&u->password, next);
	u->password = *next;
	u->has_seen = false;
	return NULL;
}

/* All of it but the record. *created may be NULL. */
static const struct error *
make_or_change(struct broker *b, const struct user_spec *spec, bool is_default, struct user **out,
    bool *created)
{
	const struct error *e = name_check("a user name", spec->name);
	struct user *u = user_find(b, spec->name);
	bool is_new = u == NULL;

	if (e == NULL && spec->name.n == 0)
		e = error_make(E_PRECONDITION_FAILED, "a user name must not be empty");
	if (e == NULL && is_new && HASH_COUNT(b->users) >= USERS_MAX) {
		bound_reached(BOUND_users);
		e = error_make(
		    E_PRECONDITION_FAILED, "there are %d users, more are not allowed", USERS_MAX);
	}
	if (e == NULL && is_new)
		e = memory_check_topology(&b->memory, "make user", spec->name, NULL);
	if (e != NULL)
		return e;
	if (is_new)
		u = user_make(b, spec->name, ++b->next_id);
	e = user_fill(u, spec);
	if (e != NULL) {
		if (is_new)
			user_drop(u);
		return e;
	}
	u->is_default = is_default;
	if (created != NULL)
		*created = is_new;
	*out = u;
	return NULL;
}

const struct error *
user_set(struct broker *b, const struct user_spec *spec, bool *created)
{
	struct user *u;
	bool is_new;
	const struct error *e = make_or_change(b, spec, false, &u, &is_new);

	if (e != NULL)
		return e;
	persist_user(u);
	event_user(u, is_new ? EVENT_MADE : EVENT_CHANGED);
	if (created != NULL)
		*created = is_new;
	return NULL;
}

/* The accounts that are made where nobody made one. */
static bool
is_known(struct span name)
{
	return span_is(name, "admin") || span_is(name, "guest");
}

bool
user_stays_local(const struct broker *b, struct span name, const struct password *next)
{
	const struct user *u = user_find(b, name);
	const char *of_settings = b->cfg->default_user;

	if (u != NULL && (next == NULL || same_password(&u->password, next)))
		return u->loopback_only;
	if (of_settings != NULL && span_is(name, of_settings))
		return u != NULL && u->loopback_only;
	if (next == NULL || (!is_known(name) && (u == NULL || !u->loopback_only)))
		return false;
	/* one whose look takes long was made by somebody */
	return !password_is_slow(next->kind) && password_is(next, name);
}

/* ---- the end ---- */

static void
free_user(struct user *u)
{
	assert(u->refs == 0);
	permissions_free(u);
	topic_permissions_free(u);
	tags_fini(&u->tag_list);
	mem_sub(MEM_TOPOLOGY, size_of(u));
	explicit_bzero(&u->password, sizeof u->password);
	free(u->name);
	free(u);
}

void
user_drop(struct user *u)
{
	HASH_DEL(u->broker->users, u);
	series_fini(&u->broker->series, &u->series);
	u->is_deleted = true;
	if (u->refs == 0)
		free_user(u);
}

/* Some of them. True: there are more. */
static bool
drop_rights(struct user *u, unsigned max)
{
	while (u->permissions != NULL && max > 0) {
		permission_clear(u->permissions);
		max--;
	}
	while (u->topic_permissions != NULL && max > 0) {
		topic_permission_clear(u->topic_permissions);
		max--;
	}
	return u->permissions != NULL || u->topic_permissions != NULL;
}

void
user_clear(struct user *u)
{
	struct broker *b = u->broker;
	struct client *c;
	char why[NAME_BYTES_MAX + 32];

	event_user(u, EVENT_GOES);
	persist_user_gone(u);
	b->permission_epoch++;
	snprintf(why, sizeof why, "user '%s' is deleted", u->name);
	/* each client has a reference: of thousands of accounts few are logged in */
	for (c = u->refs > 0 ? TAILQ_FIRST(&b->clients) : NULL; c != NULL; c = TAILQ_NEXT(c, link))
		if (c->user == u)
			client_force_close(c, why);
	if (drop_rights(u, DROP_AT_ONCE)) {
		(void)user_ref(u);
		TAILQ_INSERT_TAIL(&b->gone_users, u, gone_link);
	}
	user_drop(u);
}

bool
users_run(struct broker *b)
{
	struct user *u = TAILQ_FIRST(&b->gone_users);

	if (u != NULL && !drop_rights(u, DROP_MAX)) {
		TAILQ_REMOVE(&b->gone_users, u, gone_link);
		user_unref(&u);
	}
	return !TAILQ_EMPTY(&b->gone_users);
}

struct user *
user_ref(struct user *u)
{
	u->refs++;
	return u;
}

void
user_unref(struct user **up)
{
	struct user *u = *up;

	*up = NULL;
	if (u == NULL)
		return;
	assert(u->refs > 0);
	if (--u->refs == 0 && u->is_deleted)
		free_user(u);
}

void
users_free(struct broker *b)
{
	struct user *u;

	while (b->users != NULL)
		user_drop(b->users);
	while ((u = TAILQ_FIRST(&b->gone_users)) != NULL) {
		TAILQ_REMOVE(&b->gone_users, u, gone_link);
		user_unref(&u);
	}
}

/* ---- hashing ---- */

struct hashing {
	struct worker_job job; /* first */
	struct broker *broker; /* borrowed: outlives its workers */
	user_hash_fn *done;
	void *arg;
	struct password password;
	size_t n;
	uint8_t text[PASSWORD_LEN_MAX];
};

static void
hash(struct worker_job *job)
{
	struct hashing *h = container_of(job, struct hashing, job);

	password_make(&h->password, PASSWORD_PBKDF2, span_of(h->text, h->n), PASSWORD_COST);
}

static void
hashed(struct worker_job *job)
{
	struct hashing *h = container_of(job, struct hashing, job);

	h->done(h->arg, &h->password);
	explicit_bzero(h->text, sizeof h->text);
	free(h);
}

void
user_hash(struct broker *b, struct span text, user_hash_fn *done, void *arg)
{
	static const enum password_kind kinds[] = { PASSWORD_SHA256, PASSWORD_SHA512,
		PASSWORD_PBKDF2 };
	enum password_kind kind = kinds[b->cfg->password_kind];
	struct hashing *h;

	assert(text.n <= PASSWORD_LEN_MAX);
	if (!password_is_slow(kind)) {
		struct password p;

		password_make(&p, kind, text, 0);
		done(arg, &p);
		return;
	}
	h = xcalloc(1, sizeof *h);
	h->broker = b;
	h->done = done;
	h->arg = arg;
	h->n = text.n;
	memcpy(h->text, SPAN_CHARS(text), text.n);
	h->job.run = hash;
	h->job.done = hashed;
	if (b->hashers != NULL) {
		workers_submit(b->hashers, &h->job);
		return;
	}
	hash(&h->job);
	hashed(&h->job);
}

/* ---- default accounts ---- */

static void
admit(struct user *u, struct vhost *vh)
{
	const struct error *e = permission_set(u, vh, ".*", ".*", ".*");

	if (e != NULL)
		log_error("user '%s': %s", u->name, e->text);
}

/* Only a new one gets rights: what an operator took away since stays away. They come before its own record, so that
 * whoever finds that after a crash finds them too. */
static void
add_administrator(struct broker *b, const char *name, const char *password, bool loopback_only,
    enum password_kind kind)
{
	struct span tag = SPAN_LIT("administrator");
	struct password p;
	const struct user_spec spec = { .name = span_str(name),
		.password = &p,
		.tag = &tag,
		.tag_count = 1,
		.loopback_only = loopback_only };
	bool was_silent = b->is_silent;
	const struct error *e;
	struct user *u;
	bool is_new;

	password_make(&p, kind, span_str(password), PASSWORD_COST);
	b->is_silent = true;
	e = make_or_change(b, &spec, true, &u, &is_new);
	if (e != NULL)
		log_error("user '%s': %s", name, e->text);
	for (struct vhost *vh = e == NULL && is_new ? b->vhosts : NULL; vh != NULL;
	     vh = vh->hh.next)
		admit(u, vh);
	if (e == NULL)
		persist_user(u);
	b->is_silent = was_silent;
}

void
users_admit_administrators(struct broker *b, struct vhost *vh)
{
	for (struct user *u = b->users; u != NULL; u = u->hh.next)
		if ((u->tags & TAG_ADMINISTRATOR) != 0 && !u->of_settings &&
		    !permission_vhost(u, vh))
			admit(u, vh);
}

/* The passwords of admin and guest are known to everybody: nothing is gained by hashing them at length. */
void
users_begin(struct broker *b)
{
	const struct config *cfg = b->cfg;

	if (cfg->default_user != NULL) {
		add_administrator(b, cfg->default_user, cfg->default_password,
		    !cfg->default_user_remote, PASSWORD_PBKDF2);
	} else if (!cfg->has_users) {
		add_administrator(b, "admin", "admin", true, PASSWORD_SHA256);
		add_administrator(b, "guest", "guest", true, PASSWORD_SHA256);
	}
}

static bool
others_are_there(const struct broker *b)
{
	for (const struct user *u = b->users; u != NULL; u = u->hh.next)
		if (!u->is_default)
			return true;
	return false;
}

/* Accounts that were made from the settings, or because they said nothing, follow them until somebody changes them. */
void
users_go_on(struct broker *b)
{
	const struct config *cfg = b->cfg;
	struct user *u, *next;
	bool others = others_are_there(b), replaced = false;

	if (b->users == NULL)
		users_begin(b);
	if (cfg->default_user == NULL)
		return;
	HASH_ITER(hh, b->users, u, next)
	{
		if (u->is_default && strcmp(u->name, cfg->default_user) != 0) {
			log_info("the default account '%s' goes: default_user is '%s'", u->name,
			    cfg->default_user);
			user_clear(u);
			replaced = true;
		}
	}
	u = user_find(b, span_str(cfg->default_user));
	if ((u == NULL && (replaced || !others)) ||
	    (u != NULL && u->is_default &&
	        (u->loopback_only == cfg->default_user_remote ||
	            !password_is(&u->password, span_str(cfg->default_password)))))
		users_begin(b);
}

void
users_drop_defaults(struct broker *b, const char *who)
{
	struct user *u, *next;

	if (b->cfg->default_user != NULL || !others_are_there(b))
		return;
	HASH_ITER(hh, b->users, u, next)
	{
		if (!u->is_default)
			continue;
		log_info("the default account '%s' goes: %s", u->name, who);
		user_clear(u);
	}
}
