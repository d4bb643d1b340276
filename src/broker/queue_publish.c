/* SPDX-License-Identifier: Apache-2.0
 * A routed message goes to its queues. */
#include "broker/broker.h"
#include "broker/publish.h"
#include "broker/queue.h"

enum publish_outcome
publish_deliver(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms)
{
	uint32_t n = route->count;

	b->stats.publish++;
	b->stats.publish_in += m->body_size;
	if (unlikely(n == 0)) {
		msg_unref(&m);
		return PUBLISH_UNROUTED;
	}
	/* All references at once: the first queue may use its own up. */
	m->refs += n - 1;
	for (uint32_t i = 0; i < n; i++) {
		if (i + 1 < n)
			__builtin_prefetch(route->queue[i + 1]);
		queue_publish(route->queue[i], m, due_ms);
	}
	return PUBLISH_ROUTED;
}
