/* SPDX-License-Identifier: Apache-2.0
 * What was going on over the last minute, 10 minutes, hour and day, for charts: rings of samples, a second apart at the
 * finest, of the node and its vhosts at all times, of queues and connections from the first question about them until
 * nobody has asked for some minutes. Each second counters are read and compared with those of the second before, some
 * objects a slice; the way of a message pays nothing.
 *
 * Memory: a track has 444 samples of 4 bytes for each of its lines, 12 KiB with 7 lines. There are at most
 * HISTORY_VHOSTS tracks of vhosts that are always kept and HISTORY_ASKED of what was asked for: about 10 MiB. */
#ifndef BROKER_HISTORY_H
#define BROKER_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct broker;
struct history_track;
struct series;

enum {
	HISTORY_VHOSTS = 512,	/* kept always; of what is beyond it, those that were asked for */
	HISTORY_ASKED = 256,	/* for one more, the one that was asked for longest ago goes */
	HISTORY_KEPT_MS = 300 * 1000,	/* after the last question */
	HISTORY_SLICE = 64	/* tracks a slice; a channel of a connection counts like one more */
};

enum history_range { HISTORY_MINUTE, HISTORY_10M, HISTORY_HOUR, HISTORY_DAY, HISTORY_RANGES };

/* What only others know of the node: bytes, and the longest turn since the last call. */
struct history_gauges {
	uint64_t memory, disk_free, loop_lag_us;
};
typedef void history_gauges_fn(void *arg, struct history_gauges *out);

/* From now on, and no longer. */
void history_start(struct broker *b, history_gauges_fn *gauges, void *arg);
void history_stop(struct broker *b);
/* A slice. True: there is more to sample now. For tests; the wheel does it. */
bool history_run(struct broker *b, uint64_t now_ms);

/* A new vhost is sampled from here on, as long as there are not too many. */
void history_watch(struct broker *b, const struct series *s);

/* The track of a queue, connection, vhost or the node by its series; made where there is none yet, and kept for a while.
 * Borrowed until the next call into the broker; NULL: history was not started. */
const struct history_track *history_ask(struct broker *b, const struct series *s);

/* The lines of a track: 0 to count - 1, with names as "publish". */
unsigned history_lines(const struct history_track *t);
const char *history_line_name(const struct history_track *t, unsigned line);
/* A range: samples 0 to *count - 1, the first of which began at *from_ms (since 1970), each *step_ms long. */
void history_span(const struct history_track *t, enum history_range range, uint64_t *from_ms, uint64_t *step_ms,
    unsigned *count);
/* NAN: nothing is known. Of counters: a second. */
float history_value(const struct history_track *t, enum history_range range, unsigned line, unsigned i);

struct history_stats {
	uint32_t tracks, asked;	/* all; those of them that go when nobody asks any more */
	uint64_t evicted;	/* went early, for others */
	uint64_t bytes;
};
void history_stats(const struct broker *b, struct history_stats *out);

#endif
