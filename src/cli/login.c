/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/password_input.h"
#include "cli/text_safe.h"

static char *
from_file(struct cli *c, int *rc)
{
	const char *path = cli_value(c, "password-file");
	FILE *f = fopen(path, "re");
	char *line;

	if (f == NULL) {
		*rc = cli_fail(c, "cannot read %s: %s", path, strerror(errno));
		return NULL;
	}
	line = password_read(f);
	(void)fclose(f);
	if (line == NULL)
		*rc = cli_fail(
		    c, "%s has no line of at most %d bytes with the password", path, PASSWORD_MAX);
	return line;
}

static char *
ask(struct cli *c, const char *user, int *rc)
{
	static char *answer; /* kept until the process ends: a command may send several requests */
	char *prompt;

	if (answer == NULL) {
		prompt = text_safe_format("Password of '%s': ", user);
		answer = password_ask(prompt);
		free(prompt);
	}
	if (answer != NULL)
		return xstrdup(answer);
	*rc = cli_fail(c, "no password was typed");
	return NULL;
}

char *
login_password(struct cli *c, const char *user, const char *address, bool address_is_above, int *rc)
{
	bool word = cli_count(c, "password") > 0, file = cli_count(c, "password-file") > 0;

	if (word && file) {
		*rc = cli_misuse(c, "--password and --password-file do not go together");
		return NULL;
	}
	if (!word && !file && address != NULL && address_is_above)
		return xstrdup(address);
	if (!file && cli_value(c, "password") != NULL)
		return xstrdup(cli_value(c, "password"));
	if (cli_value(c, "password-file") != NULL)
		return from_file(c, rc);
	if (address != NULL)
		return xstrdup(address);
	return isatty(STDIN_FILENO) == 1 ? ask(c, user, rc) : xstrdup("");
}
