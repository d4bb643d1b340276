/* SPDX-License-Identifier: Apache-2.0
 * One broker and loop for all inputs of a target: to make them costs a hundred times what an input does, most of it for
 * the hashes of passwords. What a client can change is thrown away and looked at after each input. */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/slab.h"
#include "broker/permission.h"
#include "tests/unit/amqp_world.h"

static struct world fuzz_the_world;

static void
fuzz_world_end(void)
{
	world_fini(&fuzz_the_world);
	for (int k = 0; k < MEM_KINDS; k++)
		assert(k == MEM_SLABS || k == MEM_LARGE || mem_held[k] == 0);
}

/* Borrowed. */
static inline struct world *
fuzz_world(void)
{
	if (fuzz_the_world.b == NULL) {
		log_set_level(LOG_ERROR);
		world_init(&fuzz_the_world);
		atexit(fuzz_world_end);
	}
	return &fuzz_the_world;
}

/* An open connection with channel 1, all of it said without waiting for answers. */
static inline void
fuzz_peer_open(struct peer *p)
{
	static uint8_t out[512];
	static size_t n;

	if (n == 0) {
		memcpy(out, "AMQP\0\0\11\1", n = 8);
		n += put_method(out + n, 0, AMQP_CONNECTION_START_OK_METHOD, PEER_START_OK,
		    sizeof PEER_START_OK - 1);
		n += put_method(out + n, 0, AMQP_CONNECTION_TUNE_OK_METHOD, PEER_TUNE_OK,
		    sizeof PEER_TUNE_OK - 1);
		n += put_method(
		    out + n, 0, AMQP_CONNECTION_OPEN_METHOD, PEER_OPEN, sizeof PEER_OPEN - 1);
		n += put_method(out + n, 1, AMQP_CHANNEL_OPEN_METHOD, "", 1);
	}
	peer_send(p, out, n);
	assert(p->c->state == CONN_OPEN && p->c->channel_count == 1);
	p->n = 0;
}

/* Neither timers nor memory nor anything that is counted; what is allocated and not counted the leak check sees. */
static inline void
fuzz_nothing_held(const struct world *w)
{
	struct slab_stats slabs;

	assert(LIST_EMPTY(&w->a->connections) && LIST_EMPTY(&w->a->dead));
	for (int i = 0; i < PARK_REASONS; i++)
		assert(TAILQ_EMPTY(&w->a->parked[i]));
	assert(TAILQ_EMPTY(&w->a->confirming));
	assert(w->a->content_in_flight == 0 && w->a->reply_to == NULL);
	assert(TAILQ_EMPTY(&w->b->clients) && TAILQ_EMPTY(&w->b->returning));
	assert(wheel_wait(w->l->wheel, w->l->now_ms) == -1);
	for (int k = 0; k < MEM_KINDS; k++)
		assert(k == MEM_SLABS || k == MEM_LARGE || mem_held[k] == 0);
	slab_get_stats(&slabs);
	assert(slabs.items == 0);
#define X(name, kind, help) assert(FUZZ_##kind || w->b->stats.name == 0);
	enum { FUZZ_GAUGE = 0, FUZZ_COUNTER = 1 };
	BROKER_STATS(X)
#undef X
}

/* After the last connection went: a new vhost "/" takes the place of the one the input worked on. */
static inline void
fuzz_world_settle(struct world *w)
{
	world_pass(w, CONN_LINGER_MS); /* transports that still flush end with it */
	while (broker_run(w->b))
		continue;
	vhosts_free(w->b);
	while (broker_run(w->b))
		continue;
	broker_reap(w->b);
	users_free(w->b); /* they count as topology */
	fuzz_nothing_held(w);
	(void)vhost_add(w->b, "/");
	users_begin(w->b);
}

#endif
