/* SPDX-License-Identifier: Apache-2.0
 * Columns are a tree: of "a,b.c" the root has a, which is wanted whole, and b, of which c is. The writer goes down in it
 * as it goes down in the document. */
#include "mgmt/json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { CAP_FIRST = 4096, COLUMNS_MAX = 256 };

struct columns {
	char *name; /* owned */
	size_t n;
	bool is_whole;
	struct columns *first, *next; /* owned: what is wanted of it; the next beside it */
};

static const struct columns nothing;

/* ---- columns ---- */

static struct columns *
column_find(const struct columns *c, const char *name, size_t n)
{
	struct columns *k = c->first;

	while (k != NULL && (k->n != n || memcmp(k->name, name, n) != 0))
		k = k->next;
	return k;
}

static struct columns *
column_get(struct columns *c, const char *name, size_t n)
{
	struct columns *k = column_find(c, name, n);

	if (k != NULL)
		return k;
	k = xcalloc(1, sizeof *k);
	k->name = xstrndup(name, n);
	k->n = n;
	k->next = c->first;
	c->first = k;
	return k;
}

static void
column_add(struct columns *c, const char *path, size_t n)
{
	while (n > 0) {
		const char *dot = memchr(path, '.', n);
		size_t part = dot != NULL ? (size_t)(dot - path) : n;

		c = column_get(c, path, part);
		part += dot != NULL;
		path += part;
		n -= part;
	}
	c->is_whole = true;
}

struct columns *
columns_new(const char *text)
{
	struct columns *c;
	unsigned count = 0;

	if (text == NULL)
		return NULL;
	c = xcalloc(1, sizeof *c);
	while (count++ < COLUMNS_MAX) {
		size_t n = strcspn(text, ",");

		if (n > 0)
			column_add(c, text, n);
		if (text[n] == '\0')
			break;
		text += n + 1;
	}
	return c;
}

void
columns_free(struct columns **cp)
{
	struct columns *c = *cp, *k;

	if (c == NULL)
		return;
	*cp = NULL;
	while ((k = c->first) != NULL) {
		c->first = k->next;
		columns_free(&k);
	}
	free(c->name);
	free(c);
}

/* ---- the text ---- */

void
json_out_init(struct json_out *o, const struct columns *columns)
{
	*o = (struct json_out){ .next = columns };
}

void
json_out_catch(struct json_out *o, const struct columns *columns, struct scalar *to)
{
	*o = (struct json_out){ .next = columns, .caught = to };
	*to = (struct scalar){ .kind = SCALAR_NUMBER };
}

void
json_out_fini(struct json_out *o)
{
	free(o->p);
	o->p = NULL;
	o->n = o->cap = 0;
}

static char *
room(struct json_out *o, size_t n)
{
	if (o->n + n > o->cap) {
		o->cap = o->cap > 0 ? o->cap : CAP_FIRST;
		while (o->cap < o->n + n)
			o->cap *= 2;
		o->p = xrealloc(o->p, o->cap);
	}
	return o->p + o->n;
}

static inline void
put(struct json_out *o, const char *p, size_t n)
{
	char *to = room(o, n);

	if (n > 0)
		memcpy(to, p, n);
	o->n += n;
}

static inline void
put_char(struct json_out *o, char c)
{
	*room(o, 1) = c;
	o->n++;
}

static inline void
put_comma(struct json_out *o)
{
	if (o->comma)
		put_char(o, ',');
	o->comma = true;
}

/* One character that is not as it stands in JSON, or is no UTF-8; returns its bytes. */
static size_t
put_special(struct json_out *o, const uint8_t *p, size_t n)
{
	static const char short_for[] = "\bb\ff\nn\rr\tt\"\"\\\\";
	uint32_t code;
	size_t length;
	char hex[8];

	if (*p >= 0x80) {
		length = utf8_decode(p, n, &code);
		if (length > 0)
			put(o, (const char *)p, length);
		else
			put(o, "\xef\xbf\xbd", 3);
		return length > 0 ? length : 1;
	}
	for (const char *c = short_for; *c != '\0'; c += 2) {
		if (*p == (uint8_t)*c) {
			put_char(o, '\\');
			put_char(o, c[1]);
			return 1;
		}
	}
	snprintf(hex, sizeof hex, "\\u%04x", *p);
	put(o, hex, 6);
	return 1;
}

static void
put_text(struct json_out *o, struct span s)
{
	size_t i = 0, plain;

	put_char(o, '"');
	while (i < s.n) {
		for (plain = i; plain < s.n && s.p[plain] >= 0x20 && s.p[plain] < 0x80 &&
		                s.p[plain] != '"' && s.p[plain] != '\\';)
			plain++;
		if (plain > i)
			put(o, (const char *)s.p + i, plain - i);
		i = plain;
		if (i < s.n)
			i += put_special(o, s.p + i, s.n - i);
	}
	put_char(o, '"');
}

/* ---- values ---- */

static bool
is_wanted(struct json_out *o, const char *name, size_t n)
{
	const struct columns *level = o->depth > 0 ? o->wanted[o->depth - 1] : NULL, *k;

	if (level == NULL) {
		o->next = NULL;
		return true;
	}
	k = column_find(level, name, n);
	if (k == NULL)
		return false;
	o->next = k->is_whole ? NULL : k;
	return true;
}

bool
out_key_n(struct json_out *o, const char *name, size_t n)
{
	return out_key_span(o, span_of(name, n));
}

bool
out_key_span(struct json_out *o, struct span name)
{
	if (!is_wanted(o, (const char *)name.p, name.n))
		return false;
	if (o->caught != NULL)
		return true;
	put_comma(o);
	put_text(o, name);
	put_char(o, ':');
	o->comma = false;
	return true;
}

bool
out_wants(const struct json_out *o, const char *const *names)
{
	const struct columns *level = o->depth > 0 ? o->wanted[o->depth - 1] : NULL;

	if (level == NULL)
		return true;
	while (*names != NULL && column_find(level, *names, strlen(*names)) == NULL)
		names++;
	return *names != NULL;
}

/* What is caught is not in a list, and not in what is wanted as a whole. */
static bool
caught(struct json_out *o, enum scalar_kind kind, double number, struct span text)
{
	if (o->caught == NULL)
		return false;
	if (o->next == NULL) {
		*o->caught = (struct scalar){ kind, number, text };
		o->has_caught = true;
	}
	return true;
}

void
out_begin(struct json_out *o, char bracket)
{
	assert(o->depth < JSON_DEPTH);
	o->wanted[o->depth++] = o->next;
	if (o->caught != NULL) {
		if (o->next == NULL) /* no scalar: nothing in it is what is looked for */
			o->next = o->wanted[o->depth - 1] = &nothing;
		return;
	}
	put_comma(o);
	put_char(o, bracket);
	o->comma = false;
}

void
out_end(struct json_out *o, char bracket)
{
	const struct columns *wanted = o->wanted[--o->depth];

	/* of a list each item is as the list */
	o->next = o->depth > 0 ? o->wanted[o->depth - 1] : NULL;
	if (o->caught != NULL)
		return;
	if (bracket == '}' && wanted != NULL && o->p[o->n - 1] == '{') {
		o->p[o->n - 1] = '[';
		bracket = ']';
	}
	put_char(o, bracket);
	o->comma = true;
}

void
out_int(struct json_out *o, int64_t v)
{
	if (caught(o, SCALAR_NUMBER, (double)v, span_of(NULL, 0)))
		return;
	put_comma(o);
	o->n += (size_t)snprintf(room(o, 24), 24, "%" PRId64, v);
}

void
out_uint(struct json_out *o, uint64_t v)
{
	char digits[24];
	size_t i = sizeof digits;

	if (caught(o, SCALAR_NUMBER, (double)v, span_of(NULL, 0)))
		return;
	put_comma(o);
	do {
		digits[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	put(o, digits + i, sizeof digits - i);
}

void
out_number(struct json_out *o, double v)
{
	char text[40];
	int n;

	if (!isfinite(v)) {
		out_null(o);
		return;
	}
	if (caught(o, SCALAR_NUMBER, v, span_of(NULL, 0)))
		return;
	put_comma(o);
	if (v == 0) { /* most rates */
		put(o, "0.0", 3);
		return;
	}
	n = snprintf(text, sizeof text, "%.15g", v);
	if (strtod(text, NULL) != v)
		n = snprintf(text, sizeof text, "%.17g", v);
	put(o, text, (size_t)n);
	if (strpbrk(text, ".e") == NULL)
		put(o, ".0", 2);
}

void
out_truth(struct json_out *o, bool v)
{
	if (caught(o, v ? SCALAR_TRUE : SCALAR_FALSE, 0, span_of(NULL, 0)))
		return;
	put_comma(o);
	put(o, v ? "true" : "false", v ? 4 : 5);
}

void
out_null(struct json_out *o)
{
	if (caught(o, SCALAR_NULL, 0, span_of(NULL, 0)))
		return;
	put_comma(o);
	put(o, "null", 4);
}

void
out_text(struct json_out *o, struct span v)
{
	if (o->caught != NULL) {
		o->n = 0;
		put(o, (const char *)v.p, v.n);
		(void)caught(o, SCALAR_TEXT, 0, span_of(o->p, o->n));
		return;
	}
	put_comma(o);
	put_text(o, v);
}

void
out_text_or_null(struct json_out *o, struct span v)
{
	if (v.p != NULL)
		out_text(o, v);
	else
		out_null(o);
}

void
out_raw(struct json_out *o, struct span json)
{
	if (o->caught != NULL)
		return;
	put_comma(o);
	put(o, (const char *)json.p, json.n);
}
