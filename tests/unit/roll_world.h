/* SPDX-License-Identifier: Apache-2.0
 * A store without a broker, in a folder of its own, without threads, with items that know what has to be in them: for
 * tests that let many journal files pass and look at what comes back. */
#ifndef TESTS_UNIT_ROLL_WORLD_H
#define TESTS_UNIT_ROLL_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "store/disk.h"
#include "store/store_priv.h"
#include "tests/unit/test_folder.h"

/* ck_assert writes to a file at each call, which would take minutes here. */
#define REQUIRE(ok, ...)                           \
	do {                                       \
		if (!(ok))                         \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

struct item {
	uint32_t refs, size;
	uint64_t number; /* its body follows from it */
};

static struct {
	char folder[64];
	struct disk *disk;
	struct workers *workers;
	struct store *store;
	struct store_config cfg;
	uint64_t now_ms, items; /* items: alive */
	struct item *taken[1 << 16]; /* from lanes that were recovered; dropped when the store is closed */
	unsigned taken_n;
} rw;

static inline struct item *
item_new(uint64_t number, uint32_t size)
{
	struct item *i = xmalloc(sizeof *i);

	*i = (struct item){ .refs = 1, .size = size, .number = number };
	rw.items++;
	return i;
}

static inline void
item_copy_body(const void *item, uint8_t *to)
{
	const struct item *i = item;

	for (uint32_t n = 0; n < i->size; n++)
		to[n] = (uint8_t)(i->number >> 8 * (n % 8));
}

static inline void *
item_make(void *arg, const struct op_msg *m)
{
	struct item *i = item_new(0, (uint32_t)m->body.n);

	(void)arg;
	REQUIRE(m->body_size == m->body.n && m->body.n >= 8, "a body of %zu bytes", m->body.n);
	memcpy(&i->number, m->body.p, 8);
	for (uint32_t n = 0; n < i->size; n++)
		REQUIRE(m->body.p[n] == (uint8_t)(i->number >> 8 * (n % 8)), "a wrong body");
	REQUIRE(span_is(m->names, "\1x\3key") && span_is(m->props, "props"), "wrong names");
	REQUIRE(m->arrived_ms == i->number + 1, "a wrong time");
	return i;
}

static inline void
item_ref(void *item)
{
	((struct item *)item)->refs++;
}

static inline void
item_unref(void *item)
{
	struct item *i = item;

	if (--i->refs > 0)
		return;
	rw.items--;
	free(i);
}

static inline void
item_describe(const void *item, struct op_msg *out)
{
	const struct item *i = item;

	*out = (struct op_msg){ .arrived_ms = i->number + 1,
		.flags = MSG_FLAG_PERSISTENT,
		.names = SPAN_LIT("\1x\3key"),
		.props = SPAN_LIT("props"),
		.body_size = i->size,
		.copy_body = item_copy_body,
		.item = item };
}

static inline uint64_t
item_body_size(const void *item)
{
	return ((const struct item *)item)->size;
}

/* The owner here lets go of all. */
static inline uint64_t
on_spilled(struct lane *l, uint64_t through, bool is_behind)
{
	(void)through;
	(void)is_behind;
	return l->segment[l->segments - 1]->first;
}

static inline void
on_loaded(struct lane *l, void *item, uint64_t seq, const struct op_state *state,
    const struct op_msg *m)
{
	(void)l;
	(void)seq;
	(void)state;
	(void)m;
	item_unref(item);
}

static inline void
on_load_done(struct lane *l)
{
	(void)l;
}

static inline void
on_lost(struct lane *l, uint64_t count, uint64_t bytes)
{
	(void)l;
	(void)count;
	(void)bytes;
}

static const struct store_ops item_ops = {
	.make = item_make,
	.ref = item_ref,
	.unref = item_unref,
	.describe = item_describe,
	.body_size = item_body_size,
	.spilled = on_spilled,
	.loaded = on_loaded,
	.load_done = on_load_done,
	.lost = on_lost,
};

static inline struct store_report
store_open(const char *folder)
{
	struct store_report r = { 0 };
	char err[STORE_ERROR] = "";
	int e;

	rw.disk = disk_real_new(folder);
	rw.workers = workers_new(0);
	rw.store = store_new(&rw.cfg, rw.disk, rw.workers, &item_ops, NULL);
	e = store_recover(rw.store, &r, err);
	REQUIRE(e == 0, "recovery: %d %s", e, err);
	return r;
}

static inline void
roll_world_init(uint64_t file_size, uint64_t max)
{
	rw.cfg = (struct store_config){ .journal_file_size = file_size,
		.journal_max = max,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = 131072,
		.lane_bytes = 32 << 20,
		.garbage_max = 64 << 20 };
	rw.now_ms = 1000;
	test_folder_make(rw.folder, sizeof rw.folder);
	(void)store_open(rw.folder);
	store_linked(rw.store);
}

/* One turn, and all that the other threads would do. True: there may be more. */
static inline bool
turn(void)
{
	bool more = store_turn(rw.store, 1, rw.now_ms);

	while (journal_step(rw.store->journal))
		continue;
	while (workers_step(rw.workers, 0))
		more = true;
	workers_take(rw.workers);
	more |= store_events(rw.store);
	return more;
}

/* Until nothing moves any more, for at most so many turns. */
static inline void
settle(unsigned turns)
{
	while (turns-- > 0 && turn())
		continue;
}

static inline void
store_close(void)
{
	store_free(&rw.store);
	workers_free(&rw.workers);
	disk_free(&rw.disk);
	while (rw.taken_n > 0)
		item_unref(rw.taken[--rw.taken_n]);
}

static inline struct store_report
store_reopen(void)
{
	store_close();
	return store_open(rw.folder);
}

static inline void
roll_world_fini(void)
{
	store_close();
	test_folder_remove(rw.folder);
}

/* Of a durable queue, which is made if it is not there. */
static inline struct lane *
lane_at(uint64_t queue)
{
	struct lane *l = lane_find(rw.store, (struct op_lane){ .queue = queue });

	if (l != NULL && l->is_linked)
		return l;
	if (!object_exists(rw.store, OBJECT_QUEUE, queue))
		store_put(rw.store, OBJECT_QUEUE, queue, SPAN_LIT("a queue"));
	return lane_open(rw.store, queue, 0, true, NULL);
}

/* The item's reference is the test's until it is acknowledged. */
static inline struct item *
publish(struct lane *l, uint64_t number, uint32_t size)
{
	struct item *i = item_new(number, size);
	struct lane_place place = { l, lane_next_seq(l) };

	(void)store_publish(rw.store, &place, 1, i);
	return i;
}

static inline void
ack(struct lane *l, uint64_t seq, struct item *i)
{
	lane_ack(l, seq, i->size, ACK_ACKED);
	item_unref(i);
}

/* Publishes and acknowledges n bytes in messages of `size`. */
static inline void
flow(struct lane *l, uint64_t n, uint32_t size)
{
	for (uint64_t sent = 0, i = 0; sent < n; sent += size, i++) {
		struct item *it = publish(l, i, size);

		ack(l, l->next_seq - 1, it);
		if (i % 16 == 15) {
			rw.now_ms++;
			(void)turn();
		}
	}
}

#endif
