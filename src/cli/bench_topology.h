/* SPDX-License-Identifier: Apache-2.0
 * The exchange, queues and bindings that a run of hermes bench needs: of names that nobody else has, and gone with it. */
#ifndef CLI_BENCH_TOPOLOGY_H
#define CLI_BENCH_TOPOLOGY_H

#include "cli/bench_conn.h"
#include "cli/bench_options.h"

/* Declares them. False: it failed, and was said; what is there has to be removed all the same. */
bool bench_topology_make(struct bench_broker *b, const struct bench_options *o) MUSTUSE;
/* Deletes them. What is not there is no failure. False: something is left. */
bool bench_topology_remove(struct bench_broker *b, const struct bench_options *o) MUSTUSE;

#endif
