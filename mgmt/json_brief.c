/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/json_brief.h"

#include "base/utf8.h"

enum {
	BRIEF_MAX = 1000,
	VALUE = 2 /* bytes of the shortest value and what parts it from the next */
};

/* Takes what v has from *left. False: it has more. Depth: the parser's bound. */
static bool
take(const json_t *v, size_t *left)
{
	json_t *any = (json_t *)(uintptr_t)v, *item; /* the library's walks take no const */
	size_t n = VALUE + (json_is_string(v) ? json_string_length(v) : 0), i;
	const char *name;

	if (n > *left)
		return false;
	*left -= n;
	json_object_keylen_foreach(any, name, i, item)
	{
		n = VALUE + i;
		if (n > *left)
			return false;
		*left -= n;
		if (!take(item, left))
			return false;
	}
	json_array_foreach(any, i, item)
	{
		if (!take(item, left))
			return false;
	}
	return true;
}

bool
json_is_short(const json_t *v, size_t max)
{
	return take(v, &max);
}

json_t *
json_brief(const json_t *v)
{
	if (json_is_short(v, BRIEF_MAX))
		return json_incref((json_t *)(uintptr_t)v);
	if (!json_is_string(v))
		return json_sprintf("%s of %zu", json_is_array(v) ? "a list" : "an object",
		    json_is_array(v) ? json_array_size(v) : json_object_size(v));
	return json_sprintf("%.*s...",
	    (int)utf8_cut(json_string_value(v), json_string_length(v), BRIEF_MAX),
	    json_string_value(v));
}
