/* SPDX-License-Identifier: Apache-2.0
 * Patterns of rights. The variables of a pattern are the same for as long as it stands, so they are put in once, when it is
 * set. */
#include "broker/permission_pattern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/name.h"
#include "broker/pattern.h"
#include "broker/user.h"

/* given: the text as somebody wrote it. */
static const struct error *
compile(struct span text, struct span given, struct pattern **out)
{
	char why[160];

	*out = NULL;
	/* No name is empty, so these two match none; as RabbitMQ has it, "" is the same as "^$". */
	if (text.n == 0 || span_is(text, "^$"))
		return NULL;
	*out = pattern_new(text, why, sizeof why);
	if (*out != NULL)
		return NULL;
	if (given.n > 100)
		given.n = 100;
	return error_make(E_PRECONDITION_FAILED, "pattern '%.*s' is no regular expression: %s",
	    SPAN_FMT(given), why);
}

/* ---- variables ---- */

/* In place of a name whatever in it means something to a pattern is escaped; bytes of UTF-8 mean nothing. */
static size_t
put_literally(char *to, const char *name)
{
	size_t n = 0;

	for (; *name != '\0'; name++) {
		if ((unsigned char)*name < 0x80 && strchr("\\^$.[]|()?*+{}-#&~/,:=!<> \t\n", *name))
			to[n++] = '\\';
		to[n++] = *name;
	}
	return n;
}

/* The pattern with its variables replaced: owned by the caller. */
static char *
expand(const char *text, const struct pattern_variables *v, size_t *n)
{
	const struct {
		const char *variable, *value;
	} values[] = { { "{username}", v->username }, { "{vhost}", v->vhost } };
	/* "{vhost}" is the shortest of them, a name twice as long when it is escaped. */
	size_t longest = 2 * NAME_BYTES_MAX, most = strlen(text) / strlen("{vhost}") + 1;
	char *out = xmalloc(strlen(text) + most * longest + 1);

	*n = 0;
	while (*text != '\0') {
		size_t i = 0;

		while (i < COUNT_OF(values) &&
		       strncmp(text, values[i].variable, strlen(values[i].variable)) != 0)
			i++;
		if (i == COUNT_OF(values)) {
			out[(*n)++] = *text++;
			continue;
		}
		*n += put_literally(out + *n, values[i].value);
		text += strlen(values[i].variable);
	}
	return out;
}

static const struct error *
make(const char *text, const struct pattern_variables *v, struct pattern **out)
{
	const struct error *e;
	size_t n;
	char *expanded;

	if (v == NULL)
		return compile(span_str(text), span_str(text), out);
	if (strlen(text) > PATTERN_LEN_MAX)
		return error_make(
		    E_PRECONDITION_FAILED, "a pattern is longer than %d bytes", PATTERN_LEN_MAX);
	expanded = expand(text, v, &n);
	e = compile(span_of(expanded, n), span_str(text), out);
	free(expanded);
	return e;
}

/* ---- several ---- */

static size_t
size_of(const struct pattern *p, const char *text)
{
	return pattern_size(p) + strlen(text) + 1;
}

void
permission_patterns_free(struct pattern **pattern, char **text, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (text[i] != NULL)
			mem_sub(MEM_TOPOLOGY, size_of(pattern[i], text[i]));
		pattern_free(&pattern[i]);
		free(text[i]);
		text[i] = NULL;
	}
}

const struct error *
permission_patterns_set(struct pattern **pattern, char **text, const char *const *given, unsigned n,
    const struct pattern_variables *variables)
{
	struct pattern *made[PERMISSION_PATTERNS_MAX] = { NULL };
	const struct error *e = NULL;

	assert(n <= PERMISSION_PATTERNS_MAX);
	for (unsigned i = 0; i < n && e == NULL; i++)
		e = make(given[i], variables, &made[i]);
	if (e != NULL) {
		for (unsigned i = 0; i < n; i++)
			pattern_free(&made[i]);
		return e;
	}
	permission_patterns_free(pattern, text, n);
	for (unsigned i = 0; i < n; i++) {
		pattern[i] = made[i];
		text[i] = xstrdup(given[i]);
		mem_add(MEM_TOPOLOGY, size_of(pattern[i], text[i]));
	}
	return NULL;
}

bool
permission_pattern_allows(
    struct broker *b, const struct pattern *p, const struct user *u, struct span name)
{
	static struct log_limit limit = { .burst = 20 };
	enum pattern_result r = PATTERN_NO;
	uint32_t took;

	if (p != NULL) {
		r = pattern_match(p, name, PATTERN_STEPS_MAX, &took);
		b->work += took / PATTERN_STEPS_WORK;
	}
	if (r == PATTERN_TOO_LONG && log_allowed(&limit))
		log_warning("a permission pattern of user '%s' takes too long for a name of %zu "
		            "bytes: access is refused",
		    u->name, name.n);
	return r == PATTERN_YES;
}
