/* SPDX-License-Identifier: Apache-2.0
 * Policies as JSON, for the routes about them, for parameters and for definitions. */
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

/* With name and, if asked for, vhost; the caller's. */
json_t *policy_json(const struct policy *p, bool with_vhost) MUSTUSE;
/* Without: as the value of a parameter. */
json_t *policy_value_json(const struct policy *p) MUSTUSE;

/* For mgmt.c: answers to changes that all who are concerned have learnt of. */
void policy_changes_run(struct mgmt *m);
void policy_changes_stop(struct mgmt *m);

/* Sets a policy from the body of a PUT. NULL, or why not: a text that may lie in buf. */
const char *policy_set_json(struct vhost *vh, enum policy_kind kind, struct span name, const json_t *body, bool *is_new,
    char *buf, size_t n) MUSTUSE;

#endif
