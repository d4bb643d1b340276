/* SPDX-License-Identifier: Apache-2.0
 * hermes permission set|delete|list: what a user may do in a vhost, and with --topic which routing keys a topic exchange
 * takes from it and gives to it. */
#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/list.h"
#include "cli/text_safe.h"

static char *
what_of(struct cli *c)
{
	const char *user = cli_arg(c, 1), *vhost = api_vhost(c);
	const char *exchange = cli_value(c, "exchange");

	if (!cli_switch(c, "topic"))
		return text_safe_format("permission of user '%s' in vhost '%s'", user, vhost);
	if (exchange == NULL)
		return text_safe_format("topic permission of user '%s' in vhost '%s'", user, vhost);
	return text_safe_format(
	    "topic permission of user '%s' on exchange '%s' in vhost '%s'", user, exchange, vhost);
}

static bool
put_pattern(struct cli *c, json_t *body, const char *key, const char *pattern)
{
	json_t *text = api_text(c, key, pattern);

	return text != NULL && json_object_set_new(body, key, text) == 0;
}

static int
set_topic(struct cli *c)
{
	const char *exchange = cli_value(c, "exchange");
	json_t *body;

	if (exchange == NULL)
		return cli_misuse(c, "--topic is about an exchange: --exchange NAME is missing");
	if (cli_args(c) != 4)
		return cli_misuse(c,
		    "with --topic it is: hermes permission set USER WRITE READ --topic "
		    "--exchange NAME");
	body = json_object();
	if (put_pattern(c, body, "exchange", exchange) &&
	    put_pattern(c, body, "write", cli_arg(c, 2)) &&
	    put_pattern(c, body, "read", cli_arg(c, 3)))
		return api_put(c,
		    HTTP_PATH("/api/topic-permissions/*/*", api_vhost(c), cli_arg(c, 1)), body,
		    what_of(c), "changed");
	json_decref(body);
	return CLI_USAGE;
}

static int
permission_set(struct cli *c)
{
	json_t *body;

	if (cli_switch(c, "topic"))
		return set_topic(c);
	if (cli_given(c, "exchange"))
		return cli_misuse(c, "--exchange goes with --topic");
	if (cli_args(c) != 5)
		return cli_misuse(c, "something is missing; usage: hermes permission set USER "
		                     "CONFIGURE WRITE READ [OPTIONS]");
	body = json_object();
	if (put_pattern(c, body, "configure", cli_arg(c, 2)) &&
	    put_pattern(c, body, "write", cli_arg(c, 3)) &&
	    put_pattern(c, body, "read", cli_arg(c, 4)))
		return api_put(c, HTTP_PATH("/api/permissions/*/*", api_vhost(c), cli_arg(c, 1)),
		    body, what_of(c), "changed");
	json_decref(body);
	return CLI_USAGE;
}

static int
permission_delete(struct cli *c)
{
	const char *user = cli_arg(c, 1), *vhost = api_vhost(c);
	const char *exchange = cli_value(c, "exchange");
	char *path;

	if (!cli_switch(c, "topic") && exchange != NULL)
		return cli_misuse(c, "--exchange goes with --topic");
	if (!cli_switch(c, "topic"))
		path = HTTP_PATH("/api/permissions/*/*", vhost, user);
	else if (exchange == NULL)
		path = HTTP_PATH("/api/topic-permissions/*/*", vhost, user);
	else
		path = HTTP_PATH("/api/topic-permissions/*/*/*", vhost, user, exchange);
	return api_delete(c, path, what_of(c), "deleted");
}

static int
permission_list(struct cli *c)
{
	return list_show(
	    c, cli_switch(c, "topic") ? "topic-permissions" : "permissions", cli_value(c, "vhost"));
}

int
cmd_permission(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "set", permission_set, "USER CONFIGURE WRITE READ", 3, 4,
		    "vhost topic exchange" },
		{ "delete", permission_delete, "USER", 1, 1, "vhost topic exchange" },
		{ "list", permission_list, "", 0, 0, "vhost topic json columns no-header" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
