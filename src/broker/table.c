/* SPDX-License-Identifier: Apache-2.0
 * Field tables in place: checked once, then walked and compared without copies. Every read looks at what is left
 * first, so that an unchecked table ends a walk early but is never read beyond its end. */
#include "broker/table.h"

#include <amqp.h>
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	ENCODED_MAX = 1 << 20, /* bytes of a table that came decoded */
	ENCODED_FIRST = 1 << 10,
};

/* Bytes of a value behind its tag: fixed ones + 1; LENGTH: a 32-bit length and as many bytes; 0: no such tag. */
enum { LENGTH = 255 };
static const uint8_t value_size[256] = {
	['t'] = 2,
	['b'] = 2,
	['B'] = 2,
	['s'] = 3,
	['u'] = 3,
	['I'] = 5,
	['i'] = 5,
	['l'] = 9,
	['L'] = 9,
	['f'] = 5,
	['d'] = 9,
	['D'] = 6,
	['T'] = 9,
	['V'] = 1,
	['S'] = LENGTH,
	['x'] = LENGTH,
	['A'] = LENGTH,
	['F'] = LENGTH,
};

/* The next field's borders: name, kind, bytes of the value without a length. *at moves behind it. */
static inline bool
field_frame(struct span raw, size_t *at, bool named, struct field *f)
{
	size_t i = *at, n;

	if (i >= raw.n)
		return false;
	f->name = span_of(NULL, 0);
	if (named) {
		n = raw.p[i++];
		if (raw.n - i <= n) /* the tag comes behind it */
			return false;
		f->name = span_of(raw.p + i, n);
		i += n;
	}
	f->kind = raw.p[i++];
	n = value_size[f->kind];
	if (n == 0)
		return false;
	if (n == LENGTH) {
		if (raw.n - i < 4)
			return false;
		n = get_be32(raw.p + i);
		i += 4;
	} else {
		n--;
	}
	if (raw.n - i < n)
		return false;
	f->bytes = span_of(raw.p + i, n);
	*at = i + n;
	return true;
}

static void
field_decode(struct field *f)
{
	const uint8_t *p = f->bytes.p;
	uint32_t bits;
	uint64_t wide;
	float single;

	f->truth = false;
	f->integer = 0;
	f->number = 0;
	switch (f->kind) {
	case 't': f->truth = p[0] != 0; break;
	case 'b': f->integer = (int8_t)p[0]; break;
	case 'B': f->integer = p[0]; break;
	case 's': f->integer = (int16_t)get_be16(p); break;
	case 'u': f->integer = get_be16(p); break;
	case 'I': f->integer = (int32_t)get_be32(p); break;
	case 'i': f->integer = get_be32(p); break;
	case 'l':
	case 'L':
	case 'T': f->integer = (int64_t)get_be64(p); break;
	case 'f':
		bits = get_be32(p);
		memcpy(&single, &bits, sizeof single);
		f->number = (double)single;
		break;
	case 'd':
		wide = get_be64(p);
		memcpy(&f->number, &wide, sizeof f->number);
		break;
	default: break;
	}
}

static inline bool
is_cc(struct span name)
{
	return (name.n == 2 && memcmp(name.p, "CC", 2) == 0) ||
	       (name.n == 3 && memcmp(name.p, "BCC", 3) == 0);
}

/* Recursion is at most depth_max deep. */
static int
check(struct span raw, bool named, unsigned depth_max, bool *has_cc)
{
	struct field f;
	size_t at = 0;
	int rc;

	if (depth_max == 0)
		return -E2BIG;
	while (at < raw.n) {
		if (!field_frame(raw, &at, named, &f))
			return -EINVAL;
		if (has_cc != NULL && is_cc(f.name))
			*has_cc = true;
		if (f.kind != 'F' && f.kind != 'A')
			continue;
		rc = check(f.bytes, f.kind == 'F', depth_max - 1, NULL);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int
table_check(struct span raw, unsigned depth_max)
{
	return check(raw, true, depth_max, NULL);
}

int
table_check_headers(struct span raw, unsigned depth_max, bool *has_cc)
{
	*has_cc = false;
	return check(raw, true, depth_max, has_cc);
}

bool
table_next(struct span raw, size_t *at, struct field *f)
{
	if (!field_frame(raw, at, true, f))
		return false;
	field_decode(f);
	return true;
}

bool
array_next(struct span raw, size_t *at, struct field *f)
{
	if (!field_frame(raw, at, false, f))
		return false;
	field_decode(f);
	return true;
}

bool
table_find(struct span raw, const char *name, struct field *f)
{
	size_t at = 0, n = strlen(name);

	while (field_frame(raw, &at, true, f)) {
		if (f->name.n == n && memcmp(f->name.p, name, n) == 0) {
			field_decode(f);
			return true;
		}
	}
	return false;
}

struct table *
table_from_raw(struct span raw)
{
	struct table *t;

	assert(raw.n <= UINT32_MAX);
	if (raw.n == 0)
		return NULL;
	t = xmalloc(sizeof *t + raw.n);
	t->n = (uint32_t)raw.n;
	memcpy(t->raw, raw.p, raw.n);
	return t;
}

int
table_try_copy(struct span raw, struct table **out)
{
	struct table *t = NULL;

	if (raw.n > UINT32_MAX - sizeof *t)
		return -E2BIG;
	if (raw.n > 0) {
		t = try_malloc(sizeof *t + raw.n);
		if (t == NULL)
			return -ENOMEM;
		t->n = (uint32_t)raw.n;
		memcpy(t->raw, raw.p, raw.n);
	}
	*out = t;
	return 0;
}

/* Encodes with a buffer that doubles until it is large enough. The library writes the 32-bit length first: it lands
 * in `n`, in network order, and the content where it belongs. */
static int
encode(const amqp_table_t *in, size_t size, struct table **out)
{
	amqp_table_t *decoded = (amqp_table_t *)(uintptr_t)in; /* only read */
	struct table *t = try_malloc(sizeof *t + size);
	size_t used = 0;
	int rc;

	if (t == NULL)
		return -ENOMEM;
	rc = amqp_encode_table((amqp_bytes_t){ sizeof *t + size, t }, decoded, &used);
	if (rc == AMQP_STATUS_OK && used == sizeof *t + get_be32((const uint8_t *)t)) {
		t->n = (uint32_t)(used - sizeof *t);
		*out = t;
		return 0;
	}
	free(t);
	return rc == AMQP_STATUS_TABLE_TOO_BIG ? -E2BIG : -EINVAL;
}

int
table_from_amqp(const struct amqp_table_t_ *in, struct table **out)
{
	struct table *t = NULL;
	size_t size = ENCODED_FIRST;
	int rc;

	_Static_assert(offsetof(struct table, raw) == 4, "the length stands before the content");
	if (in->num_entries == 0) {
		*out = NULL;
		return 0;
	}
	while ((rc = encode(in, size, &t)) == -E2BIG && size < ENCODED_MAX)
		size *= 2;
	if (rc != 0)
		return rc;
	rc = table_check(table_span(t), TABLE_DEPTH_MAX);
	if (rc != 0) {
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

void
table_free(struct table **tp)
{
	free(*tp);
	*tp = NULL;
}

/* Order by name, then by bytes; fields of equal names keep their order, as it matters for them. */
struct sorted {
	struct span name, whole;
	size_t place;
};

static int
sorted_compare(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;
	size_t n = x->name.n < y->name.n ? x->name.n : y->name.n;
	int c = n > 0 ? memcmp(x->name.p, y->name.p, n) : 0;

	if (c != 0)
		return c;
	if (x->name.n != y->name.n)
		return x->name.n < y->name.n ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static struct sorted *
sort_fields(struct span raw, size_t *count)
{
	struct sorted *s;
	struct field f;
	size_t at = 0, from = 0, n = 0;

	while (field_frame(raw, &at, true, &f))
		n++;
	s = try_malloc((n > 0 ? n : 1) * sizeof *s);
	if (s == NULL)
		return NULL;
	at = 0;
	for (n = 0; field_frame(raw, &at, true, &f); n++) {
		s[n] = (struct sorted){ f.name, span_of(raw.p + from, at - from), n };
		from = at;
	}
	qsort(s, n, sizeof *s, sorted_compare);
	*count = n;
	return s;
}

bool
table_equal(const struct table *a, const struct table *b)
{
	struct span x = table_span(a), y = table_span(b);
	struct sorted *s = NULL, *t = NULL;
	size_t i, n = 0, m = 0;
	bool equal = false;

	if (x.n != y.n)
		return false;
	if (x.n == 0 || memcmp(x.p, y.p, x.n) == 0)
		return true;
	s = sort_fields(x, &n);
	t = sort_fields(y, &m);
	if (s != NULL && t != NULL && n == m) {
		equal = true;
		for (i = 0; i < n && equal; i++)
			equal = span_eq(s[i].whole, t[i].whole);
	}
	free(s);
	free(t);
	return equal;
}

bool
field_is_integer(const struct field *f)
{
	return f->kind != '\0' && strchr("bBsuIilL", f->kind) != NULL;
}

static bool
is_float(const struct field *f)
{
	return f->kind == 'f' || f->kind == 'd';
}

static bool
is_whole(const struct field *f)
{
	return f->kind == 'T' || field_is_integer(f);
}

static bool
is_text(const struct field *f)
{
	return f->kind == 'S' || f->kind == 'x';
}

/* A timestamp of 2^63 and above equals no integer. */
static bool
is_huge(const struct field *f)
{
	return f->kind == 'T' && f->integer < 0;
}

/* Exact: no integer is rounded. */
static bool
integer_is_number(const struct field *whole, double number)
{
	if (is_huge(whole))
		return number >= 0x1p63 && number < 0x1p64 &&
		       (uint64_t)number == (uint64_t)whole->integer;
	return number >= -0x1p63 && number < 0x1p63 && (double)(int64_t)number == number &&
	       (int64_t)number == whole->integer;
}

bool
field_equal(const struct field *a, const struct field *b)
{
	if (is_whole(a) && is_whole(b))
		return a->integer == b->integer && is_huge(a) == is_huge(b);
	if (is_float(a) && is_float(b))
		return a->number == b->number;
	if (is_whole(a) && is_float(b))
		return integer_is_number(a, b->number);
	if (is_float(a) && is_whole(b))
		return integer_is_number(b, a->number);
	if (is_text(a) && is_text(b))
		return span_eq(a->bytes, b->bytes);
	/* An empty array and an empty table are the same to RabbitMQ. */
	if ((a->kind == 'A' || a->kind == 'F') && (b->kind == 'A' || b->kind == 'F'))
		return (a->kind == b->kind || a->bytes.n == 0) && span_eq(a->bytes, b->bytes);
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case 't': return a->truth == b->truth;
	case 'V': return true;
	default: return span_eq(a->bytes, b->bytes); /* D */
	}
}
