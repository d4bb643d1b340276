/* SPDX-License-Identifier: Apache-2.0
 * On top of channel_world.h: a store behind the broker, in a folder of its own, without threads. Nothing is written
 * before store_world_step(), so that a test sees what waits. */
#ifndef TESTS_STORE_WORLD_H
#define TESTS_STORE_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "amqp/confirm_wait.h"
#include "base/worker.h"
#include "broker/persist.h"
#include "broker/queue.h"
#include "store/disk.h"
#include "store/store_priv.h"
#include "tests/unit/amqp_world.h"
#include "tests/unit/test_folder.h"

static struct {
	char folder[64];
	struct disk *disk;
	struct workers *workers;
	struct store *store;
} store_world;

static inline void
store_world_init(struct world *w)
{
	const struct store_config cfg = {
		.journal_file_size = 1 << 20,
		.journal_max = 64 << 20,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = 131072,
		.lane_bytes = 32 << 20,
		.garbage_max = 64 << 20,
	};
	char err[STORE_ERROR];
	struct store_report report;

	test_folder_make(store_world.folder, sizeof store_world.folder);
	store_world.disk = disk_real_new(store_world.folder);
	ck_assert_ptr_nonnull(store_world.disk);
	store_world.workers = workers_new(0);
	store_world.store =
	    store_new(&cfg, store_world.disk, store_world.workers, &persist_store_ops, w->b);
	ck_assert_int_eq(store_recover(store_world.store, &report, err), 0);
	store_linked(store_world.store);
	w->b->store = store_world.store;
}

/* Everything so far is handed over, written and synced, and the core hears of it. */
static inline void
store_world_step(struct world *w)
{
	(void)store_turn(store_world.store, w->b->next_id, w->b->now_ms);
	while (journal_step(store_world.store->journal))
		;
	while (workers_step(store_world.workers, 0))
		;
	workers_take(store_world.workers);
	(void)store_events(store_world.store);
	world_turns(w, 3);
}

static inline void
store_world_low(struct world *w, bool low)
{
	w->b->disk_low = low;
	world_turns(w, 3);
}

static inline struct queue *
store_world_queue(struct world *w, const char *name)
{
	struct queue_spec spec = { .name = span_str(name), .durable = true };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(vhost_find(w->b, SPAN_LIT("/")), &spec, NULL, &q));
	return q;
}

/* Before world_fini(): from here on the broker has no store. */
static inline void
store_world_fini(struct world *w)
{
	persist_unlink(w->b);
	store_free(&store_world.store);
	workers_free(&store_world.workers);
	disk_free(&store_world.disk);
	test_folder_remove(store_world.folder);
}

#endif
