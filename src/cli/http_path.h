/* SPDX-License-Identifier: Apache-2.0
 * Paths of the HTTP API, whose pieces may be names with any byte. */
#ifndef CLI_HTTP_PATH_H
#define CLI_HTTP_PATH_H

#include <stddef.h>

#include "base/attr.h"

/* The pattern with each '*' replaced by the next of n names, percent-encoded (RFC 3986: all but letters, digits and
 * "-._~"). There are as many names as stars. Owned by the caller. */
char *http_path(const char *pattern, const char *const *names, size_t n) MUSTUSE;

/* The same with the names as arguments: a pattern, then one for each star. */
#define HTTP_PATH(pattern, ...)                              \
	http_path(pattern, (const char *const[]){ __VA_ARGS__ }, \
	    COUNT_OF(((const char *const[]){ __VA_ARGS__ })))

#endif
