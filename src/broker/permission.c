/* SPDX-License-Identifier: Apache-2.0
 * Permissions: see the header. Patterns are matched byte by byte, as RabbitMQ does. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "broker/permission.h"

#include <assert.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum {
	KINDS = 3, /* of enum permission_kind */
	PATTERN_LEN_MAX = 4096,
	/* Bounds for one match: a pattern that needs more refuses. About a millisecond. */
	STEPS_MAX = 50000,
	DEPTH_MAX = 1000,
	HEAP_MAX_KIB = 256
};

struct pattern {
	pcre2_code *code; /* owned; NULL: `all` decides */
	bool all;
};

struct permission {
	struct permission *next;
	const struct vhost *vhost; /* borrowed */
	struct pattern pattern[KINDS];
};

static pcre2_match_context *bounds; /* these two live until the process ends */
static pcre2_match_data *match_data;

static void
set_up(void)
{
	if (bounds != NULL)
		return;
	bounds = pcre2_match_context_create(NULL);
	match_data = pcre2_match_data_create(1, NULL);
	if (bounds == NULL || match_data == NULL) {
		log_error("no memory for PCRE2");
		log_flush();
		abort();
	}
	pcre2_set_match_limit(bounds, STEPS_MAX);
	pcre2_set_depth_limit(bounds, DEPTH_MAX);
	pcre2_set_heap_limit(bounds, HEAP_MAX_KIB);
}

/* ---- patterns ---- */

static const struct error *
pattern_make(struct pattern *p, const char *text)
{
	size_t n = strlen(text), at;
	PCRE2_UCHAR why[128];
	int code;

	*p = (struct pattern){ .all = strcmp(text, ".*") == 0 };
	/* No name is empty, so these two match none. */
	if (p->all || n == 0 || strcmp(text, "^$") == 0)
		return NULL;
	if (n > PATTERN_LEN_MAX)
		return error_make(E_PRECONDITION_FAILED,
		    "a pattern has %zu bytes, at most %d are allowed", n, PATTERN_LEN_MAX);
	set_up();
	p->code = pcre2_compile((PCRE2_SPTR)text, n, 0, &code, &at, NULL);
	if (p->code != NULL)
		return NULL;
	pcre2_get_error_message(code, why, sizeof why);
	return error_make(E_PRECONDITION_FAILED,
	    "pattern '%.100s' is no regular expression: %s at byte %zu", text, (const char *)why,
	    at);
}

static void
patterns_free(struct pattern p[KINDS])
{
	for (int i = 0; i < KINDS; i++)
		pcre2_code_free(p[i].code);
}

static bool
pattern_matches(const struct pattern *p, const struct user *u, struct span name)
{
	static struct log_limit limit = { .burst = 20 };
	int rc;

	if (p->code == NULL)
		return p->all;
	rc = pcre2_match(p->code, name.n > 0 ? (PCRE2_SPTR)name.p : (PCRE2_SPTR) "", name.n, 0, 0,
	    match_data, bounds);
	if (rc < 0 && rc != PCRE2_ERROR_NOMATCH && log_allowed(&limit))
		log_warning("a permission pattern of user '%s' takes too long for a name of %zu "
		            "bytes (PCRE2 error "
		            "%d): access is refused",
		    u->name, name.n, rc);
	return rc >= 0;
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
	struct pattern made[KINDS] = { 0 };
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
	if (p != NULL && pattern_matches(&p->pattern[kind], c->user, name))
		return NULL;
	return error_make(E_ACCESS_REFUSED,
	    "access to %s '%.*s' in vhost '%s' refused for user '%s'", what, SPAN_FMT(name),
	    c->vhost->name, c->user->name);
}
