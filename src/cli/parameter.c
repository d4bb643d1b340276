/* SPDX-License-Identifier: Apache-2.0
 * hermes parameter set|delete|list: runtime parameters, of a component in a vhost or, with --global, of none. */
#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/list.h"
#include "cli/text_safe.h"

/* How many words name it: NAME, or COMPONENT NAME. */
static size_t
name_words(const struct cli *c)
{
	return cli_switch(c, "global") ? 1 : 2;
}

static char *
what_of(struct cli *c)
{
	return cli_switch(c, "global")
	           ? text_safe_format("global parameter '%s'", cli_arg(c, 1))
	           : text_safe_format("parameter '%s' of component '%s' in vhost '%s'",
	                 cli_arg(c, 2), cli_arg(c, 1), api_vhost(c));
}

static char *
path_of(struct cli *c)
{
	return cli_switch(c, "global")
	           ? HTTP_PATH("/api/global-parameters/*", cli_arg(c, 1))
	           : HTTP_PATH("/api/parameters/*/*/*", cli_arg(c, 1), api_vhost(c), cli_arg(c, 2));
}

/* The verb, what names it, `more` words. CLI_OK: so many there are. */
static int
check_words(struct cli *c, size_t more, const char *in_vhost, const char *global)
{
	bool is_global = cli_switch(c, "global");

	if (is_global && cli_count(c, "vhost") > 0)
		return cli_misuse(c, "--global is of no vhost: --vhost does not go with it");
	if (cli_args(c) != 1 + name_words(c) + more)
		return cli_misuse(c, "%s it is: hermes parameter %s",
		    is_global ? "with --global" : "without --global",
		    is_global ? global : in_vhost);
	return CLI_OK;
}

static int
parameter_set(struct cli *c)
{
	int rc = check_words(c, 1, "set COMPONENT NAME VALUE", "set NAME VALUE --global");
	json_t *value;

	if (rc != CLI_OK)
		return rc;
	value = api_value(cli_arg(c, 1 + name_words(c)));
	if (value == NULL)
		return cli_misuse(c, "the value is not UTF-8");
	return api_put(c, path_of(c), json_pack("{s:o}", "value", value), what_of(c), "changed");
}

static int
parameter_delete(struct cli *c)
{
	int rc = check_words(c, 0, "delete COMPONENT NAME", "delete NAME --global");

	return rc == CLI_OK ? api_delete(c, path_of(c), what_of(c), "deleted") : rc;
}

static int
parameter_list(struct cli *c)
{
	if (cli_switch(c, "global"))
		return list_show(c, "global-parameters", NULL);
	return list_show(c, "parameters", cli_value(c, "vhost"));
}

int
cmd_parameter(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "set", parameter_set, "COMPONENT NAME VALUE", 2, 3, "vhost global" },
		{ "delete", parameter_delete, "COMPONENT NAME", 1, 2, "vhost global" },
		{ "list", parameter_list, "", 0, 0, "vhost global json columns no-header" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
