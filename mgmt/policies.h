/* SPDX-License-Identifier: Apache-2.0
 * Policies from JSON, for the routes about them and for definitions. */
#ifndef MGMT_POLICIES_H
#define MGMT_POLICIES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/policy.h"

struct mgmt;

enum { POLICY_REASON_MAX = 400 };

/* For mgmt.c: answers to changes that all who are concerned have learnt of. */
void policy_changes_run(struct mgmt *m);
void policy_changes_stop(struct mgmt *m);

/* Sets a policy from the body of a PUT. NULL, or why not: a text that may lie in buf. */
const char *policy_set_json(struct vhost *vh, enum policy_kind kind, struct span name, const json_t *body, bool *is_new,
    char *buf, size_t n) MUSTUSE;

#endif
