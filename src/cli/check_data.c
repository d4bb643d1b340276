/* SPDX-License-Identifier: Apache-2.0
 * hermes check-data DIR: is a data folder, or a snapshot, whole, and of a format that this version reads? Changes nothing,
 * asks no node. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/text_safe.h"
#include "data_dir.h"
#include "store/store.h"

struct checking {
	json_t *lines; /* owned; NULL: they are printed */
	struct progress progress;
};

static void
append_line(json_t *lines, const char *line)
{
	char *safe = text_safe(line, strlen(line), NULL);

	(void)json_array_append_new(lines, json_string(safe));
	free(safe);
}

static void
say(void *arg, const char *line)
{
	struct checking *k = arg;

	progress_clear(&k->progress);
	if (k->lines != NULL)
		append_line(k->lines, line);
	else
		printf("%s\n", line);
}

static void
show_progress(void *arg, uint64_t done, uint64_t bytes)
{
	struct checking *k = arg;

	progress_show(&k->progress,
	    "segments: %" PRIu64 " of %" PRIu64 " MiB read (%" PRIu64 " %%)", done >> 20,
	    bytes >> 20, bytes == 0 ? 100 : done * 100 / bytes);
}

static void
print_json(struct checking *k, const char *path, const struct store_check_report *r, int e)
{
	char *safe = text_safe(path, strlen(path), NULL); /* it may be no UTF-8 */
	json_t *o = json_pack("{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}",
	    "path", safe, "readable", e >= 0, "whole", e == 0, "format", (json_int_t)r->format,
	    "newest_format", (json_int_t)store_format(), "records", (json_int_t)r->records,
	    "messages_in_journal", (json_int_t)r->in_journal, "segments", (json_int_t)r->segments,
	    "messages_in_segments", (json_int_t)r->in_segments, "torn_bytes", (json_int_t)r->torn,
	    "damaged", (json_int_t)r->damaged, "lines", k->lines);

	(void)json_dumpf(o, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
	printf("\n");
	json_decref(o);
	free(safe);
}

static int
check(struct cli *c, struct checking *k, const char *path)
{
	const struct store_check_ask ask = { .say = say, .progress = show_progress, .arg = k };
	struct store_check_report r;
	int e = store_check_with(path, &ask, &r);

	progress_clear(&k->progress);
	if (k->lines != NULL)
		print_json(k, path, &r, e);
	else if (r.format != 0)
		printf("format: %" PRIu32 "; this version reads up to %" PRIu32 "\n", r.format,
		    store_format());
	(void)fflush(stdout);
	if (e == 1)
		return cli_fail(c, "%s is damaged", path);
	if (e != 0)
		return cli_fail(c, "%s cannot be checked", path);
	if (k->lines == NULL)
		printf("%s is whole\n", path);
	return CLI_OK;
}

int
cmd_check_data(struct cli *c)
{
	struct checking k = { .lines = cli_switch(c, "json") ? json_array() : NULL };
	const char *path = cli_arg(c, 0);
	char err[DATA_DIR_ERROR];
	int lock = -1, rc;

	progress_init(&k.progress, k.lines == NULL);
	if (data_dir_keep(path, &lock, err))
		rc = check(c, &k, path);
	else
		rc = cli_fail(c, "%s", err);
	if (lock >= 0)
		close(lock);
	json_decref(k.lines);
	return rc;
}
