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
#include "base/utf8.h"

enum {
	DEPTH_MAX = 32,
	KEYS_MAX = 4096,    /* of one map */
	BAD_BYTES_MAX = 10, /* that are said; a file with more is no text */
	NODES_MAX = 200000,
	SCALAR_MAX = 64 << 10,  /* bytes, after variables were put in */
	SCALARS_MAX = 16 << 20, /* all scalars together */
	NAME_MAX_BYTES = 128    /* of a variable's name */
};

struct reader {
	yaml_parser_t parser;
	struct problems *problems;
	const char *text; /* borrowed */
	size_t n;
	uint32_t nodes;
	size_t bytes;
	bool stopped; /* the rest of the file makes no sense any more */
};

void
problem(struct problems *p, struct spot at, const char *fmt, ...)
{
	char text[PROBLEM_TEXT_MAX];
	va_list ap;

	if (problems_full(p)) {
		p->more++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	p->at[p->count] = at;
	if (at.line == 0)
		p->item[p->count++] = xasprintf("%s: %s", p->file, text);
	else
		p->item[p->count++] =
		    xasprintf("%s:%" PRIu32 ":%" PRIu32 ": %s", p->file, at.line, at.column, text);
}

uint32_t
problems_all(const struct problems *p)
{
	return p->count + p->more;
}

bool
problems_full(const struct problems *p)
{
	return p->count == PROBLEMS_MAX;
}

static bool
is_before(struct spot a, struct spot b)
{
	return a.line != b.line ? a.line < b.line : a.column < b.column;
}

/* They are few: each goes to its place among those before it. */
void
problems_sort(struct problems *p)
{
	for (uint32_t i = 1; i < p->count; i++) {
		struct spot at = p->at[i];
		char *item = p->item[i];
		uint32_t n = i;

		for (; n > 0 && is_before(at, p->at[n - 1]); n--) {
			p->at[n] = p->at[n - 1];
			p->item[n] = p->item[n - 1];
		}
		p->at[n] = at;
		p->item[n] = item;
	}
}

void
problems_fini(struct problems *p)
{
	while (p->count > 0)
		free(p->item[--p->count]);
	p->more = 0;
}

static struct spot
spot_of(const yaml_mark_t *mark)
{
	return (struct spot){ (uint32_t)mark->line + 1, (uint32_t)mark->column + 1 };
}

/* Of a byte of the text. libyaml reads far ahead: its own mark is where it got to with understanding. */
static struct spot
spot_of_byte(const char *text, size_t at)
{
	struct spot spot = { 1, 1 };

	for (size_t i = 0; i < at; i++) {
		if (text[i] == '\n' || (text[i] == '\r' && !(i + 1 < at && text[i + 1] == '\n')))
			spot = (struct spot){ spot.line + 1, 1 };
		else if (((uint8_t)text[i] & 0xc0) != 0x80)
			spot.column++;
	}
	return spot;
}

static void PRINTF(3, 4) stop(struct reader *r, struct spot at, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (r->stopped)
		return;
	r->stopped = true;
	r->problems->is_partial = r->problems->is_cut = true;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	problem(r->problems, at, "%s", text);
}

static bool
next_event(struct reader *r, yaml_event_t *e)
{
	struct spot at;

	if (r->stopped)
		return false;
	if (yaml_parser_parse(&r->parser, e))
		return true;
	if (r->parser.error != YAML_READER_ERROR)
		at = spot_of(&r->parser.problem_mark);
	else
		at = spot_of_byte(
		    r->text, r->parser.problem_offset < r->n ? r->parser.problem_offset : r->n);
	stop(r, at, "%s%s%s%s", r->parser.problem != NULL ? r->parser.problem : "not YAML",
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
put_variable(struct reader *r, struct text *out, const char *p, size_t n, struct spot at)
{
	const char *mark = memmem(p, n, ":-", 2), *value;
	size_t name_len = mark != NULL ? (size_t)(mark - p) : n;
	char name[NAME_MAX_BYTES];

	if (!is_name(p, name_len)) {
		problem(r->problems, at, "'${%.*s}' names no variable; write $${ for the text ${",
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
		problem(r->problems, at,
		    "the environment variable %s is not set; set it, or write ${%s:-default}", name,
		    name);
}

/* The scalar with its variables put in; owned by the caller. */
static char *
expand(struct reader *r, const char *p, size_t n, struct spot at)
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
				problem(
				    r->problems, at, "'${' without '}'; write $${ for the text ${");
				break;
			}
			put_variable(r, &out, dollar + 2, (size_t)(end - dollar) - 2, at);
			i = (size_t)(end - p) + 1;
		} else {
			text_add(&out, "$", 1);
			i++;
		}
	}
	r->bytes += out.n;
	if (out.failed || r->bytes > SCALARS_MAX)
		stop(r, at, "values are too long: at most %d bytes each, %d together", SCALAR_MAX,
		    SCALARS_MAX);
	return out.p;
}

static struct ynode *
new_node(struct reader *r, enum node_kind kind, struct spot at)
{
	struct ynode *n = xcalloc(1, sizeof *n);

	n->kind = kind;
	n->at = at;
	if (++r->nodes > NODES_MAX)
		stop(r, at, "more than %d values", NODES_MAX);
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
	list->is_cut = true;
}

/* The text of a key, owned; "" when it is none (said). */
static char *
read_key(struct reader *r, const yaml_event_t *e, uint32_t keys)
{
	const char *text = (const char *)e->data.scalar.value;
	struct spot at = spot_of(&e->start_mark);

	if (e->type != YAML_SCALAR_EVENT) {
		stop(r, at, "a key must be a word");
		return xstrdup("");
	}
	if (keys > KEYS_MAX)
		stop(r, at, "more than %d keys in one place", KEYS_MAX);
	if (strlen(text) != e->data.scalar.length || e->data.scalar.length > 255)
		stop(r, at, "a key has a NUL in it or is longer than 255 bytes");
	return xstrndup(text, strlen(text));
}

static int
compare_keys(const void *a, const void *b)
{
	const struct ynode *x = *(struct ynode *const *)a, *y = *(struct ynode *const *)b;
	int c = strcmp(x->key, y->key);

	return c != 0 ? c : is_before(x->at, y->at) ? -1 : 1;
}

/* Below the top, where a second value would stand beside the first one, nobody is to look at it. */
static void
find_doubled(struct reader *r, struct ynode *map, uint32_t keys, unsigned depth)
{
	const struct ynode *first = NULL;
	struct ynode **sorted;
	uint32_t n = 0;

	if (keys < 2)
		return;
	sorted = xcalloc(keys, sizeof(struct ynode *));
	for (struct ynode *c = map->first; c != NULL; c = c->next)
		sorted[n++] = c;
	qsort(sorted, n, sizeof(struct ynode *), compare_keys);
	for (uint32_t i = 0; i < n; i++) {
		struct ynode *c = sorted[i];

		if (first == NULL || strcmp(first->key, c->key) != 0) {
			first = c;
			continue;
		}
		problem(r->problems, c->at,
		    "key '%.64s' stands here a second time; first in line %" PRIu32, c->key,
		    first->at.line);
		if (depth > 1)
			c->kind = NODE_NONE;
	}
	free(sorted);
}

/* False: that was its end, or the text makes no sense any more. */
static bool
read_pair(struct reader *r, struct ynode *map, unsigned depth, uint32_t number)
{
	struct ynode *child;
	struct spot at;
	yaml_event_t e;
	char *key;

	if (!next_event(r, &e)) {
		map->is_cut = true;
		return false;
	}
	at = spot_of(&e.start_mark);
	if (e.type == YAML_MAPPING_END_EVENT) {
		yaml_event_delete(&e);
		return false;
	}
	key = read_key(r, &e, number);
	yaml_event_delete(&e);
	if (!next_event(r, &e)) {
		map->is_cut = true;
		free(key);
		return false;
	}
	child = read_node(r, &e, depth);
	yaml_event_delete(&e);
	child->key = key;
	child->at = at;
	add_child(map, child);
	return true;
}

static void
read_map(struct reader *r, struct ynode *map, unsigned depth)
{
	uint32_t n = 0;

	while (read_pair(r, map, depth, n + 1))
		n++;
	find_doubled(r, map, n, depth);
}

static struct ynode *
read_scalar(struct reader *r, const yaml_event_t *e, struct spot at)
{
	const char *text = (const char *)e->data.scalar.value;
	struct ynode *n = new_node(r, NODE_SCALAR, at);
	uint32_t before = problems_all(r->problems);

	n->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	if (strlen(text) != e->data.scalar.length)
		problem(r->problems, at, "a value has a NUL in it");
	n->text = expand(r, text, strlen(text), at);
	if (problems_all(r->problems) > before)
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
	struct spot at = spot_of(&e->start_mark);
	struct ynode *n;

	if (has_extras(e))
		stop(r, at, "anchors (&), aliases (*) and tags (!) are not taken here");
	if (depth >= DEPTH_MAX)
		stop(r, at, "nested deeper than %d", DEPTH_MAX);
	if (r->stopped)
		return new_node(r, NODE_NONE, at);
	switch (e->type) {
	case YAML_SCALAR_EVENT: return read_scalar(r, e, at);
	case YAML_SEQUENCE_START_EVENT:
		n = new_node(r, NODE_LIST, at);
		read_list(r, n, depth + 1);
		return n;
	default:
		n = new_node(r, NODE_MAP, at);
		read_map(r, n, depth + 1);
		return n;
	}
}

/* What libyaml would end at is said, and gone: then the mistakes behind it can be found as well. */
static void
clean(struct reader *r, char *text)
{
	unsigned said = 0;
	uint32_t code;
	size_t len;

	for (size_t i = 0; i < r->n && !r->stopped; i += len) {
		uint8_t c = (uint8_t)text[i];

		len = utf8_decode((const uint8_t *)text + i, r->n - i, &code);
		if (len > 1 || (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n' || c == '\r')
			continue;
		if (++said > BAD_BYTES_MAX)
			stop(r, spot_of_byte(text, i), "too many bytes that are no text");
		else if (len == 0)
			problem(r->problems, spot_of_byte(text, i), "byte 0x%02x is no UTF-8", c);
		else
			problem(r->problems, spot_of_byte(text, i),
			    "byte 0x%02x is a control character", c);
		text[i] = '_';
		len = 1;
	}
}

static struct ynode *
read_document(struct reader *r)
{
	struct ynode *root = NULL;
	yaml_event_t e;

	while (next_event(r, &e)) {
		yaml_event_type_t type = e.type;

		if (type == YAML_DOCUMENT_START_EVENT && root != NULL)
			stop(r, spot_of(&e.start_mark), "a second document; settings are one");
		else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
		         type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
			root = read_node(r, &e, 0);
		yaml_event_delete(&e);
		if (type == YAML_STREAM_END_EVENT)
			break;
	}
	return root;
}

struct ynode *
ynode_read(const char *text, size_t n, struct problems *p)
{
	char *copy = xmalloc(n + 1); /* n: as large as a file may be */
	struct reader r = { .problems = p, .text = copy, .n = n };
	struct ynode *root = NULL;

	memcpy(copy, text, n);
	copy[n] = '\0';
	if (n >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0))
		stop(&r, (struct spot){ 1, 1 }, "this is UTF-16; settings are UTF-8");
	clean(&r, copy);
	if (!yaml_parser_initialize(&r.parser)) {
		problem(p, NOWHERE, "no memory to read it");
	} else {
		yaml_parser_set_input_string(&r.parser, (const unsigned char *)copy, n);
		root = read_document(&r);
		yaml_parser_delete(&r.parser);
	}
	explicit_bzero(copy, n);
	free(copy);
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
