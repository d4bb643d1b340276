/* SPDX-License-Identifier: Apache-2.0
 * /api/users: accounts. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/password.h"
#include "broker/broker.h"
#include "broker/persist.h"
#include "broker/user.h"
#include "mgmt/access_json.h"
#include "mgmt/access_lists.h"
#include "mgmt/json_brief.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

static struct user *
named(const struct request *r)
{
	return user_find(r->m->broker, request_arg(r, 0));
}

void
route_users(struct request *r)
{
	listing_reply(r, &user_list, NULL, NULL);
}

void
route_users_without_permissions(struct request *r)
{
	listing_reply(r, &user_without_permissions_list, NULL, NULL);
}

void
route_user(struct request *r)
{
	struct user *u = named(r);

	if (u == NULL)
		reply_not_found(r);
	else
		reply_document(r, &user_list, u);
}

void
route_user_delete(struct request *r)
{
	struct user *u = named(r);

	if (u == NULL) {
		reply_not_found(r);
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "user '%s' is deleted", u->name);
	note_user(r, u, true);
	user_clear(u);
	reply_done(r, 204);
}

/* --- PUT ---------------------------------------------------------------------------- */

static void
set(struct request *r, const struct password *p)
{
	struct span tag[TAGS_MAX];
	struct user_spec spec = { .name = request_arg(r, 0), .password = p, .tag = tag };
	struct user *old = named(r);
	const struct error *e;
	bool created, opens;

	if (!tags_of_json(json_object_get(r->body, "tags"), tag, &spec.tag_count)) {
		reply_bad(r, "tags are neither a text nor a list of at most %d texts", TAGS_MAX);
		return;
	}
	spec.loopback_only = user_stays_local(r->m->broker, spec.name, p);
	opens = old != NULL && old->loopback_only && !spec.loopback_only;
	e = user_set(r->m->broker, &spec, &created);
	if (e != NULL) {
		reply_refused(r, e);
		return;
	}
	log_line(LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "user '%.*s' is %s%s", SPAN_FMT(spec.name), created ? "made" : "changed",
	    opens ? ": it may log in from every address now" : "");
	note_user(r, user_find(r->m->broker, spec.name), false);
	if (opens)
		reply_header_once(r, "X-Hermes-Note", "it may log in from every address now");
	reply_done(r, created ? 201 : 204);
}

/* A password that a worker may have to hash. */
struct hashing {
	struct request_job job; /* first; r: who waits, NULL if gone */
	bool is_begun;          /* by the worker: the request is deferred */
};

static void
on_hashed(void *arg, const struct password *p)
{
	struct hashing *h = arg;

	if (h->job.r != NULL) {
		struct request *r = h->job.r;
		const struct log_who who = { .peer = r->peer.host, .user = r->user_name },
		                     *before = r->m->broker->actor;
		struct broker *b = r->m->broker;

		r->job = NULL;
		b->actor = &who;
		set(r, p);
		b->actor = before;
	}
	free(h);
}

static void
hash_and_set(struct request *r, struct span clear)
{
	struct hashing *h;

	if (clear.n > PASSWORD_LEN_MAX) {
		reply_bad(r, "a password has at most %d bytes", PASSWORD_LEN_MAX);
		return;
	}
	if (clear.n == 0) { /* nobody logs in with an empty one */
		set(r, NULL);
		return;
	}
	h = xcalloc(1, sizeof *h);
	h->job.r = r;
	r->job = &h->job;
	request_defer(r);
	user_hash(r->m->broker, clear, on_hashed, h);
}

static void
take_hash(struct request *r, struct span text)
{
	const json_t *algorithm = json_object_get(r->body, "hashing_algorithm");
	enum password_kind kind =
	    algorithm == NULL ? PASSWORD_SHA256 : password_kind_find(json_span(algorithm));
	char bytes[2 * PASSWORD_HASH_MAX];
	struct password p;
	size_t n;

	if (text.n == 0) {
		set(r, NULL);
		return;
	}
	n = text.n <= sizeof bytes ? base64_decode((const char *)text.p, text.n, bytes) : 0;
	if (kind == PASSWORD_KINDS || kind == PASSWORD_NONE)
		reply_bad(r, "hashing_algorithm is not known");
	else if (n == 0)
		reply_bad(r, "not_base64");
	else if (!password_from(&p, kind, span_of(bytes, n)))
		reply_bad(r, "password_hash is no %s", password_kind_name(kind));
	else
		set(r, &p);
}

void
route_user_put(struct request *r)
{
	const json_t *clear = json_object_get(r->body, "password"),
	             *hash = json_object_get(r->body, "password_hash");

	if (json_object_get(r->body, "tags") == NULL)
		reply_bad(r, "tags_not_present");
	else if (clear != NULL && hash != NULL)
		reply_bad(r, "both_password_and_password_hash_are_provided");
	else if ((clear != NULL && !json_is_string(clear)) ||
	         (hash != NULL && !json_is_string(hash)))
		reply_bad(r, "password and password_hash are texts");
	else if (clear != NULL)
		hash_and_set(r, json_span(clear));
	else if (hash != NULL)
		take_hash(r, json_span(hash));
	else
		set(r, NULL);
}
