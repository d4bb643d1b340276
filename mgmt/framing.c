/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/framing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static void
on_head_line(struct framing *f, const char *line)
{
	const char *value;

	if (*line == '\0' && f->in_head) {
		if (f->is_chunked)
			begin(f, FRAMING_LENGTH);
		else
			begin(f, f->left > 0 ? FRAMING_BODY : FRAMING_HEAD);
		return;
	}
	if (*line != '\0')
		f->in_head = true;
	if ((value = value_of(line, "Transfer-Encoding:")) != NULL)
		f->is_chunked |= strncasecmp(value, "chunked", strlen("chunked")) == 0;
	else if (f->left == 0 && (value = value_of(line, "Content-Length:")) != NULL)
		f->left = strtoull(value, NULL, 10);
}

static void
on_line(struct framing *f)
{
	size_t n = f->line_n < sizeof f->line ? f->line_n : sizeof f->line - 1;

	f->line[n] = '\0';
	f->line[strcspn(f->line, "\r")] = '\0';
	f->line_n = 0;
	if (f->state == FRAMING_HEAD) {
		on_head_line(f, f->line);
	} else if (f->state == FRAMING_TRAILER) {
		if (f->line[0] == '\0')
			begin(f, FRAMING_HEAD);
	} else if (f->line[0] != '\0') { /* what ends a piece is an empty line */
		f->left = strtoull(f->line, NULL, 16);
		begin(f, f->left > 0 ? FRAMING_PIECE : FRAMING_TRAILER);
	}
}

/* Up to and with the end of the line. */
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
	on_line(f);
	return len + 1;
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
		if (f->line_n > FRAMING_LINE_MAX && f->state != FRAMING_HEAD)
			return false;
		p += took;
		n -= took;
	}
	return true;
}
