/* SPDX-License-Identifier: Apache-2.0
 * The firehose of a vhost (https://www.rabbitmq.com/docs/firehose): while it is on, each message that is published, and each
 * that is delivered or got, is sent to the exchange amq.rabbitmq.trace as well, with the key "publish.EXCHANGE" or
 * "deliver.QUEUE", its body, and headers that say what it was. What came through that exchange is not traced again.
 * While no vhost is traced it costs a test of broker->tracing; while nobody is bound to the exchange nothing is made. */
#ifndef BROKER_TRACE_H
#define BROKER_TRACE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/publish.h"

struct broker;
struct entry;
struct exchange;
struct msg;
struct queue;
struct route;
struct session;
struct vhost;

extern const char trace_exchange[]; /* its name */

void trace_switch(struct vhost *vh, bool on);

/* At the log's level debug, each message that has a message-id can be followed by it through the log: published, given out,
 * settled, given up. For broker.c: the level may have changed. */
void trace_follow(struct broker *b);

/* broker->tracing is not 0: m of this session goes to the route; e goes to it from q. */
void trace_publish(const struct session *s, struct msg *m, const struct route *to) COLD;
void trace_deliver(const struct session *s, const struct queue *q, const struct entry *e) COLD;
/* The broker itself sends m on to the route, if that has a message-id: broker->is_followed is set. */
void trace_forward(const struct broker *b, const struct msg *m, const struct route *to, enum publish_source source) COLD;
/* It was settled so, or is given up by its queue for this reason. */
void trace_settle(const struct session *s, const struct queue *q, const struct entry *e, const char *how) COLD;
void trace_death(const struct queue *q, const struct entry *e, const char *why) COLD;
/* It goes no further than the exchange or the queue (`what`) of this name: at debug, once for each that has no message-id,
 * too, but of those so many lines only. */
void trace_drop(struct broker *b, const struct msg *m, const char *what, struct span name, const char *why) COLD;

#endif
