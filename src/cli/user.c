/* SPDX-License-Identifier: Apache-2.0
 * hermes user add|set|passwd|delete|list */
#include <stdlib.h>

#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/limit_options.h"
#include "cli/list.h"
#include "cli/new_password.h"
#include "cli/text_safe.h"

#define PASSWORD "new-password password-stdin no-password password-hash hashing-algorithm"

static char *
what_of(struct cli *c)
{
	return text_safe_format("user '%s'", cli_arg(c, 1));
}

static char *
path_of(struct cli *c)
{
	return HTTP_PATH("/api/users/*", cli_arg(c, 1));
}

static const char *const limits[] = { "max-connections", "max-channels", NULL };

static int
put_limits(struct cli *c)
{
	char *what = what_of(c);
	int rc = limit_options_put(c, limits, "/api/user-limits/*/*", cli_arg(c, 1), what);

	free(what);
	return rc;
}

/* Takes body. */
static int
put(struct cli *c, json_t *body)
{
	return api_put(c, path_of(c), body, what_of(c), "changed");
}

static int
user_add(struct cli *c)
{
	const char *tags = cli_value(c, "tags");
	bool exists = false;
	json_t *body;
	char *what;
	int rc;

	if (!limit_options_fine(c, limits))
		return CLI_USAGE;
	rc = api_exists(c, path_of(c), &exists, NULL);
	if (rc != CLI_OK)
		return rc;
	if (exists) {
		what = what_of(c);
		rc = cli_fail(c,
		    "%s is there already; 'hermes user passwd' and 'hermes user set' "
		    "change it",
		    what);
		free(what);
		return rc;
	}
	body = json_object();
	rc =
	    api_put_tags(c, body, tags != NULL ? tags : "") ? new_password_put(c, body) : CLI_USAGE;
	if (rc != CLI_OK) {
		json_decref(body);
		return rc;
	}
	rc = put(c, body);
	return rc == CLI_OK ? put_limits(c) : rc;
}

/* The user as it is, without what a PUT does not take. */
static int
get(struct cli *c, json_t **out)
{
	char *path = path_of(c), *what = what_of(c);
	int rc = http_client_call(c, &(struct http_call){ .path = path, .what = what }, NULL, out);

	free(path);
	free(what);
	return rc;
}

/* A PUT says all of a user: what is not to change goes back as it was. Takes user. */
static int
set_tags(struct cli *c, json_t *user, const char *tags)
{
	json_t *body =
	    json_pack("{s:O*, s:O*}", "password_hash", json_object_get(user, "password_hash"),
	        "hashing_algorithm", json_object_get(user, "hashing_algorithm"));
	json_decref(user);
	if (api_put_tags(c, body, tags))
		return put(c, body);
	json_decref(body);
	return CLI_USAGE;
}

static int
user_set(struct cli *c)
{
	const char *tags = cli_value(c, "tags");
	json_t *user = NULL;
	int rc;

	if (tags == NULL && !limit_options_given(c, limits))
		return cli_misuse(c, "nothing to set: --tags ('' takes all away), "
		                     "--max-connections or --max-channels");
	if (!limit_options_fine(c, limits))
		return CLI_USAGE;
	rc = get(c, &user);
	if (rc == CLI_OK && tags != NULL)
		rc = set_tags(c, user, tags);
	else
		json_decref(user);
	return rc == CLI_OK ? put_limits(c) : rc;
}

static int
user_passwd(struct cli *c)
{
	json_t *user = NULL, *body;
	int rc = get(c, &user);

	if (rc != CLI_OK)
		return rc;
	body = json_pack("{s:O*}", "tags", json_object_get(user, "tags"));
	json_decref(user);
	rc = new_password_put(c, body);
	if (rc == CLI_OK)
		return put(c, body);
	json_decref(body);
	return rc;
}

static int
user_delete(struct cli *c)
{
	return api_delete(c, path_of(c), what_of(c), "deleted");
}

static int
user_list(struct cli *c)
{
	return list_show(c, "users", NULL);
}

int
cmd_user(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "add", user_add, "NAME", 1, 1, "tags max-connections max-channels " PASSWORD },
		{ "set", user_set, "NAME", 1, 1, "tags max-connections max-channels" },
		{ "passwd", user_passwd, "NAME", 1, 1, PASSWORD },
		{ "delete", user_delete, "NAME", 1, 1, "" },
		{ "list", user_list, "", 0, 0, "json columns no-header" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
