/* SPDX-License-Identifier: Apache-2.0
 * See counted.h. The header is taken apart where the fields belong, and nowhere else. */
#include "amqp/counted.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "amqp/frame.h"
#include "base/mem.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/table.h"

enum {
	CONTENT_HEAD = 12,     /* class, weight, body size */
	FIELD = 1 + 16 + 1 + 8 /* either name has 16 characters */
};
static const char delivery_count[] = "x-delivery-count", acquired_count[] = "x-acquired-count";
static_assert(sizeof delivery_count == 17 && sizeof acquired_count == 17, "see FIELD");

static uint8_t *
put(uint8_t *to, const uint8_t *p, size_t n)
{
	if (n > 0)
		memcpy(to, p, n);
	return to + n;
}

static uint8_t *
put_count(uint8_t *to, const char *name, uint32_t count)
{
	*to++ = 16;
	to = put(to, (const uint8_t *)name, 16);
	*to++ = 'l';
	put_be64(to, count);
	return to + 8;
}

/* All but those that are written anew. */
static uint8_t *
put_others(uint8_t *to, struct span headers, bool acquired)
{
	size_t at = 0, from;
	struct field f;

	while (from = at, table_next(headers, &at, &f)) {
		if (span_is(f.name, delivery_count) ||
		    (acquired && span_is(f.name, acquired_count)))
			continue;
		to = put(to, headers.p + from, at - from);
	}
	return to;
}

/* Where the headers of a list that has none would begin. */
static size_t
place_of_headers(struct span raw)
{
	uint16_t flags = get_be16(raw.p);
	size_t at = 2;

	if (flags & PROP_CONTENT_TYPE)
		at += 1u + raw.p[at];
	if (flags & PROP_CONTENT_ENCODING)
		at += 1u + raw.p[at];
	return at;
}

uint8_t *
counted_header(const struct msg *m, uint32_t count, uint32_t max, size_t *n)
{
	const uint8_t *was = m->wire + m->names_len;
	struct span raw = msg_props(m);
	struct props pr;
	uint8_t *frame, *to, *length;
	size_t before, after;

	if (props_scan(raw, &pr) != 0)
		return NULL;
	frame = try_malloc(m->meta_len - m->names_len + 4u + 2 * FIELD);
	if (frame == NULL)
		return NULL;
	before = pr.headers.p != NULL ? (size_t)(pr.headers.p - raw.p) - 4 : place_of_headers(raw);
	after = pr.headers.p != NULL ? before + 4 + pr.headers.n : before;
	to = put(frame, was, FRAME_HEAD + CONTENT_HEAD);
	put_be16(to, pr.flags | PROP_HEADERS);
	length = put(to + 2, raw.p + 2, before - 2);
	to = put_others(length + 4, pr.headers, count > 0);
	to = put_count(to, delivery_count, count);
	if (count > 0)
		to = put_count(to, acquired_count, count);
	put_be32(length, (uint32_t)(to - length - 4));
	to = put(to, raw.p + after, raw.n - after);
	*to++ = FRAME_END;
	*n = (size_t)(to - frame);
	put_be32(frame + 3, (uint32_t)(*n - FRAME_OVERHEAD));
	if (*n <= max)
		return frame;
	free(frame);
	return NULL;
}
