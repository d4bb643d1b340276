/* SPDX-License-Identifier: Apache-2.0
 * The journal over the simulated disk: what is durable comes back in order and byte for byte, whatever the disk does; and
 * a little of it with its thread on a real one. The model is the list of all records that were ever appended. */
#include "store/journal.h"

#include <check.h>
#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "tests/sim/disk_sim.h"
#include "tests/sim/rnd.h"

enum { FILE_SIZE = 64 << 10, MOST = 20000, ENDLESS = 100000 };

struct record {
	uint64_t lsn;
	uint32_t n;
	bool gone; /* void since a crash */
};

struct world {
	struct disk *disk;
	struct workers *workers;
	struct journal *j;
	struct journal_config cfg;
	struct store_id id;
	struct rnd rnd;
	struct record record[MOST];
	uint32_t records;
	uint32_t oldest_asked; /* highest oldest that was set */
	uint64_t highest;      /* LSN ever given */
	/* the replay under way */
	struct journal_report report;
	char err[JOURNAL_ERROR];
	uint32_t at, first, replayed;
	bool is_strict; /* nothing may be missing in between */
	uint32_t missed;
};

static struct world world;

#define REQUIRE(ok, ...)                           \
	do {                                       \
		if (!(ok))                         \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

/* ---- records ---- */

static uint8_t
byte_of(uint64_t lsn, uint32_t i)
{
	return (uint8_t)((lsn * 0x9e3779b97f4a7c15ULL >> 32) + i * 31 + (i >> 8));
}

static uint64_t
append(struct world *w, uint32_t n, enum sync_need need)
{
	uint64_t lsn;
	uint8_t *p = journal_append(w->j, n, 1, need, 10, &lsn);

	for (uint32_t i = 0; i < n; i++)
		p[i] = byte_of(lsn, i);
	REQUIRE(lsn > w->highest, "lsn %llx after %llx", (unsigned long long)lsn,
	    (unsigned long long)w->highest);
	w->highest = lsn;
	REQUIRE(w->records < MOST, "too many records");
	w->record[w->records++] = (struct record){ .lsn = lsn, .n = n };
	return lsn;
}

static int
on_replay(void *arg, uint64_t lsn, struct span payload)
{
	struct world *w = arg;

	if (w->replayed == 0) {
		for (w->at = 0; w->at < w->records; w->at++)
			if (!w->record[w->at].gone && w->record[w->at].lsn == lsn)
				break;
		w->first = w->at;
	}
	while (!w->is_strict && w->at < w->records && w->record[w->at].lsn != lsn) {
		w->missed += !w->record[w->at].gone;
		w->at++;
	}
	while (w->at < w->records && w->record[w->at].gone)
		w->at++;
	REQUIRE(
	    w->at < w->records, "a record at %llx that was not appended", (unsigned long long)lsn);
	REQUIRE(w->record[w->at].lsn == lsn, "record %llx instead of %llx", (unsigned long long)lsn,
	    (unsigned long long)w->record[w->at].lsn);
	REQUIRE(payload.n == w->record[w->at].n, "length");
	for (uint32_t i = 0; i < payload.n; i++)
		REQUIRE(
		    payload.p[i] == byte_of(lsn, i), "byte %u of %llx", i, (unsigned long long)lsn);
	w->at++;
	w->replayed++;
	return 0;
}

/* ---- the world ---- */

static void
world_init(struct world *w, uint64_t seed)
{
	memset(w, 0, sizeof *w);
	log_set_level(LOG_ERROR);
	w->rnd = rnd_of(seed);
	w->disk = disk_sim_new(seed, 1ULL << 40);
	w->cfg = (struct journal_config){ .file_size = FILE_SIZE, .max = 1 << 20 };
	w->id = (struct store_id){ .format = FORMAT_VERSION, .id = 7, .seed = seed * 77 + 5 };
	w->is_strict = true;
}

static int
start(struct world *w)
{
	w->workers = workers_new(0);
	w->j = journal_new(w->disk, w->workers, &w->cfg, &w->id);
	w->at = w->first = w->replayed = w->missed = 0;
	w->err[0] = '\0';
	return journal_recover(w->j, on_replay, w, &w->report, w->err);
}

static void
start_well(struct world *w)
{
	int r = start(w);

	REQUIRE(r == 0, "recovery: %d %s", r, w->err);
}

static void
stop(struct world *w)
{
	journal_free(&w->j);
	workers_free(&w->workers);
	ck_assert_uint_eq(mem_held[MEM_JOURNAL], 0);
}

static void
world_fini(struct world *w)
{
	ck_assert_uint_eq(disk_sim_open_files(w->disk), 0);
	disk_free(&w->disk);
}

static void
hand_over(struct world *w)
{
	journal_hand_over(w->j, 1000 + w->records, 5000 + w->records);
}

/* Everything that can be done is done. */
static void
settle(struct world *w)
{
	unsigned i = 0;
	bool more = true;

	while (more) {
		more = journal_step(w->j);
		more |= workers_step(w->workers, 0);
		workers_take(w->workers);
		more |= journal_poll(w->j);
		REQUIRE(++i < ENDLESS, "it never ends");
	}
}

static void
write_some(struct world *w, uint32_t records, uint32_t n, enum sync_need need)
{
	for (uint32_t i = 0; i < records; i++) {
		(void)append(w, n, need);
		hand_over(w);
		settle(w);
	}
}

/* Records of the model from `first` that are not void. */
static uint32_t
count_from(const struct world *w, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < w->records; i++)
		n += !w->record[i].gone;
	return n;
}

static const char *
current_name(const struct world *w, char name[JOURNAL_NAME])
{
	ck_assert(journal_file_name(w->j, journal_current(w->j), name));
	return name;
}

/* ---- tests ---- */

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
	write_some(w, 15, 1 << 20, SYNC_NEVER);
	ck_assert_uint_eq(journal_written(w->j), journal_end(w->j));
	ck_assert_uint_lt(journal_durable(w->j), w->record[0].lsn);
	ck_assert_uint_gt(journal_backlog(w->j), 15 << 20);
	write_some(w, 2, 1 << 20, SYNC_NEVER);
	ck_assert_uint_gt(journal_durable(w->j), w->record[15].lsn);
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

START_TEST(damage_costs_what_is_damaged)
{
	struct world *w = &world;
	char name[JOURNAL_NAME];
	uint64_t at;

	world_init(w, 6 + (uint64_t)_i);
	start_well(w);
	write_some(w, 12, 500, SYNC_NOW);
	/* in each place of it */
	at = lsn_at(w->record[5].lsn) + (uint64_t)_i;
	disk_sim_flip(w->disk, current_name(w, name), at, (unsigned)_i % 8);
	stop(w);
	w->is_strict = false;
	start_well(w);
	ck_assert_uint_eq(w->replayed, 11);
	ck_assert_uint_eq(w->missed, 1);
	ck_assert_uint_eq(w->report.damaged, 1);
	ck_assert_uint_eq(w->report.torn, 0);
	/* a copy was set aside; the next start sees the same */
	stop(w);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 11);
	ck_assert_uint_eq(w->report.damaged, 1);
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(a_torn_tail_is_cut_with_all_behind_it)
{
	struct world *w = &world;
	char name[JOURNAL_NAME];

	world_init(w, 7);
	start_well(w);
	write_some(w, 5, 500, SYNC_NOW);
	for (int i = 0; i < 10; i++) { /* one write, no sync */
		(void)append(w, 500, SYNC_NEVER);
		if (i % 3 == 2)
			hand_over(w);
	}
	hand_over(w);
	(void)journal_step(w->j);
	(void)current_name(w, name);
	disk_sim_cut_after(w->disk, 1, false); /* what stop() would sync */
	stop(w);
	disk_sim_kill(w->disk);
	disk_sim_flip(w->disk, name, lsn_at(w->record[8].lsn) + 40, 3);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 8);
	ck_assert_uint_eq(w->report.damaged, 0);
	ck_assert_uint_gt(w->report.torn, 6 * 500);
	for (int i = 8; i < 15; i++)
		w->record[i].gone = true;
	(void)append(w, 50, SYNC_NOW);
	stop(w);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 9);
	ck_assert_uint_eq(w->report.torn, 0);
	stop(w);
	world_fini(w);
}
END_TEST

/* What a killed process left in the page cache is synced by the next start, before anything builds on it. */
START_TEST(what_was_only_written_is_made_durable)
{
	struct world *w = &world;

	world_init(w, 8 + (uint64_t)_i);
	start_well(w);
	write_some(w, 3, 700, SYNC_NOW);
	write_some(w, 5, 700, SYNC_NEVER);
	disk_sim_cut_after(w->disk, 1, false);
	stop(w);
	disk_sim_kill(w->disk);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 8);
	disk_sim_cut_after(w->disk, 1, false);
	stop(w);
	disk_sim_crash(w->disk, (uint64_t)_i);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 8);
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(a_lost_header_is_made_good_and_a_lost_file_reported)
{
	struct world *w = &world;
	char name[JOURNAL_NAME];
	uint32_t lost = 0;

	world_init(w, 9);
	start_well(w);
	write_some(w, 60, 3000, SYNC_NOW);
	ck_assert_uint_ge(journal_current(w->j), 3);
	ck_assert(journal_file_name(w->j, 2, name));
	disk_sim_flip(w->disk, name, 17, 1);
	stop(w);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 60);
	ck_assert_uint_eq(w->report.damaged, 1);
	stop(w);
	ck_assert_int_eq(w->disk->ops->unlink(w->disk, name), 0);
	for (uint32_t i = 0; i < w->records; i++)
		lost += lsn_file(w->record[i].lsn) == 2;
	w->is_strict = false;
	start_well(w);
	ck_assert_uint_gt(lost, 5);
	ck_assert_uint_eq(w->missed, lost);
	ck_assert_uint_eq(w->replayed, 60 - lost);
	ck_assert_uint_eq(w->report.damaged, 1);
	stop(w);
	world_fini(w);
}
END_TEST

/* As a disk has it that gives zeros for a block it lost: of the last file, and of one that others follow. */
START_TEST(a_header_of_zeros)
{
	struct world *w = &world;
	uint8_t zeros[FILE_HEADER] = { 0 };
	char name[JOURNAL_NAME];
	struct disk_file *f;

	world_init(w, 9);
	start_well(w);
	write_some(w, 60, 3000, SYNC_NOW);
	ck_assert_uint_ge(journal_current(w->j), 3);
	ck_assert(
	    journal_file_name(w->j, _i == 0 ? journal_current(w->j) : 2, name));
	stop(w);
	ck_assert_int_eq(w->disk->ops->open(w->disk, name, DISK_WRITE, &f), 0);
	ck_assert_int_eq(disk_write_one(w->disk, f, zeros, sizeof zeros, 0), 0);
	ck_assert_int_eq(w->disk->ops->sync(f), 0);
	w->disk->ops->close(f);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 60);
	ck_assert_uint_eq(w->report.damaged, 1);
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

START_TEST(a_newer_format_is_refused)
{
	struct world *w = &world;
	struct file_header h = { FILE_JOURNAL, FORMAT_VERSION + 1, 7, 9, FILE_SIZE, 0, 0 };
	uint8_t bytes[FILE_HEADER] = { 0 };
	struct disk_file *f;

	world_init(w, 13);
	start_well(w);
	stop(w);
	file_header_encode(&h, w->id.seed, bytes);
	ck_assert_int_eq(w->disk->ops->open(w->disk, "journal/00000099", DISK_CREATE, &f), 0);
	ck_assert_int_eq(disk_write_one(w->disk, f, bytes, sizeof bytes, 0), 0);
	w->disk->ops->close(f);
	ck_assert_int_eq(start(w), -EPROTONOSUPPORT);
	ck_assert_str_eq(w->err, "journal/00000099 has format 2, this version reads up to 1");
	stop(w);
	world_fini(w);
}
END_TEST

START_TEST(want_of_memory_is_said)
{
	struct world *w = &world;

	world_init(w, 14);
	start_well(w);
	write_some(w, 3, 100, SYNC_NOW);
	stop(w);
	mem_fail_try(1, 1);
	ck_assert_int_eq(start(w), -ENOMEM);
	ck_assert_str_eq(w->err, "no memory to read a record of journal/00000000");
	stop(w);
	mem_fail_try(0, 0);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 3);
	stop(w);
	world_fini(w);
}
END_TEST

/* A publisher may guess where its bytes will stand, and fill them with what begins a record at each place. */
START_TEST(a_payload_that_imitates_records)
{
	struct world *w = &world;
	char name[JOURNAL_NAME];
	uint64_t lsn, word;
	uint8_t *p;

	world_init(w, 15);
	start_well(w);
	write_some(w, 3, 100, SYNC_NOW);
	p = journal_append(w->j, 40000, 1, SYNC_NOW, 0, &lsn);
	for (uint32_t i = 0; i + 8 <= 40000; i += 8) {
		word = lsn + RECORD_HEADER + i - 8;
		memcpy(p + i, &word, sizeof word);
	}
	write_some(w, 3, 100, SYNC_NOW);
	disk_sim_flip(w->disk, current_name(w, name), lsn_at(lsn) + 3, 0);
	stop(w);
	start_well(w);
	ck_assert_uint_eq(w->replayed, 6);
	ck_assert_uint_eq(w->report.damaged, 1);
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

/* ---- with a thread, on a real disk ---- */

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
	tcase_add_loop_test(t, damage_costs_what_is_damaged, 0, 100);
	tcase_add_test(t, a_torn_tail_is_cut_with_all_behind_it);
	tcase_add_loop_test(t, what_was_only_written_is_made_durable, 0, 20);
	tcase_add_test(t, a_lost_header_is_made_good_and_a_lost_file_reported);
	tcase_add_loop_test(t, a_header_of_zeros, 0, 2);
	tcase_add_test(t, a_full_disk_is_waited_for);
	tcase_add_test(t, a_start_on_a_full_disk);
	tcase_add_loop_test(t, after_a_failed_sync_nothing_moves, 0, 2);
	tcase_add_test(t, a_newer_format_is_refused);
	tcase_add_test(t, want_of_memory_is_said);
	tcase_add_test(t, a_payload_that_imitates_records);
	suite_add_tcase(s, t);
	t = tcase_create("crash");
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, cut_anywhere, 0, 300);
	suite_add_tcase(s, t);
	t = tcase_create("thread");
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
