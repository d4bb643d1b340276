/* SPDX-License-Identifier: Apache-2.0
 * The content header's properties (0-9-1, 4.2.6.1), walked once for form and for the few fields that a broker
 * needs; the header goes out as it came. */
#ifndef BROKER_PROPS_H
#define BROKER_PROPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum {	/* bits of the property flags word */
	PROP_CONTENT_TYPE = 1 << 15, PROP_CONTENT_ENCODING = 1 << 14, PROP_HEADERS = 1 << 13,
	PROP_DELIVERY_MODE = 1 << 12, PROP_PRIORITY = 1 << 11, PROP_CORRELATION_ID = 1 << 10,
	PROP_REPLY_TO = 1 << 9, PROP_EXPIRATION = 1 << 8, PROP_MESSAGE_ID = 1 << 7, PROP_TIMESTAMP = 1 << 6,
	PROP_TYPE = 1 << 5, PROP_USER_ID = 1 << 4, PROP_APP_ID = 1 << 3, PROP_CLUSTER_ID = 1 << 2
};

struct props {
	uint16_t flags;			/* as it came */
	uint8_t delivery_mode;		/* 0: absent */
	uint8_t priority;		/* 0: absent or 0 */
	struct span expiration, user_id, reply_to;	/* p NULL: absent */
	struct span headers;		/* content of the table; p NULL: absent */
	bool has_cc;			/* a header CC or BCC is there, of whatever type */
};

/* `raw` begins with the flags word and ends with the frame's payload. Nothing may stand behind the last property.
 * 0, or -EINVAL. The common case of few properties must stay cheap: no table is walked twice. */
int props_scan(struct span raw, struct props *out) MUSTUSE;

/* Where one property of a checked list stands, by its flag: a short string's or a table's bytes without their length, or
 * the number's. False: it is not there. */
bool props_find(struct span raw, uint16_t flag, struct span *out);

/* A new property list in which the header table is replaced (headers->p NULL: left out) and reply-to is replaced, each
 * when given and when the message has one. p is what props_scan said of raw.
 * Returns its length, bytes in *out (owned, free()), or -ENOMEM. */
int props_rewrite(struct span raw, const struct props *p, const struct span *headers, const struct span *reply_to,
    uint8_t **out) MUSTUSE;

/* The list of a dead letter: with these headers in place of its own, if any, and without expiration. Writes it, if `to`
 * is not NULL, and returns its length. */
size_t props_write_letter(struct span raw, const struct props *p, struct span headers, uint8_t *to);

/* The list with these headers and this expiration in place of its own, if any; p NULL: without them. */
size_t props_write_as(struct span raw, const struct props *p, struct span headers, struct span expiration, uint8_t *to);

/* Per-message TTL: digits, with a sign before them if one likes, 0 to 315,360,000,000 (ten years: RabbitMQ's bound).
 * 0 or -EINVAL; the refusal's text is the caller's. */
int props_expiration(struct span text, uint64_t *ms) MUSTUSE;

#endif
