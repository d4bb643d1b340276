/* SPDX-License-Identifier: Apache-2.0
 * GET /api/health/checks/chain over real sockets, with a store whose disk works when the test says so. */
#include <check.h>
#include <jansson.h>

#include "base/bound.h"
#include "broker/persist.h"
#include "broker/queue.h"
#include "broker/vhost.h"
#include "store/journal.h"
#include "store/store_priv.h"
#include "tests/unit/mgmt_world.h"
#include "tests/unit/test_folder.h"

#define CHECK "GET /api/health/checks/chain"
#define ONE_ANSWER " HTTP/1.0\r\n" GUEST "\r\n"

static struct disk *disk;
static struct workers *workers;
static char folder[64];
static bool disk_works, core_works;

static void
setup_store(void)
{
	static const struct store_config store_cfg = { .journal_file_size = 1 << 20,
		.journal_max = 64 << 20,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = 1000,
		.lane_bytes = 1 << 20,
		.garbage_max = 1 << 20 };
	struct store_report report;
	char err[STORE_ERROR];

	setup();
	test_folder_make(folder, sizeof folder);
	disk = disk_real_new(folder);
	workers = workers_new(0);
	b->store = store_new(&store_cfg, disk, workers, &persist_store_ops, b);
	ck_assert_int_eq(store_recover(b->store, &report, err), 0);
	store_linked(b->store);
	disk_works = core_works = true;
}

static void
teardown_store(void)
{
	struct store *s = b->store;

	mgmt_stop(&m);
	persist_unlink(b);
	store_free(&s);
	workers_free(&workers);
	disk_free(&disk);
	test_folder_remove(folder);
	teardown();
}

/* A turn of the node. */
static void
node_turn(void)
{
	turn();
	if (core_works)
		(void)broker_run(b);
	broker_reap(b);
	(void)store_turn(b->store, b->next_id, l->now_ms);
	while (disk_works && journal_step(b->store->journal))
		continue;
	(void)workers_step(workers, 0);
	workers_take(workers);
	(void)store_events(b->store);
}

static int
begin(const char *text)
{
	int fd = dial();

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

/* The answer's body. */
static const char *
end(int fd, int status)
{
	uint64_t until = clock_now_ms() + 30000;
	size_t n = 0;
	ssize_t got = -1;

	while (got != 0 && clock_now_ms() < until) {
		node_turn();
		got = read(fd, answer + n, sizeof answer - 1 - n);
		n += got > 0 ? (size_t)got : 0;
	}
	answer[n] = '\0';
	close(fd);
	ck_assert_msg(status_of(answer) == status, "%s", answer);
	return body_of(answer);
}

static void
nothing_is_left(void)
{
	for (unsigned i = 0; i < 5; i++)
		node_turn();
	ck_assert(TAILQ_EMPTY(&vhost_own(b)->queues));
	ck_assert_uint_eq(b->stats.queues + b->stats.channels + b->stats.consumers, 0);
	ck_assert_uint_eq(m->chains.count, 0);
}

START_TEST(well)
{
	json_t *o = json_loads(end(begin(CHECK ONE_ANSWER), 200), 0, NULL);

	ck_assert_str_eq(json_string_value(json_object_get(o, "status")), "ok");
	ck_assert_int_gt(json_integer_value(json_object_get(o, "journal_us")), 0);
	ck_assert_int_gt(json_integer_value(json_object_get(o, "consumer_us")), 0);
	json_decref(o);
	nothing_is_left();
	ck_assert_uint_eq(b->stats.queues_created, 1);
	ck_assert_uint_eq(b->stats.ack, 1);
}
END_TEST

static const struct {
	bool disk, core;
	const char *body;
} broken[] = {
	{ false, true,
	    "{\"status\":\"failed\",\"step\":\"journal\",\"reason\":\"the message was not safe on "
	    "disk in time\"}" },
	{ true, false,
	    "{\"status\":\"failed\",\"step\":\"consumer\",\"reason\":\"the message was not "
	    "delivered in time\"}" },
};

START_TEST(a_step_does_not_come)
{
	disk_works = broken[_i].disk;
	core_works = broken[_i].core;
	ck_assert_str_eq(end(begin(CHECK "?within_ms=30" ONE_ANSWER), 503), broken[_i].body);
	disk_works = core_works = true;
	nothing_is_left();
	(void)end(begin(CHECK ONE_ANSWER), 200);
	nothing_is_left();
}
END_TEST

START_TEST(so_many_at_a_time)
{
	enum { MOST = 16 };
	int fd[MOST];

	disk_works = false;
	for (unsigned i = 0; i < MOST; i++)
		fd[i] = begin(CHECK ONE_ANSWER);
	for (unsigned i = 0; i < 2000 && m->chains.count < MOST; i++)
		node_turn();
	ck_assert_uint_eq(m->chains.count, MOST);
	ck_assert_ptr_nonnull(strstr(end(begin(CHECK ONE_ANSWER), 503), "\"step\":\"publisher\""));
	ck_assert_uint_eq(bound_count(BOUND_chains), 1);
	disk_works = true;
	for (unsigned i = 0; i < MOST; i++)
		(void)end(fd[i], 200);
	nothing_is_left();
}
END_TEST

/* Publishers are held back, or the node goes: that is no message that was lost, but it is not well. */
START_TEST(held_back)
{
	b->disk_low = true;
	ck_assert_ptr_nonnull(strstr(end(begin(CHECK ONE_ANSWER), 503), "low on disk space"));
	b->disk_low = false;
	b->closing = true;
	ck_assert_ptr_nonnull(strstr(end(begin(CHECK ONE_ANSWER), 503), "the node is stopping"));
	b->closing = false;
	(void)end(begin(CHECK "?within_ms=60001" ONE_ANSWER), 400);
	(void)end(begin(CHECK "?within_ms=x" ONE_ANSWER), 400);
	(void)end(begin(CHECK " HTTP/1.0\r\n\r\n"), 401);
	ck_assert_ptr_null(b->own);
}
END_TEST

START_TEST(the_client_goes)
{
	int fd;

	disk_works = false;
	fd = begin(CHECK ONE_ANSWER);
	for (unsigned i = 0; i < 2000 && m->chains.count == 0; i++)
		node_turn();
	close(fd);
	for (unsigned i = 0; i < 5; i++)
		node_turn();
	disk_works = true;
	for (unsigned i = 0; i < 2000 && m->chains.count > 0; i++)
		node_turn();
	nothing_is_left();
}
END_TEST

START_TEST(the_node_stops)
{
	int fd;

	disk_works = false;
	fd = begin(CHECK ONE_ANSWER);
	for (unsigned i = 0; i < 2000 && m->chains.count == 0; i++)
		node_turn();
	ck_assert_uint_eq(m->chains.count, 1);
	mgmt_stop(&m);
	ck_assert(TAILQ_EMPTY(&vhost_own(b)->queues));
	close(fd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("health");
	TCase *t = tcase_create("chain");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup_store, teardown_store);
	tcase_add_test(t, well);
	tcase_add_loop_test(t, a_step_does_not_come, 0, (int)COUNT_OF(broken));
	tcase_add_test(t, so_many_at_a_time);
	tcase_add_test(t, held_back);
	tcase_add_test(t, the_client_goes);
	tcase_add_test(t, the_node_stops);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
