/* SPDX-License-Identifier: Apache-2.0
 * hermes snapshot DIR: asks a running node to copy its data into a new folder, and waits until it is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/http_client.h"

/* The node's working folder is another one. NULL: ours is not known. */
static char *
absolute(const char *path)
{
	char *here, *whole;

	if (path[0] == '/')
		return xstrdup(path);
	here = getcwd(NULL, 0);
	if (here == NULL)
		return NULL;
	whole = xasprintf("%s/%s", here, path);
	free(here);
	return whole;
}

int
cmd_snapshot(struct cli *c)
{
	char *path = absolute(cli_arg(c, 0));
	json_t *body;
	int rc;

	if (path == NULL)
		return cli_fail(c, "the working folder is not known: %s; give an absolute path",
		    strerror(errno));
	body = json_pack("{s:s}", "path", path);
	if (body == NULL) {
		rc = cli_misuse(c, "the path is not UTF-8");
	} else {
		rc = http_client_call(c,
		    &(struct http_call){ .method = HTTP_POST,
		        .path = "/api/hermes/snapshot",
		        .body = body,
		        .what = "cannot make it",
		        .doing = "backing up",
		        .limit_s = HTTP_PATIENT_S },
		    NULL, NULL);
		if (rc == CLI_OK)
			printf("%s\n", path);
	}
	json_decref(body);
	free(path);
	return rc;
}
