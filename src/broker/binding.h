/* SPDX-License-Identifier: Apache-2.0
 * Bindings from an exchange to a queue or to another exchange; identity is source, destination, key and arguments. */
#ifndef BROKER_BINDING_H
#define BROKER_BINDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/exchange.h"

struct headers_match;

struct binding {
	struct exchange *source;	/* borrowed: owns us */
	struct queue *queue;		/* borrowed; NULL when the destination is an exchange */
	struct exchange *exchange;	/* borrowed; NULL when the destination is a queue */
	struct table *arguments;	/* owned, may be NULL */
	struct headers_match *match;	/* owned; headers exchanges only */
	LIST_ENTRY(binding) source_link;	/* source->bindings */
	LIST_ENTRY(binding) target_link;	/* queue->bindings or exchange->inbound */
	LIST_ENTRY(binding) index_link;	/* the type's index: those of one key or pattern */
	void *index_node;		/* borrowed: where the type's index has it */
	uint32_t index_place;		/* or its number there */
	struct bucket_node identity;	/* in source->identities; the hash is over destination, key and arguments */
	uint64_t id;			/* of the store's object */
	uint8_t key_len;
	uint8_t key[];
};

static inline struct span
binding_key(const struct binding *b)
{
	return span_of(b->key, b->key_len);
}

/* Exactly one of q, x is not NULL; key is at most 255 bytes. Binding what is bound already is fine. 403 default exchange
 * (either side), 406 "Invalid x-match field value/type", "The binding key ...", 506 no memory. */
const struct error *binding_add(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments) MUSTUSE;
/* From what the store had. */
const struct error *binding_restore(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments, uint64_t id) MUSTUSE;
bool binding_is_durable(const struct binding *b);	/* both ends are */
/* Of the one with this identity hash and id; NULL: there is none any more. */
struct binding *binding_find_id(const struct exchange *source, uint64_t identity, uint64_t id);
bool binding_exists(const struct exchange *source, const struct queue *q, const struct exchange *x, struct span key,
    const struct table *arguments);
/* Unbinding what is not bound is fine. The source, if auto-delete and now unbound, is gone afterwards. */
const struct error *binding_remove(struct exchange *source, struct queue *q, struct exchange *x, struct span key,
    const struct table *arguments) MUSTUSE;

/* The queue (exchange) goes: so do all bindings to it, and sources that are auto-delete and now unbound. */
void bindings_drop_queue(struct queue *q);
void bindings_drop_exchange(struct exchange *x);	/* both directions; exchange.c's, which then reaps */
/* Of one that is to go as the vhost does: some of them, *left goes down by as many. True: there are more. */
bool bindings_drop_some(struct queue *q, unsigned *left);
bool bindings_drop_some_of_exchange(struct exchange *x, unsigned *left);
/* Of one that is to be deleted, and is there until then: if it has so many that to drop them at once would take too long, some
 * of them go. True: come again in a later turn, before it is deleted. */
enum { BINDINGS_AT_ONCE = 1024 };
bool bindings_thin_queue(struct queue *q);
bool bindings_thin_exchange(struct exchange *x);

#endif
