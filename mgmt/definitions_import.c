/* SPDX-License-Identifier: Apache-2.0
 * An import: section after section, item after item, in slices; what could not be made is noted. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/vhost.h"
#include "mgmt/definitions.h"
#include "mgmt/request.h"

enum { LOOK_AT_CLOCK = 16 /* items between two looks */ };

/* In the order in which one needs another. */
static const struct section {
	const char *name, *what;
	import_fn *fn;
	bool in_vhost; /* also of a file that is for one vhost */
} sections[] = {
	{ "global_parameters", "global parameter", import_global_parameter, false },
	{ "users", "user", import_user, false },
	{ "vhosts", "vhost", import_vhost, false },
	{ "permissions", "permission", import_permission, false },
	{ "topic_permissions", "topic permission", import_topic_permission, false },
	{ "parameters", "parameter", import_parameter, true },
	{ "policies", "policy", import_policy, true },
	{ "queues", "queue", import_queue, true },
	{ "exchanges", "exchange", import_exchange, true },
	{ "bindings", "binding", import_binding, true },
};

const char import_later[] = "later";

struct import *
import_new(struct broker *b, json_t *doc, const char *vhost)
{
	struct import *im = xcalloc(1, sizeof *im);

	im->broker = b;
	im->doc = doc;
	im->only = vhost != NULL ? xstrdup(vhost) : NULL;
	im->errors = json_array();
	return im;
}

void
import_free(struct import **imp, json_t **doc)
{
	struct import *im = *imp;

	*imp = NULL;
	if (im->is_hashing) {
		im->is_freed = true; /* who hashes comes back here */
		return;
	}
	if (doc != NULL)
		*doc = im->doc;
	else
		json_decref(im->doc);
	json_decref(im->errors);
	free(im->only);
	free(im);
}

/* ---- for the items ---- */

const char *
import_because(struct import *im, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(im->why, sizeof im->why, fmt, ap);
	va_end(ap);
	return im->why;
}

struct span
import_text(struct import *im, const json_t *item, const char *key)
{
	const json_t *v = json_object_get(item, key);

	if (v == NULL)
		(void)import_because(im, "{key_missing,%s}: it has to have '%s'", key, key);
	else if (!json_is_string(v))
		(void)import_because(im, "%s is no string", key);
	return json_span(v);
}

struct vhost *
import_vhost_of(struct import *im, const json_t *item)
{
	struct vhost *vh = im->vhost;
	struct span name;

	if (im->only != NULL)
		return vh;
	name = import_text(im, item, "vhost");
	if (name.p == NULL)
		return NULL;
	vh = vhost_find(im->broker, name);
	if (vh == NULL)
		(void)import_because(
		    im, "{no_such_vhost,<<\"%.*s\">>}: there is no such vhost", SPAN_FMT(name));
	return vh;
}

/* ---- the report ---- */

/* "queue 'q' in vhost '/'", "binding from 'x' to 'q' in vhost '/'" */
static void
describe(const struct import *im, const struct section *s, const json_t *item, char *buf, size_t n)
{
	static const char *const keys[] = { "name", "user", "source" };
	const char *name = NULL, *to = json_string_value(json_object_get(item, "destination"));
	const char *vhost = im->only;
	int len;

	for (size_t i = 0; i < COUNT_OF(keys) && name == NULL; i++)
		name = json_string_value(json_object_get(item, keys[i]));
	if (vhost == NULL)
		vhost = json_string_value(json_object_get(item, "vhost"));
	len = snprintf(buf, n, "%s %s'%.255s'", s->what, s->fn == import_binding ? "from " : "",
	    name != NULL ? name : "");
	if (to != NULL && len > 0 && (size_t)len < n)
		len += snprintf(buf + len, n - (size_t)len, " to '%.255s'", to);
	if (vhost != NULL && len > 0 && (size_t)len < n)
		(void)snprintf(buf + len, n - (size_t)len, " in vhost '%.255s'", vhost);
}

static void
note(struct import *im, const struct section *s, const json_t *item, const char *why)
{
	char object[900];

	im->failed++;
	if (json_array_size(im->errors) >= IMPORT_ERRORS_MAX)
		return;
	describe(im, s, item, object, sizeof object);
	(void)json_array_append_new(
	    im->errors, json_pack("{s:o, s:o}", "object", json_text(span_str(object)), "reason",
	                    json_text(span_str(why))));
}

bool
import_waits(const struct import *im)
{
	return im->is_hashing;
}

void
import_counts(const struct import *im, uint64_t *done, uint64_t *failed)
{
	*done = im->done;
	*failed = im->failed;
}

const json_t *
import_errors(const struct import *im)
{
	return im->errors;
}

/* ---- the walk ---- */

static void
count(struct import *im, const struct section *s, const json_t *item, const char *why)
{
	im->later = why == import_later ? item : NULL;
	if (why == import_later)
		return;
	if (why == NULL)
		im->done++;
	else
		note(im, s, item, why);
}

static void
import_one(struct import *im, const struct section *s, const json_t *item)
{
	count(im, s, item, json_is_object(item) ? s->fn(im, item) : "it is no object");
}

/* False: a password is still being hashed. */
static bool
take_later(struct import *im)
{
	const json_t *item = im->later;

	if (item == NULL)
		return true;
	if (im->is_hashing)
		return false;
	im->later = NULL;
	count(im, &sections[im->section], item, im->hash_error);
	return true;
}

/* The items of a section; NULL: it has none. What is no list is an error of its own. */
static const json_t *
items_of(struct import *im, const struct section *s)
{
	const json_t *list = json_object_get(im->doc, s->name);

	if (list == NULL || (im->only != NULL && !s->in_vhost))
		return NULL;
	if (!json_is_array(list)) {
		note(im, s, NULL, "the section is no list");
		return NULL;
	}
	return list;
}

static bool
find_vhost(struct import *im)
{
	if (im->only == NULL)
		return true;
	im->vhost = vhost_find(im->broker, span_str(im->only));
	if (im->vhost != NULL)
		return true;
	note(im, &sections[2], NULL, "the vhost is not there any more");
	im->section = COUNT_OF(sections);
	return false;
}

bool
import_run(struct import *im, uint64_t budget_us)
{
	uint64_t end_us = clock_mono_us() + budget_us;
	unsigned n = 0;

	if (!find_vhost(im))
		return true;
	while (im->section < COUNT_OF(sections)) {
		const struct section *s = &sections[im->section];
		const json_t *list = items_of(im, s);

		while (im->item < json_array_size(list)) {
			if (!take_later(im) ||
			    (++n % LOOK_AT_CLOCK == 0 && clock_mono_us() >= end_us))
				return false;
			import_one(im, s, json_array_get(list, im->item++));
		}
		if (!take_later(im))
			return false;
		im->section++;
		im->item = 0;
	}
	return true;
}
