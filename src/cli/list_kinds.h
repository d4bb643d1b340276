/* SPDX-License-Identifier: Apache-2.0
 * What can be listed: what a kind is called, where the API has it, and which columns its rows may have. A row need not have
 * all of them (a queue nothing was published to has no message_stats), so a misspelt one is told by this table. */
#ifndef CLI_LIST_KINDS_H
#define CLI_LIST_KINDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "cli/cli.h"

struct list_kind {
	const char *name;
	const char *path;     /* of all */
	const char *in_vhost; /* of those in a vhost; NULL: they belong to none. The same as path: rows of others are left out */
	const char *columns;  /* that are shown unless told otherwise */
	/* All: words with commas between. "queue.name" is a field of the field queue, "messages+" has messages_details.rate
	 * beside it, and in "arguments.*" are names that somebody else gave. */
	const char *fields;
};

extern const struct list_kind list_kinds[]; /* ended by a row without name */

const struct list_kind *list_kind_find(const char *name); /* of the table: another one is a bug (abort) */

/* May rows have this column? *is_open: it is a name within "arguments.*". False: it was said, with the nearest. */
bool list_kind_has(struct cli *c, const struct list_kind *kind, const char *column, bool *is_open) MUSTUSE;

#endif
