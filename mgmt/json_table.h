/* SPDX-License-Identifier: Apache-2.0
 * Field tables of AMQP as JSON and back: arguments of queues, exchanges, bindings and consumers, headers, definitions of
 * policies. As RabbitMQ converts them (https://www.rabbitmq.com/docs/management): integers become 64-bit ones, other
 * numbers doubles, null void; byte arrays and text are strings alike, so that the way back may change a type. */
#ifndef MGMT_JSON_TABLE_H
#define MGMT_JSON_TABLE_H

#include <jansson.h>

#include "base/attr.h"
#include "base/bytes.h"

struct table;

enum {
	JSON_TABLE_MAX = 128 << 10,		 /* bytes of a table: a larger one fits in no frame */
	JSON_TABLE_TEXT_MAX = 2 * JSON_TABLE_MAX /* what json_is_short() may say of one that is not larger */
};
extern const char json_table_too_large[];

/* A checked table (or NULL, 0) as an object: the caller's. */
json_t *json_of_table(struct span raw) MUSTUSE;

/* *out: owned by the caller, NULL for the empty table. NULL, or what is wrong as a static text: "no JSON object". */
const char *json_to_table(const json_t *object, struct table **out) MUSTUSE;

#endif
