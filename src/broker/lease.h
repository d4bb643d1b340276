/* SPDX-License-Identifier: Apache-2.0
 * x-expires: a queue that nobody uses for so long goes, with its messages, which are not dead-lettered. Use is a consumer
 * as long as it is there, basic.get, and being declared, passively too; publishing is none. The time begins anew with
 * the node.
 *
 * One node in the wheel for such a queue; a use moves the end only, and the node looks at it when it fires. */
#ifndef BROKER_LEASE_H
#define BROKER_LEASE_H

#include <stdint.h>

#include "base/attr.h"
#include "base/wheel.h"
#include "broker/queue.h"

struct lease {
	struct wheel_node node;	/* armed unless the queue has consumers */
	struct queue *queue;	/* borrowed: owns us */
	uint64_t end_ms;
};

void lease_init(struct queue *q);	/* it has its settings */
void lease_fini(struct queue *q);
void lease_do_renew(struct queue *q);

/* The queue was used just now, or its last consumer went. */
static inline void
lease_renew(struct queue *q)
{
	if (unlikely(q->lease != NULL))
		lease_do_renew(q);
}

#endif
