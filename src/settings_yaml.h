/* SPDX-License-Identifier: Apache-2.0
 * YAML text as a tree of nodes with their lines, and the list of what is wrong with a file of settings.
 *
 * What is taken of YAML is what settings need: one document, mappings with plain keys, lists, scalars. Anchors, aliases
 * and tags are refused, so a small file stays a small tree. ${VAR}, ${VAR:-default} and $${ are looked at in scalar
 * values after parsing: what stands in a variable is text, never structure. */
#ifndef SETTINGS_YAML_H
#define SETTINGS_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { PROBLEMS_MAX = 50, PROBLEM_TEXT_MAX = 4096 };

/* A place in the text; both from 1, a column is a character. */
struct spot {
	uint32_t line, column;
};
#define NOWHERE ((struct spot){ 0, 0 })

/* Each text is "FILE:LINE:COLUMN: what is wrong", or "FILE: ..." where no place is to blame. */
struct problems {
	const char *file;         /* borrowed: as it is shown */
	char *item[PROBLEMS_MAX]; /* owned */
	struct spot at[PROBLEMS_MAX];
	uint32_t count;
	uint32_t more; /* problems that found no place */
	/* Part of the file could not be understood: what seems to be missing may be there. */
	bool is_partial;
	bool is_cut; /* the same, and its rest was not read at all */
};
void problem(struct problems *p, struct spot at, const char *fmt, ...) PRINTF(3, 4);
/* All of them, with those that found no place. */
uint32_t problems_all(const struct problems *p);
/* A further one would not be said: nobody need think about its words. */
bool problems_full(const struct problems *p);
/* In the order of the file; what has no place comes first. */
void problems_sort(struct problems *p);
void problems_fini(struct problems *p);

/* NODE_NONE: a value that could not be read; a problem was noted, so readers pass over it. */
enum node_kind { NODE_NONE, NODE_SCALAR, NODE_MAP, NODE_LIST };

struct ynode {
	enum node_kind kind;
	bool is_cut;                /* a map or list whose end was not found */
	bool plain;                 /* a scalar without quotes: numbers, true and false, nothing */
	struct spot at;             /* of the key in a map, else of the value */
	char *key;                  /* owned; in a map */
	char *text;                 /* owned; a scalar's, with variables put in */
	struct ynode *first, *last; /* owned: children in order */
	struct ynode *next;
};

/* Reads the text of a file. NULL when there is nothing in it or what there is makes no tree (a problem was noted).
 * Everything that can be found wrong in one pass is noted; the tree is then what could be understood. */
/* Prefix ynode_: yaml_ is the name space of libyaml, which itself has a yaml_free. */
struct ynode *ynode_read(const char *text, size_t n, struct problems *p) MUSTUSE;
void ynode_free(struct ynode **np);

/* An absent value: `key:`, `key: ~`, `key: null`. */
bool ynode_is_null(const struct ynode *n);
const struct ynode *ynode_find(const struct ynode *map, const char *key);

#endif
