/* SPDX-License-Identifier: Apache-2.0
 * A request on its way through a handler, and the ways to answer it. Every handler calls exactly one
 * reply_ function, or defers the
 * request (mgmt/http.h) and sees to it that one is called later, with a struct request of its own. */
#ifndef MGMT_REQUEST_H
#define MGMT_REQUEST_H

#include <jansson.h>

#include "mgmt/routes.h"

struct evbuffer;
struct user;

struct request {
	struct mgmt *m; /* borrowed, as all here: valid during the call */
	struct evhttp_request *ev;
	const struct transport_addr *peer;
	const struct route *route;
	struct user *user; /* NULL where the route needs nobody */
	struct route_arg args[ROUTE_ARGS_MAX];
};

void reply_json(struct request *r, int status, json_t *body); /* takes body */
/* {"error": ..., "reason": ...}, as RabbitMQ has it */
void reply_error(struct request *r, int status, const char *error, const char *reason);
/* Takes the contents of body, not the buffer. type NULL: without a body. */
void reply_bytes(struct request *r, int status, const char *type, struct evbuffer *body);
void reply_header(struct request *r, const char *name, const char *value);

/* "Basic" credentials of the request: who it is, or NULL after having answered 401. */
struct user *request_login(struct request *r);

#endif
