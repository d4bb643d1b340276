/* SPDX-License-Identifier: Apache-2.0
 * A whole connection over a socket pair. First octet of the input: how far the handshake is played before (low four
 * bits; above them: in how many octets at a time the next are sent, 0 for all at once; the rest follows in one piece).
 * Whatever comes, the broker has to end with nothing held. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/fuzz/fuzz_world.h"

enum { PIECES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* One turn a piece; the peer takes what it is sent. */
static void
feed(struct peer *peer, const uint8_t *p, size_t n, size_t step)
{
	size_t pieces = step == 0 ? 0 : PIECES;

	for (; n > step && pieces > 0 && send(peer->fd, p, step, MSG_NOSIGNAL) > 0; pieces--) {
		world_turn(peer->w);
		peer_read(peer);
		peer->n = 0;
		p += step;
		n -= step;
	}
	peer_send(peer, p, n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static const enum connection_state states[] = { CONN_OPEN, CONN_HEADER, CONN_STARTING,
		CONN_TUNING, CONN_OPENING, CONN_CLOSING };
	static struct peer peer;
	struct world *w = fuzz_world();
	enum connection_state state;

	if (n < 1 || n > 64 << 10)
		return 0;
	peer_init(&peer, w);
	state = states[(p[0] & 15) % COUNT_OF(states)];
	if (state == CONN_OPEN)
		fuzz_peer_open(&peer);
	else
		peer_reach(&peer, state);
	feed(&peer, p + 1, n - 1, p[0] >> 4);
	world_pass(w, CONN_TURN_AWAY_MS);
	peer_fini(&peer);
	fuzz_world_settle(w);
	return 0;
}
