/* SPDX-License-Identifier: Apache-2.0
 * A message as JSON, in the shape of RabbitMQ's /api/queues/.../get. */
#ifndef CLI_MESSAGE_JSON_H
#define CLI_MESSAGE_JSON_H

#include <amqp.h>
#include <jansson.h>

#include "base/attr.h"

/* NULL: no memory. The caller gives it to json_decref. */
json_t *message_json(const amqp_basic_get_ok_t *ok, const amqp_message_t *m) MUSTUSE;

#endif
