/* SPDX-License-Identifier: Apache-2.0
 * The patterns of permissions and topic permissions: what is no regular expression is refused as RabbitMQ's tools expect
 * it, what takes too long allows nothing. */
#ifndef BROKER_PERMISSION_PATTERN_H
#define BROKER_PERMISSION_PATTERN_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"

struct broker;
struct error;
struct pattern;
struct user;

enum { PERMISSION_PATTERNS_MAX = 4 };

/* n texts (n <= PERMISSION_PATTERNS_MAX), as given, become the owner's: text[i], and pattern[i], NULL where it matches no
 * name. Counted as MEM_TOPOLOGY. `variables` not NULL: {username} and {vhost} stand for these names, taken literally. NULL,
 * or the refusal for one that is no pattern: nothing has changed then. */
struct pattern_variables {
	const char *username, *vhost;
};
const struct error *permission_patterns_set(struct pattern **pattern, char **text, const char *const *given, unsigned n,
    const struct pattern_variables *variables) MUSTUSE;
void permission_patterns_free(struct pattern **pattern, char **text, unsigned n);

/* What it costs is counted in b->work. */
bool permission_pattern_allows(struct broker *b, const struct pattern *p, const struct user *u, struct span name)
    MUSTUSE;

#endif
