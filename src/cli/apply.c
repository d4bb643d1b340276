/* SPDX-License-Identifier: Apache-2.0
 * hermes apply FILE: how definitions differ from a node, and, once that is confirmed, makes it so. Only what differs is
 * sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/apply.h"
#include "cli/definitions_file.h"
#include "cli/http_client.h"
#include "cli/http_path.h"
#include "cli/password_input.h"
#include "cli/text_safe.h"
#include "cli/text_table.h"

enum { LIMIT_S = 600 };

/* ---- what is asked for ---- */

/* What a file may have besides: who wrote it. */
static bool
is_of_export(const char *key)
{
	static const char *const known[] = { "rabbit_version", "rabbitmq_version", "product_name",
		"product_version", "rabbitmq_definition_format", "original_cluster_name",
		"original_vhost_name", "explanation", "metadata", "description",
		"default_queue_type", "limits", "vhost" };

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strcmp(known[i], key) == 0)
			return true;
	return false;
}

static const struct definitions_kind *
kind_of(const char *key)
{
	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++)
		if (strcmp(k->key, key) == 0)
			return k;
	return NULL;
}

/* Lists of objects, and nothing that is passed over without a word. */
static int
check_file(const struct apply *a)
{
	const char *key;
	json_t *list, *item;
	size_t i;

	json_object_foreach(a->file.doc, key, list)
	{
		const struct definitions_kind *kind = kind_of(key);

		if (kind == NULL && !is_of_export(key)) {
			char *safe = text_safe_line(key);

			(void)cli_fail(a->cli, "%s: '%s' means nothing here", a->file.name, safe);
			free(safe);
			return CLI_FAILED;
		}
		if (kind == NULL)
			continue;
		if (!json_is_array(list))
			return cli_fail(a->cli, "%s: '%s' is no list", a->file.name, key);
		json_array_foreach(list, i, item)
		{
			if (!json_is_object(item))
				return cli_fail(a->cli, "%s: '%s' has something that is no object",
				    a->file.name, key);
		}
		if (a->vhost != NULL && !kind->in_vhost && json_array_size(list) > 0)
			(void)cli_fail(a->cli, "%s: '%s' are left out: they are of no virtual host",
			    a->file.name, key);
	}
	return CLI_OK;
}

static int
ask_node(struct apply *a)
{
	char *path = a->vhost != NULL ? HTTP_PATH("/api/definitions/*", a->vhost)
	                              : xstrdup("/api/definitions");
	char *what = a->vhost != NULL ? text_safe_format("vhost '%s'", a->vhost) : NULL;
	int rc = http_client_call(a->cli,
	    &(struct http_call){ .path = path, .what = what, .limit_s = LIMIT_S }, NULL, &a->there);

	if (rc == CLI_OK && !json_is_object(a->there))
		rc =
		    cli_fail(a->cli, "the answer has no definitions; is this the management port?");
	free(what);
	free(path);
	return rc;
}

static void
compare(struct apply *a)
{
	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++) {
		struct definitions_diff *d = &a->diff[k - definitions_kinds];

		if (a->vhost != NULL && !k->in_vhost)
			continue;
		definitions_compare(k, a->file.doc, a->there, a->vhost, d);
		a->added += json_array_size(d->added);
		if (k->is_fixed)
			a->fixed += json_array_size(d->changed);
		else
			a->changed += json_array_size(d->changed);
	}
	a->removed = apply_prune_count(a);
}

/* ---- the difference, for people ---- */

static void
add_number(struct text_table *t, size_t n)
{
	char text[24];
	int len = snprintf(text, sizeof text, "%zu", n);

	text_table_add(t, text, (size_t)len, true);
}

static void
print_counts(const struct apply *a)
{
	static const char *const head[] = { "kind", "new", "changed", "differ", "same",
		"only there" };
	struct text_table *t = text_table_new(COUNT_OF(head));

	for (size_t i = 0; i < COUNT_OF(head); i++)
		text_table_add(t, head[i], strlen(head[i]), i > 0);
	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++) {
		const struct definitions_diff *d = &a->diff[k - definitions_kinds];
		size_t changed = json_array_size(d->changed);

		if (json_array_size(d->added) + changed + json_array_size(d->only) + d->same == 0)
			continue;
		text_table_add(t, k->key, strlen(k->key), false);
		add_number(t, json_array_size(d->added));
		add_number(t, k->is_fixed ? 0 : changed);
		add_number(t, k->is_fixed ? changed : 0);
		add_number(t, d->same);
		add_number(t, json_array_size(d->only));
	}
	text_table_print(t, stdout, isatty(STDOUT_FILENO) == 1);
	text_table_free(&t);
}

static void
print_one(const struct apply *a, char sign, const struct definitions_kind *k, const json_t *item)
{
	char *name = definitions_say(k, item, a->vhost);

	printf("%c %s\n", sign, name);
	free(name);
}

static void
print_value(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS), *safe;

	safe = text_safe_line(text != NULL ? text : "?");
	printf("%s", safe);
	free(safe);
	free(text);
}

/* That passwords differ is enough. */
static void
print_fields(const json_t *change)
{
	json_t *now = json_object_get(change, "now"), *value;
	const char *field;

	json_object_foreach(now, field, value)
	{
		printf("    %s: ", field);
		if (strncmp(field, "password", strlen("password")) == 0) {
			printf("another one\n");
			continue;
		}
		print_value(json_object_get(json_object_get(change, "was"), field));
		printf(" -> ");
		print_value(value);
		printf("\n");
	}
}

static void
print_objects(const struct apply *a)
{
	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++) {
		const struct definitions_diff *d = &a->diff[k - definitions_kinds];
		const json_t *one;
		size_t i;

		json_array_foreach(d->added, i, one) print_one(a, '+', k, one);
		json_array_foreach(d->changed, i, one)
		{
			print_one(a, k->is_fixed ? '!' : '~', k, json_object_get(one, "item"));
			print_fields(one);
		}
		json_array_foreach(d->only, i, one) if (apply_prunes(a, k, one))
		    print_one(a, '-', k, one);
	}
	if (a->fixed > 0)
		printf("what stands behind ! cannot be changed: it has to be deleted first\n");
}

/* ---- and for programs ---- */

static json_t *
names(const struct apply *a, const struct definitions_kind *k, const json_t *list, bool of_change)
{
	json_t *out = json_array();
	const json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const json_t *item = of_change ? json_object_get(one, "item") : one;
		json_t *o = json_object();

		for (size_t f = 0; f < COUNT_OF(k->fields) && k->fields[f] != NULL; f++)
			if (json_object_get(item, k->fields[f]) != NULL)
				(void)json_object_set(
				    o, k->fields[f], json_object_get(item, k->fields[f]));
		if (a->vhost != NULL)
			(void)json_object_set_new(o, "vhost", json_string(a->vhost));
		if (of_change && strcmp(k->key, "users") == 0) /* no hashes */
			(void)json_object_set_new(o, "differs", json_true());
		else if (of_change)
			(void)json_object_update_new(
			    o, json_pack("{s:O, s:O}", "was", json_object_get(one, "was"), "now",
			           json_object_get(one, "now")));
		(void)json_array_append_new(out, o);
	}
	return out;
}

static void
print_json(const struct apply *a, bool applied, int rc)
{
	json_t *kinds = json_object(), *o;

	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++) {
		const struct definitions_diff *d = &a->diff[k - definitions_kinds];

		if (d->added == NULL)
			continue;
		(void)json_object_set_new(kinds, k->key,
		    json_pack("{s:o, s:o, s:I, s:o}", "new", names(a, k, d->added, false),
		        k->is_fixed ? "differ" : "changed", names(a, k, d->changed, true), "same",
		        (json_int_t)d->same, "only_there", names(a, k, d->only, false)));
	}
	o = json_pack(
	    "{s:o, s:b, s:b}", "kinds", kinds, "applied", applied, "failed", rc != CLI_OK);
	(void)json_dumpf(o, stdout, JSON_INDENT(2) | text_safe_json(STDOUT_FILENO));
	printf("\n");
	json_decref(o);
}

/* ---- making it so ---- */

/* At a terminal, where neither the file nor the output is in its way. */
static bool
may_ask(const struct apply *a)
{
	const char *file = cli_arg(a->cli, 0);

	return isatty(STDIN_FILENO) == 1 && strcmp(file, "-") != 0 && !cli_switch(a->cli, "json");
}

bool
apply_confirm(const struct apply *a, const char *option, const char *question)
{
	char *line;
	bool is_yes;

	if (cli_switch(a->cli, option))
		return true;
	if (!may_ask(a))
		return false;
	printf("%s [y/N] ", question);
	(void)fflush(stdout);
	line = password_read(stdin);
	is_yes = line != NULL && (strcasecmp(line, "y") == 0 || strcasecmp(line, "yes") == 0);
	free(line);
	return is_yes;
}

static int
make(const struct apply *a)
{
	json_t *doc = json_object(), *answer = NULL;
	const json_t *one;
	char *text;
	size_t i;
	int rc;

	for (const struct definitions_kind *k = definitions_kinds; k->key != NULL; k++) {
		const struct definitions_diff *d = &a->diff[k - definitions_kinds];
		json_t *list;

		if (d->added == NULL)
			continue;
		list = json_copy(d->added);
		json_array_foreach(d->changed, i, one)
		{
			if (!k->is_fixed)
				(void)json_array_append(list, json_object_get(one, "item"));
		}
		(void)json_object_set_new(doc, k->key, list);
	}
	text = json_dumps(doc, JSON_COMPACT);
	rc = definitions_send(a->cli, span_of(text, strlen(text)), &answer);
	json_decref(answer);
	json_decref(doc);
	free(text);
	return rc;
}

/* The first question, and what follows from it. *applied: it was sent. */
static int
change(const struct apply *a, bool *applied)
{
	int rc;

	if (a->added + a->changed == 0)
		return CLI_OK;
	if (!apply_confirm(a, "yes", "Make it so?"))
		return cli_fail(
		    a->cli, "nothing was changed%s", may_ask(a) ? "" : "; --yes makes the changes");
	rc = make(a);
	*applied = true;
	if (rc == CLI_OK && !cli_switch(a->cli, "json"))
		printf("made %zu, changed %zu\n", a->added, a->changed);
	return rc;
}

static int
work(struct apply *a)
{
	bool quiet = cli_switch(a->cli, "json"), applied = false;
	int rc;

	compare(a);
	if (!quiet) {
		print_counts(a);
		print_objects(a);
		if (a->added + a->changed + a->fixed + a->removed == 0)
			printf("there is no difference\n");
	}
	rc = change(a, &applied);
	if (rc == CLI_OK && a->removed > 0) {
		rc = apply_prune(a);
		applied |= rc == CLI_OK;
	} else if (a->removed > 0) {
		(void)cli_fail(a->cli, "nothing was removed, for not all was made");
	}
	if (a->fixed > 0 && rc == CLI_OK)
		rc = cli_fail(a->cli, "%zu that differ stay as they are", a->fixed);
	if (quiet)
		print_json(a, applied, rc);
	return rc;
}

int
cmd_apply(struct cli *c)
{
	struct apply a = { .cli = c, .vhost = cli_value(c, "vhost") };
	int rc;

	if (cli_switch(c, "yes-prune") && !cli_switch(c, "prune"))
		return cli_misuse(c, "--yes-prune is of use with --prune only");
	rc = definitions_file_read(c, &a.file);
	if (rc == CLI_OK)
		rc = check_file(&a);
	if (rc == CLI_OK)
		rc = ask_node(&a);
	if (rc == CLI_OK)
		rc = work(&a);
	for (size_t i = 0; i < COUNT_OF(a.diff); i++)
		definitions_diff_fini(&a.diff[i]);
	json_decref(a.there);
	definitions_file_fini(&a.file);
	return rc;
}
