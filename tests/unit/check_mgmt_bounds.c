/* SPDX-License-Identifier: Apache-2.0
 * What the HTTP side bounds: headers, bodies, connections, time. */
#include "mgmt/body.h"

#include <check.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/worker.h"
#include "broker/parameter.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "net/loop.h"
#include "tests/unit/mgmt_world.h"

/* --- connections ---------------------------------------------------------------- */

/* Over the bound nobody is accepted; a place that becomes free is taken. */
START_TEST(connections_are_bounded)
{
	int fd[HTTP_CONNECTIONS + 10];

	for (unsigned i = 0; i < COUNT_OF(fd); i++) {
		fd[i] = dial();
		turn();
	}
	turns_until_open(HTTP_CONNECTIONS);
	for (unsigned i = 0; i < 20; i++)
		turn();
	ck_assert_uint_eq(http_stats(m->http)->open, HTTP_CONNECTIONS);
	ck_assert_uint_eq(http_stats(m->http)->accepted, HTTP_CONNECTIONS);
	for (unsigned i = 0; i < HTTP_CONNECTIONS; i++)
		close(fd[i]);
	for (unsigned i = 0; i < 2000 && http_stats(m->http)->accepted < COUNT_OF(fd); i++)
		turn();
	turns_until_open(10);
	for (unsigned i = HTTP_CONNECTIONS; i < COUNT_OF(fd); i++)
		close(fd[i]);
	turns_until_open(0);
}
END_TEST

/* Clients that take all places and say nothing keep nobody out for long. */
START_TEST(a_silent_crowd_makes_room)
{
	int fd[HTTP_CONNECTIONS], one;
	char c;

	for (unsigned i = 0; i < COUNT_OF(fd); i++) {
		fd[i] = dial();
		turn();
	}
	turns_until_open(HTTP_CONNECTIONS);
	one = dial();
	ck_assert_int_eq(write(one, "GET /healthz HTTP/1.0\r\n\r\n", 25), 25);
	l->now_ms += HTTP_SILENT_MS + 200;
	(void)wheel_run(l->wheel, l->now_ms, 100);
	for (uint64_t until = clock_now_ms() + 3000;
	     clock_now_ms() < until && read(one, &c, 1) != 1;)
		turn();
	ck_assert_int_eq(c, 'H');
	ck_assert_uint_gt(http_stats(m->http)->evicted, 0);
	ck_assert_uint_lt(http_stats(m->http)->evicted, HTTP_CONNECTIONS);
	ck_assert_uint_eq(http_stats(m->http)->timed_out, 0);
	ck_assert_int_eq(read(fd[0], &c, 1), 0); /* the oldest went, not the youngest */
	ck_assert_int_eq(read(fd[HTTP_CONNECTIONS - 1], &c, 1), -1);
	close(one);
	for (unsigned i = 0; i < COUNT_OF(fd); i++)
		close(fd[i]);
	turns_until_open(0);
}
END_TEST

/* The same when it is descriptors that are short. */
START_TEST(without_descriptors_the_silent_make_room)
{
	struct rlimit lim;
	int fd[10], one, free_fd;
	char c = 0;

	for (unsigned i = 0; i < COUNT_OF(fd); i++)
		fd[i] = dial();
	turns_until_open(COUNT_OF(fd));
	one = dial();
	ck_assert_int_eq(write(one, "GET /healthz HTTP/1.0\r\n\r\n", 25), 25);
	free_fd = dup(0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = (rlim_t)free_fd;
	close(free_fd);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lim), 0);
	l->now_ms += HTTP_SILENT_MS + 200;
	for (uint64_t until = clock_now_ms() + 3000;
	     clock_now_ms() < until && read(one, &c, 1) != 1;)
		turn();
	ck_assert_int_eq(c, 'H');
	ck_assert_uint_gt(http_stats(m->http)->accept_errors, 0);
	ck_assert_uint_lt(http_stats(m->http)->accept_errors, 20);
	ck_assert_uint_gt(http_stats(m->http)->evicted, 0);
	close(one);
	for (unsigned i = 0; i < COUNT_OF(fd); i++)
		close(fd[i]);
}
END_TEST

START_TEST(accepts_are_bounded)
{
	int fd[150];

	for (unsigned i = 0; i < COUNT_OF(fd); i++)
		fd[i] = dial();
	turn();
	ck_assert_uint_le(http_stats(m->http)->accepted, 64);
	turns_until_open(COUNT_OF(fd));
	for (unsigned i = 0; i < COUNT_OF(fd); i++)
		close(fd[i]);
	turns_until_open(0);
}
END_TEST

/* A request that never becomes whole is ended by the clock, however busy its sender is. */
START_TEST(slow_requests_are_ended)
{
	int fd = dial();
	char c;

	ck_assert_int_eq(write(fd, "GET /hea", 8), 8);
	turns_until_open(1);
	(void)wheel_run(l->wheel, l->now_ms + HTTP_REQUEST_MS - 2000, 100);
	turn();
	ck_assert_uint_eq(http_stats(m->http)->open, 1);
	ck_assert_int_eq(write(fd, "l", 1), 1);
	turn();
	(void)wheel_run(l->wheel, l->now_ms + HTTP_REQUEST_MS + 1000, 100);
	turns_until_open(0);
	ck_assert_uint_eq(http_stats(m->http)->timed_out, 1);
	ck_assert_int_eq(read(fd, &c, 1), 0);
	close(fd);
}
END_TEST

enum { ANSWER_PIECES = 120, ANSWER_PIECE = 100000 };

/* A connection that has asked for ANSWER_PIECES times ANSWER_PIECE bytes. */
static int
ask_for_much(void)
{
	static char text[ANSWER_PIECE];
	char name[20];
	int fd = dial();

	ck_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	memset(text, 'x', sizeof text);
	text[0] = text[sizeof text - 1] = '"';
	for (int i = 0; i < ANSWER_PIECES; i++) {
		(void)snprintf(name, sizeof name, "p%d", i);
		ck_assert_ptr_null(parameter_set(
		    b, NULL, span_of(NULL, 0), span_str(name), span_of(text, sizeof text), NULL));
	}
	ck_assert_int_gt(dprintf(fd, "GET /api/global-parameters HTTP/1.0\r\n" GUEST "\r\n"), 0);
	return fd;
}

/* So much, or what comes until the end. */
static size_t
read_some(int fd, size_t most)
{
	static char buf[64 << 10];
	uint64_t until = clock_now_ms() + 3000;
	size_t n = 0;
	ssize_t r = -1;

	while (n < most && r != 0 && clock_now_ms() < until) {
		turn();
		r = read(fd, buf, sizeof buf);
		if (r > 0)
			n += (size_t)r;
	}
	return n;
}

/* A long answer over a slow line comes whole. */
START_TEST(an_answer_that_is_taken_slowly)
{
	int fd = ask_for_much();
	uint64_t now_ms = l->now_ms;
	size_t n = 0, more;

	while ((more = read_some(fd, 1 << 20)) > 0) {
		n += more;
		now_ms += HTTP_REQUEST_MS - 1000;
		(void)wheel_run(l->wheel, now_ms, 100);
	}
	ck_assert_uint_gt(n, ANSWER_PIECES * ANSWER_PIECE);
	ck_assert_uint_eq(http_stats(m->http)->timed_out, 0);
	close(fd);
}
END_TEST

START_TEST(an_answer_that_nobody_takes)
{
	int fd = ask_for_much();

	ck_assert_uint_gt(read_some(fd, 1000), 0);
	/* the kernel takes some of it */
	(void)wheel_run(l->wheel,
	    l->now_ms + HTTP_REQUEST_MS + ANSWER_PIECES * ANSWER_PIECE / HTTP_OUTPUT_RATE, 100);
	turns_until_open(0);
	ck_assert_uint_eq(http_stats(m->http)->timed_out, 1);
	close(fd);
}
END_TEST

/* --- requests ------------------------------------------------------------------- */

START_TEST(headers_and_bodies_are_bounded)
{
	char *big = malloc(HTTP_HEADERS_MAX + 200);
	int n;

	n = snprintf(big, 100, "GET /healthz HTTP/1.0\r\nX: ");
	memset(big + n, 'x', HTTP_HEADERS_MAX + 100);
	(void)snprintf(big + n + HTTP_HEADERS_MAX, 10, "\r\n\r\n");
	ck_assert_int_ne(status_of(ask(big)), 200);
	(void)snprintf(big, 100, "POST /healthz HTTP/1.0\r\nContent-Length: %" PRIu64 "\r\n\r\n",
	    cfg.http_body + 1);
	ck_assert_int_eq(status_of(ask(big)), 413);
	ck_assert_uint_eq(http_stats(m->http)->requests, 0);
	ck_assert_uint_eq(http_stats(m->http)->open, 0);
	free(big);
}
END_TEST

/* --- bodies ----------------------------------------------------------------- */

static const struct {
	const char *text, *why; /* why NULL: it is read */
} bodies[] = {
	{ "", NULL },
	{ "{}", NULL },
	{ " {\"a\": [1, 2.5, null, true, \"\\u0000\"]}\n", NULL },
	{ "[]", "not_json" },
	{ "12", "not_json" },
	{ "{bad", "not_json" },
	{ "{}{}", "not_json" },
	{ "{\"a\":\"\xff\"}", "not_json" },
};

START_TEST(reading_bodies)
{
	const char *why = NULL;
	json_t *j = body_parse(span_str(bodies[_i].text), &why);

	ck_assert(json_is_object(j) == (bodies[_i].why == NULL));
	if (bodies[_i].why != NULL)
		ck_assert_str_eq(why, bodies[_i].why);
	json_decref(j);
}
END_TEST

START_TEST(deep_bodies)
{
	char text[16 + 2 * 5000] = "{\"[[\\\"[[\":";
	const char *why = NULL;
	size_t n = strlen(text);
	json_t *j;

	for (unsigned depth = 99; depth <= 5000; depth += 1 + (depth > 100) * 4899) {
		memset(text + n, '[', depth);
		memset(text + n + depth, ']', depth);
		(void)snprintf(text + n + 2 * depth, 2, "}");
		j = body_parse(span_str(text), &why);
		ck_assert_int_eq(json_is_object(j), depth + 1 <= REQUEST_DEPTH_MAX);
		json_decref(j);
	}
	ck_assert_str_eq(why, "not_json: nested too deep");
}
END_TEST

/* Large bodies share a bound: one is given up, the one that comes or, on a slow machine, the one that has taken long. */
START_TEST(bodies_that_wait_are_bounded)
{
	enum { EACH = 15 << 20, FIVE = 5 };
	static char piece[256 << 10];
	int fd[FIVE];
	unsigned ended = 0;
	char head[100];
	int n;

	memset(piece, ' ', sizeof piece);
	n = snprintf(
	    head, sizeof head, "POST /healthz HTTP/1.1\r\nContent-Length: %d\r\n\r\n", EACH + 1);
	for (unsigned i = 0; i < FIVE; i++) {
		uint64_t until = clock_now_ms() + 10000;

		fd[i] = dial();
		ck_assert_int_eq(write(fd[i], head, (size_t)n), n);
		for (size_t sent = 0; sent < EACH && clock_now_ms() < until &&
		                      http_stats(m->http)->too_much_input == 0;) {
			ssize_t w = write(
			    fd[i], piece, sizeof piece < EACH - sent ? sizeof piece : EACH - sent);

			sent += w > 0 ? (size_t)w : 0;
			turn();
		}
		ck_assert(i < FIVE - 1 || http_stats(m->http)->too_much_input == 1);
		ck_assert_uint_le(http_stats(m->http)->input_large, cfg.http_bodies);
	}
	for (unsigned i = 0; i < 20; i++)
		turn();
	for (unsigned i = 0; i < FIVE; i++) {
		ssize_t got = read(fd[i], head, sizeof head);

		ended += got == 0 || (got < 0 && errno == ECONNRESET);
		close(fd[i]);
	}
	ck_assert_uint_eq(ended, 1);
	turns_until_open(0);
	ck_assert_uint_eq(http_stats(m->http)->input_large, 0);
}
END_TEST

/* A payload waits for a worker when the node stops. */
START_TEST(stop_while_a_payload_waits)
{
	enum { LONG = 200 << 10 };
	static const char front[] = "{\"routing_key\":\"q\",\"properties\":{},"
	                            "\"payload_encoding\":\"base64\",\"payload\":\"",
	                  back[] = "\"}";
	struct workers *w = workers_new(0);
	char *text = calloc(1, LONG + 1000), *to = text;
	uint64_t until = clock_now_ms() + 3000;
	size_t len, sent = 0;
	int fd = dial();

	m->node.workers = w;
	to += sprintf(to,
	    "POST /api/exchanges/%%2F/amq.default/publish HTTP/1.1\r\nContent-Length: %zu\r\n" GUEST
	    "\r\n%s",
	    LONG + sizeof front + sizeof back - 2, front);
	memset(to, 'A', LONG);
	strcpy(to + LONG, back);
	len = strlen(text);
	while (workers_waiting(w) == 0 && clock_now_ms() < until) {
		ssize_t n = write(fd, text + sent, len - sent);

		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	ck_assert(workers_step(w, 0)); /* the body is parsed; */
	workers_take(w);
	ck_assert_uint_eq(workers_waiting(w), 1); /* its payload is to be decoded */
	mgmt_stop(&m);
	workers_free(&w);
	close(fd);
	free(text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mgmt_bounds");
	TCase *http = tcase_create("http"), *pure = tcase_create("pure");
	SRunner *sr;
	int failed;

	clock_init();
	tcase_add_checked_fixture(http, setup, teardown);
	tcase_add_test(http, headers_and_bodies_are_bounded);
	tcase_add_test(http, bodies_that_wait_are_bounded);
	tcase_add_test(http, connections_are_bounded);
	tcase_add_test(http, a_silent_crowd_makes_room);
	tcase_add_test(http, without_descriptors_the_silent_make_room);
	tcase_add_test(http, accepts_are_bounded);
	tcase_add_test(http, slow_requests_are_ended);
	tcase_add_test(http, an_answer_that_is_taken_slowly);
	tcase_add_test(http, an_answer_that_nobody_takes);
	tcase_add_test(http, stop_while_a_payload_waits);
	tcase_add_loop_test(pure, reading_bodies, 0, (int)COUNT_OF(bodies));
	tcase_add_test(pure, deep_bodies);
	tcase_set_timeout(http, 60);
	suite_add_tcase(s, http);
	suite_add_tcase(s, pure);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
