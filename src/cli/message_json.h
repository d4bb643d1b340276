/* SPDX-License-Identifier: Apache-2.0
 * A message as JSON, in the shape of RabbitMQ's /api/queues/.../get. */
#ifndef CLI_MESSAGE_JSON_H
#define CLI_MESSAGE_JSON_H

#include <amqp.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/* How it came: by basic.get, or by basic.deliver to a consumer. */
struct message_way {
	amqp_bytes_t exchange, routing_key; /* borrowed */
	bool redelivered;
	const amqp_bytes_t *consumer_tag; /* borrowed; NULL: by basic.get */
	uint32_t message_count;           /* how many the queue has left; of basic.get only */
};

/* NULL: no memory. The caller gives it to json_decref. */
json_t *message_json(const struct message_way *way, const amqp_message_t *m) MUSTUSE;

#endif
