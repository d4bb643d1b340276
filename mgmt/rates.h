/* SPDX-License-Identifier: Apache-2.0
 * Rates of the node's counters: the difference to a sample that is five to ten seconds old. The counts
 * themselves are never sampled; they are shown as they are. */
#ifndef MGMT_RATES_H
#define MGMT_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/wheel.h"
#include "broker/stats.h"

struct broker;

enum { RATES_SAMPLE_MS = 5000 };

struct rates {
	const struct broker *broker;   /* borrowed */
	struct wheel *wheel;           /* borrowed: the loop's */
	struct broker_stats sample[2]; /* the older one first */
	uint64_t at_ms[2];
	struct wheel_node timer;
};

void rates_init(struct rates *r, const struct broker *b, struct wheel *w, uint64_t now_ms);
void rates_fini(struct rates *r);

/* Per second; `field` is an offset in struct broker_stats: offsetof(struct broker_stats, publish). */
double rates_of(const struct rates *r, size_t field, uint64_t now_ms);

#endif
