/* SPDX-License-Identifier: Apache-2.0
 * A message of the broker's own that goes the way of clients' messages: to an exchange, by its route into a durable queue,
 * into the journal, to a consumer. It happens in the broker's own vhost (vhost.h), so that nobody's limits and policies are
 * in its way and it is in nobody's lists; each probe has a queue of its own, which goes with it. */
#ifndef BROKER_PROBE_H
#define BROKER_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/client.h"
#include "broker/session.h"
#include "store/store.h"

struct broker;

enum probe_step { PROBE_QUEUE, PROBE_EXCHANGE, PROBE_JOURNAL, PROBE_CONSUMER };

struct probe {
	struct client client;	/* of nobody */
	struct session session; /* the consumer's */
	struct queue *queue;	/* borrowed: nobody else can delete it; NULL: not there */
	struct store_wait wait; /* what the confirm of the message waits for */
	uint64_t tag;
	bool is_delivered;
};

/* The message is published, and a consumer waits for it. NULL, or why it came no further than *step; probe_end() in both cases.
 * The text is good until the next refusal. */
const char *probe_begin(struct probe *p, struct broker *b, enum probe_step *step) MUSTUSE;
/* The confirm would go out: what was published is as safe as the settings want it. */
bool probe_is_confirmed(const struct probe *p);
/* The consumer, which has the message, acknowledges it. False: it was not taken. */
bool probe_ack(struct probe *p) MUSTUSE;
/* What it made goes. */
void probe_end(struct probe *p);

#endif
