/* SPDX-License-Identifier: Apache-2.0
 * On top of persist_world.h: one node that is started again and again, and one session on it. */
#ifndef TESTS_PERSIST_PEER_H
#define TESTS_PERSIST_PEER_H

#include "tests/unit/persist_world.h"

static struct node n;
static struct peer peer;
static bool peer_is_open;

static inline void
open_peer(void)
{
	peer_init(&peer, &n.client);
	peer_is_open = true;
}

static inline void
end_peer(void)
{
	if (peer_is_open)
		peer_fini(&peer);
	peer_is_open = false;
}

static inline void
setup(void)
{
	node_init(&n);
	open_peer();
}

static inline void
teardown(void)
{
	end_peer();
	node_fini(&n);
}

/* At a time of the new node's own. Without `gently` as after a kill: what was not settled may be lost. */
static inline void
restart_at(bool gently, uint64_t now_ms)
{
	node_restart(&n, gently, now_ms, end_peer);
	open_peer();
}

static inline void
restart(bool gently)
{
	restart_at(gently, n.w.broker->now_ms);
}

/* From here on a queue keeps little in memory. */
static inline void
keep_little(void)
{
	n.cfg.lane_entries = 1024;
	n.cfg.lane_bytes = 1 << 20;
	restart(true);
}

static inline struct queue *
queue(const char *name)
{
	return queue_find(n.w.vhost, span_str(name));
}

/* The next one, from disk if it has to be; false if there is none. e->m is the caller's. */
static inline bool
get(struct queue *q, bool no_ack, struct entry *e, uint64_t *tag)
{
	uint32_t left;

	for (int i = 0; i < 1000; i++) {
		uint64_t loads = n.w.broker->loads;
		enum get got = session_get(&peer.session, q, no_ack, e, tag, &left);

		if (got != GET_LATER)
			return got == GET_GOT;
		while (n.w.broker->loads == loads)
			ck_assert(node_turn(&n));
	}
	ck_abort_msg("nothing comes");
	return false;
}

/* Takes these, in turn. */
static inline void
expect_numbers(struct queue *q, uint64_t from, uint64_t to)
{
	struct entry e;
	uint64_t tag;

	for (uint64_t i = from; i <= to; i++) {
		ck_assert_msg(get(q, true, &e, &tag), "no message %lu", (unsigned long)i);
		ck_assert_uint_eq(msg_number(e.m), i);
		msg_unref(&e.m);
	}
}

#endif
