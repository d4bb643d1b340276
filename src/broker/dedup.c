/* SPDX-License-Identifier: Apache-2.0
 * Deduplication: see the header. */
#include "broker/dedup.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/death.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "broker/trace.h"

enum {
	DETAIL_MAX = 160,
	EXPIRE_EACH = 4, /* keys whose time is over that go with each new one */
	EVICT_EACH = 4,  /* the same while too much memory is taken */
	TEND_MAX = 8192, /* keys that go in a call of dedup_tend() */
	JOURNAL_SHARE =
	    3, /* of store.journal_max: 32 bytes here are 24 in the journal, which is up to twice as long */
	ROOM_MIN = 8
};
static const int64_t ttl_max_ms = 315360000000; /* ten years, as of the other arguments */

/* ---- arguments ---- */

static bool
wrong(const char *why, int64_t n, char *detail)
{
	snprintf(detail, DETAIL_MAX, "{%s,%" PRId64 "}", why, n);
	return false;
}

static bool
check_number(const struct field *f, int64_t max, char *detail)
{
	if (!field_is_integer(f)) {
		snprintf(detail, DETAIL_MAX, "\"expected integer, got %s\"", field_type_name(f));
		return false;
	}
	if (f->integer < 0)
		return wrong("value_negative", f->integer, detail);
	if (f->integer == 0)
		return wrong("value_zero", f->integer, detail);
	return f->integer <= max || wrong("value_too_large", f->integer, detail);
}

bool
dedup_check_size(const struct field *f, char *detail)
{
	return check_number(f, DEDUP_SIZE_MAX, detail);
}

static bool
check_ttl(const struct field *f, char *detail)
{
	return check_number(f, ttl_max_ms, detail);
}

static bool
check_on(const struct field *f, char *detail)
{
	if (f->kind == 't')
		return true;
	snprintf(detail, DETAIL_MAX, "{unacceptable_type,%s}", field_type_name(f));
	return false;
}

static const struct {
	const char *name;
	bool (*check)(const struct field *f, char *detail);
} arguments[] = {
	{ "x-message-deduplication", check_on },
	{ "x-cache-size", dedup_check_size },
	{ "x-cache-ttl", check_ttl },
};

static bool
find_argument(const struct table *t, size_t i, struct field *f)
{
	char detail[DETAIL_MAX];

	return table_find(table_span(t), arguments[i].name, f) && arguments[i].check(f, detail);
}

void
dedup_read_exchange(const struct table *t, struct dedup_settings *out)
{
	struct field f;

	*out = (struct dedup_settings){ .size = SETTING_NONE, .ttl_ms = SETTING_NONE };
	out->on = find_argument(t, 0, &f) && f.truth;
	if (find_argument(t, 1, &f))
		out->size = (uint64_t)f.integer;
	if (find_argument(t, 2, &f))
		out->ttl_ms = (uint64_t)f.integer;
}

const struct error *
dedup_check_exchange(const char *vhost, struct span name, const struct table *t)
{
	char detail[DETAIL_MAX];
	struct field f;

	for (size_t i = 0; i < COUNT_OF(arguments); i++)
		if (table_find(table_span(t), arguments[i].name, &f) &&
		    !arguments[i].check(&f, detail))
			return error_make(E_PRECONDITION_FAILED,
			    "invalid arg '%s' for exchange '%.*s' in vhost '%s': %s",
			    arguments[i].name, SPAN_FMT(name), vhost, detail);
	return NULL;
}

const struct error *
dedup_compare_exchange(const struct exchange *x, const struct table *t)
{
	const struct error *e = NULL;

	for (size_t i = 0; i < COUNT_OF(arguments) && e == NULL; i++)
		e = exchange_compare_argument(x, t, arguments[i].name);
	return e;
}

/* ---- coming and going ---- */

struct dedup *
dedup_new(struct broker *b, uint64_t owner, const struct dedup_settings *s, bool durable,
    bool of_exchange)
{
	uint32_t size = s->size != SETTING_NONE ? (uint32_t)s->size : DEDUP_SIZE_DEFAULT;
	struct dedup *d;

	if (!s->on)
		return NULL;
	if (b->dedup == NULL) {
		b->dedup = xcalloc(1, sizeof *b->dedup);
		TAILQ_INIT(&b->dedup->all);
	}
	d = xcalloc(1, sizeof *d);
	mem_add(MEM_TOPOLOGY, sizeof *d);
	d->window = window_open(b->store, owner, size, durable);
	d->ttl_ms = s->ttl_ms;
	d->of_exchange = of_exchange;
	TAILQ_INSERT_TAIL(&b->dedup->all, d, link);
	b->dedup->count++;
	b->dedup->exchanges += of_exchange;
	return d;
}

void
dedup_free(struct broker *b, struct dedup **dp)
{
	struct dedups *all = b->dedup;
	struct dedup *d = *dp;

	if (d == NULL)
		return;
	*dp = NULL;
	if (d->window != NULL)
		window_close(&d->window);
	TAILQ_REMOVE(&all->all, d, link);
	if (all->largest == d)
		all->largest = NULL;
	if (all->exchange == d)
		all->exchange = NULL;
	all->exchanges -= d->of_exchange;
	mem_sub(MEM_TOPOLOGY, sizeof *d);
	free(d);
	if (--all->count > 0)
		return;
	free(all->add);
	free(all->route.queue);
	free(all);
	b->dedup = NULL;
}

void
dedups_close(struct broker *b)
{
	struct dedup *d;

	if (b->dedup == NULL)
		return;
	TAILQ_FOREACH (d, &b->dedup->all, link)
		if (d->window != NULL)
			window_close(&d->window);
}

/* ---- keys ---- */

/* Kinds of keys for window_hash(): a text is the same key wherever it stands, a number whatever its width. */
enum { KEY_TEXT, KEY_NUMBER, KEY_OTHER };

static bool
hash_field(const struct broker *b, const struct field *f, uint64_t hash[2])
{
	if (f->kind == 'S' || f->kind == 'x') {
		window_hash(b->store, KEY_TEXT, f->bytes, hash);
		return f->bytes.n > 0;
	}
	if (field_is_integer(f))
		window_hash(b->store, KEY_NUMBER,
		    span_of((const uint8_t *)&f->integer, sizeof f->integer), hash);
	else if (f->kind == 'f' || f->kind == 'd')
		window_hash(b->store, KEY_OTHER + f->kind,
		    span_of((const uint8_t *)&f->number, sizeof f->number), hash);
	else if (f->kind == 't')
		window_hash(b->store, KEY_OTHER + f->kind, span_of(f->truth ? "1" : "0", 1), hash);
	else if (f->bytes.p != NULL)
		window_hash(b->store, KEY_OTHER + f->kind, f->bytes, hash);
	else /* T */
		window_hash(b->store, KEY_OTHER + f->kind,
		    span_of((const uint8_t *)&f->integer, sizeof f->integer), hash);
	return f->kind != 'V';
}

static bool
key_of(const struct broker *b, const struct msg *m, uint64_t hash[2])
{
	struct span props = msg_props(m), headers, id;
	struct field f;

	if (props_find(props, PROP_HEADERS, &headers) &&
	    table_find(headers, "x-deduplication-header", &f) && hash_field(b, &f, hash))
		return true;
	if (!props_find(props, PROP_MESSAGE_ID, &id) || id.n == 0)
		return false;
	window_hash(b->store, KEY_TEXT, id, hash);
	return true;
}

/* What came at this time or before does not count any more. */
static uint64_t
over_at(const struct broker *b, const struct dedup *d)
{
	return d->ttl_ms != SETTING_NONE && b->now_ms > d->ttl_ms ? b->now_ms - d->ttl_ms : 0;
}

/* The clock may have been set back by a restart, so what stands behind one whose time is not over may be over. */
static uint32_t
expire(const struct broker *b, struct dedup *d, uint32_t most)
{
	uint64_t through = over_at(b, d);
	uint32_t n = 0;

	while (n < most && window_oldest_ms(d->window) <= through) {
		window_drop_oldest(d->window);
		n++;
	}
	return n;
}

static uint64_t
memory_max(const struct broker *b)
{
	uint64_t journal = b->cfg->journal_max / JOURNAL_SHARE;
	uint64_t memory = b->memory.limit / 100 * b->cfg->memory_deduplication;

	return b->memory.limit != 0 && (memory < journal || journal == 0) ? memory : journal;
}

/* Where all of them together take too much, the oldest of the largest goes. */
static void
make_room(struct broker *b, struct dedup *d)
{
	struct dedups *all = b->dedup;
	uint64_t max = memory_max(b);

	(void)expire(b, d, EXPIRE_EACH);
	if (all->largest == NULL || window_count(d->window) > window_count(all->largest->window))
		all->largest = d;
	for (unsigned i = 0; i < EVICT_EACH && max != 0 && mem_held[MEM_WINDOWS] > max; i++) {
		if (window_count(all->largest->window) == 0)
			break;
		window_drop_oldest(all->largest->window);
		b->stats.dedup_evicted++;
	}
}

static void
merge_wait(struct store_wait *into, struct store_wait w)
{
	if (w.lsn > into->lsn)
		into->lsn = w.lsn;
	into->durable |= w.durable;
}

static const char duplicate[] = "a duplicate";

/* Did it see the message that is being published before? */
static bool
is_duplicate(struct broker *b, struct dedup *d)
{
	struct dedups *all = b->dedup;

	if (d->window == NULL || !window_has(d->window, all->key.hash, over_at(b, d)))
		return false;
	d->duplicates++;
	b->stats.duplicates++;
	merge_wait(&all->wait, window_wait(d->window));
	return true;
}

static struct dedup *
exchange_of(const struct broker *b, const struct msg *m, const struct route *r)
{
	const struct exchange *x;

	if (b->dedup->exchanges == 0)
		return NULL;
	x = exchange_find(r->count > 0 ? r->queue[0]->vhost : r->delay[0]->vhost, msg_exchange(m));
	return x != NULL ? x->dedup : NULL;
}

static bool
has_dedup(const struct route *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->queue[i]->dedup != NULL)
			return true;
	return false;
}

/* The headers of a message that comes back by its dead letter exchange; p NULL: it is none. */
static struct span
letter_headers(const struct msg *m, enum publish_source source)
{
	struct span headers;

	if (source != PUBLISH_LETTER || !props_find(msg_props(m), PROP_HEADERS, &headers))
		return span_of(NULL, 0);
	return headers;
}

/* Not what was here before: a message is no duplicate of itself. */
static void
leave_out_duplicates(struct broker *b, const struct route *r, struct span deaths)
{
	struct dedups *all = b->dedup;

	if (r->count > all->route_cap) {
		all->route_cap = r->count < ROOM_MIN ? ROOM_MIN : r->count;
		all->route.queue = xrealloc(all->route.queue, all->route_cap * sizeof r->queue[0]);
	}
	all->route.count = 0;
	all->route.by_headers = r->by_headers;
	all->route.delays = r->delays;
	all->route.delay = r->delay;
	for (uint32_t i = 0; i < r->count; i++) {
		struct queue *q = r->queue[i];

		if (q->dedup == NULL || death_was_in(deaths, span_of(q->name, q->name_len)) ||
		    !is_duplicate(b, q->dedup)) {
			all->route.queue[all->route.count++] = q;
			continue;
		}
		q->stats.duplicates++;
		if (unlikely(b->tracing > 0))
			trace_drop(b, all->m, "queue", span_of(q->name, q->name_len), duplicate);
	}
}

const struct route *
dedup_filter(
    struct broker *b, const struct msg *m, const struct route *r, enum publish_source source)
{
	struct dedups *all = b->dedup;
	struct span deaths;

	assert(r->count + r->delays > 0);
	all->m = NULL;
	all->wait = (struct store_wait){ 0 };
	all->exchange =
	    source != PUBLISH_DELAYED && source != PUBLISH_PLACED ? exchange_of(b, m, r) : NULL;
	if (all->exchange == NULL && !has_dedup(r))
		return r;
	if (!key_of(b, m, all->key.hash))
		return r;
	all->m = m;
	all->key.at_ms = b->now_ms > 0 ? b->now_ms : 1;
	all->delays = r->delays;
	if (source == PUBLISH_MOVED || source == PUBLISH_PLACED)
		return r;
	deaths = letter_headers(m, source);
	if (all->exchange != NULL && !death_came_by(deaths, msg_exchange(m)) &&
	    is_duplicate(b, all->exchange)) {
		if (unlikely(b->tracing > 0))
			trace_drop(b, m, "exchange", msg_exchange(m), duplicate);
		return NULL;
	}
	leave_out_duplicates(b, r, deaths);
	return all->route.count + r->delays > 0 ? &all->route : NULL;
}

static uint32_t
add_key(struct broker *b, struct dedup *d, bool journalled, uint32_t n)
{
	struct dedups *all = b->dedup;

	if (d->window == NULL)
		return n;
	make_room(b, d);
	if (!journalled || !window_is_durable(d->window)) {
		window_add(d->window, &all->key);
		return n;
	}
	if (n == all->add_cap) {
		all->add_cap = n * 2 < ROOM_MIN ? ROOM_MIN : n * 2;
		all->add = xrealloc(all->add, all->add_cap * sizeof *all->add);
	}
	all->add[n] = (struct window_key){ .window = d->window, .key = all->key };
	return n + 1;
}

/* Where it goes to others, too, it may be journalled for them only. */
static bool
survives_in(const struct msg *m, const struct queue *q)
{
	return (m->flags & MSG_PERSISTENT) != 0 || q->quorum != NULL;
}

uint32_t
dedup_remember(struct broker *b, const struct msg *m, struct queue *const *queue, uint32_t n,
    bool journalled, struct window_key **add)
{
	struct dedups *all = b->dedup;
	uint32_t keys = 0;
	bool later; /* the record of where it waits may have the exchange's */

	if (all->m != m)
		return 0;
	later = all->exchange != NULL && n > 0 && all->delays > 0 && !journalled;
	if (!later)
		all->m = NULL;
	if (all->exchange != NULL && !later)
		keys = add_key(b, all->exchange, journalled, keys);
	for (uint32_t i = 0; i < n; i++)
		if (queue[i]->dedup != NULL)
			keys = add_key(
			    b, queue[i]->dedup, journalled && survives_in(m, queue[i]), keys);
	*add = all->add;
	return keys;
}

void
dedup_wait(const struct broker *b, struct store_wait *wait)
{
	if (b->dedup->wait.lsn != 0)
		merge_wait(wait, b->dedup->wait);
}

void
dedup_settle(struct broker *b, const struct msg *m, struct queue *const *queue, uint32_t n,
    struct store_wait *wait)
{
	struct window_key *none;

	if (b->store == NULL)
		(void)dedup_remember(b, m, queue, n, false, &none);
	dedup_wait(b, wait);
}

void
dedup_refused(struct broker *b)
{
	b->dedup->exchange = NULL;
}

void
dedup_tend(struct broker *b)
{
	struct dedup *d, *first;
	uint32_t left = TEND_MAX;

	if (b->dedup == NULL)
		return;
	first = d = TAILQ_FIRST(&b->dedup->all);
	do {
		if (d->window != NULL && d->ttl_ms != SETTING_NONE)
			left -= expire(b, d, left);
		if (left == 0)
			return; /* goes on with this one */
		left--;
		TAILQ_REMOVE(&b->dedup->all, d, link);
		TAILQ_INSERT_TAIL(&b->dedup->all, d, link);
		d = TAILQ_FIRST(&b->dedup->all);
	} while (d != first && left > 0);
}
