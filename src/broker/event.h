/* SPDX-License-Identifier: Apache-2.0
 * What happened, and by whom: as a line of the log, and, while somebody is bound there, as a message of the internal
 * exchange amq.rabbitmq.event in the default vhost, with the keys and headers of RabbitMQ's plugin rabbitmq_event_exchange
 * (https://www.rabbitmq.com/docs/event-exchange). Who did it is broker->actor.
 *
 * Called right after the thing came into being or changed, and right before it goes. Lines are limited, in 10 s and of one
 * kind; messages wait in a list with a bound (notice.h). */
#ifndef BROKER_EVENT_H
#define BROKER_EVENT_H

#include <stdbool.h>

#include "base/bytes.h"
#include "broker/policy.h"

struct binding;
struct broker;
struct client;
struct consumer;
struct exchange;
struct parameter;
struct permission;
struct queue;
struct session;
struct topic_permission;
struct user;
struct vhost;

extern const char event_exchange[]; /* its name */

void event_queue(const struct queue *q, bool is_there);
void event_exchange_of(const struct exchange *x, bool is_there);
void event_binding(const struct binding *bd, bool is_there);
void event_consumer(const struct consumer *k, bool is_there);
void event_channel(const struct session *s, bool is_open);
void event_connection(const struct client *c, bool is_open);
/* why NULL: let in. */
void event_login(const struct client *c, struct span name, const char *mechanism, const char *why);
/* Somebody was not let in over HTTP. Each request logs in anew: that it was let in is no event. */
void event_login_http(struct broker *b, const char *name, const char *peer_host, uint16_t peer_port, const char *why);

enum event_change { EVENT_MADE, EVENT_CHANGED, EVENT_GOES };
void event_user(const struct user *u, enum event_change how);
void event_vhost(const struct vhost *vh, enum event_change how);
void event_permission(const struct permission *p, bool is_there);
void event_topic_permission(const struct topic_permission *p, bool is_there);
void event_vhost_limits(const struct vhost *vh);
void event_user_limits(const struct user *u);
void event_policy(const struct policy *p, bool is_there);
void event_parameter(const struct parameter *p, bool is_there);
void event_tell_alarms(struct broker *b); /* for broker.c: those that have begun or ended */

#endif
