/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/http_client.h"
#include "cli/text_safe.h"

const char *
api_vhost(const struct cli *c)
{
	const char *vhost = cli_value(c, "vhost");

	return vhost != NULL ? vhost : "/";
}

/* `made` is said where the node answered 201, else `done`. */
static int
change(struct cli *c, enum http_method method, char *path, json_t *body, char *what,
    const char *made, const char *done)
{
	int status = 0;
	int rc = http_client_call(c,
	    &(struct http_call){ .method = method, .path = path, .body = body, .what = what },
	    &status, NULL);

	if (rc == CLI_OK)
		printf("%s %s\n", status == 201 ? made : done, what);
	json_decref(body);
	free(path);
	free(what);
	return rc;
}

int
api_put(struct cli *c, char *path, json_t *body, char *what, const char *again)
{
	return change(c, HTTP_PUT, path, body, what, "made", again);
}

int
api_post(struct cli *c, char *path, json_t *body, char *what, const char *done)
{
	return change(c, HTTP_POST, path, body, what, done, done);
}

int
api_delete(struct cli *c, char *path, char *what, const char *done)
{
	return change(c, HTTP_DELETE, path, NULL, what, done, done);
}

int
api_exists(struct cli *c, char *path, bool *exists, json_t **out)
{
	int status = 0;
	int rc = http_client_call(
	    c, &(struct http_call){ .path = path, .status_too = 404 }, &status, out);

	if (rc == CLI_OK)
		*exists = status != 404;
	free(path);
	return rc;
}

json_t *
api_text(struct cli *c, const char *name, const char *text)
{
	json_t *j = json_string(text);

	if (j == NULL)
		(void)cli_misuse(c, "%s is not UTF-8", name);
	return j;
}

const char *
api_binding_key(const json_t *list, const json_t *want)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (json_equal(json_object_get(row, "routing_key"),
		        json_object_get(want, "routing_key")) &&
		    json_equal(
		        json_object_get(row, "arguments"), json_object_get(want, "arguments")))
			return json_string_value(json_object_get(row, "properties_key"));
	}
	return NULL;
}

/* ---- NAME=VALUE ---- */

json_t *
api_value(const char *text)
{
	json_t *j = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	return j != NULL ? j : json_string(text);
}

static bool
add_one(struct cli *c, json_t *o, const char *option, const char *given)
{
	const char *equals = strchr(given, '=');
	char *name;
	bool fine;

	if (equals == NULL || equals == given) {
		(void)cli_misuse(c, "--%s %.200s: it is --%s NAME=VALUE", option, given, option);
		return false;
	}
	name = xstrndup(given, (size_t)(equals - given));
	fine = json_object_set_new(o, name, api_value(equals + 1)) == 0;
	if (!fine)
		(void)cli_misuse(c, "--%s %.200s is not UTF-8", option, name);
	free(name);
	return fine;
}

json_t *
api_arguments(struct cli *c, const char *each, const char *whole)
{
	const char *text = cli_value(c, whole);
	json_error_t error;
	json_t *o = text != NULL ? json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error)
	                         : json_object();

	if (!json_is_object(o)) {
		if (o == NULL)
			(void)cli_misuse(c, "--%s is not JSON: %s", whole, error.text);
		else
			(void)cli_misuse(c, "--%s is no JSON object: {\"NAME\": VALUE}", whole);
		json_decref(o);
		return NULL;
	}
	for (size_t i = 0; i < cli_count(c, each); i++) {
		if (!add_one(c, o, each, cli_nth(c, each, i))) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

bool
api_put_tags(struct cli *c, json_t *body, const char *tags)
{
	json_t *list = json_array();

	for (size_t n; *(tags += strspn(tags, ", ")) != '\0'; tags += n) {
		n = strcspn(tags, ", ");
		if (json_array_append_new(list, json_stringn(tags, n)) != 0) {
			(void)cli_misuse(c, "--tags is not UTF-8");
			json_decref(list);
			return false;
		}
	}
	return json_object_set_new(body, "tags", list) == 0;
}
