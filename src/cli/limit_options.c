/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/limit_options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/http_path.h"

/* RabbitMQ's tools say -1. */
static bool
is_none(const char *text)
{
	return strcmp(text, "none") == 0 || strcmp(text, "-1") == 0;
}

bool
limit_options_given(const struct cli *c, const char *const *names)
{
	for (; *names != NULL; names++)
		if (cli_given(c, *names))
			return true;
	return false;
}

bool
limit_options_fine(const struct cli *c, const char *const *names)
{
	uint64_t n;

	for (; *names != NULL; names++) {
		const char *text = cli_value(c, *names);

		if (text != NULL && !is_none(text) && !cli_number(c, *names, 0, INT64_MAX, &n))
			return false;
	}
	return true;
}

static int
put(struct cli *c, const char *name, const char *text, char *path, char *what)
{
	uint64_t n = 0;

	if (is_none(text))
		return api_delete(c, path, what, "took away");
	if (!cli_number(c, name, 0, INT64_MAX, &n))
		abort(); /* it was fine */
	return api_put(c, path, json_pack("{s:I}", "value", (json_int_t)n), what, "changed");
}

int
limit_options_put(
    struct cli *c, const char *const *names, const char *path, const char *owner, const char *what)
{
	int rc = CLI_OK;

	for (; *names != NULL && rc == CLI_OK; names++) {
		const char *text = cli_value(c, *names);

		if (text != NULL)
			rc = put(c, *names, text, HTTP_PATH(path, owner, *names),
			    xasprintf("%s of %s", *names, what));
	}
	return rc;
}
