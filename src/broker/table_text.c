/* SPDX-License-Identifier: Apache-2.0
 * Fields in words: type names and values as RabbitMQ's refusals print them, which is Erlang's notation. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "broker/table.h"

const char *
field_type_name(const struct field *f)
{
	switch (f->kind) {
	case 't': return "bool";
	case 'b': return "byte";
	case 'B': return "unsignedbyte";
	case 's': return "short";
	case 'u': return "unsignedshort";
	case 'I': return "signedint";
	case 'i': return "unsignedint";
	case 'l':
	case 'L': return "long";
	case 'f': return "float";
	case 'd': return "double";
	case 'D': return "decimal";
	case 'S': return "longstr";
	case 'x': return "binary";
	case 'T': return "timestamp";
	case 'V': return "void";
	case 'A': return "array";
	case 'F': return "table";
	default: return "unknown";
	}
}

/* Text that is cut at the end of its buffer; `full` stops walks of large tables early. */
struct text {
	char *p;
	size_t n, cap;
	bool full;
};

static void PRINTF(2, 3) put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->full)
		return;
	va_start(ap, fmt);
	n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= t->cap - t->n) {
		t->full = true;
		t->n = utf8_cut(t->p, t->cap - 1, t->cap - 1);
		t->p[t->n] = '\0';
	} else {
		t->n += (size_t)n;
	}
}

static bool
is_printable(struct span s)
{
	size_t i;

	for (i = 0; i < s.n; i++) {
		if (s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	}
	return s.n == 0 || utf8_valid(s.p, s.n);
}

/* <<"text">>, or <<1,2,3>> when it cannot be printed. */
static void
put_binary(struct text *t, struct span s)
{
	bool text = is_printable(s) && s.n > 0;
	size_t i;

	put(t, text ? "<<\"" : "<<");
	for (i = 0; i < s.n && !t->full; i++) {
		if (!text)
			put(t, i > 0 ? ",%u" : "%u", s.p[i]);
		else if (s.p[i] == '"' || s.p[i] == '\\')
			put(t, "\\%c", s.p[i]);
		else
			put(t, "%c", s.p[i]);
	}
	put(t, text ? "\">>" : ">>");
}

/* The shortest digits that give the same number again, always with a point: 1.5, 1.0e308. */
static void
put_number(struct text *t, double d)
{
	char s[40], *e;
	int precision = 1;

	if (!isfinite(d)) {
		put(t, "%s", isnan(d) ? "nan" : d > 0 ? "inf" : "-inf");
		return;
	}
	do
		snprintf(s, sizeof s, "%.*g", precision, d);
	while (strtod(s, NULL) != d && precision++ < 17);
	e = strchr(s, 'e');
	if (e != NULL)
		*e++ = '\0';
	put(t, "%s%s", s, strchr(s, '.') == NULL ? ".0" : "");
	if (e != NULL)
		put(t, "e%d", (int)strtol(e, NULL, 10));
}

static void put_value(struct text *t, const struct field *f, unsigned depth);

static void
put_list(struct text *t, const struct field *f, unsigned depth)
{
	struct field g;
	size_t at = 0;
	bool named = f->kind == 'F';

	put(t, "[");
	while (
	    !t->full && (named ? table_next(f->bytes, &at, &g) : array_next(f->bytes, &at, &g))) {
		put(t, t->p[t->n - 1] == '[' ? "{" : ",{");
		if (named) {
			put_binary(t, g.name);
			put(t, ",");
		}
		put(t, "%s,", field_type_name(&g));
		put_value(t, &g, depth + 1);
		put(t, "}");
	}
	put(t, "]");
}

static void
put_value(struct text *t, const struct field *f, unsigned depth)
{
	switch (f->kind) {
	case 't': put(t, "%s", f->truth ? "true" : "false"); break;
	case 'f':
	case 'd': put_number(t, f->number); break;
	case 'D': put(t, "{%u,%" PRIu32 "}", f->bytes.p[0], get_be32(f->bytes.p + 1)); break;
	case 'T': put(t, "%" PRIu64, (uint64_t)f->integer); break;
	case 'V': put(t, "undefined"); break;
	case 'S':
	case 'x': put_binary(t, f->bytes); break;
	case 'A':
	case 'F':
		if (depth < TABLE_DEPTH_MAX)
			put_list(t, f, depth);
		break;
	default: put(t, "%" PRId64, f->integer); break;
	}
}

const char *
field_term(const struct field *f, char *buf, size_t n)
{
	struct text t = { buf, 0, n, n == 0 };

	if (n > 0)
		buf[0] = '\0';
	put_value(&t, f, 0);
	return buf;
}

const char *
field_text(const struct field *f, char *buf, size_t n)
{
	size_t len = f->bytes.n;

	if ((f->kind != 'S' && f->kind != 'x') || n == 0)
		return field_term(f, buf, n);
	if (len > n - 1)
		len = utf8_cut((const char *)f->bytes.p, len, n - 1);
	if (len > 0)
		memcpy(buf, f->bytes.p, len);
	buf[len] = '\0';
	return buf;
}
