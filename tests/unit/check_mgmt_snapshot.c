/* SPDX-License-Identifier: Apache-2.0
 * POST /api/hermes/snapshot over real sockets: it is answered when the snapshot is done, and the server goes on
 * meanwhile. */
#include "mgmt/mgmt.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/persist.h"
#include "broker/user.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "net/loop.h"
#include "store/journal.h"
#include "store/store_priv.h"
#include "tests/unit/dial.h"
#include "tests/unit/test_folder.h"
#include "tests/unit/user_world.h"

#define GUEST "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n" /* guest:guest, administrator */
#define PLAIN "Authorization: Basic cGxhaW46cGxhaW4=\r\n" /* plain:plain, management */
#define JSON "Content-Type: application/json\r\n"

static struct config cfg;
static struct loop *l;
static struct broker *b;
static struct mgmt *m;
static struct disk *disk;
static struct workers *workers;
static char folder[64], snapshot_path[80], body[120];

static void
setup(void)
{
	static const struct store_config store_cfg = { .journal_file_size = 1 << 20,
		.journal_max = 64 << 20,
		.sync = { .policy = SYNC_POLICY_ALWAYS },
		.lane_entries = 1000,
		.lane_bytes = 1 << 20,
		.garbage_max = 1 << 20 };
	struct mgmt_node_info info = { .version = "0.1.0" };
	const char *error = NULL;
	struct store_report report;
	char err[STORE_ERROR];

	test_folder_make(folder, sizeof folder);
	snprintf(snapshot_path, sizeof snapshot_path, "%s-snapshot", folder);
	snprintf(body, sizeof body, "{\"path\":\"%s\"}", snapshot_path);
	config_init(&cfg);
	cfg.management_port = 0;
	l = loop_new();
	b = broker_new(&cfg, l->wheel, l->now_ms);
	(void)user_add(b, "plain", "plain", "management", false);
	disk = disk_real_new(folder);
	workers = workers_new(0);
	b->store = store_new(&store_cfg, disk, workers, &persist_store_ops, b);
	ck_assert_int_eq(store_recover(b->store, &report, err), 0);
	store_linked(b->store);
	m = mgmt_start(l, b, &cfg, &info, &error);
	ck_assert_msg(m != NULL, "%s", error);
}

static void
teardown(void)
{
	mgmt_stop(&m);
	store_free(&b->store);
	workers_free(&workers);
	broker_free(&b);
	loop_free(&l);
	config_fini(&cfg);
	disk_free(&disk);
	test_folder_remove(folder);
	test_folder_remove(snapshot_path);
}

static void
turn(void)
{
	loop_wait(l, true);
	b->now_ms = l->now_ms;
	loop_read(l);
	loop_flush(l);
	loop_reap(l);
}

/* What the store's threads and the node's turn do. */
static void
store_moves(void)
{
	(void)store_turn(b->store, 1, l->now_ms);
	while (journal_step(b->store->journal))
		continue;
	(void)workers_step(workers, 0);
	workers_take(workers);
	(void)store_events(b->store);
}

static int
post(const char *headers, const char *text)
{
	char request[512];
	int fd = dial_port(mgmt_port(m), O_NONBLOCK), n;

	n = snprintf(request, sizeof request,
	    "POST /api/hermes/snapshot HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s",
	    headers, strlen(text), text);
	ck_assert_int_eq(write(fd, request, (size_t)n), n);
	for (unsigned i = 0; i < 20; i++)
		turn();
	return fd;
}

static char answer[32 << 10];

/* Status of what has come by now; 0: nothing. */
static int
status(int fd)
{
	int code = 0;
	ssize_t n;

	for (unsigned i = 0; i < 20; i++)
		turn();
	n = read(fd, answer, sizeof answer - 1);
	answer[n > 0 ? n : 0] = '\0';
	(void)sscanf(answer, "HTTP/1.%*d %d", &code);
	return code;
}

static const struct {
	const char *headers, *body;
	int status;
	const char *has;
} refused[] = {
	{ "", "{\"path\":\"/tmp/x\"}", 401, "www-authenticate: Basic" },
	{ PLAIN JSON, "{\"path\":\"/tmp/x\"}", 401, "Not administrator user" },
	{ GUEST, "{\"path\":\"/tmp/x\"}", 415, "application/json" },
	{ GUEST "Content-Type: text/plain\r\n", "{\"path\":\"/tmp/x\"}", 415, "application/json" },
	{ GUEST JSON, "", 400, "the body is" },
	{ GUEST JSON, "{", 400, "not_json" },
	{ GUEST JSON, "[]", 400, "not_json" },
	{ GUEST JSON, "{\"path\":7}", 400, "the body is" },
	{ GUEST JSON, "{\"path\":\"\"}", 400, "not absolute" },
	{ GUEST JSON, "{\"path\":\"relative\"}", 400, "not absolute" },
	{ GUEST JSON, "{\"path\":\"/tmp/x\\u0000y\"}", 400, "the body is" },
};

START_TEST(requests_are_refused)
{
	int fd = post(refused[_i].headers, refused[_i].body);

	ck_assert_int_eq(status(fd), refused[_i].status);
	ck_assert_msg(strstr(answer, refused[_i].has) != NULL, "%s", answer);
	ck_assert_ptr_null(b->store->snapshot);
	close(fd);
}
END_TEST

START_TEST(answered_when_it_is_done)
{
	int fd = post(GUEST JSON, body), other;
	unsigned steps = 0;

	ck_assert_int_eq(status(fd), 0);
	/* no limit of time, and somebody else gets his answer */
	l->now_ms += 2 * HTTP_REQUEST_MS;
	ck_assert_uint_eq(http_stats(m->http)->timed_out, 0);
	other = post(GUEST JSON, body);
	ck_assert_int_eq(status(other), 409);
	close(other);
	for (; b->store->snapshot != NULL && steps < 100; steps++)
		store_moves();
	ck_assert_uint_gt(steps, 3);
	ck_assert_int_eq(status(fd), 200);
	ck_assert_ptr_nonnull(strstr(answer, "{\"status\":\"ok\"}"));
	/* and on the same connection: it is there now */
	ck_assert_int_eq(write(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 35), 35);
	ck_assert_int_eq(status(fd), 200);
	close(fd);
	fd = post(GUEST JSON, body);
	while (b->store->snapshot != NULL)
		store_moves();
	ck_assert_int_eq(status(fd), 400);
	ck_assert_ptr_nonnull(strstr(answer, "is there already"));
	close(fd);
}
END_TEST

static const struct {
	const char *path, *has;
} unfit[] = {
	{ "/nowhere/at/all",
	    "cannot make /nowhere/at/all: the folder that it is to be in is not there" },
	{ "/dev/null", "cannot make /dev/null: Not a directory" },
	{ "/dev/null/below", "cannot make /dev/null/below: Not a directory" },
	{ "/proc/folder", "the folder that it is to be in is not there" },
};

START_TEST(places_that_cannot_be)
{
	char text[80];
	int fd;

	snprintf(text, sizeof text, "{\"path\":\"%s\"}", unfit[_i].path);
	fd = post(GUEST JSON, text);
	while (b->store->snapshot != NULL)
		store_moves();
	ck_assert_int_eq(status(fd), 400);
	ck_assert_msg(strstr(answer, unfit[_i].has) != NULL, "%s", answer);
	close(fd);
}
END_TEST

/* What a client sends while it waits is not read before the answer. */
START_TEST(impatient_client)
{
	int fd = post(GUEST JSON, body);

	ck_assert_int_eq(write(fd, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 35), 35);
	ck_assert_int_eq(status(fd), 0);
	while (b->store->snapshot != NULL)
		store_moves();
	ck_assert_int_eq(status(fd), 200);
	if (strstr(answer, "{\"status\":\"ok\"}HTTP/1.1 200") == NULL)
		ck_assert_int_eq(status(fd), 200);
	close(fd);
}
END_TEST

START_TEST(client_goes_away)
{
	int fd = post(GUEST JSON, body);

	close(fd);
	for (unsigned i = 0; i < 20; i++)
		turn();
	while (b->store->snapshot != NULL)
		store_moves();
	for (unsigned i = 0; i < 20; i++)
		turn();
	ck_assert_ptr_null(m->snapshot);
	ck_assert_uint_eq(http_stats(m->http)->open, 0);
	fd = post(GUEST JSON, "{\"path\":\"/nowhere/at/all\"}");
	ck_assert_ptr_nonnull(m->snapshot);
	close(fd);
}
END_TEST

START_TEST(node_stops_meanwhile)
{
	int fd = post(GUEST JSON, body);

	for (unsigned i = 0; i < 3; i++)
		store_moves();
	mgmt_stop(&m);
	ck_assert_ptr_null(b->store->snapshot);
	ck_assert_uint_eq(b->store->snapshot_holds, 0);
	close(fd);
}
END_TEST

START_TEST(overview_has_the_store)
{
	static const char request[] = "GET /api/overview HTTP/1.0\r\n" GUEST "\r\n";
	json_t *o, *store;
	int fd = dial_port(mgmt_port(m), O_NONBLOCK);

	ck_assert_int_eq(write(fd, request, sizeof request - 1), sizeof request - 1);
	ck_assert_int_eq(status(fd), 200);
	o = json_loads(strstr(answer, "\r\n\r\n"), JSON_REJECT_DUPLICATES, NULL);
	store = json_object_get(json_object_get(o, "hermes"), "store");
#define X(name, kind, help) ck_assert(json_is_integer(json_object_get(store, #name)));
	STORE_STATS(X)
#undef X
	ck_assert_int_eq(json_integer_value(json_object_get(store, "journal_files")), 1);
	json_decref(o);
	close(fd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mgmt_snapshot");
	TCase *t = tcase_create("snapshot");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, requests_are_refused, 0, (int)COUNT_OF(refused));
	tcase_add_test(t, answered_when_it_is_done);
	tcase_add_loop_test(t, places_that_cannot_be, 0, (int)COUNT_OF(unfit));
	tcase_add_test(t, impatient_client);
	tcase_add_test(t, client_goes_away);
	tcase_add_test(t, node_stops_meanwhile);
	tcase_add_test(t, overview_has_the_store);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
