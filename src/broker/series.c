/* SPDX-License-Identifier: Apache-2.0
 * Points of a series, in order of time: from `at_ms` on, until the next one, the counters had these values. The change
 * happened after `before_ms`, the last look that still found the old ones. The oldest point may be older than
 * SERIES_KEPT_MS: it says what was there when that time began. */
#include "broker/series.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/queue.h"
#include "broker/session.h"
#include "broker/user.h"
#include "broker/vhost.h"

struct point {
	uint64_t at_ms, before_ms;
	uint64_t value[];
};

struct series_points {
	uint16_t count, cap;
	uint64_t room[]; /* points, each of the size that its kind has */
};

enum {
	PLACES_FIRST = 64,
	AHEAD = 4, /* places: a walk asks for the memory of an object so long before it needs it */
	CAP_FIRST = 2,
	CAP_MAX = SERIES_KEPT_MS / SERIES_MS + 3,
	FIELDS_MAX = 24,
	LONGEST_WAIT_MS = 1000,
	MORE_AFTER_MS = 20,
	SETTLED_MS = 1000 /* so long after its last change at least an object is idle */
};

/* ---- the counters of each kind ---- */

#define QUEUE(name, kind, help) offsetof(struct queue, stats.name),
static const uint16_t queue_fields[] = { QUEUE_STATS(QUEUE) offsetof(struct queue, ready),
	offsetof(struct queue, unacked), offsetof(struct queue, full_ms) };
#define EXCHANGE(name, kind, help) offsetof(struct exchange, stats.name),
static const uint16_t exchange_fields[] = { EXCHANGE_STATS(EXCHANGE) };
#define CHANNEL(name, kind, help) offsetof(struct session, stats.name),
static const uint16_t channel_fields[] = { MESSAGE_STATS(CHANNEL) };
#define CONNECTION(name, kind, help) offsetof(struct client, counted.name),
static const uint16_t connection_fields[] = { TRAFFIC_STATS(CONNECTION) };
#define VHOST(name, kind, help) offsetof(struct vhost, stats.name),
#define VHOST_TRAFFIC(name, kind, help) offsetof(struct vhost, traffic.name),
static const uint16_t vhost_fields[] = { MESSAGE_STATS(VHOST) TRAFFIC_STATS(VHOST_TRAFFIC)
	                                     offsetof(struct vhost, depth.ready),
	offsetof(struct vhost, depth.unacked) };
#define NODE(name, kind, help) offsetof(struct broker, stats.name),
static const uint16_t node_fields[] = { MESSAGE_STATS(NODE)
	                                    offsetof(struct broker, stats.messages_ready),
	offsetof(struct broker, stats.messages_unacknowledged),
	offsetof(struct broker, stats.connections_opened),
	offsetof(struct broker, stats.connections_closed),
	offsetof(struct broker, stats.channels_opened),
	offsetof(struct broker, stats.channels_closed),
	offsetof(struct broker, stats.queues_declared),
	offsetof(struct broker, stats.queues_created),
	offsetof(struct broker, stats.queues_deleted) };

static const struct series_type {
	const uint16_t *field; /* offsets in the object */
	uint16_t fields;
	uint16_t own; /* offset of the series */
	uint16_t
	    time; /* so many fields at the end only measure time: they change while nothing happens */
} types[SERIES_KINDS] = {
	[SERIES_QUEUE] = { queue_fields, COUNT_OF(queue_fields), offsetof(struct queue, series),
	    1 },
	[SERIES_EXCHANGE] = { exchange_fields, COUNT_OF(exchange_fields),
	    offsetof(struct exchange, series), 0 },
	[SERIES_CHANNEL] = { channel_fields, COUNT_OF(channel_fields),
	    offsetof(struct session, series), 0 },
	[SERIES_CONNECTION] = { connection_fields, COUNT_OF(connection_fields),
	    offsetof(struct client, series), 0 },
	[SERIES_VHOST] = { vhost_fields, COUNT_OF(vhost_fields), offsetof(struct vhost, series),
	    0 },
	[SERIES_NODE] = { node_fields, COUNT_OF(node_fields), offsetof(struct broker, node), 0 },
	[SERIES_USER] = { NULL, 0, offsetof(struct user, series), 0 },
};

static const struct series_type *
type_of(const struct series *s)
{
	return &types[s->kind];
}

static const char *
object_of(const struct series *s)
{
	return (const char *)s - type_of(s)->own;
}

static unsigned
index_of(const struct series *s, const uint64_t *counter)
{
	const struct series_type *t = type_of(s);
	ptrdiff_t offset = (const char *)counter - object_of(s);
	unsigned i = 0;

	while (i < t->fields && t->field[i] != offset)
		i++;
	assert(i < t->fields);
	return i;
}

/* ---- points ---- */

static size_t
point_words(const struct series *s)
{
	return sizeof(struct point) / sizeof(uint64_t) + type_of(s)->fields;
}

static size_t
points_size(const struct series *s, unsigned cap)
{
	return sizeof(struct series_points) + cap * point_words(s) * sizeof(uint64_t);
}

static struct point *
point_at(const struct series *s, unsigned i)
{
	return (struct point *)(void *)&s->points->room[i * point_words(s)];
}

static unsigned
count_of(const struct series *s)
{
	return s->points != NULL ? s->points->count : 0;
}

static void
set_cap(struct series_list *l, struct series *s, unsigned cap)
{
	size_t was = s->points != NULL ? points_size(s, s->points->cap) : 0,
	       size = points_size(s, cap);
	unsigned count = count_of(s);

	s->points = xrealloc(s->points, size);
	s->points->cap = (uint16_t)cap;
	s->points->count = (uint16_t)count;
	l->bytes += size - was;
	mem_add(MEM_SAMPLES, size - was);
}

static void
drop_oldest(struct series *s)
{
	memmove(s->points->room, point_at(s, 1),
	    (s->points->count - 1u) * point_words(s) * sizeof(uint64_t));
	s->points->count--;
}

/* One point stays that is older than what is kept. */
static void
drop_old(struct series_list *l, struct series *s, uint64_t now_ms)
{
	while (count_of(s) > 1 && point_at(s, 1)->at_ms + SERIES_KEPT_MS < now_ms) {
		drop_oldest(s);
		s->is_old = true;
	}
	if (count_of(s) == 1 && s->points->cap > 1)
		set_cap(l, s, 1);
}

static struct point *
point_new(struct series_list *l, struct series *s)
{
	unsigned n = count_of(s), cap = s->points != NULL ? s->points->cap : 0;
	unsigned max = l->bytes < SERIES_BYTES ? CAP_MAX : SERIES_FEW;

	if (n == cap && cap < max) {
		cap = cap == 0 ? 1 : cap < CAP_FIRST ? CAP_FIRST : cap * 2;
		set_cap(l, s, cap < max ? cap : max);
	} else if (n == cap) {
		drop_oldest(s);
		s->is_old = true;
		l->cut++;
	}
	return point_at(s, s->points->count++);
}

static uint64_t
value_now(const struct series *s, unsigned i)
{
	uint64_t v;

	memcpy(&v, object_of(s) + type_of(s)->field[i], sizeof v);
	return v;
}

static bool
is_changed(const struct series *s)
{
	unsigned n = count_of(s);
	const struct point *last = n > 0 ? point_at(s, n - 1) : NULL;

	for (unsigned i = 0; i < type_of(s)->fields; i++) {
		if (value_now(s, i) != (last != NULL ? last->value[i] : 0))
			return true;
	}
	return false;
}

/* 0 where all is 0. */
static uint64_t
mix_of(const struct series *s)
{
	const struct series_type *t = type_of(s);
	uint64_t mix = 0;

	for (unsigned i = 0; i + t->time < t->fields; i++)
		mix = (mix << 7 | mix >> 57) + value_now(s, i) * UINT64_C(0x9e3779b97f4a7c15);
	return mix;
}

static void
look(struct series *s, bool was_there, uint64_t now_ms)
{
	uint64_t mix = mix_of(s);

	if (mix != s->mix && !was_there)
		s->changed_ms = now_ms;
	s->mix = mix;
}

/* What an object counts elsewhere is put where it is looked for. */
static void
fetch(struct series *s)
{
	struct traffic_stats t;

	if (s->kind == SERIES_CONNECTION)
		client_traffic(container_of(s, struct client, series), &t, NULL);
	else if (s->kind == SERIES_QUEUE)
		queue_count_full(container_of(s, struct queue, series));
}

static void
visit(struct series_list *l, struct series *s, uint64_t now_ms)
{
	bool was_there = s->is_old && s->points == NULL;
	const struct series_type *t = type_of(s);
	struct point *p;

	fetch(s);
	drop_old(l, s, now_ms);
	look(s, was_there, now_ms);
	if (is_changed(s)) {
		p = point_new(l, s);
		p->at_ms = now_ms;
		p->before_ms = was_there ? now_ms : s->visited_ms;
		for (unsigned i = 0; i < t->fields; i++)
			p->value[i] = value_now(s, i);
	}
	s->visited_ms = now_ms;
}

/* ---- the list ---- */

void
series_list_init(struct series_list *l)
{
	*l = (struct series_list){ .places = 1 };
	TAILQ_INIT(&l->all);
}

void
series_list_fini(struct series_list *l)
{
	free(l->place);
	l->place = NULL;
}

static uint32_t
take_place(struct series_list *l, struct series *s)
{
	uint32_t i = l->free;

	if (i != 0) {
		l->free = l->place[i].next_free;
	} else {
		if (l->places >= l->cap) {
			l->cap = l->cap > 0 ? l->cap * 2 : PLACES_FIRST;
			l->place = xrealloc(l->place, l->cap * sizeof *l->place);
		}
		i = l->places++;
		l->place[i] = (struct series_place){ 0 };
	}
	l->place[i].series = s;
	l->place[i].kind = s->kind;
	l->place[i].generation++;
	return i;
}

static void
leave_place(struct series_list *l, uint32_t i)
{
	l->place[i].series = NULL;
	l->place[i].next_free = l->free;
	l->free = i;
}

uint64_t
series_ref(const struct series_list *l, const struct series *s)
{
	return (uint64_t)l->place[s->place].generation << 32 | s->place;
}

struct series *
series_find(const struct series_list *l, uint64_t ref)
{
	const struct series_place *p = &l->place[(uint32_t)ref];

	return p->generation == ref >> 32 ? p->series : NULL;
}

/* Walks over tens of thousands of objects wait for memory more than for anything else. */
static inline void
prefetch(const struct series *s, enum series_kind kind)
{
	__builtin_prefetch(s);
	__builtin_prefetch((const void *)((uintptr_t)s - types[kind].own));
}

struct series *
series_next(const struct series_list *l, enum series_kind kind, uint32_t *at)
{
	while (++*at < l->places) {
		const struct series_place *p = &l->place[*at];

		if (p->series == NULL || p->kind != kind)
			continue;
		if (*at + AHEAD < l->places)
			prefetch(l->place[*at + AHEAD].series, kind);
		return p->series;
	}
	return NULL;
}

void *
series_object(const struct series *s)
{
	return (void *)(uintptr_t)object_of(s);
}

void
series_init(struct series_list *l, struct series *s, enum series_kind kind, uint64_t now_ms)
{
	*s = (struct series){ .kind = (uint8_t)kind, .visited_ms = now_ms, .changed_ms = now_ms };
	s->place = take_place(l, s);
	if (type_of(s)->fields > 0)
		TAILQ_INSERT_TAIL(&l->all, s, link);
}

void
series_is_old(struct series *s)
{
	s->is_old = true;
}

void
series_hide(struct series_list *l, struct series *s)
{
	series_fini(l, s);
	s->place = 0;
}

void
series_fini(struct series_list *l, struct series *s)
{
	if (s->place == 0)
		return;
	if (type_of(s)->fields > 0)
		TAILQ_REMOVE(&l->all, s, link);
	leave_place(l, s->place);
	if (s->points == NULL)
		return;
	l->bytes -= points_size(s, s->points->cap);
	mem_sub(MEM_SAMPLES, points_size(s, s->points->cap));
	free(s->points);
	s->points = NULL;
}

bool
series_run(struct broker *b, uint64_t now_ms)
{
	struct series_list *l = &b->series;
	struct series *s;

	for (unsigned n = 0;
	     (s = TAILQ_FIRST(&l->all)) != NULL && s->visited_ms + SERIES_MS <= now_ms; n++) {
		if (n == SERIES_VISITS)
			return true;
		visit(l, s, now_ms);
		TAILQ_REMOVE(&l->all, s, link);
		TAILQ_INSERT_TAIL(&l->all, s, link);
	}
	return false;
}

static void
on_timer(struct wheel_node *node, uint64_t now_ms)
{
	struct broker *b = container_of(node, struct broker, series.timer);

	wheel_arm(
	    b->wheel, node, now_ms + (series_run(b, now_ms) ? MORE_AFTER_MS : LONGEST_WAIT_MS));
}

void
series_start(struct broker *b)
{
	b->series.timer.fire = on_timer;
	wheel_arm(b->wheel, &b->series.timer, b->now_ms + SERIES_MS);
}

void
series_stop(struct broker *b)
{
	wheel_disarm(b->wheel, &b->series.timer);
}

/* ---- what others ask ---- */

/* The newest point that is not younger than that; NULL: there is none. *next: the one behind it, or NULL. */
static const struct point *
find(const struct series *s, uint64_t at_ms, const struct point **next)
{
	unsigned n = count_of(s);

	*next = NULL;
	while (n > 0) {
		const struct point *p = point_at(s, --n);

		if (p->at_ms <= at_ms)
			return p;
		*next = p;
	}
	return NULL;
}

double
series_rate(const struct series *s, const uint64_t *counter, uint64_t now_ms)
{
	uint64_t from_ms = now_ms > SERIES_MS ? now_ms - SERIES_MS : 0, then = 0, since_ms;
	unsigned i = index_of(s, counter);
	const struct point *next, *p = find(s, from_ms, &next);

	if (p == NULL && s->is_old) {
		if (next == NULL)
			return 0.0;
		p = next; /* the first look at it, or what is left */
		since_ms = p->at_ms;
	} else if (next != NULL) {
		since_ms = next->before_ms;
	} else {
		since_ms = s->visited_ms < from_ms ? s->visited_ms : from_ms;
	}
	if (p != NULL)
		then = p->value[i];
	/* a new one had nothing before */
	if (now_ms < since_ms + SERIES_MS)
		since_ms = from_ms;
	return (double)(int64_t)(value_now(s, i) - then) * 1000.0 / (double)(now_ms - since_ms);
}

bool
series_at(const struct series *s, const uint64_t *counter, uint64_t at_ms, uint64_t *value)
{
	unsigned i = index_of(s, counter);
	const struct point *next, *p = find(s, at_ms, &next);

	if (p == NULL && s->is_old)
		return false;
	*value = p != NULL ? p->value[i] : 0;
	return true;
}

uint64_t
series_idle_since(struct series *s, uint64_t now_ms)
{
	look(s, s->is_old && s->points == NULL && s->mix == 0, now_ms);
	return now_ms < s->changed_ms + SETTLED_MS ? 0 : s->changed_ms;
}
