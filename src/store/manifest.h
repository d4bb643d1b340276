/* SPDX-License-Identifier: Apache-2.0
 * The list of what belongs to a snapshot, as a text file that is written last: a snapshot without it is not whole.
 *
 *	hermes-snapshot 1
 *	33554432 journal/00000003
 *	...
 *	sum 0123456789abcdef		xxh3 of all lines before */
#ifndef STORE_MANIFEST_H
#define STORE_MANIFEST_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define MANIFEST_NAME "manifest"
enum { MANIFEST_MAX = 256 << 20 /* bytes; some million files */ };

struct manifest {
	char *p; /* owned */
	size_t n, cap;
};

void manifest_init(struct manifest *m);
void manifest_fini(struct manifest *m);
void manifest_add(struct manifest *m, const char *name, uint64_t size);
void manifest_seal(struct manifest *m); /* the last line; then p has n bytes to be written */

/* Reading. Names are checked: they stay below the folder. Calls f for each file; not 0: stop, that is the result.
 * -EBADMSG: no manifest, or damaged; -EPROTONOSUPPORT: of a newer form. */
typedef int manifest_fn(void *arg, const char *name, uint64_t size);
int manifest_each(const char *p, size_t n, manifest_fn *f, void *arg) MUSTUSE;

#endif
