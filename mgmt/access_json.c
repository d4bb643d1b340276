/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/access_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/password.h"
#include "broker/limits.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/about.h"
#include "mgmt/json_brief.h"
#include "mgmt/request.h"

static json_t *
text(const char *s)
{
	return json_text(span_str(s));
}

json_t *
tags_json(const struct tags *t)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < t->count; i++)
		(void)json_array_append_new(list, text(t->item[i]));
	return list;
}

json_t *
vhost_json(const struct vhost *vh)
{
	json_t *meta = json_pack(
	    "{s:o, s:o}", "description", text(vh->description), "tags", tags_json(&vh->tags));
	json_t *o = json_pack("{s:o, s:o, s:o, s:o}", "name", text(vh->name), "description",
	    text(vh->description), "tags", tags_json(&vh->tags), "metadata", meta);

	if (vh->default_queue_type != NULL) {
		json_put(o, "default_queue_type", text(vh->default_queue_type));
		json_put(meta, "default_queue_type", text(vh->default_queue_type));
	}
	return o;
}

/* --- from JSON ----------------------------------------------------------------------- */

bool
tags_of_json(const json_t *tags, struct span tag[TAGS_MAX], uint32_t *count)
{
	const json_t *one;
	size_t i;

	*count = 0;
	if (json_is_string(tags))
		return tags_split(json_span(tags), tag, count);
	if (!json_is_array(tags) || json_array_size(tags) > TAGS_MAX)
		return false;
	json_array_foreach(tags, i, one)
	{
		if (!json_is_string(one))
			return false;
		tag[(*count)++] = json_span(one);
	}
	return true;
}

char *
json_term(const json_t *value)
{
	json_t *brief = json_brief(value);
	char *text = json_dumps(brief, JSON_ENCODE_ANY), *term;
	size_t n;

	json_decref(brief);
	if (text == NULL || !json_is_string(value))
		return text;
	n = strlen(text);
	term = try_malloc(n + sizeof "<<>>");
	if (term != NULL)
		(void)snprintf(term, n + sizeof "<<>>", "<<%s>>", text);
	free(text);
	return term;
}

static bool
limit_ok(struct vhost *vh, const char *name, const json_t *value, char *buf, size_t n)
{
	char *shown;

	if (vh != NULL ? vhost_limit_find(span_str(name)) == VHOST_LIMITS
	               : user_limit_find(span_str(name)) == USER_LIMITS) {
		shown = json_term(value);
		(void)snprintf(buf, n,
		    "Validation failed\n\nUnrecognised terms [{<<\"%.100s\">>,%.60s}] in %s\n",
		    name, shown != NULL ? shown : "", vh != NULL ? "limits" : "user-limits");
		free(shown);
		return false;
	}
	if (json_is_integer(value))
		return true;
	shown = json_term(value);
	(void)snprintf(buf, n, "Validation failed\n\n%s should be a number, actually was %.100s\n",
	    name, shown != NULL ? shown : "something else");
	free(shown);
	return false;
}

bool
limits_replace_json(struct vhost *vh, const json_t *limits, char *buf, size_t n)
{
	if (!json_is_object(limits) && (!json_is_array(limits) || json_array_size(limits) > 0)) {
		(void)snprintf(buf, n, "Validation failed\n\nlimits should be an object\n");
		return false;
	}
	if (json_is_object(limits) && !limits_set_json(vh, NULL, limits, buf, n))
		return false;
	for (unsigned i = 0; i < VHOST_LIMITS; i++)
		if (json_object_get(limits, vhost_limit_names[i]) == NULL)
			vhost_limit_clear(vh, (enum vhost_limit)i);
	return true;
}

bool
limits_set_json(struct vhost *vh, struct user *u, const json_t *limits, char *buf, size_t n)
{
	json_t *all = (json_t *)(uintptr_t)limits, *value; /* the library's walk takes no const */
	const char *name;

	json_object_foreach(all, name, value) if (!limit_ok(vh, name, value, buf, n)) return false;
	json_object_foreach(all, name, value)
	{
		if (vh != NULL)
			vhost_limit_set(
			    vh, vhost_limit_find(span_str(name)), json_integer_value(value));
		else
			user_limit_set(
			    u, user_limit_find(span_str(name)), json_integer_value(value));
	}
	return true;
}
