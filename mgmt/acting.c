/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/acting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/exchange.h"
#include "broker/queue.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/json_brief.h"
#include "mgmt/json_table.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

void
acting_client(struct client *c, const struct request *r)
{
	memset(c, 0, sizeof *c);
	c->broker = r->m->broker;
	LIST_INIT(&c->sessions);
	LIST_INIT(&c->exclusive);
	/* it is no connection: neither counted nor kept */
	c->user = r->user;
	c->vhost = r->vhost;
	c->who.user = r->user->name;
	c->who.vhost = r->vhost->name;
	snprintf(c->peer_host, sizeof c->peer_host, "%s", r->peer.host);
	c->peer_port = r->peer.port;
	c->loopback = r->peer.loopback;
	c->who.peer = r->peer.host;
}

struct span
exchange_arg(const struct request *r, unsigned i)
{
	struct span name = request_arg(r, i);

	return span_is(name, "amq.default") ? SPAN_LIT("") : name;
}

struct queue *
queue_arg(const struct request *r, unsigned i)
{
	struct span name = request_arg(r, i);

	return name.n > 0 ? queue_find(r->vhost, name) : NULL;
}

struct queue *
queue_for(struct request *r, struct client *client, enum permission_kind right)
{
	struct queue *q = queue_arg(r, 1);
	const struct error *e;

	if (q == NULL) {
		reply_not_found(r);
		return NULL;
	}
	acting_client(client, r);
	e = permission_check(client, right, "queue", request_arg(r, 1));
	if (e == NULL)
		e = queue_lookup(r->vhost, request_arg(r, 1), client, &q);
	if (e == NULL)
		return q;
	reply_refused(r, e);
	return NULL;
}

/* ---- the body ---- */

static bool
refuse_value(struct request *r, const char *what, json_t *value)
{
	reply_json(r, 400,
	    json_pack(
	        "{s:s, s:[s, o]}", "error", "bad_request", "reason", what, json_brief(value)));
	return false;
}

bool
body_flag(struct request *r, const char *name, bool def, bool *out)
{
	json_t *v = json_object_get(r->body, name);

	*out = def;
	if (v == NULL)
		return true;
	*out = json_is_true(v) || (json_is_string(v) && span_is(json_span(v), "true"));
	if (*out || json_is_false(v) || (json_is_string(v) && span_is(json_span(v), "false")))
		return true;
	return refuse_value(r, "not_boolean", v);
}

/* Anywhere in it. Depth: the parser's bound. */
static bool
has_null(const json_t *j)
{
	const char *name;
	json_t *v;
	size_t i;

	json_object_foreach((json_t *)(uintptr_t)j, name, v)
	{
		if (has_null(v))
			return true;
	}
	json_array_foreach(j, i, v)
	{
		if (has_null(v))
			return true;
	}
	return json_is_null(j);
}

/* NULL, or what is wrong. An empty list is as good as an empty object: some languages cannot tell. */
const char *
arguments_of_json(const json_t *j, struct table **out)
{
	*out = NULL;
	if (j == NULL || (json_is_array(j) && json_array_size(j) == 0))
		return NULL;
	if (!json_is_short(j, JSON_TABLE_TEXT_MAX))
		return json_table_too_large;
	return has_null(j) ? "null_not_allowed" : json_to_table(j, out);
}

bool
body_table(struct request *r, const char *name, struct table **out)
{
	const char *why = arguments_of_json(json_object_get(r->body, name), out);

	if (why == NULL)
		return true;
	if (strcmp(why, "null_not_allowed") == 0)
		reply_error(r, 400, "bad_request", why);
	else
		reply_bad(r, "%s: %s", name, why);
	return false;
}

bool
body_has(struct request *r, const char *const names[])
{
	char text[400] = "[", words[200] = "";
	size_t n = 1, at = 0;

	for (; *names != NULL; names++) {
		if (json_object_get(r->body, *names) != NULL)
			continue;
		n += (size_t)snprintf(
		    text + n, sizeof text - n, "%s{key_missing,%s}", n > 1 ? "," : "", *names);
		at += (size_t)snprintf(
		    words + at, sizeof words - at, "%s'%s'", at > 0 ? ", " : "", *names);
	}
	if (n == 1)
		return true;
	reply_bad(r, "%s]: the body has to have %s", text, words);
	return false;
}

bool
body_integer(struct request *r, const char *name, int64_t *out)
{
	json_t *v = json_object_get(r->body, name);
	const char *text = json_string_value(v);
	char *end;

	if (json_is_integer(v)) {
		*out = json_integer_value(v);
		return true;
	}
	if (text != NULL) {
		errno = 0;
		*out = strtoll(text, &end, 10);
		if (end != text && *end == '\0' && errno == 0)
			return true;
	}
	return refuse_value(r, "not_integer", v);
}

bool
query_number(struct request *r, const char *name, uint64_t def, uint64_t most, uint64_t *out)
{
	const char *text = request_query(r, name);
	char *end;

	*out = def;
	if (text == NULL)
		return true;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && *end == '\0' && errno == 0 && *out <= most)
		return true;
	reply_bad(r, "%s has to be a number from 0 to %llu", name, (unsigned long long)most);
	return false;
}

bool
query_true(struct request *r, const char *name)
{
	const char *text = request_query(r, name);

	return text != NULL && strcmp(text, "true") == 0;
}

/* ---- answers ---- */

void
reply_amqp_error(struct request *r, const struct error *e)
{
	struct span text = error_reply_text(e);

	reply_bad(r, "%u %.*s", e->code, SPAN_FMT(text));
}

void
reply_changed(struct request *r, int status, bool survives)
{
	if (survives)
		reply_done(r, status);
	else
		reply_empty(r, status);
}
