/* SPDX-License-Identifier: Apache-2.0
 * The table of routes. The dispatcher, the Allow headers, the help at /api/ and the test of rights are made from it. */
#ifndef MGMT_ROUTES_H
#define MGMT_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

struct evbuffer;
struct request;

enum { ROUTE_ARGS_MAX = 4 };

/* Which tag a user needs; an administrator has all of them. NOBODY: not even a login. */
enum route_needs { NEEDS_NOBODY, NEEDS_ANY_TAG, NEEDS_MONITORING, NEEDS_POLICYMAKER, NEEDS_ADMINISTRATOR };

/* What the vhost in the path demands of the user beyond the tag. NONE: there is none in it, or the handler looks after it.
 * VISIBLE: a permission in it, of which administrators need none. MONITORED: nor do those who monitor. OWN: a permission in
 * it; administrators without one are told "Access refused.", as RabbitMQ does for all that writes. But for NONE, a vhost
 * that is not there is answered before the handler is called. */
enum route_vhost { VHOST_NONE, VHOST_VISIBLE, VHOST_MONITORED, VHOST_OWN };

/* What the dispatcher makes of the body of a PUT or POST. JSON: an object, in request.body. LONG: the same, and it may be as
 * long as limits.http_body allows. RAW: nothing, the handler sees to it. EVENTS: of a GET; its answer is text/event-stream.
 * TEXT: of a GET; its is text/plain. */
enum route_body { BODY_JSON, BODY_LONG, BODY_RAW, BODY_EVENTS, BODY_TEXT };

typedef void route_fn(struct request *r);

struct route {
	int method; /* EVHTTP_REQ_* */
	const char *method_name, *path;
	enum route_needs needs;
	enum route_vhost vhost;
	enum route_body body;
	route_fn *fn;
	const char *help;
};

extern const struct route routes[];
extern const size_t route_count;
extern const char *const route_needs_names[]; /* by enum route_needs */
extern const char *const route_vhost_names[];

/* A piece of the path, percent-decoded once; may hold any byte. */
struct route_arg {
	char *p; /* owned by whoever called; NUL added */
	size_t n;
};

/* Does `path` (as it came, without the query) match? Fills args with the pieces for ':'; the caller frees
 * what is in there in any case. */
bool route_match(const char *pattern, const char *path, struct route_arg args[ROUTE_ARGS_MAX]);
void route_args_free(struct route_arg args[ROUTE_ARGS_MAX]);

/* The row for a path and a method (HEAD: GET's). *pattern: the path of the table that the request's path is; NULL: it is
 * none. A path belongs to the first pattern that it matches, so /api/users/bulk-delete is no user. */
const struct route *route_of(
    const char *path, int method, struct route_arg args[ROUTE_ARGS_MAX], const char **pattern);

/* "HEAD, GET, OPTIONS" */
void route_allow(const char *pattern, struct evbuffer *out);

#define ROUTE(method, path, needs, vhost, fn, help) route_fn fn;
#define ROUTE_RAW ROUTE
#define ROUTE_EVENTS ROUTE
#define ROUTE_LONG ROUTE
#define ROUTE_TEXT ROUTE
#include "mgmt/routes.def"
#undef ROUTE
#undef ROUTE_EVENTS
#undef ROUTE_LONG
#undef ROUTE_RAW
#undef ROUTE_TEXT

#endif
