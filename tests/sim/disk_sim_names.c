/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/disk_sim_names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/platter.h"

struct entry *
names_find(const struct entries *es, const char *name)
{
	for (uint32_t i = 0; i < es->n; i++) {
		if (strcmp(es->e[i].name, name) == 0)
			return &es->e[i];
	}
	return NULL;
}

void
names_copy(char to[NAME_MAX_LEN], const char *from)
{
	size_t n = strlen(from);

	assert(n > 0 && n < NAME_MAX_LEN && from[0] != '/');
	memcpy(to, from, n + 1);
}

void
names_set(struct entries *es, const char *name, struct inode *inode)
{
	struct entry *e = names_find(es, name);

	if (e == NULL) {
		if (es->n == es->cap) {
			es->cap = es->cap * 2 + 8;
			es->e = xrealloc(es->e, es->cap * sizeof *es->e);
		}
		e = &es->e[es->n++];
		names_copy(e->name, name);
	}
	e->inode = inode;
}

void
names_unset(struct entries *es, const char *name)
{
	struct entry *e = names_find(es, name);

	if (e != NULL)
		*e = es->e[--es->n];
}

static size_t
folder_length(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash == NULL ? 0 : (size_t)(slash - name);
}

bool
name_is_in(const char *name, const char *folder)
{
	size_t n = folder_length(name);

	return strlen(folder) == n && memcmp(name, folder, n) == 0;
}

bool
names_have_folder(const struct entries *es, const char *name)
{
	char folder[NAME_MAX_LEN];
	size_t n = folder_length(name);
	struct entry *e;

	if (n == 0)
		return true;
	memcpy(folder, name, n);
	folder[n] = '\0';
	e = names_find(es, folder);
	return e != NULL && e->inode->is_folder;
}

void
names_change(struct entries *es, const struct name_change *c)
{
	switch (c->kind) {
	case NAME_SET: names_set(es, c->name, c->inode); break;
	case NAME_UNSET: names_unset(es, c->name); break;
	case NAME_MOVE: {
		struct entry *e = names_find(es, c->name);

		if (e != NULL && e->inode == c->inode)
			names_unset(es, c->name);
		names_set(es, c->to, c->inode);
		break;
	}
	}
}

/* Names whose folder did not survive go with it. */
void
names_drop_orphans(struct entries *es)
{
	for (uint32_t k = 0; k < es->n;) {
		if (names_have_folder(es, es->e[k].name)) {
			k++;
		} else {
			es->e[k] = es->e[--es->n];
			k = 0;
		}
	}
}

/* The rest of a name below a folder; NULL: it is not there. */
const char *
name_below(const char *name, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(name, folder, n) == 0 && name[n] == '/' ? name + n + 1 : NULL;
}

void
names_forget(struct entries *es, const char *folder)
{
	for (uint32_t k = 0; k < es->n;) {
		if (strcmp(es->e[k].name, folder) == 0 || name_below(es->e[k].name, folder) != NULL)
			es->e[k] = es->e[--es->n];
		else
			k++;
	}
}
