/* SPDX-License-Identifier: Apache-2.0
 * Ctrl-C: the first one ends hermes bench in order, the second one at once. */
#ifndef CLI_BENCH_STOP_H
#define CLI_BENCH_STOP_H

#include <stdbool.h>

void bench_stop_watch(void);
bool bench_stop_asked(void);

#endif
