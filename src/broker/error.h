/* SPDX-License-Identifier: Apache-2.0
 * Refusals with RabbitMQ's reply codes and texts. A function that can refuse returns a `const struct error *`,
 * NULL for fine; what it points to is valid until the next refusal (core thread only). Who serves the client
 * (amqp/, mgmt/) turns it into channel.close, connection.close or an HTTP answer. */
#ifndef BROKER_ERROR_H
#define BROKER_ERROR_H

#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

enum { ERROR_TEXT_MAX = 2048, ERROR_REPLY_MAX = 255 };

enum error_scope { ERROR_CHANNEL, ERROR_CONNECTION };

enum error_id {
#define ERROR_DEF(id, code, name, scope) E_##id,
#include "broker/errors.def"
#undef ERROR_DEF
	ERROR_COUNT
};

struct error_def {
	uint16_t code;
	const char *name;
	enum error_scope scope;
};
extern const struct error_def error_defs[ERROR_COUNT];

struct error {
	enum error_id id;
	uint16_t code;
	enum error_scope scope;
	uint16_t class_id, method_id;	/* filled in by amqp/; 0, 0: names no method */
	char text[ERROR_TEXT_MAX];	/* "NAME - text" */
};

/* The one function that makes a refusal. */
const struct error *error_make(enum error_id id, const char *fmt, ...) PRINTF(2, 3);

/* The text as the short string of a reply has it: cut at 255 bytes, on a character boundary. Points into e. */
struct span error_reply_text(const struct error *e);

/* For connection.close where a channel's error must end the connection, or the other way round. */
const struct error *error_with_scope(const struct error *e, enum error_scope scope);

#endif
