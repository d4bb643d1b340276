/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/body.h"

#include <stdlib.h>

#include "base/mem.h"

struct body_job {
	struct request_job job; /* first */
	struct span text;       /* owned */
	const char *why;        /* static */
	json_t *json;           /* owned */
	void (*then)(struct request *r);
};

/* How deep do arrays and objects go? A bracket inside a string does not count. */
static unsigned
depth_of(struct span text)
{
	unsigned depth = 0, most = 0;
	bool in_string = false;

	for (size_t i = 0; i < text.n; i++) {
		uint8_t c = text.p[i];

		if (c == '"')
			in_string = !in_string;
		else if (in_string && c == '\\')
			i++;
		else if (!in_string && (c == '[' || c == '{'))
			most = ++depth > most ? depth : most;
		else if (!in_string && (c == ']' || c == '}') && depth > 0)
			depth--;
	}
	return most;
}

json_t *
body_parse(struct span text, const char **why)
{
	json_t *j;

	if (text.n == 0)
		return json_object();
	if (depth_of(text) > REQUEST_DEPTH_MAX) {
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

static void
finish(struct request *r, json_t *json, const char *why, void (*then)(struct request *r))
{
	r->body = json;
	if (json != NULL)
		then(r);
	else
		reply_error(r, 400, "bad_request", why);
}

static void
on_run(struct request_job *job)
{
	struct body_job *b = (struct body_job *)job;

	b->json = body_parse(b->text, &b->why);
}

static void
on_done(struct request_job *job)
{
	struct body_job *b = (struct body_job *)job;

	if (job->r != NULL)
		finish(job->r, b->json, b->why, b->then);
	else
		json_decref(b->json);
	free((void *)b->text.p);
	free(b);
}

void
body_read(struct request *r, void (*then)(struct request *r))
{
	body_read_text(r, request_raw(r), then);
}

void
body_read_text(struct request *r, struct span text, void (*then)(struct request *r))
{
	struct body_job *b;
	const char *why = NULL;
	json_t *json;
	uint8_t *copy;

	if (text.n <= REQUEST_PARSE_HERE) {
		json = body_parse(text, &why);
		finish(r, json, why, then);
		return;
	}
	copy = try_malloc(text.n);
	if (copy == NULL) {
		reply_error(r, 503, "service_unavailable", "no memory for this body");
		return;
	}
	memcpy(copy, text.p, text.n);
	r->is_long = true;
	b = xcalloc(1, sizeof *b);
	b->text = span_of(copy, text.n);
	b->then = then;
	b->job.run = on_run;
	b->job.done = on_done;
	request_work(r, &b->job);
}
