/* SPDX-License-Identifier: Apache-2.0
 * hermes top: what its files have in common.
 *
 *	top.c		asks the node, over and over
 *	top_view.c	a picture of the answers, as text */
#ifndef CLI_TOP_H
#define CLI_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* By what queues are sorted: the largest first, names from a to z. */
struct top_order {
	char key;           /* that chooses it */
	const char *name;   /* for --sort, and beside the key */
	const char *column; /* of /api/queues */
	bool is_rising;
};

extern const struct top_order top_orders[]; /* ended by a row without name; the first is the default */

/* overview: of the node; queues: a page of them, NULL: none. aligned: for people, else cells are parted by tabs. */
void top_print(FILE *out, json_t *overview, json_t *queues, bool aligned);

#endif
