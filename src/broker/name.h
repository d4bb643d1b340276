/* SPDX-License-Identifier: Apache-2.0
 * What a name of an account, a vhost or a parameter may be: at most 255 bytes of UTF-8 without NUL, for it is shown as
 * JSON and written to the log. */
#ifndef BROKER_NAME_H
#define BROKER_NAME_H

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

enum { NAME_BYTES_MAX = 255 };

/* Bytes of a span for functions that want a char pointer; never NULL. */
#define SPAN_CHARS(s) ((s).n > 0 ? (const char *)(s).p : "")

/* NULL, or 406 "WHAT is longer than 255 bytes". An empty one passes. */
const struct error *name_check(const char *what, struct span name) MUSTUSE;

#endif
