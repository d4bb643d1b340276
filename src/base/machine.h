/* SPDX-License-Identifier: Apache-2.0
 * What the machine, or the control group that the process runs in, allows. */
#ifndef BASE_MACHINE_H
#define BASE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of memory that the process may use: the least of the machine's memory and of every limit on the way
 * from our control group to the root (version 2 memory.max, version 1 memory.limit_in_bytes). Never 0. */
uint64_t machine_memory(void);

/* The same, with the file system seen below `root` ("" is the real one), for tests. */
uint64_t machine_memory_at(const char *root);

/* The machine's name up to the first dot, always ended, never empty. */
void machine_host(char *out, size_t n);

#endif
