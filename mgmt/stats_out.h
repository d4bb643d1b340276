/* SPDX-License-Identifier: Apache-2.0
 * Counters in documents: NAME: count, NAME_details: {rate}, and what the counter was over the last minute where that was
 * asked for (msg_rates_age=60&msg_rates_incr=5 and the like). */
#ifndef MGMT_STATS_OUT_H
#define MGMT_STATS_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/series.h"
#include "broker/stats.h"
#include "mgmt/json_out.h"

struct mgmt;
struct request;
struct user;

struct sample_range {
	uint64_t age_ms, incr_ms; /* incr 0: no samples */
};

/* How documents are written. */
struct doc {
	struct json_out *out; /* borrowed, as the next */
	const struct mgmt *m;
	uint64_t now_ms;
	struct sample_range lengths, msg_rates, data_rates;
	bool is_single; /* one object was asked for, not a list */
	bool no_stats, totals; /* disable_stats=true, enable_queue_totals=true */
};

/* From the query. False: it was answered, with 400. */
bool doc_init(struct doc *d, struct request *r) MUSTUSE;

/* A counter of an object, and the series that knows what it was. */
struct counted {
	const struct series *series;
	const uint64_t *counter;
};
/* Several of one object that are added up. */
#define OUT_COUNTER(d, literal, range, series, ...) \
	out_counters(d, literal, literal "_details", range, series, (const uint64_t *const[]){ __VA_ARGS__, NULL })
void out_counters(const struct doc *d, const char *name, const char *details, const struct sample_range *range,
    const struct series *series, const uint64_t *const *counters);
/* Of several objects. */
void out_sum(const struct doc *d, const char *name, const char *details, const struct sample_range *range,
    const struct counted *part, size_t parts);

/* "message_stats" of a channel or vhost; of a queue; of an exchange: left out where nothing has been counted. */
void out_message_stats(const struct doc *d, const struct series *series, const struct message_stats *s);
void out_queue_stats(const struct doc *d, const struct series *series, const struct queue_stats *s);
void out_exchange_stats(const struct doc *d, const struct series *series, const struct exchange_stats *s);
/* recv_oct and the others. */
void out_traffic(const struct doc *d, const struct series *series, const struct traffic_stats *s);
/* messages, messages_ready, messages_unacknowledged */
void out_depth(const struct doc *d, const struct series *series, const uint64_t *ready, const uint64_t *unacked);

/* "idle_since", unless it is busy. */
void out_idle_since(const struct doc *d, struct series *series);

#endif
