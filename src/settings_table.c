/* SPDX-License-Identifier: Apache-2.0
 * Arguments of queues and definitions of policies: a map of YAML as an AMQP table. */
#include "settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "broker/table.h"

enum { TABLE_BYTES_MAX = 128 << 10 };

bool
settings_read_integer(const struct ynode *n, int64_t *out)
{
	char *end;

	if (n->kind != NODE_SCALAR || !n->plain ||
	    n->text[strspn(n->text, "0123456789-")] != '\0' || n->text[0] == '\0')
		return false;
	errno = 0;
	*out = strtoll(n->text, &end, 10);
	return *end == '\0' && errno == 0;
}

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
	table_writer_init(&unnamed, TABLE_BYTES_MAX);
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

		table_writer_init(&inner, TABLE_BYTES_MAX);
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

void
settings_read_table(struct table **out, const struct ynode *n, const char *what, struct problems *p)
{
	struct table_writer w;

	if (ynode_is_null(n))
		return;
	if (n->kind != NODE_MAP) {
		problem(p, n->at, "%s: %s must be keys with values", what, n->key);
		return;
	}
	table_writer_init(&w, TABLE_BYTES_MAX);
	write_nodes(&w, n->first);
	if (w.failed)
		problem(p, n->at, "%s: %s are larger than %d bytes", what, n->key, TABLE_BYTES_MAX);
	else
		*out = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
}
