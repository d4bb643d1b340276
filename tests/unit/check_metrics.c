/* SPDX-License-Identifier: Apache-2.0
 * Metrics: what their text looks like, and that long ones come in slices. */
#include "mgmt/metric_text.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/queue.h"
#include "broker/vhost.h"
#include "mgmt/metric_objects.h"
#include "tests/unit/mgmt_world.h"

/* ---- the text ---- */

static char *
text_of(struct metric_text *t)
{
	struct evbuffer *all = evbuffer_new();
	size_t n;
	char *p;

	metric_text_move(t, all);
	n = evbuffer_get_length(all);
	p = xcalloc(1, n + 1);
	(void)evbuffer_remove(all, p, n);
	evbuffer_free(all);
	metric_text_fini(t);
	return p;
}

#define BYTES(s) SPAN_LIT(s)
static const struct {
	struct span value;
	const char *is;
} labels[] = {
	{ BYTES(""), "l=\"\"" },
	{ BYTES("/"), "l=\"/\"" },
	{ BYTES("a\"b"), "l=\"a\\\"b\"" },
	{ BYTES("\\"), "l=\"\\\\\"" },
	{ BYTES("\\n"), "l=\"\\\\n\"" },
	{ BYTES("a\nb\n"), "l=\"a\\nb\\n\"" },
	{ BYTES("a\tb\r"), "l=\"a\tb\r\"" },
	{ BYTES("za\xC5\xBC\xC3\xB3\xC5\x82\xC4\x87 {a=b}, \xE2\x82\xAC"),
	    "l=\"za\xC5\xBC\xC3\xB3\xC5\x82\xC4\x87 {a=b}, \xE2\x82\xAC\"" },
	{ BYTES("\xF0\x9F\x98\x80"), "l=\"\xF0\x9F\x98\x80\"" },
	{ BYTES("a\xFFz"), "l=\"a\\\\xffz\"" },
	{ BYTES("\xE2\x82"), "l=\"\\\\xe2\\\\x82\"" },            /* cut off */
	{ BYTES("\xED\xA0\x80"), "l=\"\\\\xed\\\\xa0\\\\x80\"" }, /* a surrogate */
	{ BYTES("\xC0\x80"), "l=\"\\\\xc0\\\\x80\"" },            /* overlong */
	{ BYTES("a\0b"), "l=\"a\\\\x00b\"" },
};

START_TEST(labels_are_escaped)
{
	struct metric_text t = { 0 };
	char *p;

	metric_label(&t, "l", labels[_i].value);
	p = text_of(&t);
	ck_assert_str_eq(p, labels[_i].is);
	free(p);
}
END_TEST

static const struct {
	double value;
	const char *is;
} numbers[] = {
	{ 0, " 0\n" },
	{ 7, " 7\n" },
	{ 0.25, " 0.25\n" },
	{ -3, " -3\n" },
	{ 9007199254740992.0, " 9007199254740992\n" },
	{ 1e18, " 1000000000000000000\n" },
	{ 1e-7, " 1e-07\n" },
	{ (double)NAN, " NaN\n" },
};

START_TEST(values)
{
	struct metric_text t = { 0 };
	char *p;

	metric_value(&t, numbers[_i].value);
	p = text_of(&t);
	ck_assert_str_eq(p, numbers[_i].is);
	free(p);
}
END_TEST

START_TEST(rows)
{
	struct metric_text t = { 0 };
	char *p;

	metric_row(&t, "a_total{", 8, "l=\"v\"", 5, 0.5);
	metric_row(&t, "a_total{", 8, NULL, 0, 12);
	ck_assert_uint_eq(t.bytes, 32);
	p = text_of(&t);
	ck_assert_str_eq(p, "a_total{l=\"v\"} 0.5\na_total{} 12\n");
	free(p);
}
END_TEST

START_TEST(histograms)
{
	static const uint64_t bounds[] = { 10, 1000, 0 };
	struct metric_text t = { 0 };
	struct histogram h = { .sum = 0 };
	char *p;

	histogram_add(&h, bounds, 10, 1);
	histogram_add(&h, bounds, 11, 2);
	histogram_add(&h, bounds, 5000, 1);
	metric_histogram(&t, "h_seconds", "a=\"b\"", "Text", &h, bounds, 1e3);
	p = text_of(&t);
	ck_assert_str_eq(p, "# HELP h_seconds Text\n# TYPE h_seconds histogram\n"
	                    "h_seconds_bucket{a=\"b\",le=\"0.01\"} 1\n"
	                    "h_seconds_bucket{a=\"b\",le=\"1\"} 3\n"
	                    "h_seconds_bucket{a=\"b\",le=\"+Inf\"} 4\n"
	                    "h_seconds_sum{a=\"b\"} 5.032\nh_seconds_count{a=\"b\"} 4\n");
	free(p);
}
END_TEST

/* More than a block: the text stays whole. */
START_TEST(long_texts)
{
	struct metric_text t = { 0 };
	char *p;

	for (unsigned i = 0; i < 100000; i++)
		metric_value(&t, i % 10);
	ck_assert_uint_eq(t.bytes, 300000);
	p = text_of(&t);
	ck_assert_uint_eq(strlen(p), 300000);
	for (unsigned i = 0; i < 100000; i++)
		ck_assert(p[3 * i + 1] == (char)('0' + i % 10));
	free(p);
}
END_TEST

/* ---- over HTTP ---- */

static const struct {
	const char *request, *headers;
	bool metrics;
	int status;
	const char *has;
} cases[] = {
	{ "GET /metrics", "", true, 200, "content-type: text/plain; version=0.0.4" },
	{ "GET /metrics/", "", true, 200, "\nrabbitmq_queues 0\n" },
	{ "GET /metrics", "", true, 200, "rabbitmq_node=\"unit@test\"" },
	{ "GET /metrics/per-object", "Accept: text/plain\r\n", true, 200,
	    "rabbitmq_identity_info" },
	{ "GET /metrics/detailed?family=vhost_status", "", true, 200,
	    "\nrabbitmq_cluster_vhost_status{vhost=\"/\"} 1\n" },
	{ "GET /metrics/detailed?family=vhost_status&vhost=other", "", true, 200, "build_info" },
	{ "GET /metrics/detailed?family=node_metrics", "", true, 200,
	    "\nrabbitmq_detailed_erlang_uptime_seconds " },
	{ "GET /metrics", "Accept: application/openmetrics-text\r\n", true, 406, "" },
	{ "GET /metrics", "Accept: application/openmetrics-text;q=0.8, */*;q=0.1\r\n", true, 200,
	    "" },
	{ "POST /metrics", "", true, 405, "allow: HEAD, GET, OPTIONS" },
	{ "GET /metrics/nothing", "", true, 404, "Not Found" },
	{ "GET /", "", true, 404, "Not Found" },
	{ "GET /healthz", "", true, 404, "Not Found" },
	{ "GET /api/overview", GUEST, true, 404, "Not Found" },
	{ "PUT /api/vhosts/x", GUEST, true, 404, "Not Found" },
	{ "GET /metrics", "", false, 401, "www-authenticate" },
	{ "GET /metrics", GUEST, false, 200, "\nrabbitmq_queues 0\n" },
	{ "GET /metrics/per-object", GUEST "Accept: text/plain\r\n", false, 200,
	    "rabbitmq_queues" },
};

START_TEST(requests)
{
	char text[512];
	const char *a;

	(void)snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
	    cases[_i].request, cases[_i].headers);
	to_metrics = cases[_i].metrics;
	a = ask(text);
	to_metrics = false;
	ck_assert_msg(status_of(a) == cases[_i].status, "%s: %s", cases[_i].request, a);
	ck_assert_msg(strstr(a, cases[_i].has) != NULL, "%s: %s", cases[_i].request, a);
	if (strstr(cases[_i].request, "vhost=other") != NULL)
		ck_assert_ptr_null(strstr(a, "vhost_status"));
}
END_TEST

static bool
has_name(const char *text, const char *line, size_t n)
{
	for (const char *p = text; (p = strstr(p, "# TYPE ")) != NULL && p < line; p++)
		if (strncmp(p + 7, line + 7, n) == 0 && p[7 + n] == ' ')
			return true;
	return false;
}

/* Tables from three floors are put together: no name may come twice. */
START_TEST(names_are_unique)
{
	const char *a;
	unsigned n = 0;

	to_metrics = true;
	a = ask("GET /metrics HTTP/1.0\r\n\r\n");
	to_metrics = false;
	for (const char *p = a; (p = strstr(p, "# TYPE ")) != NULL; p++, n++) {
		size_t len = strcspn(p + 7, " ");

		ck_assert_msg(!has_name(a, p, len), "twice: %.*s", (int)len, p + 7);
	}
	ck_assert_uint_gt(n, 200);
}
END_TEST

/* ---- slices ---- */

enum { QUEUES = 50000, ANSWER_MAX = 128 << 20, TURN_MAX_US = 10000 };

static void
make_queues(unsigned n)
{
	struct vhost *vh = vhost_find(b, SPAN_LIT("/"));

	for (unsigned i = 0; i < n; i++) {
		char name[64];
		struct queue_spec spec = { .durable = true };
		struct queue *q;

		(void)snprintf(name, sizeof name, "a queue with a \"name\" %u", i);
		spec.name = span_str(name);
		ck_assert_ptr_null(queue_declare(vh, &spec, NULL, &q));
	}
}

/* Reads the answer while a turn after the other is made. Returns the longest turn, by the processor's time. */
static uint64_t
ask_slowly(const char *path, char *to, size_t *n, unsigned *turns)
{
	char text[256];
	uint64_t longest = 0, until = clock_now_ms() + 60000, from;
	ssize_t r = -1;
	int fd, len = snprintf(text, sizeof text, "GET %s HTTP/1.0\r\n\r\n", path);

	to_metrics = true;
	fd = dial();
	to_metrics = false;
	ck_assert_int_eq(write(fd, text, (size_t)len), len);
	for (*n = 0, *turns = 0; r != 0 && clock_now_ms() < until; ++*turns) {
		from = clock_cpu_us();
		turn();
		m->listings.spent_us = 0;
		if (clock_cpu_us() - from > longest)
			longest = clock_cpu_us() - from;
		while ((r = read(fd, to + *n, ANSWER_MAX - 1 - *n)) > 0)
			*n += (size_t)r;
	}
	to[*n] = '\0';
	close(fd);
	return longest;
}

/* With sanitizers strstr() looks for the end of the text each time. */
static unsigned
count_of(const char *text, size_t len, const char *what)
{
	const char *end = text + len, *p = text;
	size_t n = strlen(what);
	unsigned count = 0;

	for (; (p = memmem(p, (size_t)(end - p), what, n)) != NULL; p += n - 1)
		count++;
	return count;
}

START_TEST(many_queues_come_in_slices)
{
	char *text = xmalloc(ANSWER_MAX);
	unsigned turns;
	uint64_t longest;
	size_t n;

	make_queues(QUEUES);
	longest = ask_slowly("/metrics", text, &n, &turns);
	ck_assert_ptr_nonnull(strstr(text, "\nrabbitmq_queues 50000\n"));
	ck_assert_msg(longest < TURN_MAX_US, "a turn took %lu us", (unsigned long)longest);
	longest =
	    ask_slowly("/metrics/detailed?family=queue_coarse_metrics&family=queue_consumer_count",
	        text, &n, &turns);
	ck_assert_uint_eq(count_of(text, n, "\nrabbitmq_detailed_queue_messages{"), QUEUES);
	ck_assert_uint_eq(count_of(text, n, "\nrabbitmq_detailed_queue_consumers{"), QUEUES);
	ck_assert_uint_eq(count_of(text, n, "# TYPE rabbitmq_detailed_queue_messages "), 1);
	ck_assert_uint_gt(turns, 10);
	ck_assert_msg(longest < TURN_MAX_US, "a turn took %lu us", (unsigned long)longest);
	ck_assert_uint_eq(m->scrapes.count, 0);
	free(text);
}
END_TEST

/* Queues come and go between the slices; whoever goes away meanwhile leaves nothing behind. */
START_TEST(a_walk_survives_changes)
{
	static const char again[] = "GET /metrics/per-object HTTP/1.0\r\n" GUEST "\r\n";
	struct vhost *vh = vhost_find(b, SPAN_LIT("/"));
	int fd;

	make_queues(5000);
	to_metrics = true;
	fd = dial();
	to_metrics = false;
	ck_assert_int_gt(write(fd, "GET /metrics/per-object HTTP/1.0\r\n\r\n", 36), 0);
	for (unsigned i = 0; i < 100000 && m->scrapes.count == 0; i++)
		turn();
	ck_assert_uint_eq(m->scrapes.count, 1);
	while (!TAILQ_EMPTY(&vh->queues))
		queue_remove(TAILQ_FIRST(&vh->queues));
	broker_reap(b);
	for (unsigned i = 0; i < 100000 && m->scrapes.count > 0; i++)
		turn();
	ck_assert_uint_eq(m->scrapes.count, 0);
	make_queues(5000);
	close(fd);
	fd = dial();
	ck_assert_int_gt(write(fd, again, sizeof again - 1), 0);
	for (unsigned i = 0; i < 100; i++)
		turn();
	close(fd); /* and the node stops in the midst of it */
}
END_TEST

/* A scrape of many objects takes many turns: every second one is for the lists that are asked for meanwhile. */
START_TEST(lists_go_on_beside_a_scrape)
{
	static const char list[] = "GET /api/queues?page=1 HTTP/1.0\r\n" GUEST "\r\n";
	char some[16];
	ssize_t n = -1;
	int scrape, fd;

	make_queues(20000);
	to_metrics = true;
	scrape = dial();
	to_metrics = false;
	ck_assert_int_gt(write(scrape, "GET /metrics/per-object HTTP/1.0\r\n\r\n", 36), 0);
	for (unsigned i = 0; i < 100000 && m->scrapes.count == 0; i++)
		turn();
	fd = dial();
	ck_assert_int_gt(write(fd, list, sizeof list - 1), 0);
	for (unsigned i = 0; i < 100000 && (n = read(fd, some, sizeof some)) <= 0; i++)
		turn();
	ck_assert_int_gt(n, 0);
	ck_assert_uint_eq(m->scrapes.count, 1);
	for (unsigned i = 0; i < 100000 && m->scrapes.count > 0; i++)
		turn();
	ck_assert_uint_eq(m->scrapes.count, 0);
	close(scrape);
	close(fd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("metrics");
	TCase *pure = tcase_create("text"), *http = tcase_create("http");
	SRunner *sr;
	int failed;

	clock_init();
	tcase_add_loop_test(pure, labels_are_escaped, 0, (int)COUNT_OF(labels));
	tcase_add_loop_test(pure, values, 0, (int)COUNT_OF(numbers));
	tcase_add_test(pure, rows);
	tcase_add_test(pure, histograms);
	tcase_add_test(pure, long_texts);
	tcase_add_checked_fixture(http, setup, teardown);
	tcase_add_loop_test(http, requests, 0, (int)COUNT_OF(cases));
	tcase_add_test(http, names_are_unique);
	tcase_add_test(http, many_queues_come_in_slices);
	tcase_add_test(http, a_walk_survives_changes);
	tcase_add_test(http, lists_go_on_beside_a_scrape);
	tcase_set_timeout(http, 120);
	suite_add_tcase(s, pure);
	suite_add_tcase(s, http);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
