/* SPDX-License-Identifier: Apache-2.0
 * One request to a node's HTTP API, for client commands. Blocks, on a loop of its own. */
#ifndef CLI_HTTP_CLIENT_H
#define CLI_HTTP_CLIENT_H

#include <jansson.h>

#include "base/attr.h"
#include "cli/cli.h"

/* GETs `path` below --url as --user with --password (guest, guest where neither is given). CLI_OK: *out is
 * the JSON of the answer, owned by the caller. Else the exit status, after one line on standard error has
 * said what to do. */
int http_client_get(struct cli *c, const char *path, json_t **out) MUSTUSE;
/* The same as POST with `body` (borrowed) as JSON; waits for the answer as long as it takes. */
int http_client_post(struct cli *c, const char *path, json_t *body, json_t **out) MUSTUSE;

#endif
