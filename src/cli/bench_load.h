/* SPDX-License-Identifier: Apache-2.0
 * A run of hermes bench: publishers and consumers on one event loop. */
#ifndef CLI_BENCH_LOAD_H
#define CLI_BENCH_LOAD_H

#include <stdbool.h>

#include "base/attr.h"
#include "cli/bench_conn.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"

/* Connects, runs to the end, to Ctrl-C or to the first failure, which was said (b->failed). True: it has begun, and *r
 * (zero at first) holds what was measured. */
bool bench_load_run(struct bench_broker *b, const struct bench_options *o, struct bench_report *r) MUSTUSE;

#endif
