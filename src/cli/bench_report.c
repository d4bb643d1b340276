/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/text_safe.h"

static const struct {
	const char *name, *text;
	double share;
} shares[] = {
	{ "p50", "median", 0.5 },
	{ "p95", "95 %", 0.95 },
	{ "p99", "99 %", 0.99 },
	{ "p99_9", "99.9 %", 0.999 },
};

static double
per_second(uint64_t n, double seconds)
{
	return seconds > 0 ? (double)n / seconds : 0;
}

static double
longest(const struct bench_report *r)
{
	double s = r->publish_s > r->confirm_s ? r->publish_s : r->confirm_s;

	return s > r->deliver_s ? s : r->deliver_s;
}

/* ---- JSON ---- */

static void
set_number(json_t *o, const char *name, uint64_t v)
{
	(void)json_object_set_new(o, name, json_integer((json_int_t)v));
}

static void
set_real(json_t *o, const char *name, double v)
{
	(void)json_object_set_new(o, name, json_real((double)(int64_t)(v * 1000 + 0.5) / 1000));
}

static void
set_text(json_t *o, const char *name, const char *text)
{
	(void)json_object_set_new(o, name, text != NULL ? json_string(text) : json_null());
}

static void
set_times(json_t *o, const char *name, const struct bench_histogram *h)
{
	json_t *t = json_object();

	for (size_t i = 0; i < COUNT_OF(shares); i++)
		set_real(
		    t, shares[i].name, (double)bench_histogram_quantile(h, shares[i].share) / 1000);
	set_real(t, "max", (double)h->max / 1000);
	set_real(t, "mean", bench_histogram_mean(h) / 1000);
	set_number(t, "count", h->count);
	(void)json_object_set_new(o, name, t);
}

static json_t *
asked(const struct bench_options *o)
{
	json_t *a = json_object(), *sizes = json_array();

	for (size_t i = 0; i < o->sizes; i++)
		(void)json_array_append_new(sizes, json_integer((json_int_t)o->size[i]));
	set_number(a, "publishers", o->publishers);
	set_number(a, "consumers", o->consumers);
	set_number(a, "queues", o->queues);
	(void)json_object_set_new(a, "sizes", sizes);
	set_number(a, "rate", o->rate);
	set_number(a, "confirms", o->confirms);
	set_number(a, "prefetch", o->prefetch);
	set_number(a, "ack", o->ack);
	set_number(a, "in_flight", o->in_flight);
	(void)json_object_set_new(a, "persistent", json_boolean(o->persistent));
	(void)json_object_set_new(a, "backlog", json_boolean(o->backlog));
	set_text(a, "queue_type", o->queue_type);
	set_text(a, "exchange_type", o->exchange_type);
	set_real(a, "duration_s", (double)o->duration_ms / 1000);
	set_real(a, "warm_up_s", (double)o->warmup_ms / 1000);
	set_number(a, "count", o->count);
	return a;
}

static void
set_verdict(json_t *j, const struct bench_options *o, const struct bench_report *r)
{
	(void)json_object_set_new(j, "complete", json_boolean(r->is_complete));
	(void)json_object_set_new(j, "verified", json_boolean(o->verify && o->consumers > 0));
	if (r->is_complete && o->consumers > 0)
		set_number(j, "lost", r->lost);
	else
		(void)json_object_set_new(j, "lost", json_null());
	set_number(j, "duplicates", r->duplicates);
	set_number(j, "out_of_order", r->out_of_order);
	set_number(j, "damaged", r->damaged);
}

static void
print_json(const struct bench_options *o, const struct bench_report *r)
{
	json_t *j = json_object();

	(void)json_object_set_new(j, "asked", asked(o));
	set_real(j, "seconds", longest(r));
	(void)json_object_set_new(j, "warmed_up", json_boolean(r->is_warm));
	set_number(j, "published", r->published);
	set_real(j, "published_per_s", per_second(r->published, r->publish_s));
	set_number(j, "confirmed", r->confirmed);
	set_real(j, "confirmed_per_s", per_second(r->confirmed, r->confirm_s));
	set_number(j, "refused", r->refused);
	set_number(j, "unconfirmed", r->unconfirmed);
	set_number(j, "delivered", r->delivered);
	set_real(j, "delivered_per_s", per_second(r->delivered, r->deliver_s));
	set_number(j, "delivered_bytes", r->delivered_bytes);
	set_number(j, "redelivered", r->redelivered);
	set_times(j, "latency_us", &r->latency);
	set_times(j, "confirm_us", &r->confirm);
	set_times(j, "send_lag_us", &r->lag);
	set_number(j, "unsent", r->unsent);
	set_number(j, "blocked", r->blocked);
	set_real(j, "own_cpu_s", r->own_cpu_s);
	set_verdict(j, o, r);
	(void)json_dumpf(
	    j, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12) | text_safe_json(STDOUT_FILENO));
	printf("\n");
	json_decref(j);
}

/* ---- for people ---- */

static void
print_time(uint64_t ns)
{
	if (ns < 1000000)
		printf("%.0f us", (double)ns / 1e3);
	else if (ns < 1000000000)
		printf("%.2f ms", (double)ns / 1e6);
	else
		printf("%.2f s", (double)ns / 1e9);
}

static void
print_times(const char *name, const struct bench_histogram *h, const char *what)
{
	if (h->count == 0)
		return;
	printf("%-13s", name);
	for (size_t i = 0; i < COUNT_OF(shares); i++) {
		printf("%s ", shares[i].text);
		print_time(bench_histogram_quantile(h, shares[i].share));
		printf(", ");
	}
	printf("most ");
	print_time(h->max);
	printf(" (%s)\n", what);
}

static void
print_count(const char *name, uint64_t n, double seconds)
{
	printf("%-13s%" PRIu64 ", %.0f/s", name, n, per_second(n, seconds));
}

static void
print_verdict(const struct bench_options *o, const struct bench_report *r)
{
	if (o->consumers == 0)
		return;
	printf("%-13s", "verified");
	if (!o->verify)
		printf("not asked for");
	else if (r->duplicates + r->out_of_order + r->damaged + r->lost == 0)
		printf("none %stwice, out of order or damaged", r->is_complete ? "lost, " : "");
	else
		printf("lost %" PRIu64 ", twice %" PRIu64 ", out of order %" PRIu64
		       ", damaged %" PRIu64,
		    r->lost, r->duplicates, r->out_of_order, r->damaged);
	printf("%s\n", r->is_complete ? "" : "; what was still under way is not known");
}

static void
print_text(const struct bench_options *o, const struct bench_report *r)
{
	printf("%-13s%.1f s%s\n", "time", longest(r),
	    o->warmup_ms == 0 ? ""
	    : r->is_warm      ? " after the warm-up"
	                      : " of the warm-up");
	print_count("published", r->published, r->publish_s);
	if (r->unsent > 0)
		printf("; %" PRIu64 " more were due, and there was no getting them out", r->unsent);
	printf("\n");
	if (o->confirms > 0) {
		print_count("confirmed", r->confirmed, r->confirm_s);
		if (r->refused > 0)
			printf("; %" PRIu64 " refused", r->refused);
		if (r->unconfirmed > 0)
			printf("; %" PRIu64 " not at all", r->unconfirmed);
		printf("\n");
	}
	if (o->consumers > 0) {
		print_count("delivered", r->delivered, r->deliver_s);
		printf(", %.1f MiB/s", per_second(r->delivered_bytes, r->deliver_s) / (1 << 20));
		if (r->redelivered > 0)
			printf("; %" PRIu64 " redelivered", r->redelivered);
		printf("\n");
	}
	if (r->blocked > 0)
		printf("%-13s%" PRIu64 " times\n", "blocked", r->blocked);
	print_times("latency", &r->latency,
	    o->rate > 0 ? "from when a message was due to its delivery"
	                : "from publish to delivery");
	print_times("confirms", &r->confirm,
	    o->rate > 0 ? "from when a message was due to its confirm" : "from publish to confirm");
	print_times("own delay", &r->lag, "of this command, in the latencies");
	print_verdict(o, r);
}

int
bench_report_print(struct cli *c, const struct bench_options *o, const struct bench_report *r)
{
	if (o->json)
		print_json(o, r);
	else
		print_text(o, r);
	(void)fflush(stdout);
	if (r->has_failed)
		return CLI_FAILED;
	if (r->duplicates + r->out_of_order + r->damaged + r->lost > 0)
		return cli_fail(c,
		    "what came is not what was published: lost %" PRIu64 ", twice %" PRIu64
		    ", out of order %" PRIu64 ", damaged %" PRIu64,
		    r->lost, r->duplicates, r->out_of_order, r->damaged);
	if (r->unconfirmed > 0)
		return cli_fail(
		    c, "the broker has not confirmed %" PRIu64 " messages", r->unconfirmed);
	if (!r->is_complete && !r->is_stopped)
		return cli_fail(c, "the broker has not taken in all that was sent to it");
	return CLI_OK;
}
