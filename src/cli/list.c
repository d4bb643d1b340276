/* SPDX-License-Identifier: Apache-2.0
 * hermes list WHAT: the rows of a kind (list_kinds.h), as a table or as JSON. */
#include "cli/list.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli_verbs.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/list_kinds.h"
#include "cli/text_safe.h"
#include "cli/text_table.h"

enum { COLUMNS_MAX = 64, KINDS_MAX = 32, LIMIT_S = 120 };

/* The columns that are shown: words of a text that was cut at its commas. */
struct columns {
	char *text; /* owned */
	const char *name[COLUMNS_MAX];
	bool is_open[COLUMNS_MAX]; /* which names there are depends on the rows */
	size_t count;
};

/* False: wrong usage, which was said. */
static bool
columns_take(struct cli *c, const struct list_kind *kind, struct columns *k)
{
	const char *given = cli_value(c, "columns");
	char *rest, *word;

	k->count = 0;
	k->text = rest = xstrdup(given != NULL ? given : kind->columns);
	while ((word = strsep(&rest, ", ")) != NULL) {
		if (*word == '\0')
			continue;
		if (k->count == COLUMNS_MAX) {
			(void)cli_misuse(c, "--columns: more than %d", COLUMNS_MAX);
			return false;
		}
		if (!list_kind_has(c, kind, word, &k->is_open[k->count]))
			return false;
		k->name[k->count++] = word;
	}
	if (k->count == 0)
		(void)cli_misuse(c, "--columns names none; such as --columns %s", kind->columns);
	return k->count > 0;
}

/* The node leaves out of its answer what nobody asked for. Takes path. */
static char *
with_columns(char *path, const struct columns *k)
{
	char *whole = path;

	for (size_t i = 0; i < k->count; i++) {
		char *name = HTTP_PATH("*", k->name[i]), *before = whole;

		whole = xasprintf("%s%s%s", before, i == 0 ? "?columns=" : ",", name);
		free(before);
		free(name);
	}
	return whole;
}

/* The field of a row: "queue.name" is a field of a field. Borrowed, NULL: it has none. */
static json_t *
field_at(const json_t *row, const char *name)
{
	json_t *value = json_object_get(row, name);
	const char *dot = strchr(name, '.');
	char *head;

	if (value != NULL || dot == NULL)
		return value;
	head = xstrndup(name, (size_t)(dot - name));
	value = field_at(json_object_get(row, head), dot + 1);
	free(head);
	return value;
}

/* ---- JSON ---- */

/* Sets "queue.name" as a field of the field queue. */
static void
field_set(json_t *row, const char *name, json_t *value)
{
	const char *dot = strchr(name, '.');
	json_t *inner;
	char *head;

	if (dot == NULL) {
		(void)json_object_set(row, name, value);
		return;
	}
	head = xstrndup(name, (size_t)(dot - name));
	inner = json_object_get(row, head);
	if (!json_is_object(inner)) {
		inner = json_object();
		(void)json_object_set_new(row, head, inner);
	}
	field_set(inner, dot + 1, value);
	free(head);
}

/* Rows with the columns only, for kinds that the node gives whole all the same. */
static json_t *
reduced(const json_t *list, const struct columns *k)
{
	json_t *out = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		json_t *less = json_object();

		for (size_t n = 0; n < k->count; n++) {
			json_t *value = field_at(row, k->name[n]);

			if (value != NULL)
				field_set(less, k->name[n], value);
		}
		(void)json_array_append_new(out, less);
	}
	return out;
}

static void
print_json(struct cli *c, const json_t *list, const struct columns *k)
{
	json_t *less = cli_given(c, "columns") ? reduced(list, k) : NULL;

	(void)json_dumpf(
	    less != NULL ? less : list, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
	printf("\n");
	json_decref(less);
}

/* ---- tables ---- */

/* Texts of a list with commas between; NULL: it holds something else. */
static char *
words_of(const json_t *list)
{
	char *all = xstrdup("");
	const json_t *word;
	size_t i;

	json_array_foreach(list, i, word)
	{
		char *before = all;

		if (!json_is_string(word)) {
			free(before);
			return NULL;
		}
		all = xasprintf("%s%s%s", before, i > 0 ? "," : "", json_string_value(word));
		free(before);
	}
	return all;
}

static void
add_cell(struct text_table *t, const json_t *value)
{
	char *text = json_is_array(value) ? words_of(value) : NULL;

	if (json_is_string(value)) {
		text_table_add(t, json_string_value(value), json_string_length(value), false);
		return;
	}
	if (text == NULL && value != NULL && !json_is_null(value) &&
	    !(json_is_object(value) && json_object_size(value) == 0))
		text = json_dumps(value,
		    JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
	text_table_add(
	    t, text != NULL ? text : "", text != NULL ? strlen(text) : 0, json_is_number(value));
	free(text);
}

/* Names of arguments and such are not known before: one that no row has was misspelt, as likely as not. */
static void
warn_of(struct cli *c, const json_t *list, const struct list_kind *kind, const struct columns *k)
{
	for (size_t n = 0; n < k->count && json_array_size(list) > 0; n++) {
		const json_t *row;
		bool found = !k->is_open[n];
		size_t i;

		json_array_foreach(list, i, row) if (field_at(row, k->name[n]) != NULL)
		{
			found = true;
			break;
		}
		if (!found)
			(void)cli_fail(c, "none of the %s has '%.200s'", kind->name, k->name[n]);
	}
}

static void
print_table(struct cli *c, const json_t *list, const struct columns *k)
{
	struct text_table *t = text_table_new(k->count);
	const json_t *row;
	size_t i;

	for (size_t n = 0; n < k->count && !cli_switch(c, "no-header"); n++)
		text_table_add(t, k->name[n], strlen(k->name[n]),
		    json_is_number(field_at(json_array_get(list, 0), k->name[n])));
	json_array_foreach(list, i, row) for (size_t n = 0; n < k->count; n++)
	    add_cell(t, field_at(row, k->name[n]));
	text_table_print(t, stdout, isatty(STDOUT_FILENO) == 1);
	text_table_free(&t);
}

/* Takes list. */
static json_t *
of_vhost(json_t *list, const char *vhost)
{
	json_t *out = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const json_t *name = json_object_get(row, "vhost");

		if (json_string_length(name) == strlen(vhost) &&
		    memcmp(json_string_value(name), vhost, strlen(vhost)) == 0)
			(void)json_array_append(out, (json_t *)row);
	}
	json_decref(list);
	return out;
}

/* Of all, or of a vhost; *is_whole: rows of others and all columns are in the answer. Owned by the caller. */
static char *
path_of(struct cli *c, const struct list_kind *kind, const char *vhost, const struct columns *k,
    bool *is_whole)
{
	char *path;

	*is_whole = vhost != NULL && strcmp(kind->in_vhost, kind->path) == 0;
	path = vhost != NULL && !*is_whole ? HTTP_PATH(kind->in_vhost, vhost) : xstrdup(kind->path);
	if (!*is_whole && (!cli_switch(c, "json") || cli_given(c, "columns")))
		path = with_columns(path, k);
	return path;
}

int
list_show(struct cli *c, const char *name, const char *vhost)
{
	const struct list_kind *kind = list_kind_find(name);
	struct columns k;
	json_t *list = NULL;
	char *path, *what;
	bool is_whole = false;
	int rc = CLI_USAGE;

	if (columns_take(c, kind, &k)) {
		path = path_of(c, kind, vhost, &k, &is_whole);
		what = vhost != NULL ? text_safe_format("vhost '%s'", vhost) : NULL;
		rc = http_client_call(c,
		    &(struct http_call){
		        .path = path, .what = what, .doing = "listing", .limit_s = LIMIT_S },
		    NULL, &list);
		free(what);
		free(path);
	}
	if (rc == CLI_OK && !json_is_array(list))
		rc = cli_fail(c, "the answer is no list; is this the management port?");
	if (rc == CLI_OK && is_whole)
		list = of_vhost(list, vhost);
	if (rc == CLI_OK && cli_switch(c, "json"))
		print_json(c, list, &k);
	else if (rc == CLI_OK)
		print_table(c, list, &k);
	if (rc == CLI_OK)
		warn_of(c, list, kind, &k);
	json_decref(list);
	free(k.text);
	return rc;
}

static int
show(struct cli *c)
{
	return list_show(c, cli_arg(c, 0), cli_value(c, "vhost"));
}

/* What belongs to no vhost: a vhost of the environment means nothing to it. */
static int
show_all(struct cli *c)
{
	return list_show(c, cli_arg(c, 0), NULL);
}

int
cmd_list(struct cli *c)
{
	struct cli_verb verbs[KINDS_MAX + 1] = { 0 };

	for (size_t i = 0; list_kinds[i].name != NULL; i++) {
		bool has_vhost = list_kinds[i].in_vhost != NULL;

		assert(i < KINDS_MAX);
		verbs[i] = (struct cli_verb){ .name = list_kinds[i].name,
			.run = has_vhost ? show : show_all,
			.usage = "[--columns NAME,...]",
			.options =
			    has_vhost ? "json columns no-header vhost" : "json columns no-header" };
	}
	return cli_run_verb(c, verbs);
}
