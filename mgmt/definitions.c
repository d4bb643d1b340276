/* SPDX-License-Identifier: Apache-2.0
 * POST /api/definitions: imports over HTTP. They go on in slices of a turn, one after the other, whether or not the client
 * stays. */
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/vhost.h"
#include "broker/name.h"
#include "broker/persist.h"
#include "mgmt/body.h"
#include "mgmt/definitions.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

enum { SLICE_US = 2000, WAITING_MAX = 8 };

struct http_import {
	struct import *import; /* owned */
	struct request *r;     /* borrowed: waits for the answer */
	uint64_t memory;       /* of the document: body_free() */
	bool is_done;
	struct store_wait wait; /* then: for the store */
	TAILQ_ENTRY(http_import) link;
};

static void
free_import(struct mgmt *m, struct http_import **hp)
{
	struct http_import *h = *hp;
	json_t *doc = NULL;

	*hp = NULL;
	import_free(&h->import, &doc);
	body_free(m, &doc, &h->memory);
	free(h);
}

/* 204, or 400 with the first reason where RabbitMQ's clients look for it, and all of them beside it. */
static void
answer(struct request *r, const struct import *im)
{
	const json_t *errors = import_errors(im), *first = json_array_get(errors, 0);
	uint64_t done, failed;

	import_counts(im, &done, &failed);
	log_line(failed == 0 ? LOG_INFO : LOG_WARNING,
	    &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
	    "definitions imported: %llu objects, %llu could not be", (unsigned long long)done,
	    (unsigned long long)failed);
	if (failed == 0) {
		reply_empty(r, 204);
		return;
	}
	reply_json(r, 400,
	    json_pack("{s:s, s:O, s:I, s:I, s:O}", "error", "bad_request", "reason",
	        json_object_get(first, "reason"), "imported", (json_int_t)done, "failed",
	        (json_int_t)failed, "errors", errors));
}

/* For whom it is, as long as he waits. */
static bool
run_some(struct broker *b, struct http_import *h)
{
	const struct log_who who = { .peer = h->r != NULL ? h->r->peer.host : NULL,
		.user = h->r != NULL ? h->r->user_name : NULL };
	bool done;

	b->actor = &who;
	done = import_run(h->import, SLICE_US);
	b->actor = NULL;
	return done;
}

bool
imports_run(struct mgmt *m)
{
	struct http_import *h = TAILQ_FIRST(&m->imports);

	if (likely(h == NULL))
		return false;
	if (!h->is_done) {
		if (!run_some(m->broker, h))
			return !import_waits(h->import);
		h->is_done = true;
		h->wait = persist_objects_wait(m->broker);
	}
	/* Also what stands before an object that could not be made is answered for. */
	if (persist_must_wait(m->broker, h->wait))
		return false;
	TAILQ_REMOVE(&m->imports, h, link);
	m->imports_waiting--;
	answer(h->r, h->import);
	free_import(m, &h);
	return !TAILQ_EMPTY(&m->imports);
}

void
imports_stop(struct mgmt *m)
{
	struct http_import *h;

	while ((h = TAILQ_FIRST(&m->imports)) != NULL) {
		TAILQ_REMOVE(&m->imports, h, link);
		free_import(m, &h);
	}
}

static void
start(struct request *r, bool in_vhost)
{
	struct mgmt *m = r->m;
	struct http_import *h;

	if (m->imports_waiting >= WAITING_MAX) {
		bound_reached(BOUND_imports);
		reply_error(
		    r, 503, "service_unavailable", "too many imports wait: try again later");
		return;
	}
	h = xcalloc(1, sizeof *h);
	h->import = import_new(m->broker, r->body, in_vhost ? SPAN_CHARS(request_arg(r, 0)) : NULL);
	h->memory = r->body_memory;
	r->body = NULL;
	r->body_memory = 0;
	h->r = r;
	m->imports_waiting++;
	TAILQ_INSERT_TAIL(&m->imports, h, link);
	request_defer(r);
}

/* The vhost that the request names has to be looked up anew: a long body was parsed meanwhile. */
static void
on_parsed(struct request *r)
{
	start(r, strstr(r->route->path, ":vhost") != NULL);
}

void
route_definitions_post(struct request *r)
{
	body_read_field(r, (size_t)r->m->cfg->http_body, "file", on_parsed);
}

void
route_definitions_vhost_post(struct request *r)
{
	route_definitions_post(r);
}
