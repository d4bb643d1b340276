/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli_verbs.h"

#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/cli_options.h"
#include "cli/other_names.h"

enum { VERBS_MAX = 32 };

static int
unknown_verb(struct cli *c, const struct cli_verb *verbs, const char *word)
{
	const char *words[VERBS_MAX], *nearest;
	char *other = other_name_explain(word, false);
	size_t n = 0;

	for (const struct cli_verb *v = verbs; v->name != NULL && n < VERBS_MAX; v++)
		words[n++] = v->name;
	nearest = suggest_nearest(word, words, n);
	if (nearest != NULL)
		(void)cli_misuse(c, "there is no '%s'; nearest: '%s'", word, nearest);
	else if (other != NULL)
		(void)cli_misuse(c, "%s", other);
	else
		(void)cli_misuse(
		    c, "there is no '%s'; 'hermes help %s' shows all", word, cli_command_name(c));
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
