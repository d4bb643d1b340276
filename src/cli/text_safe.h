/* SPDX-License-Identifier: Apache-2.0
 * Names and reasons on a terminal. A name may hold any byte; what would move the cursor, begin an escape sequence or
 * turn the direction of the line is shown as \x1b (a byte) or \u202e (a character). Backslashes stay as they are: the
 * text is to be read by people, JSON is what programs take. */
#ifndef CLI_TEXT_SAFE_H
#define CLI_TEXT_SAFE_H

#include <stddef.h>

#include "base/attr.h"

/* n bytes made safe, NUL added; *columns (may be NULL) is how many columns of a terminal it takes. Owned by the caller. */
char *text_safe(const char *s, size_t n, size_t *columns) MUSTUSE;

/* The same as one line: line feeds and what is blank beside them become one blank. */
char *text_safe_line(const char *s) MUSTUSE;

/* printf whose %s are made safe: "queue '%s' in vhost '%s'". Knows %s and %% only. Owned by the caller. */
char *text_safe_format(const char *fmt, ...) PRINTF(1, 2) MUSTUSE;

/* Flags of jansson for JSON that goes to a descriptor: on a terminal all but ASCII is escaped, because JSON escapes
 * neither what turns the line nor what begins a sequence in one character. */
size_t text_safe_json(int fd);

#endif
