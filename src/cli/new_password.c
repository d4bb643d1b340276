/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/new_password.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/api.h"
#include "cli/password_input.h"

/* NULL: *rc says how it failed, which was said. */
static char *
ask_twice(struct cli *c, int *rc)
{
	char *first = password_ask("New password: "),
	     *second = first != NULL ? password_ask("Once more: ") : NULL;

	if (second != NULL && strcmp(first, second) == 0) {
		free(second);
		return first;
	}
	*rc = cli_fail(
	    c, "%s", second != NULL ? "the two are not the same" : "no password was typed");
	free(first);
	free(second);
	return NULL;
}

static char *
take(struct cli *c, int *rc)
{
	const char *given = cli_value(c, "new-password");
	char *line = NULL;

	if (cli_count(c, "new-password") > 0 && cli_switch(c, "password-stdin")) {
		*rc = cli_misuse(c, "--new-password and --password-stdin do not go together");
	} else if (cli_switch(c, "password-stdin")) {
		line = password_read(stdin);
		if (line == NULL)
			*rc = cli_misuse(c,
			    "standard input has no line of at most %d bytes with the password",
			    PASSWORD_MAX);
	} else if (given != NULL) {
		line = xstrdup(given);
	} else if (isatty(STDIN_FILENO) == 1) {
		line = ask_twice(c, rc);
	} else {
		*rc = cli_misuse(c,
		    "the password is missing: --password-stdin reads it from standard input, "
		    "HERMES_NEW_PASSWORD holds it, or a terminal is asked");
	}
	return line;
}

static int
put(struct cli *c, json_t *body, const char *password)
{
	if (*password == '\0')
		return cli_misuse(
		    c, "the password is empty; --no-password makes a user that cannot log in");
	if (json_object_set_new(body, "password", json_string(password)) != 0)
		return cli_misuse(c, "the password is not UTF-8");
	return CLI_OK;
}

static bool
has_password(const struct cli *c)
{
	return cli_count(c, "new-password") > 0 || cli_switch(c, "password-stdin");
}

/* "sha256" for RabbitMQ's name, which goes as well. */
static char *
algorithm_of(const struct cli *c)
{
	const char *given = cli_value(c, "hashing-algorithm");

	return strchr(given, '_') != NULL ? xstrdup(given)
	                                  : xasprintf("rabbit_password_hashing_%s", given);
}

static int
put_hash(struct cli *c, json_t *body, const char *hash)
{
	json_t *text, *algorithm;
	char *name;

	if (has_password(c) || cli_switch(c, "no-password"))
		return cli_misuse(c, "--password-hash does not go together with %s",
		    has_password(c) ? "a password" : "--no-password");
	if (*hash == '\0')
		return cli_misuse(
		    c, "the hash is empty; --no-password makes a user that cannot log in");
	name = algorithm_of(c);
	text = api_text(c, "--password-hash", hash);
	algorithm = text != NULL ? api_text(c, "--hashing-algorithm", name) : NULL;
	free(name);
	if (algorithm == NULL) {
		json_decref(text);
		return CLI_USAGE;
	}
	(void)json_object_set_new(body, "password_hash", text);
	(void)json_object_set_new(body, "hashing_algorithm", algorithm);
	return CLI_OK;
}

int
new_password_put(struct cli *c, json_t *body)
{
	const char *hash = cli_value(c, "password-hash");
	char *password;
	int rc = CLI_OK;

	if (hash != NULL)
		return put_hash(c, body, hash);
	if (cli_count(c, "hashing-algorithm") > 0)
		return cli_misuse(c, "--hashing-algorithm goes with --password-hash");
	if (cli_switch(c, "no-password")) {
		if (has_password(c))
			rc = cli_misuse(c, "--no-password does not go together with a password");
		return rc;
	}
	password = take(c, &rc);
	if (password == NULL)
		return rc;
	rc = put(c, body, password);
	explicit_bzero(password, strlen(password));
	free(password);
	return rc;
}
