/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/log.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/transport.h"
#include "store/store.h"

enum { PATH_ROOM = 128 /* for the names in it */ };

/* A page of another site can make a browser send a POST with its user's password, but not one of this type. */
static bool
is_json(struct request *r)
{
	static const char type[] = "application/json";
	const char *given =
	    evhttp_find_header(evhttp_request_get_input_headers(r->ev), "Content-Type");
	size_t n = sizeof type - 1;

	return given != NULL && strncasecmp(given, type, n) == 0 &&
	       (given[n] == '\0' || given[n] == ';' || given[n] == ' ');
}

static json_t *
read_body(struct request *r)
{
	struct evbuffer *b = evhttp_request_get_input_buffer(r->ev);
	size_t n = evbuffer_get_length(b);

	return n == 0 ? NULL
	              : json_loadb(
	                    (const char *)evbuffer_pullup(b, -1), n, JSON_REJECT_DUPLICATES, NULL);
}

static void
on_done(void *arg, int error, const char *text)
{
	struct mgmt *m = arg;
	struct request r = { .m = m, .ev = m->snapshot };

	m->snapshot = NULL;
	http_resume(m->http, r.ev);
	if (error == 0)
		reply_json(&r, 200, json_pack("{s:s}", "status", "ok"));
	else if (error == -EEXIST)
		reply_error(&r, 400, "bad_request", text);
	else
		reply_error(&r, 500, "internal_error", text);
}

static void
start(struct request *r, const char *path)
{
	struct mgmt *m = r->m;
	int e = m->snapshot != NULL ? -EBUSY : store_snapshot(m->broker->store, path, on_done, m);

	if (e == -EBUSY) {
		reply_error(r, 409, "conflict", "a snapshot is being made");
		return;
	}
	if (e != 0) {
		reply_error(r, 500, "internal_error", strerror(-e));
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer->host, .user = r->user->name },
	    "snapshot into %s begins", path);
	m->snapshot = r->ev;
	http_defer(m->http, r->ev);
}

void
route_snapshot(struct request *r)
{
	json_t *body;
	const char *path;

	if (!is_json(r)) {
		reply_error(r, 415, "unsupported_media_type", "Content-Type: application/json");
		return;
	}
	body = read_body(r);
	path = json_string_value(json_object_get(body, "path"));
	if (path == NULL)
		reply_error(r, 400, "bad_request", "the body is {\"path\": \"/absolute/folder\"}");
	else if (path[0] != '/')
		reply_error(r, 400, "bad_request", "path is not absolute");
	else if (strlen(path) > PATH_MAX - PATH_ROOM)
		reply_error(r, 400, "bad_request", "path is too long");
	else if (r->m->broker->store == NULL)
		reply_error(r, 503, "service_unavailable", "this node keeps nothing on disk");
	else
		start(r, path);
	json_decref(body);
}

void
snapshot_stop(struct mgmt *m)
{
	if (m->snapshot == NULL)
		return;
	m->snapshot = NULL;
	store_snapshot_cancel(m->broker->store);
}
