/* SPDX-License-Identifier: Apache-2.0
 * The journal with its thread, on a real disk, also on one that is full or hangs. */
#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/journal_world.h"

static char folder[64];

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st, (void)kind, (void)where;
	return remove(path);
}

static void
real_init(struct world *w)
{
	world_init(w, 20);
	disk_free(&w->disk);
	(void)snprintf(folder, sizeof folder, "/tmp/check_journal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	w->disk = disk_real_new(folder);
	w->cfg.file_size = 1 << 20;
	w->cfg.max = 1 << 30;
	w->cfg.threads = true;
}

static void
real_fini(struct world *w)
{
	disk_free(&w->disk);
	(void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void
real_start(struct world *w)
{
	int r;

	w->workers = workers_new(1);
	w->j = journal_new(w->disk, w->workers, &w->cfg, &w->id);
	w->at = w->first = w->replayed = w->missed = 0;
	r = journal_recover(w->j, on_replay, w, &w->report, w->err);
	REQUIRE(r == 0, "recovery: %s", w->err);
}

static void
wait_for(struct world *w, bool durable, uint64_t lsn)
{
	struct pollfd p[2] = { { .fd = journal_fd(w->j), .events = POLLIN },
		{ .fd = workers_fd(w->workers), .events = POLLIN } };

	while ((durable ? journal_durable(w->j) : journal_written(w->j)) <= lsn) {
		ck_assert_int_gt(poll(p, 2, 10000), 0);
		if (p[1].revents != 0)
			workers_take(w->workers);
		(void)journal_poll(w->j);
		ck_assert_int_eq(journal_failed(w->j), 0);
	}
}

START_TEST(a_thread_on_a_real_disk)
{
	struct world *w = &world;
	uint32_t current;
	struct journal_stats stats;

	real_init(w);
	real_start(w);
	for (int i = 0; i < 1000; i++) {
		(void)append(w, 3000, i % 10 == 0 ? SYNC_NOW : SYNC_NEVER);
		hand_over(w);
		if (i % 50 == 0)
			wait_for(w, i % 100 == 0, w->highest);
		current = journal_current(w->j);
		if (journal_oldest(w->j) + 2 < current)
			journal_set_oldest(w->j, current - 2);
	}
	/* within 10 ms */
	(void)append(w, 10, SYNC_WITHIN);
	hand_over(w);
	wait_for(w, true, w->highest);
	journal_stats(w->j, &stats);
	ck_assert_uint_gt(stats.syncs, 10);
	stop(w);
	real_start(w);
	ck_assert_uint_eq(w->replayed, count_from(w, w->first));
	stop(w);
	real_fini(w);
}
END_TEST

/* The real disk with some of its operations in the way of the journal. */
static struct disk_ops hindered;
static const struct disk_ops *unhindered;
static atomic_bool is_full, syncs_hang;

static int
resize_if_room(struct disk_file *f, uint64_t size)
{
	return atomic_load(&is_full) ? -ENOSPC : unhindered->resize(f, size);
}

static int
sync_in_time(struct disk_file *f)
{
	while (atomic_load(&syncs_hang))
		(void)usleep(1000);
	return unhindered->sync(f);
}

static void
hinder(struct world *w)
{
	unhindered = w->disk->ops;
	hindered = *unhindered;
	hindered.resize = resize_if_room;
	hindered.sync = sync_in_time;
	w->disk->ops = &hindered;
	atomic_store(&is_full, false);
	atomic_store(&syncs_hang, false);
}

/* Waits for the core thread's descriptors once, and does what they ask for. */
static void
one_turn(struct world *w)
{
	struct pollfd p[2] = { { .fd = journal_fd(w->j), .events = POLLIN },
		{ .fd = workers_fd(w->workers), .events = POLLIN } };

	ck_assert_int_gt(poll(p, 2, 20000), 0);
	workers_take(w->workers);
	(void)journal_poll(w->j);
}

START_TEST(a_thread_on_a_full_disk)
{
	struct world *w = &world;

	real_init(w);
	hinder(w);
	w->cfg.file_size = 8 << 20; /* the first file has an eighth */
	real_start(w);
	atomic_store(&is_full, true);
	for (int i = 0; i < 10; i++) { /* more than fits into the first file */
		(void)append(w, 300000, SYNC_NOW);
		hand_over(w);
	}
	while (!journal_out_of_space(w->j) || journal_durable(w->j) < w->record[2].lsn)
		one_turn(w);
	ck_assert_uint_lt(journal_durable(w->j), w->record[3].lsn);
	ck_assert_int_eq(journal_failed(w->j), 0);
	if (_i == 0) { /* nobody is told but by the journal itself */
		atomic_store(&is_full, false);
		while (journal_durable(w->j) <= w->highest || journal_out_of_space(w->j))
			one_turn(w);
	}
	stop(w); /* does not wait for space */
	atomic_store(&is_full, false);
	real_start(w);
	ck_assert_uint_eq(w->replayed, _i == 0 ? 10 : 3);
	stop(w);
	real_fini(w);
}
END_TEST

/* The core thread goes on, and everything that came meanwhile goes out with the next sync. */
START_TEST(a_sync_that_hangs)
{
	struct world *w = &world;
	struct journal_stats before, after;

	real_init(w);
	hinder(w);
	real_start(w);
	atomic_store(&syncs_hang, true);
	(void)append(w, 100, SYNC_NOW);
	hand_over(w);
	while (journal_stats(w->j, &before), before.writes < 2) /* the first one was the start's */
		(void)usleep(1000);
	for (int i = 0; i < 500; i++) {
		(void)append(w, 100, SYNC_NOW);
		hand_over(w);
		(void)journal_poll(w->j);
	}
	ck_assert_uint_lt(journal_durable(w->j), w->record[1].lsn);
	ck_assert_uint_gt(journal_backlog(w->j), 500 * 100);
	atomic_store(&syncs_hang, false);
	wait_for(w, true, w->highest);
	journal_stats(w->j, &after);
	ck_assert_uint_le(after.syncs - before.syncs, 3);
	ck_assert_uint_eq(after.writes - before.writes, 1);
	stop(w);
	real_fini(w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("journal_thread");
	TCase *t = tcase_create("journal_thread");
	SRunner *r = srunner_create(s);
	int failed;

	clock_init();
	tcase_set_timeout(t, 120);
	tcase_add_test(t, a_thread_on_a_real_disk);
	tcase_add_loop_test(t, a_thread_on_a_full_disk, 0, 2);
	tcase_add_test(t, a_sync_that_hangs);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
