/* SPDX-License-Identifier: Apache-2.0
 * Settings of a node: the file, then the environment and the command line above it. This is the only place that
 * knows of YAML; the keys are in base/config.c, the lists of topology in settings_topology.c. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/config.h"
#include "settings_yaml.h"

struct broker;
struct table;

enum { SETTINGS_FILE_MAX = 1 << 20, SETTINGS_KEYS_MAX = 128 };

/* One entry of vhosts, exchanges, queues or bindings; which fields it has: settings_topology.c. */
struct topology_item {
	uint32_t line;
	bool durable, auto_delete, internal;
	char *vhost, *name, *type, *source, *destination, *destination_type,
	    *routing_key, *default_queue_type; /* owned */
	struct table *arguments; /* owned, may be NULL */
};

struct topology_list {
	struct topology_item *item; /* owned */
	uint32_t count, cap;
};

struct settings {
	char *file; /* owned; NULL: none, everything is its default */
	struct config config;
	uint32_t
	    lines[SETTINGS_KEYS_MAX]; /* by row of cfg_keys: where the file sets it, 0 where not */
	struct topology_list vhosts, exchanges, queues, bindings;
};

/* Defaults, then the file (NULL: none). Problems are gathered in p; with any, the settings are not to be used,
 * but may be looked at and must be given to settings_fini all the same. */
void settings_load(struct settings *s, const char *file, struct problems *p);
/* The same for text that is there already. */
void settings_load_text(struct settings *s, const char *text, size_t n, struct problems *p);
void settings_fini(struct settings *s);

/* HERMES_DEFAULT_USER and HERMES_DEFAULT_PASS, which the images of other brokers' users set. */
void settings_environment(struct settings *s, struct problems *p);

/* What no single key can say; after everything above. Fills the node's name. */
void settings_finish(struct settings *s, struct problems *p);

/* Declares the topology in a broker. What it refuses (an argument of the wrong kind, or one that a later version
 * brings) becomes a problem with the line of its entry. */
void settings_declare(const struct settings *s, struct broker *b, struct problems *p);

/* settings_topology.c: the lists. `node` is the value of the key `name` at the top of the file. False: no such list. */
bool topology_read(
    struct settings *s, const char *name, const struct ynode *node, struct problems *p);
void topology_fini(struct settings *s);
const char *const *topology_names(size_t *n); /* names of the lists, for hints */

#endif
