/* SPDX-License-Identifier: Apache-2.0
 * Regular expressions that users write: in permissions, policies, and filters of lists. PCRE2, matched byte by byte and
 * anywhere unless anchored, as RabbitMQ does, with bounds on what one match may cost. Core thread only. */
#ifndef BROKER_PATTERN_H
#define BROKER_PATTERN_H

#include <stddef.h>

#include "base/attr.h"
#include "base/bytes.h"

enum { PATTERN_LEN_MAX = 4096 };

struct pattern;

/* A text and its length without NUL in it. NULL: it is no regular expression, or too long; `why` says so ("missing
 * terminating ] for character class at byte 1"). ".*" is not even run. */
struct pattern *pattern_new(struct span text, char *why, size_t n) MUSTUSE;
void pattern_free(struct pattern **pp);

enum pattern_result { PATTERN_NO, PATTERN_YES, PATTERN_TOO_LONG };

/* PATTERN_TOO_LONG: the bounds were reached, after about a millisecond; the caller decides what that means, and says so. */
enum pattern_result pattern_match(const struct pattern *p, struct span subject) MUSTUSE;

#endif
