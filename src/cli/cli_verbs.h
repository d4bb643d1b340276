/* SPDX-License-Identifier: Apache-2.0
 * Commands whose first word says what to do or to what: `hermes user add NAME`, `hermes declare queue NAME`. */
#ifndef CLI_CLI_VERBS_H
#define CLI_CLI_VERBS_H

#include "cli/cli.h"

struct cli_verb {
	const char *name;
	int (*run)(struct cli *c);   /* its words begin at cli_arg(c, 1) */
	const char *usage;           /* the words after it: "NAME", "USER CONFIGURE WRITE READ" */
	unsigned args_min, args_max; /* how many of them */
	const char *options;         /* those of the command's options that it has, with blanks between */
};

/* Runs the verb that the first word names, of a table that a row without name ends. Words that are missing or too many,
 * options that belong to other verbs and a verb that is not there are wrong usage. */
int cli_run_verb(struct cli *c, const struct cli_verb *verbs);

#endif
