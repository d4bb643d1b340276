/* SPDX-License-Identifier: Apache-2.0
 * From libyaml's events to a tree. Depth, keys of a map, nodes and bytes are bounded, so a broken or hostile file costs
 * little; recursion goes no deeper than DEPTH_MAX. */
#include "settings_yaml.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/mem.h"

enum {
	DEPTH_MAX = 32,
	KEYS_MAX = 4096, /* of one map: duplicates are looked for one by one */
	NODES_MAX = 200000,
	SCALAR_MAX = 64 << 10,  /* bytes, after variables were put in */
	SCALARS_MAX = 16 << 20, /* all scalars together */
	NAME_MAX_BYTES = 128    /* of a variable's name */
};

struct reader {
	yaml_parser_t parser;
	struct problems *problems;
	uint32_t nodes;
	size_t bytes;
	bool stopped; /* the rest of the file makes no sense any more */
};

void
problem(struct problems *p, uint32_t line, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (p->count == PROBLEMS_MAX) {
		p->more++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (line == 0)
		p->item[p->count++] = xasprintf("%s: %s", p->file, text);
	else
		p->item[p->count++] = xasprintf("%s:%" PRIu32 ": %s", p->file, line, text);
}

void
problems_fini(struct problems *p)
{
	while (p->count > 0)
		free(p->item[--p->count]);
	p->more = 0;
}

static uint32_t
line_of(const yaml_mark_t *mark)
{
	return mark->line < UINT32_MAX ? (uint32_t)mark->line + 1 : UINT32_MAX;
}

static void PRINTF(3, 4) stop(struct reader *r, uint32_t line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (r->stopped)
		return;
	r->stopped = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	problem(r->problems, line, "%s", text);
}

static bool
next_event(struct reader *r, yaml_event_t *e)
{
	uint32_t line;

	if (r->stopped)
		return false;
	if (yaml_parser_parse(&r->parser, e))
		return true;
	line = r->parser.error == YAML_READER_ERROR ? line_of(&r->parser.mark)
	                                            : line_of(&r->parser.problem_mark);
	stop(r, line, "%s%s%s%s", r->parser.problem != NULL ? r->parser.problem : "not YAML",
	    r->parser.context != NULL ? " " : "",
	    r->parser.context != NULL ? r->parser.context : "",
	    r->parser.error == YAML_SCANNER_ERROR && *r->parser.buffer.pointer == '\t'
	        ? ": a tab; YAML is indented with blanks"
	        : "");
	return false;
}

/* Growing text with a bound. */
struct text {
	char *p;
	size_t n, cap;
	bool failed;
};

static void
text_add(struct text *t, const char *p, size_t n)
{
	if (t->failed || n > SCALAR_MAX - t->n) {
		t->failed = true;
		return;
	}
	if (t->n + n + 1 > t->cap) {
		t->cap = (t->n + n + 1) * 2;
		t->p = xrealloc(t->p, t->cap);
	}
	if (n > 0)
		memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = '\0';
}

static bool
is_name(const char *p, size_t n)
{
	if (n == 0 || n >= NAME_MAX_BYTES || isdigit((unsigned char)p[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '_')
			return false;
	return true;
}

/* What stands between "${" and "}". */
static void
put_variable(struct reader *r, struct text *out, const char *p, size_t n, uint32_t line)
{
	const char *mark = memmem(p, n, ":-", 2), *value;
	size_t name_len = mark != NULL ? (size_t)(mark - p) : n;
	char name[NAME_MAX_BYTES];

	if (!is_name(p, name_len)) {
		problem(r->problems, line, "'${%.*s}' names no variable; write $${ for the text ${",
		    (int)(n < 64 ? n : 64), p);
		return;
	}
	memcpy(name, p, name_len);
	name[name_len] = '\0';
	value = getenv(name);
	if (mark != NULL && (value == NULL || value[0] == '\0'))
		text_add(out, mark + 2, n - name_len - 2);
	else if (value != NULL)
		text_add(out, value, strlen(value));
	else
		problem(r->problems, line,
		    "the environment variable %s is not set; set it, or write ${%s:-default}", name,
		    name);
}

/* The scalar with its variables put in; owned by the caller. */
static char *
expand(struct reader *r, const char *p, size_t n, uint32_t line)
{
	struct text out = { 0 };
	size_t i = 0;

	text_add(&out, "", 0);
	while (i < n && !out.failed) {
		const char *dollar = memchr(p + i, '$', n - i);
		size_t plain = dollar != NULL ? (size_t)(dollar - p) - i : n - i;

		text_add(&out, p + i, plain);
		i += plain;
		if (dollar == NULL)
			break;
		if (n - i >= 3 && memcmp(dollar, "$${", 3) == 0) {
			text_add(&out, "${", 2);
			i += 3;
		} else if (n - i >= 2 && dollar[1] == '{') {
			const char *end = memchr(dollar, '}', n - i);

			if (end == NULL) {
				problem(r->problems, line,
				    "'${' without '}'; write $${ for the text ${");
				break;
			}
			put_variable(r, &out, dollar + 2, (size_t)(end - dollar) - 2, line);
			i = (size_t)(end - p) + 1;
		} else {
			text_add(&out, "$", 1);
			i++;
		}
	}
	r->bytes += out.n;
	if (out.failed || r->bytes > SCALARS_MAX)
		stop(r, line, "values are too long: at most %d bytes each, %d together", SCALAR_MAX,
		    SCALARS_MAX);
	return out.p;
}

static struct ynode *
new_node(struct reader *r, enum node_kind kind, uint32_t line)
{
	struct ynode *n = xcalloc(1, sizeof *n);

	n->kind = kind;
	n->line = line;
	if (++r->nodes > NODES_MAX)
		stop(r, line, "more than %d values", NODES_MAX);
	return n;
}

static void
add_child(struct ynode *parent, struct ynode *child)
{
	if (parent->last != NULL)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

static struct ynode *read_node(struct reader *r, yaml_event_t *e, unsigned depth);

static void
read_list(struct reader *r, struct ynode *list, unsigned depth)
{
	yaml_event_t e;

	while (next_event(r, &e)) {
		bool end = e.type == YAML_SEQUENCE_END_EVENT;

		if (!end)
			add_child(list, read_node(r, &e, depth));
		yaml_event_delete(&e);
		if (end)
			return;
	}
}

/* The text of a key, owned; "" when it is none (said). */
static char *
read_key(struct reader *r, const yaml_event_t *e, const struct ynode *map, uint32_t keys)
{
	const char *text = (const char *)e->data.scalar.value;
	uint32_t line = line_of(&e->start_mark);

	if (e->type != YAML_SCALAR_EVENT) {
		stop(r, line, "a key must be a word");
		return xstrdup("");
	}
	if (keys > KEYS_MAX)
		stop(r, line, "more than %d keys in one place", KEYS_MAX);
	if (strlen(text) != e->data.scalar.length || e->data.scalar.length > 255)
		stop(r, line, "a key has a NUL in it or is longer than 255 bytes");
	for (const struct ynode *c = map->first; c != NULL; c = c->next)
		if (strcmp(c->key, text) == 0)
			problem(r->problems, line,
			    "key '%.64s' stands here a second time; first in line %" PRIu32, text,
			    c->line);
	return xstrndup(text, strlen(text));
}

static void
read_map(struct reader *r, struct ynode *map, unsigned depth)
{
	uint32_t keys = 0;
	yaml_event_t e;

	while (next_event(r, &e)) {
		uint32_t line = line_of(&e.start_mark);
		bool end = e.type == YAML_MAPPING_END_EVENT;
		struct ynode *child;
		char *key;

		if (end) {
			yaml_event_delete(&e);
			return;
		}
		key = read_key(r, &e, map, ++keys);
		yaml_event_delete(&e);
		if (!next_event(r, &e)) {
			free(key);
			return;
		}
		child = read_node(r, &e, depth);
		child->key = key;
		child->line = line;
		add_child(map, child);
		yaml_event_delete(&e);
	}
}

static struct ynode *
read_scalar(struct reader *r, const yaml_event_t *e, uint32_t line)
{
	const char *text = (const char *)e->data.scalar.value;
	struct ynode *n = new_node(r, NODE_SCALAR, line);
	uint32_t before = r->problems->count + r->problems->more;

	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (strlen(text) != e->data.scalar.length)
		problem(r->problems, line, "a value has a NUL in it");
	n->text = expand(r, text, strlen(text), line);
	if (r->problems->count + r->problems->more > before)
		n->kind = NODE_NONE; /* what is wrong was said; nobody is to look at the rest */
	return n;
}

static bool
has_extras(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT: return e->data.scalar.anchor != NULL || e->data.scalar.tag != NULL;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.anchor != NULL || e->data.sequence_start.tag != NULL;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.anchor != NULL || e->data.mapping_start.tag != NULL;
	default: return true; /* an alias */
	}
}

/* The value that begins with e; never NULL. */
static struct ynode *
read_node(struct reader *r, yaml_event_t *e, unsigned depth)
{
	uint32_t line = line_of(&e->start_mark);
	struct ynode *n;

	if (has_extras(e))
		stop(r, line, "anchors (&), aliases (*) and tags (!) are not taken here");
	if (depth >= DEPTH_MAX)
		stop(r, line, "nested deeper than %d", DEPTH_MAX);
	if (r->stopped)
		return new_node(r, NODE_NONE, line);
	switch (e->type) {
	case YAML_SCALAR_EVENT: return read_scalar(r, e, line);
	case YAML_SEQUENCE_START_EVENT:
		n = new_node(r, NODE_LIST, line);
		read_list(r, n, depth + 1);
		return n;
	default:
		n = new_node(r, NODE_MAP, line);
		read_map(r, n, depth + 1);
		return n;
	}
}

struct ynode *
ynode_read(const char *text, size_t n, struct problems *p)
{
	struct reader r = { .problems = p };
	struct ynode *root = NULL;
	yaml_event_t e;

	if (!yaml_parser_initialize(&r.parser)) {
		problem(p, 0, "no memory to read it");
		return NULL;
	}
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	while (next_event(&r, &e)) {
		yaml_event_type_t type = e.type;

		if (type == YAML_DOCUMENT_START_EVENT && root != NULL)
			stop(&r, line_of(&e.start_mark), "a second document; settings are one");
		else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
		         type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
			root = read_node(&r, &e, 0);
		yaml_event_delete(&e);
		if (type == YAML_STREAM_END_EVENT)
			break;
	}
	yaml_parser_delete(&r.parser);
	return root;
}

void
ynode_free(struct ynode **np)
{
	struct ynode *n = *np, *next;

	if (n == NULL)
		return;
	for (struct ynode *c = n->first; c != NULL; c = next) {
		next = c->next;
		ynode_free(&c);
	}
	free(n->key);
	free(n->text);
	free(n);
	*np = NULL;
}

bool
ynode_is_null(const struct ynode *n)
{
	return n->kind == NODE_SCALAR && n->plain &&
	       (n->text[0] == '\0' || strcmp(n->text, "~") == 0 || strcmp(n->text, "null") == 0);
}

const struct ynode *
ynode_find(const struct ynode *map, const char *key)
{
	for (const struct ynode *c = map->first; c != NULL; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	return NULL;
}
