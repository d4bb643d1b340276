/* SPDX-License-Identifier: Apache-2.0
 * A fan-out, a dead letter and a transaction are one record each: wherever the journal ends, all of it is there or
 * nothing. The journal is cut at every byte of the three. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/unit/lane_world.h"

enum { SOURCE = 100, DEAD = 101, FAN = 10, FIRST = 1 };

static struct lane *source, *dead, *fan[FAN];

static void
link_lanes(void)
{
	source = lane_open(w.s, SOURCE, 0, true, &w);
	dead = lane_open(w.s, DEAD, 0, true, &w);
	for (unsigned i = 0; i < FAN; i++)
		fan[i] = lane_open(w.s, FIRST + i, 0, true, &w);
	store_linked(w.s);
}

static void
begin(void)
{
	world_init();
	world_stop();
	disk_free(&w.disk);
	w.disk = disk_sim_new(1, (uint64_t)1 << 30);
	w.cfg.journal_file_size = 64 << 10;
	world_start();
	link_lanes();
	store_put(w.s, OBJECT_QUEUE, SOURCE, SPAN_LIT("source"));
	store_put(w.s, OBJECT_QUEUE, DEAD, SPAN_LIT("dead"));
	for (unsigned i = 0; i < FAN; i++)
		store_put(w.s, OBJECT_QUEUE, FIRST + i, SPAN_LIT("fan"));
}

/* The three, a turn each. *from, *to: where they stand in the journal's file. */
static void
work(struct item *m, uint32_t *from, uint32_t *to)
{
	struct lane_place place[FAN];

	for (uint64_t seq = 1; seq <= 3; seq++)
		(void)publish(source, seq, m);
	world_turn();
	*from = lsn_at(journal_end(w.s->journal));
	for (unsigned i = 0; i < FAN; i++)
		place[i] = (struct lane_place){ fan[i], 1 };
	(void)store_publish(w.s, place, FAN, m);
	world_turn();

	store_begin(w.s);
	(void)publish(dead, 1, m);
	lane_ack(source, 1, m->size, ACK_MOVED);
	(void)store_end(w.s);
	world_turn();

	store_begin(w.s);
	for (unsigned i = 0; i < 3; i++)
		(void)publish(fan[i], 2, m);
	lane_ack(source, 2, m->size, ACK_ACKED);
	lane_ack(source, 3, m->size, ACK_ACKED);
	(void)store_end(w.s);
	world_turn();
	*to = lsn_at(journal_end(w.s->journal));
}

/* The file as if nothing behind `at` had ever reached it. */
static void
cut_file(const char *name, uint32_t at)
{
	struct disk_file *f;
	uint64_t size;
	uint8_t *zeros;

	ck_assert_int_eq(w.disk->ops->open(w.disk, name, DISK_WRITE, &f), 0);
	ck_assert_int_eq(w.disk->ops->size(f, &size), 0);
	zeros = xcalloc(1, size - at);
	ck_assert_int_eq(disk_write_one(w.disk, f, zeros, size - at, at), 0);
	ck_assert_int_eq(w.disk->ops->sync(f), 0);
	w.disk->ops->close(f);
	free(zeros);
}

static unsigned
count(struct lane *l)
{
	struct entries e = { 0 };
	unsigned n;

	lane_each(l, take_entry, &e);
	n = e.n;
	entries_fini(&e);
	return n;
}

/* How many of the three are there; fails where one is there in part. */
static unsigned
look(void)
{
	unsigned of_source = count(source), of_dead = count(dead), of_fan[FAN], sum = 0;

	for (unsigned i = 0; i < FAN; i++)
		sum += of_fan[i] = count(fan[i]);
	if (sum == 0) {
		ck_assert(of_source == 3 && of_dead == 0);
		return 0;
	}
	for (unsigned i = 0; i < FAN; i++)
		ck_assert_uint_eq(of_fan[i], sum == FAN || i >= 3 ? 1 : 2);
	if (sum == FAN + 3) {
		ck_assert(of_source == 0 && of_dead == 1);
		return 3;
	}
	ck_assert_uint_eq(sum, FAN);
	ck_assert(of_source == 3 - of_dead && of_dead <= 1);
	return 1 + of_dead;
}

static unsigned
after_a_cut(uint32_t at, uint32_t *from, uint32_t *to)
{
	struct item *m;
	char name[JOURNAL_NAME];
	unsigned there;

	begin();
	m = item_of("a message of some bytes");
	work(m, from, to);
	ck_assert(journal_file_name(w.s->journal, journal_current(w.s->journal), name));
	disk_sim_cut_after(w.disk, 1, true);
	world_stop();
	disk_sim_kill(w.disk);
	if (at != 0)
		cut_file(name, at);
	world_start();
	link_lanes();
	there = look();
	world_fini();
	item_unref(m);
	ck_assert_int_eq(items_alive, 0);
	return there;
}

START_TEST(all_or_nothing)
{
	uint32_t from, to;
	unsigned seen[4] = { 0 }, before = 0;

	ck_assert_uint_eq(after_a_cut(0, &from, &to), 3);
	for (uint32_t at = from; at <= to; at++) {
		unsigned there = after_a_cut(at, &from, &to);

		ck_assert_msg(
		    there >= before, "cut at %u: %u, a byte earlier %u", at, there, before);
		seen[before = there]++;
	}
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_gt(seen[i], 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("atomic");
	TCase *t = tcase_create("records");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_test(t, all_or_nothing);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
