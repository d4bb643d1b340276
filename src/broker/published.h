/* SPDX-License-Identifier: Apache-2.0
 * How many messages a channel has published to each exchange. Its count of all publishes is marked when it goes over to
 * another exchange, so that a message costs one comparison. */
#ifndef BROKER_PUBLISHED_H
#define BROKER_PUBLISHED_H

#include <stdint.h>

struct exchange;
struct session;

enum { PUBLISHED_MAX = 16 }; /* exchanges that a channel counts apart; what goes to more of them counts for the channel only
				(broker->exchanges_uncounted) */

struct published_share {
	uint64_t exchange; /* id */
	uint64_t series;   /* series_ref() of it: it may be gone */
	uint64_t count;
};

/* Of a session; zero at first. */
struct published_list {
	uint64_t exchange; /* id of the one that is published to now; 0: nothing was published yet */
	uint64_t mark;	   /* session.stats.publish when that began */
	struct published_share *item; /* owned */
	uint32_t count, at;	/* at: the place of that exchange; PUBLISHED_MAX: it has none */
};

/* The next publishes go to x. */
void published_to(struct session *s, const struct exchange *x);
/* What went to the i-th of its exchanges so far. */
uint64_t published_count(const struct session *s, uint32_t i);
void published_fini(struct session *s);

#endif
