/* SPDX-License-Identifier: Apache-2.0 */
#include "store/file_copy.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

enum { PIECE = 1 << 20 };

void
file_copy_cancel(struct file_copy *c)
{
	if (c->from != NULL)
		c->from_disk->ops->close(c->from);
	if (c->to != NULL)
		c->to_disk->ops->close(c->to);
	c->from = c->to = NULL;
	free(c->buffer);
	c->buffer = NULL;
}

int
file_copy_begin(struct file_copy *c, struct disk *from, const char *name, struct disk *to,
    const char *new_name, uint64_t end, uint64_t size)
{
	uint64_t there;
	int e;

	*c = (struct file_copy){ .from_disk = from, .to_disk = to };
	e = from->ops->open(from, name, DISK_READ, &c->from);
	if (e != 0) {
		c->from = NULL;
		return e;
	}
	e = from->ops->size(c->from, &there);
	if (e == 0 && end != UINT64_MAX && there < end)
		e = -EIO; /* shorter than it has to be */
	if (e == 0)
		e = to->ops->open(to, new_name, DISK_CREATE, &c->to);
	if (e != 0) {
		c->to = NULL;
		file_copy_cancel(c);
		return e;
	}
	c->end = end == UINT64_MAX ? there : end;
	c->size = size > c->end ? size : c->end;
	c->buffer = xmalloc(PIECE);
	return 0;
}

static int
finish(struct file_copy *c)
{
	int e = 0;

	if (c->size > c->end)
		e = c->to_disk->ops->resize(c->to, c->size);
	if (e == 0)
		e = c->to_disk->ops->sync(c->to);
	file_copy_cancel(c);
	return e;
}

int
file_copy_step(struct file_copy *c)
{
	uint64_t left = c->end - c->at;
	size_t n = left < PIECE ? (size_t)left : PIECE;
	int e = 0;

	if (n > 0)
		e = disk_read_all(c->from_disk, c->from, c->buffer, n, c->at);
	if (e == 0 && n > 0)
		e = disk_write_one(c->to_disk, c->to, c->buffer, n, c->at);
	if (e != 0) {
		file_copy_cancel(c);
		return e;
	}
	c->at += n;
	return c->at < c->end ? 1 : finish(c);
}
