/* SPDX-License-Identifier: Apache-2.0
 * Settings of a node: the file, then the environment and the command line above it. This is the only place that
 * knows of YAML; the keys are in base/config.c.
 *
 *	settings.c		the file, sections and their keys
 *	settings_environment.c	variables that stand above the file
 *	settings_yaml.c		from text to a tree
 *	settings_lists.c	the lists: vhosts, users, policies, exchanges, queues, bindings
 *	settings_table.c	arguments and definitions of them
 *	settings_apply.c	the broker is given what they say (settings_apply.h) */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/config.h"
#include "base/password.h"
#include "broker/limits.h"
#include "settings_yaml.h"

struct broker;
struct table;

/* Of definitions that hermes.yml does not take. */
#define SETTINGS_ELSEWHERE "it belongs into a file of definitions (JSON), which definitions.file names"

enum { SETTINGS_FILE_MAX = 1 << 20, SETTINGS_KEYS_MAX = 128, SETTINGS_LIMITS = 2 };

struct settings_texts {
	char **item; /* owned */
	uint32_t count;
	bool is_given;
};

/* One entry of a list; which fields it has: settings_lists.c. Texts that were not given are NULL or their default. */
struct settings_item {
	struct spot at;
	bool durable, auto_delete, internal;
	bool has_limits, has_hash;
	bool is_broken; /* a mistake in it was said: good for a trial only */
	int64_t priority;
	char *vhost, *name, *type, *source, *destination, *destination_type, *routing_key, *description,
	    *default_queue_type, *pattern, *apply_to; /* owned */
	char *password;		/* owned, wiped at the end */
	struct password hash;	/* has_hash: in place of a password */
	struct settings_texts tags, vhosts, permissions; /* permissions: configure, write, read */
	struct limit limit[SETTINGS_LIMITS];	/* by enum vhost_limit or user_limit */
	struct table *arguments;		/* owned, may be NULL; a policy's definition */
};

struct settings_list {
	struct settings_item *item; /* owned */
	struct settings_item **by_name; /* owned: the same by vhost and name; of users and policies */
	uint32_t count, cap, named; /* named: how many by_name has */
	bool is_given; /* the file has it, be it empty */
};

struct settings {
	char *file; /* owned; NULL: none, everything is its default */
	struct config config;
	struct spot spots[SETTINGS_KEYS_MAX]; /* by row of cfg_keys: where the file sets it */
	bool is_bad[SETTINGS_KEYS_MAX]; /* the same: its value was refused */
	struct settings_list vhosts, users, policies, operator_policies, exchanges, queues, bindings;
};

/* Defaults, then the file (NULL: none). Problems are gathered in p; with any, the settings are not to be used,
 * but may be looked at and must be given to settings_fini all the same. Any thread, one at a time. */
void settings_load(struct settings *s, const char *file, struct problems *p);
/* The same for text that is there already. */
void settings_load_text(struct settings *s, const char *text, size_t n, struct problems *p);
void settings_fini(struct settings *s);

/* ---- settings_environment.c ---- */

/* HERMES_DEFAULT_USER and the like, and the names that the images of RabbitMQ's users have. */
void settings_environment(struct settings *s, struct problems *p);

/* ---- settings.c ---- */

/* What no single key can say; after everything above. Fills the node's name. The problems are then in the order of the file. */
void settings_finish(struct settings *s, struct problems *p);

/* ---- settings_lists.c ---- */

/* `node` is the value of the key `name` at the top of the file. False: no such list. */
bool settings_read_list(struct settings *s, const char *name, const struct ynode *node, struct problems *p);
void settings_free_lists(struct settings *s);
const char *const *settings_list_names(size_t *n); /* for hints */
/* Of a list that has by_name: whether there is an entry of this name. vhost NULL where entries have none. */
bool settings_has(const struct settings_list *l, const char *vhost, const char *name);

/* ---- settings_table.c ---- */

/* A map as a table: integers become 64-bit ones, texts long strings, lists arrays. One that is none, or too large, is noted
 * with `what` and the node's key, and leaves *out alone; it is owned by the caller, and NULL for an empty map. */
void settings_read_table(struct table **out, const struct ynode *n, const char *what, struct problems *p);
/* What a plain scalar of digits says. False: it is no integer of 64 bits. */
bool settings_read_integer(const struct ynode *n, int64_t *out) MUSTUSE;

#endif
