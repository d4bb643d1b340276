/* SPDX-License-Identifier: Apache-2.0
 * A track is looked at once a second. The seconds that have passed since the last look (one, unless the node was busy)
 * get the same rates and gauges; each is added to the open sample of every ring, and a ring whose sample is over closes
 * it as the mean of its seconds, or their maximum.
 *
 * A sample stands at its number since 1970 modulo the length of the ring, so that no ring has a beginning: what was not
 * sampled is made NAN when the ring goes on. */
#include "broker/history.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/mem.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/queue.h"
#include "broker/series.h"
#include "broker/session.h"
#include "broker/vhost.h"

enum {
	LINES_MAX = 10,
	SECOND_MS = 1000,
	GAP_S = 60, /* after a longer one nothing is known of it */
	MORE_AFTER_MS = 1
};

static const struct scale {
	uint32_t step_s, samples;
} scales[HISTORY_RANGES] = {
	[HISTORY_MINUTE] = { 1, 60 },
	[HISTORY_10M] = { 5, 120 },
	[HISTORY_HOUR] = { 30, 120 },
	[HISTORY_DAY] = { 600, 144 },
};
enum { SAMPLES = 60 + 120 + 120 + 144 };

enum how { RATE, MEAN, MOST };

/* What a line is made of: counters of the object, added up, or what read() says. */
enum { PARTS = 4 };
struct line {
	const char *name;
	enum how how;
	uint16_t part[PARTS]; /* offsets in the object, NONE where there are fewer */
};
enum { NONE = UINT16_MAX };

#define OF(type, member) (uint16_t) offsetof(struct type, member)
#define ONE(type, member)                          \
	{                                          \
		OF(type, member), NONE, NONE, NONE \
	}
#define OUT_OF(type)                                                                          \
	{                                                                                     \
		OF(type, stats.deliver), OF(type, stats.deliver_no_ack), OF(type, stats.get), \
		    OF(type, stats.get_no_ack)                                                \
	}
#define OTHER                          \
	{                              \
		NONE, NONE, NONE, NONE \
	} /* read() knows it */

static const struct line queue_lines[] = {
	{ "publish", RATE, ONE(queue, stats.publish) },
	{ "deliver", RATE, OUT_OF(queue) },
	{ "ack", RATE, ONE(queue, stats.ack) },
	{ "redeliver", RATE, ONE(queue, stats.redeliver) },
	{ "ready", MEAN, ONE(queue, ready) },
	{ "unacked", MEAN, ONE(queue, unacked) },
};
/* Channels that are closed take their counts along: of that second some are missing. */
static const struct line connection_lines[] = {
	{ "received", RATE, ONE(client, counted.recv_oct) },
	{ "sent", RATE, ONE(client, counted.send_oct) },
	{ "publish", RATE, OTHER },
	{ "deliver", RATE, OTHER },
	{ "ack", RATE, OTHER },
};
static const struct line vhost_lines[] = {
	{ "publish", RATE, ONE(vhost, stats.publish) },
	{ "deliver", RATE, OUT_OF(vhost) },
	{ "ack", RATE, ONE(vhost, stats.ack) },
	{ "redeliver", RATE, ONE(vhost, stats.redeliver) },
	{ "ready", MEAN, ONE(vhost, depth.ready) },
	{ "unacked", MEAN, ONE(vhost, depth.unacked) },
	{ "connections", MEAN, OTHER },
};
static const struct line node_lines[] = {
	{ "publish", RATE, ONE(broker, stats.publish) },
	{ "deliver", RATE, OUT_OF(broker) },
	{ "ack", RATE, ONE(broker, stats.ack) },
	{ "redeliver", RATE, ONE(broker, stats.redeliver) },
	{ "ready", MEAN, ONE(broker, stats.messages_ready) },
	{ "unacked", MEAN, ONE(broker, stats.messages_unacknowledged) },
	{ "connections", MEAN, ONE(broker, stats.connections) },
	{ "memory", MEAN, OTHER },
	{ "disk_free", MEAN, OTHER },
	{ "loop_lag_us", MOST, OTHER },
};

static const struct kind {
	const struct line *line;
	unsigned lines;
} kinds[SERIES_KINDS] = {
	[SERIES_QUEUE] = { queue_lines, COUNT_OF(queue_lines) },
	[SERIES_CONNECTION] = { connection_lines, COUNT_OF(connection_lines) },
	[SERIES_VHOST] = { vhost_lines, COUNT_OF(vhost_lines) },
	[SERIES_NODE] = { node_lines, COUNT_OF(node_lines) },
};
static_assert(COUNT_OF(node_lines) <= LINES_MAX, "the most lines");

struct ring {
	uint64_t number;  /* of the open sample: since 1970, in steps */
	uint32_t seconds; /* in it so far */
	float sum[LINES_MAX];
};

struct history_track {
	TAILQ_ENTRY(history_track) link;
	uint64_t object;   /* series_ref() */
	uint64_t asked_ms; /* last; 0: nobody need ask */
	uint64_t at_ms;    /* of the last look */
	enum series_kind kind;
	uint64_t last[LINES_MAX]; /* what counters were then */
	struct ring ring[HISTORY_RANGES];
	float value[]; /* for each range, for each line, its samples */
};

struct history {
	struct broker *broker; /* borrowed: owns us */
	history_gauges_fn *gauges;
	void *arg;
	TAILQ_HEAD(, history_track) tracks; /* owned: the one that was sampled longest ago first */
	struct wheel_node timer;
	struct history_stats stats;
};

/* ---- samples ---- */

static float *
samples_of(const struct history_track *t, unsigned range, unsigned line)
{
	unsigned lines = kinds[t->kind].lines;
	float *at = (float *)(uintptr_t)t->value;

	for (unsigned i = 0; i < range; i++)
		at += (size_t)scales[i].samples * lines;
	return at + (size_t)line * scales[range].samples;
}

static size_t
track_size(enum series_kind kind)
{
	return sizeof(struct history_track) + (size_t)kinds[kind].lines * SAMPLES * sizeof(float);
}

static float
open_sample(const struct history_track *t, unsigned range, unsigned line)
{
	const struct ring *r = &t->ring[range];

	if (r->seconds == 0)
		return NAN;
	return kinds[t->kind].line[line].how == MOST ? r->sum[line]
	                                             : r->sum[line] / (float)r->seconds;
}

/* Closes the open sample; those between it and `number` are not known. */
static void
ring_go_on(struct history_track *t, unsigned range, uint64_t number)
{
	struct ring *r = &t->ring[range];
	uint32_t len = scales[range].samples;
	uint64_t gap = number - r->number - 1 < len ? number - r->number - 1 : len;

	for (unsigned i = 0; i < kinds[t->kind].lines; i++) {
		float *v = samples_of(t, range, i);

		v[r->number % len] = open_sample(t, range, i);
		for (uint64_t n = number - gap; n < number; n++)
			v[n % len] = NAN;
		r->sum[i] = 0;
	}
	r->number = number;
	r->seconds = 0;
}

static void
add_second(struct history_track *t, uint64_t second, const float *value)
{
	for (unsigned range = 0; range < HISTORY_RANGES; range++) {
		struct ring *r = &t->ring[range];
		uint64_t number = second / scales[range].step_s;

		if (number > r->number)
			ring_go_on(t, range, number);
		for (unsigned i = 0; i < kinds[t->kind].lines; i++) {
			if (kinds[t->kind].line[i].how != MOST)
				r->sum[i] += value[i];
			else if (value[i] > r->sum[i])
				r->sum[i] = value[i];
		}
		r->seconds++;
	}
}

/* ---- counters ---- */

/* Returns what it cost, in tracks. */
static unsigned
read_connection(struct client *c, uint64_t *value)
{
	struct traffic_stats traffic;
	const struct session *s;
	unsigned cost = 1;

	client_traffic(c, &traffic, NULL); /* into c->counted */
	LIST_FOREACH (s, &c->sessions, link) {
		const struct message_stats *m = &s->stats;

		value[2] += m->publish;
		value[3] += m->deliver + m->deliver_no_ack + m->get + m->get_no_ack;
		value[4] += m->ack;
		cost++;
	}
	return cost;
}

static unsigned
read_others(const struct history *h, enum series_kind kind, void *object, uint64_t *value)
{
	struct history_gauges g = { 0 };

	switch (kind) {
	case SERIES_CONNECTION: return read_connection(object, value);
	case SERIES_VHOST: value[6] = ((const struct vhost *)object)->connections; break;
	case SERIES_NODE:
		h->gauges(h->arg, &g);
		value[7] = g.memory;
		value[8] = g.disk_free;
		value[9] = g.loop_lag_us;
		break;
	default: break;
	}
	return 1;
}

static uint64_t
part_now(const void *object, uint16_t part)
{
	uint64_t v;

	memcpy(&v, (const char *)object + part, sizeof v);
	return v;
}

static unsigned
read_all(const struct history *h, enum series_kind kind, void *object, uint64_t *value)
{
	unsigned cost;

	memset(value, 0, LINES_MAX * sizeof *value);
	cost = read_others(h, kind, object, value);
	for (unsigned i = 0; i < kinds[kind].lines; i++) {
		const struct line *line = &kinds[kind].line[i];

		for (unsigned p = 0; p < PARTS && line->part[p] != NONE; p++)
			value[i] += part_now(object, line->part[p]);
	}
	return cost;
}

/* Seconds begin with the look that falls into them: those that are over share what happened since the last look, so that
 * nothing is counted twice or lost. */
static unsigned
sample(const struct history *h, struct history_track *t, void *object, uint64_t now_ms)
{
	uint64_t now[LINES_MAX], second = now_ms / SECOND_MS, since = t->at_ms / SECOND_MS;
	float passed = (float)(second - since);
	unsigned cost = read_all(h, t->kind, object, now);
	float value[LINES_MAX];

	for (unsigned i = 0; i < kinds[t->kind].lines; i++) {
		value[i] = (float)now[i];
		/* a counter that fell is another one now */
		if (kinds[t->kind].line[i].how == RATE)
			value[i] =
			    now[i] > t->last[i] ? (float)(now[i] - t->last[i]) / passed : 0.0F;
		t->last[i] = now[i];
	}
	for (uint64_t s = second - since <= GAP_S ? since : second; s < second; s++)
		add_second(t, s, value);
	t->at_ms = now_ms;
	return cost;
}

/* ---- tracks ---- */

static struct history_track *
track_new(struct history *h, const struct series *s)
{
	struct history_track *t = xcalloc(1, track_size(s->kind));

	t->kind = (enum series_kind)s->kind;
	t->object = series_ref(&h->broker->series, s);
	t->at_ms = h->broker->now_ms;
	for (size_t i = 0; i < (size_t)kinds[t->kind].lines * SAMPLES; i++)
		t->value[i] = NAN;
	for (unsigned range = 0; range < HISTORY_RANGES; range++)
		t->ring[range].number = t->at_ms / SECOND_MS / scales[range].step_s;
	(void)read_all(h, t->kind, series_object(s), t->last);
	TAILQ_INSERT_TAIL(&h->tracks, t, link);
	h->stats.tracks++;
	h->stats.bytes += track_size(t->kind);
	mem_add(MEM_SAMPLES, track_size(t->kind));
	return t;
}

static void
track_free(struct history *h, struct history_track *t)
{
	TAILQ_REMOVE(&h->tracks, t, link);
	h->stats.tracks--;
	h->stats.asked -= t->asked_ms != 0;
	h->stats.bytes -= track_size(t->kind);
	mem_sub(MEM_SAMPLES, track_size(t->kind));
	free(t);
}

static void
make_room(struct history *h)
{
	struct history_track *t, *oldest = NULL;

	if (h->stats.asked < HISTORY_ASKED)
		return;
	TAILQ_FOREACH (t, &h->tracks, link) {
		if (t->asked_ms != 0 && (oldest == NULL || t->asked_ms < oldest->asked_ms))
			oldest = t;
	}
	track_free(h, oldest);
	h->stats.evicted++;
}

static bool
is_kept_always(const struct history *h, enum series_kind kind)
{
	uint32_t others = h->stats.tracks - h->stats.asked;

	/* the node is one of them */
	return kind == SERIES_NODE || (kind == SERIES_VHOST && others <= HISTORY_VHOSTS);
}

const struct history_track *
history_ask(struct broker *b, const struct series *s)
{
	struct history *h = b->history;
	struct history_track *t;
	uint64_t object;

	if (h == NULL)
		return NULL;
	assert(kinds[s->kind].lines > 0);
	object = series_ref(&b->series, s);
	TAILQ_FOREACH (t, &h->tracks, link) {
		if (t->object == object)
			break;
	}
	if (t == NULL && is_kept_always(h, s->kind)) {
		t = track_new(h, s);
	} else if (t == NULL) {
		make_room(h);
		t = track_new(h, s);
		t->asked_ms = b->now_ms;
		h->stats.asked++;
	}
	if (t->asked_ms != 0)
		t->asked_ms = b->now_ms;
	return t;
}

/* ---- each second ---- */

bool
history_run(struct broker *b, uint64_t now_ms)
{
	struct history *h = b->history;
	uint64_t second = now_ms / SECOND_MS;
	struct history_track *t;
	unsigned cost = 0;

	while ((t = TAILQ_FIRST(&h->tracks)) != NULL && t->at_ms / SECOND_MS < second) {
		struct series *s = series_find(&b->series, t->object);

		if (cost >= HISTORY_SLICE)
			return true;
		if (s == NULL || (t->asked_ms != 0 && t->asked_ms + HISTORY_KEPT_MS < now_ms)) {
			track_free(h, t);
			cost++;
			continue;
		}
		cost += sample(h, t, series_object(s), now_ms);
		TAILQ_REMOVE(&h->tracks, t, link);
		TAILQ_INSERT_TAIL(&h->tracks, t, link);
	}
	return false;
}

static void
on_timer(struct wheel_node *node, uint64_t now_ms)
{
	struct history *h = container_of(node, struct history, timer);
	bool more = history_run(h->broker, now_ms);

	wheel_arm(h->broker->wheel, node,
	    more ? now_ms + MORE_AFTER_MS : (now_ms / SECOND_MS + 1) * SECOND_MS);
}

void
history_watch(struct broker *b, const struct series *s)
{
	if (b->history != NULL && is_kept_always(b->history, (enum series_kind)s->kind))
		(void)track_new(b->history, s);
}

void
history_start(struct broker *b, history_gauges_fn *gauges, void *arg)
{
	struct history *h = xcalloc(1, sizeof *h);

	assert(b->history == NULL);
	b->history = h;
	h->broker = b;
	h->gauges = gauges;
	h->arg = arg;
	TAILQ_INIT(&h->tracks);
	h->timer.fire = on_timer;
	history_watch(b, &b->node);
	for (const struct vhost *vh = b->vhosts; vh != NULL; vh = vh->hh.next)
		history_watch(b, &vh->series);
	wheel_arm(b->wheel, &h->timer, (b->now_ms / SECOND_MS + 1) * SECOND_MS);
}

void
history_stop(struct broker *b)
{
	struct history *h = b->history;
	struct history_track *t;

	if (h == NULL)
		return;
	b->history = NULL;
	wheel_disarm(b->wheel, &h->timer);
	while ((t = TAILQ_FIRST(&h->tracks)) != NULL)
		track_free(h, t);
	free(h);
}

/* ---- what others read ---- */

unsigned
history_lines(const struct history_track *t)
{
	return kinds[t->kind].lines;
}

const char *
history_line_name(const struct history_track *t, unsigned line)
{
	return kinds[t->kind].line[line].name;
}

void
history_span(const struct history_track *t, enum history_range range, uint64_t *from_ms,
    uint64_t *step_ms, unsigned *count)
{
	*count = scales[range].samples;
	*step_ms = (uint64_t)scales[range].step_s * SECOND_MS;
	*from_ms = (t->ring[range].number + 1 - *count) * *step_ms;
}

float
history_value(const struct history_track *t, enum history_range range, unsigned line, unsigned i)
{
	uint32_t len = scales[range].samples;
	uint64_t number = t->ring[range].number + 1 + i;

	assert(i < len && line < history_lines(t));
	return i + 1 == len ? open_sample(t, range, line)
	                    : samples_of(t, range, line)[number % len];
}

void
history_stats(const struct broker *b, struct history_stats *out)
{
	*out = b->history != NULL ? b->history->stats : (struct history_stats){ 0 };
}
