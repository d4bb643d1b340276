/* SPDX-License-Identifier: Apache-2.0
 * A short body is parsed by the core thread. A long one goes to a worker as the buffer that it came in: there it is made
 * contiguous, its values are counted before they are made, and in the end a worker frees them. The core thread neither
 * copies nor looks at it. */
#include "mgmt/body.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "mgmt/gunzip.h"
#include "mgmt/http.h"
#include "mgmt/json_scan.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/multipart.h"

struct body_job {
	struct request_job job; /* first */
	struct evbuffer *raw;   /* owned */
	char *form_type;        /* owned: the Content-Type; NULL: all of the body is the document */
	const char *field;      /* static */
	bool is_packed;         /* gzip */
	size_t max;             /* bytes of the body, also when it is unpacked */
	uint64_t memory_max;    /* for all bodies */
	json_t *json;           /* owned; NULL: why and status say what is wrong */
	uint64_t memory;        /* that is held for it */
	int status;
	char why[200];
	void (*then)(struct request *r);
};

/* --- memory ----------------------------------------------------------------- */

static atomic_uint_fast64_t held;

static bool
hold(uint64_t n, uint64_t max)
{
	if (atomic_fetch_add(&held, n) + n <= max)
		return true;
	atomic_fetch_sub(&held, n);
	return false;
}

static void
let_go(uint64_t n)
{
	atomic_fetch_sub(&held, n);
}

uint64_t
body_memory_held(void)
{
	return atomic_load(&held);
}

/* Never more than half of what messages may have. */
static uint64_t
memory_max(const struct mgmt *m)
{
	uint64_t max = m->cfg->http_values, half = m->broker->memory.limit / 2;

	return half > 0 && half < max ? half : max;
}

struct free_job {
	struct worker_job job; /* first */
	json_t *body;          /* one reference */
	uint64_t memory;
};

static void
on_free(struct worker_job *job)
{
	struct free_job *j = (struct free_job *)job;

	json_decref(j->body);
	let_go(j->memory);
}

static void
on_freed(struct worker_job *job)
{
	free(job);
}

void
body_free(struct mgmt *m, json_t **body, uint64_t *memory)
{
	struct free_job *j;

	if (*body == NULL || *memory < BODY_MEMORY_HERE || m->node.workers == NULL) {
		json_decref(*body);
		let_go(*memory);
	} else {
		j = xcalloc(1, sizeof *j);
		j->body = *body;
		j->memory = *memory;
		j->job.run = on_free;
		j->job.done = on_freed;
		workers_submit(m->node.workers, &j->job);
	}
	*body = NULL;
	*memory = 0;
}

/* --- parsing ---------------------------------------------------------------- */

static json_t *
parse(struct span text, const struct json_scan *scan, const char **why)
{
	json_t *j;

	if (text.n == 0)
		return json_object();
	if (scan->depth > REQUEST_DEPTH_MAX) {
		*why = "not_json: nested too deep";
		return NULL;
	}
	j = json_loadb((const char *)text.p, text.n, JSON_ALLOW_NUL, NULL);
	if (json_is_object(j))
		return j;
	json_decref(j);
	*why = "not_json";
	return NULL;
}

json_t *
body_parse(struct span text, const char **why)
{
	struct json_scan scan;

	json_scan(text, &scan);
	return parse(text, &scan, why);
}

static void PRINTF(3, 4) refuse(struct body_job *b, int status, const char *fmt, ...)
{
	va_list ap;

	b->status = status;
	va_start(ap, fmt);
	(void)vsnprintf(b->why, sizeof b->why, fmt, ap);
	va_end(ap);
}

/* Too many values, now or ever? */
static bool
has_room(struct body_job *b, const struct json_scan *scan)
{
	if (scan->memory > b->memory_max)
		refuse(b, 413,
		    "the body holds %" PRIu64 " names and values, which may take up %" PRIu64
		    " bytes of memory; at most %" PRIu64 " are allowed (limits.http_values)",
		    scan->values, scan->memory, b->memory_max);
	else if (!hold(scan->memory, b->memory_max))
		refuse(b, 503,
		    "other requests hold too many values at the moment (limits.http_values): try "
		    "again later");
	else
		return true;
	bound_reached(BOUND_http_values);
	return false;
}

static void
read_text(struct body_job *b, struct span text)
{
	struct json_scan scan;
	const char *why;

	json_scan(text, &scan);
	if (!has_room(b, &scan))
		return;
	b->memory = scan.memory;
	b->json = parse(text, &scan, &why);
	if (b->json == NULL)
		refuse(b, 400, "%s", why);
}

static const char no_field[] = "the form has no field '%s'";

static void
read_part(struct body_job *b, struct span text)
{
	if (b->form_type != NULL && !multipart_find(b->form_type, text, b->field, &text))
		refuse(b, 400, no_field, b->field);
	else
		read_text(b, text);
}

static void
unpack(struct body_job *b, struct span packed)
{
	char *text;
	size_t n;

	switch (gunzip(packed, b->max, &text, &n)) {
	case GUNZIP_DONE: read_part(b, span_of(text, n)); break;
	case GUNZIP_LONG:
		bound_reached(BOUND_http_body);
		refuse(b, 413, "the body has more than %zu bytes once it is unpacked", b->max);
		break;
	case GUNZIP_DAMAGED: refuse(b, 400, "the body is not gzip, or not all of it"); break;
	case GUNZIP_NO_MEMORY: refuse(b, 503, "no memory for this body");
	}
	free(text);
}

static void
on_run(struct request_job *job)
{
	struct body_job *b = (struct body_job *)job;
	struct span text = span_of(evbuffer_pullup(b->raw, -1), evbuffer_get_length(b->raw));

	if (text.p == NULL)
		refuse(b, 503, "no memory for this body");
	else if (b->is_packed)
		unpack(b, text);
	else
		read_part(b, text);
	evbuffer_free(b->raw);
}

/* --- requests --------------------------------------------------------------- */

static const char *
error_of(int status)
{
	return status == 503 ? "service_unavailable" : "bad_request";
}

static void
on_done(struct request_job *job)
{
	struct body_job *b = (struct body_job *)job;
	struct request *r = job->r;

	if (r == NULL) { /* the node stops */
		json_decref(b->json);
		let_go(b->memory);
	} else if (b->json == NULL) {
		let_go(b->memory);
		if (b->status != 400)
			r->m->bodies_refused++;
		reply_error(r, b->status, error_of(b->status), b->why);
	} else {
		http_body_gone(r->m->http, r->ev);
		r->body = b->json;
		r->body_memory = b->memory;
		b->then(r);
	}
	free(b->form_type);
	free(b);
}

static struct evbuffer *
take_raw(struct request *r)
{
	struct evbuffer *raw = evbuffer_new();

	if (raw == NULL || evbuffer_add_buffer(raw, evhttp_request_get_input_buffer(r->ev)) < 0)
		mem_exhausted(0, __builtin_return_address(0));
	return raw;
}

/* What a body is, and who waits for it. */
struct body {
	const char *form_type, *field; /* NULL: no form */
	size_t max;
	bool is_packed;
	void (*then)(struct request *r);
};

static void
read_elsewhere(struct request *r, const struct body *body)
{
	struct body_job *b = xcalloc(1, sizeof *b);

	r->is_long = true;
	b->raw = take_raw(r);
	b->form_type = body->form_type != NULL ? xstrdup(body->form_type) : NULL;
	b->field = body->field;
	b->is_packed = body->is_packed;
	b->max = body->max;
	b->memory_max = memory_max(r->m);
	b->then = body->then;
	b->job.run = on_run;
	b->job.done = on_done;
	request_work(r, &b->job);
}

/* False: it is for a worker. */
static bool
read_here(struct request *r, const struct body *body)
{
	struct span text = request_raw(r);
	struct json_scan scan;
	const char *why = NULL;

	if (body->form_type != NULL && !multipart_find(body->form_type, text, body->field, &text)) {
		reply_bad(r, no_field, body->field);
		return true;
	}
	json_scan(text, &scan);
	if (scan.memory > BODY_MEMORY_HERE)
		return false;
	r->body = parse(text, &scan, &why);
	if (r->body != NULL)
		body->then(r);
	else
		reply_bad(r, "%s", why);
	return true;
}

/* False: it was answered. (RFC 9110, 8.4; x-gzip is the same, says 8.4.1.3) */
static bool
read_coding(struct request *r, struct body *body)
{
	const char *coding = request_header(r, "Content-Encoding");

	if (coding == NULL || strcasecmp(coding, "identity") == 0)
		return true;
	body->is_packed = strcasecmp(coding, "gzip") == 0 || strcasecmp(coding, "x-gzip") == 0;
	if (body->is_packed)
		return true;
	reply_header(r, "accept-encoding", "gzip");
	reply_error(r, 415, "unsupported_media_type", "Content-Encoding: gzip, or none");
	return false;
}

static void
read_body(struct request *r, struct body *body)
{
	size_t n = evbuffer_get_length(evhttp_request_get_input_buffer(r->ev));
	char why[120];

	if (!read_coding(r, body))
		return;
	if (n > body->max) {
		(void)snprintf(why, sizeof why,
		    "the body has %zu bytes; at most %zu are allowed here", n, body->max);
		r->m->bodies_refused++;
		bound_reached(BOUND_http_body);
		reply_error(r, 413, "bad_request", why);
		return;
	}
	body->is_packed &= n > 0;
	if (body->is_packed || n > BODY_PARSE_HERE || !read_here(r, body))
		read_elsewhere(r, body);
}

void
body_read(struct request *r, size_t max, void (*then)(struct request *r))
{
	struct body body = { .max = max, .then = then };

	read_body(r, &body);
}

void
body_read_field(struct request *r, size_t max, const char *field, void (*then)(struct request *r))
{
	const char *type = request_header(r, "Content-Type");
	struct body body = { .form_type = multipart_is(type) ? type : NULL,
		.field = field,
		.max = max,
		.then = then };

	read_body(r, &body);
}
