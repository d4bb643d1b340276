/* SPDX-License-Identifier: Apache-2.0
 * A world for tests of the store: a simulated disk, no threads, an owner that keeps what it is given. */
#ifndef TESTS_UNIT_LANE_WORLD_H
#define TESTS_UNIT_LANE_WORLD_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/lane.h"
#include "store/store_priv.h"
#include "tests/sim/disk_sim.h"

struct item {
	unsigned refs;
	bool persistent;
	uint64_t expires_ms, size;
	uint8_t body[];
};

struct world {
	struct disk *disk;
	struct workers *workers;
	struct store *s;
	struct store_config cfg;
	struct store_report report;
	uint64_t now_ms, next_id;
	bool lets_go;  /* of what is spilled */
	bool may_lose; /* messages by damage */
	unsigned loads_done;
	uint64_t loaded[1 << 16]; /* seqs */
	struct item *loaded_item[1 << 16];
	unsigned loaded_n;
};

static struct world w;
static long items_alive;

static inline struct item *
item_new(const void *body, size_t n, bool persistent)
{
	struct item *i = xcalloc(1, sizeof *i + n + 1);

	i->refs = 1;
	i->persistent = persistent;
	i->size = n;
	if (n > 0)
		memcpy(i->body, body, n);
	items_alive++;
	return i;
}

/* A persistent message with this text. */
UNUSED static struct item *
item_of(const char *text)
{
	return item_new(text, strlen(text), true);
}

static inline void
item_ref(void *p)
{
	struct item *i = p;

	i->refs++;
}

static inline void
item_unref(void *p)
{
	struct item *i = p;

	ck_assert_uint_gt(i->refs, 0);
	if (--i->refs > 0)
		return;
	items_alive--;
	free(i);
}

static inline void *
item_make(void *arg, const struct op_msg *m)
{
	struct item *i = item_new(m->body.p, m->body.n, (m->flags & MSG_FLAG_PERSISTENT) != 0);

	ck_assert_ptr_eq(arg, &w);
	i->expires_ms = m->expires_ms;
	return i;
}

static inline void
item_describe(const void *p, struct op_msg *out)
{
	const struct item *i = p;

	out->names = SPAN_LIT("\0\1q");
	out->props = SPAN_LIT("\0\0");
	out->body = span_of(i->body, i->size);
	out->body_size = i->size;
	out->flags = i->persistent ? MSG_FLAG_PERSISTENT : 0;
	out->expires_ms = i->expires_ms;
	out->arrived_ms = 1;
}

static inline uint64_t
item_size(const void *p)
{
	return ((const struct item *)p)->size;
}

static inline uint64_t
on_spilled(struct lane *l, uint64_t through, bool is_behind)
{
	(void)l;
	(void)is_behind;
	if (!w.lets_go)
		return through + 1;
	return w.loaded_n > 0 ? w.loaded[w.loaded_n - 1] + 1 : 1; /* what was read is kept */
}

static inline void
on_loaded(
    struct lane *l, void *item, uint64_t seq, const struct op_state *state, const struct op_msg *m)
{
	(void)l;
	(void)state;
	(void)m;
	ck_assert_uint_lt(w.loaded_n, 1 << 16);
	w.loaded_item[w.loaded_n] = item;
	w.loaded[w.loaded_n++] = seq;
}

static inline void
on_load_done(struct lane *l)
{
	(void)l;
	w.loads_done++;
}

static inline void
on_lost(struct lane *l, uint64_t count, uint64_t bytes)
{
	(void)l;
	if (!w.may_lose)
		ck_abort_msg(
		    "%lu messages of %lu bytes lost", (unsigned long)count, (unsigned long)bytes);
}

static const struct store_ops world_ops = {
	.make = item_make,
	.ref = item_ref,
	.unref = item_unref,
	.describe = item_describe,
	.body_size = item_size,
	.spilled = on_spilled,
	.loaded = on_loaded,
	.load_done = on_load_done,
	.lost = on_lost,
};

/* What is there is read; objects and lanes are not linked yet. */
static inline void
world_start(void)
{
	char err[STORE_ERROR] = "";

	w.workers = workers_new(0);
	w.s = store_new(&w.cfg, w.disk, w.workers, &world_ops, &w);
	ck_assert_msg(store_recover(w.s, &w.report, err) == 0, "%s", err);
	if (w.next_id < w.report.next_id)
		w.next_id = w.report.next_id;
}

static inline void
world_init(void)
{
	memset(&w, 0, sizeof w);
	items_alive = 0;
	w.disk = disk_sim_new(1, (uint64_t)1 << 30);
	w.cfg = (struct store_config){
		.journal_file_size = 1 << 20,
		.journal_max = (uint64_t)64 << 20,
		.sync = { SYNC_POLICY_ALWAYS, 0 },
		.lane_entries = 1000,
		.lane_bytes = 1 << 20,
		.garbage_max = (uint64_t)64 << 20,
	};
	w.now_ms = 1000;
	w.next_id = 1;
	world_start();
}

/* The end of a turn, and all that others do for it. */
UNUSED static void
world_turn(void)
{
	bool more = true;

	w.now_ms += 10;
	for (int i = 0; more && i < 1000; i++) {
		more = store_turn(w.s, w.next_id, w.now_ms);
		while (journal_step(w.s->journal))
			more = true;
		while (workers_step(w.workers, 0))
			more = true;
		workers_take(w.workers);
		more |= store_events(w.s);
	}
	ck_assert(!more);
	ck_assert_int_eq(store_failed(w.s), 0);
}

static inline void
forget_loaded(void)
{
	for (unsigned i = 0; i < w.loaded_n; i++)
		item_unref(w.loaded_item[i]);
	w.loaded_n = w.loads_done = 0;
}

static inline void
world_stop(void)
{
	store_free(&w.s);
	workers_free(&w.workers);
	forget_loaded();
}

/* kill -9: nothing is written any more; then a start. */
UNUSED static void
world_kill(void)
{
	disk_sim_cut_after(w.disk, 1, true);
	world_stop();
	ck_assert_uint_eq(disk_sim_open_files(w.disk), 0);
	disk_sim_kill(w.disk);
	world_start();
}

UNUSED static void
world_restart(void)
{
	world_stop();
	world_start();
}

static inline void
world_fini(void)
{
	world_stop();
	disk_free(&w.disk);
}

/* One message to one lane. */
UNUSED static struct store_wait
publish(struct lane *l, uint64_t seq, struct item *i)
{
	struct lane_place place = { l, seq };

	return store_publish(w.s, &place, 1, i);
}

/* What lane_each() gave: text of each, for tests with few messages. */
struct entries {
	unsigned n;
	uint64_t seq[64];
	struct op_state state[64];
	struct item *item[64];
};

UNUSED static void
take_entry(
    void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	struct entries *e = arg;

	ck_assert_uint_lt(e->n, 64);
	ck_assert_uint_eq(m->arrived_ms, 1);
	e->seq[e->n] = seq;
	e->state[e->n] = *state;
	e->item[e->n++] = item;
}

UNUSED static void
entries_fini(struct entries *e)
{
	for (unsigned i = 0; i < e->n; i++)
		item_unref(e->item[i]);
	e->n = 0;
}

#endif
