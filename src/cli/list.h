/* SPDX-License-Identifier: Apache-2.0
 * Lists of objects as tables or JSON: of `hermes list` and of the verb `list` of other commands. */
#ifndef CLI_LIST_H
#define CLI_LIST_H

#include "cli/cli.h"

/* Prints all of a kind, one of those of `hermes list` ("queues"), in a vhost or, NULL, in all. The command has the options
 * json, columns and no-header. */
int list_show(struct cli *c, const char *kind, const char *vhost);

#endif
