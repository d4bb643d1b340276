/* SPDX-License-Identifier: Apache-2.0
 * GET /metrics, /metrics/per-object, /metrics/detailed?family=...&vhost=...: for Prometheus, in slices. A scrape walks over
 * the objects of one kind after the other; each metric of the kind has a text of its own meanwhile, or a sum. One scrape
 * is made at a time, others wait for it: so much memory is used for them as one needs. Sums and rows of objects take turns,
 * so that the node's own metrics come in spite of a crowd that asks for those of all queues. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/bound.h"
#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "mgmt/listing.h"
#include "mgmt/metric_node.h"
#include "mgmt/metric_objects.h"
#include "mgmt/metric_text.h"
#include "mgmt/metrics.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

enum { LOOK_AT_CLOCK = 16, ROW_HEAD = 80 };

/* What a metric's rows begin with: its name and "{". */
struct row_head {
	char text[ROW_HEAD];
	uint8_t n; /* 0: no rows of it are asked for */
};

struct scrape {
	TAILQ_ENTRY(scrape) link;
	struct mgmt *m;
	struct request *r; /* borrowed: it is deferred, or we are within its handler */
	const char *prefix;
	uint32_t families;
	bool sums;     /* no rows of objects */
	bool is_begun; /* what is of the node is written */
	unsigned of;   /* object_metrics[of] is being walked, */
	uint32_t at;   /* see series_next() */
	double sum[OBJECT_METRICS_MAX];
	struct row_head head[OBJECT_METRICS_MAX];
	struct metric_text text[OBJECT_METRICS_MAX]; /* owned */
	struct evbuffer *body;                       /* owned */
	size_t bytes;                                /* of all that */
	char *labels;                                /* owned; of the row that is being written */
	struct span *vhost; /* owned, with what they point to: only these; NULL: all */
	size_t vhosts;
	bool is_too_long;
};

/* ---- what is asked for ---- */

static bool
is_wanted(const struct scrape *s, const struct object_metric *metric)
{
	return s->sums || (metric->families & s->families) != 0;
}

/* Does anything need this walk? */
static bool
needs_walk(const struct scrape *s, const struct object_metrics *of)
{
	if (s->sums)
		return of->has_sums;
	for (unsigned i = 0; i < of->count; i++)
		if (is_wanted(s, &of->metric[i]))
			return true;
	return false;
}

static bool
is_of_vhosts(const struct scrape *s, struct span vhost)
{
	if (s->vhosts == 0 || vhost.p == NULL)
		return true;
	for (size_t i = 0; i < s->vhosts; i++)
		if (span_eq(s->vhost[i], vhost))
			return true;
	return false;
}

/* ---- rows ---- */

static const char *
prefix_of(const struct scrape *s, const struct object_metric *metric)
{
	if (strncmp(metric->name, "cluster_", 8) == 0)
		return "rabbitmq_";
	return strncmp(metric->name, "hermes_", 7) == 0 ? "" : s->prefix;
}

static void
set_heads(struct scrape *s, const struct object_metrics *of)
{
	for (unsigned i = 0; i < of->count; i++) {
		const struct object_metric *metric = &of->metric[i];
		struct row_head *h = &s->head[i];

		h->n = 0;
		if (s->sums || !is_wanted(s, metric))
			continue;
		h->n = (uint8_t)snprintf(
		    h->text, sizeof h->text, "%s%s{", prefix_of(s, metric), metric->name);
		assert(h->n < sizeof h->text);
	}
}

static void
put_row(struct scrape *s, const struct object_metrics *of, const struct metric_text *labels,
    const double *value)
{
	for (unsigned i = 0; i < of->count; i++) {
		struct metric_text *t = &s->text[i];
		size_t before = t->bytes;

		if (s->head[i].n == 0)
			continue;
		metric_row(t, s->head[i].text, s->head[i].n, labels->p, labels->n, value[i]);
		s->bytes += t->bytes - before;
	}
}

static void
meet(struct scrape *s, const struct object_metrics *of, void *object, struct metric_text *labels)
{
	struct span vhost = { NULL, 0 };
	double value[OBJECT_METRICS_MAX];
	unsigned rows;

	if (!of->is_shown(object, &vhost) || !is_of_vhosts(s, vhost))
		return;
	rows = of->rows != NULL ? of->rows(object) : 1;
	for (unsigned row = 0; row < rows; row++) {
		if (s->sums) {
			of->values(s->m, object, row, value);
			for (unsigned i = 0; i < of->count; i++)
				s->sum[i] += isnan(value[i]) ? 0 : value[i];
			continue;
		}
		labels->n = 0;
		if (!of->labels(s->m, object, row, labels))
			continue;
		of->values(s->m, object, row, value);
		put_row(s, of, labels, value);
	}
}

/* False: there is more. */
static bool
walk(struct scrape *s, const struct object_metrics *of, uint64_t until_us)
{
	struct metric_text labels = { 0 };
	struct series *object;
	size_t before = s->bytes;
	unsigned n = 0;

	set_heads(s, of);
	while ((object = series_next(&s->m->broker->series, of->kind, &s->at)) != NULL) {
		meet(s, of, series_object(object), &labels);
		if (++n % LOOK_AT_CLOCK == 0 && clock_mono_us() >= until_us)
			break;
	}
	metric_text_fini(&labels);
	mem_add(MEM_OUTPUT, s->bytes - before);
	s->is_too_long = s->bytes > LISTING_BYTES_MAX;
	return object == NULL;
}

/* ---- what a walk leads to ---- */

static void
put_head(struct metric_text *t, const struct scrape *s, const struct object_metric *metric)
{
	metric_head(t, prefix_of(s, metric), metric->name, metric->kind, metric->help);
}

static void
put_sums(struct scrape *s, const struct object_metrics *of)
{
	struct metric_text t = { 0 };

	if (of->totals == NULL)
		return;
	of->totals(s->m, s->sum);
	for (unsigned i = 0; i < of->count; i++) {
		if (isnan(s->sum[i]))
			continue;
		put_head(&t, s, &of->metric[i]);
		metric_sample(
		    &t, prefix_of(s, &of->metric[i]), of->metric[i].name, NULL, s->sum[i]);
	}
	metric_text_move(&t, s->body);
	metric_text_fini(&t);
}

static void
put_texts(struct scrape *s, const struct object_metrics *of)
{
	struct metric_text head = { 0 };

	for (unsigned i = 0; i < of->count; i++) {
		if (s->text[i].bytes == 0)
			continue;
		put_head(&head, s, &of->metric[i]);
		metric_text_move(&head, s->body);
		metric_text_move(&s->text[i], s->body);
		metric_text_fini(&s->text[i]);
	}
	metric_text_fini(&head);
}

static void
next_kind(struct scrape *s, const struct object_metrics *of)
{
	if (s->sums)
		put_sums(s, of);
	else
		put_texts(s, of);
	memset(s->sum, 0, sizeof s->sum);
	s->at = 0;
	s->of++;
}

/* ---- slices ---- */

static const char *
endpoint_of(const struct scrape *s)
{
	if (s->sums)
		return "aggregated";
	return strcmp(s->prefix, "rabbitmq_") == 0 ? "per-object" : "detailed";
}

static void
put_node(struct scrape *s)
{
	struct metric_text t = { 0 };
	bool all = strcmp(s->prefix, "rabbitmq_") == 0;

	metric_node_identity(s->m, &t, endpoint_of(s));
	metric_node_write(s->m, &t, s->prefix, s->families, all);
	metric_text_move(&t, s->body);
	metric_text_fini(&t);
	s->is_begun = true;
}

static bool
is_over(const struct scrape *s)
{
	return s->of == object_metrics_count || s->is_too_long;
}

static void
run_slice(struct scrape *s)
{
	uint64_t from_us = clock_mono_us(), until_us = from_us + LISTING_SLICE_US;

	if (!s->is_begun)
		put_node(s);
	while (!is_over(s)) {
		const struct object_metrics *of = &object_metrics[s->of];

		if (needs_walk(s, of) && !walk(s, of, until_us))
			break;
		if (!s->is_too_long)
			next_kind(s, of);
		if (clock_mono_us() >= until_us)
			break;
	}
	s->m->listings.spent_us += clock_mono_us() - from_us;
}

static void
scrape_free(struct scrape *s)
{
	mem_sub(MEM_OUTPUT, s->bytes);
	for (unsigned i = 0; i < COUNT_OF(s->text); i++)
		metric_text_fini(&s->text[i]);
	for (size_t i = 0; i < s->vhosts; i++)
		free((void *)(uintptr_t)s->vhost[i].p);
	free(s->vhost);
	evbuffer_free(s->body);
	free(s);
}

static void
answer(struct scrape *s)
{
	if (s->is_too_long) {
		bound_reached(BOUND_scrapes);
		reply_error(s->r, 503, "service_unavailable",
		    "there are too many objects for one answer; ask for less families, or for some "
		    "vhosts");
	} else {
		reply_bytes(s->r, 200, "text/plain; version=0.0.4; charset=utf-8", s->body);
	}
	scrape_free(s);
}

/* The next is one of the other sort than the last, if there is one. */
static void
choose_next(struct mgmt *m, bool last_sums)
{
	struct scrape *s;

	TAILQ_FOREACH (s, &m->scrapes.all, link)
		if (s->sums != last_sums)
			break;
	if (s == NULL)
		return;
	TAILQ_REMOVE(&m->scrapes.all, s, link);
	TAILQ_INSERT_HEAD(&m->scrapes.all, s, link);
}

static void
on_timer(struct wheel_node *node, uint64_t now_ms)
{
	struct mgmt *m = container_of(node, struct mgmt, scrapes.timer);
	struct scrape *s = TAILQ_FIRST(&m->scrapes.all);

	if (s == NULL)
		return;
	m->scrapes.had_turn = !m->scrapes.had_turn || m->listings.count == 0;
	if (m->scrapes.had_turn)
		run_slice(s);
	if (is_over(s)) {
		TAILQ_REMOVE(&m->scrapes.all, s, link);
		m->scrapes.count--;
		choose_next(m, s->sums);
		answer(s);
	}
	if (!TAILQ_EMPTY(&m->scrapes.all))
		wheel_arm(m->loop->wheel, node, now_ms);
}

static void
start(struct scrape *s)
{
	struct mgmt *m = s->m;

	s->body = reply_buffer();
	if (TAILQ_EMPTY(&m->scrapes.all) && m->listings.spent_us < LISTING_SLICE_US)
		run_slice(s);
	if (is_over(s)) {
		answer(s);
		return;
	}
	request_defer(s->r);
	TAILQ_INSERT_TAIL(&m->scrapes.all, s, link);
	m->scrapes.count++;
	m->scrapes.timer.fire = on_timer;
	if (!wheel_armed(&m->scrapes.timer))
		wheel_arm(m->loop->wheel, &m->scrapes.timer, m->loop->now_ms);
}

static struct scrape *
scrape_new(struct request *r, const char *prefix, uint32_t families)
{
	struct scrape *s = xcalloc(1, sizeof *s);

	s->m = r->m;
	s->r = r;
	s->prefix = prefix;
	s->families = families;
	return s;
}

/* ---- what can be asked ---- */

void
route_metrics(struct request *r)
{
	struct scrape *s = scrape_new(r, "rabbitmq_", 0);

	s->sums = true;
	start(s);
}

void
route_metrics_per_object(struct request *r)
{
	start(scrape_new(r, "rabbitmq_", metric_families_per_object));
}

static uint32_t
family_bit(const char *name)
{
	for (unsigned i = 0; i < METRIC_FAMILY_COUNT; i++)
		if (strcmp(name, metric_family_names[i]) == 0)
			return BIT(i);
	return 0;
}

/* A name that is none, or no vhost's, means nothing, as in RabbitMQ. */
void
route_metrics_detailed(struct request *r)
{
	struct scrape *s = scrape_new(r, "rabbitmq_detailed_", 0);
	struct evkeyval *pair;
	size_t n = 0;

	(void)request_query(r, "family"); /* reads all of it */
	if (r->has_query)
		TAILQ_FOREACH (pair, &r->query, next)
			n++;
	s->vhost = xcalloc(n + 1, sizeof *s->vhost);
	if (r->has_query)
		TAILQ_FOREACH (pair, &r->query, next) {
			if (strcmp(pair->key, "family") == 0)
				s->families |= family_bit(pair->value);
			else if (strcmp(pair->key, "vhost") == 0)
				s->vhost[s->vhosts++] = span_str(xstrdup(pair->value));
		}
	start(s);
}

void
scrapes_stop(struct mgmt *m)
{
	struct scrape *s;

	while ((s = TAILQ_FIRST(&m->scrapes.all)) != NULL) {
		TAILQ_REMOVE(&m->scrapes.all, s, link);
		scrape_free(s);
	}
	m->scrapes.count = 0;
	wheel_disarm(m->loop->wheel, &m->scrapes.timer);
}
