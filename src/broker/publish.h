/* SPDX-License-Identifier: Apache-2.0
 * One publish from the client's message to its queues. */
#ifndef BROKER_PUBLISH_H
#define BROKER_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/error.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/route.h"
#include "broker/session.h"
#include "broker/tap.h"
#include "store/store.h"

enum { PUBLISH_MEMO_QUEUES = 8 };

/* What a channel remembers of its last publish, so that a stream of messages to one place costs one comparison. It has
 * its own copy of the route: an exchange's cache may replace its entries at any time. All zero: nothing remembered.
 * Of one session, so of one vhost and one user. */
struct publish_memo {
	struct exchange *exchange;	/* borrowed; by the last message, good right after publish_route; afterwards good, and open to
					 * the user, while both epochs are the same and names_len is not 0 */
	uint64_t epoch;			/* the vhost's */
	uint64_t permission_epoch;	/* the broker's */
	uint64_t generation;		/* the exchange's: of the route; 0: the route is not remembered */
	struct route route;
	struct queue *queue[PUBLISH_MEMO_QUEUES];
	uint16_t names_len;		/* 0: nothing is remembered */
	uint8_t names[513];		/* exchange and key as in msg.wire */
};

/* REFUSED: by a queue that is full, though others may have taken it; its publisher gets a nack. */
enum publish_outcome { PUBLISH_ROUTED, PUBLISH_UNROUTED, PUBLISH_REFUSED };

/* Finds exchange and route for m, after RabbitMQ's checks in its order: 403 no write right, 404 no exchange, 403
 * internal, 406 user-id, expiration, CC and BCC, delivery mode. *route may be remembered in memo. pr: the scanned
 * properties of m. *due_ms: absolute expiry or 0. *route holds until the next change of topology or the next call, so use
 * it at once. The session's next publishes are counted for this exchange (published.h). */
const struct error *publish_route(struct session *s, struct publish_memo *memo, const struct msg *m,
    const struct props *pr, const struct route **route, uint64_t *due_ms) MUSTUSE;

/* 406: a route that takes too many steps. */
const struct error *publish_refuse_route(const struct exchange *x, struct span key);

/* A message of this session was published to x, where publish_route has just led, and so many copies go into queues: counts
 * it for both. The node's count is publish_deliver's. */
static inline void
publish_count(struct session *s, struct exchange *x, uint32_t copies)
{
	SESSION_COUNT(s, publish, 1);
	x->stats.publish_in++;
	x->stats.publish_out += copies;
}

/* broker->watched is not 0: publish_route led m to x and `to`. It is shown to those who watch; `now` false: it is published
 * later, in a transaction, and taps see it then. */
void publish_show(const struct session *s, struct exchange *x, struct msg *m, const struct route *to, bool now) COLD;

/* The same two for a message that publish_route did not lead, or not just now. It was traced then. */
void publish_late(struct session *s, struct exchange *x, const struct msg *m, uint32_t copies);

/* Gives m (one reference, taken over) to the queues of the route; what has to survive is journalled before. *wait: what
 * a confirm has to wait for (lsn 0: nothing). */
enum publish_outcome publish_deliver(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms,
    struct store_wait *wait);

/* The same for a message that the broker itself sends on: a dead letter, or one that was delayed, which was published to
 * its exchange before. */
enum publish_source {
	PUBLISH_CLIENT, PUBLISH_LETTER, PUBLISH_DELAYED,
	/* By an operator, through the exchange that it names, or right into its queue: what dedup knows is no reason to lose it. */
	PUBLISH_MOVED, PUBLISH_PLACED
};
enum publish_outcome publish_forward(struct broker *b, struct msg *m, const struct route *route, uint64_t due_ms,
    enum publish_source source);

#endif
