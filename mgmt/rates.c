/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/rates.h"

#include <string.h>

#include "base/attr.h"
#include "broker/broker.h"

static void
on_timer(struct wheel_node *node, uint64_t now_ms)
{
	struct rates *r = container_of(node, struct rates, timer);

	r->sample[0] = r->sample[1];
	r->at_ms[0] = r->at_ms[1];
	r->sample[1] = r->broker->stats;
	r->at_ms[1] = now_ms;
	wheel_arm(r->wheel, node, now_ms + RATES_SAMPLE_MS);
}

void
rates_init(struct rates *r, const struct broker *b, struct wheel *w, uint64_t now_ms)
{
	*r = (struct rates){ .broker = b,
		.wheel = w,
		.sample = { b->stats, b->stats },
		.at_ms = { now_ms, now_ms },
		.timer = { .fire = on_timer } };
	wheel_arm(w, &r->timer, now_ms + RATES_SAMPLE_MS);
}

void
rates_fini(struct rates *r)
{
	wheel_disarm(r->wheel, &r->timer);
}

static uint64_t
field_of(const struct broker_stats *s, size_t field)
{
	uint64_t v;

	memcpy(&v, (const char *)s + field, sizeof v);
	return v;
}

double
rates_of(const struct rates *r, size_t field, uint64_t now_ms)
{
	/* a gauge may have fallen */
	int64_t grown =
	    (int64_t)(field_of(&r->broker->stats, field) - field_of(&r->sample[0], field));
	uint64_t ms = now_ms - r->at_ms[0];

	return ms == 0 || now_ms < r->at_ms[0] ? 0.0 : (double)grown * 1000.0 / (double)ms;
}
