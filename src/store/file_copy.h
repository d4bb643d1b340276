/* SPDX-License-Identifier: Apache-2.0
 * A file copied piece by piece, for snapshots and restoring: the new one is synced before it counts as copied. */
#ifndef STORE_FILE_COPY_H
#define STORE_FILE_COPY_H

#include <stdint.h>

#include "base/attr.h"
#include "store/disk.h"

struct file_copy {
	struct disk *from_disk, *to_disk;	/* borrowed */
	struct disk_file *from, *to;		/* owned; NULL: none is under way */
	uint64_t at, end, size;
	uint8_t *buffer;			/* owned */
};

/* The first `end` bytes (UINT64_MAX: all there are) become a new file, which is made `size` bytes long if that is more.
 * 0 or -errno: then nothing is under way. */
int file_copy_begin(struct file_copy *c, struct disk *from, const char *name, struct disk *to, const char *new_name,
    uint64_t end, uint64_t size) MUSTUSE;
/* One piece. 1: there is more; 0: copied and synced (c->size: its size); -errno: failed. But for 1 it is over. */
int file_copy_step(struct file_copy *c) MUSTUSE;
void file_copy_cancel(struct file_copy *c);

#endif
