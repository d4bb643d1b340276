/* SPDX-License-Identifier: Apache-2.0
 * hermes vhost add|set|delete|list */
#include <stdlib.h>
#include <string.h>

#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/limit_options.h"
#include "cli/list.h"
#include "cli/text_safe.h"

#define OPTIONS "description tags default-queue-type max-connections max-queues tracing"

static char *
what_of(struct cli *c)
{
	return text_safe_format("vhost '%s'", cli_arg(c, 1));
}

static char *
path_of(struct cli *c)
{
	return HTTP_PATH("/api/vhosts/*", cli_arg(c, 1));
}

static const char *const limits[] = { "max-connections", "max-queues", NULL };

/* False: wrong, and was said. */
static bool
put_tracing(struct cli *c, json_t *body)
{
	const char *value = cli_value(c, "tracing");

	if (value == NULL)
		return true;
	if (strcmp(value, "on") == 0 || strcmp(value, "off") == 0)
		return json_object_set_new(
		           body, "tracing", json_boolean(strcmp(value, "on") == 0)) == 0;
	(void)cli_misuse(c, "--tracing: it is on or off");
	return false;
}

static bool
put_text(struct cli *c, json_t *body, const char *key, const char *option)
{
	const char *value = cli_value(c, option);
	json_t *text;

	if (value == NULL)
		return true;
	text = api_text(c, option, value);
	return text != NULL && json_object_set_new(body, key, text) == 0;
}

static int
put_limits(struct cli *c)
{
	char *what = what_of(c);
	int rc = limit_options_put(c, limits, "/api/vhost-limits/*/*", cli_arg(c, 1), what);

	free(what);
	return rc;
}

/* What is not given stays as it is. */
static int
put(struct cli *c, bool is_there)
{
	const char *tags = cli_value(c, "tags");
	json_t *body = json_object();
	int rc = CLI_OK;

	if (!put_text(c, body, "description", "description") ||
	    !put_text(c, body, "default_queue_type", "default-queue-type") ||
	    !put_tracing(c, body) || (tags != NULL && !api_put_tags(c, body, tags))) {
		json_decref(body);
		return CLI_USAGE;
	}
	if (!is_there || json_object_size(body) > 0)
		rc = api_put(c, path_of(c), body, what_of(c), "changed");
	else
		json_decref(body);
	return rc == CLI_OK ? put_limits(c) : rc;
}

static int
put_if(struct cli *c, bool wanted, const char *else_said)
{
	bool exists = false;
	char *what;
	int rc;

	if (!limit_options_fine(c, limits))
		return CLI_USAGE;
	rc = api_exists(c, path_of(c), &exists, NULL);
	if (rc != CLI_OK || exists == wanted)
		return rc != CLI_OK ? rc : put(c, exists);
	what = what_of(c);
	rc = cli_fail(c, "%s is %s", what, else_said);
	free(what);
	return rc;
}

static int
vhost_add(struct cli *c)
{
	return put_if(c, false, "there already; 'hermes vhost set' changes it");
}

static int
vhost_set(struct cli *c)
{
	if (!cli_given(c, "description") && !cli_given(c, "tags") &&
	    !cli_given(c, "default-queue-type") && !cli_given(c, "tracing") &&
	    !limit_options_given(c, limits))
		return cli_misuse(c, "nothing to set: --description, --tags, --default-queue-type, "
		                     "--max-connections, --max-queues or --tracing");
	return put_if(c, true, "not there; 'hermes vhost add' makes it");
}

static int
vhost_delete(struct cli *c)
{
	return api_delete(c, path_of(c), what_of(c), "deleted");
}

static int
vhost_list(struct cli *c)
{
	return list_show(c, "vhosts", NULL);
}

int
cmd_vhost(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "add", vhost_add, "NAME", 1, 1, OPTIONS },
		{ "set", vhost_set, "NAME", 1, 1, OPTIONS },
		{ "delete", vhost_delete, "NAME", 1, 1, "" },
		{ "list", vhost_list, "", 0, 0, "json columns no-header" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
