/* SPDX-License-Identifier: Apache-2.0
 * Which messages of which publisher came out of which queue, by the numbers that they carry: 0, 1, 2 ... of each publisher.
 *
 * What comes in order costs one comparison. Several consumers of a queue are served out of order: a bitmap over the newest
 * numbers, made when it is first needed, sorts that out. What stays away while it moves on past it is lost for good. */
#ifndef CLI_BENCH_VERIFY_H
#define CLI_BENCH_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_VERIFY_WINDOW = 1 << 18 }; /* numbers */

struct bench_verify;

struct bench_verify *bench_verify_new(uint32_t queues);
void bench_verify_free(struct bench_verify **vp);

/* Notes an arrival. False: it was here before, or is so late that it counts as lost. */
bool bench_verify_arrived(struct bench_verify *v, uint32_t queue, uint32_t publisher, uint64_t seq);

/* How many of the first `published` messages of a publisher have not come out of a queue. */
uint64_t bench_verify_missing(
    const struct bench_verify *v, uint32_t queue, uint32_t publisher, uint64_t published);

#endif
