/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/access_out.h"

#include <jansson.h>

#include "base/attr.h"
#include "base/base64.h"
#include "base/password.h"
#include "broker/limits.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/policy.h"
#include "broker/table.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/table_out.h"

enum { ROW_VHOSTS = 10 /* named in a user's row */ };

void
out_tags(struct json_out *o, const struct tags *t)
{
	out_begin(o, '[');
	for (uint32_t i = 0; i < t->count; i++)
		out_text(o, span_str(t->item[i]));
	out_end(o, ']');
}

static void
out_limits(struct json_out *o, const struct limit *limit, const char *const *names, unsigned n)
{
	out_begin(o, '{');
	for (unsigned i = 0; i < n; i++)
		if (limit[i].is_set && out_key_span(o, span_str(names[i])))
			out_int(o, limit[i].value);
	out_end(o, '}');
}

void
out_vhost_limits(struct json_out *o, const struct vhost *vh)
{
	out_limits(o, vh->limit, vhost_limit_names, VHOST_LIMITS);
}

void
out_user_limits(struct json_out *o, const struct user *u)
{
	out_limits(o, u->limit, user_limit_names, USER_LIMITS);
}

/* Where it may do something: the first few. */
static void
out_vhosts(struct json_out *o, const struct user *u)
{
	unsigned n = 0;

	out_begin(o, '[');
	for (const struct permission *p = u->permissions; p != NULL && n < ROW_VHOSTS;
	     p = p->hh.next, n++)
		out_text(o, span_str(p->vhost->name));
	out_end(o, ']');
}

void
out_user(struct json_out *o, const struct user *u, bool with_place)
{
	char hash[BASE64_SIZE(PASSWORD_HASH_MAX)] = "";
	enum password_kind kind = u->password.kind;

	if (kind == PASSWORD_NONE)
		kind = PASSWORD_SHA256;
	else
		base64_encode(u->password.bytes, u->password.n, hash);
	out_begin(o, '{');
	OUT_TEXT(o, "name", u->name);
	OUT_TEXT(o, "password_hash", hash);
	OUT_TEXT(o, "hashing_algorithm", password_kind_name(kind));
	OUT_PUT(o, "tags", out_tags, &u->tag_list);
	OUT_PUT(o, "limits", out_user_limits, u);
	if (with_place) {
		OUT_PUT(o, "loopback_only", out_truth, u->loopback_only);
		OUT_PUT(o, "vhosts", out_vhosts, u);
		OUT_INT(o, "vhost_count", HASH_COUNT(u->permissions));
	}
	out_end(o, '}');
}

void
out_permission(struct json_out *o, const struct permission *p)
{
	out_begin(o, '{');
	OUT_TEXT(o, "user", p->user->name);
	OUT_TEXT(o, "vhost", p->vhost->name);
	OUT_TEXT(o, "configure", p->text[PERM_CONFIGURE]);
	OUT_TEXT(o, "write", p->text[PERM_WRITE]);
	OUT_TEXT(o, "read", p->text[PERM_READ]);
	out_end(o, '}');
}

void
out_topic_permission(struct json_out *o, const struct topic_permission *p)
{
	out_begin(o, '{');
	OUT_TEXT(o, "user", p->user->name);
	OUT_TEXT(o, "vhost", p->vhost->name);
	OUT_TEXT(o, "exchange", p->exchange);
	OUT_TEXT(o, "write", p->text[TOPIC_WRITE]);
	OUT_TEXT(o, "read", p->text[TOPIC_READ]);
	out_end(o, '}');
}

/* ---- policies and parameters ---- */

static void
put_policy(struct json_out *o, const struct policy *p)
{
	OUT_TEXT(o, "pattern", p->pattern_text);
	OUT_PUT(o, "definition", out_table, table_span(p->definition));
	OUT_PUT(o, "priority", out_int, p->priority);
	OUT_TEXT(o, "apply-to", policy_apply_to(p));
}

void
out_policy(struct json_out *o, const struct policy *p, bool with_vhost)
{
	out_begin(o, '{');
	put_policy(o, p);
	OUT_TEXT(o, "name", p->name);
	if (with_vhost)
		OUT_TEXT(o, "vhost", p->vhost->name);
	out_end(o, '}');
}

static void out_json(struct json_out *o, json_t *j);

static void
out_members(struct json_out *o, json_t *object)
{
	const char *name;
	json_t *value;

	out_begin(o, '{');
	json_object_foreach(object, name, value) if (out_key_span(o, span_str(name)))
	    out_json(o, value);
	out_end(o, '}');
}

static void
out_items(struct json_out *o, const json_t *array)
{
	out_begin(o, '[');
	for (size_t i = 0; i < json_array_size(array); i++)
		out_json(o, json_array_get(array, i));
	out_end(o, ']');
}

static void
out_json(struct json_out *o, json_t *j)
{
	switch (json_typeof(j)) {
	case JSON_OBJECT: out_members(o, j); break;
	case JSON_ARRAY: out_items(o, j); break;
	case JSON_STRING: out_text(o, span_of(json_string_value(j), json_string_length(j))); break;
	case JSON_INTEGER: out_int(o, json_integer_value(j)); break;
	case JSON_REAL: out_number(o, json_real_value(j)); break;
	case JSON_TRUE:
	case JSON_FALSE: out_truth(o, json_is_true(j)); break;
	default: out_null(o); break;
	}
}

/* The text is JSON. Only where a part of it is wanted it is looked into. */
static void
out_value(struct json_out *o, const char *text)
{
	json_t *j;

	if (o->next == NULL && o->caught == NULL) {
		out_raw(o, span_str(text));
		return;
	}
	j = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (j != NULL)
		out_json(o, j);
	else
		out_null(o);
	json_decref(j);
}

static void
put_place(struct json_out *o, const struct vhost *vh, const char *component)
{
	OUT_TEXT(o, "vhost", vh->name);
	OUT_TEXT(o, "component", component);
}

void
out_parameter(struct json_out *o, const struct parameter *p)
{
	out_begin(o, '{');
	OUT_TEXT(o, "name", p->name);
	OUT_PUT(o, "value", out_value, p->value);
	if (p->vhost != NULL)
		put_place(o, p->vhost, p->component);
	out_end(o, '}');
}

void
out_limits_parameter(struct json_out *o, const struct vhost *vh)
{
	out_begin(o, '{');
	put_place(o, vh, "vhost-limits");
	OUT_TEXT(o, "name", "limits");
	OUT_PUT(o, "value", out_vhost_limits, vh);
	out_end(o, '}');
}

static void
out_policy_value(struct json_out *o, const struct policy *p)
{
	out_begin(o, '{');
	put_policy(o, p);
	out_end(o, '}');
}

void
out_policy_parameter(struct json_out *o, const struct policy *p)
{
	out_begin(o, '{');
	put_place(o, p->vhost, p->kind == POLICY_USER ? "policy" : "operator_policy");
	OUT_TEXT(o, "name", p->name);
	OUT_PUT(o, "value", out_policy_value, p);
	out_end(o, '}');
}
