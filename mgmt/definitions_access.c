/* SPDX-License-Identifier: Apache-2.0
 * Import of who may do what: users, vhosts, permissions, limits and other parameters. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/base64.h"
#include "base/password.h"
#include "broker/broker.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/tags.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/about.h"
#include "mgmt/access_json.h"
#include "mgmt/definitions.h"
#include "mgmt/json_brief.h"
#include "mgmt/policies.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

static const char *
refused(struct import *im, const struct error *e)
{
	return e == NULL ? NULL : import_because(im, "%s", refusal_text(e));
}

/* What is of another kind would be as if it were not there, and nobody would hear of it. */
static bool
is_text_or_none(struct import *im, const json_t *item, const char *key)
{
	const json_t *v = json_object_get(item, key);

	if (v == NULL || json_is_string(v) || json_is_null(v))
		return true;
	(void)import_because(im, "%s is no string", key);
	return false;
}

/* tag: room for TAGS_MAX; borrowed from the value, which need not be there. False: im->why says it. */
static bool
take_tags(struct import *im, const json_t *v, struct span *tag, uint32_t *count)
{
	*count = 0;
	if (v == NULL || tags_of_json(v, tag, count))
		return true;
	(void)import_because(
	    im, "tags are neither a text nor a list of at most %d texts", (int)TAGS_MAX);
	return false;
}

/* ---- users ---- */

static const char *
take_limits(struct import *im, struct user *u, const json_t *limits)
{
	if (limits == NULL || (json_is_array(limits) && json_array_size(limits) == 0))
		return NULL;
	if (!json_is_object(limits))
		return "limits are no object";
	note_user_limits(NULL, u);
	return limits_set_json(NULL, u, limits, im->why, sizeof im->why) ? NULL : im->why;
}

/* Files say nothing of it. Who is there stays as he is; of the others guest, which is in every export of RabbitMQ with a
 * password that everybody knows, is let in from loopback only, as there. */
static bool
is_loopback_only(const struct broker *b, struct span name)
{
	const struct user *u = user_find(b, name);

	return u != NULL ? u->loopback_only : span_is(name, "guest");
}

static const char *
set_user(struct import *im, const json_t *item, const struct password *p)
{
	struct span name = import_text(im, item, "name"), tag[TAGS_MAX];
	struct user_spec spec = { .name = name, .password = p, .tag = tag };
	const struct error *e;

	if (name.p == NULL || !take_tags(im, json_object_get(item, "tags"), tag, &spec.tag_count))
		return im->why;
	spec.loopback_only = is_loopback_only(im->broker, name);
	e = user_set(im->broker, &spec, NULL);
	if (e != NULL)
		return refused(im, e);
	note_user(NULL, user_find(im->broker, name), false);
	return take_limits(im, user_find(im->broker, name), json_object_get(item, "limits"));
}

static void
on_hashed(void *arg, const struct password *p)
{
	struct import *im = arg;

	im->is_hashing = false;
	if (im->is_freed)
		import_free(&im, NULL);
	else
		im->hash_error = set_user(im, im->later, p);
}

static const char *
hash_and_set(struct import *im, const json_t *item, struct span text)
{
	if (text.n == 0 || text.n > PASSWORD_LEN_MAX)
		return import_because(im, "a password has 1 to %d bytes", (int)PASSWORD_LEN_MAX);
	im->is_hashing = true;
	im->later = item;
	user_hash(im->broker, text, on_hashed, im);
	return im->is_hashing ? import_later : im->hash_error;
}

static const char *
take_hash(struct import *im, const json_t *item, struct span text, struct password *p)
{
	struct span name = json_span(json_object_get(item, "hashing_algorithm"));
	enum password_kind kind = name.p == NULL ? PASSWORD_SHA256 : password_kind_find(name);
	char bytes[2 * PASSWORD_HASH_MAX];
	size_t n;

	if (kind == PASSWORD_KINDS)
		return import_because(im, "hashing_algorithm '%.*s' is not known", SPAN_FMT(name));
	if (text.n > sizeof bytes)
		return "password_hash is too long";
	n = base64_decode((const char *)text.p, text.n, bytes);
	if (n == 0 || !password_from(p, kind, span_of(bytes, n)))
		return "password_hash is no base64 of a hash of this kind";
	return NULL;
}

const char *
import_user(struct import *im, const json_t *item)
{
	struct span hash = json_span(json_object_get(item, "password_hash")),
	            clear = json_span(json_object_get(item, "password"));
	struct password p = { .kind = PASSWORD_NONE };
	const char *why;

	if (!is_text_or_none(im, item, "password_hash") || !is_text_or_none(im, item, "password") ||
	    !is_text_or_none(im, item, "hashing_algorithm"))
		return im->why;
	if (hash.n > 0) {
		why = take_hash(im, item, hash, &p);
		return why != NULL ? why : set_user(im, item, &p);
	}
	if (hash.p == NULL && clear.p != NULL)
		return hash_and_set(im, item, clear);
	return set_user(im, item, NULL);
}

/* ---- vhosts ---- */

const char *
import_vhost(struct import *im, const json_t *item)
{
	struct span name = import_text(im, item, "name"), tag[TAGS_MAX];
	const json_t *meta = json_object_get(item, "metadata"), *tags;
	const json_t *from = json_is_object(meta) ? meta : item;
	struct vhost_spec spec = { .tag = NULL, .tracing = -1 };

	if (name.p == NULL || !is_text_or_none(im, from, "description") ||
	    !is_text_or_none(im, from, "default_queue_type") ||
	    !is_text_or_none(im, item, "default_queue_type"))
		return im->why;
	spec.description = json_span(json_object_get(from, "description"));
	spec.default_queue_type = json_span(json_object_get(from, "default_queue_type"));
	if (spec.default_queue_type.p == NULL)
		spec.default_queue_type = json_span(json_object_get(item, "default_queue_type"));
	tags = json_object_get(from, "tags");
	if (!take_tags(im, tags, tag, &spec.tag_count))
		return im->why;
	if (tags != NULL)
		spec.tag = tag;
	if (json_is_boolean(json_object_get(item, "tracing")))
		spec.tracing = json_is_true(json_object_get(item, "tracing"));
	return refused(im, vhost_set(im->broker, name, &spec, NULL, NULL));
}

/* ---- permissions ---- */

/* A text without NUL; NULL: there is none such, and im->why says so. */
static const char *
take_chars(struct import *im, const json_t *item, const char *key)
{
	struct span s = import_text(im, item, key);

	if (s.p == NULL)
		return NULL;
	if (memchr(s.p, 0, s.n) != NULL) {
		(void)import_because(im, "%s has a NUL in it", key);
		return NULL;
	}
	return (const char *)s.p; /* jansson's strings end with NUL */
}

static struct user *
user_of(struct import *im, const json_t *item)
{
	struct span name = import_text(im, item, "user");
	struct user *u = name.p != NULL ? user_find(im->broker, name) : NULL;

	if (u == NULL && name.p != NULL)
		(void)import_because(
		    im, "{no_such_user,<<\"%.*s\">>}: there is no such user", SPAN_FMT(name));
	return u;
}

const char *
import_permission(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	const char *configure, *write, *read;
	struct user *u;

	if (vh == NULL || (u = user_of(im, item)) == NULL ||
	    (configure = take_chars(im, item, "configure")) == NULL ||
	    (write = take_chars(im, item, "write")) == NULL ||
	    (read = take_chars(im, item, "read")) == NULL)
		return im->why;
	note_permissions(NULL, u);
	return refused(im, permission_set(u, vh, configure, write, read));
}

const char *
import_topic_permission(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	const char *write, *read;
	struct span exchange;
	struct user *u;

	if (vh == NULL || (u = user_of(im, item)) == NULL ||
	    (exchange = import_text(im, item, "exchange")).p == NULL ||
	    (write = take_chars(im, item, "write")) == NULL ||
	    (read = take_chars(im, item, "read")) == NULL)
		return im->why;
	return refused(im, topic_permission_set(u, vh, exchange, write, read, NULL));
}

/* ---- parameters ---- */

/* rabbitmqctl writes an object that is deep in a parameter as a list of pairs: [["max-length", 5]]. That as an object, or
 * what else it is as it is; the caller's. */
static json_t *
without_pairs(const json_t *value)
{
	json_t *v = (json_t *)(uintptr_t)value, *o, *pair; /* the library's walk takes no const */
	size_t i;

	if (!json_is_array(v))
		return json_incref(v);
	o = json_object();
	json_array_foreach(v, i, pair)
	{
		const char *key = json_string_value(json_array_get(pair, 0));

		if (key == NULL || json_array_size(pair) != 2 ||
		    json_object_set(o, key, json_array_get(pair, 1)) != 0) {
			json_decref(o);
			return json_incref(v);
		}
	}
	return o;
}

static const char *
set_limits(struct import *im, struct vhost *vh, const json_t *value)
{
	json_t *limits = without_pairs(value);
	bool done = limits_replace_json(vh, limits, im->why, sizeof im->why);

	json_decref(limits);
	if (done)
		note_vhost_limits(NULL, vh);
	return done ? NULL : im->why;
}

static const char *
set_policy(struct import *im, struct vhost *vh, enum policy_kind kind, struct span name,
    const json_t *value)
{
	const json_t *definition = json_object_get(value, "definition");
	json_t *copy = json_copy((json_t *)(uintptr_t)value);
	const char *wrong;
	bool is_new;

	if (json_is_array(definition))
		json_put(copy, "definition", without_pairs(definition));
	wrong = policy_set_json(vh, kind, name, copy, &is_new, im->why, sizeof im->why);
	json_decref(copy);
	if (wrong == NULL)
		note_policy(NULL, policy_find(vh, kind, name), false);
	return wrong;
}

bool
import_component(struct import *im, struct vhost *vh, struct span component, struct span name,
    const json_t *value, const char **wrong)
{
	enum policy_kind kind = span_is(component, "policy") ? POLICY_USER : POLICY_OPERATOR;

	if (span_is(component, "vhost-limits"))
		*wrong = set_limits(im, vh, value);
	else if (kind == POLICY_USER || span_is(component, "operator_policy"))
		*wrong = set_policy(im, vh, kind, name, value);
	else
		return false;
	return true;
}

const char *
import_parameter(struct import *im, const json_t *item)
{
	struct vhost *vh = import_vhost_of(im, item);
	const json_t *value = json_object_get(item, "value");
	struct span component, name;
	const char *why;

	if (vh == NULL || (component = import_text(im, item, "component")).p == NULL ||
	    (name = import_text(im, item, "name")).p == NULL)
		return im->why;
	if (value == NULL)
		return "{key_missing,value}: it has to have 'value'";
	if (import_component(im, vh, component, name, value, &why))
		return why;
	return import_because(im, "component %.*s not found", SPAN_FMT(component));
}

const char *
import_global_parameter(struct import *im, const json_t *item)
{
	struct span name = import_text(im, item, "name");
	const json_t *value = json_object_get(item, "value");
	const char *why;
	char *text;

	if (name.p == NULL)
		return im->why;
	if (value == NULL)
		return "{key_missing,value}: it has to have 'value'";
	if (!json_is_short(value, PARAMETER_VALUE_MAX + 2))
		return import_because(im, "the value is longer than %d bytes", PARAMETER_VALUE_MAX);
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
	if (text == NULL)
		return "no memory for its value";
	why = refused(
	    im, parameter_set(im->broker, NULL, span_of(NULL, 0), name, span_str(text), NULL));
	free(text);
	return why;
}
