/* SPDX-License-Identifier: Apache-2.0
 * The journal over the simulated disk: what is durable comes back in order and byte for byte, wherever it is cut. */
#include <check.h>
#include <errno.h>

#include "base/clock.h"
#include "tests/unit/journal_world.h"

START_TEST(what_is_appended_comes_back)
{
	struct world *w = &world;
	uint64_t lsn;

	world_init(w, 1);
	start_well(w);
	ck_assert(w->report.is_new);
	ck_assert_uint_eq(journal_current(w->j), 1);
	lsn = append(w, 100, SYNC_NOW);
	(void)append(w, 0, SYNC_NEVER);
	(void)append(w, 7, SYNC_NOW);
	ck_assert_uint_gt(journal_backlog(w->j), 100 + 7);
	ck_assert(!journal_step(w->j)); /* nothing was handed over */
	hand_over(w);
	ck_assert(journal_step(w->j));
	ck_assert(journal_poll(w->j));
	ck_assert_uint_gt(journal_durable(w->j), w->highest);
	ck_assert_uint_ge(journal_durable(w->j), lsn);
	ck_assert_uint_eq(journal_durable(w->j), journal_end(w->j));
	ck_assert_uint_eq(journal_backlog(w->j), 0);
	ck_assert(!journal_poll(w->j));
	stop(w);
	disk_sim_crash(w->disk, 3);
	start_well(w);
	ck_assert(!w->report.is_new);
	ck_assert_uint_eq(w->replayed, 3);
	ck_assert_uint_eq(w->report.records, 3);
	ck_assert_uint_eq(w->report.next_id, 1003);
	ck_assert_uint_eq(w->report.clock_ms, 5003);
	ck_assert_uint_eq(w->report.damaged, 0);
	ck_assert_uint_eq(w->report.torn, 0);
	ck_assert_uint_eq(journal_current(w->j), 2);
	ck_assert_uint_eq(journal_oldest(w->j), 1);
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(needs_decide_what_is_synced)
{
	struct world *w = &world;
	struct journal_stats before, after;

	world_init(w, 2);
	start_well(w);
	settle(w);
	journal_stats(w->j, &before);
	(void)append(w, 10, SYNC_NEVER);
	hand_over(w);
	ck_assert(journal_step(w->j));
	ck_assert(!journal_step(w->j));
	ck_assert(journal_poll(w->j));
	ck_assert_uint_eq(journal_written(w->j), journal_end(w->j));
	ck_assert_uint_lt(journal_durable(w->j), w->highest);
	(void)append(w, 10, SYNC_WITHIN);
	hand_over(w);
	ck_assert(journal_step(w->j));
	ck_assert(journal_poll(w->j));
	ck_assert_uint_lt(journal_durable(w->j), w->highest);
	ck_assert(journal_step(w->j)); /* idle: its time comes */
	ck_assert(journal_poll(w->j));
	ck_assert_uint_gt(journal_durable(w->j), w->highest);
	for (int i = 0; i < 5; i++) { /* one sync for all */
		(void)append(w, 10, SYNC_NOW);
		hand_over(w);
	}
	ck_assert(journal_step(w->j));
	ck_assert(!journal_step(w->j));
	(void)journal_poll(w->j);
	ck_assert_uint_eq(journal_durable(w->j), journal_end(w->j));
	journal_stats(w->j, &after);
	ck_assert_uint_eq(after.syncs - before.syncs, 2);
	ck_assert_uint_eq(after.writes - before.writes, 3);
	ck_assert_uint_eq(after.records - before.records, 7);
	ck_assert_uint_eq(after.chunks - before.chunks, 7);
	stop(w);
	world_fini(w);
}
END_TEST

/* Else what never asks for a sync would hold up publishers for ever. */
START_TEST(much_that_needs_no_sync_is_synced)
{
	struct world *w = &world;

	world_init(w, 2);
	w->cfg.file_size = 64 << 20;
	start_well(w);
	write_some(w, 8, 1 << 20,
	    SYNC_NOW); /* the first file is short, and the next one begins with a sync */
	write_some(w, 15, 1 << 20, SYNC_NEVER);
	ck_assert_uint_eq(journal_written(w->j), journal_end(w->j));
	ck_assert_uint_lt(journal_durable(w->j), w->record[8].lsn);
	ck_assert_uint_gt(journal_backlog(w->j), 15 << 20);
	write_some(w, 2, 1 << 20, SYNC_NEVER);
	ck_assert_uint_gt(journal_durable(w->j), w->record[8 + 15].lsn);
	ck_assert_uint_lt(journal_backlog(w->j), 3 << 20);
	stop(w);
	world_fini(w);
}
END_TEST

/* Many files, records of all lengths, also longer than a file or a buffer; all in one turn and in many. */
START_TEST(records_of_all_lengths_in_many_files)
{
	static const uint32_t lengths[] = { 0, 1, 8, 100, 5000, FILE_SIZE - 4096, FILE_SIZE,
		3 * FILE_SIZE, 1 << 20, (3 << 20) + 5, 17 };
	struct world *w = &world;
	struct journal_file_info info;

	world_init(w, 3);
	start_well(w);
	for (int turn = 0; turn < 3; turn++)
		for (unsigned i = 0; i < COUNT_OF(lengths) * 4; i++) {
			(void)append(
			    w, lengths[(i * (unsigned)(turn + 3)) % COUNT_OF(lengths)], SYNC_NOW);
			if (turn == 0 || (turn == 1 && i % 7 == 0)) {
				hand_over(w);
				settle(w);
			}
		}
	hand_over(w);
	settle(w);
	ck_assert_uint_eq(journal_durable(w->j), journal_end(w->j));
	ck_assert(journal_is_full(w->j));
	ck_assert(journal_file(w->j, 1, &info));
	ck_assert(info.is_closed);
	ck_assert(journal_file(w->j, journal_current(w->j), &info));
	ck_assert(!info.is_closed);
	ck_assert(!journal_file(w->j, journal_current(w->j) + 1, &info));
	stop(w);
	disk_sim_crash(w->disk, 1);
	start_well(w);
	ck_assert_uint_eq(w->replayed, w->records);
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(files_that_are_given_up_are_used_again)
{
	struct world *w = &world;
	struct journal_stats stats;
	uint32_t current;
	char name[JOURNAL_NAME];

	world_init(w, 4);
	start_well(w);
	for (int i = 0; i < 400; i++) {
		write_some(w, 1, 3000, SYNC_NOW);
		current = journal_current(w->j);
		if (current > 2 && journal_oldest(w->j) < current - 1)
			journal_set_oldest(w->j, current - 1);
	}
	journal_stats(w->j, &stats);
	ck_assert_uint_gt(stats.recycled, 10);
	ck_assert_uint_le(stats.created, 6);
	ck_assert_uint_le(journal_files(w->j), 6);
	ck_assert(!journal_file_name(w->j, 1, name));
	ck_assert_uint_le(disk_sim_used(w->disk), 7 * FILE_SIZE);
	stop(w);
	disk_sim_crash(w->disk, 9);
	start_well(w);
	ck_assert_uint_ge(lsn_file(w->record[w->first].lsn), 10);
	ck_assert_uint_eq(w->replayed, count_from(w, w->first));
	stop(w);
	world_fini(w);
}
END_TEST

/* The chunk that says so has to be durable first, and nobody may hold the slots. */
START_TEST(a_slot_waits_for_its_oldest)
{
	struct world *w = &world;
	char name[JOURNAL_NAME];

	world_init(w, 5);
	start_well(w);
	write_some(w, 30, 3000, SYNC_NOW);
	ck_assert_uint_gt(journal_current(w->j), 1);
	journal_hold(w->j, w->record[29].lsn);
	journal_drop(w->j, w->record[29].lsn);
	journal_hold_slots(w->j);
	journal_set_oldest(w->j, 2);
	ck_assert_uint_eq(journal_oldest(w->j), 2);
	(void)journal_poll(w->j);
	ck_assert(journal_file_name(w->j, 1, name));
	hand_over(w); /* nothing was appended, but this is to be said */
	(void)journal_poll(w->j);
	ck_assert(journal_file_name(w->j, 1, name));
	settle(w);
	ck_assert(journal_file_name(w->j, 1, name));
	journal_release_slots(w->j);
	settle(w);
	ck_assert(!journal_file_name(w->j, 1, name));
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(a_full_disk_is_waited_for)
{
	struct world *w = &world;
	uint64_t used;

	world_init(w, 10);
	start_well(w);
	write_some(w, 5, 3000, SYNC_NOW);
	used = disk_sim_used(w->disk);
	disk_sim_set_capacity(w->disk, used);
	for (int i = 0; i < 100; i++)
		write_some(w, 1, 3000, SYNC_NOW);
	ck_assert(journal_out_of_space(w->j));
	ck_assert_int_eq(journal_failed(w->j), 0);
	ck_assert_uint_gt(journal_backlog(w->j), 3000);
	ck_assert_uint_lt(journal_durable(w->j), w->highest);
	disk_sim_set_capacity(w->disk, 1ULL << 40);
	hand_over(w);
	settle(w);
	write_some(w, 1, 10, SYNC_NOW);
	ck_assert(!journal_out_of_space(w->j));
	ck_assert_uint_gt(journal_durable(w->j), w->highest);
	stop(w);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 106);
	stop(w);
	world_fini(w);
}
END_TEST

/* A start needs a file of its own: a small one, if there is no room for more. */
START_TEST(a_start_on_a_full_disk)
{
	struct world *w = &world;

	world_init(w, 11);
	w->cfg.file_size = 1 << 20;
	start_well(w);
	write_some(w, 2, 3000, SYNC_NOW);
	stop(w);
	disk_sim_set_capacity(w->disk, disk_sim_used(w->disk) + (200 << 10));
	start_well(w);
	ck_assert_uint_eq(w->replayed, 2);
	write_some(w, 10, 3000, SYNC_NOW);
	ck_assert_uint_gt(journal_durable(w->j), w->highest);
	stop(w);
	disk_sim_set_capacity(w->disk, disk_sim_used(w->disk));
	ck_assert_int_eq(start(w), -ENOSPC);
	ck_assert_str_eq(w->err, "cannot begin a file of the journal: No space left on device");
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(after_a_failed_sync_nothing_moves)
{
	struct world *w = &world;
	uint64_t durable;

	world_init(w, 12);
	start_well(w);
	write_some(w, 2, 100, SYNC_NOW);
	durable = journal_durable(w->j);
	if (_i == 0)
		disk_sim_fail_sync(w->disk, 1);
	else
		disk_sim_fail_write(w->disk, 1);
	write_some(w, 1, 100, SYNC_NOW);
	ck_assert_int_eq(journal_failed(w->j), -EIO);
	ck_assert_uint_eq(journal_durable(w->j), durable);
	write_some(w, 50, 3000, SYNC_NOW); /* is thrown away */
	ck_assert_int_eq(journal_failed(w->j), -EIO);
	ck_assert_uint_eq(journal_durable(w->j), durable);
	stop(w);
	start_well(w);
	ck_assert_uint_ge(w->replayed, 2);
	ck_assert_uint_le(w->replayed, 3);
	stop(w);
	world_fini(w);
}
END_TEST

/* ---- everything at once, cut anywhere ---- */

static uint32_t
random_length(struct world *w)
{
	if (rnd_chance(&w->rnd, 1))
		return (uint32_t)rnd(&w->rnd, 3 * FILE_SIZE);
	return (uint32_t)rnd(&w->rnd, rnd_chance(&w->rnd, 20) ? 5000 : 300);
}

static void
random_turn(struct world *w)
{
	uint32_t current;

	for (uint64_t n = rnd(&w->rnd, 6); n > 0; n--)
		(void)append(w, random_length(w), (enum sync_need)rnd(&w->rnd, 3));
	if (rnd_chance(&w->rnd, 80))
		hand_over(w);
	if (rnd_chance(&w->rnd, 50))
		(void)journal_step(w->j);
	if (rnd_chance(&w->rnd, 30))
		(void)workers_step(w->workers, 0);
	workers_take(w->workers);
	(void)journal_poll(w->j);
	current = journal_current(w->j);
	if (rnd_chance(&w->rnd, 10)) {
		uint32_t to = journal_oldest(w->j) + (uint32_t)rnd(&w->rnd, 3);

		journal_set_oldest(w->j, to < current ? to : current);
		if (w->oldest_asked < journal_oldest(w->j))
			w->oldest_asked = journal_oldest(w->j);
	}
}

/* The replay began where a file does that was the oldest at some time, ended at or behind what was durable. */
static void
check_replay(struct world *w, uint64_t durable)
{
	uint64_t end = w->replayed == 0 ? 0 : w->record[w->at - 1].lsn;

	for (uint32_t i = 0; i < w->records; i++) {
		struct record *r = &w->record[i];

		if (r->gone)
			continue;
		if (w->replayed == 0 ? r->lsn >= durable : r->lsn > end)
			r->gone = true;
		REQUIRE(!r->gone || r->lsn >= durable, "durable record %llx is lost",
		    (unsigned long long)r->lsn);
		REQUIRE(r->gone || i >= w->first || lsn_file(r->lsn) < w->oldest_asked,
		    "record %llx of a needed file is missing", (unsigned long long)r->lsn);
	}
	REQUIRE(w->report.damaged == 0, "a crash is no damage");
}

/* An LSN may be given again if its file was never begun on disk. */
static void
forget_unwritten(struct world *w)
{
	uint32_t n = lsn_file(w->highest);
	char name[JOURNAL_NAME];

	while (n > 0 && !journal_file_name(w->j, n, name))
		n--;
	if (w->highest >= lsn_of(n + 1, 0))
		w->highest = lsn_of(n + 1, 0) - 1;
}

static void
crash(struct world *w)
{
	forget_unwritten(w);
	stop(w);
	if (rnd_chance(&w->rnd, 30))
		disk_sim_kill(w->disk);
	else
		disk_sim_crash(w->disk, rnd_next(&w->rnd));
}

START_TEST(cut_anywhere)
{
	struct world *w = &world;
	uint64_t durable = 0;

	world_init(w, (uint64_t)_i + 1000);
	for (int life = 0; life < 8; life++) {
		disk_sim_cut_after(
		    w->disk, rnd_chance(&w->rnd, 40) ? 1 + rnd(&w->rnd, 40) : 0, true);
		while (start(w) != 0) { /* cut within recovery */
			REQUIRE(disk_sim_is_dead(w->disk), "recovery: %s", w->err);
			crash(w);
			disk_sim_cut_after(
			    w->disk, rnd_chance(&w->rnd, 50) ? 1 + rnd(&w->rnd, 40) : 0, true);
		}
		check_replay(w, durable);
		disk_sim_cut_after(
		    w->disk, 1 + rnd(&w->rnd, rnd_chance(&w->rnd, 50) ? 30 : 300), false);
		for (int turn = 0; turn < 300 && !disk_sim_is_dead(w->disk); turn++)
			random_turn(w);
		(void)journal_poll(w->j);
		durable = journal_durable(w->j);
		crash(w);
	}
	world_fini(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("journal");
	TCase *t = tcase_create("journal");
	SRunner *r = srunner_create(s);
	int failed;

	clock_init();
	tcase_set_timeout(t, 120);
	tcase_add_test(t, what_is_appended_comes_back);
	tcase_add_test(t, needs_decide_what_is_synced);
	tcase_add_test(t, much_that_needs_no_sync_is_synced);
	tcase_add_test(t, records_of_all_lengths_in_many_files);
	tcase_add_test(t, files_that_are_given_up_are_used_again);
	tcase_add_test(t, a_slot_waits_for_its_oldest);
	tcase_add_test(t, a_full_disk_is_waited_for);
	tcase_add_test(t, a_start_on_a_full_disk);
	tcase_add_loop_test(t, after_a_failed_sync_nothing_moves, 0, 2);
	suite_add_tcase(s, t);
	t = tcase_create("crash");
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, cut_anywhere, 0, 300);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
