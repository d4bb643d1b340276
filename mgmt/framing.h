/* SPDX-License-Identifier: Apache-2.0
 * Where requests begin and end in the bytes of a connection, as far as it takes to bound what evhttp does not: the line
 * before each piece of a chunked body. evhttp (2.1) looks for that line's end in all that it holds, each time that
 * something came, so a line without end would keep the core thread busy. */
#ifndef MGMT_FRAMING_H
#define MGMT_FRAMING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { FRAMING_LINE_MAX = 1024 /* before a piece: its length, extensions; a line of the trailer */ };

enum framing_state { FRAMING_HEAD, FRAMING_BODY, FRAMING_LENGTH, FRAMING_PIECE, FRAMING_TRAILER };

/* All 0: at the beginning. */
struct framing {
	enum framing_state state;
	bool in_head, is_chunked;
	uint64_t left; /* of a body or a piece; in the head: the Content-Length */
	size_t line_n; /* bytes of the line so far */
	char line[64]; /* the first of them */
};

/* So many of the next bytes may pass unseen: framing_skip() takes them. */
static inline uint64_t
framing_unseen(const struct framing *f)
{
	return f->state == FRAMING_BODY || f->state == FRAMING_PIECE ? f->left : 0;
}
void framing_skip(struct framing *f, uint64_t n);

/* The next bytes. False: a line is too long, or evhttp might see another end of the body; the connection has to end. */
bool framing_feed(struct framing *f, const uint8_t *p, size_t n) MUSTUSE;

#endif
