/* SPDX-License-Identifier: Apache-2.0
 * The frames that come in on a connection of hermes bench: checked, and given to who has to know. */
#ifndef CLI_BENCH_FRAMES_H
#define CLI_BENCH_FRAMES_H

#include "cli/bench_conn.h"

enum {
	BENCH_READ_MAX = 256 << 10,
	BENCH_FRAME_MAX = 131072,
	BENCH_IN_SIZE = BENCH_READ_MAX + BENCH_FRAME_MAX + WIRE_OVERHEAD /* of struct bench_broker's `in` */
};

/* Returns how many bytes were taken; what is left is a frame of which more has to come, and shorter than frame_max. */
size_t bench_frames_take(struct bench_conn *c, const uint8_t *p, size_t n);

#endif
