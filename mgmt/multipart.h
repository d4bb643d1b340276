/* SPDX-License-Identifier: Apache-2.0
 * Forms as browsers upload files with them: multipart/form-data (RFC 7578). */
#ifndef MGMT_MULTIPART_H
#define MGMT_MULTIPART_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"

/* Is the Content-Type (may be NULL) that of such a form? */
bool multipart_is(const char *content_type);

/* The bytes of the part of this name in a body of that type, within it. False: there is none, or it is no such form. */
bool multipart_find(const char *content_type, struct span body, const char *name, struct span *out) MUSTUSE;

#endif
