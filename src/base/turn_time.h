/* SPDX-License-Identifier: Apache-2.0
 * How long the longest turn of the core thread was, in its own processor time, so that what others do on the machine does
 * not count. The processor time is asked for (a system call) when half a millisecond has passed since the last time:
 * short turns are added up until then, and a long one is at most so much shorter than it seems. */
#ifndef BASE_TURN_TIME_H
#define BASE_TURN_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"

enum { TURN_TIME_LEAST_US = 500, TURN_TIME_SPAN_US = 60 * 1000 * 1000 };

struct turn_time { /* zero at first */
	uint64_t mono_us, cpu_us; /* as of the last note */
	uint64_t max_us;          /* since the start */
	uint64_t latest_us;       /* since whoever reads it last set it to 0 */
	uint64_t span_us;         /* when `now` began */
	uint64_t now_us, before_us; /* the longest of this minute, and of the one before */
	struct histogram turns;     /* by histogram_us; short ones as they are added up */
};

/* At the end of a turn: is it time to ask? */
static inline bool
turn_time_is_due(const struct turn_time *t, uint64_t mono_us)
{
	return mono_us - t->mono_us >= TURN_TIME_LEAST_US;
}

void turn_time_note(struct turn_time *t, uint64_t mono_us, uint64_t cpu_us);
/* Of the last one to two minutes. */
uint64_t turn_time_lately(const struct turn_time *t, uint64_t mono_us);

#endif
