/* SPDX-License-Identifier: Apache-2.0
 * The lists of hermes.yml: vhosts, users, policies, exchanges, queues, bindings. One table has the keys of an entry of
 * each; entries become struct settings_item. What is of the wrong type, or not known, is a problem of the file. */
#include "settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "broker/name.h"
#include "broker/pattern.h"
#include "broker/permission.h"
#include "broker/table.h"
#include "broker/tags.h"

enum { ITEMS_MAX = 100000, TEXT_MAX = 255, TEXTS_MAX = 1024 };

enum item_kind {
	ITEM_TEXT,
	ITEM_BOOL,
	ITEM_INTEGER,
	ITEM_TABLE,
	ITEM_TEXTS, /* a list of texts, or one */
	ITEM_TAGS,  /* the same; one text may be several with commas */
	ITEM_LIMITS,
	ITEM_HASH,     /* base64, of the kind that the key hashing_algorithm names */
	ITEM_ALGORITHM /* read with password_hash */
};

struct item_key {
	const char *name;
	enum item_kind kind;
	bool required, may_be_empty;
	const char *def; /* of texts; booleans that are not given: whether it is "true" */
	size_t offset;
	uint32_t max; /* bytes of a text; 0: TEXT_MAX */
};

#define FIELD(f) .offset = offsetof(struct settings_item, f)
#define TEXT(k) .name = #k, .kind = ITEM_TEXT, FIELD(k)
#define BOOL(k) .name = #k, .kind = ITEM_BOOL, FIELD(k)
#define TABLE(k) .name = #k, .kind = ITEM_TABLE, FIELD(arguments)

static const struct item_key vhost_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(description) },
	{ .name = "tags", .kind = ITEM_TAGS, FIELD(tags) },
	{ TEXT(default_queue_type) },
	{ .name = "limits", .kind = ITEM_LIMITS },
	{ .name = NULL },
};
static const struct item_key user_keys[] = {
	{ .name = "username", .kind = ITEM_TEXT, FIELD(name), .required = true },
	{ TEXT(password), .max = PASSWORD_LEN_MAX },
	{ .name = "password_hash", .kind = ITEM_HASH },
	{ .name = "hashing_algorithm", .kind = ITEM_ALGORITHM },
	{ .name = "tags", .kind = ITEM_TAGS, FIELD(tags) },
	{ .name = "permissions", .kind = ITEM_TEXTS, FIELD(permissions), .max = PATTERN_LEN_MAX },
	{ .name = "vhost", .kind = ITEM_TEXTS, FIELD(vhosts) },
	{ .name = "limits", .kind = ITEM_LIMITS },
	{ .name = NULL },
};
static const struct item_key policy_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(vhost), .def = "/" },
	{ TEXT(pattern), .required = true, .may_be_empty = true, .max = PATTERN_LEN_MAX },
	{ .name = "apply-to", .kind = ITEM_TEXT, FIELD(apply_to), .def = "all" },
	{ .name = "priority", .kind = ITEM_INTEGER, FIELD(priority) },
	{ TABLE(definition), .required = true },
	{ .name = NULL },
};
static const struct item_key exchange_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(vhost), .def = "/" },
	{ TEXT(type), .def = "direct" },
	{ BOOL(durable), .def = "true" },
	{ BOOL(auto_delete) },
	{ BOOL(internal) },
	{ TABLE(arguments) },
	{ .name = NULL },
};
static const struct item_key queue_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(vhost), .def = "/" },
	{ BOOL(durable), .def = "true" },
	{ BOOL(auto_delete) },
	{ TABLE(arguments) },
	{ .name = NULL },
};
static const struct item_key binding_keys[] = {
	{ TEXT(source), .required = true },
	{ TEXT(destination), .required = true },
	{ TEXT(destination_type), .def = "queue" },
	{ TEXT(routing_key), .def = "" },
	{ TEXT(vhost), .def = "/" },
	{ TABLE(arguments) },
	{ .name = NULL },
};

static const struct list_def {
	const char *name, *one, *title; /* title: the key that names an entry */
	const struct item_key *keys;
	size_t offset;
	bool is_indexed; /* it has by_name: no two entries of one name */
} list_defs[] = {
	{ "vhosts", "vhost", "name", vhost_keys, offsetof(struct settings, vhosts), true },
	{ "users", "user", "username", user_keys, offsetof(struct settings, users), true },
	{ "policies", "policy", "name", policy_keys, offsetof(struct settings, policies), true },
	{ "operator_policies", "operator policy", "name", policy_keys,
	    offsetof(struct settings, operator_policies), true },
	{ "exchanges", "exchange", "name", exchange_keys, offsetof(struct settings, exchanges),
	    false },
	{ "queues", "queue", "name", queue_keys, offsetof(struct settings, queues), false },
	{ "bindings", "binding from", "source", binding_keys, offsetof(struct settings, bindings),
	    false },
};

static const char *const limit_words[][SETTINGS_LIMITS] = {
	{ "max-connections", "max-queues" },   /* vhosts: enum vhost_limit */
	{ "max-connections", "max-channels" }, /* users: enum user_limit */
};
_Static_assert((int)VHOST_LIMITS == SETTINGS_LIMITS && (int)USER_LIMITS == SETTINGS_LIMITS,
    "a limit of settings has its place");

/* What is being read. */
struct place {
	const struct list_def *list;
	char what[160]; /* "queue 'q'", for texts */
	struct problems *p;
};

const char *const *
settings_list_names(size_t *n)
{
	static const char *names[COUNT_OF(list_defs)];

	for (size_t i = 0; i < COUNT_OF(list_defs); i++)
		names[i] = list_defs[i].name;
	*n = COUNT_OF(list_defs);
	return names;
}

/* --- values ---------------------------------------------------------------- */

/* False: it cannot be the value of this key, which was said. The value itself, which may be secret, never is. */
static bool
text_fits(const struct place *at, const struct item_key *k, const struct ynode *n)
{
	size_t max = k->max != 0 ? k->max : TEXT_MAX;

	if (n->kind == NODE_NONE)
		return false;
	if (n->kind != NODE_SCALAR) {
		problem(at->p, n->at, "%s: %s must be %s", at->what, k->name,
		    k->kind == ITEM_TEXT ? "a single value" : "a list of texts");
		return false;
	}
	if (strlen(n->text) <= max)
		return true;
	problem(at->p, n->at, "%s: %s is longer than %zu bytes", at->what, k->name, max);
	return false;
}

static void
read_text(const struct place *at, char **field, const struct item_key *k, const struct ynode *n)
{
	if (!text_fits(at, k, n))
		return;
	if (ynode_is_null(n) && n->text[0] != '\0') {
		problem(at->p, n->at, "%s: %s has no value", at->what, k->name);
		return;
	}
	if (k->required && !k->may_be_empty && n->text[0] == '\0') {
		problem(at->p, n->at, "%s: %s must not be empty", at->what, k->name);
		return;
	}
	free(*field);
	*field = xstrdup(n->text);
}

static void
read_bool(const struct place *at, bool *field, const struct item_key *k, const struct ynode *n)
{
	if (n->kind != NODE_SCALAR)
		problem(at->p, n->at, "%s: %s must be a single value", at->what, k->name);
	else if (strcmp(n->text, "true") != 0 && strcmp(n->text, "false") != 0)
		problem(at->p, n->at, "%s: %s: '%.64s' is neither true nor false", at->what,
		    k->name, n->text);
	else
		*field = n->text[0] == 't';
}

static void
add_text(struct settings_texts *t, struct span text)
{
	t->item = xrealloc(t->item, (t->count + 1) * sizeof *t->item);
	t->item[t->count++] = xstrndup(SPAN_CHARS(text), text.n);
}

static void
read_texts(const struct place *at, struct settings_texts *t, const struct item_key *k,
    const struct ynode *n)
{
	struct span tag[TAGS_MAX];
	bool is_list = n->kind == NODE_LIST;

	t->is_given = true;
	if (!is_list && k->kind == ITEM_TAGS && !ynode_is_null(n) && text_fits(at, k, n)) {
		uint32_t count;

		if (!tags_split(span_str(n->text), tag, &count))
			problem(
			    at->p, n->at, "%s: %s: more than %d", at->what, k->name, (int)TAGS_MAX);
		for (uint32_t i = 0; i < count; i++)
			add_text(t, tag[i]);
	}
	if (k->kind == ITEM_TAGS && !is_list)
		return;
	for (const struct ynode *c = is_list ? n->first : n; c != NULL; c = c->next) {
		if (t->count == TEXTS_MAX) {
			problem(at->p, c->at, "%s: %s: more than %d", at->what, k->name, TEXTS_MAX);
			return;
		}
		if (text_fits(at, k, c))
			add_text(t, span_str(c->text));
		if (!is_list)
			return; /* what follows it are other keys */
	}
}

static void
read_limits(const struct place *at, struct settings_item *item, const struct ynode *n)
{
	const char *const *words = limit_words[at->list->keys == user_keys];

	item->has_limits = true;
	if (ynode_is_null(n))
		return;
	if (n->kind != NODE_MAP) {
		problem(at->p, n->at, "%s: limits must be keys with values", at->what);
		return;
	}
	for (const struct ynode *c = n->first; c != NULL; c = c->next) {
		const char *nearest =
		    problems_full(at->p) ? NULL : suggest_nearest(c->key, words, SETTINGS_LIMITS);
		unsigned i = 0;

		while (i < SETTINGS_LIMITS && strcmp(words[i], c->key) != 0)
			i++;
		if (i == SETTINGS_LIMITS)
			problem(at->p, c->at, "unknown key '%.64s' in limits of %s%s%s%s", c->key,
			    at->what, nearest != NULL ? "; nearest: '" : "",
			    nearest != NULL ? nearest : "", nearest != NULL ? "'" : "");
		else if (c->kind != NODE_NONE && !settings_read_integer(c, &item->limit[i].value))
			problem(at->p, c->at, "%s: %s must be a whole number", at->what, c->key);
		else
			item->limit[i].is_set = true;
	}
}

static void
read_hash(const struct place *at, struct settings_item *item, const struct item_key *k,
    const struct ynode *n, const struct ynode *all)
{
	const struct ynode *algorithm = ynode_find(all, "hashing_algorithm");
	enum password_kind kind = PASSWORD_SHA256;
	char bytes[TEXT_MAX];
	size_t len;

	item->has_hash = true;
	if (!text_fits(at, k, n))
		return;
	if (algorithm != NULL && algorithm->kind == NODE_SCALAR)
		kind = password_kind_find(span_str(algorithm->text));
	if (kind == PASSWORD_KINDS) {
		problem(at->p, algorithm->at, "%s: hashing_algorithm is none of: %s, %s, %s, %s",
		    at->what, password_kind_name(PASSWORD_SHA256),
		    password_kind_name(PASSWORD_SHA512), password_kind_name(PASSWORD_MD5),
		    password_kind_name(PASSWORD_PBKDF2));
		return;
	}
	if (n->text[0] == '\0')
		return; /* nobody logs in with a password */
	len = base64_decode(n->text, strlen(n->text), bytes);
	if (len == 0 || !password_from(&item->hash, kind, span_of(bytes, len)))
		problem(at->p, n->at, "%s: password_hash is no base64 of a hash of the kind %s",
		    at->what, password_kind_name(kind));
}

/* --- entries --------------------------------------------------------------- */

static void
read_key(const struct place *at, struct settings_item *item, const struct item_key *k,
    const struct ynode *n, const struct ynode *all)
{
	void *field = (char *)item + k->offset;

	if (n->kind == NODE_NONE)
		return;
	switch (k->kind) {
	case ITEM_TEXT: read_text(at, field, k, n); break;
	case ITEM_BOOL: read_bool(at, field, k, n); break;
	case ITEM_INTEGER:
		if (!settings_read_integer(n, field))
			problem(at->p, n->at, "%s: %s must be a whole number", at->what, k->name);
		break;
	case ITEM_TABLE:
		if (item->arguments == NULL)
			settings_read_table(&item->arguments, n, at->what, at->p);
		break;
	case ITEM_TEXTS:
	case ITEM_TAGS: read_texts(at, field, k, n); break;
	case ITEM_LIMITS: read_limits(at, item, n); break;
	case ITEM_HASH: read_hash(at, item, k, n, all); break;
	case ITEM_ALGORITHM: (void)text_fits(at, k, n); break;
	}
}

static const struct item_key *
find_key(const struct list_def *list, const char *name)
{
	for (const struct item_key *k = list->keys; k->name != NULL; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static void
unknown_key(const struct list_def *list, const struct ynode *n, struct problems *p)
{
	const char *words[16], *nearest;
	size_t count = 0;

	if (strcmp(n->key, "topic_permissions") == 0 || strcmp(n->key, "tracing") == 0 ||
	    strcmp(n->key, "metadata") == 0) {
		problem(p, n->at, "%s in %s: not taken here; %s", n->key, list->name,
		    SETTINGS_ELSEWHERE);
		return;
	}
	for (const struct item_key *k = list->keys; k->name != NULL && count < COUNT_OF(words); k++)
		words[count++] = k->name;
	nearest = problems_full(p) ? NULL : suggest_nearest(n->key, words, count);
	problem(p, n->at, "unknown key '%.64s' in %s%s%s%s", n->key, list->name,
	    nearest != NULL ? "; nearest: '" : "", nearest != NULL ? nearest : "",
	    nearest != NULL ? "'" : "");
}

static struct settings_item *
new_item(struct settings_list *l, const struct list_def *list, struct spot at)
{
	struct settings_item *item;

	if (l->count == l->cap) {
		l->cap = l->cap > 0 ? l->cap * 2 : 16;
		l->item = xrealloc(l->item, l->cap * sizeof *l->item);
	}
	item = &l->item[l->count++];
	*item = (struct settings_item){ .at = at };
	for (const struct item_key *k = list->keys; k->name != NULL; k++) {
		void *field = (char *)item + k->offset;

		if (k->kind == ITEM_TEXT && k->def != NULL)
			*(char **)field = xstrdup(k->def);
		else if (k->kind == ITEM_BOOL)
			*(bool *)field = k->def != NULL;
	}
	return item;
}

/* The entry's name if it has one that can be used. */
static void
name_place(struct place *at, const struct ynode *n)
{
	const struct ynode *name = ynode_find(n, at->list->title);

	if (name != NULL && name->kind == NODE_SCALAR)
		snprintf(at->what, sizeof at->what, "%s '%.100s'", at->list->one, name->text);
	else
		snprintf(at->what, sizeof at->what, "%.*s", (int)strcspn(at->list->one, " "),
		    at->list->one);
}

/* What no single key of a user can say. */
static void
check_user(const struct place *at, struct settings_item *u, const struct ynode *n)
{
	const struct ynode *password = ynode_find(n, "password");

	if (password == NULL && !u->has_hash)
		problem(at->p, u->at,
		    "%s: needs the key 'password', or 'password_hash' (\"\": none, nobody logs in "
		    "with one)",
		    at->what);
	else if (password != NULL && u->has_hash)
		problem(at->p, password->at, "%s: has both password and password_hash", at->what);
	else if (u->password != NULL && u->password[0] == '\0')
		problem(at->p, password->at, "%s: password must not be empty", at->what);
	if (!u->has_hash && ynode_find(n, "hashing_algorithm") != NULL)
		problem(at->p, u->at, "%s: hashing_algorithm belongs to password_hash", at->what);
	if (u->vhosts.is_given && !u->permissions.is_given)
		problem(at->p, u->at, "%s: vhost says where permissions hold; give them", at->what);
	if (u->permissions.is_given && u->permissions.count != PERM_KINDS)
		problem(at->p, ynode_find(n, "permissions")->at,
		    "%s: permissions must be three patterns: [configure, write, read]", at->what);
	if (!u->vhosts.is_given)
		add_text(&u->vhosts, SPAN_LIT("/"));
}

static void
read_item(
    struct settings_list *l, const struct list_def *list, const struct ynode *n, struct problems *p)
{
	struct place at = { .list = list, .p = p };
	struct settings_item *item;
	uint32_t before;

	if (n->kind == NODE_NONE)
		return;
	if (n->kind != NODE_MAP) {
		p->is_partial = true;
		problem(p, n->at, "%s: each entry must have keys with values", list->name);
		return;
	}
	name_place(&at, n);
	before = problems_all(p);
	item = new_item(l, list, n->first != NULL ? n->first->at : n->at);
	for (const struct ynode *c = n->first; c != NULL; c = c->next) {
		const struct item_key *k = find_key(list, c->key);

		if (k != NULL)
			read_key(&at, item, k, c, n);
		else
			unknown_key(list, c, p);
	}
	item->is_broken = n->is_cut || problems_all(p) > before;
	if (n->is_cut)
		return;
	for (const struct item_key *k = list->keys; k->name != NULL; k++)
		if (k->required && ynode_find(n, k->name) == NULL)
			problem(p, item->at, "%s: needs the key '%s'", at.what, k->name);
	if (list->keys == user_keys)
		check_user(&at, item, n);
	item->is_broken = problems_all(p) > before;
}

/* --- by name --------------------------------------------------------------- */

static int
compare_names(const char *vhost, const char *name, const struct settings_item *b)
{
	int c = vhost != NULL ? strcmp(vhost, b->vhost) : 0;

	return c != 0 ? c : strcmp(name, b->name);
}

static int
compare_items(const void *a, const void *b)
{
	const struct settings_item *x = *(struct settings_item *const *)a,
	                           *y = *(struct settings_item *const *)b;
	int c = compare_names(x->vhost, x->name, y);

	return c != 0 ? c : x < y ? -1 : x > y; /* they lie in the order of the file */
}

static void
index_list(struct settings_list *l, const struct list_def *list, struct problems *p)
{
	free(l->by_name); /* of a list that the file has twice */
	l->by_name = xcalloc(l->count > 0 ? l->count : 1, sizeof(struct settings_item *));
	l->named = 0;
	for (uint32_t i = 0; i < l->count; i++)
		if (l->item[i].name != NULL) /* which was said */
			l->by_name[l->named++] = &l->item[i];
	qsort(l->by_name, l->named, sizeof(struct settings_item *), compare_items);
	for (uint32_t i = 1; i < l->named; i++) {
		const struct settings_item *a = l->by_name[i - 1];
		struct settings_item *b = l->by_name[i];

		if (compare_names(a->vhost, a->name, b) != 0)
			continue;
		problem(p, b->at, "%s '%.100s' stands here a second time; first in line %" PRIu32,
		    list->one, b->name, a->at.line);
		b->is_broken = true;
	}
}

bool
settings_has(const struct settings_list *l, const char *vhost, const char *name)
{
	uint32_t low = 0, high = l->named;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		int c = compare_names(vhost, name, l->by_name[mid]);

		if (c == 0)
			return true;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

/* --- lists ----------------------------------------------------------------- */

static struct settings_list *
list_of(struct settings *s, const struct list_def *list)
{
	return (struct settings_list *)(void *)((char *)s + list->offset);
}

bool
settings_read_list(
    struct settings *s, const char *name, const struct ynode *node, struct problems *p)
{
	const struct list_def *list = NULL;
	struct settings_list *l;

	for (size_t i = 0; i < COUNT_OF(list_defs); i++)
		if (strcmp(list_defs[i].name, name) == 0)
			list = &list_defs[i];
	if (list == NULL)
		return false;
	l = list_of(s, list);
	l->is_given = true;
	if (node->kind == NODE_NONE || ynode_is_null(node) ||
	    (node->kind == NODE_LIST && node->first == NULL))
		return true;
	if (node->kind != NODE_LIST) {
		p->is_partial = true;
		problem(p, node->at, "%s: must be a list", name);
		return true;
	}
	for (const struct ynode *n = node->first; n != NULL; n = n->next) {
		if (l->count == ITEMS_MAX) {
			p->is_partial = true;
			problem(p, n->at, "%s: more than %d entries", name, ITEMS_MAX);
			break;
		}
		read_item(l, list, n, p);
	}
	if (list->is_indexed)
		index_list(l, list, p);
	return true;
}

static void
free_texts(struct settings_texts *t)
{
	while (t->count > 0)
		free(t->item[--t->count]);
	free(t->item);
}

static void
free_item(struct settings_item *item, const struct item_key *keys)
{
	if (item->password != NULL)
		explicit_bzero(item->password, strlen(item->password));
	for (const struct item_key *k = keys; k->name != NULL; k++)
		if (k->kind == ITEM_TEXT)
			free(*(char **)(void *)((char *)item + k->offset));
	free_texts(&item->tags);
	free_texts(&item->vhosts);
	free_texts(&item->permissions);
	table_free(&item->arguments);
}

void
settings_free_lists(struct settings *s)
{
	for (size_t i = 0; i < COUNT_OF(list_defs); i++) {
		struct settings_list *l = list_of(s, &list_defs[i]);

		for (uint32_t n = 0; n < l->count; n++)
			free_item(&l->item[n], list_defs[i].keys);
		free(l->item);
		free(l->by_name);
		*l = (struct settings_list){ 0 };
	}
}
