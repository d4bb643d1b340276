/* SPDX-License-Identifier: Apache-2.0
 * Passwords from a file, a pipe or a terminal. */
#ifndef CLI_PASSWORD_INPUT_H
#define CLI_PASSWORD_INPUT_H

#include <stdio.h>

#include "base/attr.h"

enum { PASSWORD_MAX = 4096 }; /* bytes */

/* A line without its end, owned by the caller. NULL: there is none, it is too long, or it has a NUL. */
char *password_read(FILE *in) MUSTUSE;

/* The same of standard input, a terminal, which does not show what is typed. Meanwhile an interrupt is a character that ends the
 * line, so that the terminal is never left as it is then. NULL: nothing was typed, or the interrupt. */
char *password_ask(const char *prompt) MUSTUSE;

#endif
