/* SPDX-License-Identifier: Apache-2.0
 * The header x-delay. It has any integer type or is text, as those who publish have it; with a type that has no
 * negative numbers it becomes a 64-bit one when its sign is changed. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/delay.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/table.h"

static const char X_DELAY[] = "x-delay";

/* A sign if one likes, and digits. *ms: more than DELAY_MAX if it is too large; 0 if it is negative. */
static bool
read_text(struct span text, uint64_t *ms)
{
	size_t i = text.n > 0 && (text.p[0] == '+' || text.p[0] == '-');
	uint64_t v = 0;

	if (i == text.n)
		return false;
	for (; i < text.n; i++) {
		if (text.p[i] < '0' || text.p[i] > '9')
			return false;
		if (v <= DELAY_MAX)
			v = v * 10 + (text.p[i] - '0');
	}
	*ms = text.p[0] == '-' ? 0 : v;
	return true;
}

static bool
read_delay(const struct field *f, uint64_t *ms)
{
	if (f->kind == 'S')
		return read_text(f->bytes, ms);
	if (!field_is_integer(f))
		return false;
	*ms = f->integer > 0 ? (uint64_t)f->integer : 0;
	return true;
}

enum delay_wish
delay_wish(struct span headers, uint64_t *ms)
{
	struct field f;
	uint64_t v;

	if (headers.n == 0 || !table_find(headers, X_DELAY, &f))
		return DELAY_NONE;
	if (!read_delay(&f, &v) || v > DELAY_MAX)
		return DELAY_INVALID;
	if (v == 0)
		return DELAY_NONE;
	*ms = v;
	return DELAY_WANTED;
}

const struct error *
delay_refuse(struct span headers)
{
	char value[200];
	struct field f;
	uint64_t ms;
	bool found = table_find(headers, X_DELAY, &f);

	assert(found);
	field_text(&f, value, sizeof value);
	if (!read_delay(&f, &ms))
		return error_make(E_PRECONDITION_FAILED,
		    "invalid header 'x-delay' of type %s: '%s' is no integer", field_type_name(&f),
		    value);
	return error_make(E_PRECONDITION_FAILED,
	    "invalid header 'x-delay': '%s' is more than %llu ms", value, DELAY_MAX);
}

uint64_t
delay_due_ms(const struct msg *m)
{
	struct props pr;
	uint64_t ms = 0;

	if (props_scan(msg_props(m), &pr) == 0)
		(void)delay_wish(pr.headers, &ms);
	return m->arrived_ms + ms;
}

static void
negate(struct field *f, uint8_t text[32])
{
	uint64_t ms = 0;
	bool valid = read_delay(f, &ms);

	assert(valid && ms <= DELAY_MAX);
	if (f->kind == 'S') {
		f->bytes.n = (size_t)snprintf((char *)text, 32, "-%" PRIu64, ms);
		f->bytes.p = text;
		return;
	}
	f->integer = -(int64_t)ms;
	if (strchr("Bui", f->kind) != NULL)
		f->kind = 'l';
}

uint8_t *
delay_negate(struct span headers, size_t *n)
{
	struct table_writer w;
	struct field f;
	uint8_t text[32];
	size_t at = 0, from = 0;
	bool done = false;

	/* At most one field changes, by a few bytes. */
	table_writer_init(&w, (uint32_t)headers.n + sizeof text);
	while (table_next(headers, &at, &f)) {
		if (!done && span_is(f.name, X_DELAY)) {
			done = true;
			negate(&f, text);
			table_put_field(&w, &f);
		} else {
			table_put_raw(&w, span_of(headers.p + from, at - from));
		}
		from = at;
	}
	if (w.failed) {
		table_writer_fini(&w);
		return NULL;
	}
	*n = w.n;
	return w.p;
}
