/* SPDX-License-Identifier: Apache-2.0
 * An account as tests want it, in one line. */
#ifndef TESTS_USER_WORLD_H
#define TESTS_USER_WORLD_H

#include "broker/broker.h"
#include "broker/user.h"

/* password "" or NULL: none. tags: "" or one of them. */
static inline struct user *
user_add(struct broker *b, const char *name, const char *password, const char *tag, bool loopback_only)
{
	struct password p;
	struct span tags = span_str(tag);
	struct user_spec spec = { .name = span_str(name),
		.password = password != NULL && *password != '\0' ? &p : NULL,
		.tag = &tags,
		.tag_count = *tag != '\0',
		.loopback_only = loopback_only };

	if (spec.password != NULL)
		password_make(&p, PASSWORD_SHA256, span_str(password), 0);
	if (user_set(b, &spec, NULL) != NULL)
		abort();
	return user_find(b, spec.name);
}

#endif
