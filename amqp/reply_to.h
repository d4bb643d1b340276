/* SPDX-License-Identifier: Apache-2.0
 * Direct reply-to (https://www.rabbitmq.com/docs/direct-reply-to): a channel consumes from a
 * pseudo queue, requests carry an address that leads back to it, replies go straight to it. */
#ifndef AMQP_REPLY_TO_H
#define AMQP_REPLY_TO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"
#include "broker/msg.h"

struct amqp;
struct channel;
struct reply_to;
struct vhost;

#define REPLY_TO_QUEUE "amq.rabbitmq.reply-to"
#define REPLY_TO_PREFIX REPLY_TO_QUEUE "."

static inline bool
reply_to_is_queue(struct span name)
{
	return name.n == sizeof REPLY_TO_QUEUE - 1 && memcmp(name.p, REPLY_TO_QUEUE, name.n) == 0;
}

/* Does it begin like an address? Not whether it is one. */
static inline bool
reply_to_is_address(struct span key)
{
	return key.n >= sizeof REPLY_TO_PREFIX - 1 &&
	       memcmp(key.p, REPLY_TO_PREFIX, sizeof REPLY_TO_PREFIX - 1) == 0;
}

/* basic.consume from the pseudo queue: 406 if it wants to acknowledge or there is one already. */
const struct error *reply_to_consume(struct channel *ch, struct span tag, bool no_ack) MUSTUSE;
void reply_to_cancel(struct channel *ch);           /* harmless when there is none */
struct span reply_to_tag(const struct channel *ch); /* p NULL: none */

/* What the reply-to property of a request is replaced by; p NULL: the channel has no consumer for
 * replies. */
struct span reply_to_address(const struct channel *ch);

/* Is this an address that leads somewhere? */
bool reply_to_exists(struct amqp *a, const struct vhost *vh, struct span address);

/* Delivers m to the address, if it leads somewhere; m's reference stays the caller's. One message
 * may name an address more than once and is delivered once: reply_to_begin() comes before its
 * first. */
void reply_to_begin(struct amqp *a);
void reply_to_deliver(struct amqp *a, const struct vhost *vh, struct span address, struct msg *m);

#endif
