/* SPDX-License-Identifier: Apache-2.0
 * hermes restore DIR: a snapshot becomes a data folder. Works on files, asks no node. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"
#include "data_dir.h"
#include "store/store.h"

static void
say(void *arg, const char *line)
{
	(void)arg;
	printf("%s\n", line);
}

int
cmd_restore(struct cli *c)
{
	const char *from = cli_arg(c, 0), *to = cli_value(c, "data");
	char err[DATA_DIR_ERROR];
	int lock, e;

	lock = data_dir_open(to, err);
	if (lock < 0)
		return cli_fail(c, "%s", err);
	e = store_restore(from, to, say, NULL);
	close(lock);
	(void)fflush(stdout);
	if (e == 1)
		return cli_fail(c, "%s was restored into %s, but it is damaged", from, to);
	if (e != 0)
		return cli_fail(c, "%s was not restored", from);
	printf("restored into %s\n", to);
	return CLI_OK;
}
