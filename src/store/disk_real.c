/* SPDX-License-Identifier: Apache-2.0
 * The real disk: Linux files below one folder. Its descriptor is kept, so the folder may be renamed under us. */
#include "store/disk.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"

struct disk_real {
	struct disk disk;
	int folder;
};

struct disk_file {
	int fd;
};

static int
folder_fd(const struct disk *d)
{
	return ((const struct disk_real *)(const void *)d)->folder;
}

static int
real_open(struct disk *d, const char *name, enum disk_open how, struct disk_file **out)
{
	static const int flags[] = {
		[DISK_READ] = O_RDONLY,
		[DISK_WRITE] = O_RDWR,
		[DISK_CREATE] = O_RDWR | O_CREAT | O_EXCL,
	};
	int fd;

	do
		fd = openat(folder_fd(d), name, flags[how] | O_CLOEXEC | O_NOCTTY, 0600);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return -errno;
	*out = xmalloc(sizeof **out);
	(*out)->fd = fd;
	return 0;
}

static void
real_close(struct disk_file *f)
{
	close(f->fd);
	free(f);
}

static ssize_t
real_read(struct disk_file *f, void *to, size_t n, uint64_t at)
{
	size_t got = 0;
	ssize_t r;

	while (got < n) {
		r = pread(f->fd, (char *)to + got, n - got, (off_t)(at + got));
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

/* One vector, as often as it takes. */
static int
write_rest(int fd, const char *p, size_t n, uint64_t at)
{
	ssize_t r;

	while (n > 0) {
		r = pwrite(fd, p, n, (off_t)at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? -errno : -EIO;
		p += r;
		n -= (size_t)r;
		at += (uint64_t)r;
	}
	return 0;
}

/* A short write ends within a vector: the rest of that one goes out by itself. */
static int
real_write(struct disk_file *f, const struct iovec *v, int n, uint64_t at)
{
	ssize_t r;
	int e;

	assert(n <= DISK_IOV_MAX);
	while (n > 0) {
		r = pwritev(f->fd, v, n, (off_t)at);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		at += (uint64_t)r;
		for (; n > 0 && (size_t)r >= v->iov_len; v++, n--)
			r -= (ssize_t)v->iov_len;
		if (n == 0)
			return 0;
		e = write_rest(f->fd, (const char *)v->iov_base + r, v->iov_len - (size_t)r, at);
		if (e != 0)
			return e;
		at += v->iov_len - (size_t)r;
		v++;
		n--;
	}
	return 0;
}

/* Never tried a second time: after a failure the kernel may call lost pages clean. */
static int
real_sync(struct disk_file *f)
{
	return fdatasync(f->fd) == 0 ? 0 : -errno;
}

static int
real_resize(struct disk_file *f, uint64_t size)
{
	struct stat st;
	int r;

	if (fstat(f->fd, &st) != 0)
		return -errno;
	if ((uint64_t)st.st_size >= size)
		return ftruncate(f->fd, (off_t)size) == 0 ? 0 : -errno;
	do
		r = posix_fallocate(f->fd, 0, (off_t)size);
	while (r == EINTR);
	return -r;
}

static int
real_size(struct disk_file *f, uint64_t *out)
{
	struct stat st;

	if (fstat(f->fd, &st) != 0)
		return -errno;
	*out = (uint64_t)st.st_size;
	return 0;
}

static int
real_rename(struct disk *d, const char *from, const char *to)
{
	return renameat(folder_fd(d), from, folder_fd(d), to) == 0 ? 0 : -errno;
}

static int
real_link(struct disk *d, const char *from, const char *to)
{
	return linkat(folder_fd(d), from, folder_fd(d), to, 0) == 0 ? 0 : -errno;
}

static int
real_unlink(struct disk *d, const char *name)
{
	return unlinkat(folder_fd(d), name, 0) == 0 ? 0 : -errno;
}

static int
real_make_folder(struct disk *d, const char *name)
{
	return mkdirat(folder_fd(d), name, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

static int
open_folder(struct disk *d, const char *name)
{
	return openat(folder_fd(d), *name == '\0' ? "." : name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* EINVAL: a file system on which folders need no sync. */
static int
real_sync_folder(struct disk *d, const char *name)
{
	int fd = open_folder(d, name), r;

	if (fd < 0)
		return -errno;
	r = fsync(fd) == 0 || errno == EINVAL ? 0 : -errno;
	close(fd);
	return r;
}

/* Plain files only. One that vanishes meanwhile is not told. */
static int
real_list(struct disk *d, const char *folder, disk_list_fn *f, void *arg)
{
	int fd = open_folder(d, folder), e;
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (dir == NULL) {
		e = errno;
		close(fd);
		return -e;
	}
	for (;;) {
		errno = 0;
		entry = readdir(dir);
		if (entry == NULL)
			break;
		if (fstatat(fd, entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			f(arg, entry->d_name, (uint64_t)st.st_size);
	}
	e = errno;
	closedir(dir);
	return -e;
}

static int
real_space(struct disk *d, uint64_t *total, uint64_t *available)
{
	struct statvfs v;

	if (fstatvfs(folder_fd(d), &v) != 0)
		return -errno;
	*total = (uint64_t)v.f_blocks * v.f_frsize;
	*available = (uint64_t)v.f_bavail * v.f_frsize;
	return 0;
}

static void
real_free(struct disk *d)
{
	close(folder_fd(d));
	free(d);
}

static const struct disk_ops real_ops = {
	.open = real_open,
	.close = real_close,
	.read = real_read,
	.write = real_write,
	.sync = real_sync,
	.resize = real_resize,
	.size = real_size,
	.rename = real_rename,
	.link = real_link,
	.unlink = real_unlink,
	.make_folder = real_make_folder,
	.sync_folder = real_sync_folder,
	.list = real_list,
	.space = real_space,
	.free = real_free,
};

/* NULL with errno set where the folder cannot be opened. */
struct disk *
disk_real_new(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct disk_real *d;

	if (fd < 0)
		return NULL;
	d = xmalloc(sizeof *d);
	d->disk.ops = &real_ops;
	d->folder = fd;
	return &d->disk;
}
