/* SPDX-License-Identifier: Apache-2.0
 * Files as the store uses them, through one struct of operations, so that tests can put a disk behind it that forgets,
 * tears, reorders, runs full, fails or hangs. Names are paths relative to the data folder, with '/' between parts.
 * All calls may block: on the core thread only before the node is ready. Any thread; one file is used by one thread at a
 * time. Errors are negative errno values. */
#ifndef STORE_DISK_H
#define STORE_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/attr.h"

struct disk;
struct disk_file;

enum disk_open { DISK_READ, DISK_WRITE, DISK_CREATE /* new, for reading and writing: -EEXIST */ };

typedef void disk_list_fn(void *arg, const char *name, uint64_t size);

struct disk_ops {
	int (*open)(struct disk *d, const char *name, enum disk_open how, struct disk_file **out);
	void (*close)(struct disk_file *f);
	/* Up to n bytes; fewer only at the end of the file. */
	ssize_t (*read)(struct disk_file *f, void *to, size_t n, uint64_t at);
	/* All of it, or an error (then any part of it may have been written). n <= DISK_IOV_MAX. */
	int (*write)(struct disk_file *f, const struct iovec *v, int n, uint64_t at);
	int (*sync)(struct disk_file *f); /* data, and the length */
	int (*resize)(struct disk_file *f, uint64_t size); /* cut, or room allocated (-ENOSPC now, not later) */
	int (*size)(struct disk_file *f, uint64_t *out);
	int (*rename)(struct disk *d, const char *from, const char *to);
	int (*link)(struct disk *d, const char *from, const char *to); /* -EXDEV: copy instead */
	int (*unlink)(struct disk *d, const char *name);
	int (*make_folder)(struct disk *d, const char *name); /* there already: fine */
	int (*sync_folder)(struct disk *d, const char *name); /* "": the data folder itself */
	int (*list)(struct disk *d, const char *folder, disk_list_fn *f, void *arg);
	int (*space)(struct disk *d, uint64_t *total, uint64_t *available);
	void (*free)(struct disk *d);
};

enum { DISK_IOV_MAX = 512 };

/* Space, descriptors or memory are short, which passes when somebody makes room: another time. Else the disk has failed.
 * Not of a sync: what one that failed has lost is not known. */
static inline bool
disk_is_short(int error)
{
	return error == -ENOSPC || error == -EDQUOT || error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

struct disk {
	const struct disk_ops *ops;
};

/* The real one; NULL with errno set where the folder cannot be opened. */
struct disk *disk_real_new(const char *path);
void disk_free(struct disk **dp);

/* Reads exactly n bytes; -EIO where the file ends before. */
int disk_read_all(struct disk *d, struct disk_file *f, void *to, size_t n, uint64_t at) MUSTUSE;
int disk_write_one(struct disk *d, struct disk_file *f, const void *p, size_t n, uint64_t at) MUSTUSE;
/* A small file, whole or not at all: temporary name, sync, rename, sync of the folder. */
int disk_replace(struct disk *d, const char *name, const void *p, size_t n) MUSTUSE;

#endif
