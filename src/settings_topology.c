/* SPDX-License-Identifier: Apache-2.0
 * The lists of hermes.yml: vhosts, exchanges, queues, bindings, and those that are still to come. One table has the
 * keys of an entry of each; entries become struct topology_item, which settings_declare hands to the broker. */
#include "settings.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum { ITEMS_MAX = 100000, ARGUMENTS_MAX = 128 << 10 };

enum item_kind { ITEM_TEXT, ITEM_BOOL, ITEM_ARGUMENTS };

struct item_key {
	const char *name;
	enum item_kind kind;
	bool required;
	const char *def; /* of texts; booleans that are not given: whether it is "true" */
	size_t offset;
};

#define TEXT(k) .name = #k, .kind = ITEM_TEXT, .offset = offsetof(struct topology_item, k)
#define BOOL(k) .name = #k, .kind = ITEM_BOOL, .offset = offsetof(struct topology_item, k)
#define ARGUMENTS .name = "arguments", .kind = ITEM_ARGUMENTS

static const struct item_key vhost_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(default_queue_type) },
	{ .name = NULL },
};
static const struct item_key exchange_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(vhost), .def = "/" },
	{ TEXT(type), .def = "direct" },
	{ BOOL(durable), .def = "true" },
	{ BOOL(auto_delete) },
	{ BOOL(internal) },
	{ ARGUMENTS },
	{ .name = NULL },
};
static const struct item_key queue_keys[] = {
	{ TEXT(name), .required = true },
	{ TEXT(vhost), .def = "/" },
	{ BOOL(durable), .def = "true" },
	{ BOOL(auto_delete) },
	{ ARGUMENTS },
	{ .name = NULL },
};
static const struct item_key binding_keys[] = {
	{ TEXT(source), .required = true },
	{ TEXT(destination), .required = true },
	{ TEXT(destination_type), .def = "queue" },
	{ TEXT(routing_key), .def = "" },
	{ TEXT(vhost), .def = "/" },
	{ ARGUMENTS },
	{ .name = NULL },
};

static const struct item_list {
	const char *name, *one;
	const struct item_key *keys; /* NULL: comes later */
	const char *later;
	size_t offset;
} item_lists[] = {
	{ "vhosts", "vhost", vhost_keys, NULL, offsetof(struct settings, vhosts) },
	{ "users", "user", NULL, "accounts of your own come with a later version", 0 },
	{ "exchanges", "exchange", exchange_keys, NULL, offsetof(struct settings, exchanges) },
	{ "queues", "queue", queue_keys, NULL, offsetof(struct settings, queues) },
	{ "bindings", "binding", binding_keys, NULL, offsetof(struct settings, bindings) },
	{ "policies", "policy", NULL, "policies come with a later version", 0 },
};

const char *const *
topology_names(size_t *n)
{
	static const char *names[COUNT_OF(item_lists)];

	for (size_t i = 0; i < COUNT_OF(item_lists); i++)
		names[i] = item_lists[i].name;
	*n = COUNT_OF(item_lists);
	return names;
}

/* --- arguments ------------------------------------------------------------- */

/* A scalar's kind follows YAML's core schema: without quotes, numbers, true, false and nothing are such. */
static void
scalar_field(const struct ynode *n, struct field *f)
{
	char *end;

	f->kind = 'S';
	f->bytes = span_str(n->text);
	if (!n->plain)
		return;
	if (ynode_is_null(n)) {
		f->kind = 'V';
		f->bytes = span_of(NULL, 0);
	} else if (strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0) {
		f->kind = 't';
		f->truth = n->text[0] == 't';
	} else if (n->text[strspn(n->text, "0123456789.eE+-")] == '\0' &&
	           strpbrk(n->text, "0123456789") != NULL) {
		errno = 0;
		f->integer = strtoll(n->text, &end, 10);
		f->kind = 'l';
		if (*end != '\0' || errno != 0) {
			errno = 0;
			f->number = strtod(n->text, &end);
			f->kind = *end == '\0' && errno == 0 ? 'd' : 'S';
		}
	}
}

/* A value of a list has no name: it is the field without the (empty) name in front. */
static void
put_field(struct table_writer *w, const struct ynode *n, struct field *f)
{
	struct table_writer unnamed;

	if (n->key != NULL) {
		f->name = span_str(n->key);
		table_put_field(w, f);
		return;
	}
	table_writer_init(&unnamed, ARGUMENTS_MAX);
	table_put_field(&unnamed, f);
	if (unnamed.failed)
		w->failed = true;
	else
		table_put_raw(w, span_of(unnamed.p + 1, unnamed.n - 1));
	table_writer_fini(&unnamed);
}

/* Recursion: no deeper than the tree is (DEPTH_MAX of settings_yaml.c). */
static void
write_nodes(struct table_writer *w, const struct ynode *first)
{
	for (const struct ynode *n = first; n != NULL; n = n->next) {
		struct field f = { 0 };
		struct table_writer inner;

		table_writer_init(&inner, ARGUMENTS_MAX);
		if (n->kind == NODE_SCALAR) {
			scalar_field(n, &f);
		} else {
			write_nodes(
			    &inner, n->first); /* none of a NODE_NONE: a mistake was said there */
			f.kind = n->kind == NODE_LIST ? 'A' : 'F';
			f.bytes = span_of(inner.p, inner.n);
		}
		if (inner.failed)
			w->failed = true;
		else
			put_field(w, n, &f);
		table_writer_fini(&inner);
	}
}

static void
read_arguments(
    struct topology_item *item, const struct ynode *n, const char *what, struct problems *p)
{
	struct table_writer w;

	if (ynode_is_null(n))
		return;
	if (n->kind != NODE_MAP) {
		problem(p, n->line, "%s: arguments must be keys with values", what);
		return;
	}
	table_writer_init(&w, ARGUMENTS_MAX);
	write_nodes(&w, n->first);
	if (w.failed)
		problem(p, n->line, "%s: arguments are larger than %d bytes", what, ARGUMENTS_MAX);
	else if (item->arguments == NULL)
		item->arguments = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
}

/* --- entries --------------------------------------------------------------- */

static void
read_text(char **field, const struct item_key *k, const struct ynode *n, const char *what,
    struct problems *p)
{
	if (strlen(n->text) > 255) {
		problem(p, n->line, "%s: %s is longer than 255 bytes", what, k->name);
	} else if (k->required && n->text[0] == '\0') {
		problem(p, n->line, "%s: %s must not be empty", what, k->name);
	} else {
		free(*field);
		*field = xstrdup(n->text);
	}
}

static void
read_key(struct topology_item *item, const struct item_key *k, const struct ynode *n,
    const char *what, struct problems *p)
{
	void *field = (char *)item + k->offset;

	if (n->kind == NODE_NONE)
		return;
	if (k->kind == ITEM_ARGUMENTS) {
		read_arguments(item, n, what, p);
	} else if (n->kind != NODE_SCALAR) {
		problem(p, n->line, "%s: %s must be a single value", what, k->name);
	} else if (k->kind == ITEM_TEXT) {
		read_text(field, k, n, what, p);
	} else if (strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0) {
		*(bool *)field = n->text[0] == 't';
	} else {
		problem(p, n->line, "%s: %s: '%.64s' is neither true nor false", what, k->name,
		    n->text);
	}
}

static const struct item_key *
find_key(const struct item_list *list, const char *name)
{
	for (const struct item_key *k = list->keys; k->name != NULL; k++)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static void
unknown_key(const struct item_list *list, const struct ynode *n, struct problems *p)
{
	const char *words[16], *nearest;
	size_t count = 0;

	for (const struct item_key *k = list->keys; k->name != NULL && count < COUNT_OF(words); k++)
		words[count++] = k->name;
	nearest = suggest_nearest(n->key, words, count);
	problem(p, n->line, "unknown key '%.64s' in %s%s%s%s", n->key, list->name,
	    nearest != NULL ? "; nearest: '" : "", nearest != NULL ? nearest : "",
	    nearest != NULL ? "'" : "");
}

static struct topology_item *
new_item(struct topology_list *l, const struct item_list *list, uint32_t line)
{
	struct topology_item *item;

	if (l->count == l->cap) {
		l->cap = l->cap > 0 ? l->cap * 2 : 16;
		l->item = xrealloc(l->item, l->cap * sizeof *l->item);
	}
	item = &l->item[l->count++];
	*item = (struct topology_item){ .line = line };
	for (const struct item_key *k = list->keys; k->name != NULL; k++) {
		void *field = (char *)item + k->offset;

		if (k->kind == ITEM_TEXT && k->def != NULL)
			*(char **)field = xstrdup(k->def);
		else if (k->kind == ITEM_BOOL)
			*(bool *)field = k->def != NULL;
	}
	return item;
}

/* "queue 'q'", for texts; the entry's name if it has one that can be used. */
static void
name_item(const struct item_list *list, const struct ynode *n, char *out, size_t size)
{
	const struct ynode *name = ynode_find(n, list->keys == binding_keys ? "source" : "name");

	if (name != NULL && name->kind == NODE_SCALAR)
		snprintf(out, size, "%s %s'%.100s'", list->one,
		    list->keys == binding_keys ? "from " : "", name->text);
	else
		snprintf(out, size, "%s", list->one);
}

static void
read_item(struct topology_list *l, const struct item_list *list, const struct ynode *n,
    struct problems *p)
{
	struct topology_item *item;
	char what[160];

	if (n->kind == NODE_NONE)
		return;
	if (n->kind != NODE_MAP) {
		problem(p, n->line, "%s: each entry must have keys with values", list->name);
		return;
	}
	name_item(list, n, what, sizeof what);
	item = new_item(l, list, n->first != NULL ? n->first->line : n->line);
	for (const struct ynode *c = n->first; c != NULL; c = c->next) {
		const struct item_key *k = find_key(list, c->key);

		if (k != NULL)
			read_key(item, k, c, what, p);
		else
			unknown_key(list, c, p);
	}
	for (const struct item_key *k = list->keys; k->name != NULL; k++)
		if (k->required && ynode_find(n, k->name) == NULL)
			problem(p, item->line, "%s: needs the key '%s'", what, k->name);
}

bool
topology_read(struct settings *s, const char *name, const struct ynode *node, struct problems *p)
{
	const struct item_list *list = NULL;
	struct topology_list *l;

	for (size_t i = 0; i < COUNT_OF(item_lists); i++)
		if (strcmp(item_lists[i].name, name) == 0)
			list = &item_lists[i];
	if (list == NULL)
		return false;
	if (node->kind == NODE_NONE || ynode_is_null(node) ||
	    (node->kind == NODE_LIST && node->first == NULL))
		return true;
	if (list->keys == NULL) {
		problem(p, node->line, "%s: %s. Remove the key", name, list->later);
		return true;
	}
	if (node->kind != NODE_LIST) {
		problem(p, node->line, "%s: must be a list", name);
		return true;
	}
	l = (struct topology_list *)(void *)((char *)s + list->offset);
	for (const struct ynode *n = node->first; n != NULL; n = n->next) {
		if (l->count == ITEMS_MAX) {
			problem(p, n->line, "%s: more than %d entries", name, ITEMS_MAX);
			break;
		}
		read_item(l, list, n, p);
	}
	return true;
}

static void
free_list(struct topology_list *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		struct topology_item *t = &l->item[i];

		free(t->vhost);
		free(t->name);
		free(t->type);
		free(t->source);
		free(t->destination);
		free(t->destination_type);
		free(t->routing_key);
		free(t->default_queue_type);
		table_free(&t->arguments);
	}
	free(l->item);
	*l = (struct topology_list){ 0 };
}

void
topology_fini(struct settings *s)
{
	free_list(&s->vhosts);
	free_list(&s->exchanges);
	free_list(&s->queues);
	free_list(&s->bindings);
}

/* --- declaring ------------------------------------------------------------- */

static struct vhost *
vhost_of(struct broker *b, const struct topology_item *t, struct problems *p)
{
	struct vhost *vh = vhost_find(b, span_str(t->vhost));

	if (vh == NULL)
		problem(p, t->line, "no vhost '%.100s' here; add it to vhosts", t->vhost);
	return vh;
}

static void
refused(const struct topology_item *t, const char *what, const char *name, const struct error *e,
    struct problems *p)
{
	problem(p, t->line, "%s '%.100s': %s", what, name, e->text);
}

/* What the store had is there already, and stays: then the settings have to agree with it. */
static void
not_declared(const struct topology_item *t, const char *what, bool was_there, const struct error *e,
    struct problems *p)
{
	if (was_there)
		problem(p, t->line,
		    "%s '%.100s': %s. It is there since an earlier start; delete it, or change its "
		    "entry",
		    what, t->name, e->text);
	else
		refused(t, what, t->name, e, p);
}

static void
declare_vhosts(const struct settings *s, struct broker *b, struct problems *p)
{
	for (uint32_t i = 0; i < s->vhosts.count; i++) {
		const struct topology_item *t = &s->vhosts.item[i];
		const char *type = t->default_queue_type;
		const struct vhost_spec spec = {
			.default_queue_type = type != NULL ? span_str(type) : span_of(NULL, 0),
			.tracing = -1
		};
		const struct error *e;
		struct vhost *vh;
		bool created;

		e = vhost_set(b, span_str(t->name), &spec, &vh, &created);
		if (e != NULL)
			refused(t, "vhost", t->name, e, p);
		else if (created)
			users_admit_administrators(b, vh);
	}
}

static void
declare_exchanges(const struct settings *s, struct broker *b, uint64_t first_id, struct problems *p)
{
	for (uint32_t i = 0; i < s->exchanges.count; i++) {
		const struct topology_item *t = &s->exchanges.item[i];
		struct vhost *vh = vhost_of(b, t, p);
		const struct exchange_spec spec = { .name = span_str(t->name),
			.type = span_str(t->type),
			.durable = t->durable,
			.auto_delete = t->auto_delete,
			.internal = t->internal,
			.arguments = t->arguments };
		const struct error *e;
		struct exchange *x;

		if (vh == NULL || (e = exchange_declare(vh, &spec, &x)) == NULL)
			continue;
		x = exchange_find(vh, spec.name);
		not_declared(t, "exchange",
		    x != NULL && x->id < first_id && !exchange_is_predeclared(x), e, p);
	}
}

static void
declare_queues(const struct settings *s, struct broker *b, uint64_t first_id, struct problems *p)
{
	for (uint32_t i = 0; i < s->queues.count; i++) {
		const struct topology_item *t = &s->queues.item[i];
		struct vhost *vh = vhost_of(b, t, p);
		const struct queue_spec spec = { .name = span_str(t->name),
			.durable = t->durable,
			.auto_delete = t->auto_delete,
			.arguments = t->arguments };
		const struct error *e;
		struct queue *q;

		if (vh == NULL || (e = queue_declare(vh, &spec, NULL, &q)) == NULL)
			continue;
		q = queue_find(vh, spec.name);
		not_declared(t, "queue", q != NULL && q->id < first_id, e, p);
	}
}

static void
declare_binding(struct vhost *vh, const struct topology_item *t, struct problems *p)
{
	bool to_exchange = strcmp(t->destination_type, "exchange") == 0;
	struct exchange *source, *x = NULL;
	struct queue *q = NULL;
	const struct error *e;

	if (!to_exchange && strcmp(t->destination_type, "queue") != 0) {
		problem(p, t->line,
		    "binding from '%.100s': destination_type must be queue or exchange", t->source);
		return;
	}
	e = exchange_lookup(vh, span_str(t->source), &source);
	if (e == NULL && to_exchange)
		e = exchange_lookup(vh, span_str(t->destination), &x);
	else if (e == NULL)
		e = queue_lookup(vh, span_str(t->destination), NULL, &q);
	if (e == NULL)
		e = binding_add(source, q, x, span_str(t->routing_key), t->arguments);
	if (e != NULL)
		refused(t, "binding from", t->source, e, p);
}

void
settings_declare(const struct settings *s, struct broker *b, struct problems *p)
{
	uint64_t first_id = b->next_id + 1;

	p->file = s->file != NULL ? s->file : "settings";
	declare_vhosts(s, b, p);
	declare_exchanges(s, b, first_id, p);
	declare_queues(s, b, first_id, p);
	for (uint32_t i = 0; i < s->bindings.count; i++) {
		const struct topology_item *t = &s->bindings.item[i];
		struct vhost *vh = vhost_of(b, t, p);

		if (vh != NULL)
			declare_binding(vh, t, p);
	}
}
