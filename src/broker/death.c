/* SPDX-License-Identifier: Apache-2.0
 * The headers of dead letters: see the header. The order of the tables is RabbitMQ's: each death puts its own in front
 * and turns the others round, if they are two or more. A death in the same queue for the same reason as an earlier one
 * raises that one's count and changes nothing else of it. */
#include "broker/death.h"

enum {
	LOOK_MAX = 128,  /* tables looked at */
	FIELDS_MAX = 16, /* of a table that is put in order */
	TABLE_EMPTY = 4  /* the length before the content */
};

/* An earlier death. */
struct event {
	struct span table, queue, reason; /* p NULL: says nothing of it */
	uint32_t times;                   /* so many tables say the same */
};

struct events {
	struct event item[DEATH_EVENTS_MAX];
	unsigned n;
	unsigned tables; /* looked at */
};

static const char *const first_names[] = { "x-first-death-reason", "x-first-death-queue",
	"x-first-death-exchange" };

/* ---- reading ---- */

static struct span
text_of(struct span table, const char *name)
{
	struct field f;

	return table_find(table, name, &f) && f.kind == 'S' ? f.bytes : span_of(NULL, 0);
}

static bool
same(const struct event *e, struct span queue, struct span reason)
{
	return span_eq(e->queue, queue) && span_eq(e->reason, reason);
}

static void
collect(struct span list, struct events *to)
{
	struct field f;
	size_t at = 0;

	to->n = to->tables = 0;
	while (to->tables < LOOK_MAX && array_next(list, &at, &f)) {
		struct event e = { .table = f.bytes, .times = 1 };
		unsigned i = 0;

		if (f.kind != 'F')
			continue;
		to->tables++;
		e.queue = text_of(e.table, "queue");
		e.reason = text_of(e.table, "reason");
		while (i < to->n && !same(&to->item[i], e.queue, e.reason))
			i++;
		if (i < to->n)
			to->item[i].times++;
		else if (i < DEATH_EVENTS_MAX)
			to->item[to->n++] = e;
	}
}

void
death_path_read(struct span headers, struct death_path *out)
{
	struct field list, f;
	size_t at = 0;

	out->n = 0;
	if (!table_find(headers, "x-death", &list) || list.kind != 'A')
		return;
	while (out->n < DEATH_PATH_MAX && array_next(list.bytes, &at, &f)) {
		/* What nobody but a client can have written speaks for a client in the cycle. */
		if (f.kind != 'F' || span_is(text_of(f.bytes, "reason"), "rejected"))
			return;
		out->queue[out->n++] = text_of(f.bytes, "queue");
	}
}

bool
death_is_cycle(const struct death_path *path, struct span queue)
{
	for (unsigned i = 0; i < path->n; i++) {
		if (span_eq(path->queue[i], queue))
			return true;
	}
	return false;
}

static bool
any_says(struct span headers, const char *name, struct span value)
{
	struct field list, f;
	size_t at = 0;

	if (headers.p == NULL || !table_find(headers, "x-death", &list) || list.kind != 'A')
		return false;
	for (unsigned i = 0; i < LOOK_MAX && array_next(list.bytes, &at, &f); i++) {
		if (f.kind == 'F' && span_eq(text_of(f.bytes, name), value))
			return true;
	}
	return false;
}

bool
death_was_in(struct span headers, struct span queue)
{
	return any_says(headers, "queue", queue);
}

bool
death_came_by(struct span headers, struct span exchange)
{
	return any_says(headers, "exchange", exchange);
}

static uint64_t
number_of(struct span table, const char *name)
{
	struct field f;

	if (!table_find(table, name, &f) || !(field_is_integer(&f) || f.kind == 'T') ||
	    f.integer < 0)
		return 0;
	return (uint64_t)f.integer;
}

static void
read_first(struct span table, struct death_history *out)
{
	struct field f;

	out->first.queue = text_of(table, "queue");
	out->first.reason = text_of(table, "reason");
	out->first.exchange = text_of(table, "exchange");
	out->first.time_s = number_of(table, "time");
	out->first.expiration = text_of(table, "original-expiration");
	out->first.keys = span_of(NULL, 0);
	if (table_find(table, "routing-keys", &f) && f.kind == 'A')
		out->first.keys = f.bytes;
}

bool
death_read(struct span headers, struct death_history *out)
{
	struct span queue, reason;
	bool found = false;
	struct field list, f;
	size_t at = 0;

	*out = (struct death_history){ 0 };
	if (headers.p == NULL || !table_find(headers, "x-death", &list) || list.kind != 'A')
		return false;
	reason = text_of(headers, first_names[0]);
	queue = text_of(headers, first_names[1]);
	for (unsigned i = 0; i < LOOK_MAX && array_next(list.bytes, &at, &f);) {
		struct event e = { .table = f.bytes };
		uint64_t count;

		if (f.kind != 'F')
			continue;
		e.queue = text_of(e.table, "queue");
		e.reason = text_of(e.table, "reason");
		count = number_of(e.table, "count");
		out->count += count > 0 ? count : 1;
		if (i++ == 0) {
			out->reason = e.reason;
			read_first(e.table, out);
		} else if (!found && number_of(e.table, "time") < out->first.time_s) {
			read_first(e.table, out);
		}
		if (!found && queue.p != NULL && reason.p != NULL && same(&e, queue, reason)) {
			read_first(e.table, out);
			found = true;
		}
	}
	return out->count > 0;
}

/* ---- writing ---- */

static void
put_text(struct table_writer *w, const char *name, struct span value)
{
	struct field f = { .name = span_str(name), .kind = 'S', .bytes = value };

	table_put_field(w, &f);
}

static void
put_number(struct table_writer *w, const char *name, uint8_t kind, uint64_t value)
{
	struct field f = { .name = span_str(name), .kind = kind, .integer = (int64_t)value };

	table_put_field(w, &f);
}

/* The kind of what follows, and room for a length; closed by table_end(). */
static uint32_t
begin(struct table_writer *w, uint8_t kind)
{
	const uint8_t head[1 + TABLE_EMPTY] = { kind };

	table_put_raw(w, span_of(head, sizeof head));
	return w->n;
}

static uint32_t
begin_named(struct table_writer *w, const char *name, uint8_t kind)
{
	uint8_t n = (uint8_t)strlen(name);

	table_put_raw(w, span_of(&n, 1));
	table_put_raw(w, span_of(name, n));
	return begin(w, kind);
}

static void
put_key(struct table_writer *w, struct span key)
{
	uint32_t mark = begin(w, 'S');

	table_put_raw(w, key);
	table_end(w, mark);
}

/* The message's key and those of CC. */
static void
put_keys(struct table_writer *w, const struct death *d, struct span headers)
{
	uint32_t mark = begin_named(w, "routing-keys", 'A');
	struct field cc, f;
	size_t at = 0;

	put_key(w, d->key);
	if (table_find(headers, "CC", &cc) && cc.kind == 'A') {
		while (array_next(cc.bytes, &at, &f)) {
			if (f.kind == 'S')
				put_key(w, f.bytes);
		}
	}
	table_end(w, mark);
}

/* The order of the fields depends on whether there was a list: nobody should care, but RabbitMQ does it so. */
static void
put_new(struct table_writer *w, const struct death *d, struct span headers, bool sorted)
{
	uint32_t mark = begin(w, 'F');

	put_number(w, "count", 'l', 1);
	if (sorted) {
		put_text(w, "exchange", d->exchange);
		if (d->expiration.p != NULL)
			put_text(w, "original-expiration", d->expiration);
		put_text(w, "queue", d->queue);
		put_text(w, "reason", d->reason);
		put_keys(w, d, headers);
		put_number(w, "time", 'T', d->time_s);
	} else {
		put_text(w, "reason", d->reason);
		put_text(w, "queue", d->queue);
		put_number(w, "time", 'T', d->time_s);
		put_text(w, "exchange", d->exchange);
		put_keys(w, d, headers);
		if (d->expiration.p != NULL)
			put_text(w, "original-expiration", d->expiration);
	}
	table_end(w, mark);
}

static bool
comes_before(struct span a, struct span b)
{
	int order = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return order < 0 || (order == 0 && a.n < b.n);
}

/* The table with another count, its fields by name. One with more fields than any broker writes is left in its order. */
static void
put_again(struct table_writer *w, const struct event *e, uint64_t count)
{
	struct field f[FIELDS_MAX], next = { .name = span_str("count"), .kind = 'l' };
	uint32_t mark = begin(w, 'F');
	unsigned n = 0;
	size_t at = 0;

	next.integer = (int64_t)count;
	do {
		unsigned i = n;

		if (n > 0 && span_is(next.name, "count"))
			continue;
		if (n == FIELDS_MAX) {
			table_put_field(w, &next);
			continue;
		}
		for (; i > 0 && comes_before(next.name, f[i - 1].name); i--)
			f[i] = f[i - 1];
		f[i] = next;
		n++;
	} while (table_next(e->table, &at, &next));
	for (unsigned i = 0; i < n; i++)
		table_put_field(w, &f[i]);
	table_end(w, mark);
}

/* How often it died there before. */
static uint64_t
count_of(const struct event *e, bool is_alone)
{
	struct field f;

	if (table_find(e->table, "count", &f))
		return field_is_integer(&f) && f.integer > 0 ? (uint64_t)f.integer : 0;
	return is_alone ? 0 : e->times;
}

static void
put_other(struct table_writer *w, const struct event *e, bool is_alone)
{
	uint32_t mark = begin(w, 'F');
	struct field f;

	if (!is_alone && !table_find(e->table, "count", &f))
		put_number(w, "count", 'l', e->times);
	table_put_raw(w, e->table);
	table_end(w, mark);
}

static void
put_list(struct table_writer *w, const struct death *d, struct span headers,
    const struct field *list, unsigned older)
{
	uint32_t mark = begin_named(w, "x-death", 'A');
	const struct event *match = NULL;
	struct events all = { .n = 0 };
	bool is_alone;

	if (list != NULL && list->kind == 'A')
		collect(list->bytes, &all);
	is_alone = all.tables == 1;
	for (unsigned i = 0; i < all.n && match == NULL; i++) {
		if (same(&all.item[i], d->queue, d->reason))
			match = &all.item[i];
	}
	if (match != NULL)
		put_again(w, match, count_of(match, is_alone) + 1);
	else
		put_new(w, d, headers, list != NULL && list->kind == 'A');
	for (unsigned i = all.n; i-- > 0 && older > 0;) {
		if (&all.item[i] == match)
			continue;
		put_other(w, &all.item[i], is_alone);
		older--;
	}
	table_end(w, mark);
}

static bool
is_replaced(const struct field *f, const struct death *d, bool is_first)
{
	if (span_is(f->name, "x-death") || (d->drops_cc && span_is(f->name, "CC")))
		return true;
	for (unsigned i = 0; is_first && i < 3; i++) {
		if (span_is(f->name, first_names[i]))
			return true;
	}
	return false;
}

void
death_write(struct table_writer *w, struct span headers, const struct death *d, unsigned older)
{
	struct field list, f;
	bool has_list = table_find(headers, "x-death", &list);
	size_t at = 0, from = 0;

	while (table_next(headers, &at, &f)) {
		if (!is_replaced(&f, d, !has_list))
			table_put_raw(w, span_of(headers.p + from, at - from));
		from = at;
	}
	put_list(w, d, headers, has_list ? &list : NULL, older);
	if (has_list)
		return;
	put_text(w, first_names[0], d->reason);
	put_text(w, first_names[1], d->queue);
	put_text(w, first_names[2], d->exchange);
}
