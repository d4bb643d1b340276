/* SPDX-License-Identifier: Apache-2.0
 * Makes refusals. */
#include "broker/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

const struct error_def error_defs[ERROR_COUNT] = {
#define ERROR_DEF(id, code, name, scope) [E_##id] = { code, name, scope },
#include "broker/errors.def"
#undef ERROR_DEF
};

const struct error *
error_make(enum error_id id, const char *fmt, ...)
{
	static struct error made;
	const struct error_def *def = &error_defs[id];
	char text[ERROR_TEXT_MAX + 4]; /* not yet the static one: its old text may be an argument */
	size_t used, n;
	va_list ap;

	assert(id < ERROR_COUNT);
	used = (size_t)snprintf(text, sizeof text, "%s - ", def->name);
	va_start(ap, fmt);
	vsnprintf(text + used, sizeof text - used, fmt, ap);
	va_end(ap);
	made.id = id;
	made.code = def->code;
	made.scope = def->scope;
	made.class_id = made.method_id = 0;
	n = strlen(text);
	if (n > ERROR_TEXT_MAX - 1)
		n = utf8_cut(text, n, ERROR_TEXT_MAX - 1);
	memcpy(made.text, text, n);
	made.text[n] = '\0';
	return &made;
}

struct span
error_reply_text(const struct error *e)
{
	size_t n = strlen(e->text);

	return span_of(e->text, n > ERROR_REPLY_MAX ? utf8_cut(e->text, n, ERROR_REPLY_MAX) : n);
}

const struct error *
error_with_scope(const struct error *e, enum error_scope scope)
{
	static struct error changed;

	changed = *e;
	changed.scope = scope;
	return &changed;
}
