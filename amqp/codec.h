/* SPDX-License-Identifier: Apache-2.0
 * The border to rabbitmq-c's codec: methods decoded and encoded. The only file in amqp/ that calls it. What it decodes
 * points into the frame and into one pool for the loop, recycled with each decode: whatever outlives the handler is
 * copied first. Arguments were checked by method_check() before, so nesting and lengths are bounded. */
#ifndef AMQP_CODEC_H
#define AMQP_CODEC_H

#include <amqp.h>
#include <amqp_framing.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/bytes.h"

struct connection;

void codec_init(void);
void codec_fini(void);
void *codec_decode(uint32_t id, struct span arguments) MUSTUSE;	/* NULL: no memory or wrong form */

/* Encodes a whole method frame (head, id, arguments, end) into the connection's output. `id` as rabbitmq-c names it
 * (AMQP_QUEUE_DECLARE_OK_METHOD), args its struct. What we send always fits: names are bounded. */
void codec_send(struct connection *c, uint16_t channel, uint32_t id, void *args);
/* The same into new memory (free()), for an answer that has to wait. args may be NULL where the method has none. */
uint8_t *codec_frame(uint16_t channel, uint32_t id, void *args, size_t *n) MUSTUSE;
/* A method without arguments, also one that rabbitmq-c does not know. */
void codec_send_empty(struct connection *c, uint16_t channel, uint32_t id);

static inline struct span
codec_span(amqp_bytes_t b)
{
	return span_of(b.bytes, b.len);
}

static inline amqp_bytes_t
codec_bytes(struct span s)
{
	amqp_bytes_t b = { s.n, (void *)(uintptr_t)s.p };

	return b;
}

#endif
