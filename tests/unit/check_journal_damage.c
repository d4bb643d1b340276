/* SPDX-License-Identifier: Apache-2.0
 * The journal's start on a disk that is not as it was left: damage, tears, lost files, foreign formats. */
#include <check.h>
#include <errno.h>

#include "base/clock.h"
#include "tests/unit/journal_world.h"

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
	ck_assert(journal_file_name(w->j, _i == 0 ? journal_current(w->j) : 2, name));
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

int
main(void)
{
	Suite *s = suite_create("journal_damage");
	TCase *t = tcase_create("journal_damage");
	SRunner *r = srunner_create(s);
	int failed;

	clock_init();
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, damage_costs_what_is_damaged, 0, 100);
	tcase_add_test(t, a_torn_tail_is_cut_with_all_behind_it);
	tcase_add_loop_test(t, what_was_only_written_is_made_durable, 0, 20);
	tcase_add_test(t, a_lost_header_is_made_good_and_a_lost_file_reported);
	tcase_add_loop_test(t, a_header_of_zeros, 0, 2);
	tcase_add_test(t, a_newer_format_is_refused);
	tcase_add_test(t, want_of_memory_is_said);
	tcase_add_test(t, a_payload_that_imitates_records);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
