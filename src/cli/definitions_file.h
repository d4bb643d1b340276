/* SPDX-License-Identifier: Apache-2.0
 * Definitions that a command is given, in the file of its first word or on standard input, and how they are sent. */
#ifndef CLI_DEFINITIONS_FILE_H
#define CLI_DEFINITIONS_FILE_H

#include <jansson.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "cli/cli.h"

struct definitions_file {
	const char *name; /* borrowed: of the file, for messages */
	char *owned;      /* owned; the text */
	struct span text; /* as it is */
	json_t *doc;      /* owned: an object */
};

/* CLI_OK, or the exit status after it was said what is wrong: it cannot be read, is no JSON, or was exported of one virtual
 * host while --vhost names none. Either way definitions_file_fini() comes after it. */
int definitions_file_read(struct cli *c, struct definitions_file *f) MUSTUSE;
void definitions_file_fini(struct definitions_file *f);

/* Into the node, or the virtual host of --vhost. What the node could not make is named; *answer as the node gave it, owned by
 * the caller: {"imported", "failed", "errors"}, or NULL where all of it was made. */
int definitions_send(struct cli *c, struct span text, json_t **answer) MUSTUSE;

#endif
