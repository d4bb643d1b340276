/* SPDX-License-Identifier: Apache-2.0
 * RabbitMQ's order: an unknown path is 404 and a wrong method 405 before anybody asks who it is; then come login, tag and
 * vhost (all 401), what the client accepts (406), whether the vhost is there (404), and last the body (400). */
#include "mgmt/dispatch.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/permission.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/body.h"
#include "mgmt/login.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

/* NULL, or why the user may not see the vhost. */
static const char *
not_seen(const struct request *r)
{
	bool is_administrator = (r->user->tags & TAG_ADMINISTRATOR) != 0;

	if (permission_vhost(r->user, r->vhost))
		return NULL;
	if (r->route->vhost == VHOST_OWN && is_administrator)
		return "Access refused.";
	if (r->route->vhost == VHOST_MONITORED && (r->user->tags & TAG_MONITORING) != 0)
		return NULL;
	if (is_administrator)
		return NULL;
	return r->route->needs == NEEDS_POLICYMAKER ? "User not authorised to access object"
	                                            : "User not authorised to access virtual host";
}

/* By convention the vhost is the first ':' but for names such as /api/parameters/:component/:vhost. */
static struct span
vhost_name(const struct request *r)
{
	const char *at = strstr(r->route->path, "/:vhost");
	unsigned i = 0;

	for (const char *p = r->route->path; p < at; p++)
		i += *p == ':';
	return request_arg(r, i);
}

static bool
has_tag(const struct request *r)
{
	static const uint32_t tags[] = {
		[NEEDS_ANY_TAG] =
		    TAG_ADMINISTRATOR | TAG_MONITORING | TAG_POLICYMAKER | TAG_MANAGEMENT,
		[NEEDS_MONITORING] = TAG_ADMINISTRATOR | TAG_MONITORING,
		[NEEDS_POLICYMAKER] = TAG_ADMINISTRATOR | TAG_POLICYMAKER,
		[NEEDS_ADMINISTRATOR] = TAG_ADMINISTRATOR,
	};

	return (r->user->tags & tags[r->route->needs]) != 0;
}

static const char *
why_not(const struct request *r)
{
	static const char *const texts[] = { [NEEDS_ANY_TAG] = "Not management user",
		[NEEDS_MONITORING] = "Not monitor user",
		[NEEDS_POLICYMAKER] = "User not authorised to access object",
		[NEEDS_ADMINISTRATOR] = "Not administrator user" };
	enum route_needs needs = r->route->needs;

	if ((r->user->tags &
	        (TAG_ADMINISTRATOR | TAG_MONITORING | TAG_POLICYMAKER | TAG_MANAGEMENT)) == 0)
		needs = NEEDS_ANY_TAG;
	return texts[needs];
}

/* --- what the client takes ---------------------------------------------------- */

/* Does one of the ranges of an Accept header cover what the route answers with? (RFC 9110, 12.5.1) */
static bool
takes_answer(const struct request *r)
{
	static const char *const types[] = { [BODY_JSON] = "application/json",
		[BODY_LONG] = "application/json",
		[BODY_RAW] = "application/json",
		[BODY_EVENTS] = "text/event-stream",
		[BODY_TEXT] = "text/plain" };
	const char *header = request_header(r, "Accept"), *type = types[r->route->body];
	const char *const ranges[] = { type, type[0] == 'a' ? "application/*" : "text/*", "*/*" };

	for (const char *p = header; p != NULL && *p != '\0';) {
		size_t n, name;

		p += strspn(p, " \t,");
		n = strcspn(p, ",");
		name = strcspn(p, " \t,;");
		for (unsigned i = 0; i < COUNT_OF(ranges); i++) {
			const char *q =
			    name == strlen(ranges[i]) && strncasecmp(p, ranges[i], name) == 0
			        ? p
			        : NULL;

			if (q == NULL)
				continue;
			q = memmem(p, n, "q=", 2);
			if (q == NULL || strtod(q + 2, NULL) > 0)
				return true;
		}
		p += n;
	}
	return header == NULL || *header == '\0';
}

/* --- the steps ------------------------------------------------------------------ */

/* Tag, vhost, and what the client takes. False: answered. */
static bool
may(struct request *r)
{
	const char *why = has_tag(r) ? NULL : why_not(r);

	if (why == NULL && r->route->vhost != VHOST_NONE) {
		r->vhost = vhost_find(r->m->broker, vhost_name(r));
		why = r->vhost != NULL ? not_seen(r) : NULL;
	}
	if (why != NULL) {
		reply_not_authorised(r, why);
		return false;
	}
	if (!takes_answer(r)) {
		reply_empty(r, 406);
		return false;
	}
	if (r->route->vhost == VHOST_NONE || r->vhost != NULL)
		return true;
	if (r->route->method == EVHTTP_REQ_PUT || r->route->method == EVHTTP_REQ_POST)
		reply_error(r, 404, "not_found", "vhost_not_found");
	else
		reply_not_found(r);
	return false;
}

/* A long body was parsed elsewhere: meanwhile the user or the vhost may have gone, or rights been taken away. */
static bool
still_may(struct request *r)
{
	r->user = request_user(r);
	if (r->user != NULL)
		return may(r);
	reply_error(r, 401, "not_authorized", "Login failed");
	return false;
}

/* What it does is done for whoever asks: in the log, and in events. */
static void
call(struct request *r)
{
	struct broker *b = r->m->broker;
	const struct log_who who = { .peer = r->peer.host, .user = r->user_name };

	b->actor = &who;
	r->route->fn(r);
	b->actor = NULL;
}

static void
on_body(struct request *r)
{
	if (!r->is_deferred || r->user_name == NULL || still_may(r))
		call(r);
}

bool
requests_go_on(struct mgmt *m)
{
	struct request *r = TAILQ_FIRST(&m->deferred);

	if (m->again == 0)
		return false;
	while (!r->is_again)
		r = TAILQ_NEXT(r, link);
	r->is_again = false;
	m->again--;
	on_body(r);
	return m->again > 0;
}

static void
take_body(struct request *r)
{
	bool has = r->route->method == EVHTTP_REQ_PUT || r->route->method == EVHTTP_REQ_POST;
	size_t max = (size_t)r->m->cfg->http_body;

	if (!has || r->route->body == BODY_RAW)
		call(r);
	else if (r->route->body == BODY_LONG || max < BODY_SHORT_MAX)
		body_read(r, max, on_body);
	else
		body_read(r, BODY_SHORT_MAX, on_body);
}

void
dispatch_logged_in(struct request *r, struct user *u)
{
	r->user = u;
	r->user_id = u->id;
	r->password_changes = u->password_changes;
	if (r->user_name == NULL)
		r->user_name = xstrdup(u->name);
	if (may(r))
		take_body(r);
}

/* A page of another site can make a browser send requests with the password that it remembers. It cannot make it hide
 * where they come from. */
static bool
is_foreign(const struct request *r)
{
	const char *site = request_header(r, "Sec-Fetch-Site");
	int method = (int)evhttp_request_get_command(r->ev);

	if (site == NULL || method == EVHTTP_REQ_GET || method == EVHTTP_REQ_HEAD)
		return false;
	return strcasecmp(site, "same-origin") != 0 && strcasecmp(site, "none") != 0;
}

static void
no_such_method(struct request *r, const char *pattern)
{
	struct evbuffer *b = evbuffer_new();

	if (b == NULL)
		mem_exhausted(0, __builtin_return_address(0));
	route_allow(pattern, b);
	(void)evbuffer_add(b, "", 1);
	reply_header(r, "allow", (const char *)evbuffer_pullup(b, -1));
	evbuffer_free(b);
	reply_empty(r, evhttp_request_get_command(r->ev) == EVHTTP_REQ_OPTIONS ? 200 : 405);
}

/* Is each % of a path followed by two digits? If not, nobody can tell which name is meant. */
static bool
is_encoded(const char *path)
{
	while ((path = strchr(path, '%')) != NULL) {
		if (!isxdigit((unsigned char)path[1]) || !isxdigit((unsigned char)path[2]))
			return false;
		path += 3;
	}
	return true;
}

/* What stands behind management.path_prefix, "" if that is all there is; NULL: the path is another's. */
static const char *
below_prefix(const struct request *r, const char *path)
{
	const char *prefix = mgmt_prefix(r->m);
	size_t n = strlen(prefix);

	if (strncmp(path, prefix, n) != 0 || (path[n] != '/' && (path[n] != '\0' || n == 0)))
		return NULL;
	return path + n;
}

static bool
is_for_metrics(const struct request *r)
{
	return r->http == r->m->http_metrics;
}

/* Whose path is it? On the port for metrics there is nothing else, and no prefix. */
static const char *
own_path(const struct request *r, const char *whole)
{
	if (!is_for_metrics(r))
		return below_prefix(r, whole);
	return strncmp(whole, "/metrics", 8) == 0 ? whole : NULL;
}

/* Nobody logs in for metrics on their port. */
static void
take_metrics(struct request *r)
{
	if (takes_answer(r))
		take_body(r);
	else
		reply_empty(r, 406);
}

static void
begin(struct request *r)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r->ev);
	const char *whole = uri != NULL ? evhttp_uri_get_path(uri) : NULL, *pattern = NULL,
	           *path = own_path(r, whole != NULL ? whole : "/");

	if (path != NULL)
		r->route =
		    route_of(path, (int)evhttp_request_get_command(r->ev), r->args, &pattern);
	if (whole != NULL && !is_encoded(whole))
		reply_bad(r, "a %% in the path is not followed by two hexadecimal digits");
	else if (path != NULL && *path == '\0')
		reply_elsewhere(r, "/"); /* the addresses of the console's files are relative */
	else if (pattern == NULL)
		reply_not_found(r);
	else if (r->route == NULL)
		no_such_method(r, pattern);
	else if (is_foreign(r))
		reply_error(r, 403, "forbidden", "a page of another site may not do this");
	else if (is_for_metrics(r))
		take_metrics(r);
	else if (r->route->needs == NEEDS_NOBODY)
		take_body(r);
	else
		login_request(r);
}

void
dispatch(struct mgmt *m, struct http *http, struct evhttp_request *req,
    const struct transport_addr *peer)
{
	struct request *r = request_new(m, http, req, peer);

	m->current = r;
	begin(r);
	/* one that was deferred and answered is gone */
	if (m->current == r && !r->is_deferred) {
		assert(r->is_answered);
		request_free(r);
	}
	m->current = NULL;
}
