/* SPDX-License-Identifier: Apache-2.0
 * Vhosts, users and policies of the settings. What is as the settings say already is left alone, so that a start that
 * changes nothing writes nothing. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/worker.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/policy.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "settings.h"
#include "settings_apply.h"

/* A refusal over several lines is one of the log. */
static void
refused(const struct settings_item *t, const char *what, const struct error *e, struct problems *p)
{
	char text[sizeof e->text];
	size_t n = 0;

	for (const char *s = e->text; *s != '\0'; s++) {
		bool is_break = *s == '\n';

		if (!is_break)
			text[n++] = *s;
		else if (n > 0 && text[n - 1] != ' ')
			text[n++] = ' ';
	}
	while (n > 0 && text[n - 1] == ' ')
		n--;
	problem(p, t->at, "%s '%.100s': %.*s", what, t->name, (int)n, text);
}

/* What somebody else had changed, or, as far as is known, the file says otherwise than before. */
static void PRINTF(4, 5) say_set(
    const struct broker *b, const struct settings_item *t, bool was_changed, const char *fmt, ...)
{
	static struct log_limit limit = { .burst = 50 };
	char what[640]; /* two names and some words */
	va_list ap;

	if (!log_allowed(&limit))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	log_line(was_changed ? LOG_WARNING : LOG_INFO, NULL,
	    "%s set%s to what line %" PRIu32 " of %s says", what, was_changed ? " back" : "",
	    t->at.line, b->settings_file != NULL ? b->settings_file : "the settings");
}

struct vhost *
settings_vhost_of(
    struct broker *b, const struct settings_item *t, const char *name, struct problems *p)
{
	struct vhost *vh = vhost_find(b, span_str(name));

	if (vh == NULL && !p->is_partial)
		problem(p, t->at, "no vhost '%.100s' here; add it to vhosts", name);
	return vh;
}

/* tag: room for TAGS_MAX + 1, so that too many are refused by whoever counts them. */
static uint32_t
take_tags(const struct settings_texts *t, struct span *tag)
{
	uint32_t n = t->count <= TAGS_MAX ? t->count : TAGS_MAX + 1;

	for (uint32_t i = 0; i < n; i++)
		tag[i] = span_str(t->item[i]);
	return n;
}

static bool
same_tags(const struct tags *have, const struct settings_texts *t)
{
	if (have->count != t->count)
		return false;
	for (uint32_t i = 0; i < t->count; i++)
		if (strcmp(have->item[i], t->item[i]) != 0)
			return false;
	return true;
}

static bool
same_limit(const struct limit *a, const struct limit *b)
{
	return a->is_set == b->is_set && (!a->is_set || a->value == b->value);
}

/* ---- vhosts ---- */

static void
set_vhost_limits(struct vhost *vh, const struct settings_item *t)
{
	for (unsigned i = 0; t->has_limits && i < VHOST_LIMITS; i++) {
		if (same_limit(&vh->limit[i], &t->limit[i]))
			continue;
		if (t->limit[i].is_set)
			vhost_limit_set(vh, (enum vhost_limit)i, t->limit[i].value);
		else
			vhost_limit_clear(vh, (enum vhost_limit)i);
	}
}

static bool
same_vhost(const struct vhost *vh, const struct settings_item *t)
{
	const char *type = vh->default_queue_type != NULL ? vh->default_queue_type : "undefined";

	return (t->description == NULL || strcmp(vh->description, t->description) == 0) &&
	       (t->default_queue_type == NULL || strcmp(type, t->default_queue_type) == 0) &&
	       (!t->tags.is_given || same_tags(&vh->tags, &t->tags));
}

void
settings_apply_vhost(struct broker *b, const struct settings_item *t, struct problems *p)
{
	struct vhost *vh = vhost_find(b, span_str(t->name));
	struct span tag[TAGS_MAX + 1];
	struct vhost_spec spec = { .tracing = -1 };
	const struct error *e;
	bool created = false;

	if (t->description != NULL)
		spec.description = span_str(t->description);
	if (t->default_queue_type != NULL)
		spec.default_queue_type = span_str(t->default_queue_type);
	if (t->tags.is_given) {
		spec.tag = tag;
		spec.tag_count = take_tags(&t->tags, tag);
	}
	if (vh != NULL && !same_vhost(vh, t))
		say_set(b, t, vh->in_settings.is_changed, "vhost '%s' is", t->name);
	else if (vh == NULL && b->settings_read > 1)
		say_set(b, t, false, "vhost '%s' is made and", t->name);
	if ((vh == NULL || !same_vhost(vh, t)) &&
	    (e = vhost_set(b, span_str(t->name), &spec, &vh, &created)) != NULL) {
		refused(t, "vhost", e, p);
		return;
	}
	if (created)
		users_admit_administrators(b, vh);
	set_vhost_limits(vh, t);
	vh->in_settings.object = b->settings_read;
	vh->in_settings.is_changed = false;
	if (t->has_limits)
		vh->in_settings.limits = b->settings_read;
}

/* ---- passwords ---- */

struct password_work {
	struct worker_job job; /* first */
	bool is_done;
	atomic_bool is_ended; /* nobody waits for it any more: a worker need not begin */
	enum password_kind kind;
	struct password was, is; /* of the account, if there is one; what it is to have */
	size_t n;
	uint8_t text[PASSWORD_LEN_MAX];
};

static void
free_work(struct password_work *w)
{
	explicit_bzero(w, sizeof *w);
	free(w);
}

static void
compare_or_make(struct worker_job *job)
{
	struct password_work *w = container_of(job, struct password_work, job);
	struct span text = span_of(w->text, w->n);

	if (atomic_load(&w->is_ended))
		return;
	if (w->was.kind != PASSWORD_NONE && password_is(&w->was, text))
		w->is = w->was;
	else
		password_make(&w->is, w->kind, text, PASSWORD_COST);
}

static void
made(struct worker_job *job)
{
	struct password_work *w = container_of(job, struct password_work, job);

	w->is_done = true;
	if (atomic_load(&w->is_ended))
		free_work(w);
}

/* Without workers it is a trial, whose hash nobody can steal. */
struct password_work *
password_work_begin(struct broker *b, const struct settings_item *t)
{
	const struct user *u = user_find(b, span_str(t->name));
	struct password_work *w;

	if (t->has_hash)
		return NULL;
	w = xcalloc(1, sizeof *w);
	w->kind = b->hashers != NULL ? PASSWORD_PBKDF2 : PASSWORD_SHA256;
	w->n = strlen(t->password);
	memcpy(w->text, t->password, w->n);
	w->job.run = compare_or_make;
	w->job.done = made;
	if (u != NULL)
		w->was = u->password;
	if (b->hashers == NULL) {
		compare_or_make(&w->job);
		w->is_done = true;
	} else if (!password_is_slow(w->was.kind) && password_is(&w->was, span_of(w->text, w->n))) {
		w->is = w->was;
		w->is_done = true;
	} else {
		workers_submit(b->hashers, &w->job);
	}
	return w;
}

bool
password_work_is_done(const struct password_work *w)
{
	return w == NULL || w->is_done;
}

void
password_work_end(struct password_work **wp)
{
	struct password_work *w = *wp;

	*wp = NULL;
	if (w == NULL)
		return;
	if (w->is_done)
		free_work(w);
	else
		atomic_store(&w->is_ended, true);
}

/* ---- users ---- */

static bool
same_password(const struct password *a, const struct password *b)
{
	return a->kind == b->kind && a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

static const struct error *
set_user(struct broker *b, const struct settings_item *t, const struct password *password)
{
	const struct user *u = user_find(b, span_str(t->name));
	struct span tag[TAGS_MAX + 1];
	bool is_same;
	const struct user_spec spec = { .name = span_str(t->name),
		.password = password,
		.tag = tag,
		.tag_count = take_tags(&t->tags, tag),
		.of_settings = true };

	is_same = u != NULL && !u->loopback_only && same_password(&u->password, password) &&
	          same_tags(&u->tag_list, &t->tags);
	if (is_same && u->of_settings && !u->is_default)
		return NULL;
	if (u != NULL && !u->is_default && !is_same)
		say_set(b, t, !u->of_settings, "user '%s' is", t->name);
	else if (u == NULL && b->settings_read > 1)
		say_set(b, t, false, "user '%s' is made and", t->name);
	return user_set(b, &spec, NULL);
}

static void
set_user_limits(struct user *u, const struct settings_item *t)
{
	for (unsigned i = 0; t->has_limits && i < USER_LIMITS; i++) {
		if (same_limit(&u->limit[i], &t->limit[i]))
			continue;
		if (t->limit[i].is_set)
			user_limit_set(u, (enum user_limit)i, t->limit[i].value);
		else
			user_limit_clear(u, (enum user_limit)i);
	}
}

static bool
same_permission(const struct permission *have, char *const *text)
{
	for (int i = 0; i < PERM_KINDS; i++)
		if (strcmp(have->text[i], text[i]) != 0)
			return false;
	return true;
}

static bool
has_text(const struct settings_texts *t, const char *text)
{
	for (uint32_t i = 0; i < t->count; i++)
		if (strcmp(t->item[i], text) == 0)
			return true;
	return false;
}

/* Those of the entry are all that there are. */
static void
set_permissions(struct user *u, const struct settings_item *t, struct problems *p)
{
	char *const *text = t->permissions.item;
	struct permission *have, *next;
	const struct error *e;

	for (uint32_t i = 0; i < t->vhosts.count; i++) {
		struct vhost *vh = settings_vhost_of(u->broker, t, t->vhosts.item[i], p);

		have = vh != NULL ? permission_find(u, vh) : NULL;
		if (vh == NULL || (have != NULL && same_permission(have, text)))
			continue;
		if (u->in_settings.object != 0 || have != NULL)
			say_set(u->broker, t, u->in_settings.rights_changed,
			    "permissions of user '%s' in vhost '%s' are", u->name, vh->name);
		e = permission_set(u, vh, text[PERM_CONFIGURE], text[PERM_WRITE], text[PERM_READ]);
		if (e != NULL)
			refused(t, "permissions of user", e, p);
	}
	HASH_ITER(hh, u->permissions, have, next)
	{
		if (has_text(&t->vhosts, have->vhost->name))
			continue;
		say_set(u->broker, t, u->in_settings.rights_changed,
		    "permissions of user '%s' in vhost '%s' go: they are", u->name,
		    have->vhost->name);
		permission_clear(have);
	}
	u->in_settings.rights = u->broker->settings_read;
	u->in_settings.rights_changed = false;
}

void
settings_apply_user(struct broker *b, const struct settings_item *t, const struct password_work *w,
    struct problems *p)
{
	const struct error *e = set_user(b, t, w != NULL ? &w->is : &t->hash);
	struct user *u;

	if (e != NULL) {
		refused(t, "user", e, p);
		return;
	}
	u = user_find(b, span_str(t->name));
	set_user_limits(u, t);
	if (t->has_limits)
		u->in_settings.limits = b->settings_read;
	if (t->permissions.is_given)
		set_permissions(u, t, p);
	u->in_settings.object = b->settings_read;
	u->in_settings.is_changed = false;
}

/* ---- policies ---- */

static bool
same_table(const struct table *a, const struct table *b)
{
	struct span x = table_span(a), y = table_span(b);

	return x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0);
}

void
settings_apply_policy(struct broker *b, int kind, const struct settings_item *t, struct problems *p)
{
	struct vhost *vh = settings_vhost_of(b, t, t->vhost, p);
	const struct policy_spec spec = { .name = span_str(t->name),
		.pattern = span_str(t->pattern),
		.apply_to = span_str(t->apply_to),
		.priority = t->priority,
		.definition = t->arguments,
		.of_settings = true };
	const char *what = kind == POLICY_USER ? "policy" : "operator policy";
	struct policy *have;
	const struct error *e = NULL;
	bool is_same;

	if (vh == NULL)
		return;
	have = policy_find(vh, (enum policy_kind)kind, spec.name);
	is_same = have != NULL && have->priority == t->priority &&
	          strcmp(have->pattern_text, t->pattern) == 0 &&
	          strcmp(policy_apply_to(have), t->apply_to) == 0 &&
	          same_table(have->definition, t->arguments);
	if (have != NULL && !is_same)
		say_set(
		    b, t, !have->of_settings, "%s '%s' of vhost '%s' is", what, t->name, vh->name);
	else if (have == NULL && b->settings_read > 1)
		say_set(b, t, false, "%s '%s' of vhost '%s' is made and", what, t->name, vh->name);
	if (!is_same || !have->of_settings)
		e = policy_set(vh, (enum policy_kind)kind, &spec, NULL);
	if (e != NULL)
		refused(t, what, e, p);
	else
		policy_find(vh, (enum policy_kind)kind, spec.name)->in_settings = b->settings_read;
}

/* ---- what the settings had ---- */

/* At most so many of a kind in one go: a scan for each alone would be long where many go. */
enum { DROP_MAX = 16 };

static unsigned
drop_users(struct broker *b, const struct settings *s)
{
	static struct log_limit limit = { .burst = 50 };
	struct user *u, *next;
	unsigned n = 0;

	HASH_ITER(hh, b->users, u, next)
	{
		if (!u->of_settings || settings_has(&s->users, NULL, u->name))
			continue;
		if (log_allowed(&limit))
			log_info("user '%s' goes: the settings do not have it any more", u->name);
		user_clear(u);
		if (++n == DROP_MAX)
			break;
	}
	return n;
}

static unsigned
drop_policies(struct vhost *vh, enum policy_kind kind, const struct settings_list *l)
{
	static struct log_limit limit = { .burst = 50 };
	struct policy *q, *next;
	unsigned n = 0;

	if (!l->is_given)
		return 0;
	HASH_ITER(hh, vh->policies[kind], q, next)
	{
		if (!q->of_settings || settings_has(l, vh->name, q->name))
			continue;
		if (log_allowed(&limit))
			log_info("%s '%s' of vhost '%s' goes: the settings do not have it any more",
			    kind == POLICY_USER ? "policy" : "operator policy", q->name, vh->name);
		(void)policy_clear(vh, kind, span_str(q->name));
		if (++n == DROP_MAX)
			break;
	}
	return n;
}

bool
settings_drop_some(struct broker *b, const struct settings *s)
{
	if (s->users.is_given && drop_users(b, s) > 0)
		return true;
	for (struct vhost *vh = b->vhosts; vh != NULL; vh = vh->hh.next)
		if (drop_policies(vh, POLICY_USER, &s->policies) +
		        drop_policies(vh, POLICY_OPERATOR, &s->operator_policies) >
		    0)
			return true;
	return false;
}
