/* SPDX-License-Identifier: Apache-2.0
 * Channels: confirms that wait for room and come before the end of the channel; what an error, a
 * close or a hang-up leaves behind; names; who is told of a consumer's cancellation. */
#include <check.h>

#include "tests/unit/channel_world.h"

static struct world w;
static struct peer p;
static struct queue *q;
static struct inbox in;

static void
setup(void)
{
	world_init(&w);
	w.cfg.output = 100000;
	w.cfg.output_max = 400000;
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	peer_channel(&p, 1);
	peer_channel(&p, 2);
	q = world_queue(&w, "q");
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&p);
	ck_assert(TAILQ_EMPTY(&w.a->confirming));
	world_fini(&w);
	world_held_nothing();
}

static void
confirm_mode(uint16_t id)
{
	peer_method(&p, id, AMQP_CONFIRM_SELECT_METHOD, "", 1);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_CONFIRM_SELECT_OK_METHOD);
}

static void
expect_ack(uint64_t tag, bool multiple)
{
	struct frame_seen f = inbox_method(&in, AMQP_BASIC_ACK_METHOD);

	ck_assert_uint_eq(f.payload.n, 13);
	ck_assert_uint_eq(get_be64(f.payload.p + 4), tag);
	ck_assert_uint_eq(f.payload.p[12], multiple);
}

/* One ack for all of a turn; returns before it. */
START_TEST(confirms)
{
	struct publish what = { .key = "nowhere", .bits = 1, .body = SPAN_LIT("m") };
	size_t n, m;
	uint8_t *routed = put_publish(1, &(struct publish){ .key = "q" }, &n);
	uint8_t *lost = put_publish(1, &what, &m), out[1024];

	confirm_mode(1);
	memcpy(out, routed, n);
	memcpy(out + n, lost, m);
	memcpy(out + n + m, routed, n);
	peer_send(&p, out, n + m + n);
	inbox_fill(&in, &p);
	free(inbox_content(&in, AMQP_BASIC_RETURN_METHOD).body);
	expect_ack(3, true);
	peer_send(&p, routed, n);
	inbox_fill(&in, &p);
	expect_ack(4, false);
	inbox_empty(&in);
	ck_assert_uint_eq(w.b->stats.confirm, 4);
	free(routed);
	free(lost);
}
END_TEST

/* A client that writes without reading gets its confirms when it reads. */
START_TEST(confirms_wait_for_room)
{
	uint8_t body[5000] = { 0 };
	struct publish what = { .key = "q", .body = span_of(body, sizeof body) };
	struct frame_seen f;
	uint64_t sent = 0, confirmed = 0;
	size_t n;
	uint8_t *out;

	confirm_mode(1);
	peer_consume(&p, 2, "q", "t", true);
	peer_forget(&p);
	out = put_publish(1, &what, &n);
	while (!p.c->client.output_full) {
		ck_assert_int_eq(send(p.fd, out, n, MSG_NOSIGNAL), n);
		world_turns(&w, 2);
		ck_assert_uint_lt(++sent, 1000);
	}
	for (unsigned i = 0; i < 50; i++) {
		ck_assert_int_eq(send(p.fd, out, n, MSG_NOSIGNAL), n);
		world_turns(&w, 2);
		sent++;
	}
	ck_assert_uint_lt(p.c->io->pending, w.cfg.output + 10000);
	ck_assert_uint_gt(confirm_pending(&connection_channel(p.c, 1)->confirms), 0);
	inbox_fill(&in, &p);
	while ((f = inbox_next(&in)).type != 0) {
		if (f.id == AMQP_BASIC_ACK_METHOD && f.type == FRAME_METHOD) {
			ck_assert_uint_gt(get_be64(f.payload.p + 4), confirmed);
			confirmed = get_be64(f.payload.p + 4);
		}
	}
	ck_assert_uint_eq(confirmed, sent);
	ck_assert_uint_eq(w.b->stats.confirm, sent);
	ck_assert_uint_eq(q->ready, 0);
	free(out);
}
END_TEST

/* What was taken in is confirmed before the channel's end is told, whoever ends it. */
START_TEST(confirms_before_the_end)
{
	size_t n, m = 0;
	uint8_t *routed = put_publish(1, &(struct publish){ .key = "q" }, &n), out[1024];
	static const struct {
		uint32_t method, answer;
		const char *args;
		size_t n;
	} ends[] = {
		{ AMQP_CHANNEL_CLOSE_METHOD, AMQP_CHANNEL_CLOSE_OK_METHOD, "\0\310\0\0\0\0\0", 7 },
		{ AMQP_BASIC_ACK_METHOD, AMQP_CHANNEL_CLOSE_METHOD, "\0\0\0\0\0\0\0\11\0", 9 },
		{ AMQP_BASIC_QOS_METHOD, AMQP_CONNECTION_CLOSE_METHOD, "\0\0\0\1\0\0\0", 7 },
	};

	confirm_mode(1);
	memcpy(out, routed, n);
	memcpy(out + n, routed, n);
	m = put_method(out + 2 * n, 1, ends[_i].method, ends[_i].args, ends[_i].n);
	peer_send(&p, out, 2 * n + m);
	inbox_fill(&in, &p);
	expect_ack(2, true);
	(void)inbox_method(&in, ends[_i].answer);
	inbox_empty(&in);
	ck_assert_uint_eq(q->ready, 2);
	free(routed);
}
END_TEST

START_TEST(cancellation)
{
	p.c->client.cancel_notify = _i == 1;
	peer_consume(&p, 1, "q", "tag", false);
	peer_forget(&p);
	queue_remove(q);
	inbox_fill(&in, &p);
	if (_i == 1) {
		struct frame_seen f = inbox_method(&in, AMQP_BASIC_CANCEL_METHOD);

		ck_assert_uint_eq(f.payload.n, 9);
		ck_assert_mem_eq(f.payload.p + 4, "\3tag\1", 5);
	}
	inbox_empty(&in);
	/* the tag is free again */
	q = world_queue(&w, "q");
	peer_consume(&p, 1, "q", "tag", false);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_BASIC_CONSUME_OK_METHOD);
}
END_TEST

/* Deliveries come back in their places when the client goes in the middle of them. */
START_TEST(hang_up_in_the_middle)
{
	static const char order[] = "abcdefgh";
	struct entry e;

	for (const char *c = order; *c != '\0'; c++)
		peer_text(&p, 2, "q", (char[]){ *c, '\0' });
	peer_method(&p, 1, AMQP_BASIC_QOS_METHOD, "\0\0\0\0\0\5\0", 7);
	peer_consume(&p, 1, "q", "t", false);
	ck_assert_uint_eq(q->unacked, 5);
	peer_ack(&p, 1, 2);
	peer_fini(&p);
	ck_assert_uint_eq(q->ready, 7);
	for (const char *c = "acdefgh"; *c != '\0'; c++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(*msg_body(e.m), *c);
		ck_assert_uint_eq(e.seq_flags & ENTRY_REDELIVERED,
		    strchr("acdef", *c) != NULL ? ENTRY_REDELIVERED : 0);
		msg_unref(&e.m);
	}
	peer_init(&p, &w);
}
END_TEST

/* Line ends are taken out of names where they are declared; 255 bytes are fine everywhere. */
START_TEST(names)
{
	uint8_t args[300] = { 0 }, *n = args + 2;
	struct queue *made;
	char name[256];

	n += put_short(n, "x\r\ny\n");
	memset(n, 0, 5);
	peer_method(&p, 1, AMQP_QUEUE_DECLARE_METHOD, args, (size_t)(n + 5 - args));
	ck_assert_uint_eq(peer_next(&p).id, AMQP_QUEUE_DECLARE_OK_METHOD);
	ck_assert_ptr_nonnull(queue_find(vhost_find(w.b, SPAN_LIT("/")), SPAN_LIT("xy")));
	memset(name, 'n', 255);
	name[255] = '\0';
	made = world_queue(&w, name);
	peer_consume(&p, 1, name, name, false);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_BASIC_CONSUME_OK_METHOD);
	peer_text(&p, 2, name, "m");
	inbox_fill(&in, &p);
	free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	ck_assert_uint_eq(made->unacked, 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("channel");
	TCase *t = tcase_create("channel");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, confirms);
	tcase_add_test(t, confirms_wait_for_room);
	tcase_add_loop_test(t, confirms_before_the_end, 0, 3);
	tcase_add_loop_test(t, cancellation, 0, 2);
	tcase_add_test(t, hang_up_in_the_middle);
	tcase_add_test(t, names);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
