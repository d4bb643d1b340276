/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/metric_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/attr.h"
#include "base/mem.h"
#include "base/utf8.h"

enum {
	TEXT_FIRST = 1 << 10,
	TEXT_BLOCK = 128 << 10, /* so much is handed on at once */
	NUMBER = 32
};

/* What is handed on once will grow further: then a block is taken whole. */
static void
reserve(struct metric_text *t, size_t n)
{
	size_t cap = t->cap > 0 ? t->cap : t->whole != NULL ? TEXT_BLOCK : TEXT_FIRST;

	if (t->n + n <= t->cap)
		return;
	while (cap < t->n + n)
		cap *= 2;
	t->p = xrealloc(t->p, cap);
	t->cap = cap;
}

static void
free_block(const void *p UNUSED, size_t n UNUSED, void *block)
{
	free(block);
}

/* A block that is mostly full goes as it is, which saves a copy of all that large answers consist of. */
static void
hand_on(struct metric_text *t)
{
	bool whole = t->n > t->cap / 2;

	if (t->whole == NULL && (t->whole = evbuffer_new()) == NULL)
		mem_exhausted(0, __builtin_return_address(0));
	if (t->n == 0)
		return;
	if (whole ? evbuffer_add_reference(t->whole, t->p, t->n, free_block, t->p) < 0
	          : evbuffer_add(t->whole, t->p, t->n) < 0)
		mem_exhausted(t->n, __builtin_return_address(0));
	if (whole) {
		t->p = NULL;
		t->cap = 0;
	}
	t->n = 0;
}

void
metric_text_fini(struct metric_text *t)
{
	if (t->whole != NULL)
		evbuffer_free(t->whole);
	free(t->p);
	*t = (struct metric_text){ 0 };
}

void
metric_text_move(struct metric_text *t, struct evbuffer *to)
{
	hand_on(t);
	(void)evbuffer_add_buffer(to, t->whole);
	t->bytes = 0;
}

void
metric_put(struct metric_text *t, const void *p, size_t n)
{
	if (t->n + n > TEXT_BLOCK)
		hand_on(t);
	reserve(t, n);
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->bytes += n;
}

void
metric_puts(struct metric_text *t, const char *text)
{
	metric_put(t, text, strlen(text));
}

void
metric_head(struct metric_text *t, const char *prefix, const char *name, enum metric_kind kind,
    const char *help)
{
	static const char *const kinds[] = { [METRIC_COUNTER] = "counter",
		[METRIC_GAUGE] = "gauge",
		[METRIC_UNTYPED] = "untyped",
		[METRIC_HISTOGRAM] = "histogram" };
	const char *const pieces[] = { "# HELP ", prefix, name, " ", help, "\n# TYPE ", prefix,
		name, " ", kinds[kind], "\n" };

	for (size_t i = 0; i < COUNT_OF(pieces); i++)
		metric_puts(t, pieces[i]);
}

/* ---- labels ---- */

/* Is it a byte that stands for itself? */
static bool
is_plain(uint8_t c)
{
	return c < 0x80 && c != '"' && c != '\\' && c != '\n' && c != '\0';
}

/* What begins at p; returns how many bytes of it were taken. */
static size_t
put_special(struct metric_text *t, const uint8_t *p, size_t n)
{
	uint32_t code;
	size_t len;
	char hex[8];

	if (*p == '\n') {
		metric_put(t, "\\n", 2);
		return 1;
	}
	if (*p == '"' || *p == '\\') {
		metric_put(t, "\\", 1);
		metric_put(t, p, 1);
		return 1;
	}
	len = *p != '\0' ? utf8_decode(p, n, &code) : 0;
	if (len > 0) {
		metric_put(t, p, len);
		return len;
	}
	(void)snprintf(hex, sizeof hex, "\\\\x%02x", *p);
	metric_puts(t, hex);
	return 1;
}

void
metric_label(struct metric_text *t, const char *name, struct span value)
{
	metric_puts(t, name);
	metric_put(t, "=\"", 2);
	for (size_t at = 0; at < value.n;) {
		size_t from = at;

		while (at < value.n && is_plain(value.p[at]))
			at++;
		metric_put(t, value.p + from, at - from);
		if (at < value.n)
			at += put_special(t, value.p + at, value.n - at);
	}
	metric_put(t, "\"", 1);
}

/* ---- values ---- */

static size_t
write_integer(char *end, uint64_t v)
{
	size_t n = 0;

	do {
		*--end = (char)('0' + v % 10);
		n++;
	} while ((v /= 10) > 0);
	return n;
}

/* At most NUMBER bytes; returns how many. */
static size_t
write_number(char *to, double value)
{
	char text[NUMBER];
	size_t n;

	if (value >= 0 && value < 0x1p63 && (double)(uint64_t)value == value) {
		n = write_integer(text + sizeof text, (uint64_t)value);
		memcpy(to, text + sizeof text - n, n);
		return n;
	}
	if (isnan(value)) {
		memcpy(to, "NaN", 3);
		return 3;
	}
	return (size_t)snprintf(to, NUMBER, "%.12g", value);
}

void
metric_value(struct metric_text *t, double value)
{
	metric_row(t, NULL, 0, NULL, 0, value);
}

void
metric_row(struct metric_text *t, const char *head, size_t head_n, const char *labels,
    size_t labels_n, double value)
{
	size_t most = head_n + labels_n + NUMBER + 3;
	char *p;

	if (t->n + most > TEXT_BLOCK)
		hand_on(t);
	reserve(t, most);
	p = t->p + t->n;
	if (head_n > 0) {
		memcpy(p, head, head_n);
		p += head_n;
		if (labels_n > 0)
			memcpy(p, labels, labels_n);
		p += labels_n;
		*p++ = '}';
	}
	*p++ = ' ';
	p += write_number(p, value);
	*p++ = '\n';
	t->bytes += (size_t)(p - t->p) - t->n;
	t->n = (size_t)(p - t->p);
}

void
metric_sample(
    struct metric_text *t, const char *prefix, const char *name, const char *labels, double value)
{
	metric_puts(t, prefix);
	metric_puts(t, name);
	if (labels != NULL) {
		metric_put(t, "{", 1);
		metric_puts(t, labels);
		metric_put(t, "}", 1);
	}
	metric_value(t, value);
}

static void
put_bucket(
    struct metric_text *t, const char *name, const char *labels, const char *bound, uint64_t count)
{
	metric_puts(t, name);
	metric_puts(t, "_bucket{");
	if (labels != NULL) {
		metric_puts(t, labels);
		metric_put(t, ",", 1);
	}
	metric_puts(t, "le=\"");
	metric_puts(t, bound);
	metric_puts(t, "\"}");
	metric_value(t, (double)count);
}

void
metric_histogram(struct metric_text *t, const char *name, const char *labels, const char *help,
    const struct histogram *h, const uint64_t *bounds, double unit)
{
	char bound[NUMBER];
	uint64_t count = 0;
	unsigned i = 0;

	metric_head(t, "", name, METRIC_HISTOGRAM, help);
	for (; bounds[i] != 0; i++) {
		count += h->count[i];
		(void)snprintf(bound, sizeof bound, "%.12g", (double)bounds[i] / unit);
		put_bucket(t, name, labels, bound, count);
	}
	count += h->count[i];
	put_bucket(t, name, labels, "+Inf", count);
	metric_sample(t, name, "_sum", labels, (double)h->sum / unit);
	metric_sample(t, name, "_count", labels, (double)count);
}
