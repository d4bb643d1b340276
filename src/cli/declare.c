/* SPDX-License-Identifier: Apache-2.0
 * hermes declare queue|exchange NAME: makes it, or checks that the one that is there is as wanted. */
#include <stdlib.h>

#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

/* Takes arguments. */
static json_t *
common(struct cli *c, json_t *arguments)
{
	return json_pack("{s:b, s:b, s:o}", "durable", !cli_switch(c, "transient"), "auto_delete",
	    cli_switch(c, "auto-delete"), "arguments", arguments);
}

static int
declare_queue(struct cli *c)
{
	const char *name = cli_arg(c, 1), *vhost = api_vhost(c), *type = cli_value(c, "type");
	json_t *arguments = api_arguments(c, "argument", "arguments"), *text;

	if (arguments == NULL)
		return CLI_USAGE;
	if (type != NULL) {
		text = api_text(c, "--type", type);
		if (text == NULL) {
			json_decref(arguments);
			return CLI_USAGE;
		}
		(void)json_object_set_new(arguments, "x-queue-type", text);
	}
	return api_put(c, HTTP_PATH("/api/queues/*/*", vhost, name), common(c, arguments),
	    text_safe_format("queue '%s' in vhost '%s'", name, vhost), "there already:");
}

static int
declare_exchange(struct cli *c)
{
	const char *name = cli_arg(c, 1), *vhost = api_vhost(c), *given = cli_value(c, "type");
	json_t *arguments = api_arguments(c, "argument", "arguments"), *body, *type;

	if (arguments == NULL)
		return CLI_USAGE;
	type = api_text(c, "--type", given != NULL ? given : "direct");
	if (type == NULL) {
		json_decref(arguments);
		return CLI_USAGE;
	}
	body = common(c, arguments);
	(void)json_object_set_new(body, "type", type);
	(void)json_object_set_new(body, "internal", json_boolean(cli_switch(c, "internal")));
	return api_put(c, HTTP_PATH("/api/exchanges/*/*", vhost, name), body,
	    text_safe_format("exchange '%s' in vhost '%s'", name, vhost), "there already:");
}

int
cmd_declare(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "queue", declare_queue, "NAME", 1, 1,
		    "vhost type transient auto-delete argument arguments" },
		{ "exchange", declare_exchange, "NAME", 1, 1,
		    "vhost type transient auto-delete internal argument arguments" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
