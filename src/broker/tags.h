/* SPDX-License-Identifier: Apache-2.0
 * The tags of a user or a vhost: texts in the order in which they were given. Counted as MEM_TOPOLOGY. */
#ifndef BROKER_TAGS_H
#define BROKER_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

enum { TAGS_MAX = 64 };

struct tags {
	char **item;	/* owned */
	uint32_t count;
};

/* NULL, or 406: too many, one of over 255 bytes, not UTF-8, with a NUL. *t is unchanged then. */
const struct error *tags_set(struct tags *t, const struct span *item, uint32_t count) MUSTUSE;
/* "a, b": the texts between commas, without space around them, which point into s; empty ones are left out. False: they are
 * more than TAGS_MAX. */
bool tags_split(struct span s, struct span tag[TAGS_MAX], uint32_t *count) MUSTUSE;
void tags_fini(struct tags *t);
bool tags_have(const struct tags *t, const char *tag);

#endif
