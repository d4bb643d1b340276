/* SPDX-License-Identifier: Apache-2.0
 * The method table (methods.def): look-up by id, form check of the arguments, and the handlers' prototypes. */
#ifndef AMQP_METHOD_H
#define AMQP_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/error.h"

struct channel;
struct connection;

enum method_need { ON_ZERO = 1, ON_CHANNEL = 2, FREE_CHANNEL = 4, CONTENT = 8 };

/* A handler's view of one method. Exactly one of `decoded` (rabbitmq-c's struct for the method, borrowed until the next
 * frame) and `raw` (arguments as they came) is set. ch is NULL on channel 0 and for FREE_CHANNEL. A handler returns
 * NULL or the refusal; only its caller sends channel.close or connection.close. */
struct method_call {
	struct connection *conn;
	struct channel *ch;
	uint16_t channel_id;
	const struct method *method;
	void *decoded;
	struct span raw;
	struct span frame;	/* as it came, whole; of those that come alone */
};
typedef const struct error *method_fn(const struct method_call *call);

struct method {
	const char *constant;		/* "BASIC.PUBLISH"; method_name() is for texts */
	uint16_t class_id, method_id;
	const char *arguments;
	uint32_t needs, states;
	bool raw;
	method_fn *fn;
};

enum method_index {
#define AMQP_METHOD(c, m, ci, mi, a, n, s, f) METHOD_##c##_##m,
#define AMQP_RAW AMQP_METHOD
#include "amqp/methods.def"
#undef AMQP_METHOD
#undef AMQP_RAW
	METHOD_COUNT
};
extern const struct method methods[METHOD_COUNT];
extern uint64_t method_count[METHOD_COUNT];

const struct method *method_find(uint16_t class_id, uint16_t method_id);	/* NULL: not one that clients send */
const char *method_name(const struct method *m);	/* "basic.publish"; good until the next call */
/* Do the arguments fill `raw` exactly, and are tables well-formed and not too deep? */
bool method_check(const struct method *m, struct span raw);
/* Are the short strings of arguments that passed method_check() UTF-8? Nobody asks it of basic.publish, whose names may
 * be any bytes, as in RabbitMQ. */
bool method_texts_valid(const struct method *m, struct span raw);

#define AMQP_METHOD(c, m, ci, mi, a, n, s, f) method_fn f;
#define AMQP_RAW AMQP_METHOD
#include "amqp/methods.def"
#undef AMQP_METHOD
#undef AMQP_RAW

#endif
