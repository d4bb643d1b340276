/* SPDX-License-Identifier: Apache-2.0
 * hermes restore DIR: a snapshot becomes a data folder. Works on files, asks no node. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "data_dir.h"
#include "store/store.h"

static void
say(void *arg, const char *line)
{
	progress_clear(arg);
	printf("%s\n", line);
}

static void
show_copied(void *arg, uint64_t done, uint64_t bytes)
{
	progress_show(arg, "%" PRIu64 " of %" PRIu64 " MiB copied", done >> 20, bytes >> 20);
}

static void
show_checked(void *arg, uint64_t done, uint64_t bytes)
{
	progress_show(
	    arg, "checked: %" PRIu64 " of %" PRIu64 " MiB of segments", done >> 20, bytes >> 20);
}

int
cmd_restore(struct cli *c)
{
	const char *from = cli_arg(c, 0), *to = cli_value(c, "data");
	char err[DATA_DIR_ERROR];
	struct progress progress;
	int lock, e;

	lock = data_dir_open(to, err);
	if (lock < 0)
		return cli_fail(c, "%s", err);
	progress_init(&progress, true);
	e = store_restore(from, to,
	    &(struct store_restore_ask){
	        .check = { .say = say, .progress = show_checked, .arg = &progress },
	        .copied = show_copied });
	progress_clear(&progress);
	close(lock);
	(void)fflush(stdout);
	if (e == 1)
		return cli_fail(c, "%s was restored into %s, but it is damaged", from, to);
	if (e != 0)
		return cli_fail(c, "%s was not restored", from);
	printf("restored into %s\n", to);
	return CLI_OK;
}
