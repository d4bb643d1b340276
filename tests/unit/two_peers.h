/* SPDX-License-Identifier: Apache-2.0
 * On top of queue_world.h: a broker with one client, two sessions of it and a queue; nothing is left when it goes. */
#ifndef TESTS_TWO_PEERS_H
#define TESTS_TWO_PEERS_H

#include <check.h>

#include "base/slab.h"
#include "tests/unit/queue_world.h"

static struct world w;
static struct client client;
static struct peer peer[2];
static struct queue *q;

static inline void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	peer_init(&peer[0], &client);
	peer_init(&peer[1], &client);
	q = world_queue(&w, "q");
}

static inline void
tear_down(void)
{
	struct slab_stats slabs;

	world_turn(&w);
	peer_fini(&peer[0]);
	peer_fini(&peer[1]);
	client_fini(&client);
	ck_assert_int_eq(wheel_wait(w.wheel, w.broker->now_ms), -1);
	world_fini(&w);
	slab_get_stats(&slabs);
	ck_assert_uint_eq(slabs.items, 0);
	ck_assert_uint_eq(mem_held[MEM_ENTRIES], 0);
}

/* Settles a delivery of the first session. */
static inline const struct error *
settle(uint64_t tag, bool multiple, enum settle how)
{
	return session_settle(&peer[0].session, tag, multiple, how);
}

#endif
