/* SPDX-License-Identifier: Apache-2.0
 * POST /api/definitions: imports over HTTP. They go on in slices of a turn, one after the other, whether or not the client
 * stays. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/vhost.h"
#include "broker/name.h"
#include "broker/persist.h"
#include "mgmt/body.h"
#include "mgmt/definitions.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/multipart.h"
#include "mgmt/request.h"

enum { SLICE_US = 2000, WAITING_MAX = 8 };

struct http_import {
	struct import *import; /* owned */
	struct request *r;     /* borrowed: waits for the answer */
	bool is_done;
	struct store_wait wait; /* then: for the store */
	TAILQ_ENTRY(http_import) link;
};

/* A document may be large: what is left of it is freed where nobody waits. */
struct leftover {
	struct worker_job job; /* first */
	json_t *doc;
};

static void
leftover_run(struct worker_job *job)
{
	json_decref(((struct leftover *)(void *)job)->doc);
}

static void
leftover_done(struct worker_job *job)
{
	free(job);
}

static void
free_import(struct mgmt *m, struct import **im)
{
	struct leftover *l = xcalloc(1, sizeof *l);

	import_free(im, &l->doc);
	l->job.run = leftover_run;
	l->job.done = leftover_done;
	if (m->node.workers == NULL) { /* tests without a pool */
		l->job.run(&l->job);
		l->job.done(&l->job);
		return;
	}
	workers_submit(m->node.workers, &l->job);
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

bool
imports_run(struct mgmt *m)
{
	struct http_import *h = TAILQ_FIRST(&m->imports);

	if (likely(h == NULL))
		return false;
	if (!h->is_done) {
		if (!import_run(h->import, SLICE_US))
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
	free_import(m, &h->import);
	free(h);
	return !TAILQ_EMPTY(&m->imports);
}

void
imports_stop(struct mgmt *m)
{
	struct http_import *h;

	while ((h = TAILQ_FIRST(&m->imports)) != NULL) {
		TAILQ_REMOVE(&m->imports, h, link);
		import_free(&h->import, NULL);
		free(h);
	}
}

/* Takes doc. */
static void
start(struct request *r, json_t *doc, bool in_vhost)
{
	struct mgmt *m = r->m;
	struct http_import *h;

	if (!json_is_object(doc)) {
		json_decref(doc);
		reply_bad(r, "the definitions are no JSON object");
		return;
	}
	if (m->imports_waiting >= WAITING_MAX) {
		json_decref(doc);
		reply_error(
		    r, 503, "service_unavailable", "too many imports wait: try again later");
		return;
	}
	h = xcalloc(1, sizeof *h);
	h->import = import_new(m->broker, doc, in_vhost ? SPAN_CHARS(request_arg(r, 0)) : NULL);
	h->r = r;
	m->imports_waiting++;
	TAILQ_INSERT_TAIL(&m->imports, h, link);
	request_defer(r);
}

/* The vhost that the request names has to be looked up anew: a long body was parsed meanwhile. */
static void
on_parsed(struct request *r)
{
	json_t *doc = r->body;

	r->body = NULL;
	start(r, doc, strstr(r->route->path, ":vhost") != NULL);
}

void
route_definitions_post(struct request *r)
{
	const char *type = request_header(r, "Content-Type");
	struct span text = request_raw(r);

	if (multipart_is(type) && !multipart_find(type, text, "file", &text))
		reply_bad(r, "the form has no field 'file'");
	else
		body_read_text(r, text, on_parsed);
}

void
route_definitions_vhost_post(struct request *r)
{
	route_definitions_post(r);
}
