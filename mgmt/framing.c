/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/framing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS = 15 }; /* evhttp reads 63 bits */

static void
begin(struct framing *f, enum framing_state state)
{
	f->state = state;
	f->line_n = 0;
	if (state == FRAMING_HEAD) {
		f->in_head = f->is_chunked = false;
		f->left = 0;
	}
}

void
framing_skip(struct framing *f, uint64_t n)
{
	assert(n <= framing_unseen(f));
	f->left -= n;
	if (f->left == 0)
		begin(f, f->state == FRAMING_BODY ? FRAMING_HEAD : FRAMING_LENGTH);
}

/* The value of a header line, if it is this one. */
static const char *
value_of(const char *line, const char *name)
{
	size_t n = strlen(name);

	return strncasecmp(line, name, n) == 0 ? line + n + strspn(line + n, " \t") : NULL;
}

/* False: what says where the body ends is longer than what is kept of a line. */
static bool
on_head_line(struct framing *f, bool is_cut)
{
	const char *coding = value_of(f->line, "Transfer-Encoding:"),
	           *length = value_of(f->line, "Content-Length:");

	if (f->line[0] == '\0' && f->in_head) {
		if (f->is_chunked)
			begin(f, FRAMING_LENGTH);
		else
			begin(f, f->left > 0 ? FRAMING_BODY : FRAMING_HEAD);
		return true;
	}
	if (f->line[0] != '\0')
		f->in_head = true;
	if (coding != NULL)
		f->is_chunked |= strncasecmp(coding, "chunked", strlen("chunked")) == 0;
	else if (f->left == 0 && length != NULL)
		f->left = strtoull(length, NULL, 10);
	return !is_cut || (coding == NULL && length == NULL);
}

/* False: evhttp, which takes blanks, signs and more zeros than are kept of the line, may read another length. */
static bool
on_length(struct framing *f)
{
	size_t digits = strspn(f->line, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > LENGTH_DIGITS || strchr(" ;", f->line[digits]) == NULL)
		return false;
	f->left = strtoull(f->line, NULL, 16);
	begin(f, f->left > 0 ? FRAMING_PIECE : FRAMING_TRAILER);
	return true;
}

static bool
on_line(struct framing *f)
{
	bool is_cut = f->line_n >= sizeof f->line;
	size_t n = is_cut ? sizeof f->line - 1 : f->line_n;

	if (!is_cut && n > 0 && f->line[n - 1] == '\r')
		n--;
	f->line[n] = '\0';
	f->line_n = 0;
	if (f->state == FRAMING_HEAD)
		return on_head_line(f, is_cut);
	if (f->state == FRAMING_LENGTH) /* what ends a piece is an empty line */
		return f->line[0] == '\0' || on_length(f);
	if (f->line[0] == '\0')
		begin(f, FRAMING_HEAD);
	return true;
}

/* Up to and with the end of the line. 0: the connection has to end. */
static size_t
take_line(struct framing *f, const uint8_t *p, size_t n)
{
	const uint8_t *end = memchr(p, '\n', n);
	size_t len = end != NULL ? (size_t)(end - p) : n;

	if (f->line_n < sizeof f->line)
		memcpy(f->line + f->line_n, p,
		    len < sizeof f->line - f->line_n ? len : sizeof f->line - f->line_n);
	f->line_n += len;
	if (end == NULL)
		return n;
	return on_line(f) ? len + 1 : 0;
}

bool
framing_feed(struct framing *f, const uint8_t *p, size_t n)
{
	while (n > 0) {
		uint64_t unseen = framing_unseen(f);
		size_t took;

		if (unseen > 0) {
			took = n < unseen ? n : (size_t)unseen;
			framing_skip(f, took);
		} else {
			took = take_line(f, p, n);
		}
		/* evhttp bounds the head itself */
		if (took == 0 || (f->line_n > FRAMING_LINE_MAX && f->state != FRAMING_HEAD))
			return false;
		p += took;
		n -= took;
	}
	return true;
}
