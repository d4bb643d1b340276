/* SPDX-License-Identifier: Apache-2.0
 * The password that a user is to have: from a terminal, a pipe, the environment or the command line. */
#ifndef CLI_NEW_PASSWORD_H
#define CLI_NEW_PASSWORD_H

#include <jansson.h>

#include "base/attr.h"
#include "cli/cli.h"

/* Adds "password" or "password_hash" with its "hashing_algorithm" to `body`, unless --no-password. Else than CLI_OK: there is
 * none, which was said. The command has the options new-password, password-stdin, no-password, password-hash and
 * hashing-algorithm. Without any, a terminal is asked twice. */
int new_password_put(struct cli *c, json_t *body) MUSTUSE;

#endif
