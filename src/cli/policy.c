/* SPDX-License-Identifier: Apache-2.0
 * hermes policy set|delete|list; with --operator the operators' policies. */
#include <errno.h>
#include <stdlib.h>

#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/list.h"
#include "cli/text_safe.h"

static char *
what_of(struct cli *c)
{
	return text_safe_format(cli_switch(c, "operator") ? "operator policy '%s' in vhost '%s'"
	                                                  : "policy '%s' in vhost '%s'",
	    cli_arg(c, 1), api_vhost(c));
}

static char *
path_of(struct cli *c)
{
	return HTTP_PATH(
	    cli_switch(c, "operator") ? "/api/operator-policies/*/*" : "/api/policies/*/*",
	    api_vhost(c), cli_arg(c, 1));
}

static bool
priority_of(struct cli *c, json_int_t *priority)
{
	const char *text = cli_value(c, "priority");
	char *end;

	errno = 0;
	*priority = strtoll(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0')
		return true;
	(void)cli_misuse(c, "--priority: '%.64s' is not a whole number", text);
	return false;
}

/* False: wrong, and was said. */
static bool
fill(struct cli *c, json_t *body)
{
	json_t *pattern = api_text(c, "the pattern", cli_arg(c, 2)), *apply_to, *definition;
	json_int_t priority;

	if (pattern == NULL || json_object_set_new(body, "pattern", pattern) != 0)
		return false;
	apply_to = api_text(c, "--apply-to", cli_value(c, "apply-to"));
	if (apply_to == NULL || json_object_set_new(body, "apply-to", apply_to) != 0 ||
	    !priority_of(c, &priority) ||
	    json_object_set_new(body, "priority", json_integer(priority)) != 0)
		return false;
	definition = api_arguments(c, "set", "definition");
	if (definition == NULL || json_object_set_new(body, "definition", definition) != 0)
		return false;
	if (json_object_size(definition) > 0)
		return true;
	(void)cli_misuse(c, "the policy says nothing: --set KEY=VALUE, such as --set "
	                    "max-length=1000, or --definition JSON");
	return false;
}

static int
policy_set(struct cli *c)
{
	json_t *body = json_object();

	if (fill(c, body))
		return api_put(c, path_of(c), body, what_of(c), "changed");
	json_decref(body);
	return CLI_USAGE;
}

static int
policy_delete(struct cli *c)
{
	return api_delete(c, path_of(c), what_of(c), "deleted");
}

static int
policy_list(struct cli *c)
{
	return list_show(
	    c, cli_switch(c, "operator") ? "operator-policies" : "policies", cli_value(c, "vhost"));
}

int
cmd_policy(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "set", policy_set, "NAME PATTERN", 2, 2,
		    "vhost operator set definition apply-to priority" },
		{ "delete", policy_delete, "NAME", 1, 1, "vhost operator" },
		{ "list", policy_list, "", 0, 0, "vhost operator json columns no-header" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
