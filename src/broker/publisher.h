/* SPDX-License-Identifier: Apache-2.0
 * Publishing without a channel: what comes in by another way than AMQP is checked, routed, counted and confirmed as if a
 * channel of that client in confirm mode had published it. */
#ifndef BROKER_PUBLISHER_H
#define BROKER_PUBLISHER_H

#include <stdbool.h>

#include "base/attr.h"
#include "store/store.h"

struct broker;
struct client;
struct error;
struct msg;
struct publisher;

/* client: borrowed, with user and vhost; it need not be in any list. */
struct publisher *publisher_new(struct client *client);
void publisher_free(struct publisher **pp);

/* Why no publish is taken at this moment, which a channel would wait for; NULL: it is. */
const char *publisher_hold(const struct broker *b);

enum published { PUBLISHED_ROUTED, PUBLISHED_UNROUTED, PUBLISHED_REFUSED };
/* Takes over m, whose bytes are whole. The refusal is one of basic.publish. REFUSED: by a queue that is full. */
const struct error *publisher_publish(struct publisher *p, struct msg *m, enum published *out) MUSTUSE;
/* What the confirm of all that was published has to wait for. */
struct store_wait publisher_wait(const struct publisher *p);

#endif
