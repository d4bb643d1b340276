/* SPDX-License-Identifier: Apache-2.0
 * What commands that make, change and delete objects over the HTTP API have in common. */
#ifndef CLI_API_H
#define CLI_API_H

#include <jansson.h>

#include "base/attr.h"
#include "cli/cli.h"

/* --vhost or HERMES_VHOST, else "/". */
const char *api_vhost(const struct cli *c);

/* All three take `path`, which is encoded, `body` and `what`, which is safe to print ("queue 'q' in vhost '/'"), and
 * answer with the exit status. A change that was made is one line on standard output. */

/* PUT: "made WHAT", or where it was there before "`again` WHAT" ("there already:", "changed"). */
int api_put(struct cli *c, char *path, json_t *body, char *what, const char *again);
int api_post(struct cli *c, char *path, json_t *body, char *what, const char *done);
/* DELETE: "`done` WHAT" */
int api_delete(struct cli *c, char *path, char *what, const char *done);

/* Is there such an object? Takes `path`; *out (may be NULL) as http_client_call gives it. */
int api_exists(struct cli *c, char *path, bool *exists, json_t **out) MUSTUSE;

/* Of a list of bindings, the properties_key of the one whose routing_key and arguments are as wanted; borrowed from the list,
 * NULL: there is none. */
const char *api_binding_key(const json_t *list, const json_t *want);

/* The text as JSON, or NULL after saying that `name` is not UTF-8. */
json_t *api_text(struct cli *c, const char *name, const char *text) MUSTUSE;

/* A text that is JSON (5, true, "5", {...}) is that, any other is text. NULL: it is not UTF-8. */
json_t *api_value(const char *text) MUSTUSE;

/* An object of the values of the option `each`, NAME=VALUE that may be given several times, and of the option `whole`, a
 * JSON object. A VALUE is as of api_value. NULL: wrong, and was said. */
json_t *api_arguments(struct cli *c, const char *each, const char *whole) MUSTUSE;

/* Adds the words between the commas of `tags` as a list. False: wrong, and was said. */
bool api_put_tags(struct cli *c, json_t *body, const char *tags) MUSTUSE;

#endif
