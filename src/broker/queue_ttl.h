/* SPDX-License-Identifier: Apache-2.0
 * Times to live that a queue had. Policies change what q->set.ttl_ms says, and a message keeps the one under which it came,
 * as in RabbitMQ. Where there was a change while messages waited, q->ttl_past knows it; else it is NULL. */
#ifndef BROKER_QUEUE_TTL_H
#define BROKER_QUEUE_TTL_H

#include <stdint.h>

#include "base/bytes.h"

struct queue;

enum { TTL_PAST_MAX = 8, TTL_STATE_MAX = 16 * TTL_PAST_MAX /* bytes */ };

/* The one of a message that came at arrived_ms; SETTING_NONE: none. q->ttl_past is not NULL. */
uint64_t queue_ttl_at(const struct queue *q, uint64_t arrived_ms);
/* q->set.ttl_ms was old_ms until now. Goes to the store. Beyond TTL_PAST_MAX changes the longer one of the oldest two counts
 * for the messages of both. */
void queue_ttl_changed(struct queue *q, uint64_t old_ms);
/* A message comes: if nothing else is in the queue, nothing has to be known any more. */
void queue_ttl_tidy(struct queue *q);
void queue_ttl_fini(struct queue *q);

/* What the store keeps, in buf (TTL_STATE_MAX); empty: what the arguments say was always so. */
struct span queue_ttl_state(const struct queue *q, uint8_t *buf);
/* Of a restored queue; state empty: there was none. A policy that the queue had not met before the end meets it now. */
void queue_ttl_restore(struct queue *q, struct span state);

#endif
