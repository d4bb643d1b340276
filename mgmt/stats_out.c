/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/stats_out.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/broker.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

enum { SAMPLES_MAX = SERIES_KEPT_MS / 1000 + 1, PARTS_MAX = 4 };

/* ---- what was asked ---- */

static bool
read_number(const char *text, int64_t *out)
{
	char *end;

	if (text == NULL || *text == '\0')
		return false;
	*out = strtoll(text, &end, 10);
	return *end == '\0';
}

/* What is no number is as if it were not there, as in RabbitMQ. */
static bool
read_range(struct request *r, const char *age_name, const char *incr_name, struct sample_range *out)
{
	int64_t age, incr;
	char text[120];

	if (!read_number(request_query(r, age_name), &age) ||
	    !read_number(request_query(r, incr_name), &incr))
		return true;
	if (age <= 0 || incr <= 0 || age > INT32_MAX || incr > INT32_MAX) {
		snprintf(text, sizeof text,
		    "Invalid range parameters: age %" PRId64 ", incr %" PRId64, age, incr);
		reply_error(r, 400, "invalid_range_parameters", text);
		return false;
	}
	*out = (struct sample_range){ (uint64_t)age * 1000, (uint64_t)incr * 1000 };
	return true;
}

static bool
is_true(const char *text)
{
	return text != NULL && strcmp(text, "true") == 0;
}

bool
doc_init(struct doc *d, struct request *r)
{
	*d = (struct doc){ .m = r->m,
		.now_ms = r->m->loop->now_ms,
		.no_stats = is_true(request_query(r, "disable_stats")),
		.totals = is_true(request_query(r, "enable_queue_totals")) };
	return read_range(r, "lengths_age", "lengths_incr", &d->lengths) &&
	       read_range(r, "msg_rates_age", "msg_rates_incr", &d->msg_rates) &&
	       read_range(r, "data_rates_age", "data_rates_incr", &d->data_rates);
}

/* ---- counters ---- */

static bool
sum_at(const struct counted *part, size_t parts, uint64_t at_ms, uint64_t *sum)
{
	uint64_t v;

	*sum = 0;
	for (size_t i = 0; i < parts; i++) {
		if (!series_at(part[i].series, part[i].counter, at_ms, &v))
			return false;
		*sum += v;
	}
	return true;
}

/* Now, and whole steps before, the newest first, as far back as anybody knows; the times are rounded down to whole steps. */
static void
out_samples(
    const struct doc *d, const struct sample_range *range, const struct counted *part, size_t parts)
{
	uint64_t first = d->now_ms / range->incr_ms * range->incr_ms, value[SAMPLES_MAX] = { 0 };
	uint64_t n = 1, ago = range->incr_ms;
	double all, span_s;

	for (size_t i = 0; i < parts; i++)
		value[0] += *part[i].counter;
	all = (double)value[0];
	while (n < SAMPLES_MAX && ago <= range->age_ms && ago < d->now_ms &&
	       sum_at(part, parts, d->now_ms - ago, &value[n])) {
		all += (double)value[n++];
		ago += range->incr_ms;
	}
	if (out_key(d->out, "samples")) {
		out_begin(d->out, '[');
		for (uint64_t i = 0; i < n; i++) {
			out_begin(d->out, '{');
			OUT_INT(d->out, "sample", value[i]);
			OUT_INT(d->out, "timestamp", first - i * range->incr_ms);
			out_end(d->out, '}');
		}
		out_end(d->out, ']');
	}
	OUT_PUT(d->out, "avg", out_number, all / (double)n);
	span_s = n > 1 ? (double)((n - 1) * range->incr_ms) / 1000 : 1;
	OUT_PUT(d->out, "avg_rate", out_number,
	    n > 1 ? (double)(int64_t)(value[0] - value[n - 1]) / span_s : 0.0);
}

void
out_sum(const struct doc *d, const char *name, const char *details,
    const struct sample_range *range, const struct counted *part, size_t parts)
{
	double rate = 0;
	uint64_t sum = 0;

	if (out_key_span(d->out, span_str(name))) {
		for (size_t i = 0; i < parts; i++)
			sum += *part[i].counter;
		out_uint(d->out, sum);
	}
	if (!out_key_span(d->out, span_str(details)))
		return;
	out_begin(d->out, '{');
	if (out_key(d->out, "rate")) {
		for (size_t i = 0; i < parts; i++)
			rate += series_rate(part[i].series, part[i].counter, d->now_ms);
		out_number(d->out, rate);
	}
	if (range->incr_ms > 0)
		out_samples(d, range, part, parts);
	out_end(d->out, '}');
}

void
out_counters(const struct doc *d, const char *name, const char *details,
    const struct sample_range *range, const struct series *series, const uint64_t *const *counters)
{
	struct counted part[PARTS_MAX];
	size_t n = 0;

	while (counters[n] != NULL) {
		assert(n < PARTS_MAX);
		part[n] = (struct counted){ series, counters[n] };
		n++;
	}
	out_sum(d, name, details, range, part, n);
}

#define MSG(name) OUT_COUNTER(d, #name, &d->msg_rates, series, &s->name)

/* Counters of deliveries come together or not at all, in channels, vhosts and queues alike. */
#define DELIVERY(s)                                                                         \
	((s)->deliver | (s)->deliver_no_ack | (s)->get | (s)->get_no_ack | (s)->get_empty | \
	    (s)->ack | (s)->redeliver)
#define OUT_DELIVERY(d, series, s)                                                \
	do {                                                                      \
		MSG(ack);                                                         \
		MSG(deliver);                                                     \
		OUT_COUNTER(d, "deliver_get", &d->msg_rates, series, &s->deliver, \
		    &s->deliver_no_ack, &s->get, &s->get_no_ack);                 \
		MSG(deliver_no_ack);                                              \
		MSG(get);                                                         \
		MSG(get_empty);                                                   \
		MSG(get_no_ack);                                                  \
		MSG(redeliver);                                                   \
	} while (0)

void
out_message_stats(const struct doc *d, const struct series *series, const struct message_stats *s)
{
	bool in = (s->publish | s->confirm | s->return_unroutable | s->drop_unroutable) != 0,
	     out = DELIVERY(s) != 0;

	if ((!in && !out) || !out_key(d->out, "message_stats"))
		return;
	out_begin(d->out, '{');
	if (out)
		OUT_DELIVERY(d, series, s);
	if (in) {
		MSG(confirm);
		MSG(drop_unroutable);
		MSG(publish);
		MSG(return_unroutable);
	}
	out_end(d->out, '}');
}

void
out_queue_stats(const struct doc *d, const struct series *series, const struct queue_stats *s)
{
	bool out = DELIVERY(s) != 0;

	if ((s->publish == 0 && !out) || !out_key(d->out, "message_stats"))
		return;
	out_begin(d->out, '{');
	if (out)
		OUT_DELIVERY(d, series, s);
	if (s->publish > 0)
		MSG(publish);
	out_end(d->out, '}');
}

void
out_exchange_stats(const struct doc *d, const struct series *series, const struct exchange_stats *s)
{
	if ((s->publish_in | s->publish_out) == 0 || !out_key(d->out, "message_stats"))
		return;
	out_begin(d->out, '{');
	MSG(publish_in);
	MSG(publish_out);
	out_end(d->out, '}');
}

void
out_traffic(const struct doc *d, const struct series *series, const struct traffic_stats *s)
{
	OUT_INT(d->out, "recv_cnt", s->recv_cnt);
	OUT_COUNTER(d, "recv_oct", &d->data_rates, series, &s->recv_oct);
	OUT_INT(d->out, "send_cnt", s->send_cnt);
	OUT_COUNTER(d, "send_oct", &d->data_rates, series, &s->send_oct);
}

void
out_depth(const struct doc *d, const struct series *series, const uint64_t *ready,
    const uint64_t *unacked)
{
	OUT_COUNTER(d, "messages", &d->lengths, series, ready, unacked);
	OUT_COUNTER(d, "messages_ready", &d->lengths, series, ready);
	OUT_COUNTER(d, "messages_unacknowledged", &d->lengths, series, unacked);
}

void
out_idle_since(const struct doc *d, struct series *series)
{
	uint64_t ms = series_idle_since(series, d->now_ms);
	time_t seconds = (time_t)(ms / 1000);
	char day[32], text[64];
	struct tm tm;

	if (ms == 0 || !out_key(d->out, "idle_since"))
		return;
	gmtime_r(&seconds, &tm);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof text, "%s.%03u+00:00", day, (unsigned)(ms % 1000));
	out_text(d->out, span_str(text));
}
