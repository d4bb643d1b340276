/* SPDX-License-Identifier: Apache-2.0
 * The command line: the table of commands walked row by row, and the words of what is refused. */
#include "cli/cli.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_options.h"

enum { WORDS_MAX = 16 };

static char out[65536], err[8192];

static void
read_back(FILE *f, char *text, size_t size)
{
	size_t n;

	rewind(f);
	n = fread(text, 1, size - 1, f);
	text[n] = '\0';
	fclose(f);
}

/* Runs `hermes LINE` (words by single blanks; "''" is an empty one) with its output caught in out and err. */
static int
run(const char *line)
{
	FILE *o = tmpfile(), *e = tmpfile();
	char copy[512], *argv[WORDS_MAX + 1], *rest = copy, *word;
	int argc = 0, old_out, old_err, status;
	static char name[] = "hermes", nothing[] = "";

	ck_assert(o != NULL && e != NULL);
	snprintf(copy, sizeof copy, "%s", line);
	argv[argc++] = name;
	while ((word = strsep(&rest, " ")) != NULL && argc < WORDS_MAX)
		if (word[0] != '\0')
			argv[argc++] = strcmp(word, "''") == 0 ? nothing : word;
	argv[argc] = NULL;
	fflush(NULL);
	old_out = dup(STDOUT_FILENO);
	old_err = dup(STDERR_FILENO);
	dup2(fileno(o), STDOUT_FILENO);
	dup2(fileno(e), STDERR_FILENO);
	status = cli_main(argc, argv);
	fflush(NULL);
	dup2(old_out, STDOUT_FILENO);
	dup2(old_err, STDERR_FILENO);
	close(old_out);
	close(old_err);
	read_back(o, out, sizeof out);
	read_back(e, err, sizeof err);
	return status;
}

START_TEST(table_is_sound)
{
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++) {
		const struct cli_option *o, *other;

		ck_assert_ptr_eq(cli_command_find(k->name), k);
		ck_assert(k->text != NULL && k->usage != NULL);
		for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++) {
			ck_assert_msg(o->text != NULL, "%s --%s has no help", k->name, o->name);
			for (size_t j = 0; j < i; j++) {
				other = cli_option_at(k, j);
				ck_assert_msg(strcmp(other->name, o->name) != 0, "%s --%s twice",
				    k->name, o->name);
				ck_assert_msg(o->letter == 0 || other->letter != o->letter,
				    "%s -%c twice", k->name, o->letter);
			}
		}
	}
}
END_TEST

START_TEST(every_command_is_explained)
{
	char line[64];

	for (const struct cli_command *k = cli_commands; k->name != NULL; k++) {
		const struct cli_option *o;

		snprintf(line, sizeof line, "help %s", k->name);
		ck_assert_int_eq(run(line), CLI_OK);
		ck_assert_ptr_nonnull(strstr(out, k->text));
		if (k->run == NULL) {
			ck_assert_ptr_nonnull(strstr(out, "later version"));
			continue;
		}
		for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++)
			ck_assert_msg(strstr(out, o->name) != NULL, "%s --%s", k->name, o->name);
		snprintf(line, sizeof line, "%s --help", k->name);
		ck_assert_int_eq(run(line), CLI_OK);
		ck_assert_ptr_nonnull(strstr(out, k->text));
		ck_assert_int_eq(run("help"), CLI_OK);
		ck_assert_ptr_nonnull(strstr(out, k->name));
	}
}
END_TEST

START_TEST(help_fits_a_terminal)
{
	char line[64];

	for (const struct cli_command *k = cli_commands; k->name != NULL; k++) {
		snprintf(line, sizeof line, "help %s", k->name);
		ck_assert_int_eq(run(line), CLI_OK);
		for (const char *p = out; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n')
			ck_assert_msg(strcspn(p, "\n") <= 100, "%s: %.120s", line, p);
	}
	ck_assert_int_eq(run("help"), CLI_OK);
	for (const char *p = out; *p != '\0'; p += strcspn(p, "\n"), p += *p == '\n')
		ck_assert_msg(strcspn(p, "\n") <= 100, "%.120s", p);
}
END_TEST

START_TEST(later_commands_are_refused)
{
	char want[128];

	for (const struct cli_command *k = cli_commands; k->name != NULL; k++) {
		if (k->run != NULL)
			continue;
		ck_assert_int_eq(run(k->name), CLI_USAGE);
		snprintf(want, sizeof want, "hermes %s comes with a later version\n", k->name);
		ck_assert_str_eq(err, want);
	}
}
END_TEST

static const struct line {
	const char *line;
	int status;
	const char *said; /* on standard error, whole */
} lines[] = {
	{ "sevrer", CLI_USAGE, "hermes: unknown command 'sevrer'; nearest: 'server'\n" },
	{ "zzzzzzzz", CLI_USAGE, "hermes: unknown command 'zzzzzzzz'; 'hermes help' shows all\n" },
	{ "--port 1 server", CLI_USAGE,
	    "hermes: '--port' stands before the command; it is hermes COMMAND [OPTIONS], and "
	    "'hermes help' shows the commands\n" },
	{ "server --prot 1", CLI_USAGE,
	    "hermes server: unknown option '--prot'; nearest: '--port'\n" },
	{ "server --prot=1", CLI_USAGE,
	    "hermes server: unknown option '--prot'; nearest: '--port'\n" },
	{ "server -Z", CLI_USAGE,
	    "hermes server: unknown option '-Z'; 'hermes help server' shows all\n" },
	{ "server --port", CLI_USAGE, "hermes server: --port needs a value: --port PORT\n" },
	{ "server -p", CLI_USAGE, "hermes server: -p needs a value: -p PORT\n" },
	{ "server --check=yes", CLI_USAGE, "hermes server: --check takes no value\n" },
	{ "server --check --check --port x --port 1", CLI_OK, "" },
	{ "server surplus", CLI_USAGE,
	    "hermes server: 'surplus' is one word too many; usage: hermes server [OPTIONS]\n" },
	{ "server -- --check", CLI_USAGE,
	    "hermes server: '--check' is one word too many; usage: hermes server [OPTIONS]\n" },
	{ "server --check --port 70000", CLI_USAGE,
	    "command line: --port: 70000 is out of range: 0 to 65535\nhermes server: the settings "
	    "cannot be used: 1 mistake\n" },
	{ "server --check --listen ::1 --listen 1.2", CLI_USAGE,
	    "command line: --listen: '1.2' is neither an IP address (such as 127.0.0.1, ::1, or :: "
	    "for all) nor a name\n"
	    "hermes server: the settings cannot be used: 1 mistake\n" },
	{ "server --check --prometheus-port 5672", CLI_USAGE,
	    "settings: prometheus.port: is the same as node.port\n"
	    "hermes server: the settings cannot be used: 1 mistake\n" },
	{ "server --check --prometheus-port 0 -p 1 -d/tmp/x", CLI_OK, "" },
	{ "get", CLI_USAGE,
	    "hermes get: something is missing; usage: hermes get QUEUE [OPTIONS]; "
	    "'hermes help get' says more\n" },
	{ "get q r", CLI_USAGE,
	    "hermes get: 'r' is one word too many; usage: hermes get QUEUE [OPTIONS]\n" },
	{ "get q -n x", CLI_USAGE, "hermes get: --count: 'x' is not a number\n" },
	{ "get q -n0", CLI_USAGE, "hermes get: --count: 0 is out of range: 1 to 1000000000\n" },
	{ "get q --wait soon", CLI_USAGE,
	    "hermes get: --wait: 'soon' is not a time such as 500ms, 5s, 1m\n" },
	{ "get q --no-ack --requeue", CLI_USAGE,
	    "hermes get: --no-ack and --requeue exclude each other\n" },
	{ "get q --amqp http://x", CLI_USAGE,
	    "hermes get: --amqp: not an address such as amqp://USER:PASSWORD@HOST:PORT/VHOST\n" },
	{ "get q --amqp amqp://127.0.0.1:1", CLI_FAILED,
	    "hermes get: cannot reach 127.0.0.1:1: connection refused; is the node running? hermes "
	    "server\n" },
	{ "publish --body x", CLI_USAGE,
	    "hermes publish: --key is missing: the queue's name, or the routing key of "
	    "--exchange\n" },
	{ "publish -k a --header b", CLI_USAGE,
	    "hermes publish: --header b: must be NAME=VALUE\n" },
	{ "publish -k a --property colour=red", CLI_USAGE,
	    "hermes publish: --property colour=red: must be NAME=VALUE of a property; 'hermes help "
	    "publish' names them\n" },
	{ "publish -k a --property priority=256", CLI_USAGE,
	    "hermes publish: --property priority=256: must be a number from 0 to 255\n" },
	{ "publish -k a --property timestamp=now", CLI_USAGE,
	    "hermes publish: --property timestamp=now: must be a number of seconds since 1970\n" },
	{ "publish -k a --body x --file y", CLI_USAGE,
	    "hermes publish: --body and --file exclude each other\n" },
	{ "publish -k a --mandatory --no-mandatory", CLI_USAGE,
	    "hermes publish: --mandatory and --no-mandatory exclude each other\n" },
	{ "publish -k a -e x --declare", CLI_USAGE,
	    "hermes publish: --declare makes a queue with the key's name; with --exchange it is of "
	    "no use\n" },
	{ "publish -k a -f /no/such/file", CLI_FAILED,
	    "hermes publish: /no/such/file cannot be read: No such file or directory\n" },
	{ "help nothing", CLI_USAGE,
	    "hermes: unknown command 'nothing'; 'hermes help' shows all\n" },
	{ "--help", CLI_OK, "" },
	{ "--version", CLI_OK, "" },
	{ "version", CLI_OK, "" },
};

START_TEST(one_line)
{
	const struct line *l = &lines[_i];

	unsetenv("HERMES_AMQP");
	ck_assert_msg(run(l->line) == l->status, "%s: %s", l->line, err);
	ck_assert_str_eq(err, l->said);
	if (l->status == CLI_OK)
		ck_assert_str_ne(out, "");
}
END_TEST

START_TEST(environment_below_options)
{
	setenv("HERMES_NODE_NAME", "from-env", 1);
	setenv("HERMES_DATA_DIR", "/from/env", 1);
	ck_assert_int_eq(run("server --check"), CLI_OK);
	ck_assert_ptr_nonnull(strstr(out, "from-env"));
	ck_assert_ptr_nonnull(strstr(out, "/from/env"));
	ck_assert_int_eq(run("server --check --node-name given"), CLI_OK);
	ck_assert_ptr_null(strstr(out, "from-env"));
	setenv("HERMES_CONFIG_FILE", "/no/such.yml", 1);
	ck_assert_int_eq(run("server --check"), CLI_USAGE);
	ck_assert_ptr_nonnull(strstr(err, "/no/such.yml: cannot be read"));
}
END_TEST

START_TEST(secrets_stay_secret)
{
	setenv("HERMES_DEFAULT_USER", "u", 1);
	setenv("HERMES_DEFAULT_PASS", "hunter2", 1);
	ck_assert_int_eq(run("server --check"), CLI_OK);
	ck_assert_ptr_null(strstr(out, "hunter2"));
	ck_assert_ptr_null(strstr(err, "hunter2"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("cli");
	TCase *t = tcase_create("cli");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, table_is_sound);
	tcase_add_test(t, every_command_is_explained);
	tcase_add_test(t, help_fits_a_terminal);
	tcase_add_test(t, later_commands_are_refused);
	tcase_add_loop_test(t, one_line, 0, COUNT_OF(lines));
	tcase_add_test(t, environment_below_options);
	tcase_add_test(t, secrets_stay_secret);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
