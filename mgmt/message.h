/* SPDX-License-Identifier: Apache-2.0
 * Messages as JSON, both ways. */
#ifndef MGMT_MESSAGE_H
#define MGMT_MESSAGE_H

#include <jansson.h>

#include "base/attr.h"
#include "base/bytes.h"
#include "broker/session.h"

struct json_out;
struct msg;
struct tapped;

/* A message that is being put together. A long payload is copied piece by piece, that nobody waits for all of it. */
struct message_draft {
	struct msg *m; /* owned; NULL: there is none */
	struct msg_piece *last;
	struct span payload; /* borrowed, from the JSON or from `decoded` */
	size_t copied;
	char *decoded; /* owned */
};

/* From {"properties", "payload", "payload_encoding"} of `body`, which has all of them, for this exchange and key (at most 255
 * bytes each). `body` outlives the draft. NULL, or what RabbitMQ gives as the reason (a JSON value, owned); then there is no draft. */
json_t *message_begin(struct message_draft *d, const json_t *body, struct span exchange, struct span key) MUSTUSE;
/* The next piece. NULL, or as of message_begin. */
json_t *message_go_on(struct message_draft *d) MUSTUSE;
bool message_is_whole(const struct message_draft *d);
/* The message, once it is whole: the caller's. The draft is over. */
struct msg *message_end(struct message_draft *d) MUSTUSE;
void message_drop(struct message_draft *d); /* also of one that is over */

/* All of that at once, for a short payload. NULL: *problem as of message_begin. */
struct msg *message_of_json(const json_t *body, struct span exchange, struct span key, json_t **problem) MUSTUSE;

/* How a payload is shown: as it is where it is UTF-8, or always as base64; cut to so many bytes. */
struct payload_form {
	bool base64;
	uint64_t truncate; /* UINT64_MAX: not */
};

/* {payload, payload_bytes, payload_encoding, redelivered, exchange, routing_key, message_count, properties}. count: where it
 * is shown in a header, how often it came back; -1: it is not. */
void message_write(struct json_out *o, const struct entry *e, uint32_t left, int64_t count, const struct payload_form *form);
/* The same of an object that has more fields, without message_count. */
void message_write_fields(struct json_out *o, const struct entry *e, int64_t count, const struct payload_form *form);

/* {payload, payload_bytes, payload_encoding, exchange, routing_key, properties, at_ms}: of one that was watched. A text that
 * was cut within a character ends before it. */
void message_write_tapped(struct json_out *o, const struct tapped *m);

#endif
