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
#include "broker/pattern.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum { KINDS = 3 /* of enum permission_kind */ };

struct permission {
	struct permission *next;
	const struct vhost *vhost;      /* borrowed */
	struct pattern *pattern[KINDS]; /* owned; NULL: it matches nothing */
};

/* ---- patterns ---- */

static const struct error *
pattern_make(struct pattern **p, const char *text)
{
	char why[128];

	/* No name is empty, so these two match none. */
	if (*text == '\0' || strcmp(text, "^$") == 0)
		return NULL;
	*p = pattern_new(span_str(text), why, sizeof why);
	if (*p != NULL)
		return NULL;
	return error_make(
	    E_PRECONDITION_FAILED, "pattern '%.100s' is no regular expression: %s", text, why);
}

static void
patterns_free(struct pattern *p[KINDS])
{
	for (int i = 0; i < KINDS; i++)
		pattern_free(&p[i]);
}

static bool
pattern_allows(const struct pattern *p, const struct user *u, struct span name)
{
	static struct log_limit limit = { .burst = 20 };
	enum pattern_result r;

	if (p == NULL)
		return false;
	r = pattern_match(p, name);
	if (r == PATTERN_TOO_LONG && log_allowed(&limit))
		log_warning("a permission pattern of user '%s' takes too long for a name of %zu "
		            "bytes: access is refused",
		    u->name, name.n);
	return r == PATTERN_YES;
}

/* ---- rights ---- */

static struct permission *
find(const struct user *u, const struct vhost *vh)
{
	struct permission *p = u->permissions;

	while (p != NULL && p->vhost != vh)
		p = p->next;
	return p;
}

const struct error *
permission_set(
    struct user *u, struct vhost *vh, const char *configure, const char *write, const char *read)
{
	const char *const text[KINDS] = {
		[PERM_CONFIGURE] = configure, [PERM_WRITE] = write, [PERM_READ] = read
	};
	struct pattern *made[KINDS] = { NULL };
	const struct error *e = NULL;
	struct permission *p;

	for (int i = 0; i < KINDS && e == NULL; i++)
		e = pattern_make(&made[i], text[i]);
	if (e != NULL) {
		patterns_free(made);
		return e;
	}
	p = find(u, vh);
	if (p == NULL) {
		p = xcalloc(1, sizeof *p);
		p->vhost = vh;
		p->next = u->permissions;
		u->permissions = p;
	}
	patterns_free(p->pattern);
	memcpy(p->pattern, made, sizeof made);
	vh->broker->permission_epoch++;
	return NULL;
}

void
permissions_free(struct user *u)
{
	struct permission *p;

	while ((p = u->permissions) != NULL) {
		u->permissions = p->next;
		patterns_free(p->pattern);
		free(p);
	}
}

bool
permission_vhost(const struct user *u, const struct vhost *vh)
{
	return find(u, vh) != NULL;
}

const struct error *
permission_check(
    const struct client *c, enum permission_kind kind, const char *what, struct span name)
{
	const struct permission *p;

	assert(c->user != NULL && c->vhost != NULL);
	if (name.n == 0)
		name = SPAN_LIT("amq.default");
	p = find(c->user, c->vhost);
	if (p != NULL && pattern_allows(p->pattern[kind], c->user, name))
		return NULL;
	return error_make(E_ACCESS_REFUSED,
	    "access to %s '%.*s' in vhost '%s' refused for user '%s'", what, SPAN_FMT(name),
	    c->vhost->name, c->user->name);
}
