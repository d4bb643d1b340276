/* SPDX-License-Identifier: Apache-2.0
 * Values that a client sent, as they are shown in answers: what takes up megabytes is neither walked through nor sent
 * back. */
#ifndef MGMT_JSON_BRIEF_H
#define MGMT_JSON_BRIEF_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/* False: v has more than max - 2 bytes as text. Looks at no more than that. */
bool json_is_short(const json_t *v, size_t max);

/* v itself; or in its place the beginning of a long text, and of a long list or object what it is. The caller's. */
json_t *json_brief(const json_t *v) MUSTUSE;

#endif
