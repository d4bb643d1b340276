/* SPDX-License-Identifier: Apache-2.0
 * See the header. The figures are jansson's structures with what malloc adds; check_body holds them against what
 * jansson asks for. */
#include "mgmt/json_scan.h"

enum {
	OBJECT = 240, /* 72 and a table of 8 buckets */
	ARRAY = 144,  /* 40 and room for 8 elements */
	STRING = 80,  /* 32 and the bytes apart */
	MEMBER = 48,  /* what a name's pair and its buckets need more than a string */
	SCALAR = 32,  /* a number; true, false and null are shared */
	ELEMENT = 24, /* a place in an array, which doubles, the old one beside it for a moment */
};

/* What begins or parts values; the rest belongs to a scalar or is space. */
enum kind { OTHER, SPACE, QUOTE, OPEN_ARRAY, OPEN_OBJECT, CLOSE, COMMA, COLON };

static const uint8_t kinds[256] = {
	[' '] = SPACE,
	['\t'] = SPACE,
	['\r'] = SPACE,
	['\n'] = SPACE,
	['"'] = QUOTE,
	['['] = OPEN_ARRAY,
	['{'] = OPEN_OBJECT,
	[']'] = CLOSE,
	['}'] = CLOSE,
	[','] = COMMA,
	[':'] = COLON,
};

/* Behind the closing quote of the string that begins at `at`. */
static size_t
skip_string(struct span text, size_t at)
{
	for (at++; at < text.n && text.p[at] != '"'; at++)
		at += text.p[at] == '\\';
	return at + 1;
}

static size_t
skip_scalar(struct span text, size_t at)
{
	while (at < text.n && kinds[text.p[at]] == OTHER)
		at++;
	return at;
}

static void
enter(struct json_scan *s, unsigned *depth, unsigned bytes)
{
	s->values++;
	s->memory += bytes;
	if (++*depth > s->depth)
		s->depth = *depth;
}

void
json_scan(struct span text, struct json_scan *out)
{
	struct json_scan s = { 0 };
	unsigned depth = 0;
	size_t at = 0, from;

	while (at < text.n) {
		from = at;
		switch ((enum kind)kinds[text.p[at]]) {
		case OPEN_ARRAY: enter(&s, &depth, ARRAY); break;
		case OPEN_OBJECT: enter(&s, &depth, OBJECT); break;
		case CLOSE: depth -= depth > 0; break;
		case COMMA: s.memory += ELEMENT; break;
		case COLON: s.memory += MEMBER; break;
		case SPACE: break;
		case QUOTE:
			at = skip_string(text, at);
			s.values++;
			s.memory += STRING + (at - from);
			continue;
		case OTHER:
			at = skip_scalar(text, at);
			s.values++;
			s.memory += SCALAR;
			continue;
		}
		at++;
	}
	*out = s;
}
