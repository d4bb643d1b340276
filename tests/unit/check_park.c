/* SPDX-License-Identifier: Apache-2.0
 * The memory alarm: who is parked, who may go on, in which order it all comes out again, what
 * clients are told. Memory is made short by counting some that nobody holds. */
#include <check.h>

#include "tests/unit/channel_world.h"

enum { LIMIT = 64 << 20, HIGH = LIMIT + (1 << 20), HARD = LIMIT + LIMIT / 8 };
enum { FRAMES_OF_ONE = 17 + 1 + 22 + 9 }; /* a publish of one letter to "q" */

static struct world w;
static struct peer p, other;
static struct queue *q;
static struct inbox in;
static uint64_t held;

static void
hold(uint64_t bytes)
{
	mem_sub(MEM_OUTPUT, held);
	held = bytes;
	mem_add(MEM_OUTPUT, held);
	world_turns(&w, 3);
}

static void
setup(void)
{
	world_init(&w);
	memory_init(&w.b->memory, LIMIT);
	peer_open_to_hear(&p, &w);
	peer_open_to_hear(&other, &w);
	q = world_queue(&w, "q");
}

static void
teardown(void)
{
	hold(0);
	inbox_fini(&in);
	peer_fini(&p);
	peer_fini(&other);
	ck_assert(TAILQ_EMPTY(&w.a->parked[PARK_MEMORY]));
	world_fini(&w);
	world_held_nothing();
}

static struct channel *
channel(struct peer *of, uint16_t id)
{
	return connection_channel(of->c, id);
}

static void
expect(struct peer *of, uint32_t method)
{
	struct seen s;

	peer_read(of);
	s = peer_next(of);
	ck_assert_msg(s.id == method, "expected %u.%u, got %u.%u %s", method >> 16, method & 0xffff,
	    s.id >> 16, s.id & 0xffff, s.text);
}

static void
expect_nothing(struct peer *of)
{
	struct seen s;

	peer_read(of);
	s = peer_next(of);
	ck_assert_msg(s.type == 0, "unexpected %u.%u", s.id >> 16, s.id & 0xffff);
}

static void
qos(struct peer *of, uint16_t id)
{
	peer_method(of, id, AMQP_BASIC_QOS_METHOD, "\0\0\0\0\0\0\0", 7);
}

/* The bodies of q, in order, one letter each. */
static void
expect_queue(const char *bodies)
{
	struct entry e;

	ck_assert_uint_eq(q->ready, strlen(bodies));
	for (; *bodies != '\0'; bodies++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(*msg_body(e.m), *bodies);
		msg_unref(&e.m);
	}
}

START_TEST(blocked_and_unblocked)
{
	hold(HIGH);
	ck_assert_int_eq(w.b->memory.state, MEMORY_HIGH);
	expect_nothing(&p); /* only who publishes hears of it */
	peer_text(&p, 1, "q", "a");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	ck_assert(channel(&p, 1)->is_parked);
	peer_text(&p, 2, "q", "b");
	peer_text(&p, 1, "q", "c");
	expect_nothing(&p); /* once is enough */
	expect_nothing(&other);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(w.b->stats.parked, 2);
	ck_assert_uint_gt(mem_held[MEM_INPUT], 0);
	hold(0);
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_nothing(&p);
	ck_assert_uint_eq(p.c->parked_bytes, 0);
	expect_queue("acb");
	hold(HIGH); /* and once again */
	peer_text(&p, 1, "q", "d");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	hold(0);
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_queue("d");
}
END_TEST

/* What stands behind a publish waits with it; another channel goes on. */
START_TEST(order_within_a_channel)
{
	struct channel *ch = channel(&p, 1);

	peer_text(&other, 1, "q", "x");
	peer_consume(&p, 1, "q", "t", false);
	inbox_fill(&in, &p);
	peer_ack(&p, 1, 1);
	hold(HIGH);
	peer_text(&p, 1, "q", "a");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	qos(&p, 1);
	expect_nothing(&p);
	qos(&p, 2);
	expect(&p, AMQP_BASIC_QOS_OK_METHOD);
	peer_method(&p, 1, AMQP_BASIC_CANCEL_METHOD, "\1t\0", 3);
	expect_nothing(&p);
	ck_assert(ch->is_parked);
	hold(0);
	inbox_fini(&in);
	inbox_fill(&in, &p);
	(void)inbox_method(&in, AMQP_BASIC_DELIVER_METHOD);
	(void)inbox_next(&in);
	(void)inbox_next(&in);
	(void)inbox_method(&in, AMQP_BASIC_QOS_OK_METHOD);
	(void)inbox_method(&in, AMQP_BASIC_CANCEL_OK_METHOD);
	(void)inbox_method(&in, AMQP_CONNECTION_UNBLOCKED_METHOD);
	inbox_empty(&in);
}
END_TEST

/* As many publishes as deliveries held or got since; the next one waits for the next delivery. */
START_TEST(allowance)
{
	struct queue *out = world_queue(&w, "out");
	struct channel *ch = channel(&p, 1);

	peer_text(&other, 1, "q", "1");
	peer_text(&other, 1, "q", "2");
	peer_method(&p, 1, AMQP_BASIC_QOS_METHOD, "\0\0\0\0\0\2\0", 7);
	peer_consume(&p, 1, "q", "t", false);
	inbox_fill(&in, &p);
	for (char *c = (char[]){ "3456789" }; *c != '\0'; c++)
		peer_text(&other, 1, "q", (char[]){ *c, '\0' });
	ck_assert_uint_eq(session_unacked(&ch->session), 2);
	hold(HIGH);
	for (uint64_t tag = 1; tag <= 4;
	     tag++) { /* publish the result, then ack: goes on as long as one likes */
		peer_text(&p, 1, "out", "r");
		ck_assert(!ch->is_parked);
		ck_assert_uint_eq(out->ready, tag);
		peer_ack(&p, 1, tag);
	}
	inbox_fill(&in, &p);
	ck_assert_uint_eq(session_unacked(&ch->session), 2);
	peer_text(&p, 1, "out", "r");
	peer_text(&p, 1, "out", "r");
	ck_assert_uint_eq(out->ready, 6);
	peer_text(&p, 1, "out", "r"); /* two held, two made of them */
	ck_assert(ch->is_parked);
	ck_assert_uint_eq(out->ready, 6);
	hold(0);
	ck_assert_uint_eq(out->ready, 7);
	hold(HIGH); /* the count begins anew: it holds two */
	peer_text(&p, 1, "out", "r");
	peer_text(&p, 1, "out", "r");
	ck_assert_uint_eq(out->ready, 9);
	peer_text(&p, 1, "out", "r");
	ck_assert(ch->is_parked);
}
END_TEST

/* A delivery to a parked channel lets it go on by one. */
START_TEST(delivery_to_a_parked_channel)
{
	struct queue *out = world_queue(&w, "out");
	struct channel *ch = channel(&p, 1);

	peer_consume(&p, 1, "q", "t", true);
	hold(HIGH);
	peer_text(&other, 1, "out", "r"); /* parked before it */
	peer_text(&p, 1, "out", "r");
	peer_text(&p, 1, "out", "r");
	ck_assert(ch->is_parked);
	ck_assert_uint_eq(out->ready, 0);
	queue_publish(q, ({
		struct msg *m = msg_try_new(3 + 22);
		memcpy(m->wire, "\0\0\316\2\0\1\0\0\0\16\0\74\0\0\0\0\0\0\0\0\0\0\0\0\316", 25);
		m->names_len = 3;
		m->meta_len = 25;
		m;
	}),
	    0);
	world_turns(&w, 3);
	ck_assert_uint_eq(out->ready, 1);
	ck_assert(ch->is_parked);
	ck_assert(channel(&other, 1)->is_parked);
}
END_TEST

START_TEST(hard_limit)
{
	struct queue *out = world_queue(&w, "out");
	struct seen s;

	peer_text(&other, 1, "q", "1");
	peer_consume(&p, 1, "q", "t", false);
	inbox_fill(&in, &p);
	if (_i == 0) { /* parked before, for what was over its allowance */
		hold(HIGH);
		peer_text(&p, 1, "out", "a");
		peer_text(&p, 1, "out", "b");
		expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
		ck_assert_uint_eq(out->ready, 1);
	}
	peer_text(&other, 2, "out", "x");
	hold(HARD);
	ck_assert_int_eq(w.b->memory.state, MEMORY_HARD);
	if (_i == 1)
		peer_text(&p, 1, "out", "a");
	world_turns(&w, 2);
	peer_read(&p);
	s = peer_next(&p);
	ck_assert_uint_eq(s.id, AMQP_CHANNEL_CLOSE_METHOD);
	ck_assert_str_eq(s.text,
	    "PRECONDITION_FAILED - memory is short: the channel publishes while it holds 1 "
	    "unacknowledged messages");
	ck_assert(s.class_id == 60 && s.method_id == 40);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(q->unacked, 0);
	ck_assert_uint_eq(w.b->stats.alarm_closed, 1);
	/* who holds nothing waits */
	peer_text(&other, 1, "out", "y");
	expect(&other, AMQP_CONNECTION_BLOCKED_METHOD);
	expect_nothing(&other);
	ck_assert(channel(&other, 1)->is_parked);
	/* settling and closing are heard */
	peer_method(&p, 1, AMQP_CHANNEL_CLOSE_OK_METHOD, NULL, 0);
	qos(&p, 2);
	expect(&p, AMQP_BASIC_QOS_OK_METHOD);
	hold(0);
	/* the connection whose channel was closed is told as well, if it was told before */
	if (_i == 0)
		expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_nothing(&p);
	expect(&other, AMQP_CONNECTION_UNBLOCKED_METHOD);
}
END_TEST

/* 256 KiB of frames a connection, then it is not read; it goes on with the rest afterwards. */
START_TEST(kept_frames_are_bounded)
{
	uint8_t body[3000] = { 0 };
	struct publish what = { .key = "q", .body = span_of(body, sizeof body) };
	size_t n;
	uint8_t *out = put_publish(1, &what, &n), *many = xmalloc(400 * n);

	for (unsigned i = 0; i < 400; i++)
		memcpy(many + i * n, out, n);
	hold(HIGH);
	for (size_t sent = 0; sent < 400 * n;) {
		ssize_t took = send(p.fd, many + sent, 400 * n - sent, MSG_NOSIGNAL);

		world_turns(&w, 2);
		if (took > 0) {
			sent += (size_t)took;
		} else {
			ck_assert_uint_eq(p.c->io->paused, PAUSE_PARKED);
			ck_assert_uint_ge(p.c->parked_bytes, 256 << 10);
			ck_assert_uint_le(p.c->parked_bytes, (256 << 10) + n);
			ck_assert_uint_eq(q->ready, 0);
			hold(0);
		}
	}
	hold(0);
	world_turns(&w, 20);
	ck_assert_uint_eq(q->ready, 400);
	ck_assert_uint_eq(p.c->io->paused, 0);
	free(out);
	free(many);
}
END_TEST

/* Where what is kept is a good part of the memory, those who only publish are stopped soon. */
START_TEST(kept_frames_are_few_when_many_keep_some)
{
	uint8_t body[3000] = { 0 };
	struct publish what = { .key = "q", .body = span_of(body, sizeof body) };

	peer_consume(&other, 2, "q", "t", false);
	mem_add(MEM_INPUT, LIMIT / 16);
	hold(HIGH);
	for (unsigned i = 0; i < 20; i++) {
		peer_publish(&p, 1, &what);
		peer_publish(&other, 1, &what);
	}
	ck_assert_uint_eq(p.c->io->paused, PAUSE_PARKED);
	ck_assert_uint_lt(p.c->parked_bytes, 20 << 10);
	ck_assert_uint_eq(other.c->io->paused, 0);
	ck_assert_uint_gt(other.c->parked_bytes, 60000);
	mem_sub(MEM_INPUT, LIMIT / 16);
	hold(0);
	world_turns(&w, 20);
	ck_assert_uint_eq(q->stats.publish, 40);
	ck_assert_uint_eq(p.c->io->paused, 0);
}
END_TEST

/* What a parked channel kept may close it, and open it again. */
START_TEST(close_and_open_among_the_kept)
{
	hold(HIGH);
	peer_text(&p, 1, "q", "a");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	peer_method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	peer_method(&p, 1, AMQP_CHANNEL_OPEN_METHOD, "", 1);
	peer_text(&p, 1, "q", "b");
	expect_nothing(&p);
	hold(0);
	expect(&p, AMQP_CHANNEL_CLOSE_OK_METHOD);
	expect(&p, AMQP_CHANNEL_OPEN_OK_METHOD);
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_queue("ab");
}
END_TEST

/* A mistake among them ends the channel, or the connection; the rest is dropped. */
START_TEST(mistakes_among_the_kept)
{
	hold(HIGH);
	peer_text(&p, 1, "q", "a");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	if (_i == 0)
		peer_ack(&p, 1, 99);
	else
		peer_method(&p, 1, AMQP_BASIC_QOS_METHOD, "\0\0\0\1\0\0\0", 7);
	peer_text(&p, 1, "q", "b");
	peer_text(&p, 2, "q", "c");
	hold(0);
	expect(&p, _i == 0 ? AMQP_CHANNEL_CLOSE_METHOD : AMQP_CONNECTION_CLOSE_METHOD);
	if (_i == 0)
		expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_nothing(&p);
	expect_queue(_i == 0 ? "ac" : "a");
	ck_assert_uint_eq(p.c->parked_bytes, 0);
}
END_TEST

/* Two channels wait, the second of which holds a delivery and has no allowance left. A new alarm
 * begins before they went on: its count begins anew too, and the first does not stand in its way. */
START_TEST(allowance_of_a_new_alarm)
{
	struct queue *out = world_queue(&w, "out");
	struct channel *ch = channel(&p, 1);

	peer_text(&other, 1, "q", "1");
	peer_consume(&p, 1, "q", "t", false);
	inbox_fill(&in, &p);
	hold(HIGH);
	peer_text(&other, 1, "out", "x");
	peer_text(&p, 1, "out", "r");
	peer_text(&p, 1, "out", "r");
	peer_ack(&p, 1, 1);
	ck_assert(ch->is_parked);
	ck_assert_uint_eq(out->ready, 1);
	if (_i == 0) {
		mem_sub(MEM_OUTPUT, held);
		ck_assert(memory_check(&w.b->memory, w.b->now_ms));
		mem_add(MEM_OUTPUT, held);
		ck_assert(memory_check(&w.b->memory, w.b->now_ms));
		world_turns(&w, 3);
		ck_assert(channel(&other, 1)->is_parked);
		ck_assert_uint_eq(out->ready, 2);
		ck_assert_uint_eq(session_unacked(&ch->session), 0);
	}
	hold(0);
	ck_assert_uint_eq(out->ready, 3);
}
END_TEST

/* One that may go on, but is not read because of its output, goes on when there is room again. */
START_TEST(goes_on_when_its_output_has_room)
{
	struct queue *out = world_queue(&w, "out");
	struct channel *ch = channel(&p, 1);

	peer_consume(&p, 1, "q", "t", true);
	peer_forget(&p);
	hold(HIGH);
	peer_text(&other, 1, "out", "x");
	peer_text(&p, 1, "out", "r");
	ck_assert(ch->is_parked);
	transport_pause(p.c->io, PAUSE_OUTPUT);
	session_allow(&ch->session, 1);
	park_on_delivery(ch);
	world_turns(&w, 3);
	ck_assert_uint_eq(out->ready, 0);
	p.c->io->ops->on_room(p.c);
	world_turns(&w, 3);
	ck_assert_uint_eq(out->ready, 1);
	ck_assert(channel(&other, 1)->is_parked);
}
END_TEST

/* The bytes that one turn handles may end between close and open. */
START_TEST(open_beyond_the_share_of_a_turn)
{
	static uint8_t body[120000];
	struct publish what = { .key = "q", .body = span_of(body, sizeof body) };
	size_t n, left = 256 << 10;

	free(put_publish(1, &what, &n));
	hold(HIGH);
	peer_publish(&other, 1, &what);
	peer_publish(&other, 1, &what);
	left -= 2 * n;
	what.body.n -= n - left + 10; /* together 10 bytes less than one turn's */
	peer_publish(&p, 1, &what);
	peer_method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	peer_method(&p, 1, AMQP_CHANNEL_OPEN_METHOD, "", 1);
	peer_text(&p, 1, "q", "b");
	ck_assert_uint_eq(p.c->parked_bytes, left - 10 + 19 + 13 + FRAMES_OF_ONE);
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	hold(0);
	world_turns(&w, 5);
	expect(&p, AMQP_CHANNEL_CLOSE_OK_METHOD);
	expect(&p, AMQP_CHANNEL_OPEN_OK_METHOD);
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	ck_assert_uint_eq(q->ready, 4);
}
END_TEST

/* connection.close waits behind what was published before it. */
START_TEST(close_waits_for_the_kept)
{
	hold(HIGH);
	peer_text(&p, 1, "q", "a");
	peer_text(&p, 2, "q", "b");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	peer_method(&p, 0, AMQP_CONNECTION_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	expect_nothing(&p);
	ck_assert_uint_eq(p.c->io->paused, PAUSE_PARKED);
	if (_i == 0) {
		hold(0);
		expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
		expect(&p, AMQP_CONNECTION_CLOSE_OK_METHOD);
		expect_queue("ab");
		ck_assert_uint_eq(w.b->stats.parked_dropped, 0);
	} else { /* the client did not wait so long */
		peer_fini(&p);
		ck_assert_uint_eq(w.b->stats.parked_dropped, 2 * FRAMES_OF_ONE);
		ck_assert_uint_eq(w.a->connection_count, 1);
		hold(0);
		ck_assert_uint_eq(q->ready, 0);
		peer_open_to_hear(&p, &w);
	}
}
END_TEST

/* Not where the connection holds deliveries: they may be what memory waits for. */
START_TEST(close_gives_deliveries_back)
{
	peer_text(&other, 1, "q", "1");
	peer_consume(&p, 2, "q", "t", false);
	inbox_fill(&in, &p);
	hold(HIGH);
	peer_text(&p, 1, "q", "a");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	peer_method(&p, 0, AMQP_CONNECTION_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	expect(&p, AMQP_CONNECTION_CLOSE_OK_METHOD);
	ck_assert_uint_eq(w.b->stats.parked_dropped, FRAMES_OF_ONE);
	expect_queue("1");
}
END_TEST

/* We close a channel that its client has closed too, behind a publish: both closes are answered. */
START_TEST(hard_limit_and_a_kept_close)
{
	peer_text(&other, 1, "q", "1");
	peer_consume(&p, 1, "q", "t", false);
	inbox_fill(&in, &p);
	hold(HIGH);
	peer_text(&p, 1, "out", "a");
	peer_text(&p, 1, "out", "b");
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	peer_method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	expect_nothing(&p);
	hold(HARD);
	expect(&p, AMQP_CHANNEL_CLOSE_METHOD);
	expect(&p, AMQP_CHANNEL_CLOSE_OK_METHOD);
	expect_nothing(&p);
	peer_method(&p, 1, AMQP_CHANNEL_CLOSE_OK_METHOD, NULL, 0);
	ck_assert_ptr_null(channel(&p, 1));
}
END_TEST

START_TEST(the_peer_goes)
{
	hold(HIGH);
	peer_text(&p, 1, "q", "a");
	peer_text(&p, 2, "q", "b");
	peer_fini(&p);
	ck_assert(TAILQ_EMPTY(&w.a->parked[PARK_MEMORY]));
	ck_assert_uint_eq(mem_held[MEM_INPUT], 0);
	ck_assert_uint_eq(w.b->stats.parked_dropped, 2 * FRAMES_OF_ONE);
	hold(0);
	ck_assert_uint_eq(q->ready, 0);
	peer_open_to_hear(&p, &w);
}
END_TEST

/* A publish that began before the alarm is finished; the next one is parked. */
START_TEST(content_under_way)
{
	uint8_t out[512];
	size_t n = put_publish_method(out, 1, "", "q", 0);

	n += put_header(out + n, 1, 1, no_props);
	peer_send(&p, out, n);
	hold(HIGH);
	n = put_frame(out, FRAME_BODY, 1, "a", 1);
	peer_send(&p, out, n);
	expect_queue("a");
	peer_text(&p, 1, "q", "b");
	ck_assert(channel(&p, 1)->is_parked);
}
END_TEST

START_TEST(no_memory_to_keep)
{
	hold(HIGH);
	mem_fail_try(1, 1);
	peer_text(&p, 1, "q", "a");
	mem_fail_try(0, 0);
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	peer_read(&p);
	ck_assert_str_eq(
	    peer_next(&p).text, "RESOURCE_ERROR - no memory for frames of a blocked channel");
	ck_assert(TAILQ_EMPTY(&w.a->parked[PARK_MEMORY]));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("park");
	TCase *t = tcase_create("park");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, blocked_and_unblocked);
	tcase_add_test(t, order_within_a_channel);
	tcase_add_test(t, allowance);
	tcase_add_test(t, delivery_to_a_parked_channel);
	tcase_add_loop_test(t, hard_limit, 0, 2);
	tcase_add_test(t, kept_frames_are_bounded);
	tcase_add_test(t, kept_frames_are_few_when_many_keep_some);
	tcase_add_test(t, close_and_open_among_the_kept);
	tcase_add_loop_test(t, mistakes_among_the_kept, 0, 2);
	tcase_add_loop_test(t, allowance_of_a_new_alarm, 0, 2);
	tcase_add_test(t, goes_on_when_its_output_has_room);
	tcase_add_test(t, open_beyond_the_share_of_a_turn);
	tcase_add_loop_test(t, close_waits_for_the_kept, 0, 2);
	tcase_add_test(t, close_gives_deliveries_back);
	tcase_add_test(t, hard_limit_and_a_kept_close);
	tcase_add_test(t, the_peer_goes);
	tcase_add_test(t, content_under_way);
	tcase_add_test(t, no_memory_to_keep);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
