/* SPDX-License-Identifier: Apache-2.0
 * Random bytes that nobody can guess, from the kernel. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>

enum { RANDOM_NAME_SIZE = 23 };

void random_bytes(void *p, size_t n); /* aborts if the kernel has none */

/* 22 characters of base64url out of 16 random bytes, and a NUL: the part of a name made by the
 * server that makes it unique. */
void random_name(char out[RANDOM_NAME_SIZE]);

#endif
