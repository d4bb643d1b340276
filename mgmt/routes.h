/* SPDX-License-Identifier: Apache-2.0
 * The table of routes and the one function that every request goes through: path, method, login, tag,
 * handler, in this order. */
#ifndef MGMT_ROUTES_H
#define MGMT_ROUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evhttp_request;
struct mgmt;
struct request;
struct transport_addr;

enum { ROUTE_ARGS_MAX = 4 };

/* What a user needs: one of these tags. NOBODY: not even a login. */
enum route_needs { NEEDS_NOBODY, NEEDS_ANY_TAG, NEEDS_ADMINISTRATOR };

typedef void route_fn(struct request *r);

struct route {
	int method; /* EVHTTP_REQ_* */
	const char *method_name, *path;
	enum route_needs needs;
	route_fn *fn;
	const char *help;
};

extern const struct route routes[];
extern const size_t route_count;

/* A piece of the path, percent-decoded once; may hold any byte. */
struct route_arg {
	char *p; /* owned by the dispatcher; NUL added */
	size_t n;
};

/* Does `path` (as it came, without the query) match? Fills args with the pieces for ':'; the caller frees
 * what is in there in any case. */
bool route_match(const char *pattern, const char *path, struct route_arg args[ROUTE_ARGS_MAX]);

/* Answers the request, whatever it is. */
void routes_dispatch(struct mgmt *m, struct evhttp_request *req, const struct transport_addr *peer);

#define ROUTE(method, path, needs, fn, help) route_fn fn;
#include "mgmt/routes.def"
#undef ROUTE

#endif
