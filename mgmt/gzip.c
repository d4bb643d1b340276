/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/gzip.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <event2/buffer.h>
#include <zlib.h>

#include "base/mem.h"

enum {
	LEVEL = 1,            /* 150 MB/s of JSON; 6 takes three times as long and saves a fifth */
	GZIP_WINDOW = 15 + 16 /* zlib's way to ask for gzip's header */
};

/* "gzip", "gzip;q=0.5", "*": yes; "gzip;q=0", "identity": no. */
bool
gzip_accepted(const char *header)
{
	bool any = false;

	for (const char *p = header; p != NULL && *p != '\0';) {
		size_t name, n;
		const char *q;
		bool refused;

		p += strspn(p, " \t,");
		n = strcspn(p, ",");
		name = strcspn(p, " \t,;");
		q = memchr(p, ';', n);
		if (q != NULL)
			q += 1 + strspn(q + 1, " \t");
		refused = q != NULL && strncasecmp(q, "q=", 2) == 0 && strtod(q + 2, NULL) <= 0;
		if (name == 4 && strncasecmp(p, "gzip", 4) == 0)
			return !refused;
		any |= name == 1 && *p == '*' && !refused;
		p += n;
	}
	return any;
}

static void
deflate_into(z_stream *z, int flush, struct evbuffer *out)
{
	unsigned char room[16 << 10];

	do {
		z->next_out = room;
		z->avail_out = sizeof room;
		(void)deflate(z, flush); /* fails for a wrong state only */
		if (evbuffer_add(out, room, sizeof room - z->avail_out) < 0)
			mem_exhausted(sizeof room, __builtin_return_address(0));
	} while (z->avail_out == 0);
}

void
gzip_buffer(struct evbuffer *in, struct evbuffer *out)
{
	int n = evbuffer_peek(in, -1, NULL, NULL, 0);
	struct evbuffer_iovec *piece = xcalloc((size_t)n + 1, sizeof *piece);
	z_stream z = { 0 };

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		mem_exhausted(0, __builtin_return_address(0));
	n = evbuffer_peek(in, -1, NULL, piece, n);
	for (int i = 0; i < n; i++) {
		z.next_in = piece[i].iov_base;
		z.avail_in = (uInt)piece[i].iov_len; /* pieces are far below 4 GiB */
		deflate_into(&z, Z_NO_FLUSH, out);
	}
	deflate_into(&z, Z_FINISH, out);
	(void)deflateEnd(&z);
	free(piece);
}
