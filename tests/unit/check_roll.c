/* SPDX-License-Identifier: Apache-2.0
 * Journal files are given up: nothing that lives is lost by it, little is moved, and damage does not stop it. */
#include <check.h>
#include <fcntl.h>

#include "tests/unit/roll_world.h"

enum { FILE_SIZE = 256 << 10, QUIET = 2000, EACH = 5 };

static uint64_t
published(void)
{
	struct store_stats st;

	store_stats(rw.store, &st);
	return st.journal_bytes - st.moved_bytes;
}

static uint64_t
files(void)
{
	return (uint64_t)journal_current(rw.store->journal) - journal_oldest(rw.store->journal) + 1;
}

START_TEST(test_files_that_nothing_holds_go)
{
	struct lane *loud;

	roll_world_init(FILE_SIZE, 64 << 20);
	loud = lane_at(1);
	flow(loud, 8 << 20, 1000);
	settle(100);
	ck_assert_uint_le(files(), 3);
	ck_assert_uint_gt(rw.store->stats.rolled, 20);
	/* the queue and the lane's mark, again and again */
	ck_assert_uint_lt(rw.store->stats.moved_bytes, 16 << 10);
	ck_assert_uint_eq(rw.items, 0);
	roll_world_fini();
}
END_TEST

static struct item *quiet[QUIET][EACH];

static void
fill_quiet(uint32_t size)
{
	for (uint64_t q = 0; q < QUIET; q++) {
		struct lane *l = lane_at(100 + q);

		for (unsigned i = 0; i < EACH; i++)
			quiet[q][i] = publish(l, q * 100 + i, size);
		if (q % 16 == 0)
			(void)turn();
	}
}

static void
drop_quiet(void)
{
	for (unsigned q = 0; q < QUIET; q++)
		for (unsigned i = 0; i < EACH; i++)
			if (quiet[q][i] != NULL)
				item_unref(quiet[q][i]);
}

static uint64_t expected;
static const bool *gone; /* [EACH] */

static void
on_entry(void *arg, uint64_t seq, void *item, const struct op_state *state, const struct op_msg *m)
{
	uint64_t q = *(const uint64_t *)arg;
	struct item *i = item;

	(void)state;
	(void)m;
	while (gone != NULL && expected < EACH && gone[expected])
		expected++;
	REQUIRE(seq == expected + 1, "queue %lu: seq %lu, not %lu", q, seq, expected + 1);
	REQUIRE(i->number == q * 100 + expected, "queue %lu: message %lu", q, i->number);
	expected++;
	rw.taken[rw.taken_n++] = i;
}

/* After a restart they are all there, in memory or in chains. */
static void
check_quiet(const bool *acked)
{
	uint64_t alive = 0;

	gone = acked;
	for (unsigned i = 0; i < EACH; i++)
		alive += acked == NULL || !acked[i];
	for (uint64_t q = 0; q < QUIET; q++) {
		struct lane *l = lane_at(100 + q);

		REQUIRE(l->live + l->unread == alive, "queue %lu: %lu messages", q,
		    l->live + l->unread);
		REQUIRE(l->next_seq == EACH + 1, "queue %lu: next seq %lu", q, l->next_seq);
		expected = 0;
		if (l->unread == 0)
			lane_each(l, on_entry, &q);
	}
}

START_TEST(test_quiet_queues_beside_a_loud_one)
{
	struct store_report r;
	struct lane *loud;
	uint64_t before;

	roll_world_init(FILE_SIZE, 64 << 20);
	fill_quiet(200);
	loud = lane_at(1);
	before = published();
	flow(loud, 40 << 20, 2000);
	settle(1000);
	/* what lives is about 2000 * 5 * 300 bytes: 3 MB, 12 files */
	ck_assert_uint_gt(rw.store->stats.rolled, 100);
	ck_assert_uint_le(files(), 40);
	ck_assert_uint_gt(rw.store->stats.moved_bytes, 3 << 20);
	ck_assert_uint_le(rw.store->stats.moved_bytes, published() - before + 40 * FILE_SIZE);
	ck_assert_uint_eq(rw.store->stats.segments, 0);
	ck_assert_uint_eq(rw.store->stats.damaged, 0);
	store_close();
	drop_quiet();
	r = store_open(rw.folder);
	ck_assert_uint_eq(r.damaged, 0);
	check_quiet(NULL);
	roll_world_fini();
	ck_assert_uint_eq(rw.items, 0);
}
END_TEST

START_TEST(test_states_marks_and_acks_survive)
{
	static const bool acked[EACH] = { true, false, true, false, false };
	const struct op_state changed = { .redelivered = true, .deliveries = 7, .acquired = 3 };
	struct lane *l;

	roll_world_init(FILE_SIZE, 64 << 20);
	fill_quiet(100);
	for (uint64_t q = 0; q < QUIET; q++) {
		l = lane_at(100 + q);
		lane_mark_delivered(l, 4);
		for (unsigned i = 0; i < EACH; i += 2)
			if (acked[i]) {
				ack(l, i + 1, quiet[q][i]);
				quiet[q][i] = NULL;
			}
		lane_set_state(l, 4, &changed);
		if (q % 16 == 0)
			(void)turn();
	}
	flow(lane_at(1), 16 << 20, 2000);
	settle(1000);
	ck_assert_uint_gt(lsn_file(lane_find(rw.store, (struct op_lane){ 100, 0 })->evidence), 20);
	store_close();
	drop_quiet();
	(void)store_open(rw.folder);
	for (uint64_t q = 0; q < QUIET; q++) {
		l = lane_at(100 + q);
		REQUIRE(lane_delivered(l) == 4, "delivered %lu", lane_delivered(l));
		REQUIRE(lane_state(l, 4)->deliveries == 7 && lane_state(l, 4)->acquired == 3,
		    "state of queue %lu", q);
		REQUIRE(lane_state(l, 5)->deliveries == 0, "state of queue %lu", q);
	}
	check_quiet(acked);
	roll_world_fini();
}
END_TEST

START_TEST(test_next_seq_of_empty_lanes_survives)
{
	roll_world_init(FILE_SIZE, 64 << 20);
	fill_quiet(100);
	for (uint64_t q = 0; q < QUIET; q++)
		for (unsigned i = 0; i < EACH; i++) {
			ack(lane_at(100 + q), i + 1, quiet[q][i]);
			quiet[q][i] = NULL;
		}
	flow(lane_at(1), 16 << 20, 2000);
	settle(1000);
	ck_assert_uint_eq(rw.items, 0);
	(void)store_reopen();
	for (uint64_t q = 0; q < QUIET; q++)
		REQUIRE(lane_at(100 + q)->next_seq == EACH + 1, "queue %lu", q);
	roll_world_fini();
}
END_TEST

/* A record for 3,000 queues: moved as one for each 512, and the body's bytes are not moved 3,000 times. */
START_TEST(test_fan_out_is_moved_together)
{
	enum { N = 3000 };
	static struct lane_place place[N];
	struct item *i;
	struct lane *l;
	uint32_t file;

	roll_world_init(FILE_SIZE, 64 << 20);
	for (uint64_t q = 0; q < N; q++) {
		place[q] = (struct lane_place){ lane_at(100 + q), 1 };
		if (q % 64 == 0)
			(void)turn();
	}
	i = item_new(77, 30000);
	(void)store_publish(rw.store, place, N, i);
	file = lsn_file(lane_slot(place[0].lane, 1)->lsn);
	for (uint64_t q = 0; q < N; q += 10)
		lane_set_state(
		    place[q].lane, 1, &(struct op_state){ .deliveries = (uint32_t)q + 1 });
	for (unsigned n = 0; n < 50 && journal_oldest(rw.store->journal) <= file; n++)
		flow(lane_at(1), 100 << 10, 2000);
	ck_assert_uint_gt(journal_oldest(rw.store->journal), file);
	/* six copies of the body, each with 512 targets; PUT and MARK of each queue */
	ck_assert_uint_lt(rw.store->stats.moved_bytes, 6 * 30100 + N * (20 + 2 * 70));
	ck_assert_uint_eq(rw.store->stats.damaged, 0);
	store_close();
	item_unref(i);
	(void)store_open(rw.folder);
	for (uint64_t q = 0; q < N; q++) {
		l = lane_at(100 + q);
		REQUIRE(l->live == 1, "queue %lu: %lu live, %lu unread", q, l->live, l->unread);
		REQUIRE(lsn_file(lane_slot(l, 1)->lsn) > file, "queue %lu stands in %u", q,
		    lsn_file(lane_slot(l, 1)->lsn));
		REQUIRE(lane_state(l, 1)->deliveries == (q % 10 == 0 ? q + 1 : 0), "state %lu", q);
	}
	roll_world_fini();
}
END_TEST

START_TEST(test_big_lanes_are_spilled)
{
	enum { N = 350 };
	struct item *item[N];
	struct lane *big;

	roll_world_init(FILE_SIZE, 64 << 20);
	big = lane_at(7);
	for (unsigned i = 0; i < N; i++) {
		item[i] = publish(big, i, 1000);
		if (i % 16 == 0)
			(void)turn();
	}
	flow(lane_at(1), 4 << 20, 2000);
	settle(100);
	ck_assert_uint_eq(big->chain_end, N);
	ck_assert_uint_eq(big->live, 0);
	ck_assert_uint_le(files(), 4);
	ck_assert_uint_eq(big->segments, 1);
	store_close();
	for (unsigned i = 0; i < N; i++)
		item_unref(item[i]);
	(void)store_open(rw.folder);
	ck_assert_uint_eq(lane_at(7)->unread, N);
	roll_world_fini();
}
END_TEST

static uint64_t objects;

static void
on_object(void *arg, uint64_t id, struct span state)
{
	(void)arg;
	REQUIRE(id == 10 + objects && state.n == 100 + objects, "object %lu", id);
	for (size_t i = 0; i < state.n; i++)
		REQUIRE(state.p[i] == (uint8_t)id, "state of object %lu", id);
	objects++;
}

START_TEST(test_objects_survive)
{
	uint8_t state[400];

	roll_world_init(FILE_SIZE, 64 << 20);
	for (uint64_t id = 10; id < 210; id++) {
		memset(state, (int)id, sizeof state);
		store_put(rw.store, OBJECT_EXCHANGE, id, span_of(state, 1));
		store_put(rw.store, OBJECT_EXCHANGE, id, span_of(state, 90 + id));
		store_put(rw.store, OBJECT_VHOST, id, span_of(state, 1));
		store_gone(rw.store, OBJECT_VHOST, id);
	}
	flow(lane_at(1), 8 << 20, 2000);
	settle(100);
	ck_assert_uint_gt(lsn_file(object_lsn(rw.store, OBJECT_EXCHANGE, 10)), 20);
	(void)store_reopen();
	objects = 0;
	store_each_object(rw.store, OBJECT_EXCHANGE, on_object, NULL);
	ck_assert_uint_eq(objects, 200);
	ck_assert(!object_exists(rw.store, OBJECT_VHOST, 10));
	roll_world_fini();
}
END_TEST

/* Every 7 KiB a bit of the oldest file is flipped. */
static void
damage_oldest(void)
{
	struct journal_file_info i;
	char name[JOURNAL_NAME], *path;
	uint8_t byte;
	int fd;

	ck_assert(journal_file(rw.store->journal, journal_oldest(rw.store->journal), &i));
	ck_assert(journal_file_name(rw.store->journal, i.number, name));
	path = xasprintf("%s/%s", rw.folder, name);
	fd = open(path, O_RDWR);
	ck_assert_int_ge(fd, 0);
	for (off_t at = 7 << 10; at < (off_t)i.size; at += 7 << 10) {
		ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
		byte ^= 4;
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
	free(path);
}

START_TEST(test_damage_loses_no_message_that_is_in_memory)
{
	struct item *big[100];
	struct store_report r;
	uint32_t first;

	roll_world_init(FILE_SIZE, 64 << 20);
	for (unsigned i = 0; i < 100; i++)
		big[i] = publish(lane_at(7), i, 1000);
	settle(10);
	fill_quiet(200);
	first = journal_oldest(rw.store->journal);
	ck_assert_uint_gt(journal_current(rw.store->journal), first);
	damage_oldest();
	for (unsigned i = 0; i < 20; i++) {
		flow(lane_at(1), 1 << 20, 2000);
		rw.now_ms += 1000;
		settle(1000);
	}
	ck_assert_uint_gt(journal_oldest(rw.store->journal), first + 10);
	ck_assert_uint_gt(rw.store->stats.damaged, 0);
	store_close();
	drop_quiet();
	for (unsigned i = 0; i < 100; i++)
		item_unref(big[i]);
	r = store_open(rw.folder);
	ck_assert_uint_eq(r.damaged, 0);
	ck_assert_uint_eq(lane_at(7)->live + lane_at(7)->unread, 100);
	check_quiet(NULL);
	roll_world_fini();
}
END_TEST

/* The journal may have 16 files, what lives would need 60: lanes of 8 KiB are spilled, not more than 50 a second. */
START_TEST(test_full_journal_spills_small_lanes_slowly)
{
	uint64_t segments = 0, most = 0;
	struct store_stats st;

	roll_world_init(FILE_SIZE, 16 * FILE_SIZE);
	rw.cfg.journal_max = 16 * FILE_SIZE;
	for (uint64_t q = 0; q < QUIET; q++) {
		struct lane *l = lane_at(100 + q);

		for (unsigned i = 0; i < EACH; i++)
			quiet[q][i] = publish(l, q * 100 + i, 1600);
		(void)turn();
		while (store_hold(rw.store) == STORE_JOURNAL_FULL) {
			for (unsigned i = 0; i < 20; i++)
				settle(100);
			store_stats(rw.store, &st);
			if (st.segments - segments > most)
				most = st.segments - segments;
			segments = st.segments;
			rw.now_ms += 1000;
			REQUIRE(rw.now_ms < 10 * 1000 * 1000, "it stays full at queue %lu", q);
		}
		rw.now_ms++;
	}
	ck_assert_uint_le(most, 50 + 50);
	ck_assert_uint_gt(segments, 800);
	store_close();
	drop_quiet();
	(void)store_open(rw.folder);
	check_quiet(NULL);
	roll_world_fini();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("roll");
	TCase *t = tcase_create("roll");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_files_that_nothing_holds_go);
	tcase_add_test(t, test_quiet_queues_beside_a_loud_one);
	tcase_add_test(t, test_states_marks_and_acks_survive);
	tcase_add_test(t, test_next_seq_of_empty_lanes_survives);
	tcase_add_test(t, test_fan_out_is_moved_together);
	tcase_add_test(t, test_big_lanes_are_spilled);
	tcase_add_test(t, test_objects_survive);
	tcase_add_test(t, test_damage_loses_no_message_that_is_in_memory);
	tcase_add_test(t, test_full_journal_spills_small_lanes_slowly);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
