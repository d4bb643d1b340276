/* SPDX-License-Identifier: Apache-2.0
 * The HTTP side of a node, over real sockets: routes, logins, answers. */
#include "mgmt/mgmt.h"

#include <check.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/log.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/queue.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/gzip.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/routes.h"
#include "mgmt/web_session.h"
#include "net/loop.h"
#include "tests/unit/mgmt_world.h"

static const struct {
	const char *request, *headers;
	int status;
	const char *has; /* somewhere in the answer */
} cases[] = {
	{ "GET /healthz", "", 200, "{\"status\":\"ok\"}" },
	{ "GET /healthz/", "", 200, "ok" },
	{ "HEAD /healthz", "", 200, "content-length: 15" },
	{ "GET /healthz?x=1", "", 200, "ok" },
	{ "GET /healthz", "Content-Length: 0\r\nContent-Length: 0\r\n", 200, "ok" },
	{ "POST /healthz", "", 405, "allow: HEAD, GET, OPTIONS" },
	{ "DELETE /api/overview", "", 405, "content-length: 0\r\n" },
	{ "OPTIONS /api/overview", "", 200, "allow: HEAD, GET, OPTIONS" },
	{ "GET /api/nonsense", "", 404,
	    "{\"error\":\"Object Not Found\",\"reason\":\"Not Found\"}" },
	{ "GET //healthz", "", 404, "Not Found" },
	{ "GET /", "", 200, "<!doctype html>" },
	{ "GET /console/nothing.js", "", 404, "Not Found" },
	{ "GET /api", "", 301, "location: /api/index.html" },
	{ "GET /api/", "", 301, "location: /api/index.html" },
	{ "GET /api/index.html", "", 200, "/api/overview" },
	{ "GET /api/overview", "", 401, "www-authenticate: Basic realm=\"RabbitMQ Management\"" },
	{ "GET /api/overview", "", 401, "content-length: 0\r\n" },
	{ "GET /api/overview", "Authorization: Basic !!!\r\n", 401, "Login failed" },
	{ "GET /api/overview", "Authorization: Basic\r\n", 401, "Login failed" },
	{ "GET /api/overview", "Authorization: Basic Z3Vlc3Q=\r\n", 401, "Login failed" },
	{ "GET /api/overview", "Authorization: Bearer abc\r\n", 401, "Login failed" },
	{ "GET /api/overview", "Authorization: Basic Z3Vlc3Q6d3Jvbmc=\r\n", 401, "Login failed" },
	/* plain:plain has no tag; no new prompt */
	{ "GET /api/overview", "Authorization: Basic cGxhaW46cGxhaW4=\r\n", 401,
	    "{\"error\":\"not_authorised\",\"reason\":\"Not management user\"}" },
	{ "GET /api/overview", GUEST, 200, "\"node\":\"unit@test\"" },
	{ "GET /api/overview", GUEST, 200, "cache-control: no-cache" },
	{ "GET /api/overview", GUEST "Accept: text/html\r\n", 406, "content-length: 0\r\n" },
	{ "GET /api/overview", GUEST "Accept: text/html, */*;q=0.1\r\n", 200, "\"node\"" },
	{ "GET /api/overview", GUEST "Accept: application/json;q=0\r\n", 406, "" },
	{ "GET /api/overview", GUEST "Accept: application/bert, application/json;q=0.1\r\n", 200,
	    "\"node\"" },
	{ "GET /api/overview", GUEST "Accept-Encoding: gzip\r\n", 200,
	    "content-encoding: gzip\r\n" },
	{ "GET /api/whoami", GUEST, 200,
	    "{\"name\":\"guest\",\"tags\":[\"administrator\"],\"default_password\":true,\"loopback_"
	    "only\":true}" },
	{ "PUT /api/global-parameters/a", GUEST, 400,
	    "\"reason\":\"[{key_missing,value}]: the body has to have 'value'\"" },
	{ "POST /api/exchanges/%2F/a/publish", GUEST, 400,
	    "{key_missing,payload_encoding}]: the body has to have 'routing_key', 'properties', "
	    "'payload', 'payload_encoding'\"" },
	{ "GET /api/auth", "", 200, "{\"enable_uaa\":false}" },
	{ "GET /api/login", "", 405, "allow: POST, OPTIONS\r\n" },
	{ "POST /api/hermes/snapshot", GUEST "Sec-Fetch-Site: cross-site\r\n", 403, "forbidden" },
};

START_TEST(requests)
{
	char text[512];
	const char *a;

	(void)snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
	    cases[_i].request, cases[_i].headers);
	a = ask(text);
	ck_assert_msg(status_of(a) == cases[_i].status, "%s: %s", cases[_i].request, a);
	ck_assert_msg(strstr(a, cases[_i].has) != NULL, "%s: %s", cases[_i].request, a);
	if (strncmp(text, "HEAD", 4) == 0)
		ck_assert_str_eq(body_of(a), "");
	if (cases[_i].status == 401 && strstr(a, "not_authorised") != NULL)
		ck_assert_ptr_null(strstr(a, "www-authenticate"));
	ck_assert_uint_eq(http_stats(m->http)->open, 0);
}
END_TEST

static json_t *
overview(void)
{
	json_error_t error;
	const char *a = ask("GET /api/overview HTTP/1.0\r\n" GUEST "\r\n");
	json_t *o = json_loads(body_of(a), JSON_REJECT_DUPLICATES, &error);

	ck_assert_msg(o != NULL, "%s: %s", error.text, a);
	return o;
}

static int
total_of(const char *what)
{
	json_t *o = overview();
	int n = -1;

	ck_assert_int_eq(json_unpack(o, "{s:{s:i}}", "object_totals", what, &n), 0);
	json_decref(o);
	return n;
}

/* What is in a deleted vhost goes in the turns to come, but nobody sees it any more. */
START_TEST(a_deleted_vhost_is_not_counted)
{
	int exchanges = total_of("exchanges"), queues = total_of("queues");
	struct vhost *vh = vhost_add(b, "doomed");
	const struct queue_spec spec = { .name = SPAN_LIT("q"), .durable = true };
	struct queue *q;

	ck_assert_ptr_null(queue_declare(vh, &spec, NULL, &q));
	ck_assert_int_eq(total_of("queues"), queues + 1);
	ck_assert_int_eq(total_of("exchanges"), exchanges + 7);
	vhost_clear(vh);
	ck_assert(!TAILQ_EMPTY(&b->gone_vhosts));
	ck_assert_int_eq(total_of("queues"), queues);
	ck_assert_int_eq(total_of("exchanges"), exchanges);
}
END_TEST

START_TEST(overview_counts_at_once)
{
	int publish = -1, messages = -1, queues = -1, port = -1, nodelay;
	const char *version, *protocol, *own;
	json_t *o;

	b->stats.publish = 7;
	b->stats.messages_ready = 3;
	b->stats.messages_unacknowledged = 2;
	b->stats.queues = 4;
	o = overview();
	ck_assert_int_eq(
	    json_unpack(o, "{s:s, s:s, s:{s:i}, s:{s:i}, s:{s:i}, s:[{s:s, s:i, s:{s:b}}]}",
	        "rabbitmq_version", &version, "hermes_version", &own, "message_stats", "publish",
	        &publish, "queue_totals", "messages", &messages, "object_totals", "queues", &queues,
	        "listeners", "protocol", &protocol, "port", &port, "socket_opts", "nodelay",
	        &nodelay),
	    0);
	ck_assert_str_eq(version, cfg.compat_version);
	ck_assert_str_eq(own, "0.1.0");
	ck_assert_int_eq(publish, 7);
	ck_assert_int_eq(messages, 5);
	ck_assert_int_eq(queues, 4);
	ck_assert_str_eq(protocol, "amqp");
	ck_assert_int_eq(port, 5672);
	json_decref(o);
}
END_TEST

/* Every counter is there, because the list is made from the one that declares them. */
START_TEST(overview_has_every_counter)
{
	static const char *const names[] = {
#define X(name, kind, help) #name,
		BROKER_STATS(X)
#undef X
	};
	json_t *o = overview(),
	       *counters = json_object_get(json_object_get(o, "hermes"), "counters");

	for (size_t i = 0; i < COUNT_OF(names); i++)
		ck_assert_msg(json_is_integer(json_object_get(counters, names[i])), "%s", names[i]);
	ck_assert_uint_eq(json_object_size(counters), COUNT_OF(names));
	json_decref(o);
}
END_TEST

/* Nothing but that, to those who have not logged in. */
START_TEST(health_tells_no_reason)
{
	static const char failed[] = "{\"status\":\"failed\"}";
	const char *a;

	b->memory.state = MEMORY_HIGH;
	a = ask("GET /healthz HTTP/1.0\r\n\r\n");
	ck_assert_int_eq(status_of(a), 503);
	ck_assert_str_eq(body_of(a), failed);
	ck_assert_int_eq(status_of(ask("GET /readyz HTTP/1.0\r\n\r\n")), 200);
	a = ask("GET /api/health/checks/alarms HTTP/1.0\r\n" GUEST "\r\n");
	ck_assert_int_eq(status_of(a), 503);
	ck_assert_ptr_nonnull(strstr(a, "{\"status\":\"failed\",\"reason\":\"memory alarm: "));
	b->memory.state = MEMORY_FINE;
	b->closing = true;
	ck_assert_str_eq(body_of(ask("GET /healthz HTTP/1.0\r\n\r\n")), failed);
	ck_assert_str_eq(body_of(ask("GET /readyz HTTP/1.0\r\n\r\n")), failed);
	b->closing = false;
	ck_assert_int_eq(status_of(ask("GET /healthz HTTP/1.0\r\n\r\n")), 200);
}
END_TEST

/* Whoever asks again and again for what is refused fills no log; how many lines were left out is said. */
START_TEST(refusals_in_the_log)
{
	char path[] = "/tmp/check_mgmt_log_XXXXXX", line[400];
	int fd = mkstemp(path);
	unsigned lines = 0;
	FILE *f;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, path), 0);
	for (unsigned i = 0; i < 50; i++) /* plain:plain has no tag */
		ck_assert_int_eq(status_of(ask("GET /api/overview HTTP/1.0\r\n"
		                               "Authorization: Basic cGxhaW46cGxhaW4=\r\n\r\n")),
		    401);
	log_flush();
	f = fdopen(fd, "r");
	while (fgets(line, sizeof line, f) != NULL)
		lines += strstr(line, "refused: Not management user") != NULL;
	ck_assert_uint_ge(lines, 1);
	ck_assert_uint_le(
	    lines, 40); /* 20, and again 20 where the machine is so slow that 10 s go by */
	fclose(f);
	log_close();
	(void)unlink(path);
}
END_TEST

/* Several requests over one connection, sent at once. */
START_TEST(keep_alive)
{
	const char *a = ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
	                    "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");

	ck_assert_int_eq(status_of(a), 200);
	ck_assert_ptr_nonnull(strstr(a, "404 Not Found"));
	ck_assert_uint_eq(http_stats(m->http)->accepted, 1);
	ck_assert_uint_eq(http_stats(m->http)->requests, 2);
}
END_TEST

/* What stands behind it is a body, and not a request that somebody sent. */
static const char *const with_body[] = {
	"HEAD /healthz HTTP/1.1\r\nContent-Length: 34\r\n\r\n",
	"HEAD /healthz HTTP/1.1\r\nContent-Length: 034\r\n\r\n",
	"HEAD /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n22\r\n",
};

START_TEST(a_body_is_no_request)
{
	char text[200];
	const char *a;

	(void)snprintf(
	    text, sizeof text, "%s%s", with_body[_i], "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n");
	a = ask(text);
	ck_assert_int_eq(status_of(a), 200);
	ck_assert_str_eq(body_of(a), "");
	turns_until_open(0);
	ck_assert_uint_eq(http_stats(m->http)->requests, 1);
}
END_TEST

START_TEST(no_body_keeps_alive)
{
	const char *a = ask("HEAD /healthz HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
	                    "GET /nothing HTTP/1.1\r\nConnection: close\r\n\r\n");

	ck_assert_int_eq(status_of(a), 200);
	ck_assert_ptr_nonnull(strstr(a, "404 Not Found"));
}
END_TEST

/* Limits are a parameter, too: who changes what the settings have is told so there as well. */
static const char *const limit_changes[] = {
	"PUT /api/vhost-limits/%2F/max-queues HTTP/1.0\r\n" GUEST
	"Content-Length: 12\r\n\r\n{\"value\": 5}",
	"PUT /api/parameters/vhost-limits/%2F/limits HTTP/1.0\r\n" GUEST
	"Content-Length: 26\r\n\r\n{\"value\":{\"max-queues\":5}}",
	"DELETE /api/vhost-limits/%2F/max-queues HTTP/1.0\r\n" GUEST "\r\n",
	"DELETE /api/parameters/vhost-limits/%2F/limits HTTP/1.0\r\n" GUEST "\r\n",
};

START_TEST(limits_of_the_settings)
{
	struct vhost *vh = vhost_find(b, SPAN_LIT("/"));
	const char *a;

	vhost_limit_set(vh, VHOST_MAX_QUEUES, 7);
	b->settings_read = 3;
	vh->in_settings.limits = (uint32_t)(_i % 2 == 0 ? 3 : 2); /* 2: they have none any more */
	a = ask(limit_changes[_i / 2]);
	ck_assert_msg(status_of(a) == 204, "%s", a);
	ck_assert_int_eq(strstr(a, "X-Hermes-Note: ") != NULL, _i % 2 == 0);
}
END_TEST

START_TEST(users_of_the_settings)
{
	static const char *const names[] = { "one", "two" };
	const char *a;

	b->settings_read = 3;
	for (unsigned i = 0; i < COUNT_OF(names); i++)
		user_add(b, names[i], "", "", false)->in_settings.object = 3;
	a = ask("POST /api/users/bulk-delete HTTP/1.0\r\n" GUEST
	        "Content-Length: 23\r\n\r\n{\"users\":[\"one\",\"two\"]}");
	ck_assert_msg(status_of(a) == 204, "%s", a);
	a = strstr(a, "X-Hermes-Note: ");
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_null(strstr(a + 1, "X-Hermes-Note: "));
}
END_TEST

/* --- logins ----------------------------------------------------------------- */

static int
status_with(const char *request, const char *headers)
{
	char text[600];

	(void)snprintf(text, sizeof text, "%s HTTP/1.0\r\n%s\r\n", request, headers);
	return status_of(ask(text));
}

static void
log_in(char token[SESSION_TOKEN_SIZE])
{
	const char *a = ask("POST /api/login HTTP/1.0\r\nContent-Length: 31\r\n\r\n"
	                    "username=guest&password=gu%65st");
	const char *cookie = strstr(a, "set-cookie: hermes_session=");

	ck_assert_int_eq(status_of(a), 200);
	ck_assert_str_eq(body_of(a), "\"ok\"");
	ck_assert_ptr_nonnull(cookie);
	ck_assert_ptr_nonnull(strstr(cookie, "; HttpOnly; SameSite=Strict"));
	ck_assert_ptr_null(strstr(a, "Z3Vlc3Q"));
	ck_assert_int_eq(sscanf(cookie, "set-cookie: hermes_session=%47[^;]", token), 1);
}

START_TEST(sessions)
{
	char token[SESSION_TOKEN_SIZE], other[SESSION_TOKEN_SIZE], cookie[100];

	log_in(token);
	log_in(other);
	(void)snprintf(cookie, sizeof cookie, "Cookie: a=b; hermes_session=%s; c\r\n", token);
	ck_assert_int_eq(status_with("GET /api/whoami", cookie), 200);
	ck_assert_int_eq(status_with("DELETE /api/hermes/session", cookie), 204);
	ck_assert_int_eq(status_with("GET /api/whoami", cookie), 401);
	(void)snprintf(cookie, sizeof cookie, "Cookie: hermes_session=%s\r\n", other);
	ck_assert_int_eq(status_with("GET /api/whoami", cookie), 200);
	cookie[strlen(cookie) - 3] ^= 1;
	ck_assert_int_eq(status_with("GET /api/whoami", cookie), 401);
	ck_assert_int_eq(status_with("GET /api/whoami", "Cookie: hermes_session=\r\n"), 401);
	ck_assert_int_eq(status_with("GET /api/whoami", "Cookie: hermes_session=9999.x\r\n"), 401);
}
END_TEST

START_TEST(sessions_end)
{
	struct web_sessions *s = web_sessions_new(b);
	struct user *u = user_find(b, SPAN_LIT("guest"));
	char token[SESSION_TOKEN_SIZE], later[SESSION_TOKEN_SIZE];

	web_session_begin(s, u, 1000, token);
	ck_assert_ptr_eq(web_session_user(s, token, 1000 + SESSION_IDLE_MS), u);
	ck_assert_ptr_eq(web_session_user(s, token, 1000 + 2 * SESSION_IDLE_MS), u);
	ck_assert_ptr_null(web_session_user(s, token, 1001 + 3 * (uint64_t)SESSION_IDLE_MS));
	web_session_begin(s, u, 5000, token);
	(void)user_add(b, "guest", "another", "administrator", true);
	ck_assert_ptr_null(web_session_user(s, token, 5000));
	web_session_begin(s, u, 6000, token);
	for (unsigned i = 0; i < SESSIONS_OF_USER; i++)
		web_session_begin(s, u, 7000, later);
	ck_assert_ptr_null(web_session_user(s, token, 7000));
	ck_assert_ptr_eq(web_session_user(s, later, 7000), u);
	web_sessions_free(&s);
}
END_TEST

/* Who guesses is told to come back later; whoever got in before gets in. */
START_TEST(guessing_is_refused_unseen)
{
	const char *admin = "Authorization: Basic YWRtaW46YWRtaW4=\r\n";
	char plain[32], line[100] = "Authorization: Basic ";
	size_t end;
	int status = 401;

	time_stands = true;
	ck_assert_int_eq(status_with("GET /api/whoami", admin), 200);
	for (unsigned i = 0; i < 200 && status == 401; i++) {
		base64_encode(
		    plain, (size_t)snprintf(plain, sizeof plain, "guest:wrong%u", i), line + 21);
		end = strlen(line);
		(void)snprintf(line + end, sizeof line - end, "\r\n");
		status = status_with("GET /api/whoami", line);
	}
	ck_assert_int_eq(status, 429);
	ck_assert_ptr_nonnull(strstr(answer, "retry-after: "));
	ck_assert_int_eq(status_with("GET /api/whoami", admin), 200);
	time_stands = false;
}
END_TEST

static const struct {
	const char *header;
	bool taken;
} codings[] = {
	{ NULL, false },
	{ "", false },
	{ "gzip", true },
	{ "deflate, GZIP;q=0.5", true },
	{ "gzip;q=0", false },
	{ "gzip; q=0.0, *", false },
	{ "*", true },
	{ "*;q=0", false },
	{ "gzipped", false },
	{ "identity, br", false },
};

START_TEST(gzip_is_asked_for)
{
	ck_assert_int_eq(gzip_accepted(codings[_i].header), codings[_i].taken);
}
END_TEST

/* What evhttp refuses by itself. */
static const struct {
	const char *request;
	int status;
	const char *body;
} malformed[] = {
	{ "FOO /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 501, "Not Implemented" },
	{ "TRACE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 501, "Not Implemented" },
	{ "GET /healthz HTTP/1.1\r\nno colon\r\n\r\n", 400, "Bad Request" },
	{ "GET http://[::1 HTTP/1.1\r\nHost: x\r\n\r\n", 400, "Bad Request" },
	{ "nonsense\r\n\r\n", 400, "Bad Request" },
	{ "POST /healthz HTTP/1.0\r\nContent-Length: 99999999\r\n\r\n", 413,
	    "Request Entity Too Large" },
	{ "GET /healthz HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\nx", 400,
	    "Bad Request" },
	{ "GET /healthz HTTP/1.1\r\nContent-Length: +0\r\n\r\n", 400, "Bad Request" },
	{ "POST /healthz HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400,
	    "Bad Request" },
	{ "POST /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
	  "identity\r\n\r\n0\r\n\r\n",
	    400, "Bad Request" },
};

START_TEST(errors_are_json)
{
	const char *a = ask(malformed[_i].request), *error, *reason;
	json_error_t json_error;
	json_t *o = json_loads(body_of(a), 0, &json_error);
	size_t length = 0;

	ck_assert_int_eq(status_of(a), malformed[_i].status);
	ck_assert_msg(
	    json_unpack(o, "{s:s, s:s}", "error", &error, "reason", &reason) == 0, "%s", a);
	ck_assert_str_eq(error, "bad_request");
	ck_assert_str_eq(reason, malformed[_i].body);
	ck_assert_ptr_nonnull(strstr(a, "content-type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(a, "content-length: "));
	ck_assert_int_eq(sscanf(strstr(a, "content-length: "), "content-length: %zu", &length), 1);
	ck_assert_uint_eq(length, strlen(body_of(a)));
	ck_assert_ptr_null(strstr(a, "<HTML>"));
	ck_assert_uint_eq(http_stats(m->http)->requests, 0);
	json_decref(o);
}
END_TEST

enum { LONG = 5 * BINDINGS_AT_ONCE + 1 };

/* What has very many bindings is deleted in several turns. */
START_TEST(long_deletes)
{
	static const char *const rows[] = { "DELETE /api/exchanges/%2F/x",
		"DELETE /api/queues/%2F/q" };
	struct vhost *vh = vhost_find(b, SPAN_LIT("/"));
	struct exchange_spec x_spec = { .name = SPAN_LIT("x"), .type = SPAN_LIT("direct") };
	struct queue_spec q_spec = { .name = SPAN_LIT("q") };
	struct exchange *x;
	struct queue *q;
	char text[256];

	ck_assert_ptr_null(exchange_declare(vh, &x_spec, &x));
	ck_assert_ptr_null(queue_declare(vh, &q_spec, NULL, &q));
	for (unsigned i = 0; i < LONG; i++) {
		(void)snprintf(text, sizeof text, "%u", i);
		ck_assert_ptr_null(binding_add(x, q, NULL, span_str(text), NULL));
	}
	(void)snprintf(text, sizeof text, "%s HTTP/1.0\r\n" GUEST "\r\n", rows[_i]);
	ck_assert_int_eq(status_of(ask(text)), 204);
	ck_assert_uint_eq(m->again, 0);
	ck_assert_uint_eq(b->stats.bindings, 0);
	ck_assert((_i == 0) == (exchange_find(vh, SPAN_LIT("x")) == NULL));
	ck_assert((_i == 1) == (queue_find(vh, SPAN_LIT("q")) == NULL));
}
END_TEST

/* Its client goes meanwhile, and so does the request. */
START_TEST(a_long_delete_that_nobody_waits_for)
{
	static const char text[] =
	    "DELETE /api/exchanges/%2F/x HTTP/1.1\r\nHost: x\r\n" GUEST "\r\n";
	struct vhost *vh = vhost_find(b, SPAN_LIT("/"));
	struct exchange_spec spec = { .name = SPAN_LIT("x"), .type = SPAN_LIT("direct") };
	struct exchange *x, *to;
	char key[16];
	int fd = dial();

	ck_assert_ptr_null(exchange_declare(vh, &spec, &x));
	spec.name = SPAN_LIT("to");
	ck_assert_ptr_null(exchange_declare(vh, &spec, &to));
	for (unsigned i = 0; i < LONG; i++) {
		(void)snprintf(key, sizeof key, "%u", i);
		ck_assert_ptr_null(binding_add(x, NULL, to, span_str(key), NULL));
	}
	ck_assert_int_eq(write(fd, text, sizeof text - 1), sizeof text - 1);
	for (unsigned i = 0; i < 2000 && x->binding_count == LONG; i++)
		turn();
	ck_assert_uint_lt(x->binding_count, LONG);
	ck_assert_uint_gt(x->binding_count, 0);
	close(fd);
	turns_until_open(0);
	ck_assert_uint_eq(m->again, 0);
}
END_TEST

START_TEST(stop_closes_connections)
{
	int fd = dial();
	char c;

	turns_until_open(1);
	mgmt_stop(&m);
	turn();
	ck_assert_int_eq(read(fd, &c, 1), 0);
	close(fd);
}
END_TEST

static const struct {
	const char *pattern, *path;
	bool matches;
	const char *arg[2];
} matches[] = {
	{ "/a", "/a", true, { NULL } },
	{ "/a", "/a/", true, { NULL } },
	{ "/a", "/a//", false, { NULL } },
	{ "/a", "/ab", false, { NULL } },
	{ "/ab", "/a", false, { NULL } },
	{ "/a", "", false, { NULL } },
	{ "/a", "a", false, { NULL } },
	{ "/a/:x", "/a/b", true, { "b" } },
	{ "/a/:x", "/a", false, { NULL } },
	{ "/a/:x", "/a/b/c", false, { NULL } },
	{ "/q/:v/:n", "/q/%2F/a%2Fb%3Fc%23d%20e+f%252F", true, { "/", "a/b?c#d e+f%2F" } },
};

START_TEST(matching)
{
	struct route_arg args[ROUTE_ARGS_MAX] = { { NULL, 0 } };

	ck_assert_int_eq(
	    route_match(matches[_i].pattern, matches[_i].path, args), matches[_i].matches);
	for (unsigned i = 0; i < 2 && matches[_i].matches; i++) {
		if (matches[_i].arg[i] == NULL)
			ck_assert_ptr_null(args[i].p);
		else
			ck_assert_str_eq(args[i].p, matches[_i].arg[i]);
	}
	for (unsigned i = 0; i < ROUTE_ARGS_MAX; i++)
		free(args[i].p);
}
END_TEST

/* Each row can be reached, has a text, and asks for a login unless it says that it does not. */
START_TEST(every_route)
{
	const struct route *row = &routes[_i];
	char text[300];
	int status;

	ck_assert_uint_lt((size_t)_i, route_count);
	ck_assert_uint_gt(strlen(row->help), 3);
	(void)snprintf(text, sizeof text, "%s %s HTTP/1.0\r\n\r\n", row->method_name, row->path);
	status = status_of(ask(text));
	if (row->fn == route_login)
		ck_assert_int_eq(status, 400); /* an empty form */
	else if (row->needs == NEEDS_NOBODY)
		ck_assert_int_ne(status, 401);
	else
		ck_assert_int_eq(status, 401);
	ck_assert_int_eq(status == 404, row->fn == route_console_file); /* ":file" is none */
	ck_assert_int_ne(status, 405);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mgmt");
	TCase *http = tcase_create("http"), *pure = tcase_create("pure");
	SRunner *sr;
	int failed;

	clock_init();
	tcase_add_checked_fixture(http, setup, teardown);
	tcase_add_loop_test(http, requests, 0, (int)COUNT_OF(cases));
	tcase_add_test(http, overview_counts_at_once);
	tcase_add_test(http, a_deleted_vhost_is_not_counted);
	tcase_add_test(http, overview_has_every_counter);
	tcase_add_test(http, health_tells_no_reason);
	tcase_add_test(http, keep_alive);
	tcase_add_loop_test(http, a_body_is_no_request, 0, COUNT_OF(with_body));
	tcase_add_test(http, no_body_keeps_alive);
	tcase_add_test(http, users_of_the_settings);
	tcase_add_loop_test(http, limits_of_the_settings, 0, 2 * COUNT_OF(limit_changes));
	tcase_add_test(http, refusals_in_the_log);
	tcase_add_test(http, sessions);
	tcase_add_test(http, sessions_end);
	tcase_add_test(http, guessing_is_refused_unseen);
	tcase_add_loop_test(http, errors_are_json, 0, (int)COUNT_OF(malformed));
	tcase_add_loop_test(http, long_deletes, 0, 2);
	tcase_add_test(http, a_long_delete_that_nobody_waits_for);
	tcase_add_test(http, stop_closes_connections);
	tcase_add_loop_test(http, every_route, 0, (int)route_count);
	tcase_add_loop_test(pure, matching, 0, (int)COUNT_OF(matches));
	tcase_add_loop_test(pure, gzip_is_asked_for, 0, (int)COUNT_OF(codings));
	tcase_set_timeout(http, 60);
	suite_add_tcase(s, http);
	suite_add_tcase(s, pure);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
