/* SPDX-License-Identifier: Apache-2.0
 * A file of the simulated disk: what readers see (the page cache), what is on the platter, and what was written since the
 * last sync, in order, so that any part of it may get there. */
#ifndef TESTS_SIM_PLATTER_H
#define TESTS_SIM_PLATTER_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/rnd.h"

struct bytes {
	uint8_t *p; /* owned; beyond n up to cap zero */
	uint64_t n, cap;
};
void bytes_resize(struct bytes *b, uint64_t n);
void bytes_set(struct bytes *b, const struct bytes *from);

struct change;
struct inode {
	bool is_folder, is_seen;
	struct bytes cache, platter;
	struct change *change; /* owned */
	uint32_t changes, cap;
	unsigned handles;
	uint64_t bad, bad_end; /* cannot be read, until it is written; bad_end 0: nothing */
	struct inode *next;
};
void inode_free(struct inode *i);

/* How much of what was not synced survives. */
enum settle { SETTLE_NOTHING, SETTLE_ALL, SETTLE_PREFIX, SETTLE_ANY, SETTLE_MOST, SETTLE_FEW, SETTLES };
/* How many of n changes, in order, a unit has seen; prefix: for SETTLE_PREFIX. */
uint32_t settle_pick(struct rnd *r, enum settle how, uint32_t n, uint32_t prefix);

/* Notes [at, at + n) of the cache as changed, or the length only (n = 0). */
void inode_changed(struct inode *i, uint64_t at, uint64_t n);
void inode_write_out(struct inode *i); /* a sync */
/* Any part of what was not synced reaches the platter; the rest is forgotten. stale: what a sector that was never written
 * may show (but for the first page, where headers are: a header that is not synced is never one of another file), or NULL
 * for zeros. */
void inode_settle(struct inode *i, struct rnd *r, enum settle how, const struct bytes *stale);
void inode_drop(struct inode *i); /* forgets it */
void inode_flip(struct inode *i, uint64_t at, unsigned bit); /* in all of them */

#endif
