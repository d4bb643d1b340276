/* SPDX-License-Identifier: Apache-2.0
 * Answers. What waits for the store is looked at each turn; what is long is compressed by a worker. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/persist.h"
#include "broker/vhost.h"
#include "mgmt/gzip.h"
#include "mgmt/http.h"
#include "mgmt/json_out.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

/* Bytes of an answer; of a longer one the memory itself is handed on. */
enum { OUT_COPIED = 64 << 10 };

void
reply_header(struct request *r, const char *name, const char *value)
{
	/* fails only for values with line ends, which none of ours has, or without memory */
	if (evhttp_add_header(evhttp_request_get_output_headers(r->ev), name, value) < 0)
		log_error("HTTP header %s could not be set", name);
}

void
reply_header_once(struct request *r, const char *name, const char *value)
{
	if (evhttp_find_header(evhttp_request_get_output_headers(r->ev), name) == NULL)
		reply_header(r, name, value);
}

struct evbuffer *
reply_buffer(void)
{
	struct evbuffer *b = evbuffer_new();

	if (b == NULL)
		mem_exhausted(0, __builtin_return_address(0));
	return b;
}

void
reply_buffer_add(struct evbuffer *b, const void *p, size_t n)
{
	if (evbuffer_add(b, p, n) < 0)
		mem_exhausted(n, __builtin_return_address(0));
}

/* The end of every reply. A request that was deferred goes with it. */
static void
answer(struct request *r, int status, struct evbuffer *body)
{
	bool head = evhttp_request_get_command(r->ev) == EVHTTP_REQ_HEAD;
	char length[24];

	if (status != 204) {
		(void)snprintf(
		    length, sizeof length, "%zu", body != NULL ? evbuffer_get_length(body) : 0);
		reply_header(r, "content-length", length);
	}
	r->is_answered = true;
	if (r->is_deferred)
		http_resume(r->http, r->ev);
	evhttp_send_reply(r->ev, status, NULL, head ? NULL : body);
	if (r->is_deferred)
		request_free(r);
}

/* --- gzip ------------------------------------------------------------------- */

/* What waits for workers or is with them. */
static size_t being_zipped;

struct gzip_job {
	struct request_job job;    /* first */
	struct evbuffer *in, *out; /* owned */
	size_t n;
	int status;
};

static void
gzip_run(struct request_job *job)
{
	struct gzip_job *g = (struct gzip_job *)job;

	gzip_buffer(g->in, g->out);
	/* to free a hundred megabytes takes long */
	(void)evbuffer_drain(g->in, evbuffer_get_length(g->in));
}

static void
gzip_done(struct request_job *job)
{
	struct gzip_job *g = (struct gzip_job *)job;

	being_zipped -= g->n;
	if (job->r != NULL)
		answer(job->r, g->status, g->out);
	evbuffer_free(g->in);
	evbuffer_free(g->out);
	free(g);
}

static void
send_gzipped(struct request *r, int status, struct evbuffer *body)
{
	struct gzip_job *g;
	struct evbuffer *out;

	reply_header(r, "content-encoding", "gzip");
	if (evbuffer_get_length(body) <= REPLY_GZIP_HERE) {
		out = reply_buffer();
		gzip_buffer(body, out);
		answer(r, status, out);
		evbuffer_free(out);
		return;
	}
	g = xcalloc(1, sizeof *g);
	g->in = reply_buffer();
	g->out = reply_buffer();
	g->status = status;
	g->n = evbuffer_get_length(body);
	being_zipped += g->n;
	(void)evbuffer_add_buffer(g->in, body);
	g->job.run = gzip_run;
	g->job.done = gzip_done;
	request_work(r, &g->job);
}

/* --- answers ----------------------------------------------------------------- */

void
reply_bytes(struct request *r, int status, const char *type, struct evbuffer *body)
{
	if (type != NULL)
		reply_header(r, "content-type", type);
	reply_header(r, "cache-control", "no-cache");
	reply_header(r, "vary", "accept, accept-encoding, origin");
	reply_header(r, "x-content-type-options", "nosniff");
	reply_header(r, "content-security-policy",
	    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
	if (body != NULL && evbuffer_get_length(body) >= REPLY_GZIP_MIN &&
	    gzip_accepted(request_header(r, "Accept-Encoding")) &&
	    (being_zipped == 0 || being_zipped + evbuffer_get_length(body) <= REPLY_GZIP_WAITING))
		send_gzipped(r, status, body);
	else
		answer(r, status, body);
}

void
reply_static(struct request *r, int status, const char *type, struct evbuffer *body)
{
	reply_header(r, "content-type", type);
	reply_header(r, "vary", "accept-encoding");
	reply_header(r, "x-content-type-options", "nosniff");
	answer(r, status, body);
}

void
reply_stream(struct request *r, const char *type)
{
	reply_header(r, "content-type", type);
	reply_header(r, "cache-control", "no-cache, no-transform");
	reply_header(r, "vary", "accept, origin");
	reply_header(r, "x-content-type-options", "nosniff");
	reply_header(r, "x-accel-buffering", "no"); /* nginx would wait for more */
	r->is_answered = true;
	request_defer(r);
	http_stream_begin(r->http, r->ev);
}

void
reply_empty(struct request *r, int status)
{
	reply_bytes(r, status, NULL, NULL);
}

void
reply_elsewhere(struct request *r, const char *path)
{
	char *where = xasprintf("%s%s", mgmt_prefix(r->m), path);

	reply_header(r, "location", where);
	free(where);
	reply_empty(r, 301);
}

static int
append(const char *p, size_t n, void *body)
{
	return evbuffer_add(body, p, n);
}

void
reply_json(struct request *r, int status, json_t *json)
{
	struct evbuffer *body = reply_buffer();

	if (json == NULL ||
	    json_dump_callback(json, append, body, JSON_COMPACT | JSON_ENCODE_ANY) < 0) {
		/* a value that JSON cannot hold: ours to have kept out */
		evbuffer_drain(body, evbuffer_get_length(body));
		log_error(
		    "the answer to %s could not be written as JSON", evhttp_request_get_uri(r->ev));
		(void)evbuffer_add_printf(
		    body, "{\"error\":\"internal_error\",\"reason\":\"see the log\"}");
		status = 500;
	}
	json_decref(json);
	reply_bytes(r, status, "application/json", body);
	evbuffer_free(body);
}

static void
say_refused(const struct request *r, const char *reason)
{
	static struct log_limit lines = { .burst = 20 };

	if (log_allowed(&lines))
		log_line(LOG_WARNING,
		    &(struct log_who){ .peer = r->peer.host,
		        .user = r->user_name,
		        .vhost = r->vhost != NULL ? r->vhost->name : NULL },
		    "%s %s refused: %s", r->route->method_name, r->route->path, reason);
}

void
reply_refusal(
    struct request *r, int status, const char *error, const char *reason, const char *line)
{
	if (line != NULL)
		say_refused(r, line);
	reply_json(r, status,
	    json_pack("{s:s, s:o}", "error", error, "reason", json_text(span_str(reason))));
}

static void
free_text(const void *p, size_t n UNUSED, void *arg UNUSED)
{
	free((void *)(uintptr_t)p);
}

void
reply_out(struct request *r, struct json_out *o)
{
	struct evbuffer *body = reply_buffer();

	if (o->n > OUT_COPIED && evbuffer_add_reference(body, o->p, o->n, free_text, NULL) == 0)
		o->p = NULL;
	else
		reply_buffer_add(body, o->p, o->n);
	reply_bytes(r, 200, "application/json", body);
	evbuffer_free(body);
}

void
reply_error(struct request *r, int status, const char *error, const char *reason)
{
	bool said =
	    status == 401 || status == 403 || status == 413 || status == 429 || status == 503;

	reply_refusal(r, status, error, reason, said ? reason : NULL);
}

void
reply_not_found(struct request *r)
{
	reply_error(r, 404, "Object Not Found", "Not Found");
}

void
reply_bad(struct request *r, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	reply_error(r, 400, "bad_request", text);
}

static void
answer_not_authorised(struct request *r, const char *reason)
{
	/* no new login prompt: another password would not help */
	reply_refusal(r, 401, "not_authorised", reason, NULL);
}

void
reply_not_authorised(struct request *r, const char *reason)
{
	say_refused(r, reason);
	answer_not_authorised(r, reason);
}

/* The text is behind the name: "NOT_FOUND - no queue ..." */
const char *
refusal_text(const struct error *e)
{
	const char *dash = strstr(e->text, " - ");

	return dash != NULL ? dash + 3 : e->text;
}

void
reply_refused(struct request *r, const struct error *e)
{
	const char *text = refusal_text(e);

	say_refused(r, text);
	if (e->id == E_NOT_FOUND)
		reply_refusal(r, 404, "not_found", text, NULL);
	else if (e->id == E_ACCESS_REFUSED)
		answer_not_authorised(r, "Access refused.");
	else
		reply_refusal(r, 400, "bad_request", text, NULL);
}

/* --- changes that survive ------------------------------------------------------ */

static void
reply_now(struct request *r, int status, json_t *body)
{
	if (body != NULL)
		reply_json(r, status, body);
	else
		reply_empty(r, status);
}

void
reply_done(struct request *r, int status)
{
	reply_when(r, persist_objects_wait(r->m->broker), status, NULL);
}

void
reply_when(struct request *r, struct store_wait wait, int status, json_t *body)
{
	if (!persist_must_wait(r->m->broker, wait)) {
		reply_now(r, status, body);
		return;
	}
	request_defer(r);
	r->wait = wait;
	r->wait_status = status;
	r->wait_body = body;
	r->is_waiting = true;
	r->m->waiting++;
}

void
requests_run(struct mgmt *m)
{
	struct request *r, *next;

	if (m->waiting == 0)
		return;
	for (r = TAILQ_FIRST(&m->deferred); r != NULL; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->is_waiting && !persist_must_wait(m->broker, r->wait))
			reply_now(r, r->wait_status, json_incref(r->wait_body));
	}
}
