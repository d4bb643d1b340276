/* SPDX-License-Identifier: Apache-2.0
 * A whole connection over a socket pair. First octet of the input: how far the handshake is played before (low four
 * bits; above them: in how many octets at a time the rest is sent, 0 for all at once). Whatever comes, the broker has to
 * end with nothing held. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/unit/amqp_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void
feed(struct peer *peer, const uint8_t *p, size_t n, size_t step)
{
	if (step == 0)
		step = n;
	while (n > 0) {
		size_t now = n < step ? n : step;

		peer_send(peer, p, now);
		peer->n = 0;
		p += now;
		n -= now;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const enum connection_state states[] = { CONN_OPEN, CONN_HEADER, CONN_STARTING,
		CONN_TUNING, CONN_OPENING, CONN_CLOSING };
	static struct peer peer;
	struct world w;

	if (n < 1 || n > 64 << 10)
		return 0;
	log_set_level(LOG_ERROR);
	world_init(&w);
	peer_init(&peer, &w);
	peer_reach(&peer, states[(p[0] & 15) % COUNT_OF(states)]);
	if (peer.c->state == CONN_OPEN)
		peer_channel(&peer, 1);
	feed(&peer, p + 1, n - 1, p[0] >> 4);
	world_pass(&w, CONN_TURN_AWAY_MS);
	peer_fini(&peer);
	world_fini(&w);
	for (int k = 0; k < MEM_KINDS; k++)
		assert(k == MEM_SLABS || mem_held[k] == 0);
	return 0;
}
