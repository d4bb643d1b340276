/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "store/store.h"

enum { PATH_ROOM = 128 /* for the names in it */ };

/* A page of another site can make a browser send a POST with its user's password, but not one of this type. */
static bool
is_json(struct request *r)
{
	static const char type[] = "application/json";
	const char *given = request_header(r, "Content-Type");
	size_t n = sizeof type - 1;

	return given != NULL && strncasecmp(given, type, n) == 0 &&
	       (given[n] == '\0' || given[n] == ';' || given[n] == ' ');
}

static void
on_done(void *arg, int error, const char *text)
{
	struct mgmt *m = arg;
	struct request *r = m->snapshot;

	m->snapshot = NULL;
	if (error == 0)
		reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
	else if (error == -EEXIST || error == -EINVAL)
		reply_error(r, 400, "bad_request", text);
	else
		reply_error(r, 500, "internal_error", text);
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
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user->name },
	    "snapshot into %s begins", path);
	m->snapshot = r;
	request_defer(r);
}

void
route_snapshot(struct request *r)
{
	struct span given;
	const char *path;

	if (!is_json(r)) {
		reply_error(r, 415, "unsupported_media_type", "Content-Type: application/json");
		return;
	}
	given = json_span(json_object_get(r->body, "path"));
	path = (const char *)given.p;
	if (path == NULL || strlen(path) != given.n)
		reply_error(r, 400, "bad_request", "the body is {\"path\": \"/absolute/folder\"}");
	else if (path[0] != '/')
		reply_error(r, 400, "bad_request", "path is not absolute");
	else if (strlen(path) > PATH_MAX - PATH_ROOM)
		reply_error(r, 400, "bad_request", "path is too long");
	else if (r->m->broker->store == NULL)
		reply_error(r, 503, "service_unavailable", "this node keeps nothing on disk");
	else
		start(r, path);
}

void
snapshot_stop(struct mgmt *m)
{
	if (m->snapshot == NULL)
		return;
	m->snapshot = NULL;
	store_snapshot_cancel(m->broker->store);
}
