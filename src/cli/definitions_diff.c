/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/definitions_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/password.h"
#include "cli/text_safe.h"

/* ---- what counts ---- */

/* A field that is not there is left out. */
static void
take(json_t *to, const json_t *item, const char *field)
{
	json_t *value = json_object_get(item, field);

	if (value != NULL)
		(void)json_object_set(to, field, value);
}

static void
take_or(json_t *to, const json_t *item, const char *field, json_t *otherwise)
{
	json_t *value = json_object_get(item, field);

	if (value != NULL)
		(void)json_object_set(to, field, value);
	else
		(void)json_object_set(to, field, otherwise);
	json_decref(otherwise);
}

/* true, or "true" */
static void
take_flag(json_t *to, const json_t *item, const char *field)
{
	const json_t *value = json_object_get(item, field);
	const char *text = json_string_value(value);

	(void)json_object_set_new(to, field,
	    json_boolean(json_is_true(value) || (text != NULL && strcmp(text, "true") == 0)));
}

/* An object; [] and nothing are none. A copy. */
static json_t *
table_of(const json_t *item, const char *field)
{
	const json_t *value = json_object_get(item, field);

	return json_is_object(value) ? json_copy((json_t *)value) : json_object();
}

static int
by_text(const void *a, const void *b)
{
	const json_t *const *x = a, *const *y = b;

	return strcmp(json_string_value(*x), json_string_value(*y));
}

/* "a, b" as a list. */
static json_t *
words(const char *text)
{
	json_t *list = json_array();

	for (const char *p = text; *p != '\0';) {
		size_t n = strcspn(p, ","), from = strspn(p, " "), to = n;

		while (to > from && p[to - 1] == ' ')
			to--;
		if (to > from)
			(void)json_array_append_new(list, json_stringn(p + from, to - from));
		p += n + (p[n] == ',');
	}
	return list;
}

/* As a list in the order of their letters; their own order means nothing. */
static void
take_tags(json_t *to, const json_t *from)
{
	const json_t *value = json_object_get(from, "tags"), *one;
	json_t *list, *sorted, **at;
	size_t i, n = 0;

	if (value == NULL)
		return;
	list = json_is_string(value) ? words(json_string_value(value)) : json_copy((json_t *)value);
	sorted = json_array();
	at = xcalloc(json_array_size(list) + 1, sizeof(*at));
	json_array_foreach(list, i, one) if (json_is_string(one)) at[n++] = (json_t *)one;
	qsort(at, n, sizeof(*at), by_text);
	for (i = 0; i < n; i++)
		(void)json_array_append(sorted, at[i]);
	(void)json_object_set_new(to, "tags", sorted);
	free(at);
	json_decref(list);
}

static json_t *
of_value(const json_t *item)
{
	json_t *o = json_object();

	take(o, item, "value");
	return o;
}

static json_t *
of_user(const json_t *item)
{
	json_t *o = json_object();

	take(o, item, "password_hash");
	take(o, item, "password");
	take_tags(o, item);
	if (json_object_get(item, "limits") != NULL)
		(void)json_object_set_new(o, "limits", table_of(item, "limits"));
	return o;
}

/* An import of a user who has no password in it leaves him without one, and so with tags. */
static json_t *
complete_user(const json_t *item, const json_t *there)
{
	json_t *o = json_copy((json_t *)item);

	if (json_object_get(o, "password_hash") == NULL && json_object_get(o, "password") == NULL) {
		take(o, there, "password_hash");
		take(o, there, "hashing_algorithm");
	}
	if (json_object_get(o, "tags") == NULL)
		take(o, there, "tags");
	return o;
}

static json_t *
of_vhost(const json_t *item)
{
	const json_t *from = json_object_get(item, "metadata");
	json_t *o = json_object();
	const char *type;

	take(o, json_is_object(from) ? from : item, "description");
	take_tags(o, json_is_object(from) ? from : item);
	take(o, item, "default_queue_type");
	take(o, from, "default_queue_type");
	type = json_string_value(json_object_get(o, "default_queue_type"));
	if (type != NULL && strcmp(type, "undefined") == 0) /* RabbitMQ writes it for none */
		(void)json_object_del(o, "default_queue_type");
	return o;
}

static json_t *
of_permission(const json_t *item)
{
	json_t *o = json_object();

	take(o, item, "configure");
	take(o, item, "write");
	take(o, item, "read");
	return o;
}

static json_t *
of_policy(const json_t *item)
{
	json_t *o = json_object();

	take(o, item, "pattern");
	take_or(o, item, "apply-to", json_string("all"));
	take_or(o, item, "priority", json_integer(0));
	take(o, item, "definition");
	return o;
}

/* The type stands in one of two places. A file need not say it: then it is what the virtual host makes it. */
static json_t *
of_queue(const json_t *item)
{
	json_t *o = json_object(), *arguments = table_of(item, "arguments");

	take(o, item, "type");
	if (json_object_get(arguments, "x-queue-type") != NULL)
		(void)json_object_set(o, "type", json_object_get(arguments, "x-queue-type"));
	(void)json_object_del(arguments, "x-queue-type");
	take_flag(o, item, "durable");
	take_flag(o, item, "auto_delete");
	(void)json_object_set_new(o, "arguments", arguments);
	return o;
}

/* A node says the type of those only that are not classic. */
static void
fill_queue(json_t *of)
{
	if (json_object_get(of, "type") == NULL)
		(void)json_object_set_new(of, "type", json_string("classic"));
}

static json_t *
of_exchange(const json_t *item)
{
	json_t *o = json_object();

	take(o, item, "type");
	take_flag(o, item, "durable");
	take_flag(o, item, "auto_delete");
	take_flag(o, item, "internal");
	(void)json_object_set_new(o, "arguments", table_of(item, "arguments"));
	return o;
}

static json_t *
of_binding(const json_t *item)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "arguments", table_of(item, "arguments"));
	return o;
}

const struct definitions_kind definitions_kinds[DEFINITIONS_KINDS + 1] = {
	{ .key = "global_parameters",
	    .fields = { "name" },
	    .says = "global parameter '%s'",
	    .of = of_value },
	{ .key = "users",
	    .fields = { "name" },
	    .says = "user '%s'",
	    .of = of_user,
	    .complete = complete_user },
	{ .key = "vhosts", .fields = { "name" }, .says = "vhost '%s'", .of = of_vhost },
	{ .key = "permissions",
	    .fields = { "user", "vhost" },
	    .says = "permission of user '%s' in vhost '%s'",
	    .of = of_permission },
	{ .key = "topic_permissions",
	    .fields = { "user", "exchange", "vhost" },
	    .says = "topic permission of user '%s' for exchange '%s' in vhost '%s'",
	    .of = of_permission },
	{ .key = "parameters",
	    .fields = { "component", "name", "vhost" },
	    .says = "parameter '%s' '%s' in vhost '%s'",
	    .of = of_value,
	    .in_vhost = true },
	{ .key = "policies",
	    .fields = { "name", "vhost" },
	    .says = "policy '%s' in vhost '%s'",
	    .of = of_policy,
	    .in_vhost = true },
	{ .key = "queues",
	    .fields = { "name", "vhost" },
	    .says = "queue '%s' in vhost '%s'",
	    .of = of_queue,
	    .fill = fill_queue,
	    .in_vhost = true,
	    .is_fixed = true },
	{ .key = "exchanges",
	    .fields = { "name", "vhost" },
	    .says = "exchange '%s' in vhost '%s'",
	    .of = of_exchange,
	    .in_vhost = true,
	    .is_fixed = true },
	{ .key = "bindings",
	    .fields = { "source", "destination_type", "destination", "routing_key", "vhost" },
	    .says = "binding of exchange '%s' to %s '%s' with key '%s' in vhost '%s'",
	    .of = of_binding,
	    .in_vhost = true,
	    .is_many = true },
	{ .key = NULL },
};

/* ---- names ---- */

static const char *
piece(const struct definitions_kind *kind, const json_t *item, const char *vhost, size_t i)
{
	const char *field = kind->fields[i], *text;

	if (field == NULL)
		return "";
	if (vhost != NULL && strcmp(field, "vhost") == 0)
		return vhost;
	text = json_string_value(json_object_get(item, field));
	return text != NULL ? text : "";
}

char *
definitions_say(const struct definitions_kind *kind, const json_t *item, const char *vhost)
{
	const char *p[COUNT_OF(kind->fields)];

	for (size_t i = 0; i < COUNT_OF(p); i++)
		p[i] = piece(kind, item, vhost, i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return text_safe_format(kind->says, p[0], p[1], p[2], p[3], p[4]);
#pragma GCC diagnostic pop
}

/* One text for all that tells it from others; owned by the caller. */
static char *
identity(const struct definitions_kind *kind, const json_t *item, const char *vhost, json_t *of)
{
	json_t *id = json_array();
	char *text;

	for (size_t i = 0; i < COUNT_OF(kind->fields) && kind->fields[i] != NULL; i++) {
		json_t *value = json_object_get(item, kind->fields[i]);
		bool is_given = vhost == NULL || strcmp(kind->fields[i], "vhost") != 0;

		(void)json_array_append_new(
		    id, is_given ? json_is_string(value) ? json_incref(value) : json_string("")
		                 : json_string(vhost));
	}
	if (kind->is_many)
		(void)json_array_append(id, of);
	text = json_dumps(id, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(id);
	return text;
}

/* ---- the difference ---- */

/* What a node was given at its first start and an export has, too: it tells two nodes apart, and is nobody's to change. */
static bool
is_mark_of_node(const struct definitions_kind *kind, const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));

	return strcmp(kind->key, "global_parameters") == 0 && name != NULL &&
	       strcmp(name, "internal_cluster_id") == 0;
}

/* {"item", "of"} of each, by its identity; owned by the caller. Of two with one identity the last one counts, as in an
 * import. */
static json_t *
objects_by_identity(const struct definitions_kind *kind, const json_t *list, const char *vhost)
{
	json_t *all = json_object();
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		json_t *of;
		char *id;

		if (is_mark_of_node(kind, item))
			continue;
		of = kind->of(item);
		id = identity(kind, item, vhost, of);
		(void)json_object_set_new(
		    all, id, json_pack("{s:O, s:o}", "item", (json_t *)item, "of", of));
		free(id);
	}
	return all;
}

/* A password in clear, and the hash that the node keeps of it. */
static bool
is_same_password(const json_t *text, const json_t *user)
{
	const char *hash = json_string_value(json_object_get(user, "password_hash")),
	           *name = json_string_value(json_object_get(user, "hashing_algorithm"));
	enum password_kind kind =
	    password_kind_find(name != NULL ? span_of(name, strlen(name)) : SPAN_LIT(""));
	char bytes[2 * PASSWORD_HASH_MAX];
	struct password p;
	size_t n;

	if (hash == NULL || kind == PASSWORD_KINDS || !json_is_string(text) ||
	    json_string_length(text) > PASSWORD_LEN_MAX || strlen(hash) > sizeof bytes)
		return false;
	n = base64_decode(hash, strlen(hash), bytes);
	if (!password_from(&p, kind, span_of(bytes, n)))
		return false;
	password_init();
	return password_is(&p, span_of(json_string_value(text), json_string_length(text)));
}

/* Both as objects_by_identity() has them. NULL: nothing that the file says differs. */
static json_t *
change_of(const struct definitions_kind *kind, const json_t *wanted, const json_t *known)
{
	json_t *from = json_object(), *to = json_object(), *value, *before;
	json_t *item = json_object_get(wanted, "item"), *was = json_object_get(known, "of");
	const char *field;

	json_object_foreach(json_object_get(wanted, "of"), field, value)
	{
		before = json_object_get(was, field);
		if (before != NULL && json_equal(before, value))
			continue;
		if (kind->of == of_user && strcmp(field, "password") == 0 &&
		    is_same_password(value, json_object_get(known, "item")))
			continue;
		(void)json_object_set_new(
		    from, field, before != NULL ? json_incref(before) : json_null());
		(void)json_object_set(to, field, value);
	}
	if (json_object_size(to) == 0) {
		json_decref(from);
		json_decref(to);
		return NULL;
	}
	item = kind->complete != NULL ? kind->complete(item, json_object_get(known, "item"))
	                              : json_incref(item);
	return json_pack("{s:o, s:o, s:o}", "item", item, "was", from, "now", to);
}

void
definitions_compare(const struct definitions_kind *kind, const json_t *file, const json_t *there,
    const char *vhost, struct definitions_diff *out)
{
	const json_t *list = json_object_get(file, kind->key);
	json_t *known = objects_by_identity(kind, json_object_get(there, kind->key), vhost),
	       *wanted = objects_by_identity(kind, list, vhost), *one;
	const char *id;

	json_object_foreach(known, id, one)
	{
		if (kind->fill != NULL)
			kind->fill(json_object_get(one, "of"));
	}
	*out = (struct definitions_diff){ .added = json_array(),
		.changed = json_array(),
		.only = json_array(),
		.is_listed = json_is_array(list) };
	json_object_foreach(wanted, id, one)
	{
		const json_t *was = json_object_get(known, id);
		json_t *change = was != NULL ? change_of(kind, one, was) : NULL;

		if (was == NULL)
			(void)json_array_append(out->added, json_object_get(one, "item"));
		else if (change != NULL)
			(void)json_array_append_new(out->changed, change);
		else
			out->same++;
	}
	json_object_foreach(known, id, one) if (json_object_get(wanted, id) == NULL)(void)
	    json_array_append(out->only, json_object_get(one, "item"));
	json_decref(known);
	json_decref(wanted);
}

void
definitions_diff_fini(struct definitions_diff *d)
{
	json_decref(d->added);
	json_decref(d->changed);
	json_decref(d->only);
	*d = (struct definitions_diff){ 0 };
}
