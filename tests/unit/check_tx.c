/* SPDX-License-Identifier: Apache-2.0
 * Transactions: what commit and rollback do to publishes and settlements, their bounds, and that
 * nothing stays. */
#include "amqp/tx.h"

#include <check.h>

#include "tests/unit/channel_world.h"

static struct world w;
static struct peer p;
static struct channel *ch;
static struct queue *q;
static struct inbox in;

static void
setup(void)
{
	world_init(&w);
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	p.c->frame_max = p.c->payload_max = 131072;
	peer_channel(&p, 1);
	peer_channel(&p, 2);
	ch = connection_channel(p.c, 1);
	q = world_queue(&w, "q");
	peer_method(&p, 1, AMQP_TX_SELECT_METHOD, NULL, 0);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_TX_SELECT_OK_METHOD);
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&p);
	world_fini(&w);
	world_held_nothing();
}

static void
end(uint32_t method)
{
	peer_method(&p, 1, method, NULL, 0);
	ck_assert_uint_eq(peer_next(&p).id, method + 1);
}

/* n messages are delivered to channel 1 and wait there. */
static void
hold(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		peer_text(&p, 2, "q", "m");
	peer_consume(&p, 1, "q", "t", false);
	inbox_fill(&in, &p);
	(void)inbox_method(&in, AMQP_BASIC_CONSUME_OK_METHOD);
	for (unsigned i = 0; i < n; i++)
		free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	inbox_empty(&in);
	ck_assert_uint_eq(session_unacked(&ch->session), n);
}

START_TEST(publishes_wait)
{
	for (unsigned i = 0; i < 5; i++)
		peer_text(&p, 1, "q", "m");
	ck_assert_uint_eq(q->ready, 0);
	end(AMQP_TX_COMMIT_METHOD);
	ck_assert_uint_eq(q->ready, 5);
	peer_text(&p, 1, "q", "gone");
	end(AMQP_TX_ROLLBACK_METHOD);
	end(AMQP_TX_COMMIT_METHOD);
	ck_assert_uint_eq(q->ready, 5);
	ck_assert_uint_eq(mem_held[MEM_CONTENT], 0);
}
END_TEST

/* The queue it was routed to is gone at commit; another one of the same name gets nothing. */
START_TEST(queue_is_its_id)
{
	struct publish what = { .key = "q", .bits = 1, .body = SPAN_LIT("m") };

	peer_publish(&p, 1, &what);
	peer_text(&p, 1, "q", "not mandatory");
	queue_remove(q);
	q = world_queue(&w, "q");
	peer_method(&p, 1, AMQP_TX_COMMIT_METHOD, NULL, 0);
	inbox_fill(&in, &p);
	free(inbox_content(&in, AMQP_BASIC_RETURN_METHOD).body);
	(void)inbox_method(&in, AMQP_TX_COMMIT_OK_METHOD);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(w.b->stats.return_unroutable, 1);
	ck_assert_uint_eq(w.b->stats.drop_unroutable, 1);
}
END_TEST

START_TEST(time_to_live_begins_at_commit)
{
	struct publish what = { .key = "q",
		.props = SPAN_LIT("\1\0\4"
		                  "5000"),
		.body = SPAN_LIT("m") };
	struct entry e;

	peer_publish(&p, 1, &what);
	world_pass(&w, 4000);
	end(AMQP_TX_COMMIT_METHOD);
	ck_assert_uint_eq(q->ready, 1);
	world_pass(&w, 4000);
	ck_assert(queue_pop(q, &e));
	ck_assert_uint_eq(e.due_ms, w.l->now_ms + 1000);
	msg_unref(&e.m);
}
END_TEST

/* Every kind of settlement, single and multiple, in one transaction. */
START_TEST(settlements)
{
	hold(10);
	peer_ack(&p, 1, 2);
	peer_settle(&p, 1, AMQP_BASIC_NACK_METHOD, 4, 1 | 2); /* 1, 3, 4 requeued */
	peer_settle(&p, 1, AMQP_BASIC_REJECT_METHOD, 6, 0);   /* dropped */
	peer_settle(&p, 1, AMQP_BASIC_ACK_METHOD, 7, 1);      /* 5, 7 */
	ck_assert_uint_eq(session_unacked(&ch->session), 3);
	ck_assert_uint_eq(q->unacked, 10);
	if (_i == 0) {
		end(AMQP_TX_ROLLBACK_METHOD);
		ck_assert_uint_eq(session_unacked(&ch->session), 10);
		ck_assert_uint_eq(q->unacked, 10);
		ck_assert_uint_eq(q->ready, 0);
		peer_settle(&p, 1, AMQP_BASIC_ACK_METHOD, 10, 1);
		end(AMQP_TX_COMMIT_METHOD);
		ck_assert_uint_eq(q->unacked, 0);
		return;
	}
	if (_i == 1) { /* the channel goes: all come back */
		peer_method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
		ck_assert_uint_eq(q->unacked, 0);
		ck_assert_uint_eq(q->ready, 10);
		return;
	}
	peer_method(&p, 1, AMQP_TX_COMMIT_METHOD, NULL, 0);
	inbox_fill(&in, &p);
	(void)inbox_method(&in, AMQP_TX_COMMIT_OK_METHOD);
	for (unsigned i = 0; i < 3; i++)
		free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	inbox_empty(&in);
	ck_assert_uint_eq(q->unacked, 6);
	ck_assert_uint_eq(w.b->stats.ack, 3);
	ck_assert_uint_eq(w.b->stats.requeue, 3);
	ck_assert_uint_eq(w.b->stats.reject, 1);
}
END_TEST

START_TEST(unknown_tags)
{
	struct seen s;

	hold(3);
	peer_ack(&p, 1, 2);
	peer_ack(&p, 1, 2);
	s = peer_next(&p);
	ck_assert_uint_eq(s.id, AMQP_CHANNEL_CLOSE_METHOD);
	ck_assert_str_eq(s.text, "PRECONDITION_FAILED - unknown delivery tag 2");
	ck_assert_uint_eq(q->ready, 3);
}
END_TEST

static void
expect_too_large(const char *text)
{
	struct seen s;

	peer_read(&p);
	s = peer_next(&p);
	ck_assert_uint_eq(s.id, AMQP_CHANNEL_CLOSE_METHOD);
	ck_assert_uint_eq(s.code, 406);
	ck_assert_str_eq(s.text, text);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert_uint_eq(mem_held[MEM_CONTENT], 0);
}

START_TEST(too_many)
{
	struct publish what = { .key = "q" };
	enum { BATCH = 1000 };
	size_t n;
	uint8_t *one = put_publish(1, &what, &n), *out = xmalloc(n * BATCH);

	for (unsigned i = 0; i < BATCH; i++)
		memcpy(out + i * n, one, n);
	for (unsigned i = 0; i < 65; i++)
		peer_send(&p, out, n * BATCH);
	peer_send(&p, out, n * 535);
	ck_assert_uint_eq(p.n, 0);
	peer_send(&p, out, n);
	expect_too_large("PRECONDITION_FAILED - transaction too large: more than 65535 publishes "
	                 "and acknowledgements");
	free(one);
	free(out);
}
END_TEST

/* The entries of a commit are counted when its publishes come: these can be held back. */
START_TEST(entries_to_come_count)
{
	uint64_t before = mem_held[MEM_CONTENT];

	for (unsigned i = 0; i < 10; i++)
		peer_text(&p, 1, "q", "m");
	ck_assert_uint_ge(mem_held[MEM_CONTENT] - before, 10 * sizeof(struct entry) + 10 * 8);
	end(AMQP_TX_COMMIT_METHOD);
	ck_assert_uint_eq(mem_held[MEM_CONTENT], before);
	ck_assert_uint_eq(q->ready, 10);
}
END_TEST

START_TEST(too_large)
{
	uint8_t *body = xcalloc(1, 1 << 20);
	struct publish what = { .key = "q", .body = span_of(body, 1 << 20), .chunk = 131064 };

	for (unsigned i = 0; i < 63; i++)
		peer_publish(&p, 1, &what);
	ck_assert_uint_eq(p.n, 0);
	peer_publish(&p, 1, &what);
	expect_too_large(
	    "PRECONDITION_FAILED - transaction too large: more than 67108864 bytes of messages");
	free(body);
}
END_TEST

START_TEST(no_memory)
{
	size_t n;
	struct publish what = { .key = "q", .body = SPAN_LIT("m") };
	uint8_t *out = put_publish(1, &what, &n);

	mem_fail_try(2, 0); /* the first is the message */
	peer_send(&p, out, n);
	ck_assert_uint_eq(mem_tries_to_fail, 0);
	free(out);
	ck_assert_str_eq(peer_next(&p).text, "RESOURCE_ERROR - no memory for the transaction");
}
END_TEST

START_TEST(modes)
{
	peer_method(&p, 1, AMQP_TX_SELECT_METHOD, NULL, 0);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_TX_SELECT_OK_METHOD);
	peer_method(&p, 2, AMQP_TX_COMMIT_METHOD, NULL, 0);
	ck_assert_str_eq(peer_next(&p).text, "PRECONDITION_FAILED - channel is not transactional");
	peer_method(&p, 1, AMQP_CONFIRM_SELECT_METHOD, "", 1);
	ck_assert_str_eq(
	    peer_next(&p).text, "PRECONDITION_FAILED - cannot switch from tx to confirm mode");
	peer_channel(&p, 3);
	peer_method(&p, 3, AMQP_CONFIRM_SELECT_METHOD, "", 1);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_CONFIRM_SELECT_OK_METHOD);
	peer_method(&p, 3, AMQP_TX_SELECT_METHOD, NULL, 0);
	ck_assert_str_eq(
	    peer_next(&p).text, "PRECONDITION_FAILED - cannot switch from confirm to tx mode");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tx");
	TCase *t = tcase_create("tx");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, publishes_wait);
	tcase_add_test(t, queue_is_its_id);
	tcase_add_test(t, time_to_live_begins_at_commit);
	tcase_add_loop_test(t, settlements, 0, 3);
	tcase_add_test(t, unknown_tags);
	tcase_add_test(t, too_many);
	tcase_add_test(t, entries_to_come_count);
	tcase_add_test(t, too_large);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, modes);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
