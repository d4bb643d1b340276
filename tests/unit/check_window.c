/* SPDX-License-Identifier: Apache-2.0
 * Windows in the store: a key lives as long as the record of its message says, whatever becomes of the message and of the
 * journal file that both stood in. */
#include <check.h>
#include <fcntl.h>

#include "store/window_priv.h"
#include "tests/unit/roll_world.h"

enum { FILE_SIZE = 256 << 10, EXCHANGE = 50 };

static struct op_key
key_of(uint64_t number)
{
	struct op_key k = { .at_ms = 100 + number };

	window_hash(rw.store, 0, span_of(&number, sizeof number), k.hash);
	return k;
}

static bool
has(const struct window *w, uint64_t number)
{
	struct op_key k = key_of(number);

	/* with its own time, neither earlier nor later */
	return window_has(w, k.hash, k.at_ms - 1) && !window_has(w, k.hash, k.at_ms);
}

static struct window *
window_at(uint64_t owner, uint32_t size)
{
	if (!object_exists(rw.store, OBJECT_EXCHANGE, owner))
		store_put(rw.store, OBJECT_EXCHANGE, owner, SPAN_LIT("an exchange"));
	return window_open(rw.store, owner, size, true);
}

/* A message that brings a key, and is consumed at once. */
static struct store_wait
pass(struct lane *l, struct window *w, uint64_t number, uint32_t size)
{
	struct item *i = item_new(number, size);
	struct lane_place place = { l, lane_next_seq(l) };
	struct window_key k = { w, key_of(number) };
	struct store_wait wait = store_publish_keys(rw.store, &place, 1, i, &k, 1);

	ack(l, place.seq, i);
	return wait;
}

static void
take(void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	(void)arg;
	(void)seq;
	(void)state;
	(void)m;
	REQUIRE(rw.taken_n < COUNT_OF(rw.taken), "too many");
	rw.taken[rw.taken_n++] = item;
}

/* After a restart: what was not acknowledged durably comes back. */
static struct lane *
lane_again(uint64_t queue)
{
	struct lane *l = lane_at(queue);

	lane_each(l, take, NULL);
	return l;
}

static void
require_keys(const struct window *w, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		REQUIRE(has(w, i), "key %llu is forgotten", (unsigned long long)i);
	REQUIRE(window_count(w) == to - from, "%llu keys, not %llu",
	    (unsigned long long)window_count(w), (unsigned long long)(to - from));
}

static uint64_t
files(void)
{
	return (uint64_t)journal_current(rw.store->journal) - journal_oldest(rw.store->journal) + 1;
}

START_TEST(test_survives_a_restart)
{
	struct window *w, *volatile_one;
	struct lane *l;
	struct store_wait wait;
	struct op_key lost;

	roll_world_init(FILE_SIZE, 64 << 20);
	l = lane_at(1);
	w = window_at(EXCHANGE, 100);
	lost = key_of(777);
	ck_assert(window_is_durable(w));
	for (uint64_t i = 0; i < 150; i++)
		wait = pass(l, w, i, 100);
	ck_assert(window_wait(w).lsn == wait.lsn && window_wait(w).durable);
	settle(10);
	ck_assert(window_wait(w).lsn == 0); /* it is safe */
	window_add(w, &lost);
	ck_assert(has(w, 777) && has(w, 51) && !has(w, 50));
	volatile_one = window_open(rw.store, 60, 100, false);
	window_add(volatile_one, &lost);
	ck_assert_uint_eq(rw.store->stats.window_keys, 100);
	window_close(&volatile_one);
	store_reopen();
	w = window_at(EXCHANGE, 100);
	store_linked(rw.store);
	/* The number that the lost one had is free again, so what it pushed out is back. */
	require_keys(w, 50, 150);
	ck_assert(!has(w, 777));
	roll_world_fini();
}
END_TEST

/* Files go that held keys; they stay for as long as the window has them. */
START_TEST(test_survives_rolls)
{
	enum { SIZE = 3000, LOUD = 2 };
	struct window *w;
	struct lane *l;
	uint64_t n = 0, rolled = 0, moved = 0;

	roll_world_init(FILE_SIZE, 64 << 20);
	w = window_at(EXCHANGE, SIZE);
	l = lane_at(1);
	for (; n < SIZE + 500; n++)
		(void)pass(l, w, n, 50);
	for (unsigned round = 0; round < 6; round++) {
		flow(lane_at(LOUD), 3 << 20, 1000);
		settle(100);
		require_keys(w, n - SIZE, n);
		/* some new ones, in a record of several operations too */
		store_begin(rw.store);
		for (unsigned i = 0; i < 100; i++)
			(void)pass(l, w, n++, 50);
		(void)store_end(rw.store);
		for (unsigned i = 0; i < 100; i++)
			(void)pass(l, w, n++, 50);
		require_keys(w, n - SIZE, n);
		if (round % 2 == 1) {
			rolled += rw.store->stats.rolled;
			moved += rw.store->stats.moved_bytes;
			store_reopen();
			w = window_at(EXCHANGE, SIZE);
			l = lane_again(1);
			(void)lane_again(LOUD);
			store_linked(rw.store);
			require_keys(w, n - SIZE, n);
		}
	}
	settle(100);
	ck_assert_uint_gt(rolled, 30);
	ck_assert_uint_gt(moved, SIZE * 24);
	ck_assert_uint_le(files(), 6);
	ck_assert_uint_le(w->runs, 2 * files() + 2);
	/* Keys are small where they were moved to: 24 bytes, not the 250 of their messages. */
	ck_assert_uint_lt(moved, 60 * SIZE * 26); /* about every second file */
	/* Nothing holds a file for what has left the window. */
	while (window_count(w) > 0)
		window_drop_oldest(w);
	flow(lane_at(LOUD), 4 << 20, 1000);
	settle(100);
	ck_assert_uint_le(files(), 3);
	ck_assert_uint_eq(rw.store->stats.window_keys, 0);
	roll_world_fini();
}
END_TEST

/* With its owner: before a restart and after, also in a roll that is under way. */
START_TEST(test_goes_with_its_owner)
{
	struct window *w, *other;
	struct lane *l;

	roll_world_init(FILE_SIZE, 64 << 20);
	l = lane_at(1);
	w = window_at(EXCHANGE, 100);
	other = window_at(EXCHANGE + 1, 100);
	for (uint64_t i = 0; i < 50; i++) {
		(void)pass(l, w, i, 100);
		(void)pass(l, other, i, 100);
	}
	store_begin(rw.store);
	(void)pass(l, w, 50, 100);
	(void)pass(l, other, 50, 100);
	store_gone(rw.store, OBJECT_EXCHANGE, EXCHANGE);
	window_close(&w);
	(void)store_end(rw.store);
	settle(10);
	ck_assert_uint_eq(rw.store->stats.window_keys, 51);
	store_reopen();
	ck_assert_ptr_null(window_find(rw.store, EXCHANGE));
	(void)lane_again(1);
	other = window_at(EXCHANGE + 1, 100);
	store_linked(rw.store);
	require_keys(other, 0, 51);
	/* Its owner wants it no more: not opened, it is gone. */
	store_reopen();
	(void)lane_again(1);
	store_linked(rw.store);
	ck_assert_ptr_null(window_find(rw.store, EXCHANGE + 1));
	flow(lane_at(1), 2 << 20, 1000);
	settle(100);
	ck_assert_uint_le(files(), 3);
	ck_assert_uint_eq(rw.store->stats.window_keys, 0);
	roll_world_fini();
	ck_assert_uint_eq(mem_held[MEM_WINDOWS], 0);
}
END_TEST

/* All of a record or nothing: what was begun and not ended is not there, its message neither. */
START_TEST(test_record_of_several)
{
	struct window *w;
	struct lane *l;
	struct store_wait wait;

	roll_world_init(FILE_SIZE, 64 << 20);
	l = lane_at(1);
	w = window_at(EXCHANGE, 100);
	settle(10);
	store_begin(rw.store);
	(void)pass(l, w, 1, 100);
	(void)pass(l, w, 2, 100);
	ck_assert(has(w, 1) && has(w, 2));
	ck_assert(window_wait(w).lsn == 0); /* who is in the record waits for all of it */
	wait = store_end(rw.store);
	ck_assert(wait.lsn != 0 && window_wait(w).lsn == wait.lsn);
	(void)pass(l, w, 3, 100);
	ck_assert_uint_eq(w->runs, 1);
	settle(10);
	store_reopen();
	w = window_at(EXCHANGE, 100);
	store_linked(rw.store);
	require_keys(w, 1, 4);
	roll_world_fini();
}
END_TEST

static void
spoil(const char *folder, uint32_t number)
{
	static const uint8_t zeros[FILE_SIZE - 8192];
	char name[JOURNAL_NAME], path[200];
	int fd;

	REQUIRE(journal_file_name(rw.store->journal, number, name), "no name");
	snprintf(path, sizeof path, "%s/%s", folder, name);
	fd = open(path, O_WRONLY);
	REQUIRE(fd >= 0, "%s cannot be opened", path);
	REQUIRE(pwrite(fd, zeros, sizeof zeros, 8192) == sizeof zeros, "not written");
	close(fd);
}

/* The records of a file cannot be read any more while the keys are in memory: they are written again from there. */
START_TEST(test_damage_while_it_runs)
{
	struct window *w;
	struct lane *l;

	roll_world_init(FILE_SIZE, 64 << 20);
	l = lane_at(1);
	w = window_at(EXCHANGE, 2000);
	for (uint64_t i = 0; i < 1500; i++)
		(void)pass(l, w, i, 50);
	settle(10);
	spoil(rw.folder, journal_oldest(rw.store->journal));
	for (unsigned i = 0; i < 10; i++) {
		flow(lane_at(2), 1 << 20, 1000);
		rw.now_ms += 1000;
		settle(100);
	}
	ck_assert_uint_gt(rw.store->stats.damaged, 0);
	require_keys(w, 0, 1500);
	store_reopen();
	w = window_at(EXCHANGE, 2000);
	(void)lane_again(1);
	(void)lane_again(2);
	store_linked(rw.store);
	require_keys(w, 0, 1500);
	roll_world_fini();
}
END_TEST

START_TEST(test_without_a_store)
{
	struct window *w = window_open(NULL, 1, 3, true);
	struct op_key k;

	ck_assert(!window_is_durable(w));
	ck_assert_uint_eq(window_oldest_ms(w), UINT64_MAX);
	for (uint64_t i = 1; i <= 5; i++) {
		window_hash(NULL, 0, span_of(&i, sizeof i), k.hash);
		k.at_ms = i;
		window_add(w, &k);
	}
	ck_assert_uint_eq(window_count(w), 3);
	ck_assert_uint_eq(window_oldest_ms(w), 3);
	ck_assert(window_has(w, k.hash, 4) && !window_has(w, k.hash, 5));
	window_hash(NULL, 1, span_of(&k.at_ms, sizeof k.at_ms), k.hash); /* of another kind */
	ck_assert(!window_has(w, k.hash, 0));
	ck_assert_uint_eq(window_wait(w).lsn, 0);
	window_close(&w);
	ck_assert_uint_eq(mem_held[MEM_WINDOWS], 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("window");
	TCase *t = tcase_create("window");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_survives_a_restart);
	tcase_add_test(t, test_survives_rolls);
	tcase_add_test(t, test_goes_with_its_owner);
	tcase_add_test(t, test_record_of_several);
	tcase_add_test(t, test_damage_while_it_runs);
	tcase_add_test(t, test_without_a_store);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
