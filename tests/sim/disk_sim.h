/* SPDX-License-Identifier: Apache-2.0
 * A disk in memory behind store/disk.h, for tests: it does everything a real one may do at the worst moment, from a seed.
 *
 * Every file has what a reader sees (the page cache) and what is on the platter. A sync of the file moves the one to the
 * other, a sync of a folder does so for its names. A power cut leaves of what was not synced any part: each sector of 512
 * (or page of 4,096) bytes in any of its versions since the last sync, the length likewise, names created, renamed, linked
 * or removed each or not. A failed sync leaves the page cache as it was, calls it clean, and writes any part of it. */
#ifndef TESTS_SIM_DISK_SIM_H
#define TESTS_SIM_DISK_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "store/disk.h"

struct disk *disk_sim_new(uint64_t seed, uint64_t capacity);

/* The n-th operation from now on (1: the next) is cut in the middle; from then on the disk is dead: every call fails and
 * changes nothing, until disk_sim_crash() or disk_sim_kill(). 0: never. Operations are all but close, list and space;
 * reads count only when reads is true. */
void disk_sim_cut_after(struct disk *d, uint64_t n, bool reads);
bool disk_sim_is_dead(const struct disk *d);

/* As it may look after a power cut. No file may be open. */
void disk_sim_crash(struct disk *d, uint64_t seed);
/* As it looks after kill -9: everything that was written is there, and still not synced. No file may be open. */
void disk_sim_kill(struct disk *d);

/* The n-th sync of a file, write or read from now on fails once with -EIO; 0: none. */
void disk_sim_fail_sync(struct disk *d, uint64_t n);
void disk_sim_sync_error(struct disk *d, int error); /* what syncs that fail say from now on, until a restart */
void disk_sim_fail_write(struct disk *d, uint64_t n);
void disk_sim_fail_read(struct disk *d, uint64_t n);
void disk_sim_set_capacity(struct disk *d, uint64_t bytes);
/* What was called so far, and failed because it was told to. */
struct disk_sim_counts {
	uint64_t ops, syncs, writes, failed_syncs, failed_writes, failed_reads, full;
};
void disk_sim_counts(const struct disk *d, struct disk_sim_counts *out);

uint64_t disk_sim_used(const struct disk *d);	/* bytes of all files */
unsigned disk_sim_open_files(const struct disk *d);
/* Bytes of a file as readers see them; NULL: there is none. Good until the next call that changes it. */
const uint8_t *disk_sim_bytes(const struct disk *d, const char *name, uint64_t *size);
/* A disk of its own with what of a folder is on the platter. */
struct disk *disk_sim_copy(const struct disk *d, const char *folder, uint64_t seed);
/* The folder and what is below it was never there. */
void disk_sim_forget(struct disk *d, const char *folder);
/* Bytes [from, to) cannot be read until somebody writes there. */
void disk_sim_break(struct disk *d, const char *name, uint64_t from, uint64_t to);
/* Changes a bit, in the cache and on the platter. */
void disk_sim_flip(struct disk *d, const char *name, uint64_t at, unsigned bit);

#endif
