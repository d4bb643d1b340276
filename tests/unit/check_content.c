/* SPDX-License-Identifier: Apache-2.0
 * Content on its way in: bodies in one frame and in many, frames that arrive split at every byte,
 * sizes that lie, headers that are wrong, and the bounds. Whatever happens, nothing that was kept
 * for it stays. */
#include <check.h>

#include "tests/unit/channel_world.h"

static struct world w;
static struct peer p;
static struct queue *q;
static struct inbox in;
static uint8_t body[300000];

static void
setup(void)
{
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (uint8_t)(i * 31 + i / 257);
	world_init(&w);
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	p.c->frame_max = p.c->payload_max = 131072;
	peer_channel(&p, 1);
	q = world_queue(&w, "q");
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&p);
	ck_assert_uint_eq(w.a->content_in_flight, 0);
	world_fini(&w);
	world_held_nothing();
}

/* The message at the head of the queue is this one, whole; it is taken off. */
static void
expect_message(const uint8_t *want, size_t n, struct span props)
{
	struct span got;
	struct entry e;
	size_t at = 0;

	ck_assert_uint_eq(q->ready, 1);
	ck_assert(queue_pop(q, &e));
	ck_assert_uint_eq(e.m->body_size, n);
	got = msg_props(e.m);
	ck_assert_uint_eq(got.n, props.n);
	ck_assert_mem_eq(got.p, props.p, got.n);
	ck_assert(span_is(msg_key(e.m), "q") && msg_exchange(e.m).n == 0);
	if (e.m->rest == NULL)
		ck_assert(n == 0 || memcmp(msg_body(e.m), want, n) == 0);
	for (const struct msg_piece *k = e.m->rest; k != NULL; k = k->next) {
		ck_assert(memcmp(k->d, want + at, k->n) == 0);
		at += k->n;
	}
	ck_assert(e.m->rest == NULL || at == n);
	msg_unref(&e.m);
}

static void
expect_close(uint32_t method, uint16_t code, const char *text)
{
	struct seen s;

	peer_read(&p);
	s = peer_next(&p);
	ck_assert_msg(s.id == method && s.code == code, "%08x %u %s", s.id, s.code, s.text);
	ck_assert_str_eq(s.text, text);
	if (method == AMQP_CHANNEL_CLOSE_METHOD || code != 501)
		ck_assert(s.class_id == 60 && s.method_id == 40);
}

START_TEST(bodies)
{
	static const size_t size[] = { 0, 1, 7, 4096, 8191, 8192, 131064, 131072, 131073, 262144,
		300000 };
	static const size_t chunk[] = { 0, 1000, 4088, 131064 };

	for (size_t s = 0; s < COUNT_OF(size); s++) {
		for (size_t c = 0; c < COUNT_OF(chunk); c++) {
			struct publish what = {
				.key = "q", .body = span_of(body, size[s]), .chunk = chunk[c]
			};

			if (chunk[c] == 0 && size[s] > 131072)
				continue;
			peer_publish(&p, 1, &what);
			expect_message(body, size[s], no_props);
		}
	}
}
END_TEST

/* One octet a frame, empty frames between them. */
START_TEST(tiny_frames)
{
	uint8_t out[8192];
	size_t n = put_publish_method(out, 1, "", "q", 0);

	n += put_header(out + n, 1, 300, no_props);
	for (size_t i = 0; i < 300; i++) {
		n += put_frame(out + n, FRAME_BODY, 1, NULL, 0);
		n += put_frame(out + n, FRAME_BODY, 1, body + i, 1);
	}
	peer_send(&p, out, n);
	expect_message(body, 300, no_props);
}
END_TEST

/* Split at every byte the three frames take every way through the two paths; the message is the
 * same. */
START_TEST(split_everywhere)
{
	static const char props[] = "\xf0\0\3a/b\3gzp\0\0\0\4\1kt\1\2";
	static const size_t chunk[] = { 0, 30 };
	struct publish what = {
		.key = "q", .body = span_of(body, 70), .props = span_of(props, sizeof props - 1)
	};

	for (size_t c = 0; c < COUNT_OF(chunk); c++) {
		size_t n;
		uint8_t *out;

		what.chunk = chunk[c];
		out = put_publish(1, &what, &n);
		for (size_t at = 1; at < n; at++) {
			peer_send(&p, out, at);
			ck_assert_uint_eq(q->ready, 0);
			peer_send(&p, out + at, n - at);
			expect_message(body, 70, what.props);
		}
		for (size_t at = 0; at < n; at++)
			peer_send(&p, out + at, 1);
		expect_message(body, 70, what.props);
		free(out);
	}
}
END_TEST

static const struct {
	const char *what;
	uint64_t declared;
	size_t frame[3]; /* lengths of body frames; 0: no more */
	uint32_t method;
	uint16_t code;
	const char *text;
} lies[] = {
	{ "too long", 10, { 12 }, AMQP_CONNECTION_CLOSE_METHOD, 501,
	    "FRAME_ERROR - type 3, body frames of 12 octets where the header said 10" },
	{ "the second too long", 10, { 4, 10 }, AMQP_CONNECTION_CLOSE_METHOD, 501,
	    "FRAME_ERROR - type 3, body frames of 14 octets where the header said 10" },
	{ "one more", 10, { 9, 2 }, AMQP_CONNECTION_CLOSE_METHOD, 501,
	    "FRAME_ERROR - type 3, body frames of 11 octets where the header said 10" },
	{ "over the limit", (128 << 20) + 1, { 10 }, AMQP_CHANNEL_CLOSE_METHOD, 406,
	    "PRECONDITION_FAILED - message size 134217729 is larger than configured max size "
	    "134217728" },
	{ "2^63", (uint64_t)1 << 63, { 10, 10 }, AMQP_CHANNEL_CLOSE_METHOD, 406,
	    "PRECONDITION_FAILED - message size 9223372036854775808 is larger than configured max "
	    "size "
	    "134217728" },
	{ "2^64-1", UINT64_MAX, { 10, 10 }, AMQP_CHANNEL_CLOSE_METHOD, 406,
	    "PRECONDITION_FAILED - message size 18446744073709551615 is larger than configured max "
	    "size "
	    "134217728" },
};

START_TEST(sizes_that_lie)
{
	uint8_t out[4096];
	size_t n = put_publish_method(out, 1, "", "q", 0);

	n += put_header(out + n, 1, lies[_i].declared, no_props);
	for (size_t i = 0; i < 3 && lies[_i].frame[i] > 0; i++)
		n += put_frame(out + n, FRAME_BODY, 1, body, lies[_i].frame[i]);
	peer_send(&p, out, n);
	expect_close(lies[_i].method, lies[_i].code, lies[_i].text);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(p.c->content_in_flight, 0);
	ck_assert_uint_eq(mem_held[MEM_CONTENT], 0);
}
END_TEST

/* Declared, but never sent: costs what came, not what was promised. */
START_TEST(promises)
{
	uint64_t before = mem_total();
	uint8_t out[256];
	size_t n;

	for (uint16_t channel = 2; channel < 200; channel++) {
		peer_channel(&p, channel);
		n = put_publish_method(out, channel, "", "q", 0);
		n += put_header(out + n, channel, 128 << 20, no_props);
		n += put_frame(out + n, FRAME_BODY, channel, body, 1);
		peer_send(&p, out, n);
	}
	ck_assert_uint_lt(mem_total() - before, 4 << 20);
	ck_assert_uint_lt(p.c->content_in_flight, 198 * 100);
	ck_assert_uint_gt(p.c->content_in_flight, 198);
}
END_TEST

static const struct {
	const char *payload;
	size_t n;
	uint16_t code;
	const char *text;
} headers[] = {
	{ "\0\12\0\0\0\0\0\0\0\0\0\0\0\0", 14, 505,
	    "UNEXPECTED_FRAME - expected content header for class 60, got one for class 10 "
	    "instead" },
	{ "\0\74\0\5\0\0\0\0\0\0\0\0\0\0", 14, 505,
	    "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame "
	    "instead" },
	{ "\0\74\0\0\0\0\0\0\0\0\0\0", 12, 502,
	    "SYNTAX_ERROR - cannot decode the properties of a content header" },
	{ "\0\74\0\0\0\0\0\0\0\0\0\0\0", 13, 502,
	    "SYNTAX_ERROR - cannot decode the properties of a content header" },
	{ "\0\74\0\0\0\0\0\0\0\0\0\0\0\0junk", 18, 502,
	    "SYNTAX_ERROR - cannot decode the properties of a content header" },
	{ "\0\74\0\0\0\0\0\0\0\0\0\0\x80\0\5ab", 17, 502,
	    "SYNTAX_ERROR - cannot decode the properties of a content header" },
	{ "\0\74\0\0\0\0\0\0\0\0\0\0\x20\0\0\0\0\4\1aZ\0", 22, 502,
	    "SYNTAX_ERROR - cannot decode the properties of a content header" },
};

START_TEST(bad_headers)
{
	uint8_t out[256];
	size_t n = put_publish_method(out, 1, "", "q", 0);

	n += put_frame(out + n, FRAME_HEADER, 1, headers[_i].payload, headers[_i].n);
	peer_send(&p, out, n);
	expect_close(AMQP_CONNECTION_CLOSE_METHOD, headers[_i].code, headers[_i].text);
	ck_assert_uint_eq(q->ready, 0);
}
END_TEST

START_TEST(in_flight_is_bounded)
{
	struct publish what = { .key = "q", .body = span_of(body, 60000), .chunk = 1000 };

	w.cfg.content_in_flight = 50000;
	peer_publish(&p, 1, &what);
	expect_close(AMQP_CONNECTION_CLOSE_METHOD, 506,
	    "RESOURCE_ERROR - content under way on one connection exceeds limits.content_in_flight "
	    "(50000 bytes)");
	ck_assert_uint_eq(p.c->content_in_flight, 0);
}
END_TEST

/* Over the hard limit only an eighth of the node's memory may be content that is not whole. */
START_TEST(in_flight_when_memory_is_short)
{
	uint8_t out[8192];
	size_t n = put_publish_method(out, 1, "", "q", 0);

	w.b->memory.limit = 1 << 20;
	w.b->memory.hard = 1 << 20;
	w.b->memory.clear = 1 << 20;
	n += put_header(out + n, 1, 200000, no_props);
	peer_send(&p, out, n);
	mem_add(MEM_OUTPUT, 4 << 20);
	for (size_t i = 0; i < 33 && peer_next(&p).type == 0; i++) {
		n = put_frame(out, FRAME_BODY, 1, body, 4096);
		peer_send(&p, out, n);
		if (i < 31)
			ck_assert_uint_eq(p.n, 0);
	}
	ck_assert_uint_eq(connection_channel(p.c, 1)->state, CHANNEL_CLOSING);
	ck_assert_uint_eq(p.c->content_in_flight, 0);
	mem_sub(MEM_OUTPUT, 4 << 20);
}
END_TEST

/* Every allocation that a size of the peer's decides may fail: 506, and nothing is left over. */
START_TEST(no_memory)
{
	struct publish what = { .key = "q", .body = span_of(body, 20000), .chunk = 3000 };
	bool done = false;

	for (unsigned long i = 1; !done; i++) {
		size_t n;
		uint8_t *out = put_publish(1, &what, &n);

		mem_fail_try(i, 0);
		peer_send(&p, out, n);
		done = mem_tries_to_fail != 0;
		mem_fail_try(0, 0);
		free(out);
		if (done) {
			expect_message(body, 20000, no_props);
			break;
		}
		ck_assert_uint_lt(i, 50);
		ck_assert_uint_eq(q->ready, 0);
		expect_close(AMQP_CONNECTION_CLOSE_METHOD, 506,
		    "RESOURCE_ERROR - no memory for the message");
		ck_assert_uint_eq(p.c->content_in_flight, 0);
		peer_fini(&p);
		peer_init(&p, &w);
		peer_reach(&p, CONN_OPEN);
		p.c->frame_max = p.c->payload_max = 131072;
		peer_channel(&p, 1);
	}
}
END_TEST

/* The peer goes, the channel goes, in the middle of it. */
START_TEST(cut_off)
{
	struct publish what = { .key = "q", .body = span_of(body, 20000), .chunk = 3000 };
	size_t n;
	uint8_t *out = put_publish(1, &what, &n);

	peer_send(&p, out, n - 2000);
	ck_assert_uint_gt(w.a->content_in_flight, 0);
	peer_fini(&p);
	ck_assert_uint_eq(w.a->content_in_flight, 0);
	ck_assert_uint_eq(mem_held[MEM_CONTENT], 0);
	ck_assert_uint_eq(q->ready, 0);
	free(out);
	peer_init(&p, &w);
}
END_TEST

START_TEST(interleaved)
{
	uint8_t out[4096];
	size_t n;

	peer_channel(&p, 2);
	n = put_publish_method(out, 1, "", "q", 0);
	n += put_publish_method(out + n, 2, "", "q", 0);
	n += put_header(out + n, 1, 20, no_props);
	n += put_header(out + n, 2, 20, no_props);
	n += put_frame(out + n, FRAME_BODY, 2, body + 100, 10);
	n += put_frame(out + n, FRAME_BODY, 1, body, 10);
	n += put_frame(out + n, FRAME_BODY, 1, body + 10, 10);
	peer_send(&p, out, n);
	expect_message(body, 20, no_props);
	n = put_frame(out, FRAME_BODY, 2, body + 110, 10);
	peer_send(&p, out, n);
	expect_message(body + 100, 20, no_props);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("content");
	TCase *t = tcase_create("content");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, bodies);
	tcase_add_test(t, tiny_frames);
	tcase_add_test(t, split_everywhere);
	tcase_add_loop_test(t, sizes_that_lie, 0, COUNT_OF(lies));
	tcase_add_test(t, promises);
	tcase_add_loop_test(t, bad_headers, 0, COUNT_OF(headers));
	tcase_add_test(t, in_flight_is_bounded);
	tcase_add_test(t, in_flight_when_memory_is_short);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, cut_off);
	tcase_add_test(t, interleaved);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
