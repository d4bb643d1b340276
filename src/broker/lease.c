/* SPDX-License-Identifier: Apache-2.0
 * Leases of queues: see the header. */
#include "broker/lease.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/vhost.h"

static void
fire(struct wheel_node *node, uint64_t now_ms)
{
	struct lease *l = container_of(node, struct lease, node);
	struct queue *q = l->queue;

	if (q->consumer_count > 0)
		return; /* the last of them arms it again */
	if (now_ms < l->end_ms) {
		wheel_arm(q->broker->wheel, node, l->end_ms);
		return;
	}
	if (log_enabled(LOG_DEBUG))
		log_line(LOG_DEBUG, NULL,
		    "queue '%.*s' in vhost '%s' was not used for %llu ms (x-expires): deleted",
		    (int)q->name_len, q->name, q->vhost->name,
		    (unsigned long long)q->set.expires_ms);
	q->broker->stats.queues_expired++;
	queue_remove(q);
}

void
lease_init(struct queue *q)
{
	if (q->set.expires_ms == SETTING_NONE)
		return;
	q->lease = xcalloc(1, sizeof *q->lease);
	q->lease->queue = q;
	q->lease->node.fire = fire;
	mem_add(MEM_TOPOLOGY, sizeof *q->lease);
	lease_do_renew(q);
}

void
lease_fini(struct queue *q)
{
	if (q->lease == NULL)
		return;
	wheel_disarm(q->broker->wheel, &q->lease->node);
	mem_sub(MEM_TOPOLOGY, sizeof *q->lease);
	free(q->lease);
	q->lease = NULL;
}

void
lease_do_renew(struct queue *q)
{
	struct lease *l = q->lease;

	l->end_ms = q->broker->now_ms + q->set.expires_ms;
	if (!wheel_armed(&l->node) && q->consumer_count == 0)
		wheel_arm(q->broker->wheel, &l->node, l->end_ms);
}
