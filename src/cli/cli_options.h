/* SPDX-License-Identifier: Apache-2.0
 * What the files of the shell side share with each other: the options that several commands have, and the help that
 * is made from the table. */
#ifndef CLI_CLI_OPTIONS_H
#define CLI_CLI_OPTIONS_H

#include <stdio.h>

#include "cli/cli.h"

extern const struct cli_option cli_http_options[];   /* of commands that talk to the HTTP API */
extern const struct cli_option cli_amqp_options[];   /* of commands that talk AMQP */
extern const struct cli_option cli_client_options[]; /* of both */
extern const struct cli_option cli_common_options[]; /* of every command */

const struct cli_option *cli_option_at(const struct cli_command *k, size_t i);
const struct cli_command *cli_command_find(const char *name);

int cli_unknown_command(const char *word); /* says so, and which is nearest; CLI_USAGE */

void cli_help_all(FILE *out);
void cli_help_one(FILE *out, const struct cli_command *k);

#endif
