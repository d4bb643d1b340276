/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cli/bench_report.h"

void
bench_progress_init(struct bench_progress *p, const struct bench_options *o, int64_t now)
{
	*p = (struct bench_progress){ .last_ns = now };
	progress_init(&p->line, !o->json);
}

/* What came since; the counts of the warm-up are taken away in the midst. */
static void
subtract(struct bench_histogram *out, const struct bench_histogram *now,
    const struct bench_histogram *before)
{
	*out = *now;
	if (now->count < before->count)
		return;
	out->count -= before->count;
	for (unsigned i = 0; i < BENCH_PLACES; i++)
		out->place[i] -= before->place[i];
}

void
bench_progress_show(struct bench_progress *p, const struct bench_report *r, const char *phase,
    uint64_t published, uint64_t delivered, uint64_t in_flight, int64_t now)
{
	double seconds = (double)(now - p->last_ns) / 1e9;
	struct bench_histogram last;

	if (!p->line.is_shown_at_all || seconds <= 0)
		return;
	subtract(&last, &r->latency, &p->latency);
	progress_show(&p->line,
	    "%s: %.0f/s published, %.0f/s delivered, %" PRIu64
	    " in flight; latency median %.2f ms, 99 %% %.2f ms",
	    phase, (double)(published - p->published) / seconds,
	    (double)(delivered - p->delivered) / seconds, in_flight,
	    (double)bench_histogram_quantile(&last, 0.5) / 1e6,
	    (double)bench_histogram_quantile(&last, 0.99) / 1e6);
	p->latency = r->latency;
	p->published = published;
	p->delivered = delivered;
	p->last_ns = now;
}

void
bench_progress_clear(struct bench_progress *p)
{
	progress_clear(&p->line);
}
