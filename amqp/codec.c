/* SPDX-License-Identifier: Apache-2.0
 * Methods by rabbitmq-c's codec: one pool for what is decoded, frames encoded straight into the output. */
#include "amqp/codec.h"

#include <assert.h>
#include <stdlib.h>

#include "amqp/connection.h"
#include "amqp/frame.h"
#include "base/mem.h"
#include "net/transport.h"

enum {
	POOL_PAGE = 4096,
	POOL_KEEP =
	    256
	    << 10, /* bytes of pages that the pool may keep: a hostile table takes ten times that */
	/* No method that we send is longer, but connection.start: three names of 255 bytes and a few numbers. */
	ROOM = 1024,
	HEAD = FRAME_HEAD + 4
};

static amqp_pool_t pool;

void
codec_init(void)
{
	init_amqp_pool(&pool, POOL_PAGE);
}

void
codec_fini(void)
{
	empty_amqp_pool(&pool);
}

void *
codec_decode(uint32_t id, struct span arguments)
{
	void *decoded = NULL;

	if ((size_t)pool.pages.num_blocks * pool.pagesize > POOL_KEEP) {
		empty_amqp_pool(&pool);
		init_amqp_pool(&pool, POOL_PAGE);
	}
	recycle_amqp_pool(&pool);
	if (amqp_decode_method(id, &pool, codec_bytes(arguments), &decoded) != AMQP_STATUS_OK)
		return NULL;
	return decoded;
}

/* Writes what surrounds n bytes of arguments at p + HEAD; returns the length of all. */
static size_t
finish_frame(uint16_t channel, uint32_t id, uint8_t *p, size_t n)
{
	p[0] = FRAME_METHOD;
	put_be16(p + 1, channel);
	put_be32(p + 3, (uint32_t)(4 + n));
	put_be32(p + FRAME_HEAD, id);
	p[HEAD + n] = FRAME_END;
	return HEAD + n + 1;
}

static size_t
encode(uint8_t *p, size_t room, uint16_t channel, uint32_t id, void *args)
{
	amqp_bytes_t out = { .bytes = p + HEAD, .len = room - HEAD - 1 };
	int n = amqp_encode_method(id, args, out);

	assert(n >= 0);
	return finish_frame(channel, id, p, (size_t)n);
}

void
codec_send(struct connection *c, uint16_t channel, uint32_t id, void *args)
{
	size_t room = id == AMQP_CONNECTION_START_METHOD ? 4 * ROOM : ROOM;

	if (c->state == CONN_CLOSED)
		return; /* no frame after close-ok */
	transport_wrote(c->io, encode(transport_room(c->io, room), room, channel, id, args));
}

uint8_t *
codec_frame(uint16_t channel, uint32_t id, void *args, size_t *n)
{
	uint8_t *p = xmalloc(ROOM);

	*n = encode(p, ROOM, channel, id, args);
	return xrealloc(p, *n);
}

void
codec_send_empty(struct connection *c, uint16_t channel, uint32_t id)
{
	if (c->state != CONN_CLOSED)
		transport_wrote(
		    c->io, finish_frame(channel, id, transport_room(c->io, HEAD + 1), 0));
}
