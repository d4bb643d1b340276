/* SPDX-License-Identifier: Apache-2.0
 * The life of a node: everything that it is made of is started here, turned here, and stopped here. */
#ifndef NODE_H
#define NODE_H

#include <stdbool.h>

#include "base/attr.h"

struct problems;
struct settings;

struct node_start {
	struct settings
	    *settings; /* borrowed until node_run returns; SIGHUP changes what may be changed */
	const char *pid_file; /* NULL: none */
	/* Reads the settings anew, as they were read at the start. The caller gives `out` to settings_fini. */
	void (*reread)(void *arg, struct settings *out, struct problems *p);
	void *arg;
};

/* Runs a node until a signal ends it. Returns the exit status; what went wrong at the start was said on
 * standard error. */
int node_run(const struct node_start *start) MUSTUSE;

#endif
