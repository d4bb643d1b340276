/* SPDX-License-Identifier: Apache-2.0
 * The life of a list: survey (objects are met for what they say of others, if the source asks for that), walk (objects are
 * met, rows are added in chunks, each sorted when it is full), then merge (the chunks' least rows in turn, by a heap; rows
 * before the page are passed over, rows in it are written), then the reply. Each step goes on where the last slice stopped. */
#include "mgmt/listing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/bound.h"
#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/letter_target.h"
#include "broker/pattern.h"
#include "broker/permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/list_query.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

enum {
	CHUNK_ROWS = 1024,
	TEXT_FIRST = 64 << 10,
	WRITE_BLOCK = 256 << 10, /* of the answer, before it is handed on to its buffer */
	LOOK_AT_CLOCK = 32,      /* rows, */
	STEPS_LOOK = 8192        /* or steps of matching names */
};

struct row {
	uint64_t object, a, b; /* of its row_id */
	uint32_t id_text, id_text_n;
	double number;
	uint32_t text, text_n; /* the value that is sorted by, in listing.text, if it is one */
	uint32_t order, order_n;
	enum scalar_kind kind;
};

struct rows {
	unsigned n, at;
	struct row row[CHUNK_ROWS];
};

enum phase { SURVEY, WALK, MERGE, DONE, FAILED };

struct listing {
	TAILQ_ENTRY(listing) link;
	struct mgmt *m;
	struct request *r; /* borrowed: it is deferred, or we are within its handler */
	const struct listing_source *source;
	struct list_query query;
	struct doc doc;
	struct scope scope;  /* of this slice */
	char *vhost, *owner; /* owned; NULL: all */
	uint64_t vhost_id, only, peer;
	uint32_t at; /* walk: see series_next() */
	unsigned kind;
	uint64_t object; /* whose parts are walked; 0: none */
	unsigned part;   /* the next of them */
	struct walk walk;
	bool is_walking, was_met; /* walk is begun; `only` has been met */
	uint32_t number;          /* see listing_number() */
	uint32_t steps;           /* of matching names, since the clock was looked at */
	enum phase phase;
	struct rows **chunk; /* owned */
	uint32_t chunks, cap;
	uint32_t *heap, in_heap; /* merge: owned; chunks by their least row */
	char *text;              /* owned */
	size_t text_n, text_cap;
	uint64_t bytes; /* of all this, and of what was written */
	uint64_t total, filtered, passed, written;
	struct json_out out;
	struct evbuffer *body; /* owned */
	int status;            /* FAILED */
	const char *error, *reason;
};

static uint64_t all_bytes;

static void
fail(struct listing *l, int status, const char *error, const char *reason)
{
	l->phase = FAILED;
	l->status = status;
	l->error = error;
	l->reason = reason;
}

static void
count_bytes(struct listing *l, size_t n)
{
	l->bytes += n;
	all_bytes += n;
	mem_add(MEM_OUTPUT, n);
	if (all_bytes > LISTING_BYTES_MAX) {
		bound_reached(BOUND_lists);
		fail(l, 503, "service_unavailable",
		    "the lists that are asked for at this moment are too long; ask for a page or "
		    "for less columns");
	}
}

/* Rows from one look at the clock to the next. */
static unsigned
look_each(const struct listing *l)
{
	return l->source->is_heavy ? 1 : LOOK_AT_CLOCK;
}

/* ---- who sees what ---- */

bool
scope_sees(const struct scope *s, const struct vhost *vh)
{
	if (vh == NULL || vh->is_deleted || s->user == NULL)
		return false;
	if (s->vhost != NULL)
		return s->vhost == vh;
	return s->all_vhosts || permission_vhost(s->user, vh);
}

bool
scope_sees_user(const struct scope *s, const struct user *owner)
{
	return s->all_users || (owner != NULL && owner == s->user);
}

/* What was true in the last slice need not be any more. */
static void
renew_scope(struct listing *l)
{
	struct broker *b = l->m->broker;
	struct user *u = request_user(l->r);
	struct vhost *vh = l->vhost != NULL ? vhost_find(b, span_str(l->vhost)) : NULL;

	l->scope = (struct scope){ .user = u, .vhost = vh, .owner = l->owner };
	if (l->peer != 0 && (l->scope.peer = series_find(&b->series, l->peer)) == NULL)
		l->scope.user = NULL;
	if (l->vhost != NULL && (vh == NULL || vh->id != l->vhost_id))
		l->scope.user = NULL; /* who sees nothing, connections of other vhosts among it */
	if (l->scope.user != NULL) {
		l->scope.all_vhosts = (u->tags & TAG_ADMINISTRATOR) != 0;
		l->scope.all_users = (u->tags & (TAG_ADMINISTRATOR | TAG_MONITORING)) != 0;
	}
}

/* ---- order ---- */

static int
compare_text(const struct listing *l, uint32_t a, uint32_t a_n, uint32_t b, uint32_t b_n)
{
	int c = memcmp(l->text + a, l->text + b, a_n < b_n ? a_n : b_n);

	return c != 0 ? c : (a_n > b_n) - (a_n < b_n);
}

static int
compare(const struct listing *l, const struct row *a, const struct row *b)
{
	int c = (a->kind > b->kind) - (a->kind < b->kind);

	if (c == 0 && a->kind == SCALAR_NUMBER)
		c = (a->number > b->number) - (a->number < b->number);
	else if (c == 0 && a->kind == SCALAR_TEXT)
		c = compare_text(l, a->text, a->text_n, b->text, b->text_n);
	if (c == 0)
		c = compare_text(l, a->order, a->order_n, b->order, b->order_n);
	return l->query.reverse ? -c : c;
}

static int
compare_rows(const void *a, const void *b, void *l)
{
	return compare(l, a, b);
}

static void
sort_rows(struct listing *l, struct rows *k)
{
	qsort_r(k->row, k->n, sizeof *k->row, compare_rows, l);
}

static bool
is_less(const struct listing *l, uint32_t a, uint32_t b)
{
	const struct rows *x = l->chunk[a], *y = l->chunk[b];

	return compare(l, &x->row[x->at], &y->row[y->at]) < 0;
}

static void
sift_down(struct listing *l, uint32_t i)
{
	uint32_t below, it = l->heap[i];

	while ((below = 2 * i + 1) < l->in_heap) {
		if (below + 1 < l->in_heap && is_less(l, l->heap[below + 1], l->heap[below]))
			below++;
		if (!is_less(l, l->heap[below], it))
			break;
		l->heap[i] = l->heap[below];
		i = below;
	}
	l->heap[i] = it;
}

/* NULL: no more. */
static const struct row *
next_row(struct listing *l)
{
	const struct row *row;
	struct rows *k;

	if (l->in_heap == 0)
		return NULL;
	k = l->chunk[l->heap[0]];
	row = &k->row[k->at++];
	if (k->at == k->n)
		l->heap[0] = l->heap[--l->in_heap];
	if (l->in_heap > 0)
		sift_down(l, 0);
	return row;
}

/* ---- the walk ---- */

static uint32_t
keep_text(struct listing *l, struct span s)
{
	uint32_t at = (uint32_t)l->text_n;
	size_t cap = l->text_cap > 0 ? l->text_cap : TEXT_FIRST;

	while (cap < l->text_n + s.n)
		cap *= 2;
	if (cap != l->text_cap) {
		l->text = xrealloc(l->text, cap);
		count_bytes(l, cap - l->text_cap);
		l->text_cap = cap;
	}
	if (s.n > 0)
		memcpy(l->text + at, s.p, s.n);
	l->text_n += s.n;
	return at;
}

static struct rows *
rows_with_room(struct listing *l)
{
	struct rows *k = l->chunks > 0 ? l->chunk[l->chunks - 1] : NULL;

	if (k != NULL && k->n < CHUNK_ROWS)
		return k;
	if (k != NULL)
		sort_rows(l, k);
	if (l->chunks == l->cap) {
		l->cap = l->cap > 0 ? l->cap * 2 : 8;
		l->chunk = xrealloc(l->chunk, l->cap * sizeof *l->chunk);
	}
	k = xmalloc(sizeof *k);
	k->n = k->at = 0;
	count_bytes(l, sizeof *k);
	l->chunk[l->chunks++] = k;
	return k;
}

static void
take_sort_value(struct listing *l, struct row *row, void *item)
{
	struct json_out o;
	struct scalar value;
	struct doc d = l->doc;

	json_out_catch(&o, l->query.sort, &value);
	d.out = &o;
	l->source->write(&d, item);
	row->kind = value.kind;
	row->number = value.number;
	if (value.kind == SCALAR_TEXT) {
		row->text = keep_text(l, value.text);
		row->text_n = (uint32_t)value.text.n;
	}
	json_out_fini(&o);
}

void
listing_add(
    struct listing *l, const struct row_id *id, struct span name, struct span order, void *item)
{
	enum pattern_result match = PATTERN_YES;
	uint32_t took = 0;
	struct rows *k;
	struct row *row;

	l->total++;
	if (l->phase == FAILED)
		return;
	if (l->query.name != NULL)
		match = pattern_match(l->query.name, name, PATTERN_STEPS_MAX, &took);
	l->steps += took;
	if (match == PATTERN_TOO_LONG)
		fail(l, 400, "bad_request", "Pagination parameters are invalid");
	if (match != PATTERN_YES)
		return;
	l->filtered++;
	if (l->filtered > LISTING_ROWS_MAX) {
		bound_reached(BOUND_lists);
		fail(l, 503, "service_unavailable", "the list is too long");
		return;
	}
	k = rows_with_room(l);
	row = &k->row[k->n++];
	*row = (struct row){ .object = id->object,
		.a = id->a,
		.b = id->b,
		.id_text = keep_text(l, id->text),
		.id_text_n = (uint32_t)id->text.n,
		.order = keep_text(l, order),
		.order_n = (uint32_t)order.n };
	if (l->query.sort != NULL)
		take_sort_value(l, row, item);
}

static void
stop_walking(struct listing *l)
{
	if (l->is_walking)
		walk_end(&l->walk);
	l->is_walking = false;
}

static void
begin_merge(struct listing *l)
{
	l->phase = MERGE;
	stop_walking(l);
	if (l->chunks > 0)
		sort_rows(l, l->chunk[l->chunks - 1]);
	l->heap = xmalloc((l->chunks + 1u) * sizeof *l->heap);
	for (uint32_t i = 0; i < l->chunks; i++)
		l->heap[l->in_heap++] = i;
	for (uint32_t i = l->in_heap / 2; i-- > 0;)
		sift_down(l, i);
	if (l->query.page > 0) {
		uint64_t pages = (l->filtered + l->query.page_size - 1) / l->query.page_size;

		if (l->query.page > 1 && l->query.page > pages) {
			fail(l, 400, "page_out_of_range", NULL);
			return;
		}
		out_begin(&l->out, '{');
		(void)!out_key(&l->out, "items");
	}
	l->out.next = l->query.columns;
	out_begin(&l->out, '[');
}

static void
meet(struct listing *l, struct series *s)
{
	struct row_id id = { .object = series_ref(&l->m->broker->series, s) };

	if (l->source->collect != NULL)
		l->source->collect(l, &l->scope, series_object(s), id);
	if (l->source->parts[0].first != NULL)
		l->object = id.object;
	l->part = 0;
}

static const struct listing_part *
next_part(struct listing *l)
{
	const struct listing_part *p = &l->source->parts[l->part];

	if (l->part == LISTING_PARTS || p->first == NULL)
		return NULL;
	l->part++;
	return p;
}

/* False: the object has no more rows. */
static bool
go_on_with_object(struct listing *l)
{
	struct series *s;
	const struct listing_part *p;

	if (l->walk.at != NULL) {
		l->walk.at = l->source->parts[l->part - 1].add(l, &l->scope, l->walk.at);
		return true;
	}
	if (l->object == 0)
		return false;
	s = series_find(&l->m->broker->series, l->object);
	p = s != NULL ? next_part(l) : NULL;
	if (p != NULL)
		l->walk.at = p->first(s);
	else
		l->object = 0;
	return p != NULL;
}

/* NULL: no more. */
static struct series *
next_object(struct listing *l)
{
	const struct series_list *all = &l->m->broker->series;
	struct series *s;

	if (l->only != 0) {
		s = l->was_met ? NULL : series_find(all, l->only);
		l->was_met = true;
		return s;
	}
	s = series_next(all, l->source->kinds[l->kind], &l->at);
	if (s != NULL || l->kind == 1 || l->source->kinds[1] == l->source->kinds[0])
		return s;
	l->kind = 1;
	l->at = 0;
	return series_next(all, l->source->kinds[1], &l->at);
}

uint32_t
listing_number(const struct listing *l)
{
	return l->number;
}

static void
survey(struct listing *l, uint64_t until_us)
{
	struct series *s;

	while (l->phase == SURVEY) {
		s = l->source->survey != NULL
		        ? series_next(&l->m->broker->series, l->source->kinds[0], &l->at)
		        : NULL;
		if (s == NULL) {
			l->at = 0;
			l->phase = WALK;
			return;
		}
		l->source->survey(l, &l->scope, series_object(s));
		if (clock_mono_us() >= until_us)
			return;
	}
}

static void
walk(struct listing *l, uint64_t until_us)
{
	struct series *s;
	unsigned n = 0;

	if (!l->is_walking)
		walk_begin(&l->m->broker->walks, &l->walk);
	l->is_walking = true;
	while (l->phase == WALK) {
		if (!go_on_with_object(l)) {
			s = next_object(l);
			if (s != NULL)
				meet(l, s);
			else
				begin_merge(l);
		}
		if (++n % look_each(l) != 0 && l->steps < STEPS_LOOK)
			continue;
		l->steps = 0;
		if (clock_mono_us() >= until_us)
			return;
	}
}

/* ---- what is written ---- */

static void
hand_on_text(struct listing *l)
{
	reply_buffer_add(l->body, l->out.p, l->out.n);
	count_bytes(l, l->out.n);
	l->out.n = 0;
}

static void
write_row(struct listing *l, const struct row *row)
{
	struct row_id id = { row->object, row->a, row->b,
		span_of(l->text + row->id_text, row->id_text_n) };
	struct series *s = series_find(&l->m->broker->series, row->object);
	void *item = s != NULL ? l->source->find(&l->scope, series_object(s), &id) : NULL;

	if (item == NULL)
		return;
	l->out.next = l->query.columns;
	l->source->write(&l->doc, item);
	l->written++;
	if (l->out.n >= WRITE_BLOCK)
		hand_on_text(l);
}

static void
finish(struct listing *l)
{
	struct json_out *o = &l->out;

	out_end(o, ']');
	if (l->query.page > 0) {
		OUT_INT(o, "filtered_count", l->filtered);
		OUT_INT(o, "item_count", l->written);
		OUT_INT(o, "page", l->query.page);
		OUT_INT(
		    o, "page_count", (l->filtered + l->query.page_size - 1) / l->query.page_size);
		OUT_INT(o, "page_size", l->query.page_size);
		OUT_INT(o, "total_count", l->total);
		out_end(o, '}');
	}
	hand_on_text(l);
	if (l->phase == MERGE)
		l->phase = DONE;
}

static void
merge(struct listing *l, uint64_t until_us)
{
	uint64_t first = 0, end = UINT64_MAX;
	const struct row *row;
	unsigned n = 0;

	if (l->query.page > 0) {
		first = (l->query.page - 1) * l->query.page_size;
		end = first + l->query.page_size;
	}
	while (l->phase == MERGE) {
		row = l->passed < end ? next_row(l) : NULL;
		if (row == NULL)
			finish(l);
		else if (l->passed++ >= first)
			write_row(l, row);
		if (++n % look_each(l) == 0 && clock_mono_us() >= until_us)
			return;
	}
}

/* ---- slices ---- */

static void
listing_free(struct listing *l)
{
	stop_walking(l);
	all_bytes -= l->bytes;
	mem_sub(MEM_OUTPUT, l->bytes);
	for (uint32_t i = 0; i < l->chunks; i++)
		free(l->chunk[i]);
	free(l->chunk);
	free(l->heap);
	free(l->text);
	free(l->vhost);
	free(l->owner);
	list_query_fini(&l->query);
	json_out_fini(&l->out);
	evbuffer_free(l->body);
	free(l);
}

static void
run_slice(struct listing *l)
{
	uint64_t from_us = clock_mono_us(),
	         until_us = from_us + LISTING_SLICE_US - l->m->listings.spent_us;

	l->doc.now_ms = l->m->loop->now_ms;
	renew_scope(l);
	if (l->phase == SURVEY)
		survey(l, until_us);
	if (l->phase == WALK && (l->source->survey == NULL || clock_mono_us() < until_us))
		walk(l, until_us);
	if (l->phase == MERGE && clock_mono_us() < until_us)
		merge(l, until_us);
	l->m->listings.spent_us += clock_mono_us() - from_us;
}

static bool
is_over(const struct listing *l)
{
	return l->phase >= DONE;
}

static void
answer(struct listing *l)
{
	struct request *r = l->r;

	if (l->phase == DONE)
		reply_bytes(r, 200, "application/json", l->body);
	else if (l->reason != NULL)
		reply_error(r, l->status, l->error, l->reason);
	else
		list_query_out_of_range(r, &l->query, l->filtered);
	listing_free(l);
}

/* Lists share the slice of a turn, also with those that were asked for in it. */
static bool
has_time(const struct mgmt *m)
{
	return m->listings.spent_us < LISTING_SLICE_US;
}

/* Every second slice goes to a list of which one page is asked for, if there is any: it is soon done, and somebody looks
 * at an empty screen meanwhile. Who wants all rows is rarely in a hurry. */
static struct listing *
next_listing(struct mgmt *m)
{
	struct listing *first = TAILQ_FIRST(&m->listings.all), *l = first;

	m->listings.was_page = !m->listings.was_page;
	if (!m->listings.was_page)
		return first;
	while (l != NULL && l->query.page == 0)
		l = TAILQ_NEXT(l, link);
	return l != NULL ? l : first;
}

static void
go_on(struct mgmt *m)
{
	struct listing *l = has_time(m) ? next_listing(m) : NULL;

	if (l == NULL)
		return;
	TAILQ_REMOVE(&m->listings.all, l, link);
	run_slice(l);
	if (is_over(l)) {
		m->listings.count--;
		answer(l);
	} else {
		/* behind those that are served with it, before those that wait */
		struct listing *before = TAILQ_FIRST(&m->listings.all);

		for (unsigned i = 2;
		     i < LISTING_AT_ONCE && before != NULL && TAILQ_NEXT(before, link) != NULL; i++)
			before = TAILQ_NEXT(before, link);
		if (before != NULL)
			TAILQ_INSERT_AFTER(&m->listings.all, before, l, link);
		else
			TAILQ_INSERT_HEAD(&m->listings.all, l, link);
	}
}

bool
listings_run(struct mgmt *m)
{
	go_on(m);
	m->listings.spent_us = 0;
	return !TAILQ_EMPTY(&m->listings.all);
}

static void
start(struct request *r, const struct listing_source *source, const struct vhost *vhost,
    const struct series *only, const struct series *peer, struct span owner)
{
	struct mgmt *m = r->m;
	struct listing *l = xcalloc(1, sizeof *l);

	l->m = m;
	l->r = r;
	l->source = source;
	l->number = source->survey != NULL ? letter_targets_begin(m->broker) : 0;
	if (!list_query_init(&l->query, r, source->paging) || !doc_init(&l->doc, r)) {
		list_query_fini(&l->query);
		free(l);
		return;
	}
	l->doc.out = &l->out;
	if (vhost != NULL) {
		l->vhost = xstrdup(vhost->name);
		l->vhost_id = vhost->id;
	}
	if (owner.p != NULL)
		l->owner = xstrndup((const char *)owner.p, owner.n);
	if (peer != NULL)
		l->peer = series_ref(&m->broker->series, peer);
	if (only != NULL)
		l->only = series_ref(&m->broker->series, only);
	l->body = reply_buffer();
	/* most lists are short: they need not wait for the long ones */
	if (has_time(m))
		run_slice(l);
	if (is_over(l)) {
		answer(l);
		return;
	}
	request_defer(r);
	TAILQ_INSERT_TAIL(&m->listings.all, l, link);
	m->listings.count++;
}

void
listing_reply(struct request *r, const struct listing_source *source, const struct vhost *vhost,
    const struct series *only)
{
	start(r, source, vhost, only, NULL, span_of(NULL, 0));
}

void
listing_reply_owner(struct request *r, const struct listing_source *source, struct span owner)
{
	start(r, source, r->vhost, r->vhost != NULL ? &r->vhost->series : NULL, NULL, owner);
}

void
listing_reply_pair(struct request *r, const struct listing_source *source,
    const struct series *only, const struct series *peer)
{
	start(r, source, r->vhost, only, peer, span_of(NULL, 0));
}

const struct series_list *
listing_series(const struct listing *l)
{
	return &l->m->broker->series;
}

void
listings_stop(struct mgmt *m)
{
	struct listing *l;

	while ((l = TAILQ_FIRST(&m->listings.all)) != NULL) {
		TAILQ_REMOVE(&m->listings.all, l, link);
		listing_free(l);
	}
	m->listings.count = 0;
}

/* ---- one object ---- */

void
reply_document(struct request *r, const struct listing_source *source, void *item)
{
	struct columns *columns = columns_new(request_query(r, "columns"));
	struct json_out o;
	struct doc d;

	if (doc_init(&d, r)) {
		json_out_init(&o, columns);
		d.out = &o;
		d.is_single = true;
		source->write(&d, item);
		reply_out(r, &o);
		json_out_fini(&o);
	}
	columns_free(&columns);
}
