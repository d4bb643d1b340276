/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of a store that goes on meanwhile, restoring them, and looking whether a folder is whole. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "store/manifest.h"
#include "tests/unit/roll_world.h"

enum { FILE_SIZE = 256 << 10, LANES = 40, EACH = 20, BIG = 300 };

static char snapshot_path[80], restored_path[80];
static int done_error, done_calls;
static char done_text[600];

static void
on_done(void *arg, int error, const char *text)
{
	(void)arg;
	done_error = error;
	done_calls++;
	snprintf(done_text, sizeof done_text, "%s", text);
}

static char said[1 << 14];

static void
say(void *arg, const char *line)
{
	size_t n = strlen(said);

	(void)arg;
	snprintf(said + n, sizeof said - n, "%s\n", line);
}

static uint64_t copied, to_copy;

static void
note_copied(void *arg UNUSED, uint64_t done, uint64_t bytes)
{
	ck_assert_uint_ge(done, copied);
	ck_assert_uint_le(done, bytes);
	copied = done;
	to_copy = bytes;
}

static const struct store_restore_ask asking = { .check = { .say = say }, .copied = note_copied };

static struct item *small[LANES][EACH], *big[BIG];

/* Some lanes, a long one that is spilled, acknowledgements everywhere. */
static void
fill(void)
{
	struct lane *l;

	roll_world_init(FILE_SIZE, 64 << 20);
	snprintf(snapshot_path, sizeof snapshot_path, "%s-snapshot", rw.folder);
	snprintf(restored_path, sizeof restored_path, "%s-restored", rw.folder);
	done_calls = 0;
	said[0] = '\0';
	for (uint64_t q = 0; q < LANES; q++) {
		l = lane_at(100 + q);
		for (unsigned i = 0; i < EACH; i++)
			small[q][i] = publish(l, q * 100 + i, 300);
		for (unsigned i = 0; i < q % EACH; i++) {
			ack(l, i + 1, small[q][i]);
			small[q][i] = NULL;
		}
		(void)turn();
	}
	l = lane_at(7);
	for (unsigned i = 0; i < BIG; i++)
		big[i] = publish(l, i, 3000);
	ck_assert(lane_spill(l, 100 * 3000));
	settle(20);
	ck_assert_uint_gt(l->segments, 0);
	for (unsigned i = 0; i < 50; i += 2) {
		ack(l, i + 1, big[i]);
		big[i] = NULL;
	}
	(void)turn();
}

static void
clean_up(void)
{
	if (rw.store != NULL)
		store_close();
	test_folder_remove(rw.folder);
	test_folder_remove(snapshot_path);
	test_folder_remove(restored_path);
}

static void
drop_items(void)
{
	for (unsigned q = 0; q < LANES; q++)
		for (unsigned i = 0; i < EACH; i++)
			if (small[q][i] != NULL)
				item_unref(small[q][i]);
	for (unsigned i = 0; i < BIG; i++)
		if (big[i] != NULL)
			item_unref(big[i]);
}

static uint64_t next_number, queue;

static void
on_entry(void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	struct item *i = item;

	(void)arg;
	(void)state;
	(void)m;
	REQUIRE(seq == next_number + 1 && i->number == (queue - 100) * 100 + next_number,
	    "queue %lu: seq %lu is message %lu, expected %lu", queue, seq, i->number, next_number);
	next_number++;
	rw.taken[rw.taken_n++] = i;
}

/* What fill() made is there, no more and no less. */
static void
check_filled(void)
{
	struct lane *l = lane_at(7);

	ck_assert_uint_eq(l->live + l->unread, BIG - 25);
	ck_assert_uint_eq(l->next_seq, BIG + 1);
	for (uint64_t q = 0; q < LANES; q++) {
		l = lane_at(100 + q);
		queue = 100 + q;
		next_number = q % EACH;
		REQUIRE(l->live + l->unread == EACH - next_number,
		    "queue %lu: %lu in memory, %lu unread", queue, l->live, l->unread);
		if (l->unread == 0) {
			lane_each(l, on_entry, NULL);
			REQUIRE(next_number == EACH, "queue %lu: %lu", queue, next_number);
		}
	}
}

/* Until S is taken; the worker has not begun. */
static void
begin_snapshot(const char *path)
{
	ck_assert_int_eq(store_snapshot(rw.store, path, on_done, NULL), 0);
	while (rw.store->snapshot_holds == 0) {
		(void)store_turn(rw.store, 1, rw.now_ms);
		while (journal_step(rw.store->journal))
			continue;
		(void)store_events(rw.store);
	}
}

/* Everything goes: acknowledged, published anew, spilled, a queue deleted; many journal files pass. */
static void
go_on(unsigned round)
{
	struct lane *l;

	for (uint64_t q = 0; q < LANES; q++) {
		l = lane_at(100 + q);
		if (round < EACH && small[q][round] != NULL) {
			ack(l, round + 1, small[q][round]);
			small[q][round] = NULL;
		}
	}
	l = lane_at(7);
	for (unsigned i = round * 10; i < round * 10 + 10 && i < BIG; i++)
		if (big[i] != NULL) {
			ack(l, i + 1, big[i]);
			big[i] = NULL;
		}
	(void)lane_spill(l, 0);
	l = lane_at(1);
	for (unsigned i = 0; i < 100; i++) {
		struct item *it = publish(l, i, 2000);

		ack(l, l->next_seq - 1, it);
	}
	if (round == 25) {
		l = lane_at(7);
		store_gone(rw.store, OBJECT_QUEUE, 7);
		lane_close(&l);
	}
	(void)store_turn(rw.store, 1, ++rw.now_ms);
	while (journal_step(rw.store->journal))
		continue;
	(void)workers_step(rw.workers, 0);
	workers_take(rw.workers);
	(void)store_events(rw.store);
}

static void
check_restored(void)
{
	ck_assert_int_eq(done_calls, 1);
	ck_assert_msg(done_error == 0, "%s", done_text);
	ck_assert_msg(store_check(snapshot_path, say, NULL) == 0, "%s", said);
	said[0] = '\0';
	ck_assert_msg(store_restore(snapshot_path, restored_path, &asking) == 0, "%s", said);
	store_close();
	drop_items();
	ck_assert_uint_eq(store_open(restored_path).damaged, 0);
	check_filled();
	store_close();
	ck_assert_uint_eq(rw.items, 0);
}

START_TEST(test_snapshot_is_the_state_at_its_beginning)
{
	uint32_t first;
	unsigned round = 0;

	fill();
	first = journal_oldest(rw.store->journal);
	begin_snapshot(snapshot_path);
	while (done_calls == 0 && round < 1000)
		go_on(round++);
	ck_assert_uint_gt(round, 20);
	while (round < 200)
		go_on(round++);
	ck_assert_uint_gt(journal_oldest(rw.store->journal), first);
	ck_assert_uint_eq(rw.store->snapshot_holds, 0);
	check_restored();
	clean_up();
}
END_TEST

/* To another file system, where there is one. */
START_TEST(test_snapshot_to_another_file_system)
{
	struct stat a, b;

	fill();
	snprintf(
	    snapshot_path, sizeof snapshot_path, "/tmp/hermes-check-%d-snapshot", (int)getpid());
	ck_assert_int_eq(stat("/tmp", &a) | stat(rw.folder, &b), 0);
	begin_snapshot(snapshot_path);
	for (unsigned round = 0; done_calls == 0 && round < 2000; round++)
		go_on(round);
	if (a.st_dev == b.st_dev)
		fprintf(stderr, "/tmp and %s are one file system\n", rw.folder);
	check_restored();
	clean_up();
}
END_TEST

/* Whenever somebody takes a segment away, the snapshot has it or fails. */
START_TEST(test_a_segment_is_taken_away)
{
	char name[SEGMENT_NAME], path[200];
	int steps = _i;

	fill();
	begin_snapshot(snapshot_path);
	segment_name(lane_at(7), lane_at(7)->segment[0]->first, name);
	for (; steps > 0 && done_calls == 0; steps--) {
		(void)workers_step(rw.workers, 0);
		workers_take(rw.workers);
	}
	snprintf(path, sizeof path, "%s/%s", rw.folder, name);
	ck_assert_int_eq(unlink(path), 0);
	settle(50);
	ck_assert_int_eq(done_calls, 1);
	snprintf(path, sizeof path, "%s/%s", snapshot_path, name);
	if (done_error == 0) {
		ck_assert_int_eq(access(path, F_OK), 0);
		ck_assert_msg(store_check(snapshot_path, say, NULL) == 0, "%s", said);
	} else {
		ck_assert_int_eq(done_error, -ENOENT);
		ck_assert_ptr_nonnull(strstr(done_text, name));
		ck_assert_int_ne(access(path, F_OK), 0);
	}
	ck_assert(_i > 0 || done_error != 0);
	ck_assert(_i < 29 || done_error == 0);
	store_close();
	drop_items();
	clean_up();
}
END_TEST

START_TEST(test_refusals)
{
	char path[120];

	fill();
	snprintf(path, sizeof path, "%s/not/there", rw.folder);
	ck_assert_int_eq(store_snapshot(rw.store, path, on_done, NULL), 0);
	ck_assert_int_eq(store_snapshot(rw.store, snapshot_path, on_done, NULL), -EBUSY);
	settle(50);
	ck_assert_int_eq(done_calls, 1);
	ck_assert_int_eq(done_error, -EINVAL);
	ck_assert_ptr_nonnull(strstr(done_text, "cannot make"));
	ck_assert_int_eq(store_snapshot(rw.store, rw.folder, on_done, NULL), 0);
	settle(50);
	ck_assert_int_eq(done_calls, 2);
	ck_assert_int_eq(done_error, -EEXIST);
	ck_assert_uint_eq(rw.store->snapshot_holds, 0);
	ck_assert_ptr_null(rw.store->snapshot);
	store_close();
	drop_items();
	clean_up();
}
END_TEST

START_TEST(test_cancel)
{
	bool was_whole = false;
	unsigned steps;

	for (steps = 0; !was_whole; steps++) {
		fill();
		begin_snapshot(snapshot_path);
		for (unsigned i = 0; i < steps; i++) {
			(void)workers_step(rw.workers, 0);
			workers_take(rw.workers);
		}
		store_snapshot_cancel(rw.store);
		ck_assert_uint_eq(rw.store->snapshot_holds, 0);
		settle(10);
		ck_assert_int_eq(done_calls, 0);
		store_close();
		/* a last step that was under way may have ended it */
		was_whole = store_restore(snapshot_path, restored_path, &asking) == 0;
		ck_assert(was_whole || strstr(said, "manifest") != NULL ||
		          strstr(said, "cannot open") != NULL);
		drop_items();
		clean_up();
	}
	ck_assert_uint_gt(steps, 6);
}
END_TEST

/* Names, sizes and bytes of all files of a folder. */
static uint64_t folder_sum;

static int
sum_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	uint8_t buffer[4096];
	ssize_t n;
	int fd;

	(void)ftw;
	for (const char *p = path; *p != '\0'; p++)
		folder_sum = folder_sum * 31 + (uint8_t)*p;
	folder_sum = folder_sum * 31 + (uint64_t)st->st_mtim.tv_nsec + (uint64_t)st->st_nlink;
	if (type != FTW_F)
		return 0;
	fd = open(path, O_RDONLY);
	while ((n = read(fd, buffer, sizeof buffer)) > 0)
		for (ssize_t i = 0; i < n; i++)
			folder_sum = folder_sum * 31 + buffer[i];
	close(fd);
	return 0;
}

static uint64_t
sum_of(const char *path)
{
	folder_sum = 0;
	ck_assert_int_eq(nftw(path, sum_one, 8, FTW_PHYS), 0);
	return folder_sum;
}

static void
flip(const char *folder, const char *name, off_t at)
{
	char *path = xasprintf("%s/%s", folder, name);
	int fd = open(path, O_RDWR);
	uint8_t byte;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
	byte ^= 16;
	ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	close(fd);
	free(path);
}

/* A file of the journal; in the first one there is something that counts. */
static const char *
journal_name(const char *folder)
{
	static char name[JOURNAL_NAME];
	char *path;
	bool there;

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "journal/%08u", i);
		path = xasprintf("%s/%s", folder, name);
		there = access(path, F_OK) == 0;
		free(path);
		if (there)
			return name;
	}
	ck_abort_msg("no journal in %s", folder);
}

START_TEST(test_check_changes_nothing_and_finds_damage)
{
	char segment[SEGMENT_NAME], journal[JOURNAL_NAME];
	uint64_t sum;
	off_t at;

	fill();
	segment_name(lane_at(7), lane_at(7)->segment[0]->first, segment);
	ck_assert(journal_file_name(rw.store->journal, journal_oldest(rw.store->journal), journal));
	store_close();
	drop_items();
	sum = sum_of(rw.folder);
	ck_assert_msg(store_check(rw.folder, say, NULL) == 0, "%s", said);
	ck_assert_uint_eq(sum_of(rw.folder), sum);

	/* in a body that counts */
	at = FILE_HEADER + 60 * 3100;
	flip(rw.folder, segment, at);
	sum = sum_of(rw.folder);
	ck_assert_int_eq(store_check(rw.folder, say, NULL), 1);
	ck_assert_ptr_nonnull(strstr(said, segment));
	ck_assert_ptr_nonnull(strstr(said, "1 of"));
	ck_assert_uint_eq(sum_of(rw.folder), sum);
	flip(rw.folder, segment, at);
	ck_assert_int_eq(store_check(rw.folder, say, NULL), 0);

	flip(rw.folder, journal, FILE_HEADER + 5000);
	ck_assert_int_eq(store_check(rw.folder, say, NULL), 1);
	flip(rw.folder, journal, FILE_HEADER + 5000);
	flip(rw.folder, "store", 20);
	ck_assert_int_eq(store_check(rw.folder, say, NULL), -EBADMSG);
	ck_assert_int_eq(store_check("/nowhere", say, NULL), -ENOENT);
	clean_up();
}
END_TEST

/* A chain that was emptied: its file is gone, and that is no damage, neither here nor in a snapshot. */
START_TEST(test_check_of_an_emptied_segment)
{
	char segment[SEGMENT_NAME], *path;
	struct lane *l;
	uint64_t last;

	fill();
	l = lane_at(7);
	ck_assert_uint_eq(l->segments, 1);
	segment_name(l, l->segment[0]->first, segment);
	last = l->segment[0]->last;
	for (uint64_t i = 0; i < last; i++) {
		if (big[i] != NULL)
			ack(l, i + 1, big[i]);
		big[i] = NULL;
	}
	settle(100);
	path = xasprintf("%s/%s", rw.folder, segment);
	ck_assert_int_eq(access(path, F_OK), -1);
	free(path);
	begin_snapshot(snapshot_path);
	settle(100);
	ck_assert_int_eq(done_error, 0);
	store_close();
	drop_items();
	ck_assert_msg(store_check(rw.folder, say, NULL) == 0, "%s", said);
	copied = 0;
	ck_assert_msg(store_restore(snapshot_path, restored_path, &asking) == 0, "%s", said);
	/* all but the file `store`, which comes last */
	ck_assert_uint_gt(copied, 0);
	ck_assert_uint_le(to_copy - copied, STORE_FILE_SIZE);
	ck_assert_uint_eq(store_open(restored_path).damaged, 0);
	clean_up();
	ck_assert_uint_eq(rw.items, 0);
}
END_TEST

START_TEST(test_restore_refuses)
{
	char *path;

	fill();
	begin_snapshot(snapshot_path);
	settle(100);
	ck_assert_int_eq(done_error, 0);
	store_close();
	drop_items();
	/* not into something */
	ck_assert_int_eq(store_restore(snapshot_path, rw.folder, &asking), -ENOTEMPTY);
	/* a damaged manifest, a missing file, a damaged one */
	flip(snapshot_path, MANIFEST_NAME, 30);
	ck_assert_int_eq(store_restore(snapshot_path, restored_path, &asking), -EBADMSG);
	flip(snapshot_path, MANIFEST_NAME, 30);
	test_folder_remove(restored_path);
	path = xasprintf("%s/store", snapshot_path);
	ck_assert_int_eq(rename(path, restored_path), 0);
	ck_assert_int_lt(store_restore(snapshot_path, restored_path, &asking), 0);
	ck_assert_int_eq(rename(restored_path, path), 0);
	free(path);
	flip(snapshot_path, journal_name(snapshot_path), FILE_HEADER + 5000);
	ck_assert_int_eq(store_restore(snapshot_path, restored_path, &asking), 1);
	clean_up();
}
END_TEST

static unsigned listed;

static int
on_file(void *arg, const char *name, uint64_t size)
{
	(void)arg;
	ck_assert_uint_eq(size, strlen(name) * 1000);
	listed++;
	return 0;
}

START_TEST(test_manifest)
{
	static const char *const bad[] = { "../x", "segments/../../etc/passwd", "segments/.hidden",
		"/etc/passwd", "journal/", "journal", "lock", "segments/a/b", "" };
	struct manifest m;

	manifest_init(&m);
	manifest_add(&m, "store", 5000);
	manifest_add(&m, "journal/00000001", 16000);
	manifest_add(&m, "segments/00-0-1.seg", 19000);
	manifest_seal(&m);
	ck_assert_int_eq(manifest_each(m.p, m.n, on_file, NULL), 0);
	ck_assert_uint_eq(listed, 3);
	for (size_t n = 0; n < m.n; n++)
		ck_assert_int_eq(manifest_each(m.p, n, on_file, NULL), -EBADMSG);
	for (size_t n = 0; n < m.n; n++) {
		m.p[n] ^= 1;
		ck_assert_int_eq(manifest_each(m.p, m.n, on_file, NULL), -EBADMSG);
		m.p[n] ^= 1;
	}
	manifest_fini(&m);
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		manifest_init(&m);
		manifest_add(&m, bad[i], 1);
		manifest_seal(&m);
		ck_assert_int_eq(manifest_each(m.p, m.n, on_file, NULL), -EBADMSG);
		manifest_fini(&m);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("snapshot");
	TCase *t = tcase_create("snapshot");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_snapshot_is_the_state_at_its_beginning);
	tcase_add_test(t, test_snapshot_to_another_file_system);
	tcase_add_loop_test(t, test_a_segment_is_taken_away, 0, 30);
	tcase_add_test(t, test_refusals);
	tcase_add_test(t, test_cancel);
	tcase_add_test(t, test_check_changes_nothing_and_finds_damage);
	tcase_add_test(t, test_check_of_an_emptied_segment);
	tcase_add_test(t, test_restore_refuses);
	tcase_add_test(t, test_manifest);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
