/* SPDX-License-Identifier: Apache-2.0
 * Where would this message go? The walk of a real publish (route.h), looked on: which exchanges it meets, by which bindings
 * and alternates it goes from one to the next, and which queues it ends in. Nothing is published.
 *
 * A walk meets each exchange and each queue once, however many ways lead there: so the steps are a tree, but for those that
 * say `again`. What is kept is bounded by the number of steps, and with it the depth. */
#ifndef BROKER_ROUTE_TRY_H
#define BROKER_ROUTE_TRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct binding;
struct error;
struct exchange;
struct msg;
struct queue;

enum { ROUTE_TRY_STEPS_MAX = 1000 };

enum route_way { ROUTE_BY_BINDING, ROUTE_BY_ALTERNATE, ROUTE_BY_NAME };

struct route_step {
	enum route_way way;
	uint32_t from;		       /* number of the exchange in `place` */
	const struct binding *binding; /* NULL unless it is by one */
	const struct queue *queue;     /* or: */
	const struct exchange *exchange; /* both NULL: an alternate that is not there */
	bool again;		       /* some other step led there before */
};

struct route_place {
	const struct exchange *exchange;
	uint32_t depth;	   /* steps from where it was published to */
	uint64_t delay_ms; /* how long the message would be kept there; 0: not at all */
};

/* All pointers into the broker are borrowed, good until something changes. */
struct route_try {
	struct route_step *step; /* owned, as place is */
	struct route_place *place;
	uint32_t steps, places, queues; /* queues: different ones */
	bool is_cut;			/* there is more than ROUTE_TRY_STEPS_MAX */
};

/* m: as it would be published to x. NULL, or what a publish is refused with: CC or BCC of the wrong type, an x-delay that says
 * nothing, patterns that take too long. route_try_fini() in any case. */
const struct error *route_try(struct route_try *t, struct exchange *x, const struct msg *m) MUSTUSE;
void route_try_fini(struct route_try *t);

#endif
