/* SPDX-License-Identifier: Apache-2.0
 * hermes apply: what its files have in common.
 *
 *	apply.c		the difference, and what is new or changed
 *	apply_prune.c	--prune: what is on the node only */
#ifndef CLI_APPLY_H
#define CLI_APPLY_H

#include "cli/cli.h"
#include "cli/definitions_diff.h"
#include "cli/definitions_file.h"

struct apply {
	struct cli *cli;                /* borrowed */
	struct definitions_file file;
	json_t *there;                  /* owned: definitions of the node, or the vhost */
	const char *vhost;              /* borrowed; NULL: the whole node */
	struct definitions_diff diff[DEFINITIONS_KINDS]; /* by definitions_kinds; of a kind that is left out: zeros */
	size_t added, changed, removed; /* objects */
	size_t fixed;                   /* that differ and cannot be changed */
};

/* True if the option stands on the command line, or somebody at a terminal says yes. */
bool apply_confirm(const struct apply *a, const char *option, const char *question);

/* With --prune: does this object go, which is on the node only? Those of kinds that the file lists, but for what the node has of
 * itself. */
bool apply_prunes(const struct apply *a, const struct definitions_kind *kind, const json_t *item);
size_t apply_prune_count(const struct apply *a);
/* Asks, and removes them. CLI_OK, or the exit status: it was said why. */
int apply_prune(const struct apply *a) MUSTUSE;

#endif
