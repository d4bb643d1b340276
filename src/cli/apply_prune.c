/* SPDX-License-Identifier: Apache-2.0
 * Objects go one by one, in the other order than they are made in: nothing is taken away from under another. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/apply.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

static const char *
text_of(const struct apply *a, const json_t *item, const char *field)
{
	const char *text = strcmp(field, "vhost") == 0 && a->vhost != NULL
	                       ? a->vhost
	                       : json_string_value(json_object_get(item, field));

	return text != NULL ? text : "";
}

static bool
is_kind(const struct definitions_kind *kind, const char *key)
{
	return strcmp(kind->key, key) == 0;
}

/* The node's own, which no file need have. */
static bool
is_of_node(const struct definitions_kind *kind, const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));

	return is_kind(kind, "global_parameters") && name != NULL &&
	       strcmp(name, "cluster_name") == 0;
}

bool
apply_prunes(const struct apply *a, const struct definitions_kind *kind, const json_t *item)
{
	return cli_switch(a->cli, "prune") && a->diff[kind - definitions_kinds].is_listed &&
	       !is_of_node(kind, item);
}

/* How many go, of one kind or (key NULL) of all. */
static size_t
count(const struct apply *a, const char *key)
{
	size_t n = 0, i;

	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++) {
		const json_t *item;

		if (key != NULL && !is_kind(k, key))
			continue;
		json_array_foreach(a->diff[k - definitions_kinds].only, i, item)
		{
			n += apply_prunes(a, k, item);
		}
	}
	return n;
}

size_t
apply_prune_count(const struct apply *a)
{
	return count(a, NULL);
}

/* ---- one object ---- */

/* CLI_OK: it is not there any more. Takes path. */
static int
delete_at(const struct apply *a, char *path)
{
	int rc = http_client_call(a->cli,
	    &(struct http_call){ .method = HTTP_DELETE, .path = path, .status_too = 404 }, NULL,
	    NULL);

	free(path);
	return rc;
}

/* Each limit is deleted by its own name. */
static int
delete_limits(const struct apply *a, const json_t *item)
{
	json_t *limits = json_object_get(item, "value"), *value;
	const char *limit;
	int rc = CLI_OK;

	json_object_foreach(limits, limit, value)
	{
		if (rc == CLI_OK)
			rc = delete_at(a,
			    HTTP_PATH("/api/vhost-limits/*/*", text_of(a, item, "vhost"), limit));
	}
	return rc;
}

static int
delete_parameter(const struct apply *a, const json_t *item)
{
	const char *component = text_of(a, item, "component"), *vhost = text_of(a, item, "vhost"),
	           *name = text_of(a, item, "name");

	if (strcmp(component, "vhost-limits") == 0)
		return delete_limits(a, item);
	if (strcmp(component, "operator_policy") == 0)
		return delete_at(a, HTTP_PATH("/api/operator-policies/*/*", vhost, name));
	return delete_at(a, HTTP_PATH("/api/parameters/*/*/*", component, vhost, name));
}

/* Its path has a key that the node makes of its arguments: it is found in the list of those between the two. */
static int
delete_binding(const struct apply *a, const json_t *item)
{
	bool to_queue = strcmp(text_of(a, item, "destination_type"), "queue") == 0;
	char *path = HTTP_PATH(to_queue ? "/api/bindings/*/e/*/q/*" : "/api/bindings/*/e/*/e/*",
	    text_of(a, item, "vhost"), text_of(a, item, "source"), text_of(a, item, "destination"));
	json_t *list = NULL;
	const char *key;
	int rc = http_client_call(
	    a->cli, &(struct http_call){ .path = path, .status_too = 404 }, NULL, &list);

	key = rc == CLI_OK ? api_binding_key(list, item) : NULL;
	if (key != NULL) {
		char *tail = HTTP_PATH("/*", key);

		rc = delete_at(a, xasprintf("%s%s", path, tail));
		free(tail);
	}
	json_decref(list);
	free(path);
	return rc;
}

static int
delete_one(const struct apply *a, const struct definitions_kind *kind, const json_t *item)
{
	const char *vhost = text_of(a, item, "vhost"), *name = text_of(a, item, "name"),
	           *user = text_of(a, item, "user");

	if (is_kind(kind, "bindings"))
		return delete_binding(a, item);
	if (is_kind(kind, "parameters"))
		return delete_parameter(a, item);
	if (is_kind(kind, "exchanges"))
		return delete_at(a, HTTP_PATH("/api/exchanges/*/*", vhost, name));
	if (is_kind(kind, "queues"))
		return delete_at(a, HTTP_PATH("/api/queues/*/*", vhost, name));
	if (is_kind(kind, "policies"))
		return delete_at(a, HTTP_PATH("/api/policies/*/*", vhost, name));
	if (is_kind(kind, "permissions"))
		return delete_at(a, HTTP_PATH("/api/permissions/*/*", vhost, user));
	if (is_kind(kind, "topic_permissions"))
		return delete_at(a, HTTP_PATH("/api/topic-permissions/*/*/*", vhost, user,
		                        text_of(a, item, "exchange")));
	if (is_kind(kind, "vhosts"))
		return delete_at(a, HTTP_PATH("/api/vhosts/*", name));
	if (is_kind(kind, "users"))
		return delete_at(a, HTTP_PATH("/api/users/*", name));
	return delete_at(a, HTTP_PATH("/api/global-parameters/*", name));
}

/* ---- all of them ---- */

/* A name that a path cannot have: what stands before its NUL may be another object's. */
static bool
has_nul(const struct definitions_kind *kind, const json_t *item)
{
	for (size_t i = 0; i < COUNT_OF(kind->fields) && kind->fields[i] != NULL; i++) {
		const json_t *value = json_object_get(item, kind->fields[i]);

		if (json_is_string(value) &&
		    strlen(json_string_value(value)) != json_string_length(value))
			return true;
	}
	return false;
}

/* Who runs this stays: he has to be there until the end, and somebody has to be able to log in. */
static int
who_am_i(const struct apply *a, json_t **me)
{
	json_t *answer = NULL;
	int rc = http_client_get(a->cli, "/api/whoami", &answer);

	if (rc == CLI_OK)
		*me = json_incref(json_object_get(answer, "name"));
	json_decref(answer);
	return rc;
}

static bool
stays(const struct apply *a, const struct definitions_kind *kind, const json_t *item,
    const json_t *me)
{
	bool is_me = is_kind(kind, "users") && json_equal(json_object_get(item, "name"), me);
	char *name;

	if (!is_me && !has_nul(kind, item))
		return false;
	name = definitions_say(kind, item, a->vhost);
	(void)cli_fail(a->cli, "%s stays: %s", name,
	    is_me ? "it is who does this" : "there is a NUL in its name");
	free(name);
	return true;
}

/* Goes on behind one that cannot be removed, which the request itself has told of. */
static int
remove_kind(const struct apply *a, const struct definitions_kind *kind, const json_t *me, size_t *n)
{
	const json_t *item;
	int rc = CLI_OK, one;
	size_t i;

	json_array_foreach(a->diff[kind - definitions_kinds].only, i, item)
	{
		if (!apply_prunes(a, kind, item))
			continue;
		one = stays(a, kind, item, me) ? CLI_FAILED : delete_one(a, kind, item);
		if (one != CLI_OK)
			rc = one;
		else
			(*n)++;
	}
	return rc;
}

static char *
question(const struct apply *a)
{
	size_t queues = count(a, "queues"), vhosts = count(a, "vhosts");

	if (vhosts > 0)
		return xasprintf("Remove the %zu behind -, among them %zu queues and %zu virtual "
		                 "hosts with all their messages?",
		    a->removed, queues, vhosts);
	if (queues > 0)
		return xasprintf(
		    "Remove the %zu behind -, among them %zu queues with all their messages?",
		    a->removed, queues);
	return xasprintf("Remove the %zu behind -?", a->removed);
}

int
apply_prune(const struct apply *a)
{
	char *asked = question(a);
	bool is_yes = apply_confirm(a, "yes-prune", asked);
	json_t *me = NULL;
	size_t n = 0;
	int rc, one;

	free(asked);
	if (!is_yes)
		return cli_fail(a->cli, "nothing was removed; --yes-prune removes without asking");
	rc = who_am_i(a, &me);
	for (size_t k = DEFINITIONS_KINDS; me != NULL && k-- > 0;) {
		one = remove_kind(a, &definitions_kinds[k], me, &n);
		if (one != CLI_OK)
			rc = one;
	}
	if (!cli_switch(a->cli, "json"))
		printf("removed %zu\n", n);
	json_decref(me);
	return rc;
}
