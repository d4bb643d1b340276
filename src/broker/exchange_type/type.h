/* SPDX-License-Identifier: Apache-2.0
 * What an exchange type does: one table of functions per type, one file each. A type keeps its index in exchange->index
 * and finds the bindings that a message matches; who they lead to is route.c's business. */
#ifndef BROKER_EXCHANGE_TYPE_TYPE_H
#define BROKER_EXCHANGE_TYPE_TYPE_H

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/binding.h"
#include "broker/error.h"
#include "broker/exchange.h"

struct message_headers;
struct route_walk;
struct table;

struct exchange_type_ops {
	const char *name;
	/* May such an exchange be made, with these arguments? NULL: every one may. */
	const struct error *(*check)(const struct table *arguments);
	/* May such a binding be made? NULL: every one may. */
	const struct error *(*validate)(struct span key, const struct table *arguments);
	void (*add)(struct exchange *x, struct binding *b);
	void (*remove)(struct exchange *x, struct binding *b);
	/* Calls route_hit() for every binding that the message matches, until it says no; the same one may be hit twice. */
	void (*route)(struct exchange *x, struct span key, struct route_walk *w);
	void (*free)(struct exchange *x); /* the index; no binding is left in it */
	bool by_key, by_headers;          /* what the answer depends on */
	bool own_key;                     /* the message's own key only, not those of CC and BCC */
};

extern const struct exchange_type_ops exchange_direct, exchange_fanout, exchange_topic,
    exchange_headers, exchange_consistent_hash, exchange_delayed;

const struct exchange_type_ops *exchange_type_ops(enum exchange_type type);

/* route.c's, for the types: a binding matches; the message's headers as headers.c looks them up. */
/* False: so many led to the same queues already that the walk's answer does not count any more. */
bool route_hit(struct route_walk *w, struct binding *b) MUSTUSE;
const struct message_headers *route_headers(struct route_walk *w);
/* The content of its header table and its property list, as they came; p NULL: none. Who looks at them says so, unless
 * the type has by_headers: then no cache remembers the answer. */
struct span route_headers_raw(const struct route_walk *w);
struct span route_props(const struct route_walk *w);
void route_depends_on_message(struct route_walk *w);
/* How much more may be done for this message, where a type's work is not bounded by what it finds. None left: the walk's
 * answer does not count any more. */
uint32_t route_steps_left(const struct route_walk *w);
void route_steps_taken(struct route_walk *w, uint32_t n);

#endif
