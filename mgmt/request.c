/* SPDX-License-Identifier: Apache-2.0
 * What was asked, and the life of a request: made by the dispatcher, freed when it returns; one whose answer comes later
 * is on the list of its mgmt until then. */
#include "mgmt/request.h"

#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "broker/user.h"
#include "broker/login.h"
#include "mgmt/body.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/web_session.h"
#include "net/loop.h"

struct request *
request_new(
    struct mgmt *m, struct http *http, struct evhttp_request *ev, const struct transport_addr *peer)
{
	struct request *r = xcalloc(1, sizeof *r);

	r->m = m;
	r->http = http;
	r->ev = ev;
	r->peer = *peer;
	return r;
}

void
request_free(struct request *r)
{
	if (r->m->current == r)
		r->m->current = NULL;
	if (r->is_deferred)
		TAILQ_REMOVE(&r->m->deferred, r, link);
	if (r->is_waiting)
		r->m->waiting--;
	if (r->is_again)
		r->m->again--;
	if (r->job != NULL)
		r->job->r = NULL;
	login_cancel(&r->login);
	if (r->has_query)
		evhttp_clear_headers(&r->query);
	route_args_free(r->args);
	body_free(r->m, &r->body, &r->body_memory);
	json_decref(r->wait_body);
	free(r->user_name);
	free(r);
}

void
request_defer(struct request *r)
{
	if (r->is_deferred)
		return;
	r->is_deferred = true;
	TAILQ_INSERT_TAIL(&r->m->deferred, r, link);
	http_defer(r->http, r->ev);
}

void
request_again(struct request *r)
{
	request_defer(r);
	r->is_again = true;
	r->m->again++;
}

void
requests_stop(struct mgmt *m)
{
	struct request *r;

	while ((r = TAILQ_FIRST(&m->deferred)) != NULL)
		request_free(r);
}

/* --- work for others ------------------------------------------------------ */

static void
on_run(struct worker_job *job)
{
	struct request_job *j = (struct request_job *)job;

	j->run(j);
}

static void
on_done(struct worker_job *job)
{
	struct request_job *j = (struct request_job *)job;

	if (j->r != NULL)
		j->r->job = NULL;
	j->done(j);
}

void
request_run(struct request *r, struct request_job *j)
{
	j->r = r;
	j->run(j);
	j->done(j);
}

void
request_work(struct request *r, struct request_job *j)
{
	j->job.run = on_run;
	j->job.done = on_done;
	if (r->m->node.workers == NULL) { /* tests without a pool */
		request_run(r, j);
		return;
	}
	j->r = r;
	request_defer(r);
	r->job = j;
	workers_submit(r->m->node.workers, &j->job);
}

/* --- what was asked -------------------------------------------------------- */

struct user *
request_user(const struct request *r)
{
	struct user *u = user_find(r->m->broker, span_str(r->user_name));

	return u != NULL && u->id == r->user_id ? u : NULL;
}

const char *
request_login_ended(const struct request *r)
{
	const struct user *u = request_user(r);

	if (u == NULL)
		return "the user is deleted";
	if (u->password_changes != r->password_changes)
		return "the user has another password";
	if (r->session != 0 && !web_session_is_open(r->m->sessions, r->session, r->m->loop->now_ms))
		return "the login has ended";
	return NULL;
}

struct span
request_arg(const struct request *r, unsigned i)
{
	return span_of(r->args[i].p, r->args[i].n);
}

const char *
request_query(struct request *r, const char *name)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(r->ev);
	const char *text = uri != NULL ? evhttp_uri_get_query(uri) : NULL;

	if (!r->has_query) {
		if (text == NULL || evhttp_parse_query_str(text, &r->query) < 0)
			return NULL;
		r->has_query = true;
	}
	return evhttp_find_header(&r->query, name);
}

const char *
request_header(const struct request *r, const char *name)
{
	return evhttp_find_header(evhttp_request_get_input_headers(r->ev), name);
}

struct span
request_raw(struct request *r)
{
	struct evbuffer *b = evhttp_request_get_input_buffer(r->ev);
	size_t n = evbuffer_get_length(b);

	return n == 0 ? SPAN_LIT("") : span_of(evbuffer_pullup(b, -1), n);
}

char *
request_form(struct request *r, const char *name)
{
	struct evbuffer *b = evhttp_request_get_input_buffer(r->ev);
	struct span raw =
	    evbuffer_get_length(b) <= REQUEST_FORM_MAX ? request_raw(r) : SPAN_LIT("");
	size_t len = strlen(name);
	const char *p = (const char *)raw.p, *end = p + raw.n;

	while (p < end) {
		const char *stop = memchr(p, '&', (size_t)(end - p));
		size_t n = (size_t)((stop != NULL ? stop : end) - p);

		if (n > len && memcmp(p, name, len) == 0 && p[len] == '=') {
			char *piece = xstrndup(p + len + 1, n - len - 1);
			char *decoded = evhttp_uridecode(piece, 1, NULL);

			free(piece);
			return decoded;
		}
		p += n + 1;
	}
	return NULL;
}

struct span
json_span(const json_t *string)
{
	if (!json_is_string(string))
		return span_of(NULL, 0);
	return span_of(json_string_value(string), json_string_length(string));
}

json_t *
json_text(struct span s)
{
	const char *p = s.n > 0 ? (const char *)s.p : "";
	char *fixed, *to;
	json_t *j;

	if (utf8_valid(p, s.n))
		return json_stringn(p, s.n);
	to = fixed = xmalloc(3 * s.n);
	for (size_t i = 0; i < s.n;) {
		uint32_t code;
		size_t n = utf8_decode((const uint8_t *)p + i, s.n - i, &code);

		memcpy(to, n > 0 ? p + i : "\xEF\xBF\xBD", n > 0 ? n : 3);
		to += n > 0 ? n : 3;
		i += n > 0 ? n : 1;
	}
	j = json_stringn(fixed, (size_t)(to - fixed));
	free(fixed);
	return j;
}
