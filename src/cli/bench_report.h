/* SPDX-License-Identifier: Apache-2.0
 * What a run of hermes bench has measured, and how it is shown: while it goes on, and in the end. */
#ifndef CLI_BENCH_REPORT_H
#define CLI_BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "cli/bench_histogram.h"
#include "cli/bench_options.h"
#include "cli/cli.h"
#include "cli/progress.h"

struct bench_report {
	/* messages since the end of the warm-up */
	uint64_t published, confirmed, refused, delivered, redelivered, delivered_bytes;
	uint64_t unconfirmed; /* when it was given up */
	uint64_t unsent; /* were due by the rate, and the broker did not take them */
	/* seconds from the end of the warm-up to the last message published, confirmed, delivered; of a backlog from when
	 * consumers began to the last one delivered */
	double publish_s, confirm_s, deliver_s;
	struct bench_histogram latency; /* from publish, with a rate from when it was due, to delivery */
	struct bench_histogram confirm; /* to the confirm */
	struct bench_histogram lag;     /* with a rate: how late we were ourselves */
	double own_cpu_s;

	/* of the whole run */
	uint64_t duplicates, out_of_order, damaged, lost;
	uint64_t blocked; /* times that the broker stopped publishers */
	bool is_complete; /* the broker has taken all in, and what it owed was waited for; else `lost` is not known */
	bool is_stopped;  /* by Ctrl-C */
	bool is_warm;     /* the warm-up was over; else the figures are of it */
	bool has_failed;  /* and it was said why */
};

/* The end. CLI_OK, or CLI_FAILED where the run failed, or messages were lost and so on, and it was said. */
int bench_report_print(struct cli *c, const struct bench_options *o, const struct bench_report *r) MUSTUSE;

/* A line on a terminal, written over each second. */
struct bench_progress {
	struct progress line;
	struct bench_histogram latency; /* as of the second before */
	uint64_t published, delivered;
	int64_t last_ns;
};

void bench_progress_init(struct bench_progress *p, const struct bench_options *o, int64_t now);
/* published, delivered: of the whole run; phase: what goes on. */
void bench_progress_show(struct bench_progress *p, const struct bench_report *r, const char *phase,
    uint64_t published, uint64_t delivered, uint64_t in_flight, int64_t now);
void bench_progress_clear(struct bench_progress *p);

#endif
