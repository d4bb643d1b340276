/* SPDX-License-Identifier: Apache-2.0
 * hermes bind SOURCE DESTINATION, hermes unbind SOURCE DESTINATION. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/text_safe.h"

static const char *
key_of(const struct cli *c)
{
	const char *key = cli_value(c, "key");

	return key != NULL ? key : "";
}

static char *
path_of(struct cli *c)
{
	return HTTP_PATH(
	    cli_switch(c, "to-exchange") ? "/api/bindings/*/e/*/e/*" : "/api/bindings/*/e/*/q/*",
	    api_vhost(c), cli_arg(c, 0), cli_arg(c, 1));
}

static char *
what_of(struct cli *c)
{
	return cli_switch(c, "to-exchange")
	           ? text_safe_format("exchange '%s' to exchange '%s' with key '%s' in vhost '%s'",
	                 cli_arg(c, 0), cli_arg(c, 1), key_of(c), api_vhost(c))
	           : text_safe_format("exchange '%s' to queue '%s' with key '%s' in vhost '%s'",
	                 cli_arg(c, 0), cli_arg(c, 1), key_of(c), api_vhost(c));
}

/* {"routing_key", "arguments"} as the command line has them, NULL: wrong, and was said. */
static json_t *
wanted(struct cli *c)
{
	json_t *arguments = api_arguments(c, "argument", "arguments"),
	       *key = arguments != NULL ? api_text(c, "--key", key_of(c)) : NULL;

	if (key == NULL) {
		json_decref(arguments);
		return NULL;
	}
	return json_pack("{s:o, s:o}", "routing_key", key, "arguments", arguments);
}

int
cmd_bind(struct cli *c)
{
	json_t *body = wanted(c);

	if (body == NULL)
		return CLI_USAGE;
	return api_post(c, path_of(c), body, what_of(c), "bound");
}

/* The path has no room for arguments: which binding is meant is found in the list of those between the two. */
int
cmd_unbind(struct cli *c)
{
	json_t *want = wanted(c), *list = NULL;
	const char *key;
	char *path, *what, *binding;
	int rc;

	if (want == NULL)
		return CLI_USAGE;
	path = path_of(c);
	what = what_of(c);
	binding = xasprintf("binding of %s", what);
	rc = http_client_call(c, &(struct http_call){ .path = path, .what = binding }, NULL, &list);
	key = api_binding_key(list, want);
	if (rc != CLI_OK) {
		free(what);
	} else if (key == NULL) {
		rc = cli_fail(c, "there is no %s%s", binding,
		    json_array_size(list) > 0 ? "; of others there are some" : "");
		free(what);
	} else {
		char *tail = HTTP_PATH("/*", key);

		rc = api_delete(c, xasprintf("%s%s", path, tail), what, "unbound");
		free(tail);
	}
	json_decref(list);
	json_decref(want);
	free(binding);
	free(path);
	return rc;
}
