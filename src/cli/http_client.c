/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/http_client.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/http.h>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/base64.h"
#include "base/mem.h"
#include "cli/client_tls.h"
#include "cli/login.h"
#include "cli/text_safe.h"
#include "cli/waiting.h"

enum {
	GET_S = 10,
	CHANGE_S = 120,
	ANSWER_MAX = 512 << 20,
	DEFAULT_PORT = 15672,
	DEFAULT_TLS_PORT = 15671
};
enum { BODY_USUAL = 20 << 20 /* what a node takes if its settings say nothing else */ };

static const char *const method_names[] = { "GET", "PUT", "POST", "DELETE" };
static const enum evhttp_cmd_type method_types[] = { EVHTTP_REQ_GET, EVHTTP_REQ_PUT,
	EVHTTP_REQ_POST, EVHTTP_REQ_DELETE };

/* What is asked, and how it went. */
struct talk {
	struct cli *cli;              /* borrowed */
	const struct http_call *call; /* borrowed */
	struct event_base *base;
	struct waiting *waiting; /* owned; NULL: nobody is told, or it is over */
	struct evhttp_uri *uri;
	SSL *ssl;   /* owned; NULL: plain HTTP */
	char *host; /* owned; without the brackets of IPv6 */
	int port;
	char *user, *password; /* owned */
	int status;            /* 0: no answer */
	char *note;            /* owned: what the node has to say beside, or NULL */
	json_t *json;          /* owned; NULL: the body is none */
	json_error_t json_error;
	int error; /* enum evhttp_request_error, or -1 */
};

static void
on_answer(struct evhttp_request *req, void *arg)
{
	struct talk *k = arg;
	const char *note;
	struct evbuffer *b;

	waiting_free(&k->waiting);
	if (req == NULL || evhttp_request_get_response_code(req) == 0)
		return;
	k->status = evhttp_request_get_response_code(req);
	note = evhttp_find_header(evhttp_request_get_input_headers(req), "X-Hermes-Note");
	k->note = note != NULL ? xstrdup(note) : NULL;
	b = evhttp_request_get_input_buffer(req);
	if (evbuffer_get_length(b) > 0)
		k->json = json_loadb((const char *)evbuffer_pullup(b, -1), evbuffer_get_length(b),
		    JSON_ALLOW_NUL, &k->json_error);
}

static void
on_error(enum evhttp_request_error error, void *arg)
{
	struct talk *k = arg;

	k->error = (int)error;
	waiting_free(&k->waiting);
}

/* The text before the first ':' of the URL's user part, and what follows it, stand in for the options that were
 * not given; a URL on the command line stands above the environment. False: *rc, and it was said. */
static bool
set_login(struct talk *k, int *rc)
{
	const char *info = evhttp_uri_get_userinfo(k->uri);
	const char *user = cli_value(k->cli, "user");
	const char *colon = info != NULL ? strchr(info, ':') : NULL;
	bool is_above = info != NULL && cli_count(k->cli, "url") > 0;
	char *address = NULL; /* its password */

	if (info != NULL && (user == NULL || (is_above && cli_count(k->cli, "user") == 0))) {
		char *raw = xstrndup(info, colon != NULL ? (size_t)(colon - info) : strlen(info));

		k->user = evhttp_uridecode(raw, 0, NULL);
		address = colon != NULL ? evhttp_uridecode(colon + 1, 0, NULL) : NULL;
		free(raw);
	} else {
		k->user = xstrdup(user != NULL ? user : "guest");
		address = user == NULL ? xstrdup("guest") : NULL;
	}
	if (k->user != NULL)
		k->password = login_password(k->cli, k->user, address, is_above, rc);
	free(address);
	return k->password != NULL;
}

/* False: *rc, and it was said. */
static bool
parse_url(struct talk *k, int *rc)
{
	const char *given = cli_value(k->cli, "url"), *scheme, *host;
	char *url = xasprintf("%s%s", strstr(given, "://") == NULL ? "http://" : "", given);
	size_t n;

	k->uri = evhttp_uri_parse(url);
	free(url);
	scheme = k->uri != NULL ? evhttp_uri_get_scheme(k->uri) : NULL;
	host = k->uri != NULL ? evhttp_uri_get_host(k->uri) : NULL;
	if (scheme == NULL || host == NULL || *host == '\0' ||
	    (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)) {
		/* it may hold a password: not shown */
		*rc = cli_misuse(
		    k->cli, "--url: an address is http://HOST:PORT or https://HOST:PORT");
		return false;
	}
	n = strlen(host);
	k->host = host[0] == '[' && host[n - 1] == ']' ? xstrndup(host + 1, n - 2) : xstrdup(host);
	k->port = evhttp_uri_get_port(k->uri);
	if (k->port <= 0)
		k->port = strcmp(scheme, "https") == 0 ? DEFAULT_TLS_PORT : DEFAULT_PORT;
	if (strcmp(scheme, "https") == 0 && (k->ssl = client_tls_new(k->cli, k->host)) == NULL) {
		*rc = CLI_FAILED;
		return false;
	}
	return set_login(k, rc);
}

static void
add_body(struct evhttp_request *req, const struct http_call *call)
{
	struct evbuffer *b = evhttp_request_get_output_buffer(req);
	char *text = call->body != NULL ? json_dumps(call->body, JSON_COMPACT) : NULL;

	if (text != NULL ? evbuffer_add(b, text, strlen(text)) < 0
	                 : evbuffer_add(b, call->text.p, call->text.n) < 0)
		abort();
	if (evhttp_add_header(
	        evhttp_request_get_output_headers(req), "Content-Type", "application/json") < 0)
		abort();
	free(text);
}

static struct evhttp_request *
make_request(struct talk *k)
{
	struct evhttp_request *req = evhttp_request_new(on_answer, k);
	struct evkeyvalq *headers;
	char *login = xasprintf("%s:%s", k->user, k->password), *header, *base64;
	size_t n = strlen(login);

	if (req == NULL)
		abort();
	if (k->call->body != NULL || k->call->text.n > 0)
		add_body(req, k->call);
	base64 = xmalloc(BASE64_SIZE(n));
	base64_encode(login, n, base64);
	header = xasprintf("Basic %s", base64);
	headers = evhttp_request_get_output_headers(req);
	evhttp_request_set_error_cb(req, on_error);
	if (evhttp_add_header(headers, "Host", evhttp_uri_get_host(k->uri)) < 0 ||
	    evhttp_add_header(headers, "Connection", "close") < 0 ||
	    evhttp_add_header(headers, "Authorization", header) < 0)
		abort();
	if (k->call->reason != NULL && evhttp_add_header(headers, "X-Reason", k->call->reason) < 0)
		abort();
	free(header);
	free(base64);
	free(login);
	return req;
}

static int
limit_s(const struct http_call *call)
{
	if (call->limit_s > 0)
		return call->limit_s;
	return call->method == HTTP_GET ? GET_S : CHANGE_S;
}

static struct evhttp_connection *
connection(struct talk *k)
{
	struct bufferevent *bev;

	if (k->ssl == NULL)
		return evhttp_connection_base_new(k->base, NULL, k->host, (uint16_t)k->port);
	/* one reference is ours: what the session says of the certificate is asked for afterwards */
	if (SSL_up_ref(k->ssl) != 1)
		return NULL;
	bev = bufferevent_openssl_socket_new(
	    k->base, -1, k->ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
	if (bev == NULL)
		return NULL;
	bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return evhttp_connection_base_bufferevent_new(
	    k->base, NULL, bev, k->host, (uint16_t)k->port);
}

static void
run(struct talk *k)
{
	struct evhttp_connection *conn = connection(k);
	const char *prefix = evhttp_uri_get_path(k->uri);
	size_t n = prefix != NULL ? strlen(prefix) : 0;
	char *target;

	while (n > 0 && prefix[n - 1] == '/')
		n--;
	target = xasprintf("%.*s%s", (int)n, prefix != NULL ? prefix : "", k->call->path);
	if (conn == NULL)
		abort();
	evhttp_connection_set_timeout(conn, limit_s(k->call));
	evhttp_connection_set_max_body_size(conn, ANSWER_MAX);
	if (k->call->doing != NULL)
		k->waiting = waiting_new(k->base, conn, k->call->doing, k->call->text.n);
	if (evhttp_make_request(conn, make_request(k), method_types[k->call->method], target) == 0)
		(void)event_base_dispatch(k->base);
	waiting_free(&k->waiting);
	evhttp_connection_free(conn);
	free(target);
}

/* The library does not say that a name is not known. NULL: it is. */
static const char *
name_error(const char *host)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list = NULL;
	int rc = getaddrinfo(host, NULL, &hints, &list);

	if (rc == 0)
		freeaddrinfo(list);
	return rc != 0 ? gai_strerror(rc) : NULL;
}

/* The node could not be asked. */
static void
explain_silence(const struct talk *k)
{
	const char *unknown = name_error(k->host);
	long verified = k->ssl != NULL ? SSL_get_verify_result(k->ssl) : X509_V_OK;

	if (verified != X509_V_OK)
		(void)cli_fail(k->cli,
		    "the certificate of %s port %d is not taken: %s (see --ca-file)", k->host,
		    k->port, X509_verify_cert_error_string(verified));
	else if (unknown != NULL)
		(void)cli_fail(k->cli, "cannot reach %s port %d: %s", k->host, k->port, unknown);
	else if (k->error == (int)EVREQ_HTTP_TIMEOUT)
		(void)cli_fail(k->cli, "%s port %d did not answer within %d s", k->host, k->port,
		    limit_s(k->call));
	else if (k->error == (int)EVREQ_HTTP_DATA_TOO_LONG)
		(void)cli_fail(k->cli, "the answer is larger than %d MiB", ANSWER_MAX >> 20);
	else if (k->error >= 0 && k->call->text.n > BODY_USUAL)
		(void)cli_fail(k->cli,
		    "%s port %d did not take all %zu MiB; it takes no more than its setting "
		    "limits.http_body, usually %d MiB",
		    k->host, k->port, k->call->text.n >> 20, BODY_USUAL >> 20);
	else if (k->error >= 0)
		(void)cli_fail(k->cli,
		    "%s port %d ended the connection without an answer; is it the management port?",
		    k->host, k->port);
	else
		(void)cli_fail(k->cli,
		    "cannot reach %s port %d; is the node running? (hermes server)", k->host,
		    k->port);
}

/* A missing object's reason is mostly that it is missing. */
static bool
is_telling(const char *reason)
{
	return reason[0] != '\0' && strcmp(reason, "Not Found") != 0;
}

/* Words for what is an answer to programs. */
static const char *
in_words(const char *reason)
{
	static const char *const words[][2] = {
		{ "vhost_not_found", "there is no such vhost" },
		{ "vhost_or_user_not_found", "there is no such vhost, or no such user" },
		{ "not_base64", "that is not base64" },
		{ "Not management user",
		    "it has no tag; an administrator gives it one: hermes user set "
		    "NAME --tags management (or monitoring, ...)" },
		{ "Not monitor user",
		    "it lacks the tag monitoring (hermes user set NAME --tags ...)" },
		{ "Not administrator user",
		    "it lacks the tag administrator (hermes user set NAME --tags ...)" },
	};

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (strcmp(reason, words[i][0]) == 0)
			return words[i][1];
	return reason;
}

/* The password of the account that is to be made or changed is easily taken for that of who does it. */
static void
explain_login(const struct talk *k, const char *user, const char *reason)
{
	const bool is_user = strcmp(cli_command_name(k->cli), "user") == 0;

	(void)cli_fail(k->cli,
	    "the node refused user '%s', as whom this command logs in: %s; see --user and "
	    "--password-file (HERMES_USER, HERMES_PASSWORD)%s",
	    user, *reason != '\0' ? reason : "not authorized",
	    is_user ? "; the password of the account that it is about is --new-password" : "");
}

/* The node refused. What it says may hold names, which may hold anything. */
static void
explain_refusal(const struct talk *k)
{
	const struct http_call *call = k->call;
	const bool makes = call->method == HTTP_PUT || call->method == HTTP_POST;
	const char *said = json_string_value(json_object_get(k->json, "reason")),
	           *error = json_string_value(json_object_get(k->json, "error"));
	char *user = text_safe_format("%s", k->user),
	     *reason = text_safe_line(said != NULL ? in_words(said) : "");

	if (k->status == 401 && error != NULL && strcmp(error, "not_authorised") == 0)
		(void)cli_fail(k->cli, "user '%s' may not do this%s%s", user,
		    *reason != '\0' ? ": " : "", reason);
	else if (k->status == 401)
		explain_login(k, user, reason);
	else if (k->status == 404 && call->what != NULL && !is_telling(reason) && makes)
		(void)cli_fail(k->cli, "%s: something that it needs is not there", call->what);
	else if (k->status == 404 && call->what != NULL && !is_telling(reason))
		(void)cli_fail(k->cli, "there is no %s", call->what);
	else if ((k->status == 400 || k->status == 404) && call->what != NULL && *reason != '\0')
		(void)cli_fail(k->cli, "%s: %s", call->what, reason);
	else if (call->what != NULL)
		(void)cli_fail(k->cli, "%s: the node answered %d%s%s", call->what, k->status,
		    *reason != '\0' ? ": " : "", reason);
	else
		(void)cli_fail(k->cli, "%s %s: the node answered %d%s%s",
		    method_names[call->method], call->path, k->status, *reason != '\0' ? ": " : "",
		    reason);
	free(reason);
	free(user);
}

static bool
is_answer(const struct talk *k)
{
	if (k->status == 200)
		return k->json != NULL;
	return k->status == 201 || k->status == 204 ||
	       (k->status != 0 && k->status == k->call->status_too);
}

static void
explain(const struct talk *k)
{
	if (k->status == 0)
		explain_silence(k);
	else if (k->status != 200)
		explain_refusal(k);
	else
		(void)cli_fail(k->cli,
		    "%s %s: the answer is not JSON: %s; is this the management port?",
		    method_names[k->call->method], k->call->path, k->json_error.text);
}

/* Names make the pieces of a path, and those have names. */
static bool
has_empty_name(const char *path)
{
	size_t n = strcspn(path, "?");

	return path[n - 1] == '/' || strstr(path, "//") != NULL;
}

int
http_client_call(struct cli *c, const struct http_call *call, int *status, json_t **out)
{
	struct talk k = { .cli = c, .call = call, .error = -1 };
	int rc = CLI_USAGE;

	if (has_empty_name(call->path)) {
		(void)cli_misuse(c, "a name is empty");
	} else if (parse_url(&k, &rc)) {
		k.base = event_base_new();
		if (k.base == NULL)
			abort();
		run(&k);
		event_base_free(k.base);
		rc = is_answer(&k) ? CLI_OK : CLI_FAILED;
		if (rc != CLI_OK)
			explain(&k);
	}
	if (rc == CLI_OK && status != NULL)
		*status = k.status;
	if (rc == CLI_OK && out != NULL)
		*out = json_incref(k.json);
	if (rc == CLI_OK && k.note != NULL)
		(void)cli_fail(c, "note: %s", k.note);
	json_decref(k.json);
	free(k.note);
	if (k.uri != NULL)
		evhttp_uri_free(k.uri);
	SSL_free(k.ssl);
	free(k.host);
	free(k.user);
	free(k.password);
	return rc;
}

int
http_client_get(struct cli *c, const char *path, json_t **out)
{
	return http_client_call(c, &(struct http_call){ .path = path }, NULL, out);
}
