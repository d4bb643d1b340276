/* SPDX-License-Identifier: Apache-2.0
 * The frame walker without a socket: bytes straight into the connection, in pieces. First octet of the input: how many
 * octets more are shown at a time (0: all at once). The bytes lie at the end of an allocation, so that a sanitizer sees
 * each one read too many, and the walker may write into them. Whatever it leaves is shown again with the next piece, as
 * the transport does. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Shows n bytes at p; returns how many were taken. */
static size_t
show(struct peer *peer, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n);
	size_t used;

	assert(copy != NULL);
	memcpy(copy, p, n);
	used = frame_walk(peer->c, copy, n);
	assert(used <= n);
	free(copy);
	return used;
}

static bool
takes_input(const struct connection *c)
{
	return c->state < CONN_CLOSED && !c->is_deaf && c->io->paused == 0;
}

/* The broker has its turn after each piece, the peer reads all that is sent. */
static void
walk(struct peer *peer, const uint8_t *p, size_t n, size_t step)
{
	struct connection *c = peer->c;
	size_t from = 0, to = 0;

	while (to < n && takes_input(c)) {
		to = n - to < step ? n : to + step;
		from += show(peer, p + from, to - from);
		if (c->state == CONN_CLOSED)
			return; /* the turn's end frees it */
		/* what is left is the beginning of one frame, and not more than was negotiated */
		if (takes_input(c))
			assert(to - from < (size_t)c->payload_max + FRAME_OVERHEAD);
		(void)broker_run(peer->w->b);
		(void)amqp_run(peer->w->a);
		loop_flush(peer->w->l);
		peer_read(peer);
		peer->n = 0;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct peer peer;
	struct world *w = fuzz_world();

	if (n < 2 || n > 64 << 10)
		return 0;
	peer_init(&peer, w);
	fuzz_peer_open(&peer);
	walk(&peer, p + 1, n - 1, p[0] == 0 ? n : p[0]);
	peer_fini(&peer);
	fuzz_world_settle(w);
	return 0;
}
