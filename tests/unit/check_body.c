/* SPDX-License-Identifier: Apache-2.0
 * Bodies of requests: what they become is known before they are parsed; what is long is left to workers, and the core
 * thread puts a long message together piece by piece. */
#include "mgmt/body.h"

#include <check.h>
#include <jansson.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/http.h>

#include "base/config_keys.h"
#include "base/mem.h"
#include "base/worker.h"
#include "broker/msg.h"
#include "broker/queue.h"
#include "broker/session.h"
#include "broker/vhost.h"
#include "mgmt/json_brief.h"
#include "mgmt/json_scan.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "tests/unit/mgmt_world.h"

/* --- what a text becomes -------------------------------------------------------- */

static size_t made, most;

static void *
counted_malloc(size_t n)
{
	void *p = malloc(n);

	made += malloc_usable_size(p) + 8;
	most = made > most ? made : most;
	return p;
}

static void
counted_free(void *p)
{
	if (p != NULL)
		made -= malloc_usable_size(p) + 8;
	free(p);
}

/* front, then `item` again and again, then back. */
static const struct {
	const char *front, *item, *back;
} shapes[] = {
	{ "{\"a\":[", "[],", "1]}" }, { "{\"a\":[", "{},", "1]}" }, { "{\"a\":[", "1,", "1]}" },
	{ "{\"a\":[", "1.5 ,", "1]}" }, { "{\"a\":[", "\"\",", "1]}" },
	{ "{\"a\":[", "\"\\u0041\\\"]{[,\",", "1]}" },
	{ "{\"a\":[", "\"a text that is longer than the structure around it\",", "1]}" },
	{ "{\"a\":[", "null,", "1]}" }, { "{\"a\":[", "{\"a\":1},", "1]}" },
	{ "{\"a\":[", "{\"name\":\"q\",\"vhost\":\"/\",\"durable\":true,\"arguments\":{}},",
	    "1]}" },
	{ "{\"a\":[", "[1,2,3,4,5,6,7,8,9],", "1]}" }, { "{\"a\":[", "[[[[[[]]]]]],", "1]}" },
	{ "{\"a\":[", "[[", "" }, /* no JSON */
};

/* Writes at *to what has to fit in before `end`, and moves it behind. */
PRINTF(3, 4)
static void
put(char **to, const char *end, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(*to, (size_t)(end - *to), fmt, ap);
	va_end(ap);
	ck_assert_int_ge(n, 0);
	ck_assert_int_lt(n, end - *to);
	*to += n;
}

START_TEST(what_a_text_becomes)
{
	enum { TIMES = 3000 };
	char text[TIMES * 80], *to = text;
	struct json_scan scan;
	const char *why;
	json_t *j;

	put(&to, text + sizeof text, "%s", shapes[_i].front);
	for (unsigned i = 0; i < TIMES; i++)
		put(&to, text + sizeof text, "%s", shapes[_i].item);
	put(&to, text + sizeof text, "%s", shapes[_i].back);
	json_scan(span_str(text), &scan);
	json_set_alloc_funcs(counted_malloc, counted_free);
	made = most = 0;
	j = body_parse(span_str(text), &why);
	ck_assert(json_is_object(j) == (shapes[_i].back[0] != '\0'));
	ck_assert_uint_le(most, scan.memory + 10000); /* what the parser has for itself */
	if (j != NULL)
		ck_assert_uint_ge(scan.values, TIMES);
	json_decref(j);
	ck_assert_uint_eq(made, 0);
	json_set_alloc_funcs(malloc, free);
}
END_TEST

/* Many names in one object; here a rehash counts. */
START_TEST(what_many_names_become)
{
	enum { TIMES = 20000 };
	char *text = xmalloc(TIMES * 20), *to = text, *end = text + TIMES * 20;
	struct json_scan scan;
	const char *why;
	json_t *j;

	for (unsigned i = 0; i < TIMES; i++)
		put(&to, end, "%s\"%u\":null", i == 0 ? "{" : ",", i);
	put(&to, end, "}");
	json_scan(span_str(text), &scan);
	json_set_alloc_funcs(counted_malloc, counted_free);
	made = most = 0;
	j = body_parse(span_str(text), &why);
	ck_assert_uint_eq(json_object_size(j), TIMES);
	ck_assert_uint_le(most, scan.memory + 10000);
	json_decref(j);
	json_set_alloc_funcs(malloc, free);
	free(text);
}
END_TEST

/* What RabbitMQ exports, in the shortest form of it that is real, 20 MiB long. */
START_TEST(real_definitions_have_room)
{
	static const char *const items[] = {
		"{\"name\":\"q\",\"vhost\":\"/"
		"\",\"durable\":true,\"auto_delete\":false,\"arguments\":{}},",
		"{\"source\":\"x\",\"vhost\":\"/"
		"\",\"destination\":\"q\",\"destination_type\":\"queue\","
		"\"routing_key\":\"\",\"arguments\":{}},",
		"{\"user\":\"u\",\"vhost\":\"/\",\"configure\":\"\",\"write\":\"\",\"read\":\"\"},",
	};

	for (unsigned i = 0; i < COUNT_OF(items); i++) {
		struct json_scan scan;

		json_scan(span_str(items[i]), &scan);
		ck_assert_uint_le(cfg.http_body / strlen(items[i]) * scan.memory, cfg.http_values);
	}
}
END_TEST

START_TEST(brief_values)
{
	char *text = xmalloc(100001);
	json_t *list = json_array(), *j;

	j = json_brief(list);
	ck_assert_ptr_eq(j, list);
	json_decref(j);
	memset(text, 'x', 100000);
	text[100000] = '\0';
	memcpy(text + 999, "\u00e4", 2); /* not cut in half */
	json_array_append_new(list, json_string(text));
	ck_assert(!json_is_short(list, 100000));
	ck_assert(json_is_short(list, 100004));
	j = json_brief(list);
	ck_assert_str_eq(json_string_value(j), "a list of 1");
	json_decref(j);
	j = json_brief(json_array_get(list, 0));
	ck_assert_uint_eq(json_string_length(j), 999 + 3);
	json_decref(j);
	json_decref(list);
	free(text);
}
END_TEST

/* --- requests ------------------------------------------------------------------- */

static struct workers *w;

static void
setup_workers(void)
{
	setup();
	w = workers_new(0);
	m->node.workers = w;
}

static void
teardown_workers(void)
{
	teardown();
	workers_free(&w);
}

/* Sends a request with this body; returns when a worker has something to do, or an answer is there. */
static int
post(const char *path, const char *headers, const char *body, size_t n)
{
	unsigned before = workers_waiting(w);
	uint64_t until = clock_now_ms() + 10000;
	char *text = xmalloc(n + 600), *to = text, c;
	size_t len, sent = 0;
	int fd = dial();

	put(&to, text + 600, "POST %s HTTP/1.0\r\nContent-Length: %zu\r\n" GUEST "%s\r\n", path, n,
	    headers);
	len = (size_t)(to - text);
	memcpy(text + len, body, n);
	len += n;
	while (workers_waiting(w) == before && recv(fd, &c, 1, MSG_PEEK) <= 0) {
		ssize_t got = write(fd, text + sent, len - sent);

		ck_assert_uint_lt(clock_now_ms(), until);
		sent += got > 0 ? (size_t)got : 0;
		turn();
	}
	free(text);
	return fd;
}

/* What comes until the server closes. Workers and imports go on. */
static const char *
answer_to(int fd)
{
	uint64_t until = clock_now_ms() + 10000;
	size_t n = 0;
	ssize_t r = -1;

	while (r != 0 && clock_now_ms() < until) {
		(void)workers_step(w, 0);
		workers_take(w);
		(void)mgmt_run(m);
		turn();
		r = read(fd, answer + n, sizeof answer - 1 - n);
		n += r > 0 ? (size_t)r : 0;
	}
	answer[n] = '\0';
	close(fd);
	return answer;
}

/* {"queues": [item item ... ]}, n bytes. */
static char *
definitions(const char *item, size_t n)
{
	char *text = xmalloc(n + 1), *to = text;
	size_t at, len = strlen(item);

	put(&to, text + n + 1, "{\"queues\":[");
	at = (size_t)(to - text);
	for (; len > 0 && at + len + 3 < n; at += len)
		memcpy(text + at, item, len);
	memset(text + at, ' ', n - at);
	memcpy(text + n - 3, "0]}", 4);
	return text;
}

static struct evbuffer *
input_of_first(void)
{
	return evhttp_request_get_input_buffer(TAILQ_FIRST(&m->deferred)->ev);
}

/* A long body goes to a worker as it came: the core thread keeps none of its bytes, and they count until they are read. */
START_TEST(a_long_body_is_not_copied)
{
	enum { N = 300 << 10 };
	char *text = definitions("[],", N);
	int fd = post("/api/definitions", "", text, N);

	ck_assert_uint_eq(workers_waiting(w), 1);
	ck_assert_uint_eq(evbuffer_get_length(input_of_first()), 0);
	ck_assert_uint_ge(http_stats(m->http)->input_large, N);
	ck_assert_uint_eq(body_memory_held(), 0);
	ck_assert(workers_step(w, 0));
	ck_assert_uint_gt(body_memory_held(), N);
	workers_take(w);
	ck_assert_uint_eq(http_stats(m->http)->input_large, 0);
	ck_assert_ptr_nonnull(strstr(answer_to(fd), "it is no object"));
	ck_assert_uint_eq(body_memory_held(), 0);
	free(text);
}
END_TEST

/* Few bytes, many values: parsed elsewhere as well. */
START_TEST(many_values_are_long)
{
	enum { N = BODY_PARSE_HERE - 1 };
	char *text = definitions("{},", N);
	int fd = post("/api/definitions", "", text, N);

	ck_assert_uint_eq(workers_waiting(w), 1);
	ck_assert_int_eq(status_of(answer_to(fd)), 400);
	ck_assert_uint_eq(body_memory_held(), 0);
	free(text);
}
END_TEST

/* The form is searched by the worker, not before. */
START_TEST(a_long_form)
{
	static const char head[] = "--b\r\nContent-Disposition: form-data; name=\"%s\"\r\n\r\n",
	                  tail[] = "\r\n--b--\r\n";
	enum { N = 100 << 10 };

	for (unsigned right = 0; right < 2; right++) {
		char *text = xmalloc(N + 200), *to = text, *queues = definitions("", N);
		int fd;

		put(&to, text + N + 200, head, right ? "file" : "other");
		put(&to, text + N + 200, "%s%s", queues, tail);
		fd = post("/api/definitions", "Content-Type: multipart/form-data; boundary=b\r\n",
		    text, (size_t)(to - text));
		ck_assert_uint_eq(workers_waiting(w), 1);
		ck_assert_ptr_nonnull(strstr(
		    answer_to(fd), right ? "it is no object" : "the form has no field 'file'"));
		free(text);
		free(queues);
	}
}
END_TEST

START_TEST(too_many_values)
{
	enum { N = 100 << 10 };
	char *text = definitions("[],", N);
	const char *a;

	cfg.http_values = 2 << 20;
	a = answer_to(post("/api/definitions", "", text, N));
	ck_assert_int_eq(status_of(a), 413);
	ck_assert_ptr_nonnull(
	    strstr(a, "the body holds 34132 names and values, which may take up "));
	ck_assert_ptr_nonnull(strstr(a, "at most 2097152 are allowed (limits.http_values)"));
	ck_assert_uint_eq(m->bodies_refused, 1);
	ck_assert_uint_eq(body_memory_held(), 0);
	cfg.http_values = 512 << 20; /* half of the memory for messages is less */
	b->memory.limit = 6 << 20;
	a = answer_to(post("/api/definitions", "", text, N));
	ck_assert_ptr_nonnull(strstr(a, "at most 3145728 are allowed"));
	free(text);
}
END_TEST

/* Two of which each has room. */
START_TEST(values_share_a_bound)
{
	enum { N = 100 << 10 };
	char *text = definitions("[],", N);
	int first, second;

	cfg.http_values = 8 << 20;
	first = post("/api/definitions", "", text, N);
	ck_assert(workers_step(w, 0));
	ck_assert_uint_gt(body_memory_held(), 5 << 20);
	second = post("/api/definitions", "", text, N);
	ck_assert(workers_step(w, 0));
	workers_take(w);
	ck_assert_ptr_nonnull(strstr(answer_to(second), "503 "));
	ck_assert_uint_eq(m->bodies_refused, 1);
	ck_assert_int_eq(status_of(answer_to(first)), 400);
	ck_assert_uint_eq(body_memory_held(), 0);
	free(text);
}
END_TEST

/* Only imports and messages are long. */
START_TEST(other_bodies_are_short)
{
	enum { N = BODY_SHORT_MAX + 1 };
	char *text = definitions("", N), form[40000] = "password=b&username=";
	const char *a = answer_to(post("/api/users/bulk-delete", "", text, N));

	ck_assert_int_eq(status_of(a), 413);
	ck_assert_ptr_nonnull(
	    strstr(a, "the body has 1048577 bytes; at most 1048576 are allowed here"));
	ck_assert_uint_eq(m->bodies_refused, 1);
	ck_assert_int_eq(
	    status_of(answer_to(post("/api/users/bulk-delete", "", text, N - 1))), 400);
	free(text);
	memset(form + strlen(form), 'a', sizeof form - 1 - strlen(form));
	ck_assert_int_eq(status_of(answer_to(post("/api/login", "", form, sizeof form - 1))), 400);
}
END_TEST

/* --- messages ------------------------------------------------------------------- */

/* {"routing_key": "q", ... "payload": n bytes of c, end, back} */
static char *
message(const char *encoding, char c, size_t n, const char *end)
{
	char *text = xmalloc(n + 300), *to = text;

	put(&to, text + 300,
	    "{\"routing_key\":\"q\",\"properties\":{},\"payload_encoding\":\"%s\",\"payload\":\"",
	    encoding);

	memset(to, c, n);
	to += n;
	put(&to, text + n + 300, "%s\"}", end);
	return text;
}

#define PUBLISH "/api/exchanges/%2F/amq.default/publish"

/* No step copies more than a piece. */
START_TEST(a_message_in_pieces)
{
	enum { N = 1000001, PIECE = 128 << 10 };
	char *text = message("string", 'x', N, "");
	json_t *body = json_loads(text, 0, NULL);
	struct message_draft d;
	unsigned steps = 1;
	uint64_t sum = 0;
	struct msg *msg;

	ck_assert_ptr_null(message_begin(&d, body, SPAN_LIT(""), SPAN_LIT("q")));
	for (size_t before = 0; !message_is_whole(&d); before = d.copied, steps++) {
		ck_assert_uint_le(d.copied - before, PIECE);
		ck_assert_ptr_null(message_go_on(&d));
	}
	ck_assert_uint_eq(steps, N / PIECE + 1);
	msg = message_end(&d);
	ck_assert_uint_eq(msg->body_size, N);
	for (struct msg_piece *p = msg->rest; p != NULL; p = p->next)
		for (uint32_t i = 0; i < p->n; i++)
			sum += p->d[i] == 'x';
	ck_assert_uint_eq(sum, N);
	msg_unref(&msg);
	/* one that is given up, and one for which there is no memory */
	ck_assert_ptr_null(message_begin(&d, body, SPAN_LIT(""), SPAN_LIT("q")));
	ck_assert_ptr_null(message_go_on(&d));
	message_drop(&d);
	mem_fail_try(2, 1);
	json_decref(message_begin(&d, body, SPAN_LIT(""), SPAN_LIT("q")));
	mem_fail_try(0, 0);
	ck_assert_ptr_null(d.m);
	json_decref(body);
	free(text);
}
END_TEST

START_TEST(long_payloads)
{
	enum { N = 1 << 20 };
	char *text = message("base64", 'A', N, "");
	struct queue *q;
	struct entry e;
	const char *a;

	(void)ask("PUT /api/queues/%2F/q HTTP/1.0\r\n" GUEST "Content-Length: 2\r\n\r\n{}");
	q = queue_find(vhost_find(b, SPAN_LIT("/")), SPAN_LIT("q"));
	a = answer_to(post(PUBLISH, "", text, strlen(text)));
	ck_assert_msg(status_of(a) == 200, "%s", a);
	ck_assert_ptr_nonnull(strstr(a, "{\"routed\":true}"));
	ck_assert(queue_pop(q, &e));
	ck_assert_uint_eq(e.m->body_size, N / 4 * 3);
	msg_unref(&e.m);
	free(text);
	/* what is wrong with a megabyte is shown in a few bytes */
	text = message("base64", 'A', N, "AAA*AAAAAAAA");
	a = answer_to(post(PUBLISH, "", text, strlen(text)));
	ck_assert_int_eq(status_of(a), 400);
	ck_assert_ptr_nonnull(strstr(a, "[\"not_base64\",\"AAAA"));
	ck_assert_ptr_nonnull(strstr(a, "AAA*AAAAAAAA\"]"));
	ck_assert_uint_lt(strlen(a), 1000);
	free(text);
	text = message("base64", 'A', N + 1, "");
	a = answer_to(post(PUBLISH, "", text, strlen(text)));
	ck_assert_ptr_nonnull(strstr(a, "[\"not_base64\",\"A\"]"));
	cfg.message_size = 1000;
	a = answer_to(post(PUBLISH, "", text, strlen(text)));
	free(text);
	text = message("string", 'A', 1001, "");
	a = answer_to(post(PUBLISH, "", text, strlen(text)));
	ck_assert_ptr_nonnull(strstr(a,
	    "406 PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"));
	free(text);
	ck_assert_uint_eq(body_memory_held(), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("body");
	TCase *pure = tcase_create("pure"), *http = tcase_create("http");
	SRunner *sr;
	int failed;

	clock_init();
	tcase_add_checked_fixture(http, setup_workers, teardown_workers);
	tcase_add_loop_test(pure, what_a_text_becomes, 0, (int)COUNT_OF(shapes));
	tcase_add_test(pure, what_many_names_become);
	tcase_add_test(pure, brief_values);
	tcase_add_test(pure, a_message_in_pieces);
	tcase_add_test(http, real_definitions_have_room);
	tcase_add_test(http, a_long_body_is_not_copied);
	tcase_add_test(http, many_values_are_long);
	tcase_add_test(http, a_long_form);
	tcase_add_test(http, too_many_values);
	tcase_add_test(http, values_share_a_bound);
	tcase_add_test(http, other_bodies_are_short);
	tcase_add_test(http, long_payloads);
	tcase_set_timeout(http, 60);
	suite_add_tcase(s, pure);
	suite_add_tcase(s, http);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
