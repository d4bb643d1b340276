/* SPDX-License-Identifier: Apache-2.0
 * The names of the simulated disk: which there are, and what changes of them are not synced yet. */
#ifndef TESTS_SIM_DISK_SIM_NAMES_H
#define TESTS_SIM_DISK_SIM_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct inode;

enum { NAME_MAX_LEN = 160 };

struct entry {
	char name[NAME_MAX_LEN];
	struct inode *inode;
};

struct entries {
	struct entry *e; /* owned */
	uint32_t n, cap;
};

enum name_kind { NAME_SET, NAME_UNSET, NAME_MOVE };
struct name_change { /* of a folder, not synced yet */
	enum name_kind kind;
	char name[NAME_MAX_LEN], to[NAME_MAX_LEN];
	struct inode *inode;
};

void names_copy(char to[NAME_MAX_LEN], const char *from);
struct entry *names_find(const struct entries *es, const char *name);	/* NULL: there is none */
void names_set(struct entries *es, const char *name, struct inode *inode);
void names_unset(struct entries *es, const char *name);
void names_change(struct entries *es, const struct name_change *c);
bool names_have_folder(const struct entries *es, const char *name);	/* that the name lies in */
void names_drop_orphans(struct entries *es);	/* names whose folder did not survive go with it */
void names_forget(struct entries *es, const char *folder);	/* and what is below it */

bool name_is_in(const char *name, const char *folder);
const char *name_below(const char *name, const char *folder);	/* the rest of it; NULL: it is not there */

#endif
