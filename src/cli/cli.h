/* SPDX-License-Identifier: Apache-2.0
 * The shell side of Hermes: one table of commands and their options (commands.c), from which parsing,
 * `hermes help`, `hermes help COMMAND` and the hints for misspelt words come.
 *
 * A command is one function in a file of its own. It is called with everything parsed:
 *
 *	int
 *	cmd_status(struct cli *c)
 *	{
 *		const char *url = cli_value(c, "url");		// option, else its environment variable
 *		...						// else its default, else NULL
 *		if (!reachable)
 *			return cli_fail(c, "cannot reach %s: ...", url);
 *		return CLI_OK;
 *	}
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 }; /* exit status, as INTERFACES has it */

struct cli;

/* An option. Values are given as --name VALUE or --name=VALUE, -l VALUE or -lVALUE. */
struct cli_option {
	const char *name;  /* without the dashes */
	char letter;       /* its short form, or 0 */
	bool repeats;      /* each one counts (cli_nth); of others the last one does */
	const char *value; /* what its value is called in the help; NULL: a switch */
	const char *env;   /* environment variable that stands in for it, or NULL */
	const char *def;   /* default, or NULL */
	const char *text;  /* help, one line */
};

struct cli_command {
	const char *name;
	int (*run)(struct cli *); /* NULL: comes with a later version */
	const char *usage;        /* what stands behind the name: "QUEUE [OPTIONS]" */
	const char *text;         /* one line */
	const char *help;         /* several lines, each ended, or NULL */
	unsigned args_min, args_max;
	const struct cli_option *options;   /* ended by a row without name, or NULL */
	const struct cli_option *shared[3]; /* the same, of tables that other commands have as well */
	bool client_http, client_amqp;      /* also takes the options of all client commands */
};

extern const struct cli_command cli_commands[]; /* ended by a row without name */

/* Runs what the command line says; returns the exit status. */
int cli_main(int argc, char **argv);

/* What was given. Names are those of the command's option table: asking for another one is a bug (assert). */
const char *cli_value(const struct cli *c, const char *name); /* borrowed; of several, the last */
bool cli_given(
    const struct cli *c, const char *name); /* on the command line or in the environment */
bool cli_switch(const struct cli *c, const char *name);
size_t cli_count(
    const struct cli *c, const char *name); /* how often it stood on the command line */
const char *cli_nth(const struct cli *c, const char *name, size_t n);
size_t cli_args(
    const struct cli *c); /* words that are not options, between args_min and args_max */
const char *cli_arg(const struct cli *c, size_t n);
const char *cli_command_name(const struct cli *c);

/* The option's value as a number from min to max. False: *out is unchanged, the error was printed
 * (return CLI_USAGE). Without a value and default *out stays as it was and the answer is true. */
bool cli_number(
    const struct cli *c, const char *name, uint64_t min, uint64_t max, uint64_t *out) MUSTUSE;

/* Print "hermes COMMAND: text" on standard error; they return CLI_FAILED and CLI_USAGE. */
int cli_fail(const struct cli *c, const char *fmt, ...) PRINTF(2, 3);
int cli_misuse(const struct cli *c, const char *fmt, ...) PRINTF(2, 3);

/* Is standard output a pipe whose other end was closed? That is no failure to speak of. */
bool cli_nobody_reads(void);

/* One function a command, each in the file of its name. */
int cmd_server(struct cli *c);
int cmd_version(struct cli *c);
int cmd_help(struct cli *c);
int cmd_status(struct cli *c);
int cmd_top(struct cli *c);
int cmd_publish(struct cli *c);
int cmd_get(struct cli *c);
int cmd_consume(struct cli *c);
int cmd_list(struct cli *c);
int cmd_declare(struct cli *c);
int cmd_delete(struct cli *c);
int cmd_bind(struct cli *c);
int cmd_unbind(struct cli *c);
int cmd_purge(struct cli *c);
int cmd_queue(struct cli *c);
int cmd_move(struct cli *c);
int cmd_replay(struct cli *c);
int cmd_jobs(struct cli *c);
int cmd_user(struct cli *c);
int cmd_vhost(struct cli *c);
int cmd_permission(struct cli *c);
int cmd_policy(struct cli *c);
int cmd_parameter(struct cli *c);
int cmd_export(struct cli *c);
int cmd_import(struct cli *c);
int cmd_apply(struct cli *c);
int cmd_snapshot(struct cli *c);
int cmd_restore(struct cli *c);
int cmd_check_data(struct cli *c);
int cmd_drain(struct cli *c);
int cmd_resume(struct cli *c);
int cmd_bench(struct cli *c);
int cmd_completion(struct cli *c);

#endif
