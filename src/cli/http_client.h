/* SPDX-License-Identifier: Apache-2.0
 * One request to a node's HTTP API, for client commands. Blocks, on a loop of its own.
 *
 * The request goes to --url as --user with --password (guest, guest where neither is given). Functions return CLI_OK, or
 * the exit status after one line on standard error has said what went wrong, with the node's reason. */
#ifndef CLI_HTTP_CLIENT_H
#define CLI_HTTP_CLIENT_H

#include <jansson.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "cli/cli.h"

enum { HTTP_PATIENT_S = 24 * 3600 }; /* a limit_s for what takes as long as it takes */
enum http_method { HTTP_GET, HTTP_PUT, HTTP_POST, HTTP_DELETE };

struct http_call {
	enum http_method method;
	const char *path;    /* borrowed, encoded: http_path.h */
	const json_t *body;  /* borrowed, or NULL */
	const char *reason;  /* borrowed: the header X-Reason, without control characters; NULL: none */
	struct span text;    /* instead of body: JSON as it is; borrowed */
	const char *what;    /* borrowed: "queue 'q' in vhost '/'", which a 404 says is missing; NULL: none */
	int status_too;      /* a status that is an answer as well, such as 404; 0: none */
	const char *doing;   /* borrowed: "importing", which a terminal is told if it lasts; NULL: it is not told */
	int limit_s;        /* without a byte from the node that is a failure; 0: 10 for a GET, else 120 */
};

/* A path with an empty piece is wrong usage. CLI_OK: the node answered 200, 201, 204 or status_too. Then *status is that (NULL: not asked for), and *out the JSON
 * of the answer, owned by the caller, or NULL if it has no body (out NULL: not asked for). 200 has to come with JSON. */
int http_client_call(struct cli *c, const struct http_call *call, int *status, json_t **out) MUSTUSE;

int http_client_get(struct cli *c, const char *path, json_t **out) MUSTUSE;

#endif
