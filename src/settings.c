/* SPDX-License-Identifier: Apache-2.0
 * From the tree of a file to struct config, through the table of keys. */
#include "settings.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/suggest.h"

enum { WORDS_MAX = 128 }; /* keys of one place, for hints */

struct loader {
	struct settings *s;
	struct problems *p;
};

static bool
has_section(const char *path, const char *section, size_t n)
{
	return strncmp(path, section, n) == 0 && path[n] == '.';
}

static bool
is_section(const char *name)
{
	for (size_t i = 0; i < cfg_key_count; i++)
		if (has_section(cfg_keys[i].path, name, strlen(name)))
			return true;
	return false;
}

static void
unknown_key(struct loader *l, const struct ynode *n, const char *section, const char *const *words,
    size_t count)
{
	const char *nearest = problems_full(l->p) ? NULL : suggest_nearest(n->key, words, count);

	problem(l->p, n->at, "unknown key '%.64s'%s%s%s%s%s", n->key, section != NULL ? " in " : "",
	    section != NULL ? section : "", nearest != NULL ? "; nearest: '" : "",
	    nearest != NULL ? nearest : "", nearest != NULL ? "'" : "");
}

static void
unknown_in_section(struct loader *l, const struct ynode *n, const char *section)
{
	const char *words[WORDS_MAX];
	size_t len = strlen(section), count = 0;

	for (size_t i = 0; i < cfg_key_count && count < WORDS_MAX; i++)
		if (has_section(cfg_keys[i].path, section, len))
			words[count++] = cfg_keys[i].path + len + 1;
	unknown_key(l, n, section, words, count);
}

/* The key that was meant by `port:`, `node.port:` or `node_port:` at the top, where only sections are; or NULL. */
static const struct cfg_key *
key_without_section(const char *name)
{
	for (size_t i = 0; i < cfg_key_count; i++) {
		const char *path = cfg_keys[i].path;
		size_t section = strcspn(path, "."), n = strlen(path);

		if (strcmp(name, path + section + 1) == 0)
			return &cfg_keys[i];
		if (strlen(name) == n && (name[section] == '.' || name[section] == '_') &&
		    memcmp(name, path, section) == 0 &&
		    strcmp(name + section + 1, path + section + 1) == 0)
			return &cfg_keys[i];
	}
	return NULL;
}

/* What other files of definitions have, and where it goes. NULL: this is none of it. */
static const char *
place_elsewhere(const char *name)
{
	static const struct {
		const char *name, *place;
	} known[] = {
		{ "permissions",
		    "they stand with each user: permissions: [configure, write, read]" },
		{ "topic_permissions", NULL },
		{ "parameters", NULL },
		{ "global_parameters", NULL },
	};

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].place != NULL ? known[i].place : SETTINGS_ELSEWHERE;
	return NULL;
}

/* Each section once, then the lists. */
static void
unknown_at_top(struct loader *l, const struct ynode *n)
{
	static char names[WORDS_MAX][32];
	const char *words[WORDS_MAX], *const *lists;
	const struct cfg_key *meant = key_without_section(n->key);
	const char *elsewhere = place_elsewhere(n->key);
	size_t count = 0, list_count;

	if (elsewhere != NULL) {
		problem(l->p, n->at, "%s: not taken here; %s", n->key, elsewhere);
		return;
	}
	lists = settings_list_names(&list_count);
	if (n->kind == NODE_LIST) {
		l->p->is_partial = true; /* what it was to bring is missing */
		if (suggest_nearest(n->key, lists, list_count) != NULL)
			meant = NULL;
	}
	if (meant != NULL) {
		count = strcspn(meant->path, ".");
		problem(l->p, n->at, "unknown key '%.64s'; nearest: '%s' under '%.*s:'", n->key,
		    meant->path + count + 1, (int)count, meant->path);
		return;
	}
	for (size_t i = 0; i < cfg_key_count; i++) {
		size_t len = strcspn(cfg_keys[i].path, ".");

		if (i > 0 && has_section(cfg_keys[i - 1].path, cfg_keys[i].path, len))
			continue;
		assert(count < WORDS_MAX && len < sizeof names[0]);
		memcpy(names[count], cfg_keys[i].path, len);
		names[count][len] = '\0';
		words[count] = names[count];
		count++;
	}
	for (size_t i = 0; i < list_count && count < WORDS_MAX; i++)
		words[count++] = lists[i];
	unknown_key(l, n, NULL, words, count);
}

static void
load_list(struct loader *l, const struct cfg_key *k, const struct ynode *n)
{
	char err[CONFIG_ERROR_MAX];

	config_clear(&l->s->config, k);
	if (n->first == NULL)
		problem(l->p, n->at, "%s: the list is empty", k->path);
	for (const struct ynode *c = n->first; c != NULL; c = c->next) {
		if (c->kind != NODE_SCALAR)
			problem(l->p, c->at, "%s: each item must be a single value", k->path);
		else if (!config_add(&l->s->config, k, c->text, err))
			problem(l->p, c->at, "%s", err);
	}
}

static void
read_key(struct loader *l, const struct cfg_key *k, const struct ynode *n)
{
	char err[CONFIG_ERROR_MAX];

	if (n->kind == NODE_LIST && k->type == CFG_LIST)
		load_list(l, k, n);
	else if (n->kind != NODE_SCALAR)
		problem(l->p, n->at, "%s: must be a single value, not %s", k->path,
		    n->kind == NODE_LIST ? "a list" : "keys with values");
	else if (ynode_is_null(n))
		problem(l->p, n->at,
		    "%s: has no value; write \"\" for an empty text, or remove the key", k->path);
	else if (!config_set(&l->s->config, k, n->text, err))
		problem(l->p, n->at, "%s", err);
}

static void
load_key(struct loader *l, const struct cfg_key *k, const struct ynode *n)
{
	uint32_t before = problems_all(l->p);

	l->s->spots[k - cfg_keys] = n->at;
	if (n->kind != NODE_NONE)
		read_key(l, k, n);
	if (n->kind == NODE_NONE || problems_all(l->p) > before)
		l->s->is_bad[k - cfg_keys] = true;
}

/* An empty section (all its keys are comments) is fine. */
static void
load_section(struct loader *l, const struct ynode *section)
{
	if (section->kind == NODE_NONE || ynode_is_null(section))
		return;
	if (section->kind != NODE_MAP) {
		problem(l->p, section->at, "%s: must have keys with values under it", section->key);
		return;
	}
	for (const struct ynode *n = section->first; n != NULL; n = n->next) {
		const struct cfg_key *k;
		char path[300];

		snprintf(path, sizeof path, "%s.%s", section->key, n->key);
		if ((k = config_find(path, strlen(path))) != NULL)
			load_key(l, k, n);
		else
			unknown_in_section(l, n, section->key);
	}
}

static void
load_top(struct loader *l, const struct ynode *root)
{
	if (root->kind == NODE_NONE || ynode_is_null(root))
		return;
	if (root->kind != NODE_MAP) {
		if (!l->p->is_cut)
			problem(
			    l->p, root->at, "settings must be keys with values, such as 'node:'");
		return;
	}
	for (const struct ynode *n = root->first; n != NULL; n = n->next) {
		if (is_section(n->key))
			load_section(l, n);
		else if (!settings_read_list(l->s, n->key, n, l->p))
			unknown_at_top(l, n);
	}
}

void
settings_load_text(struct settings *s, const char *text, size_t n, struct problems *p)
{
	struct loader l = { .s = s, .p = p };
	struct ynode *root;

	assert(cfg_key_count <= SETTINGS_KEYS_MAX);
	*s = (struct settings){ 0 };
	config_init(&s->config);
	root = ynode_read(text, n, p);
	if (root !=
	    NULL) /* of broken text, what could be read: its mistakes are said at once, too */
		load_top(&l, root);
	ynode_free(&root);
}

/* The whole file, NUL added; owned by the caller. NULL: a problem was noted. */
static char *
read_file(const char *file, size_t *n, struct problems *p)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char *text = NULL;
	struct stat st;
	ssize_t got;

	if (fd < 0) {
		problem(p, NOWHERE, "cannot be read: %s", strerror(errno));
		return NULL;
	}
	if (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode)) {
		problem(p, NOWHERE, "is not a file");
		close(fd);
		return NULL;
	}
	text = xmalloc(SETTINGS_FILE_MAX + 2);
	for (*n = 0; *n <= SETTINGS_FILE_MAX; *n += (size_t)got) {
		got = read(fd, text + *n, SETTINGS_FILE_MAX + 1 - *n);
		if (got < 0 && errno == EINTR)
			got = 0;
		else if (got <= 0)
			break;
	}
	if (got < 0)
		problem(p, NOWHERE, "cannot be read: %s", strerror(errno));
	else if (*n > SETTINGS_FILE_MAX)
		problem(p, NOWHERE, "is larger than 1 MiB");
	close(fd);
	if (p->count > 0) {
		p->is_partial = p->is_cut = true;
		free(text);
		return NULL;
	}
	text[*n] = '\0';
	return text;
}

void
settings_load(struct settings *s, const char *file, struct problems *p)
{
	char *text = NULL;
	size_t n = 0;

	if (file != NULL) {
		p->file = file;
		text = read_file(file, &n, p);
	}
	settings_load_text(s, text != NULL ? text : "", text != NULL ? n : 0, p);
	free(text);
	if (file != NULL)
		s->file = xstrdup(file);
}

void
settings_fini(struct settings *s)
{
	settings_free_lists(s);
	config_fini(&s->config);
	free(s->file);
	*s = (struct settings){ 0 };
}

/* What a value is compared with that was refused, or was not understood, says nothing. */
static void
check_keys(struct settings *s, struct problems *p)
{
	const struct cfg_key *k, *other;
	char err[CONFIG_ERROR_MAX];
	unsigned n = 0;

	while (config_check(&s->config, &n, &k, &other, err))
		if (!p->is_cut && !s->is_bad[k - cfg_keys] && !s->is_bad[other - cfg_keys])
			problem(p, s->spots[k - cfg_keys], "%s", err);
	if (s->config.default_password == NULL) { /* a trial goes on without */
		free(s->config.default_user);
		s->config.default_user = NULL;
	}
}

void
settings_finish(struct settings *s, struct problems *p)
{
	p->file = s->file != NULL ? s->file : "settings";
	check_keys(s, p);
	s->config.has_users = s->users.count > 0;
	config_complete(&s->config);
	problems_sort(p);
}
