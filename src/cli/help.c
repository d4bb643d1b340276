/* SPDX-License-Identifier: Apache-2.0
 * hermes help [COMMAND|KEY]: all of it is made from the table of commands and from that of settings. */
#include "cli/cli_options.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/version.h"

enum { WIDTH = 100, LEFT = 31 }; /* columns: of a line; of an option's name before its text */

/* Text that is folded at its blanks. */
struct fold {
	FILE *out;
	unsigned column, indent; /* where the line is; where the ones after it begin */
};

static void
fold_add(struct fold *f, const char *text)
{
	for (size_t n; *(text += strspn(text, " ")) != '\0'; text += n) {
		n = strcspn(text, " ");
		if (f->column > f->indent && f->column + 1 + n > WIDTH) {
			fprintf(f->out, "\n%*s", (int)f->indent, "");
			f->column = f->indent;
		} else if (f->column > f->indent) {
			fputc(' ', f->out);
			f->column++;
		}
		fwrite(text, 1, n, f->out);
		f->column += (unsigned)n;
	}
}

static void PRINTF(2, 3) fold_printf(struct fold *f, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fold_add(f, text);
}

void
cli_help_all(FILE *out)
{
	struct fold later = { .out = out };

	fprintf(out, "Hermes %s, a message broker.\n\nusage: hermes COMMAND [OPTIONS]\n\n",
	    HERMES_VERSION);
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (k->run != NULL)
			fprintf(out, "  %-12s %s\n", k->name, k->text);
	fputc('\n', out);
	fold_add(&later, "With a later version come:");
	for (const struct cli_command *k = cli_commands; k->name != NULL; k++)
		if (k->run == NULL)
			fold_add(&later, k->name);
	fprintf(out, "\n\n'hermes help COMMAND' explains one, 'hermes help settings' has all keys "
	             "of the settings.\n"
	             "Exit status: 0 done, 1 failed, 2 wrong usage or settings.\n");
}

static void
help_option(FILE *out, const struct cli_option *o)
{
	struct fold f = { .out = out, .column = LEFT, .indent = LEFT };
	char left[64];

	snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter != '\0' ? '-' : ' ',
	    o->letter != '\0' ? o->letter : ' ', o->letter != '\0' ? ", " : "  ", o->name,
	    o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
	if (strlen(left) >= LEFT - 2)
		fprintf(out, "  %s\n%*s", left, LEFT, "");
	else
		fprintf(out, "  %-*s", LEFT - 2, left);
	fold_printf(&f, "%s%s", o->text, o->repeats ? "; may be given more than once" : "");
	if (o->def != NULL && o->def[0] != '\0')
		fold_printf(&f, "(default: %s)", o->def);
	if (o->env != NULL)
		fold_printf(&f, "[%s]", o->env);
	fputc('\n', out);
}

void
cli_help_one(FILE *out, const struct cli_command *k)
{
	const struct cli_option *o;
	bool env = false;

	fprintf(out, "hermes %s: %s\n\nusage: hermes %s%s%s\n", k->name, k->text, k->name,
	    k->usage[0] != '\0' ? " " : "", k->usage);
	if (k->run == NULL) {
		fprintf(out, "\nThis command comes with a later version.\n");
		return;
	}
	if (k->help != NULL)
		fprintf(out, "\n%s", k->help);
	fprintf(out, "\noptions:\n");
	for (size_t i = 0; (o = cli_option_at(k, i)) != NULL; i++) {
		help_option(out, o);
		env |= o->env != NULL;
	}
	if (env)
		fprintf(out, "\nA name in brackets is an environment variable that stands in for "
		             "the option.\n");
}

/* --- settings --------------------------------------------------------------- */

static void
help_values(const struct cfg_key *k)
{
	printf("  %-10s", "value");
	if (k->words != NULL) {
		for (size_t i = 0; k->words[i] != NULL; i++)
			printf("%s%s", i > 0 ? ", " : "", k->words[i]);
	} else if (k->type == CFG_BOOL) {
		printf("true, false");
	} else if (k->type == CFG_LIST) {
		const char *one = k->flags & CFG_FILES    ? "a file"
		                  : k->flags & CFG_RANGES ? "a network"
		                                          : "an address";

		printf("%s, or a list of them", one);
	} else {
		printf("%s", k->kind != NULL ? k->kind : "a text");
	}
	printf("\n");
}

static void
help_setting(const struct cfg_key *k)
{
	struct fold f = { .out = stdout };

	printf("%s: a key of hermes.yml\n\n", k->path);
	fold_add(&f, k->text);
	printf("\n\n");
	help_values(k);
	if (k->def != NULL)
		printf("  %-10s%s\n", "default", k->def[0] != '\0' ? k->def : "\"\"");
	printf("  %-10sa change takes effect %s\n", "SIGHUP",
	    k->flags & CFG_RELOAD ? "at once" : "at the next start");
}

/* Those of one section, such as "tls"; NULL: all. How many there are. */
static size_t
help_settings(const char *section)
{
	size_t n = section != NULL ? strlen(section) : 0, count = 0;

	for (size_t i = 0; i < cfg_key_count; i++) {
		const struct cfg_key *k = &cfg_keys[i];
		struct fold f = { .out = stdout, .column = LEFT, .indent = LEFT };

		if (section != NULL && (strncmp(k->path, section, n) != 0 || k->path[n] != '.'))
			continue;
		printf("%-*s", LEFT, k->path);
		fold_add(&f, k->text);
		if (k->def != NULL && k->def[0] != '\0')
			fold_printf(&f, "(default: %s)", k->def);
		printf("\n");
		count++;
	}
	return count;
}

static int
unknown_setting(struct cli *c, const char *name)
{
	const char **words = xcalloc(cfg_key_count, sizeof *words), *nearest;

	for (size_t i = 0; i < cfg_key_count; i++)
		words[i] = cfg_keys[i].path;
	nearest = suggest_nearest(name, words, cfg_key_count);
	if (nearest != NULL)
		(void)cli_misuse(c, "there is no setting '%s'; nearest: '%s'", name, nearest);
	else
		(void)cli_misuse(
		    c, "there is no setting '%s'; 'hermes help settings' shows all", name);
	free(words);
	return CLI_USAGE;
}

/* Of 'hermes help user add', the verb says nothing more. */
int
cmd_help(struct cli *c)
{
	const char *name = cli_arg(c, 0);
	const struct cli_command *k;
	const struct cfg_key *key;

	if (name == NULL)
		cli_help_all(stdout);
	else if ((k = cli_command_find(name)) != NULL)
		cli_help_one(stdout, k);
	else if ((key = config_find(name, strlen(name))) != NULL)
		help_setting(key);
	else if (strchr(name, '.') != NULL)
		return unknown_setting(c, name);
	else if (help_settings(strcmp(name, "settings") == 0 ? NULL : name) == 0)
		return cli_unknown_command(name);
	return CLI_OK;
}
