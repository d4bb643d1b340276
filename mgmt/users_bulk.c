/* SPDX-License-Identifier: Apache-2.0
 * POST /api/users/bulk-delete: some users in a turn. */
#include "mgmt/users_bulk.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/persist.h"
#include "broker/user.h"
#include "mgmt/json_brief.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

enum { SLICE_US = 1000 };

struct bulk_delete {
	TAILQ_ENTRY(bulk_delete) link;
	struct request *r;     /* borrowed: waits for the answer */
	const json_t *names;   /* borrowed from it */
	const json_t *missing; /* the same: the first that was not there; NULL: they all were */
	size_t at;
};

static void
delete_next(struct bulk_delete *d)
{
	const json_t *name = json_array_get(d->names, d->at++);
	struct request *r = d->r;
	struct user *u = json_is_string(name) ? user_find(r->m->broker, json_span(name)) : NULL;

	if (u == NULL) {
		d->missing = d->missing != NULL ? d->missing : name;
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "user '%s' is deleted", u->name);
	note_user(r, u, true);
	user_clear(u);
}

/* True: they are all gone. */
static bool
run(struct bulk_delete *d)
{
	uint64_t end_us = clock_mono_us() + SLICE_US;
	size_t n = json_array_size(d->names);

	for (unsigned i = 0; d->at < n && i < BULK_DELETE_MAX; i++) {
		delete_next(d);
		if (clock_mono_us() >= end_us)
			break;
	}
	return d->at == n;
}

static void
answer(struct bulk_delete *d)
{
	struct request *r = d->r;

	if (d->missing == NULL)
		reply_done(r, 204);
	else
		reply_when(r, persist_objects_wait(r->m->broker), 400,
		    json_pack("{s:s, s:[s, o]}", "error", "bad_request", "reason", "no_such_user",
		        json_brief(d->missing)));
	free(d);
}

bool
bulk_deletes_run(struct mgmt *m)
{
	struct bulk_delete *d = TAILQ_FIRST(&m->bulk_deletes);

	if (d != NULL && run(d)) {
		TAILQ_REMOVE(&m->bulk_deletes, d, link);
		answer(d);
	}
	return !TAILQ_EMPTY(&m->bulk_deletes);
}

void
bulk_deletes_stop(struct mgmt *m)
{
	struct bulk_delete *d;

	while ((d = TAILQ_FIRST(&m->bulk_deletes)) != NULL) {
		TAILQ_REMOVE(&m->bulk_deletes, d, link);
		free(d);
	}
}

/* All that are there go; the first that is not is the reason of a refusal. */
void
route_users_bulk_delete(struct request *r)
{
	const json_t *names = json_object_get(r->body, "users");
	struct bulk_delete *d;

	if (names == NULL) {
		reply_bad(r, "[{key_missing,users}]: the body has to have 'users'");
		return;
	}
	if (!json_is_array(names)) {
		reply_bad(r, "users is no list");
		return;
	}
	d = xcalloc(1, sizeof *d);
	d->r = r;
	d->names = names;
	TAILQ_INSERT_TAIL(&r->m->bulk_deletes, d, link);
	request_defer(r);
}
