/* SPDX-License-Identifier: Apache-2.0
 * A wrong login is 401; whoever guesses is refused without a look for a while, which is 429 (broker/login.h counts). What
 * the address is is told by the socket, never by a header. */
#include "mgmt/login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/password.h"
#include "broker/broker.h"
#include "broker/event.h"
#include "broker/login.h"
#include "broker/user.h"
#include "mgmt/access_json.h"
#include "mgmt/dispatch.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/web_session.h"
#include "net/loop.h"

#define COOKIE "hermes_session"

/* The realm is RabbitMQ's: clients in Perl, Java and Go keep passwords by it, and send none to another. A script of a page,
 * which the console is, has a form of its own: the browser must not show its window. */
static void
ask_for_login(struct request *r)
{
	const char *mode = request_header(r, "Sec-Fetch-Mode");

	if (mode == NULL || strcasecmp(mode, "navigate") == 0)
		reply_header(r, "www-authenticate", "Basic realm=\"RabbitMQ Management\"");
}

/* RabbitMQ's words, and what to do. */
static void
refuse_address(struct request *r, const char *name)
{
	const char *of_settings = r->m->cfg->default_user;
	bool by_settings = name != NULL && of_settings != NULL && strcmp(of_settings, name) == 0;

	reply_refusal(r, 401, "not_authorised",
	    by_settings
	        ? "User can only log in via localhost: set default_user.remote to true in the "
	          "settings, or use another account"
	        : "User can only log in via localhost until it has another password: set one "
	          "there (hermes user passwd), or use another account",
	    NULL);
}

static void
refuse(struct request *r, const char *name, const char *why)
{
	static struct log_limit lines = { .burst = 20 };
	char peer[80];

	if (log_allowed(&lines)) {
		(void)snprintf(peer, sizeof peer, strchr(r->peer.host, ':') ? "[%s]:%u" : "%s:%u",
		    r->peer.host, r->peer.port);
		log_line(LOG_WARNING, &(struct log_who){ .peer = peer, .user = name },
		    "HTTP login refused: %s", why);
	}
	event_login_http(r->m->broker, name != NULL ? name : "", r->peer.host, r->peer.port, why);
	if (why == login_too_many || why == login_too_busy) {
		reply_header(r, "retry-after", "1");
		reply_refusal(r, 429, "too_many_requests", why, NULL);
		return;
	}
	if (why == login_loopback_only) { /* another password would not help */
		refuse_address(r, name);
		return;
	}
	ask_for_login(r);
	reply_refusal(r, 401, "not_authorized", "Login failed", NULL);
}

/* u NULL: refused. */
static void
checked(struct request *r, struct user *u, const char *why)
{
	if (u != NULL) {
		r->m->logins.http_ok++;
		r->logged_in(r, u);
		return;
	}
	r->m->logins.http_failed++;
	refuse(r, r->user_name, why);
}

static void
on_checked(void *request, struct user *u, const char *why)
{
	checked(request, u, why);
}

/* Calls `then` with the user, or answers; later, if the password takes time. */
static void
check(struct request *r, struct span name, struct span password,
    void (*then)(struct request *r, struct user *u))
{
	struct mgmt *m = r->m;
	const struct credentials c = { .name = name,
		.password = password,
		.address = r->peer.host,
		.loopback = r->peer.loopback };
	const char *why = "";
	struct user *u;

	free(r->user_name);
	r->user_name = xstrndup((const char *)name.p, name.n);
	r->logged_in = then;
	u = login_begin(m->broker, &c, on_checked, r, &r->login, &why);
	if (r->login != NULL)
		request_defer(r);
	else
		checked(r, u, why);
}

static void
login_basic(struct request *r, const char *header)
{
	char *plain;
	uint8_t *colon;
	size_t n;

	if (strncasecmp(header, "Basic ", 6) != 0) {
		refuse(r, NULL, "the Authorization header is not of the Basic scheme");
		return;
	}
	plain = xmalloc(strlen(header));
	n = base64_decode(header + 6, strlen(header + 6), plain);
	colon = n > 0 ? memchr(plain, ':', n) : NULL;
	if (colon != NULL) {
		struct span name = span_of(plain, (size_t)(colon - (uint8_t *)plain));

		check(r, name, span_of(colon + 1, n - name.n - 1), dispatch_logged_in);
	} else {
		refuse(r, NULL, "the Authorization header holds no user name and password");
	}
	explicit_bzero(plain, n);
	free(plain);
}

/* --- sessions --------------------------------------------------------------------- */

/* The value of our cookie; false: the request has none. */
static bool
session_cookie(const struct request *r, char token[SESSION_TOKEN_SIZE])
{
	const char *p = request_header(r, "Cookie");
	size_t len = strlen(COOKIE), n;

	while (p != NULL && *p != '\0') {
		p += strspn(p, "; \t");
		n = strcspn(p, ";");
		if (n > len && strncmp(p, COOKIE, len) == 0 && p[len] == '=' &&
		    n - len - 1 < SESSION_TOKEN_SIZE) {
			memcpy(token, p + len + 1, n - len - 1);
			token[n - len - 1] = '\0';
			return true;
		}
		p += n;
	}
	return false;
}

static void
set_cookie(struct request *r, const char *token, unsigned seconds)
{
	const char *prefix = mgmt_prefix(r->m);
	char text[400]; /* of a prefix of at most 200 bytes */

	(void)snprintf(text, sizeof text,
	    COOKIE "=%s; Path=%s; HttpOnly; SameSite=Strict; Max-Age=%u%s", token,
	    *prefix != '\0' ? prefix : "/", seconds,
	    http_is_secure(r->http, r->ev) ? "; Secure" : "");
	reply_header(r, "set-cookie", text);
}

static void
login_session(struct request *r, const char *token)
{
	struct user *u = web_session_user(r->m->sessions, token, r->m->loop->now_ms);

	if (u != NULL && (!u->loopback_only || r->peer.loopback)) {
		r->session = web_session_id(r->m->sessions, token);
		dispatch_logged_in(r, u);
		return;
	}
	/* no WWW-Authenticate: the console has a page for it */
	set_cookie(r, "", 0);
	reply_refusal(
	    r, 401, "not_authorized", "Login failed", "the session is over, or there was none");
}

void
login_request(struct request *r)
{
	const char *header = request_header(r, "Authorization");
	char token[SESSION_TOKEN_SIZE];

	if (header != NULL) {
		login_basic(r, header);
	} else if (session_cookie(r, token)) {
		login_session(r, token);
	} else { /* how every browser begins: no line for the log */
		ask_for_login(r);
		reply_empty(r, 401);
	}
}

static void
begin_session(struct request *r, struct user *u)
{
	char token[SESSION_TOKEN_SIZE];

	if ((u->tags & (TAG_ADMINISTRATOR | TAG_MONITORING | TAG_POLICYMAKER | TAG_MANAGEMENT)) ==
	    0) {
		reply_error(r, 401, "not_authorised", "Not management user");
		return;
	}
	web_session_begin(r->m->sessions, u, r->m->loop->now_ms, token);
	set_cookie(r, token, SESSION_IDLE_MS / 1000);
	reply_json(r, 200, json_string("ok"));
}

/* A form with username and password, as the console sends it. */
void
route_login(struct request *r)
{
	char *name = request_form(r, "username"), *password = request_form(r, "password");

	if (name == NULL || password == NULL)
		reply_bad(r, "the form has no username and password");
	else
		check(r, span_str(name), span_str(password), begin_session);
	if (password != NULL)
		explicit_bzero(password, strlen(password));
	free(name);
	free(password);
}

void
route_logout(struct request *r)
{
	char token[SESSION_TOKEN_SIZE];

	if (session_cookie(r, token))
		web_session_end(r->m->sessions, token);
	set_cookie(r, "", 0);
	reply_empty(r, 204);
}

/* Of the accounts that a node begins with, which may log in from loopback only (broker/user.h); or guest and admin with
 * their own names, whoever set that: an export of RabbitMQ brings it so, new tags leave it. A hash that takes long is none
 * of these. */
static bool
password_is_known(const struct user *u)
{
	if (u->is_default)
		return u->loopback_only;
	return (strcmp(u->name, "guest") == 0 || strcmp(u->name, "admin") == 0) &&
	       u->password.kind != PASSWORD_PBKDF2 && password_is(&u->password, span_str(u->name));
}

void
route_whoami(struct request *r)
{
	reply_json(r, 200,
	    json_pack("{s:o, s:o, s:b, s:b}", "name", json_text(span_str(r->user->name)), "tags",
	        tags_json(&r->user->tag_list), "default_password", password_is_known(r->user),
	        "loopback_only", r->user->loopback_only));
}

void
route_auth(struct request *r)
{
	reply_json(r, 200, json_pack("{s:b}", "enable_uaa", 0));
}
