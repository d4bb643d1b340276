/* SPDX-License-Identifier: Apache-2.0
 * A view of a disk through which nothing is changed: what is written is forgotten, and said to have been written. The
 * code that recovers a store can look at a folder through it that has to stay as it is. */
#ifndef STORE_DISK_READONLY_H
#define STORE_DISK_READONLY_H

#include "store/disk.h"

/* `under` is borrowed. */
struct disk *disk_readonly_new(struct disk *under);

#endif
