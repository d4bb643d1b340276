/* SPDX-License-Identifier: Apache-2.0
 * Direct reply-to: addresses that were made, altered, outlived, taken to another vhost; the output
 * bound. */
#include "amqp/reply_to.h"

#include <check.h>

#include "tests/unit/channel_world.h"

static struct world w;
static struct peer asker, server;
static struct inbox in;
static char address[200];
static struct vhost *vh;

/* A request goes to the queue; its reply-to is the address. */
static void
ask(void)
{
	static const char props[] = "\2\0\25" REPLY_TO_QUEUE;
	struct publish what = { .key = "q", .props = span_of(props, sizeof props - 1) };
	struct queue *q = queue_find(vh, SPAN_LIT("q"));
	struct props pr;
	struct entry e;

	peer_publish(&asker, 1, &what);
	ck_assert(queue_pop(q, &e));
	ck_assert_int_eq(props_scan(msg_props(e.m), &pr), 0);
	ck_assert_uint_lt(pr.reply_to.n, sizeof address);
	memcpy(address, pr.reply_to.p, pr.reply_to.n);
	address[pr.reply_to.n] = '\0';
	msg_unref(&e.m);
}

static void
setup(void)
{
	world_init(&w);
	vh = vhost_find(w.b, SPAN_LIT("/"));
	peer_init(&asker, &w);
	peer_reach(&asker, CONN_OPEN);
	peer_channel(&asker, 1);
	peer_init(&server, &w);
	peer_reach(&server, CONN_OPEN);
	peer_channel(&server, 1);
	(void)world_queue(&w, "q");
	peer_consume(&asker, 1, REPLY_TO_QUEUE, "tag", true);
	ck_assert_uint_eq(peer_next(&asker).id, AMQP_BASIC_CONSUME_OK_METHOD);
	ask();
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&asker);
	peer_fini(&server);
	ck_assert_ptr_null(w.a->reply_to);
	world_fini(&w);
	world_held_nothing();
}

static void
reply(const char *to)
{
	struct publish what = { .key = to, .bits = 1, .body = SPAN_LIT("answer") };

	peer_publish(&server, 1, &what);
}

/* Nobody got it; who sent it gets it back. */
static void
expect_nowhere(const char *to)
{
	ck_assert(!reply_to_exists(w.a, vh, span_str(to)));
	reply(to);
	world_turns(&w, 2);
	peer_read(&asker);
	ck_assert_msg(asker.n == 0, "'%s' leads somewhere", to);
	peer_read(&server);
	ck_assert_uint_eq(peer_next(&server).id, AMQP_BASIC_RETURN_METHOD);
	peer_forget(&server);
}

START_TEST(there_and_back)
{
	struct content_seen c;

	ck_assert(reply_to_exists(w.a, vh, span_str(address)));
	reply(address);
	inbox_fill(&in, &asker);
	c = inbox_content(&in, AMQP_BASIC_DELIVER_METHOD);
	ck_assert(c.size == 6 && memcmp(c.body, "answer", 6) == 0);
	ck_assert_mem_eq(c.args.p, "\3tag\0\0\0\0\0\0\0\1\0\0", 14);
	free(c.body);
	ck_assert_uint_eq(w.b->stats.reply_to, 1);
	/* it is no queue, so it counts as not routed */
	inbox_fini(&in);
	inbox_fill(&in, &server);
	free(inbox_content(&in, AMQP_BASIC_RETURN_METHOD).body);
}
END_TEST

/* It stands in CC and BCC too: one message is delivered once, the next one again. */
START_TEST(named_more_than_once)
{
	uint8_t props[600] = { 0x20, 0 }, *p = props + 6;
	size_t n = strlen(address);
	struct publish what = { .key = address };

	p += put_short(p, "CC");
	*p++ = 'A';
	put_be32(p, (uint32_t)(2 * (5 + n)));
	p += 4;
	for (unsigned i = 0; i < 2; i++) {
		*p++ = 'S';
		put_be32(p, (uint32_t)n);
		memcpy(p + 4, address, n);
		p += 4 + n;
	}
	put_be32(props + 2, (uint32_t)(p - props - 6));
	what.props = span_of(props, (size_t)(p - props));
	peer_publish(&server, 1, &what);
	ck_assert_uint_eq(w.b->stats.reply_to, 1);
	peer_publish(&server, 1, &what);
	ck_assert_uint_eq(w.b->stats.reply_to, 2);
	inbox_fill(&in, &asker);
	free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	inbox_empty(&in);
}
END_TEST

/* Every character of the address counts. */
START_TEST(forged)
{
	static const char other[] = "AZaz09-_";
	char to[256];
	size_t n = strlen(address);

	for (size_t i = sizeof REPLY_TO_PREFIX - 1; i < n; i++) {
		for (size_t k = 0; k < sizeof other - 1; k++) {
			memcpy(to, address, n + 1);
			to[i] = other[k];
			if (to[i] != address[i])
				ck_assert(!reply_to_exists(w.a, vh, span_str(to)));
		}
	}
	memcpy(to, address, n + 1);
	to[n - 1] = to[n - 1] == 'A' ? 'B' : 'A';
	expect_nowhere(to);
	/* too short, too long, not base64url, nothing behind the prefix */
	for (size_t cut = sizeof REPLY_TO_PREFIX - 1; cut < n; cut++) {
		memcpy(to, address, cut);
		to[cut] = '\0';
		ck_assert(!reply_to_exists(w.a, vh, span_str(to)));
	}
	snprintf(to, sizeof to, "%sA", address);
	expect_nowhere(to);
	snprintf(to, sizeof to, "%s", address);
	to[30] = '=';
	expect_nowhere(to);
	to[30] = (char)0xc3;
	expect_nowhere(to);
	expect_nowhere(REPLY_TO_PREFIX);
	expect_nowhere(REPLY_TO_QUEUE);
}
END_TEST

START_TEST(outlived)
{
	char old[sizeof address];

	memcpy(old, address, sizeof old);
	if (_i == 0) { /* cancel; a new consumer has another address */
		peer_method(&asker, 1, AMQP_BASIC_CANCEL_METHOD, "\3tag\0", 5);
		ck_assert_uint_eq(peer_next(&asker).id, AMQP_BASIC_CANCEL_OK_METHOD);
		expect_nowhere(old);
		peer_consume(&asker, 1, REPLY_TO_QUEUE, "tag", true);
		peer_forget(&asker);
		ask();
		ck_assert_str_ne(old, address);
		ck_assert(reply_to_exists(w.a, vh, span_str(address)));
	} else if (_i == 1) { /* the channel goes; its number is used again */
		peer_method(&asker, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
		peer_channel(&asker, 1);
		peer_consume(&asker, 1, REPLY_TO_QUEUE, "tag", true);
		peer_forget(&asker);
	} else { /* the client goes */
		peer_fini(&asker);
		peer_init(&asker, &w);
		peer_reach(&asker, CONN_OPEN);
	}
	expect_nowhere(old);
}
END_TEST

START_TEST(other_vhost)
{
	struct vhost *other = vhost_add(w.b, "other");

	ck_assert_ptr_nonnull(other);
	ck_assert(!reply_to_exists(w.a, other, span_str(address)));
}
END_TEST

START_TEST(refusals)
{
	struct seen s;

	peer_consume(&asker, 1, REPLY_TO_QUEUE, "second", true);
	s = peer_next(&asker);
	ck_assert_str_eq(s.text, "PRECONDITION_FAILED - reply consumer already set");
	peer_consume(&server, 1, REPLY_TO_QUEUE, "", false);
	s = peer_next(&server);
	ck_assert_str_eq(s.text, "PRECONDITION_FAILED - reply consumer cannot acknowledge");
	peer_channel(&server, 2);
	peer_publish(&server, 2,
	    &(struct publish){ .key = "q", .props = SPAN_LIT("\2\0\25" REPLY_TO_QUEUE) });
	s = peer_next(&server);
	ck_assert_str_eq(s.text, "PRECONDITION_FAILED - fast reply consumer does not exist");
}
END_TEST

/* Properties around reply-to stay; the body does too, also one of many frames. */
START_TEST(request_is_kept)
{
	static const char props[] = "\xa2\0\1a\0\0\0\4\1kt\1\25" REPLY_TO_QUEUE;
	uint8_t body[9000];
	struct publish what = { .key = "q",
		.props = span_of(props, sizeof props - 1),
		.body = span_of(body, sizeof body),
		.chunk = _i == 0 ? 0 : 2000 };
	struct props pr;
	struct entry e;

	memset(body, 'b', sizeof body);
	peer_publish(&asker, 1, &what);
	ck_assert(queue_pop(queue_find(vh, SPAN_LIT("q")), &e));
	ck_assert_int_eq(props_scan(msg_props(e.m), &pr), 0);
	ck_assert_uint_eq(pr.flags, 0xa200);
	ck_assert_mem_eq(msg_props(e.m).p, "\xa2\0\1a\0\0\0\4\1kt\1", 12);
	ck_assert(span_is(pr.reply_to, address));
	ck_assert_uint_eq(e.m->body_size, sizeof body);
	if (_i == 0)
		ck_assert_mem_eq(msg_body(e.m), body, sizeof body);
	else
		ck_assert(e.m->rest != NULL && e.m->rest->d[0] == 'b');
	msg_unref(&e.m);
}
END_TEST

/* Who does not read his replies loses those that come over the hard bound of his output; nothing
 * grows. */
START_TEST(does_not_read)
{
	uint8_t body[4000] = { 0 };
	struct publish what = { .key = address, .body = span_of(body, sizeof body) };
	uint64_t sent = 0;

	w.cfg.output = 100000;
	w.cfg.output_max = 200000;
	while (w.b->stats.reply_to_dropped < 20 && sent++ < 10000)
		peer_publish(&server, 1, &what);
	ck_assert_uint_eq(w.b->stats.reply_to_dropped, 20);
	ck_assert_uint_eq(w.b->stats.reply_to, sent - 20);
	ck_assert_uint_lt(asker.c->io->pending, 210000);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("reply_to");
	TCase *t = tcase_create("reply_to");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, there_and_back);
	tcase_add_test(t, named_more_than_once);
	tcase_add_test(t, forged);
	tcase_add_loop_test(t, outlived, 0, 3);
	tcase_add_test(t, other_vhost);
	tcase_add_test(t, refusals);
	tcase_add_loop_test(t, request_is_kept, 0, 2);
	tcase_add_test(t, does_not_read);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
