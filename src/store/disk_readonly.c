/* SPDX-License-Identifier: Apache-2.0 */
#include "store/disk_readonly.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

struct disk_readonly {
	struct disk disk;
	struct disk *under;
};

struct disk_file {
	struct disk *disk;       /* the one under us */
	struct disk_file *under; /* owned; NULL: one that was made through us, and is empty */
};

static struct disk *
under_of(struct disk *d)
{
	return ((struct disk_readonly *)(void *)d)->under;
}

static int
readonly_open(struct disk *d, const char *name, enum disk_open how, struct disk_file **out)
{
	struct disk *under = under_of(d);
	struct disk_file *f, *there = NULL;
	int e = under->ops->open(under, name, DISK_READ, &there);

	if (e == 0 && how == DISK_CREATE) {
		under->ops->close(there);
		return -EEXIST;
	}
	if (e != 0 && (e != -ENOENT || how == DISK_READ))
		return e;
	f = xmalloc(sizeof *f);
	f->disk = under;
	f->under = e == 0 ? there : NULL;
	*out = f;
	return 0;
}

static void
readonly_close(struct disk_file *f)
{
	if (f->under != NULL)
		f->disk->ops->close(f->under);
	free(f);
}

static ssize_t
readonly_read(struct disk_file *f, void *to, size_t n, uint64_t at)
{
	return f->under == NULL ? 0 : f->disk->ops->read(f->under, to, n, at);
}

static int
readonly_write(struct disk_file *f, const struct iovec *v, int n, uint64_t at)
{
	(void)f;
	(void)v;
	(void)n;
	(void)at;
	return 0;
}

static int
readonly_sync(struct disk_file *f)
{
	(void)f;
	return 0;
}

static int
readonly_resize(struct disk_file *f, uint64_t size)
{
	(void)f;
	(void)size;
	return 0;
}

static int
readonly_size(struct disk_file *f, uint64_t *out)
{
	if (f->under != NULL)
		return f->disk->ops->size(f->under, out);
	*out = 0;
	return 0;
}

static int
readonly_two_names(struct disk *d, const char *from, const char *to)
{
	(void)d;
	(void)from;
	(void)to;
	return 0;
}

static int
readonly_name(struct disk *d, const char *name)
{
	(void)d;
	(void)name;
	return 0;
}

static int
readonly_list(struct disk *d, const char *folder, disk_list_fn *f, void *arg)
{
	struct disk *under = under_of(d);
	int e = under->ops->list(under, folder, f, arg);

	return e == -ENOENT ? 0 : e; /* it may have been made through us */
}

static int
readonly_space(struct disk *d, uint64_t *total, uint64_t *available)
{
	struct disk *under = under_of(d);

	return under->ops->space(under, total, available);
}

static void
readonly_free(struct disk *d)
{
	free(d);
}

static const struct disk_ops readonly_ops = {
	.open = readonly_open,
	.close = readonly_close,
	.read = readonly_read,
	.write = readonly_write,
	.sync = readonly_sync,
	.resize = readonly_resize,
	.size = readonly_size,
	.rename = readonly_two_names,
	.link = readonly_two_names,
	.unlink = readonly_name,
	.make_folder = readonly_name,
	.sync_folder = readonly_name,
	.list = readonly_list,
	.space = readonly_space,
	.free = readonly_free,
};

struct disk *
disk_readonly_new(struct disk *under)
{
	struct disk_readonly *d = xmalloc(sizeof *d);

	d->disk.ops = &readonly_ops;
	d->under = under;
	return &d->disk;
}
