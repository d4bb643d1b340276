/* SPDX-License-Identifier: Apache-2.0
 * hermes completion bash: a script for the shell, made from the table of commands: what a command may be followed by,
 * its options, and what stands behind each of them; behind help the keys of the settings, too. */
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "cli/cli_options.h"
#include "cli/list_kinds.h"

/* The verbs that a usage begins with, such as "add|set NAME", with blanks between; nothing where it begins with a name. */
static void
put_verbs(const char *usage)
{
	size_t n = strcspn(usage, " ");

	if (usage[0] < 'a' || usage[0] > 'z')
		return;
	for (size_t i = 0; i < n; i++)
		putchar(usage[i] == '|' ? ' ' : usage[i]);
}

static void
put_kinds(void)
{
	for (const struct list_kind *k = list_kinds; k->name != NULL; k++)
		printf("%s%s", k == list_kinds ? "" : " ", k->name);
}

static void
put_commands(void)
{
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (k->run != NULL)
			printf("%s%s", k == cli_commands ? "" : " ", k->name);
}

/* The keys of the settings, behind "help", and their sections. */
static void
put_settings(void)
{
	const char *path = "";
	size_t n = 0;

	printf(" settings");
	for (size_t i = 0; i < cfg_key_count; i++) {
		if (strncmp(path, cfg_keys[i].path, n + 1) != 0 || n == 0) {
			n = strcspn(cfg_keys[i].path, ".");
			printf(" %.*s", (int)n, cfg_keys[i].path);
		}
		path = cfg_keys[i].path;
		printf(" %s", path);
	}
}

/* What comes behind a command before its options. */
static void
put_words(const struct cli_command *k)
{
	if (strcmp(k->name, "help") == 0) {
		put_commands();
		put_settings();
	} else if (strcmp(k->name, "list") == 0)
		put_kinds();
	else
		put_verbs(k->usage);
}

/* Is the value a file's or a folder's name? */
static bool
is_path(const struct cli_option *o)
{
	return strcmp(o->value, "FILE") == 0 || strcmp(o->value, "DIR") == 0;
}

static void
put_options(const struct cli_command *k, bool (*wanted)(const struct cli_option *))
{
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++)
		if (wanted(o)) {
			printf(" --%s", o->name);
			if (o->letter != '\0')
				printf(" -%c", o->letter);
		}
}

static bool
any(const struct cli_option *o)
{
	(void)o;
	return true;
}

static bool
with_path(const struct cli_option *o)
{
	return o->value != NULL && is_path(o);
}

/* A value that nobody but the user knows, unless it says what it may be: "on|off". */
static bool
with_value(const struct cli_option *o)
{
	return o->value != NULL && !is_path(o);
}

/* The values of options such as --tracing on|off. */
static void
put_choices(const struct cli_command *k)
{
	const struct cli_option *o;

	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++) {
		if (o->value == NULL || o->value[0] < 'a' || o->value[0] > 'z')
			continue;
		printf("\t\t--%s) choices=\"", o->name);
		put_verbs(o->value);
		printf("\" ;;\n");
	}
}

static void
put_command(const struct cli_command *k)
{
	printf("\t%s)\n\t\twords=\"", k->name);
	put_words(k);
	printf("\"\n\t\toptions=\"");
	put_options(k, any);
	printf("\"\n\t\tpaths=\"");
	put_options(k, with_path);
	printf(" \"\n\t\tvalues=\"");
	put_options(k, with_value);
	printf(" \"\n\t\tfiles=%s\n\t\tcase $last in\n",
	    strstr(k->usage, "FILE") != NULL || strstr(k->usage, "DIR") != NULL ? "yes" : "no");
	put_choices(k);
	printf("\t\t*) choices= ;;\n\t\tesac\n\t\t;;\n");
}

static const char head[] =
    "# bash completion of hermes; made by 'hermes completion bash'\n"
    "_hermes() {\n"
    "\tlocal now=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "\tlocal words= options= paths= values= files=no choices=\n"
    "\tCOMPREPLY=()\n"
    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "\t\tmapfile -t COMPREPLY < <(compgen -W \"";

static const char tail[] = "\t*) return ;;\n"
                           "\tesac\n"
                           "\tif [ -n \"$choices\" ]; then\n"
                           "\t\tmapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$now\")\n"
                           "\telif [[ $paths == *\" $last \"* ]]; then\n"
                           "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$now\")\n"
                           "\telif [[ $values == *\" $last \"* ]]; then\n"
                           "\t\treturn\n"
                           "\telif [[ $now == -* ]]; then\n"
                           "\t\tmapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$now\")\n"
                           "\telif [ \"$COMP_CWORD\" -eq 2 ] && [ -n \"$words\" ]; then\n"
                           "\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$now\")\n"
                           "\telif [ $files = yes ]; then\n"
                           "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$now\")\n"
                           "\tfi\n"
                           "}\n"
                           "complete -o filenames -F _hermes hermes\n";

int
cmd_completion(struct cli *c)
{
	if (strcmp(cli_arg(c, 0), "bash") != 0)
		return cli_misuse(c, "there is one for bash only");
	fputs(head, stdout);
	put_commands();
	fputs("\" -- \"$now\")\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n", stdout);
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (k->run != NULL)
			put_command(k);
	fputs(tail, stdout);
	return CLI_OK;
}
