/* SPDX-License-Identifier: Apache-2.0
 * hermes check-data DIR: is a data folder, or a snapshot, whole? Changes nothing, asks no node. */
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
cmd_check_data(struct cli *c)
{
	const char *path = cli_arg(c, 0);
	char err[DATA_DIR_ERROR];
	int lock = -1, e;

	if (!data_dir_keep(path, &lock, err))
		return cli_fail(c, "%s", err);
	e = store_check(path, say, NULL);
	if (lock >= 0)
		close(lock);
	(void)fflush(stdout);
	if (e == 1)
		return cli_fail(c, "%s is damaged", path);
	if (e != 0)
		return cli_fail(c, "%s cannot be checked", path);
	printf("%s is whole\n", path);
	return CLI_OK;
}
