/* SPDX-License-Identifier: Apache-2.0
 * The room doubles as the content grows: a short text may say nothing about how long it becomes. */
#include "mgmt/gunzip.h"

#include <stdlib.h>

#include <zlib.h>

#include "base/mem.h"

enum {
	GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip's header */
	ROOM_FIRST = 64 << 10
};

struct room {
	char *p; /* owned */
	size_t n, max;
};

bool
gunzip_is(struct span in)
{
	return in.n >= 2 && in.p[0] == 0x1f && in.p[1] == 0x8b;
}

/* One byte more than the content may have, so that a longer one shows, and one for the NUL. */
static bool
grow(struct room *r)
{
	size_t n = r->n == 0 ? ROOM_FIRST : r->n * 2;
	char *p;

	if (n > r->max + 2)
		n = r->max + 2;
	p = try_realloc(r->p, n);
	if (p == NULL)
		return false;
	r->p = p;
	r->n = n;
	return true;
}

static enum gunzip
inflate_all(z_stream *z, struct room *r)
{
	int rc = Z_OK;

	while (rc == Z_OK || rc == Z_BUF_ERROR) {
		if (z->total_out > r->max)
			return GUNZIP_LONG;
		if (z->total_out + 1 >= r->n && !grow(r))
			return GUNZIP_NO_MEMORY;
		z->next_out = (Bytef *)r->p + z->total_out;
		z->avail_out = (uInt)(r->n - 1 - z->total_out);
		rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_STREAM_END && z->avail_in == 0 && z->avail_out > 0)
			return GUNZIP_DAMAGED; /* it ends too early */
	}
	if (rc == Z_MEM_ERROR)
		return GUNZIP_NO_MEMORY;
	if (rc != Z_STREAM_END || z->avail_in > 0)
		return GUNZIP_DAMAGED;
	return z->total_out > r->max ? GUNZIP_LONG : GUNZIP_DONE;
}

enum gunzip
gunzip(struct span in, size_t max, char **text, size_t *n)
{
	struct room r = { NULL, 0, max };
	z_stream z = { .next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (uInt)in.n };
	enum gunzip rc = GUNZIP_DAMAGED;

	*text = NULL;
	*n = 0;
	if (in.n == 0 || in.n > UINT32_MAX || max > UINT32_MAX - 2)
		return in.n == 0 ? GUNZIP_DAMAGED : GUNZIP_LONG;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return GUNZIP_NO_MEMORY;
	rc = inflate_all(&z, &r);
	(void)inflateEnd(&z);
	if (rc != GUNZIP_DONE) {
		free(r.p);
		return rc;
	}
	r.p[z.total_out] = '\0';
	*text = r.p;
	*n = z.total_out;
	return rc;
}
