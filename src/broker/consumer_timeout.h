/* SPDX-License-Identifier: Apache-2.0
 * x-consumer-timeout (of a consumer or a queue) and limits.consumer_timeout: how long a delivery may stay
 * unacknowledged. A consumer that holds one for longer is cancelled, and what is late goes back to its queue; its other
 * deliveries and its channel stay. What basic.get gave out goes back in the same way, by its queue's time.
 *
 * An acknowledgement that comes later still means nothing: the session remembers the tags that were taken from it.
 *
 * One node in the wheel for a session, armed for the delivery that is late first. As deliveries have their tags in the
 * order of time, it looks at the oldest ones only, as far as the shortest time that any of them has; a bounded number
 * a call. It does not look more often than ten times a second, nor than 64 times within the shortest time: so much
 * later than it should a message may come back. */
#ifndef BROKER_CONSUMER_TIMEOUT_H
#define BROKER_CONSUMER_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/session.h"

void consumer_timeout_init(struct session *s);
void consumer_timeout_fini(struct session *s);

/* The time that deliveries of basic.get from q have; 0: no limit. */
uint64_t consumer_timeout_of(const struct queue *q);

/* s holds a delivery that was made at_ms and may stay for so long (> 0). */
void consumer_timeout_do_watch(struct session *s, uint64_t at_ms, uint64_t timeout_ms);

static inline void
consumer_timeout_watch(struct session *s, uint64_t at_ms, uint64_t timeout_ms)
{
	if (unlikely(timeout_ms != 0))
		consumer_timeout_do_watch(s, at_ms, timeout_ms);
}

/* These came back from a transaction. */
void consumer_timeout_watch_set(struct session *s, const struct unacked_set *set);

/* Was this tag, which is not open, taken from the session? It is forgotten, with all before it if `multiple`. */
bool consumer_timeout_took(struct session *s, uint64_t tag, bool multiple);

#endif
