/* SPDX-License-Identifier: Apache-2.0
 * A store on the simulated disk, without threads, and an owner of lanes as simple as can be: it knows which messages live
 * and what they have to look like, and notices every one that comes back wrong, twice or out of order. */
#ifndef TESTS_CHAIN_WORLD_H
#define TESTS_CHAIN_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "store/segment_file.h"
#include "store/store_priv.h"
#include "tests/sim/disk_sim.h"
#include "tests/sim/rnd.h"

/* ck_assert writes to a file at each call, which would take minutes here. */
#define REQUIRE(ok)                                                                          \
	do {                                                                                 \
		if (!(ok))                                                                   \
			ck_abort_msg("%s:%d: not true: %s", __FILE__, __LINE__, #ok);        \
	} while (0)

enum { QUEUES = 4, SEQS = 100 * 1000 };

struct item {
	unsigned refs;
	uint64_t queue, seq, size, expires_ms;
	bool persistent;
	uint8_t *body; /* owned */
};

/* Gone; in memory and ready; given out; in a file only. */
enum place { GONE, READY, GIVEN, AWAY };
struct entry {
	enum place place;
	struct item *item; /* a reference, but for GONE and AWAY */
	uint64_t size, expires_ms;
	struct op_state state;
	bool persistent;
	bool maybe; /* its acknowledgement may be forgotten in a crash */
};

struct owner {
	struct lane *lane;
	uint64_t id, next, low; /* low: none lives below */
	uint64_t lost, loads;
	uint64_t keep;	/* ready messages that it keeps when they were spilled */
	bool durable, keeps_chained; /* keeps: what was loaded is not let go again */
	uint64_t chained; /* through which spilled() was called in this run */
	struct entry *e; /* SEQS */
};

static struct {
	struct disk *disk;
	struct workers *workers;
	struct store *store;
	struct store_config cfg;
	struct owner q[QUEUES];
	uint64_t now_ms, items, refuse; /* refuse: so many more makes fail */
	struct rnd r;
	struct store_report report;
	bool is_damaged; /* less may come back than went in */
} cw;

static inline void
fill_body(uint8_t *body, uint64_t size, uint64_t queue, uint64_t seq)
{
	for (uint64_t i = 0; i < size; i++)
		body[i] = (uint8_t)((queue * 31 + seq * 7 + i) * 0x9e3779b1u >> 16);
}

static inline struct item *
item_new(uint64_t queue, uint64_t seq, uint64_t size)
{
	struct item *it = xcalloc(1, sizeof *it);

	*it = (struct item) { .refs = 1, .queue = queue, .seq = seq, .size = size };
	it->body = xmalloc(size + 1);
	fill_body(it->body, size, queue, seq);
	cw.items++;
	return it;
}

static inline void
item_ref(void *p)
{
	((struct item *)p)->refs++;
}

static inline void
item_unref(void *p)
{
	struct item *it = p;

	REQUIRE(it->refs > 0);
	if (--it->refs > 0)
		return;
	free(it->body);
	free(it);
	cw.items--;
}

static inline void *
item_make(void *arg, const struct op_msg *m)
{
	struct op_target t;
	struct item *it;

	(void)arg;
	if (cw.refuse > 0) {
		cw.refuse--;
		return NULL;
	}
	op_msg_target(m, 0, &t);
	it = item_new(t.queue, t.seq, m->body_size);
	it->expires_ms = m->expires_ms;
	it->persistent = (m->flags & MSG_FLAG_PERSISTENT) != 0;
	REQUIRE(m->body.n == m->body_size && memcmp(m->body.p, it->body, it->size) == 0);
	REQUIRE(m->arrived_ms == 1000 + t.seq && span_is(m->props, "props"));
	REQUIRE(m->names.n == 5 && memcmp(m->names.p, "\0\3key", 5) == 0);
	return it;
}

static inline void
item_describe(const void *p, struct op_msg *m)
{
	const struct item *it = p;

	m->names = span_of("\0\3key", 5);
	m->props = SPAN_LIT("props");
	m->body = span_of(it->body, it->size);
	m->body_size = it->size;
	m->flags = it->persistent ? MSG_FLAG_PERSISTENT : 0;
	m->arrived_ms = 1000 + it->seq;
	m->expires_ms = it->expires_ms;
}

static inline uint64_t
item_body_size(const void *p)
{
	return ((const struct item *)p)->size;
}

static inline void
owner_lets_go(struct owner *q, uint64_t seq)
{
	struct entry *e = &q->e[seq];

	item_unref(e->item);
	e->item = NULL;
	e->place = AWAY;
}

static inline uint64_t
owner_spilled(struct lane *l, uint64_t through, bool is_behind)
{
	struct owner *q = lane_owner(l);
	uint64_t from = q->low, kept = 0, seq;

	REQUIRE(through < q->next && through > q->chained);
	if (!is_behind) {
		/* What is given out stays, and some ready ones at the head; what was in the chain before may go, too. */
		for (seq = q->low; seq <= through; seq++) {
			kept += q->e[seq].place == READY;
			REQUIRE(q->e[seq].place != AWAY);
			if (q->e[seq].place == GIVEN || (q->e[seq].place == READY && kept <= q->keep))
				from = seq + 1;
		}
		if (q->keeps_chained && from <= q->chained)
			from = q->chained + 1;
	} else {
		for (seq = q->low; seq <= through; seq++)
			if (q->e[seq].place == AWAY)
				from = seq;
	}
	for (seq = from; seq <= through; seq++) {
		REQUIRE(q->e[seq].place != GIVEN);
		if (q->e[seq].place == READY)
			owner_lets_go(q, seq);
	}
	q->chained = through;
	return from;
}

static inline void
owner_loaded(struct lane *l, void *item, uint64_t seq, const struct op_state *state, const struct op_msg *m)
{
	struct owner *q = lane_owner(l);
	struct entry *e;

	REQUIRE(seq < q->next);
	e = &q->e[seq];
	REQUIRE(e->place == AWAY);
	for (uint64_t i = q->low; i < seq; i++)
		if (q->e[i].place == AWAY && cw.is_damaged)
			q->e[i].place = GONE;
		else
			REQUIRE(q->e[i].place != AWAY);
	REQUIRE(m->body_size == e->size && m->expires_ms == e->expires_ms);
	REQUIRE(state->redelivered == e->state.redelivered && state->deliveries == e->state.deliveries &&
		state->acquired == e->state.acquired);
	e->item = item;
	e->place = READY;
}

static inline void
owner_load_done(struct lane *l)
{
	((struct owner *)lane_owner(l))->loads++;
}

static inline void
owner_lost(struct lane *l, uint64_t count, uint64_t bytes)
{
	(void)bytes;
	REQUIRE(cw.is_damaged);
	((struct owner *)lane_owner(l))->lost += count;
}

static const struct store_ops chain_ops = { item_make, item_ref, item_unref, item_describe, item_body_size,
	owner_spilled, owner_loaded, owner_load_done, owner_lost, NULL };

/* ---- the store's life ---- */

static inline void
owner_takes(void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	struct owner *q = arg;
	struct entry *e = &q->e[seq];

	(void)m;
	REQUIRE(seq < q->next && e->place == AWAY);
	REQUIRE(((struct item *)item)->seq == seq && ((struct item *)item)->size == e->size);
	REQUIRE(state->redelivered == e->state.redelivered && state->deliveries == e->state.deliveries);
	e->item = item;
	e->place = READY;
}

/* What is not in memory is in the chain; only what may have been acknowledged may be missing. */
static inline void
owner_looks(struct owner *q)
{
	for (uint64_t seq = q->low; seq < q->next; seq++) {
		const struct segment *g = lane_segment(q->lane, seq);

		if (q->e[seq].place != AWAY || (g != NULL && !rangeset_has(&g->removed, seq)))
			continue;
		REQUIRE(q->e[seq].maybe || (!q->e[seq].persistent && seq > q->lane->chain_end));
		q->e[seq].place = GONE;
	}
}

static inline void
chain_start(void)
{
	char err[STORE_ERROR] = "";

	cw.workers = workers_new(0);
	cw.store = store_new(&cw.cfg, cw.disk, cw.workers, &chain_ops, NULL);
	if (store_recover(cw.store, &cw.report, err) != 0)
		ck_abort_msg("recovery: %s", err);
	for (unsigned i = 0; i < QUEUES; i++) {
		struct owner *q = &cw.q[i];
		uint64_t state[2] = { i, 0 };

		if (cw.report.is_new && q->durable)
			store_put(cw.store, OBJECT_QUEUE, q->id, span_of(state, sizeof state));
		q->lane = lane_open(cw.store, q->id, 0, q->durable, q);
		lane_each(q->lane, owner_takes, q);
		owner_looks(q);
	}
	store_linked(cw.store);
}

static inline void
chain_init(uint64_t seed)
{
	memset(&cw, 0, sizeof cw);
	cw.r = rnd_of(seed);
	cw.disk = disk_sim_new(seed, UINT64_MAX);
	cw.now_ms = 1000 * 1000;
	cw.cfg = (struct store_config) {
		.journal_file_size = 256 << 10,
		.journal_max = 1 << 30,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = 400,
		.lane_bytes = 64 << 20,
		.garbage_max = 1 << 30,
	};
	for (unsigned i = 0; i < QUEUES; i++) {
		cw.q[i].id = 10 + i;
		cw.q[i].next = cw.q[i].low = 1;
		cw.q[i].durable = true;
		cw.q[i].keeps_chained = i == 1;
		cw.q[i].e = xcalloc(SEQS, sizeof *cw.q[i].e);
	}
}

/* What the owners have in memory is gone; what was persistent has to come back. */
static inline void
owners_forget(void)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		struct owner *q = &cw.q[i];

		for (uint64_t seq = q->low; seq < q->next; seq++) {
			if (q->e[seq].item != NULL)
				item_unref(q->e[seq].item);
			q->e[seq].item = NULL;
			if (q->e[seq].place != GONE)
				q->e[seq].place = q->durable ? AWAY : GONE;
		}
		q->lane = NULL;
		q->chained = 0;
	}
}

static inline void
chain_stop(void)
{
	if (cw.store == NULL)
		return;
	store_free(&cw.store);
	owners_forget();
	workers_free(&cw.workers);
	REQUIRE(cw.items == 0);
}

static inline void
chain_fini(void)
{
	chain_stop();
	disk_free(&cw.disk);
	for (unsigned i = 0; i < QUEUES; i++)
		free(cw.q[i].e);
}

/* One turn; what other threads do, in part. */
static inline bool
chain_turn(void)
{
	bool more = false;

	while (journal_step(cw.store->journal))
		more = true;
	while (workers_step(cw.workers, (unsigned)rnd(&cw.r, 3)) || workers_step(cw.workers, 0))
		more = true;
	workers_take(cw.workers);
	more |= store_events(cw.store);
	more |= store_turn(cw.store, 1000, ++cw.now_ms);
	return more;
}

/* What was done so far is durable. */
static inline void
chain_is_durable(void)
{
	for (unsigned i = 0; i < QUEUES; i++)
		for (uint64_t seq = 1; seq < cw.q[i].next; seq++)
			cw.q[i].e[seq].maybe = false;
}

/* The power is cut. */
static inline void
chain_crash(uint64_t seed)
{
	store_free(&cw.store);
	owners_forget();
	workers_free(&cw.workers);
	REQUIRE(cw.items == 0 && disk_sim_open_files(cw.disk) == 0);
	for (unsigned i = 0; i < QUEUES; i++)
		for (uint64_t seq = cw.q[i].next; seq-- > 1;)
			if (cw.q[i].e[seq].maybe) {
				cw.q[i].e[seq].place = AWAY;
				if (seq < cw.q[i].low)
					cw.q[i].low = seq;
			}
	disk_sim_crash(cw.disk, seed);
}

/* Until nothing is left to do. */
static inline void
chain_settle(void)
{
	for (unsigned idle = 0, n = 0; idle < 3; n++) {
		idle = chain_turn() || workers_waiting(cw.workers) > 0 ? 0 : idle + 1;
		REQUIRE(n < 100000);
	}
}

/* ---- what clients do ---- */

static inline void
owner_publish(struct owner *q, uint64_t size, bool persistent, uint64_t expires_ms)
{
	struct lane_place place = { q->lane, q->next };
	struct entry *e = &q->e[q->next];

	REQUIRE(q->next + 1 < SEQS);
	*e = (struct entry) { .place = READY, .size = size, .expires_ms = expires_ms, .persistent = persistent };
	e->item = item_new(q->id, q->next, size);
	e->item->persistent = persistent;
	e->item->expires_ms = expires_ms;
	q->next++;
	if (!q->durable)
		return;
	if (persistent)
		(void)store_publish(cw.store, &place, 1, e->item);
	else
		(void)lane_add_volatile(q->lane, place.seq, e->item);
}

/* The first that may be given out; 0: none (now). */
static inline uint64_t
owner_head(const struct owner *q)
{
	for (uint64_t seq = q->low; seq < q->next; seq++) {
		if (q->e[seq].place == READY)
			return seq;
		if (q->e[seq].place == AWAY)
			return 0;
	}
	return 0;
}

static inline uint64_t
owner_deliver(struct owner *q)
{
	uint64_t seq = owner_head(q);

	if (seq == 0)
		return 0;
	q->e[seq].place = GIVEN;
	lane_mark_delivered(q->lane, seq);
	return seq;
}

static inline void
owner_settles(struct owner *q)
{
	while (q->low < q->next && q->e[q->low].place == GONE)
		q->low++;
}

static inline void
owner_ack(struct owner *q, uint64_t seq)
{
	struct entry *e = &q->e[seq];

	lane_ack(q->lane, seq, e->size, ACK_ACKED);
	item_unref(e->item);
	e->item = NULL;
	e->place = GONE;
	e->maybe = true;
	owner_settles(q);
}

static inline void
owner_requeue(struct owner *q, uint64_t seq)
{
	struct entry *e = &q->e[seq];

	e->place = READY;
	e->state.redelivered = true;
	e->state.deliveries++;
	lane_set_state(q->lane, seq, &e->state);
}

static inline uint64_t
owner_count(const struct owner *q, enum place place)
{
	uint64_t n = 0;

	for (uint64_t seq = q->low; seq < q->next; seq++)
		n += q->e[seq].place == place;
	return n;
}

/* Counts of the store and of the owner are the same. */
static inline void
chain_check(void)
{
	for (unsigned i = 0; i < QUEUES; i++) {
		struct owner *q = &cw.q[i];
		uint64_t bytes = 0, last = 0;

		for (uint64_t seq = q->low; seq < q->next; seq++)
			if (q->e[seq].place == AWAY)
				bytes += q->e[seq].size;
		REQUIRE(lane_unread(q->lane) == owner_count(q, AWAY));
		if (!cw.is_damaged && q->keeps_chained)
			REQUIRE(lane_unread_bytes(q->lane) == bytes);
		for (uint32_t k = 0; k < q->lane->segments; k++) {
			const struct segment *g = q->lane->segment[k];

			REQUIRE(g->first > last && g->last <= q->lane->chain_end);
			REQUIRE(g->live == g->last - g->first + 1 - g->removed.count);
			last = g->last;
			for (uint64_t seq = g->first; seq <= g->last && !cw.is_damaged; seq++)
				REQUIRE((q->e[seq].place == GONE) == rangeset_has(&g->removed, seq));
		}
	}
}

/* Everything is given out in order and acknowledged. Returns how many. */
static inline uint64_t
owner_drain(struct owner *q)
{
	uint64_t n = 0, seq;

	for (unsigned idle = 0; idle < 2000;) {
		seq = owner_deliver(q);
		if (seq == 0) {
			if (lane_unread(q->lane) > 0)
				lane_read(q->lane, 1 + rnd(&cw.r, 100000));
			idle = chain_turn() ? 0 : idle + 1;
			if (lane_unread(q->lane) == 0 && owner_head(q) == 0)
				break;
			continue;
		}
		owner_ack(q, seq);
		n++;
	}
	return n;
}

static inline void
count_name(void *arg, const char *name, uint64_t size)
{
	(void)name;
	(void)size;
	++*(unsigned *)arg;
}

static inline unsigned
files_in(const char *folder)
{
	unsigned n = 0;

	REQUIRE(cw.disk->ops->list(cw.disk, folder, count_name, &n) == 0);
	return n;
}

#endif
