/* SPDX-License-Identifier: Apache-2.0
 * hermes delete queue|exchange|connection NAME */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/cli_verbs.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

static char *
with_conditions(char *path, bool if_empty, bool if_unused)
{
	char *whole = xasprintf("%s%s%s%s", path, if_empty || if_unused ? "?" : "",
	    if_empty ? "if-empty=true" : "",
	    if_unused ? if_empty ? "&if-unused=true" : "if-unused=true" : "");

	free(path);
	return whole;
}

static int
delete_queue(struct cli *c)
{
	const char *name = cli_arg(c, 1), *vhost = api_vhost(c);

	return api_delete(c,
	    with_conditions(HTTP_PATH("/api/queues/*/*", vhost, name), cli_switch(c, "if-empty"),
	        cli_switch(c, "if-unused")),
	    text_safe_format("queue '%s' in vhost '%s'", name, vhost), "deleted");
}

static int
delete_exchange(struct cli *c)
{
	const char *name = cli_arg(c, 1), *vhost = api_vhost(c);

	return api_delete(c,
	    with_conditions(
	        HTTP_PATH("/api/exchanges/*/*", vhost, name), false, cli_switch(c, "if-unused")),
	    text_safe_format("exchange '%s' in vhost '%s'", name, vhost), "deleted");
}

/* Its client is told the reason. */
static int
delete_connection(struct cli *c)
{
	const char *name = cli_arg(c, 1), *reason = cli_value(c, "reason");
	char *path, *what;
	int rc;

	for (const char *p = reason; p != NULL && *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return cli_misuse(c, "--reason: it is one line of text");
	path = HTTP_PATH("/api/connections/*", name);
	what = text_safe_format("connection '%s'", name);
	rc = http_client_call(c,
	    &(struct http_call){
	        .method = HTTP_DELETE, .path = path, .what = what, .reason = reason },
	    NULL, NULL);
	if (rc == CLI_OK)
		printf("closed %s\n", what);
	free(path);
	free(what);
	return rc;
}

int
cmd_delete(struct cli *c)
{
	static const struct cli_verb verbs[] = {
		{ "queue", delete_queue, "NAME", 1, 1, "vhost if-empty if-unused" },
		{ "exchange", delete_exchange, "NAME", 1, 1, "vhost if-unused" },
		{ "connection", delete_connection, "NAME", 1, 1, "reason" },
		{ .name = NULL },
	};

	return cli_run_verb(c, verbs);
}
