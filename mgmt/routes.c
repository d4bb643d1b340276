/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/routes.h"

#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/attr.h"

const struct route routes[] = {
#define ROW(method, path, needs, vhost, body, fn, help) \
	{ EVHTTP_REQ_##method, #method, path, NEEDS_##needs, VHOST_##vhost, BODY_##body, fn, help },
#define ROUTE(method, path, needs, vhost, fn, help) ROW(method, path, needs, vhost, JSON, fn, help)
#define ROUTE_RAW(method, path, needs, vhost, fn, help) \
	ROW(method, path, needs, vhost, RAW, fn, help)
#define ROUTE_EVENTS(method, path, needs, vhost, fn, help) \
	ROW(method, path, needs, vhost, EVENTS, fn, help)
#define ROUTE_LONG(method, path, needs, vhost, fn, help) \
	ROW(method, path, needs, vhost, LONG, fn, help)
#define ROUTE_TEXT(method, path, needs, vhost, fn, help) \
	ROW(method, path, needs, vhost, TEXT, fn, help)
#include "mgmt/routes.def"
#undef ROUTE
#undef ROUTE_EVENTS
#undef ROUTE_LONG
#undef ROUTE_RAW
#undef ROUTE_TEXT
#undef ROW
};
const size_t route_count = COUNT_OF(routes);

const char *const route_needs_names[] = { [NEEDS_NOBODY] = "nobody",
	[NEEDS_ANY_TAG] = "management",
	[NEEDS_MONITORING] = "monitoring",
	[NEEDS_POLICYMAKER] = "policymaker",
	[NEEDS_ADMINISTRATOR] = "administrator" };
const char *const route_vhost_names[] = { [VHOST_NONE] = "none",
	[VHOST_VISIBLE] = "visible",
	[VHOST_MONITORED] = "monitored",
	[VHOST_OWN] = "own" };

static size_t
segment(const char *p)
{
	return strcspn(p, "/");
}

/* Without decoding: most rows are no match. */
static bool
has_form(const char *pattern, const char *path)
{
	while (*pattern == '/' && *path == '/') {
		size_t want = segment(++pattern), got = segment(++path);

		if (*pattern != ':' && (want != got || memcmp(pattern, path, want) != 0))
			return false;
		pattern += want;
		path += got;
	}
	if (*pattern == '\0' && strcmp(path, "/") == 0)
		return true; /* one slash at the end means nothing */
	return *pattern == '\0' && *path == '\0';
}

bool
route_match(const char *pattern, const char *path, struct route_arg args[ROUTE_ARGS_MAX])
{
	unsigned n = 0;

	if (!has_form(pattern, path))
		return false;
	while (*pattern == '/') {
		size_t want = segment(++pattern), got = segment(++path);

		if (*pattern == ':') {
			char *raw = strndup(path, got);

			if (n == ROUTE_ARGS_MAX || raw == NULL) {
				free(raw);
				return false;
			}
			/* once, and '+' is a plus */
			args[n].p = evhttp_uridecode(raw, 0, &args[n].n);
			free(raw);
			if (args[n++].p == NULL)
				return false;
		}
		pattern += want;
		path += got;
	}
	return true;
}

void
route_args_free(struct route_arg args[ROUTE_ARGS_MAX])
{
	for (unsigned i = 0; i < ROUTE_ARGS_MAX; i++)
		free(args[i].p);
	memset(args, 0, sizeof(struct route_arg) * ROUTE_ARGS_MAX);
}

const struct route *
route_of(const char *path, int method, struct route_arg args[ROUTE_ARGS_MAX], const char **pattern)
{
	*pattern = NULL;
	if (method == EVHTTP_REQ_HEAD)
		method = EVHTTP_REQ_GET;
	for (size_t i = 0; i < route_count; i++) {
		if (*pattern == NULL && has_form(routes[i].path, path))
			*pattern = routes[i].path;
		if (*pattern == NULL || routes[i].method != method ||
		    strcmp(routes[i].path, *pattern) != 0)
			continue;
		if (route_match(*pattern, path, args))
			return &routes[i];
		route_args_free(args);
		*pattern = NULL;
		return NULL;
	}
	return NULL;
}

void
route_allow(const char *pattern, struct evbuffer *out)
{
	for (size_t i = 0; i < route_count; i++) {
		if (strcmp(routes[i].path, pattern) == 0)
			(void)evbuffer_add_printf(out,
			    routes[i].method == EVHTTP_REQ_GET ? "HEAD, %s, " : "%s, ",
			    routes[i].method_name);
	}
	(void)evbuffer_add_printf(out, "OPTIONS");
}
