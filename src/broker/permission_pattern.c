/* SPDX-License-Identifier: Apache-2.0
 * Patterns of rights. */
#include "broker/permission_pattern.h"

#include "base/log.h"
#include "broker/broker.h"
#include "broker/pattern.h"
#include "broker/user.h"

const struct error *
permission_pattern_new(struct span text, struct span given, struct pattern **out)
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
