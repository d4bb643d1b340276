/* SPDX-License-Identifier: Apache-2.0
 * Names of what operators make. */
#include "broker/name.h"

#include <string.h>

#include "base/utf8.h"

const struct error *
name_check(const char *what, struct span name)
{
	if (name.n > NAME_BYTES_MAX)
		return error_make(
		    E_PRECONDITION_FAILED, "%s is longer than %d bytes", what, NAME_BYTES_MAX);
	if (name.n > 0 && (!utf8_valid(name.p, name.n) || memchr(name.p, '\0', name.n) != NULL))
		return error_make(E_PRECONDITION_FAILED, "%s is not UTF-8 without NUL", what);
	return NULL;
}
