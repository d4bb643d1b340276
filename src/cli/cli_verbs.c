/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_verbs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "cli/cli_options.h"
#include "cli/other_names.h"

enum { VERBS_MAX = 32 };

/* "queue, exchange" */
static char *
all_of(const struct cli_verb *verbs)
{
	char *all = xstrdup("");

	for (const struct cli_verb *v = verbs; v->name != NULL; v++) {
		char *before = all;

		all = xasprintf("%s%s%s", before, v == verbs ? "" : ", ", v->name);
		free(before);
	}
	return all;
}

/* 'hermes delete vhost' for 'hermes vhost delete': the words are there, the other way round. */
static bool
is_turned_round(const struct cli *c, const char *word)
{
	const struct cli_command *k = cli_command_find(word);

	return k != NULL && k->run != NULL && strstr(k->usage, cli_command_name(c)) != NULL;
}

static int
unknown_verb(struct cli *c, const struct cli_verb *verbs, const char *word)
{
	const char *words[VERBS_MAX], *nearest;
	char *other = other_name_explain(word, false), *all = all_of(verbs);
	size_t n = 0;

	for (const struct cli_verb *v = verbs; v->name != NULL && n < VERBS_MAX; v++)
		words[n++] = v->name;
	nearest = suggest_nearest(word, words, n);
	if (is_turned_round(c, word))
		(void)cli_misuse(c, "it is 'hermes %s %s'", word, cli_command_name(c));
	else if (nearest != NULL)
		(void)cli_misuse(c, "there is no '%s'; nearest: '%s'", word, nearest);
	else if (other != NULL)
		(void)cli_misuse(c, "%s", other);
	else
		(void)cli_misuse(c, "there is no '%s'; there is %s", word, all);
	free(all);
	free(other);
	return CLI_USAGE;
}

static bool
is_in_set(const struct cli_option *set, const struct cli_option *option)
{
	for (const struct cli_option *o = set; o->name != NULL; o++)
		if (o == option)
			return true;
	return false;
}

static bool
is_word_of(const char *words, const char *name)
{
	size_t len = strlen(name);

	for (size_t n; *(words += strspn(words, " ")) != '\0'; words += n) {
		n = strcspn(words, " ");
		if (n == len && memcmp(words, name, n) == 0)
			return true;
	}
	return false;
}

/* The first option on the command line that says nothing to the verb. */
static const struct cli_option *
stray_option(struct cli *c, const struct cli_verb *verb)
{
	const struct cli_command *k = cli_command_find(cli_command_name(c));
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++)
		if (cli_count(c, o->name) > 0 && !is_in_set(cli_http_options, o) &&
		    !is_in_set(cli_client_options, o) && !is_word_of(verb->options, o->name))
			return o;
	return NULL;
}

int
cli_run_verb(struct cli *c, const struct cli_verb *verbs)
{
	const struct cli_verb *v = verbs;
	const struct cli_option *stray;
	size_t n = cli_args(c) - 1;

	while (v->name != NULL && strcmp(v->name, cli_arg(c, 0)) != 0)
		v++;
	if (v->name == NULL)
		return unknown_verb(c, verbs, cli_arg(c, 0));
	if (n < v->args_min || n > v->args_max)
		return cli_misuse(c, "%s; usage: hermes %s %s%s%s [OPTIONS]",
		    n < v->args_min ? "something is missing" : "there are words too many",
		    cli_command_name(c), v->name, *v->usage != '\0' ? " " : "", v->usage);
	if ((stray = stray_option(c, v)) != NULL)
		return cli_misuse(c, "--%s says nothing to 'hermes %s %s'", stray->name,
		    cli_command_name(c), v->name);
	return v->run(c);
}
