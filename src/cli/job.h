/* SPDX-License-Identifier: Apache-2.0
 * Commands that start a job on the node (moves, replays) and see it through. */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include <jansson.h>

#include "cli/cli.h"

/* How the job is spoken of: "moved" 5 "message(s)", `of`, which is safe to print and taken. */
struct job_words {
	const char *done, *one, *many;
	char *of; /* "of queue 'a' in vhost '/' to queue 'b'" */
};

/* POST. Takes `path`, which is encoded, `body`, to which --rate is added, and `what`, which is safe to print and is what a
 * refusal is about. Waits for the end unless --no-wait is given, and shows on a terminal how far it is. One line on standard
 * output, or with --json the job. CLI_OK: all of it was done (--no-wait: it has begun). */
int job_run(struct cli *c, char *path, json_t *body, char *what, struct job_words words);

#endif
