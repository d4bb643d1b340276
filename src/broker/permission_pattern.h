/* SPDX-License-Identifier: Apache-2.0
 * The patterns of permissions and topic permissions: what is no regular expression is refused as RabbitMQ's tools expect
 * it, what takes too long allows nothing. */
#ifndef BROKER_PERMISSION_PATTERN_H
#define BROKER_PERMISSION_PATTERN_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

struct broker;
struct pattern;
struct user;

/* *out NULL: it matches no name. given: the text as somebody wrote it, for the refusal. */
const struct error *permission_pattern_new(struct span text, struct span given, struct pattern **out) MUSTUSE;
/* What it costs is counted in b->work. */
bool permission_pattern_allows(struct broker *b, const struct pattern *p, const struct user *u, struct span name)
    MUSTUSE;

#endif
