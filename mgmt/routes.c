/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/routes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/attr.h"
#include "base/log.h"
#include "broker/user.h"
#include "mgmt/request.h"
#include "net/transport.h"

const struct route routes[] = {
#define ROUTE(method, path, needs, fn, help) \
	{ EVHTTP_REQ_##method, #method, path, NEEDS_##needs, fn, help },
#include "mgmt/routes.def"
#undef ROUTE
};
const size_t route_count = COUNT_OF(routes);

static size_t
segment(const char *p)
{
	return strcspn(p, "/");
}

bool
route_match(const char *pattern, const char *path, struct route_arg args[ROUTE_ARGS_MAX])
{
	unsigned n_args = 0;

	while (*pattern == '/' && *path == '/') {
		size_t want = segment(++pattern), got = segment(++path);

		if (*pattern == ':') {
			char *raw = strndup(path, got);

			if (n_args == ROUTE_ARGS_MAX || raw == NULL) {
				free(raw);
				return false;
			}
			/* once, and '+' is a plus */
			args[n_args].p = evhttp_uridecode(raw, 0, &args[n_args].n);
			free(raw);
			if (args[n_args++].p == NULL)
				return false;
		} else if (want != got || memcmp(pattern, path, want) != 0) {
			return false;
		}
		pattern += want;
		path += got;
	}
	if (*pattern == '\0' && strcmp(path, "/") == 0)
		return true; /* one slash at the end means nothing */
	return *pattern == '\0' && *path == '\0';
}

static void
args_free(struct route_arg args[ROUTE_ARGS_MAX])
{
	for (unsigned i = 0; i < ROUTE_ARGS_MAX; i++)
		free(args[i].p);
	memset(args, 0, sizeof(struct route_arg) * ROUTE_ARGS_MAX);
}

/* The row for path and method; *path_known tells 405 from 404. */
static const struct route *
find(struct request *r, const char *path, int method, bool *path_known)
{
	for (size_t i = 0; i < route_count; i++) {
		args_free(r->args);
		if (!route_match(routes[i].path, path, r->args))
			continue;
		*path_known = true;
		if (routes[i].method == method)
			return &routes[i];
	}
	args_free(r->args);
	return NULL;
}

/* What may be asked of a path: "HEAD, GET, OPTIONS". */
static void
set_allow(struct request *r, const char *path)
{
	struct evbuffer *b = evbuffer_new();

	for (size_t i = 0; b != NULL && i < route_count; i++) {
		if (route_match(routes[i].path, path, r->args))
			(void)evbuffer_add_printf(b,
			    routes[i].method == EVHTTP_REQ_GET ? "HEAD, %s, " : "%s, ",
			    routes[i].method_name);
		args_free(r->args);
	}
	if (b == NULL)
		return;
	(void)evbuffer_add_printf(b, "OPTIONS%c", '\0');
	reply_header(r, "Allow", (const char *)evbuffer_pullup(b, -1));
	evbuffer_free(b);
}

static bool
allowed(struct request *r)
{
	static const uint32_t tags[] = {
		[NEEDS_ANY_TAG] =
		    TAG_ADMINISTRATOR | TAG_MONITORING | TAG_POLICYMAKER | TAG_MANAGEMENT,
		[NEEDS_ADMINISTRATOR] = TAG_ADMINISTRATOR,
	};

	if (r->route->needs == NEEDS_NOBODY)
		return true;
	r->user = request_login(r);
	if (r->user == NULL)
		return false;
	if (r->user->tags & tags[r->route->needs])
		return true;
	log_line(LOG_WARNING, &(struct log_who){ .peer = r->peer->host, .user = r->user->name },
	    "%s %s refused: the user has not the tag for it", r->route->method_name,
	    r->route->path);
	/* no new login prompt: another password would not help */
	reply_error(r, 401, "not_authorised",
	    r->route->needs == NEEDS_ADMINISTRATOR ? "Not administrator user"
	                                           : "Not management user");
	return false;
}

void
routes_dispatch(struct mgmt *m, struct evhttp_request *req, const struct transport_addr *peer)
{
	struct request r = { .m = m, .ev = req, .peer = peer };
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;
	int method = (int)evhttp_request_get_command(req);
	bool path_known = false;

	if (path == NULL)
		path = "/";
	r.route = find(&r, path, method == EVHTTP_REQ_HEAD ? EVHTTP_REQ_GET : method, &path_known);
	if (r.route != NULL) {
		if (allowed(&r))
			r.route->fn(&r);
	} else if (!path_known) {
		reply_error(&r, 404, "Object Not Found", "Not Found");
	} else {
		set_allow(&r, path);
		if (method == EVHTTP_REQ_OPTIONS)
			reply_bytes(&r, 200, NULL, NULL);
		else
			reply_error(&r, 405, "method_not_allowed", "Method Not Allowed");
	}
	args_free(r.args);
}

static void
help_row(struct evbuffer *b, const struct route *row)
{
	static const char *const needs[] = { [NEEDS_NOBODY] = "nobody",
		[NEEDS_ANY_TAG] = "a user with any tag",
		[NEEDS_ADMINISTRATOR] = "administrator" };

	(void)evbuffer_add_printf(b, "<tr><td>%s<td>%s<td>%s<td>%s</tr>\n", row->method_name,
	    row->path, needs[row->needs], row->help);
}

void
route_help(struct request *r)
{
	struct evbuffer *b = evbuffer_new();

	if (b == NULL) {
		reply_error(r, 500, "internal_error", "no memory");
		return;
	}
	(void)evbuffer_add_printf(b,
	    "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Hermes HTTP "
	    "API</title>\n"
	    "<style>td{padding:.2em 1em;text-align:left}</style>\n<h1>Hermes HTTP API</h1>\n"
	    "<table><tr><th>method<th>path<th>for<th>what it does</tr>\n");
	for (size_t i = 0; i < route_count; i++)
		help_row(b, &routes[i]);
	(void)evbuffer_add_printf(b, "</table></html>\n");
	reply_bytes(r, 200, "text/html; charset=utf-8", b);
	evbuffer_free(b);
}
