/* SPDX-License-Identifier: Apache-2.0
 * Objects as the store keeps them: a list of fields, each `u8 tag, u32 length (little-endian), bytes`. Numbers are
 * 8 bytes, little-endian. A field with a tag that is not known is passed over, so that a later version may add some; a
 * tag is never given another meaning. */
#ifndef BROKER_DEFINITION_H
#define BROKER_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum definition_tag {
	DEF_NAME = 1,
	DEF_VHOST,	/* name */
	DEF_FLAGS,	/* DEF_AUTO_DELETE, DEF_INTERNAL, DEF_PAUSED */
	DEF_TYPE,	/* of an exchange, by name */
	DEF_ARGUMENTS,	/* as on the wire, without length */
	DEF_SOURCE,	/* a binding's exchange: name, and the id unless it is one that every vhost has */
	DEF_SOURCE_ID,
	DEF_QUEUE,	/* a binding to a queue: its name and id */
	DEF_QUEUE_ID,
	DEF_EXCHANGE,	/* a binding to an exchange: as for the source */
	DEF_EXCHANGE_ID,
	DEF_KEY,
	DEF_VHOST_ID,
	DEF_SINCE,	/* of a vhost: see vhost.h */
	DEF_DESCRIPTION,
	DEF_TAG,	/* once for each */
	DEF_QUEUE_TYPE,	/* default_queue_type */
	DEF_USER,	/* a permission's: name and id */
	DEF_USER_ID,
	DEF_PASSWORD_KIND,
	DEF_PASSWORD,
	DEF_CONFIGURE,	/* patterns */
	DEF_WRITE,
	DEF_READ,
	DEF_LIMIT,	/* DEF_LIMIT + enum user_limit or vhost_limit: up to 16 of them */
	DEF_COMPONENT = DEF_LIMIT + 16,
	DEF_VALUE,	/* of a parameter: JSON text */
	DEF_KIND,	/* of a policy: enum policy_kind */
	DEF_PATTERN,
	DEF_APPLY_TO,	/* word */
	DEF_PRIORITY,
	DEF_TTL		/* of a queue: see queue_ttl.h */
};
enum { DEF_AUTO_DELETE = 1, DEF_INTERNAL = 2, DEF_DELETED = 4, DEF_TRACING = 8, DEF_LOOPBACK = 16, DEF_DEFAULT = 32,
	DEF_SETTINGS = 64, DEF_PAUSED = 128 };

struct definition {
	uint8_t *p; /* owned */
	size_t n, cap;
};

void definition_put(struct definition *d, enum definition_tag tag, struct span bytes);
void definition_put_number(struct definition *d, enum definition_tag tag, uint64_t v);
void definition_fini(struct definition *d);

static inline struct span
definition_span(const struct definition *d)
{
	return span_of(d->p, d->n);
}

/* The first field with this tag. False: there is none, or the list ends in the middle of one. */
bool definition_find(struct span state, enum definition_tag tag, struct span *out);
/* Further ones: *state becomes what stands behind the one that was found. */
bool definition_next(struct span *state, enum definition_tag tag, struct span *out);
uint64_t definition_number(struct span state, enum definition_tag tag); /* 0: there is none */
/* A text without NUL inside, at most 255 bytes, as names of what operators make are. */
bool definition_name(struct span state, enum definition_tag tag, struct span *out);
/* The name of a queue or an exchange, which clients choose: at most 255 bytes, of any kind. */
bool definition_short(struct span state, enum definition_tag tag, struct span *out);

#endif
