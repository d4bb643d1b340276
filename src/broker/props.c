/* SPDX-License-Identifier: Apache-2.0
 * Walks a property list in the order of its flags, from the highest bit down. */
#include "broker/props.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/table.h"

enum {
	FLAGS_UNKNOWN = 3, /* no property stands for bit 1; bit 0 would announce more flags */
	EXPIRATION_DIGITS_MAX = 19, /* what a 64-bit number surely holds */
};
#define EXPIRATION_MAX 315360000000ull /* ms; ten years, RabbitMQ's bound */

struct walk {
	const uint8_t *p, *end;
	bool failed;
};

static inline struct span
take(struct walk *w, size_t n)
{
	const uint8_t *p = w->p;

	if ((size_t)(w->end - p) < n) {
		w->failed = true;
		return span_of(NULL, 0);
	}
	w->p += n;
	return span_of(p, n);
}

static inline struct span
take_shortstr(struct walk *w)
{
	struct span n = take(w, 1);

	return n.n == 1 ? take(w, n.p[0]) : n;
}

static inline uint8_t
take_octet(struct walk *w)
{
	struct span n = take(w, 1);

	return n.n == 1 ? n.p[0] : 0;
}

static struct span
take_headers(struct walk *w, bool *has_cc)
{
	struct span n = take(w, 4), table = span_of(NULL, 0);

	if (n.n == 4)
		table = take(w, get_be32(n.p));
	if (!w->failed && table_check_headers(table, TABLE_DEPTH_MAX, has_cc) != 0)
		w->failed = true;
	return table;
}

int
props_scan(struct span raw, struct props *out)
{
	struct props pr = { 0 };
	struct walk w = { raw.p, raw.p + raw.n, false };
	uint16_t flags;

	if (raw.n < 2)
		return -EINVAL;
	flags = get_be16(raw.p);
	if ((flags & FLAGS_UNKNOWN) != 0)
		return -EINVAL;
	pr.flags = flags;
	w.p += 2;
	if (flags & PROP_CONTENT_TYPE)
		take_shortstr(&w);
	if (flags & PROP_CONTENT_ENCODING)
		take_shortstr(&w);
	if (flags & PROP_HEADERS)
		pr.headers = take_headers(&w, &pr.has_cc);
	if (flags & PROP_DELIVERY_MODE)
		pr.delivery_mode = take_octet(&w);
	if (flags & PROP_PRIORITY)
		pr.priority = take_octet(&w);
	if (flags & (PROP_PRIORITY - 1)) {
		if (flags & PROP_CORRELATION_ID)
			take_shortstr(&w);
		if (flags & PROP_REPLY_TO)
			pr.reply_to = take_shortstr(&w);
		if (flags & PROP_EXPIRATION)
			pr.expiration = take_shortstr(&w);
		if (flags & PROP_MESSAGE_ID)
			take_shortstr(&w);
		if (flags & PROP_TIMESTAMP)
			take(&w, 8);
		if (flags & PROP_TYPE)
			take_shortstr(&w);
		if (flags & PROP_USER_ID)
			pr.user_id = take_shortstr(&w);
		if (flags & PROP_APP_ID)
			take_shortstr(&w);
		if (flags & PROP_CLUSTER_ID)
			take_shortstr(&w);
	}
	if (w.failed || w.p != w.end)
		return -EINVAL;
	*out = pr;
	return 0;
}

bool
props_find(struct span raw, uint16_t flag, struct span *out)
{
	struct walk w = { raw.p + 2, raw.p + raw.n, false };
	struct span value, n;
	uint16_t flags, f;

	if (raw.n < 2)
		return false;
	flags = get_be16(raw.p);
	if ((flags & flag) == 0)
		return false;
	for (f = PROP_CONTENT_TYPE; f >= flag; f >>= 1) {
		if ((flags & f) == 0)
			continue;
		if (f == PROP_DELIVERY_MODE || f == PROP_PRIORITY) {
			value = take(&w, 1);
		} else if (f == PROP_TIMESTAMP) {
			value = take(&w, 8);
		} else if (f == PROP_HEADERS) {
			n = take(&w, 4);
			value = take(&w, n.n == 4 ? get_be32(n.p) : 0);
		} else {
			value = take_shortstr(&w);
		}
		if (f == flag)
			*out = value;
	}
	return !w.failed;
}

/* Where a field starts, as an offset into the list: its length stands before what props_scan points to. */
static size_t
offset_before(struct span raw, struct span field, size_t length_bytes)
{
	return (size_t)(field.p - raw.p) - length_bytes;
}

int
props_rewrite(struct span raw, const struct props *p, const struct span *headers,
    const struct span *reply_to, uint8_t **out)
{
	struct span rest = raw, part[7];
	uint16_t flags = p->flags;
	uint8_t length[4], octet, *to;
	size_t at, n = 0, i, parts = 0;

	assert(reply_to == NULL || reply_to->n <= 255);
	if (headers != NULL && p->headers.p != NULL) {
		at = offset_before(rest, p->headers, 4);
		part[parts++] = span_of(rest.p, at);
		if (headers->p != NULL) {
			put_be32(length, (uint32_t)headers->n);
			part[parts++] = span_of(length, 4);
			part[parts++] = *headers;
		} else {
			flags &= (uint16_t)~PROP_HEADERS;
		}
		at += 4 + p->headers.n;
		rest = span_of(rest.p + at, rest.n - at);
	}
	if (reply_to != NULL && p->reply_to.p != NULL) {
		at = offset_before(rest, p->reply_to, 1);
		part[parts++] = span_of(rest.p, at);
		octet = (uint8_t)reply_to->n;
		part[parts++] = span_of(&octet, 1);
		part[parts++] = *reply_to;
		at += 1 + p->reply_to.n;
		rest = span_of(rest.p + at, rest.n - at);
	}
	part[parts++] = rest;
	for (i = 0; i < parts; i++)
		n += part[i].n;
	assert(n >= 2 && n <= INT_MAX);
	to = *out = try_malloc(n);
	if (to == NULL)
		return -ENOMEM;
	for (i = 0; i < parts; i++) {
		if (part[i].n > 0)
			memcpy(to, part[i].p, part[i].n);
		to += part[i].n;
	}
	put_be16(*out, flags);
	return (int)n;
}

/* Where the header table stands, or would. */
static size_t
headers_offset(struct span raw, uint16_t flags)
{
	size_t at = 2;

	if (flags & PROP_CONTENT_TYPE)
		at += 1u + raw.p[at];
	if (flags & PROP_CONTENT_ENCODING)
		at += 1u + raw.p[at];
	return at;
}

static size_t
put(uint8_t *to, size_t at, const uint8_t *p, size_t n)
{
	if (to != NULL && n > 0)
		memcpy(to + at, p, n);
	return at + n;
}

/* The same of the expiration, behind the header table, which ends at `at`. */
static size_t
expiration_offset(struct span raw, uint16_t flags, size_t at)
{
	if (flags & PROP_DELIVERY_MODE)
		at++;
	if (flags & PROP_PRIORITY)
		at++;
	if (flags & PROP_CORRELATION_ID)
		at += 1u + raw.p[at];
	if (flags & PROP_REPLY_TO)
		at += 1u + raw.p[at];
	return at;
}

size_t
props_write_as(struct span raw, const struct props *p, struct span headers, struct span expiration,
    uint8_t *to)
{
	uint16_t flags = p->flags & (uint16_t) ~(PROP_HEADERS | PROP_EXPIRATION);
	size_t at = headers_offset(raw, p->flags), n, end;
	uint8_t length[4];

	assert(headers.n <= UINT32_MAX && expiration.n <= UINT8_MAX);
	n = put(to, 0, raw.p, at);
	if (headers.p != NULL) {
		flags |= PROP_HEADERS;
		put_be32(length, (uint32_t)headers.n);
		n = put(to, n, length, 4);
		n = put(to, n, headers.p, headers.n);
	}
	if (p->flags & PROP_HEADERS)
		at += 4 + p->headers.n;
	end = expiration_offset(raw, p->flags, at);
	n = put(to, n, raw.p + at, end - at);
	if (expiration.p != NULL) {
		flags |= PROP_EXPIRATION;
		length[0] = (uint8_t)expiration.n;
		n = put(to, n, length, 1);
		n = put(to, n, expiration.p, expiration.n);
	}
	at = end;
	if (p->flags & PROP_EXPIRATION)
		at += 1 + p->expiration.n;
	n = put(to, n, raw.p + at, raw.n - at);
	if (to != NULL)
		put_be16(to, flags);
	return n;
}

size_t
props_write_letter(struct span raw, const struct props *p, struct span headers, uint8_t *to)
{
	return props_write_as(raw, p, headers, span_of(NULL, 0), to);
}

int
props_expiration(struct span text, uint64_t *ms)
{
	uint64_t v = 0;
	size_t i = text.n > 0 && (text.p[0] == '+' || text.p[0] == '-'), digits = 0;

	if (i == text.n)
		return -EINVAL;
	for (; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return -EINVAL;
		if (digits > 0 || text.p[i] != '0')
			digits++;
		if (digits > EXPIRATION_DIGITS_MAX)
			return -EINVAL;
		v = v * 10 + (text.p[i] - '0');
	}
	if (v > EXPIRATION_MAX || (v > 0 && text.p[0] == '-'))
		return -EINVAL;
	*ms = v;
	return 0;
}
