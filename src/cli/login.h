/* SPDX-License-Identifier: Apache-2.0
 * The password that goes with the user who logs in. */
#ifndef CLI_LOGIN_H
#define CLI_LOGIN_H

#include <stdbool.h>

#include "base/attr.h"
#include "cli/cli.h"

/* Of --password or --password-file on the command line, else of `address` if it stands above the environment, else of the
 * environment (HERMES_PASSWORD, HERMES_PASSWORD_FILE), else of `address`, which may be NULL: it has none. Without any of them a
 * terminal is asked, once for all requests of a command; elsewhere it is empty. Owned by the caller. NULL: it was said why;
 * *rc is the exit status. */
char *login_password(struct cli *c, const char *user, const char *address, bool address_is_above, int *rc) MUSTUSE;

#endif
