/* SPDX-License-Identifier: Apache-2.0
 * Answers, and the login of a request. */
#include "mgmt/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/user.h"
#include "mgmt/base64.h"
#include "mgmt/mgmt_priv.h"
#include "net/transport.h"

void
reply_header(struct request *r, const char *name, const char *value)
{
	/* fails only for values with line ends, which none of ours has, or without memory */
	if (evhttp_add_header(evhttp_request_get_output_headers(r->ev), name, value) < 0)
		log_error("HTTP header %s could not be set", name);
}

void
reply_bytes(struct request *r, int status, const char *type, struct evbuffer *body)
{
	char length[24];
	bool head = evhttp_request_get_command(r->ev) == EVHTTP_REQ_HEAD;

	if (type != NULL)
		reply_header(r, "Content-Type", type);
	(void)snprintf(length, sizeof length, "%zu", body != NULL ? evbuffer_get_length(body) : 0);
	reply_header(r, "Content-Length", length);
	reply_header(r, "Cache-Control", "no-cache");
	reply_header(r, "X-Content-Type-Options", "nosniff");
	reply_header(r, "Content-Security-Policy",
	    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
	evhttp_send_reply(r->ev, status, NULL, head ? NULL : body);
}

static int
append(const char *p, size_t n, void *body)
{
	return evbuffer_add(body, p, n);
}

static struct evbuffer *
buffer_new(void)
{
	struct evbuffer *b = evbuffer_new();

	if (b == NULL) {
		log_error("no memory for an answer over HTTP");
		abort();
	}
	return b;
}

void
reply_json(struct request *r, int status, json_t *json)
{
	struct evbuffer *body = buffer_new();

	if (json == NULL || json_dump_callback(json, append, body, JSON_COMPACT) < 0) {
		/* a value that JSON cannot hold: ours to have kept out */
		evbuffer_drain(body, evbuffer_get_length(body));
		log_error(
		    "the answer to %s could not be written as JSON", evhttp_request_get_uri(r->ev));
		(void)evbuffer_add_printf(
		    body, "{\"error\":\"internal_error\",\"reason\":\"see the log\"}");
		status = 500;
	}
	reply_bytes(r, status, "application/json", body);
	evbuffer_free(body);
	json_decref(json);
}

void
reply_error(struct request *r, int status, const char *error, const char *reason)
{
	reply_json(r, status, json_pack("{s:s, s:s}", "error", error, "reason", reason));
}

static void
refuse_login(struct request *r, const char *name, const char *why)
{
	static struct log_limit lines = { .burst = 20 };
	char peer[80];

	if (log_allowed(&lines)) {
		(void)snprintf(peer, sizeof peer, strchr(r->peer->host, ':') ? "[%s]:%u" : "%s:%u",
		    r->peer->host, r->peer->port);
		log_line(LOG_WARNING, &(struct log_who){ .peer = peer, .user = name },
		    "HTTP login refused: %s", why);
	}
	reply_header(r, "WWW-Authenticate", "Basic realm=\"Hermes\"");
	reply_error(r, 401, "not_authorized", "Login failed");
}

struct user *
request_login(struct request *r)
{
	const char *header =
	    evhttp_find_header(evhttp_request_get_input_headers(r->ev), "Authorization");
	const char *why = "wrong user name or password";
	struct user *u;
	char *plain, *name;
	uint8_t *colon;
	size_t n;

	if (header == NULL) { /* how every browser begins: no line for the log */
		reply_header(r, "WWW-Authenticate", "Basic realm=\"Hermes\"");
		reply_error(r, 401, "not_authorized", "Login failed");
		return NULL;
	}
	if (strncasecmp(header, "Basic ", 6) != 0) {
		refuse_login(r, NULL, "the Authorization header is not of the Basic scheme");
		return NULL;
	}
	plain = xmalloc(strlen(header));
	n = base64_decode(header + 6, strlen(header + 6), plain);
	colon = n > 0 ? memchr(plain, ':', n) : NULL;
	if (colon == NULL) {
		free(plain);
		refuse_login(r, NULL, "the Authorization header holds no user name and password");
		return NULL;
	}
	name = xstrndup(plain, (size_t)(colon - (uint8_t *)plain));
	u = user_login(r->m->broker, span_of(plain, (size_t)(colon - (uint8_t *)plain)),
	    span_of(colon + 1, (size_t)((uint8_t *)plain + n - (colon + 1))), r->peer->loopback,
	    &why);
	explicit_bzero(plain, n);
	free(plain);
	if (u == NULL)
		refuse_login(r, name, why);
	free(name);
	return u;
}
