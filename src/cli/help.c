/* SPDX-License-Identifier: Apache-2.0
 * hermes help [COMMAND]: all of it is made from the table of commands. */
#include "cli/cli_options.h"

#include <stdio.h>
#include <string.h>

#include "base/version.h"

void
cli_help_all(FILE *out)
{
	fprintf(out, "Hermes %s, a message broker.\n\nusage: hermes COMMAND [OPTIONS]\n\n",
	    HERMES_VERSION);
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (k->run != NULL)
			fprintf(out, "  %-12s %s\n", k->name, k->text);
	fprintf(out, "\nWith a later version come:");
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (k->run == NULL)
			fprintf(out, " %s", k->name);
	fprintf(out, "\n\n'hermes help COMMAND' explains one. Exit status: 0 done, 1 failed, 2 "
	             "wrong usage or "
	             "settings.\n");
}

static void
help_option(FILE *out, const struct cli_option *o)
{
	char left[64];

	snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter != '\0' ? '-' : ' ',
	    o->letter != '\0' ? o->letter : ' ', o->letter != '\0' ? ", " : "  ", o->name,
	    o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
	fprintf(out, "  %-28s %s", left, o->text);
	if (o->repeats)
		fprintf(out, "; may be given more than once");
	if (o->def != NULL && o->def[0] != '\0')
		fprintf(out, " (default: %s)", o->def);
	if (o->env != NULL)
		fprintf(out, " [%s]", o->env);
	fputc('\n', out);
}

void
cli_help_one(FILE *out, const struct cli_command *k)
{
	const struct cli_option *o;

	fprintf(out, "hermes %s: %s\n\nusage: hermes %s%s%s\n", k->name, k->text, k->name,
	    k->usage[0] != '\0' ? " " : "", k->usage);
	if (k->run == NULL) {
		fprintf(out, "\nThis command comes with a later version.\n");
		return;
	}
	if (k->help != NULL)
		fprintf(out, "\n%s", k->help);
	fprintf(out, "\noptions:\n");
	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++)
		help_option(out, o);
	fprintf(out,
	    "\nA name in brackets is an environment variable that stands in for the option.\n");
}

int
cmd_help(struct cli *c)
{
	const char *name = cli_arg(c, 0);
	const struct cli_command *k;

	if (name == NULL) {
		cli_help_all(stdout);
		return CLI_OK;
	}
	if ((k = cli_command_find(name)) == NULL)
		return cli_unknown_command(name);
	cli_help_one(stdout, k);
	return CLI_OK;
}
