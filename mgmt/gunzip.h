/* SPDX-License-Identifier: Apache-2.0
 * What came compressed (RFC 1952): bodies of requests, files of definitions. */
#ifndef MGMT_GUNZIP_H
#define MGMT_GUNZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/bytes.h"

enum gunzip {
	GUNZIP_DONE,
	GUNZIP_DAMAGED,		/* not gzip, not whole, or something stands behind it */
	GUNZIP_LONG,		/* it has more than `max` bytes */
	GUNZIP_NO_MEMORY
};

/* Does it begin as gzip does? */
bool gunzip_is(struct span in);

/* The content of `in`, of at most `max` bytes: *text is the caller's (free), *n bytes and a NUL behind them; NULL unless it is
 * DONE. It never holds more than twice of what is there. On any thread. */
enum gunzip gunzip(struct span in, size_t max, char **text, size_t *n) MUSTUSE;

#endif
