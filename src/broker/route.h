/* SPDX-License-Identifier: Apache-2.0
 * Which queues a message reaches: through bindings between exchanges, alternates, CC and BCC; each queue once.
 * An exchange remembers the answer per key (at most 4,096, replaced, never grown), a session its last one. */
#ifndef BROKER_ROUTE_H
#define BROKER_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/exchange.h"

struct binding;
struct msg;
struct props;

/* An answer: borrowed from a cache or a scratch area, good until the next call of route_find or until the exchange's
 * generation changes. */
struct route {
	uint32_t count;
	bool by_headers;	/* depends on more than exchange and key: not to be remembered */
	struct queue **queue;
	/* x-delayed-message exchanges on the way that keep the message for a while, instead of what lies behind them. */
	uint32_t delays;
	bool bad_delay;		/* or would, if they understood for how long: its header is to be refused */
	struct exchange **delay;
};

/* `headers`: content of the message's header table, checked; p NULL if it has none. Needed by headers exchanges and for
 * CC and BCC (arrays of long strings under these names; what else stands there is refused by route_check_cc).
 * NULL: it would take more than ROUTE_STEPS_MAX steps through patterns of topic and bindings of headers exchanges, or so
 * many of the bindings that match lead to one queue. */
enum { ROUTE_STEPS_MAX = 1 << 17 };	/* 5 ms; a thousand is a lot for patterns that were not made for it */
const struct route *route_find(struct exchange *x, struct span key, struct span headers);

/* The same for a message and what props_scan said of it: for its own key, with all that it can be routed by. */
const struct route *route_find_msg(struct exchange *x, const struct msg *m, const struct props *pr);

/* Who looks on while a route is found (route_try.h). `at` counts the exchanges in the order in which they are met; those
 * that are met again are told as `again` and count once. Any of them may say false: no more of it, the answer is NULL. */
struct route_watch {
	bool (*on_binding)(struct route_watch *w, uint32_t at, struct binding *b, bool again);
	bool (*on_name)(struct route_watch *w, struct queue *q, bool again);	/* the default exchange has a queue of the key */
	/* nothing matched; x NULL: the alternate is not there */
	bool (*on_alternate)(struct route_watch *w, uint32_t at, struct exchange *x, bool again);
	/* x-delayed-message: it would be kept for so long. What lies behind is shown all the same. */
	void (*on_delay)(struct route_watch *w, uint32_t at, uint64_t ms);
};

/* The same as route_find_msg without its memory. */
const struct route *route_find_watched(struct exchange *x, const struct msg *m, const struct props *pr, struct route_watch *watch);

/* CC and BCC of wrong type: 406 with RabbitMQ's text; 406 for more than ROUTE_KEYS_MAX keys in both.
 * *has_cc: there is one of them; *bcc: a BCC, to be taken out before delivery. */
enum { ROUTE_KEYS_MAX = 4096 };
const struct error *route_check_cc(struct span headers, bool *has_cc, bool *bcc) MUSTUSE;
/* The header table without BCC, as new bytes (free()); NULL: no memory. */
uint8_t *route_without_bcc(struct span headers, size_t *n) MUSTUSE;

void route_cache_free(struct exchange *x);
void route_fini(void);		/* the scratch area */

#endif
