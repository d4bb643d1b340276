/* SPDX-License-Identifier: Apache-2.0
 * Reads a command line by the table of commands. Words and options may stand in any order; "--" ends the options. */
#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/suggest.h"
#include "cli/cli_options.h"
#include "cli/other_names.h"
#include "cli/progress.h"
#include "cli/text_safe.h"

enum { GIVEN_MAX = 256, ARGS_MAX = 16, WORDS_MAX = 64 };

struct given {
	const struct cli_option *option;
	const char *value; /* "" for a switch; borrowed from argv */
};

struct cli {
	const struct cli_command *command;
	struct given given[GIVEN_MAX];
	const char *arg[ARGS_MAX];
	size_t given_count, arg_count;
};

/* One line. What a node says and what others gave names to is in many of them, and may hold anything: none of it speaks to
 * the terminal. */
static void PRINTF(2, 0) say(const struct cli *c, const char *fmt, va_list ap)
{
	char *text, *line;

	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	line = text_safe_line(text);
	progress_make_way();
	fprintf(stderr, "hermes%s%s: %s\n", c->command != NULL ? " " : "",
	    c->command != NULL ? c->command->name : "", line);
	free(line);
	free(text);
}

int
cli_fail(const struct cli *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(c, fmt, ap);
	va_end(ap);
	return CLI_FAILED;
}

int
cli_misuse(const struct cli *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(c, fmt, ap);
	va_end(ap);
	return CLI_USAGE;
}

/* Walks the options of a command: its own, then those it shares with others. i counts from 0; NULL at the end. */
const struct cli_option *
cli_option_at(const struct cli_command *k, size_t i)
{
	const struct cli_option *sets[] = { k->options, k->shared[0], k->shared[1], k->shared[2],
		k->client_http ? cli_http_options : NULL, k->client_amqp ? cli_amqp_options : NULL,
		k->client_http || k->client_amqp ? cli_client_options : NULL, cli_common_options };

	for (size_t s = 0; s < COUNT_OF(sets); s++)
		for (const struct cli_option *o = sets[s]; o != NULL && o->name != NULL; o++)
			if (i-- == 0)
				return o;
	return NULL;
}

static const struct cli_option *
find_option(const struct cli_command *k, const char *name, size_t n)
{
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++)
		if (strlen(o->name) == n && memcmp(o->name, name, n) == 0)
			return o;
	return NULL;
}

static const struct cli_option *
find_letter(const struct cli_command *k, char letter)
{
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++)
		if (o->letter == letter && letter != '\0')
			return o;
	return NULL;
}

const struct cli_command *
cli_command_find(const char *name)
{
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static int
unknown_option(const struct cli *c, const char *word, size_t n)
{
	const char *words[WORDS_MAX], *nearest, *other;
	const struct cli_option *o;
	char name[64];
	size_t count = 0;

	snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word);
	for (size_t i = 0; (o = cli_option_at(c->command, i)) != NULL && count < WORDS_MAX; i++)
		words[count++] = o->name;
	nearest = suggest_nearest(name, words, count);
	other = other_option_explain(name);
	if (other != NULL)
		return cli_misuse(c, "unknown option '--%s'; %s", name, other);
	if (nearest != NULL)
		return cli_misuse(c, "unknown option '--%s'; nearest: '--%s'", name, nearest);
	return cli_misuse(
	    c, "unknown option '--%s'; 'hermes help %s' shows all", name, c->command->name);
}

static int
take_option(struct cli *c, const struct cli_option *o, const char *value)
{
	if (c->given_count == GIVEN_MAX)
		return cli_misuse(c, "more than %d options", GIVEN_MAX);
	c->given[c->given_count++] = (struct given){ o, value };
	return CLI_OK;
}

/* --name, --name=value, --name value. *next is moved past a value that was taken. */
static int
read_long(struct cli *c, const char *word, char **argv, int argc, int *next)
{
	const char *equals = strchr(word, '=');
	size_t n = equals != NULL ? (size_t)(equals - word) : strlen(word);
	const struct cli_option *o = find_option(c->command, word, n);

	if (o == NULL)
		return unknown_option(c, word, n);
	if (o->value == NULL && equals != NULL)
		return cli_misuse(c, "--%s takes no value", o->name);
	if (o->value == NULL)
		return take_option(c, o, "");
	if (equals != NULL)
		return take_option(c, o, equals + 1);
	if (*next >= argc)
		return cli_misuse(c, "--%s needs a value: --%s %s", o->name, o->name, o->value);
	return take_option(c, o, argv[(*next)++]);
}

static int
unknown_letter(const struct cli *c, char letter)
{
	const char name[] = { letter, '\0' }, *other = other_option_explain(name);

	if (other != NULL)
		return cli_misuse(c, "unknown option '-%c'; %s", letter, other);
	return cli_misuse(
	    c, "unknown option '-%c'; 'hermes help %s' shows all", letter, c->command->name);
}

/* -l value, -lvalue, and several switches in one word. */
static int
read_short(struct cli *c, const char *word, char **argv, int argc, int *next)
{
	for (const char *p = word; *p != '\0'; p++) {
		const struct cli_option *o = find_letter(c->command, *p);
		int status;

		if (o == NULL)
			return unknown_letter(c, *p);
		if (o->value == NULL) {
			if ((status = take_option(c, o, "")) != CLI_OK)
				return status;
			continue;
		}
		if (p[1] != '\0')
			return take_option(c, o, p + 1);
		if (*next >= argc)
			return cli_misuse(
			    c, "-%c needs a value: -%c %s", o->letter, o->letter, o->value);
		return take_option(c, o, argv[(*next)++]);
	}
	return CLI_OK;
}

static int
read_words(struct cli *c, char **argv, int argc)
{
	bool options = true;

	for (int i = 0; i < argc;) {
		const char *word = argv[i++];
		int status = CLI_OK;

		if (options && strcmp(word, "--") == 0)
			options = false;
		else if (options && strncmp(word, "--", 2) == 0)
			status = read_long(c, word + 2, argv, argc, &i);
		else if (options && word[0] == '-' && word[1] != '\0')
			status = read_short(c, word + 1, argv, argc, &i);
		else if (c->arg_count < c->command->args_max && c->arg_count < ARGS_MAX)
			c->arg[c->arg_count++] = word;
		else
			status = cli_misuse(c, "'%s' is one word too many; usage: hermes %s%s%s",
			    word, c->command->name, c->command->usage[0] != '\0' ? " " : "",
			    c->command->usage);
		if (status != CLI_OK)
			return status;
	}
	return CLI_OK;
}

int
cli_unknown_command(const char *word)
{
	static const struct cli none; /* no command */
	const char *words[WORDS_MAX], *nearest;
	size_t count = 0;
	char *other;

	if (word[0] == '-')
		return cli_misuse(&none,
		    "'%s' stands before the command; it is hermes COMMAND [OPTIONS], and 'hermes "
		    "help' shows the commands",
		    word);
	for (const struct cli_command *k = cli_commands; k->name != NULL && count < WORDS_MAX; k++)
		words[count++] = k->name;
	nearest = suggest_nearest(word, words, count);
	other = other_name_explain(word, nearest == NULL);
	if (other != NULL)
		(void)cli_misuse(&none, "%s", other);
	else if (nearest != NULL)
		(void)cli_misuse(&none, "unknown command '%s'; nearest: '%s'", word, nearest);
	else
		(void)cli_misuse(&none, "unknown command '%s'; 'hermes help' shows all", word);
	free(other);
	return CLI_USAGE;
}

bool
cli_nobody_reads(void)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLERR) != 0;
}

/* What was printed may not have gone out, now or before. Whoever reads may stop when he has enough (hermes list queues |
 * head -1): the process ends as others do then, without a word. */
static int
check_output(const struct cli *c, int status)
{
	bool failed = fflush(stdout) != 0;
	const char *why = failed ? strerror(errno) : "an error came before";

	if (!failed && ferror(stdout) == 0)
		return status;
	if (cli_nobody_reads()) {
		signal(SIGPIPE, SIG_DFL);
		(void)raise(SIGPIPE);
	}
	return status == CLI_OK ? cli_fail(c, "cannot write the output: %s", why) : status;
}

int
cli_main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	struct cli c = { 0 };
	int status;

	if (argc < 2) {
		cli_help_all(stderr);
		return CLI_USAGE;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		word = "help";
	else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		word = "version";
	if ((c.command = cli_command_find(word)) == NULL)
		return cli_unknown_command(word);
	if (c.command->run == NULL) {
		fprintf(stderr, "hermes %s comes with a later version\n", word);
		return CLI_USAGE;
	}
	if ((status = read_words(&c, argv + 2, argc - 2)) != CLI_OK)
		return status;
	if (cli_switch(&c, "help")) {
		cli_help_one(stdout, c.command);
		return CLI_OK;
	}
	if (c.arg_count < c.command->args_min)
		return cli_misuse(&c,
		    "something is missing; usage: hermes %s %s; 'hermes help %s' says more",
		    c.command->name, c.command->usage, c.command->name);
	/* a node that hangs up is for the command to explain; 'hermes server' sees to itself */
	if (c.command->run != cmd_server)
		signal(SIGPIPE, SIG_IGN);
	status = c.command->run(&c);
	return check_output(&c, status);
}

static const struct cli_option *
known_option(const struct cli *c, const char *name)
{
	const struct cli_option *o = find_option(c->command, name, strlen(name));

	assert(o != NULL);
	return o;
}

static const char *
from_environment(const struct cli_option *o)
{
	const char *value = o->env != NULL ? getenv(o->env) : NULL;

	return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *
cli_value(const struct cli *c, const char *name)
{
	const struct cli_option *o = known_option(c, name);
	const char *value;

	for (size_t i = c->given_count; i > 0; i--)
		if (c->given[i - 1].option == o)
			return c->given[i - 1].value;
	value = from_environment(o);
	return value != NULL ? value : o->def;
}

bool
cli_given(const struct cli *c, const char *name)
{
	return cli_count(c, name) > 0 || from_environment(known_option(c, name)) != NULL;
}

bool
cli_switch(const struct cli *c, const char *name)
{
	return cli_count(c, name) > 0;
}

size_t
cli_count(const struct cli *c, const char *name)
{
	const struct cli_option *o = known_option(c, name);
	size_t count = 0;

	for (size_t i = 0; i < c->given_count; i++)
		count += c->given[i].option == o;
	return count;
}

const char *
cli_nth(const struct cli *c, const char *name, size_t n)
{
	const struct cli_option *o = known_option(c, name);

	for (size_t i = 0; i < c->given_count; i++)
		if (c->given[i].option == o && n-- == 0)
			return c->given[i].value;
	return NULL;
}

size_t
cli_args(const struct cli *c)
{
	return c->arg_count;
}

const char *
cli_arg(const struct cli *c, size_t n)
{
	return n < c->arg_count ? c->arg[n] : NULL;
}

const char *
cli_command_name(const struct cli *c)
{
	return c->command->name;
}

bool
cli_number(const struct cli *c, const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *text = cli_value(c, name);
	unsigned long long v;
	char *end;

	if (text == NULL)
		return true;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0') {
		cli_misuse(c, "--%s: '%.64s' is not a number", name, text);
		return false;
	}
	if (errno != 0 || v < min || v > max) {
		cli_misuse(c, "--%s: %.64s is out of range: %" PRIu64 " to %" PRIu64, name, text,
		    min, max);
		return false;
	}
	*out = v;
	return true;
}
