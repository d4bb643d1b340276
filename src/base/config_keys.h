/* SPDX-License-Identifier: Apache-2.0
 * The table of keys: one row for each scalar key of hermes.yml (lists: src/settings_lists.c).
 * A row says where the value goes, what it may be, what it is when it is not set, and what it is for. */
#ifndef BASE_CONFIG_KEYS_H
#define BASE_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct config;

enum { CONFIG_ERROR_MAX = 512 }; /* bytes for the text of an error, NUL included */

enum cfg_type { CFG_BOOL, CFG_U16, CFG_U32, CFG_U64, CFG_STR, CFG_LIST };

enum cfg_flag {
	CFG_RELOAD = 1 << 0, /* SIGHUP applies it; others wait for the next start */
	CFG_SECRET = 1 << 1, /* its value never stands in a message */
	CFG_FILES = 1 << 5,  /* a list of files, not of addresses */
	CFG_RANGES = 1 << 6, /* a list of networks */
	CFG_PREFIX = 1 << 4, /* a path to stand before others: see is_prefix() */
	CFG_SHOWN = 1 << 3   /* clients and tools are told it: UTF-8 without control characters */
};

struct cfg_key;

/* Turns text into a number, within the row's bounds or not (the caller looks). 0, -EINVAL, -ERANGE. */
typedef int cfg_parse_fn(const struct cfg_key *k, const char *text, uint64_t *out);

struct cfg_key {
	const char *path; /* "limits.heartbeat" */
	const char *text; /* what it is for; one or two sentences */
	const char *def;  /* default, as it would be written; NULL: nothing (an empty list, NULL) */
	cfg_parse_fn *parse; /* numbers only */
	const char *kind;    /* what a value is called when it is none: "a number" */
	uint64_t min, max;   /* of numbers, and of the length of texts */
	const char *const
	    *words; /* the only texts it may be, in the order of their numbers; ends with NULL */
	size_t offset;     /* of its field in struct config */
	enum cfg_type type;
	uint32_t flags;
};

extern const struct cfg_key cfg_keys[];
extern const size_t cfg_key_count;

/* The row of a path, or NULL. */
const struct cfg_key *config_find(const char *path, size_t n);

void config_init(struct config *c); /* every default; whatever c held before is not looked at */
void config_fini(struct config *c);

/* Sets one key from text; a list becomes that one item. False: c is unchanged and err says what is wrong,
 * beginning with the key's path. */
bool config_set(struct config *c, const struct cfg_key *k, const char *value, char err[]) MUSTUSE;
/* Lists: adds one more item. config_clear empties the list first. */
bool config_add(struct config *c, const struct cfg_key *k, const char *value, char err[]) MUSTUSE;
void config_clear(struct config *c, const struct cfg_key *k);

/* What no single row can say, one mistake after the other: *n is 0 at first. False: there is none left. *k is the row to
 * blame, *other one that its value was compared with, and err the text. */
bool config_check(const struct config *c, unsigned *n, const struct cfg_key **k, const struct cfg_key **other,
    char err[]) MUSTUSE;

/* Fills what depends on the machine: the node's name. */
void config_complete(struct config *c);

/* The value as it could be written in hermes.yml, into at most n bytes; secrets as "********". Numbers
 * come plain, in bytes or milliseconds. */
void config_show(const struct config *c, const struct cfg_key *k, char *out, size_t n);
bool config_same(const struct config *a, const struct config *b, const struct cfg_key *k);
/* Takes over the values of the rows with CFG_RELOAD. */
void config_reload(struct config *into, const struct config *from);

#endif
