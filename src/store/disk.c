/* SPDX-License-Identifier: Apache-2.0
 * What is built from a disk's operations: see the header. */
#include "store/disk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void
disk_free(struct disk **dp)
{
	struct disk *d = *dp;

	*dp = NULL;
	d->ops->free(d);
}

int
disk_read_all(struct disk *d, struct disk_file *f, void *to, size_t n, uint64_t at)
{
	ssize_t r = d->ops->read(f, to, n, at);

	if (r < 0)
		return (int)r;
	return (size_t)r == n ? 0 : -EIO;
}

int
disk_write_one(struct disk *d, struct disk_file *f, const void *p, size_t n, uint64_t at)
{
	struct iovec v = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };

	return d->ops->write(f, &v, 1, at);
}

/* A new file with these bytes, synced. */
static int
write_new(struct disk *d, const char *name, const void *p, size_t n)
{
	struct disk_file *f;
	int r = d->ops->open(d, name, DISK_CREATE, &f);

	if (r != 0)
		return r;
	r = disk_write_one(d, f, p, n, 0);
	if (r == 0)
		r = d->ops->sync(f);
	d->ops->close(f);
	return r;
}

/* The folder that a name is in; "" for the data folder. */
static char *
folder_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash == NULL ? xstrdup("") : xstrndup(name, (size_t)(slash - name));
}

/* What an earlier attempt left under the temporary name is removed first. */
int
disk_replace(struct disk *d, const char *name, const void *p, size_t n)
{
	char *temporary = xasprintf("%s.new", name), *folder = folder_of(name);
	int r = d->ops->unlink(d, temporary);

	if (r == 0 || r == -ENOENT)
		r = write_new(d, temporary, p, n);
	if (r == 0)
		r = d->ops->rename(d, temporary, name);
	if (r == 0)
		r = d->ops->sync_folder(d, folder);
	else
		(void)d->ops->unlink(d, temporary);
	free(folder);
	free(temporary);
	return r;
}
