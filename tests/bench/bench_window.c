/* SPDX-License-Identifier: Apache-2.0
 * Windows of deduplication: bytes a key; nanoseconds for a key that is new, in a window that grows and in one that is
 * full, and for one that is there; what 64 calls take at most; and the same with a journal, its turns, and the start with
 * one that has all of them. CPU time of the thread. */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/worker.h"
#include "store/store_priv.h"

enum { SMALL = 1000, MIDDLE = 1000000, OWNER = 7, BATCH = 64 };

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct op_key
key_of(uint64_t number)
{
	struct op_key k = { .at_ms = 1 + number / 100 };
	char id[40];
	int n = snprintf(id, sizeof id, "order-%" PRIu64 "-of-a-shop", number);

	window_hash(NULL, 0, span_of((const uint8_t *)id, (size_t)n), k.hash);
	return k;
}

struct time {
	double sum, longest;
};

static void
add(struct window *w, uint64_t from, uint64_t to, struct time *t)
{
	*t = (struct time){ 0 };
	for (uint64_t i = from; i < to;) {
		double before = now_ns(), took;

		for (unsigned n = 0; n < BATCH && i < to; n++, i++) {
			struct op_key k = key_of(i);

			if (window_has(w, k.hash, 0))
				abort();
			window_add(w, &k);
		}
		took = now_ns() - before;
		t->sum += took;
		t->longest = took > t->longest ? took : t->longest;
	}
}

static void
in_memory(uint32_t size)
{
	struct window *w = window_open(NULL, OWNER, size, false);
	struct time grows, full, there = { 0 };
	double before;

	add(w, 0, size, &grows);
	add(w, size, 2 * (uint64_t)size, &full);
	before = now_ns();
	for (uint64_t i = 0; i < size; i++) {
		struct op_key k = key_of(size + i * 7919 % size);

		if (!window_has(w, k.hash, 0))
			abort();
	}
	there.sum = now_ns() - before;
	printf("%8" PRIu32 " keys: %5.1f B each; new %4.0f ns, full %4.0f ns, there %4.0f ns; 64 "
	                   "at most %.0f us\n",
	    size, (double)mem_held[MEM_WINDOWS] / size, grows.sum / size, full.sum / size,
	    there.sum / size, (grows.longest > full.longest ? grows.longest : full.longest) / 1000);
	window_close(&w);
}

/* ---- with a journal ---- */

static void *
item_make(void *arg, const struct op_msg *m)
{
	(void)m;
	return arg;
}

static void
item_nothing(void *item)
{
	(void)item;
}

static void
item_describe(const void *item, struct op_msg *out)
{
	(void)item;
	*out = (struct op_msg){ .arrived_ms = 1,
		.flags = MSG_FLAG_PERSISTENT,
		.names = SPAN_LIT("\1x\3key"),
		.props = SPAN_LIT("\0\0"),
		.body = SPAN_LIT("0123456789abcdef0123456789abcdef"),
		.body_size = 32 };
}

static uint64_t
item_size(const void *item)
{
	(void)item;
	return 32;
}

static const struct store_ops ops = { .make = item_make,
	.ref = item_nothing,
	.unref = item_nothing,
	.describe = item_describe,
	.body_size = item_size };

static struct {
	struct disk *disk;
	struct workers *workers;
	struct store *store;
} world;

static void
open_store(const char *folder)
{
	struct store_config cfg = { .journal_max = 1 << 30,
		.sync = { .policy = SYNC_POLICY_NEVER },
		.lane_entries = 65536,
		.lane_bytes = 32 << 20,
		.garbage_max = 64 << 20 };
	struct store_report r;
	char err[STORE_ERROR];
	double before = now_ns();

	world.disk = disk_real_new(folder);
	world.workers = workers_new(0);
	world.store = store_new(&cfg, world.disk, world.workers, &ops, &world);
	if (store_recover(world.store, &r, err) != 0) {
		fprintf(stderr, "%s\n", err);
		exit(1);
	}
	if (r.records > 0)
		printf("start: %.0f ms for %" PRIu64 " records\n", (now_ns() - before) / 1e6,
		    r.records);
}

static void
close_store(void)
{
	store_free(&world.store);
	workers_free(&world.workers);
	disk_free(&world.disk);
}

static double
turn(uint64_t now_ms)
{
	double before = now_ns(), took;

	(void)store_turn(world.store, OWNER + 1, now_ms);
	took = now_ns() - before;
	while (journal_step(world.store->journal))
		continue;
	while (workers_step(world.workers, 0))
		continue;
	workers_take(world.workers);
	(void)store_events(world.store);
	return took;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Each message is consumed at once; three windows full of them, so that files are given up. */
static void
journalled(uint32_t size)
{
	char folder[] = "/tmp/hermes-bench-XXXXXX";
	double sum = 0, longest = 0, before = 0, took;
	struct store_stats st;
	struct window *w;
	struct lane *l;

	if (mkdtemp(folder) == NULL)
		exit(1);
	open_store(folder);
	store_linked(world.store);
	store_put(world.store, OBJECT_QUEUE, OWNER, SPAN_LIT("a queue"));
	l = lane_open(world.store, OWNER, 0, true, NULL);
	w = window_open(world.store, OWNER, size, true);
	for (uint64_t i = 0; i < 3 * (uint64_t)size; i++) {
		struct lane_place place = { l, lane_next_seq(l) };
		struct window_key k = { w, key_of(i) };

		if (i % 128 == 0)
			before = now_ns();
		if (window_has(w, k.key.hash, 0))
			abort();
		(void)store_publish_keys(world.store, &place, 1, &world, &k, 1);
		lane_ack(l, place.seq, 32, ACK_ACKED);
		if (i % 128 == 127) {
			sum += now_ns() - before;
			took = turn(i / 128);
			sum += took;
			longest = took > longest ? took : longest;
		}
	}
	store_stats(world.store, &st);
	printf("%8" PRIu32
	       " keys: %4.0f ns a message that brings one; longest turn %.0f us; journal %" PRIu64
	       " MiB of %" PRIu64 " MiB written, %" PRIu64 " MiB of them moved\n",
	    size, sum / size / 3, longest / 1000, st.journal_file_bytes >> 20,
	    st.journal_bytes >> 20, st.moved_bytes >> 20);
	close_store();
	open_store(folder);
	w = window_open(world.store, OWNER, size, true);
	if (window_count(w) != size)
		abort();
	close_store();
	(void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

int
main(void)
{
	in_memory(SMALL);
	in_memory(MIDDLE);
	in_memory(OP_DEDUP_MAX);
	journalled(MIDDLE);
	return 0;
}
