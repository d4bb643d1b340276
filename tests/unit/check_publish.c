/* SPDX-License-Identifier: Apache-2.0
 * What stands between a publish and its route: refusals in RabbitMQ's order and words, and the memory of the last
 * publish, which must never outlive what it knows. */
#include "broker/publish.h"

#include "broker/client.h"
#include "broker/permission.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "route_world.h"
#include "tests/unit/user_world.h"

static struct world w;
static struct client client;
static struct session session;
static struct publish_memo memo;
static struct user *user;

static const struct session_ops no_ops;

static void
setup(void)
{
	world_init(&w);
	user = user_add(w.b, "joe", "secret", "", false);
	ck_assert_ptr_nonnull(user);
	ck_assert_ptr_null(permission_set(user, w.vh, "", ".*", ".*"));
	client_init(&client, w.b);
	client_set_user(&client, user);
	client_set_vhost(&client, w.vh);
	session_init(&session, &client, &no_ops);
	memset(&memo, 0, sizeof memo);
}

static void
teardown(void)
{
	session_fini(&session);
	client_fini(&client);
	world_fini(&w);
}

static uint64_t last_due;

/* The number of queues, or -1 with the refusal in *e. */
static int
publish(const char *exchange, const char *key, struct span props, const struct error **e)
{
	struct msg *m = world_message(exchange, key, props);
	const struct route *r = NULL;
	struct props pr;
	int n = -1;

	ck_assert_int_eq(props_scan(msg_props(m), &pr), 0);
	*e = publish_route(&session, &memo, m, &pr, &r, &last_due);
	if (*e == NULL)
		n = (int)r->count;
	msg_unref(&m);
	return n;
}

static int
plain(const char *exchange, const char *key)
{
	const struct error *e;
	int n = publish(exchange, key, SPAN_LIT("\0\0"), &e);

	ck_assert_msg(e == NULL, "%s", e != NULL ? e->text : "");
	return n;
}

#define USER_BOB "\3bob"
#define USER_JOE "\3joe"

static const struct {
	const char *exchange;
	struct span props;
	unsigned code; /* 0: fine */
	const char *text;
} cases[] = {
	{ "x", SPAN_LIT("\0\0"), 0, NULL },
	{ "nox", SPAN_LIT("\0\0"), 404, "NOT_FOUND - no exchange 'nox' in vhost 'test'" },
	{ "in", SPAN_LIT("\0\0"), 403,
	    "ACCESS_REFUSED - cannot publish to internal exchange 'in' in vhost 'test'" },
	{ "x", SPAN_LIT("\0\x10" USER_JOE), 0, NULL },
	{ "x", SPAN_LIT("\0\x10" USER_BOB), 406,
	    "PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was "
	    "'joe'" },
	{ "x", SPAN_LIT("\0\x10\0"), 406,
	    "PRECONDITION_FAILED - user_id property set to '' but authenticated user was 'joe'" },
	{ "nox", SPAN_LIT("\0\x10" USER_BOB), 404,
	    "NOT_FOUND - no exchange 'nox' in vhost 'test'" },
	{ "x", SPAN_LIT("\1\x10\1x" USER_BOB), 406,
	    "PRECONDITION_FAILED - user_id property set to 'bob' but authenticated user was "
	    "'joe'" },
	{ "x", SPAN_LIT("\1\0\00260"), 0, NULL },
	{ "x", SPAN_LIT("\1\0\0"), 406, "PRECONDITION_FAILED - invalid expiration '': no_integer" },
	{ "x", SPAN_LIT("\1\0\3abc"), 406,
	    "PRECONDITION_FAILED - invalid expiration 'abc': no_integer" },
	{ "x", SPAN_LIT("\1\0\2-1"), 406,
	    "PRECONDITION_FAILED - invalid expiration '-1': {value_negative,-1}" },
	{ "x", SPAN_LIT("\1\0\0025x"), 406,
	    "PRECONDITION_FAILED - invalid expiration '5x': {leftover_string,\"x\"}" },
	{ "x", SPAN_LIT("\1\0\014315360000001"), 406,
	    "PRECONDITION_FAILED - invalid expiration '315360000001': "
	    "{value_too_large,315360000001}" },
	{ "x", SPAN_LIT("\x11\0\3\1x"), 406,
	    "PRECONDITION_FAILED - invalid expiration 'x': no_integer" },
	{ "x", SPAN_LIT("\x10\0\0"), 406,
	    "PRECONDITION_FAILED - invalid message: {delivery_mode_unknown,0}" },
	{ "x", SPAN_LIT("\x10\0\3"), 406,
	    "PRECONDITION_FAILED - invalid message: {delivery_mode_unknown,3}" },
	{ "x", SPAN_LIT("\x10\0\xff"), 406,
	    "PRECONDITION_FAILED - invalid message: {delivery_mode_unknown,255}" },
	{ "x", SPAN_LIT("\x10\0\1"), 0, NULL },
	{ "x", SPAN_LIT("\x10\0\2"), 0, NULL },
	{ "x", SPAN_LIT("\x30\0\0\0\0\4\2CCV\3"), 406,
	    "PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,\"CC\",void}" },
};

/* The same whether the place is remembered or not. */
START_TEST(test_checks)
{
	struct exchange_spec in = {
		.name = SPAN_LIT("in"), .type = SPAN_LIT("fanout"), .internal = true
	};
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	const struct error *e;
	int round;

	world_bind(x, world_queue(&w, "q"), NULL, "");
	ck_assert_ptr_null(exchange_declare(w.vh, &in, &x));
	for (round = 0; round < 2; round++) {
		(void)publish(cases[_i].exchange, "k", cases[_i].props, &e);
		if (cases[_i].code == 0) {
			ck_assert_msg(e == NULL, "%s", e != NULL ? e->text : "");
		} else {
			ck_assert_ptr_nonnull(e);
			ck_assert_uint_eq(e->code, cases[_i].code);
			ck_assert_str_eq(e->text, cases[_i].text);
		}
		ck_assert_int_eq(plain("x", "k"), 1);
	}
}
END_TEST

START_TEST(test_impersonator)
{
	const struct error *e;

	user->tags = TAG_IMPERSONATOR;
	ck_assert_int_eq(publish("amq.fanout", "k", SPAN_LIT("\0\x10" USER_BOB), &e), 0);
}
END_TEST

START_TEST(test_due)
{
	const struct error *e;

	ck_assert_int_eq(publish("amq.fanout", "k", SPAN_LIT("\1\0\00260"), &e), 0);
	ck_assert_uint_eq(last_due, w.b->now_ms + 60);
	ck_assert_int_eq(publish("amq.fanout", "k", SPAN_LIT("\1\0\0010"), &e), 0);
	ck_assert_uint_eq(last_due, w.b->now_ms);
	ck_assert_int_eq(plain("amq.fanout", "k"), 0);
	ck_assert_uint_eq(last_due, 0);
}
END_TEST

/* The right to write comes first, and a right that is taken is gone for what is remembered too. */
START_TEST(test_permission)
{
	const struct error *e;

	ck_assert_int_eq(plain("amq.fanout", "k"), 0);
	ck_assert_ptr_null(permission_set(user, w.vh, ".*", "^$", ".*"));
	ck_assert_int_eq(publish("amq.fanout", "k", SPAN_LIT("\0\0"), &e), -1);
	ck_assert_str_eq(e->text, "ACCESS_REFUSED - access to exchange 'amq.fanout' in vhost "
	                          "'test' refused for user 'joe'");
	ck_assert_int_eq(publish("nox", "k", SPAN_LIT("\0\0"), &e), -1);
	ck_assert_uint_eq(e->code, 403);
	ck_assert_int_eq(publish("", "k", SPAN_LIT("\0\0"), &e), -1);
	ck_assert_str_eq(e->text, "ACCESS_REFUSED - access to exchange 'amq.default' in vhost "
	                          "'test' refused for user 'joe'");
}
END_TEST

/* Topic permissions are asked for each new key, those of CC and BCC too, and a change counts at once. */
START_TEST(test_topic_permission)
{
	struct span with_cc = SPAN_LIT("\x20\0\0\0\0\x0e\2CCA\0\0\0\6S\0\0\0\1r"),
	            with_bcc = SPAN_LIT("\x20\0\0\0\0\x0f\3BCCA\0\0\0\6S\0\0\0\1r");
	const char *refused =
	    "ACCESS_REFUSED - access to topic 'r' in exchange 'amq.topic' in vhost "
	    "'test' refused for user 'joe'";
	const struct error *e;

	ck_assert_int_eq(plain("amq.topic", "r"), 0);
	ck_assert_ptr_null(
	    topic_permission_set(user, w.vh, SPAN_LIT("amq.topic"), "^a", ".*", NULL));
	ck_assert_int_eq(publish("amq.topic", "r", SPAN_LIT("\0\0"), &e), -1);
	ck_assert_str_eq(e->text, refused);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(plain("amq.topic", "a"), 0);
		ck_assert_int_eq(publish("amq.topic", "a", with_cc, &e), -1);
		ck_assert_str_eq(e->text, refused);
		ck_assert_int_eq(publish("amq.topic", "a", with_bcc, &e), -1);
		ck_assert_int_eq(publish("amq.fanout", "r", with_cc, &e), 0);
		ck_assert_int_eq(publish("amq.topic", "r", SPAN_LIT("\0\0"), &e), -1);
	}
	topic_permission_clear(topic_permission_find(user, w.vh, SPAN_LIT("amq.topic")));
	ck_assert_int_eq(publish("amq.topic", "r", with_cc, &e), 0);
	ck_assert_int_eq(plain("amq.topic", "a"), 0);
	ck_assert_ptr_null(
	    topic_permission_set(user, w.vh, SPAN_LIT("amq.topic"), "^b", ".*", NULL));
	ck_assert_int_eq(publish("amq.topic", "a", SPAN_LIT("\0\0"), &e), -1); /* not by memory */
}
END_TEST

/* A pattern that takes long for each of many keys does not hold the turn up. */
START_TEST(test_topic_permission_of_many_keys)
{
	enum { KEYS = 1000, KEY = 5 + 250, LIST = KEYS * KEY, HEADERS = 4 + LIST + 4 };
	static uint8_t props[2 + 4 + HEADERS];
	uint8_t *p = props;
	const struct error *e;
	uint64_t before;

	*p++ = 0x20;
	*p++ = 0;
	put_be32(p, HEADERS);
	memcpy(p + 4, "\2CCA", 4);
	put_be32(p + 8, LIST);
	p += 12;
	for (int i = 0; i < KEYS; i++, p += KEY) {
		memset(p, 'a', KEY);
		p[0] = 'S';
		put_be32(p + 1, KEY - 5);
	}
	ck_assert_ptr_null(topic_permission_set(user, w.vh, SPAN_LIT("amq.topic"),
	    "^a(?=(?:a|aa){10}([bc]|$))|^(?=(a|aa){8}[qr])|", ".*", NULL));
	before = w.b->work;
	ck_assert_int_eq(publish("amq.topic", "a", span_of(props, sizeof props), &e), -1);
	ck_assert_str_eq(e->text, "PRECONDITION_FAILED - the topic permissions of user 'joe' take "
	                          "more than 32768 steps for the keys in CC and BCC");
	ck_assert_uint_lt(w.b->work - before, 1400);
}
END_TEST

START_TEST(test_memo_follows_changes)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, NULL);
	struct queue *q = world_queue(&w, "q");
	const struct error *e;

	ck_assert_int_eq(plain("x", "k"), 0);
	world_bind(x, q, NULL, "k");
	ck_assert_int_eq(plain("x", "k"), 1);
	ck_assert_int_eq(plain("x", "k"), 1);
	ck_assert_uint_eq(memo.generation, x->generation);
	ck_assert_int_eq(plain("x", "j"), 0);
	ck_assert_int_eq(plain("x", "k"), 1);
	queue_remove(q);
	ck_assert_int_eq(plain("x", "k"), 0);
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("x"), false));
	ck_assert_int_eq(publish("x", "k", SPAN_LIT("\0\0"), &e), -1);
	ck_assert_uint_eq(e->code, 404);
	x = world_exchange(&w, "x", "fanout", false, NULL);
	world_bind(x, world_queue(&w, "q"), NULL, "");
	ck_assert_int_eq(plain("x", "k"), 1);
}
END_TEST

START_TEST(test_memo_default_exchange)
{
	struct queue *q;

	ck_assert_int_eq(plain("", "q"), 0);
	q = world_queue(&w, "q");
	ck_assert_int_eq(plain("", "q"), 1);
	ck_assert_int_eq(plain("", "q"), 1);
	queue_remove(q);
	ck_assert_int_eq(plain("", "q"), 0);
}
END_TEST

/* Names that differ in where the exchange ends only. */
START_TEST(test_memo_compares_all)
{
	struct exchange *a = world_exchange(&w, "a", "direct", false, NULL);
	struct exchange *ab = world_exchange(&w, "ab", "direct", false, NULL);

	world_bind(a, world_queue(&w, "q"), NULL, "bc");
	world_bind(ab, world_queue(&w, "r"), NULL, "x");
	ck_assert_int_eq(plain("a", "bc"), 1);
	ck_assert_int_eq(plain("ab", "c"), 0);
	ck_assert_int_eq(plain("a", "bc"), 1);
}
END_TEST

/* Not remembered: what depends on headers, and more queues than fit. CC leaves what is remembered alone. */
START_TEST(test_memo_leaves_out)
{
	struct exchange *h = world_exchange(&w, "h", "headers", false, NULL);
	struct exchange *f = world_exchange(&w, "f", "fanout", false, NULL);
	struct span with_h = SPAN_LIT("\x20\0\0\0\0\4\1hB\1"),
	            with_cc = SPAN_LIT("\x20\0\0\0\0\x0e\2CCA\0\0\0\6S\0\0\0\1r");
	struct table *arguments = table_from_raw(SPAN_LIT("\1hB\1"));
	const struct error *e;
	char name[16];
	int i;

	ck_assert_ptr_null(binding_add(h, world_queue(&w, "q"), NULL, SPAN_LIT(""), arguments));
	table_free(&arguments);
	ck_assert_int_eq(publish("h", "k", with_h, &e), 1);
	ck_assert_int_eq(plain("h", "k"), 0);
	ck_assert_int_eq(publish("h", "k", with_h, &e), 1);
	(void)world_queue(&w, "r");
	ck_assert_int_eq(plain("", "q"), 1);
	ck_assert_int_eq(publish("", "q", with_cc, &e), 2);
	ck_assert_int_eq(plain("", "q"), 1);
	for (i = 0; i < PUBLISH_MEMO_QUEUES + 1; i++) {
		snprintf(name, sizeof name, "f%d", i);
		world_bind(f, world_queue(&w, name), NULL, "");
		ck_assert_int_eq(plain("f", "k"), i + 1);
		ck_assert_int_eq(plain("f", "k"), i + 1);
		ck_assert_int_eq(memo.generation != 0, i < PUBLISH_MEMO_QUEUES);
	}
}
END_TEST

/* What comes next is counted for the exchange of the last message, remembered or not. */
START_TEST(test_counts_follow_the_exchange)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, NULL);
	struct exchange *y = world_exchange(&w, "y", "direct", false, NULL);
	struct span with_cc = SPAN_LIT("\x20\0\0\0\0\x0e\2CCA\0\0\0\6S\0\0\0\1r");
	const struct error *e;
	const struct {
		struct exchange *to;
		bool has_cc;
	} steps[] = { { x, false }, { x, false }, { y, true }, { x, false }, { x, true },
		{ x, false }, { y, false }, { y, false }, { x, true }, { y, true }, { y, false } };
	unsigned to_x = 0, to_y = 0;

	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		ck_assert_int_eq(publish(steps[i].to->name, "k",
		                     steps[i].has_cc ? with_cc : SPAN_LIT("\0\0"), &e),
		    0);
		ck_assert_ptr_eq(memo.exchange, steps[i].to);
		publish_count(&session, memo.exchange, 0);
		to_x += steps[i].to == x;
		to_y += steps[i].to == y;
	}
	ck_assert_uint_eq(session.published.count, 2);
	ck_assert_uint_eq(published_count(&session, 0), to_x);
	ck_assert_uint_eq(published_count(&session, 1), to_y);
	ck_assert_uint_eq(x->stats.publish_in, to_x);
	ck_assert_uint_eq(y->stats.publish_in, to_y);
}
END_TEST

/* Names of 255 bytes fit. */
START_TEST(test_long_names)
{
	char x[256], k[256];

	memset(x, 'x', 255);
	memset(k, 'k', 255);
	x[255] = k[255] = '\0';
	world_bind(world_exchange(&w, x, "direct", false, NULL), world_queue(&w, "q"), NULL, k);
	ck_assert_int_eq(plain(x, k), 1);
	ck_assert_int_eq(plain(x, k), 1);
	ck_assert_uint_eq(memo.names_len, 513);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("publish");
	TCase *t = tcase_create("publish");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_checks, 0, COUNT_OF(cases));
	tcase_add_test(t, test_impersonator);
	tcase_add_test(t, test_due);
	tcase_add_test(t, test_permission);
	tcase_add_test(t, test_topic_permission);
	tcase_add_test(t, test_topic_permission_of_many_keys);
	tcase_add_test(t, test_memo_follows_changes);
	tcase_add_test(t, test_memo_default_exchange);
	tcase_add_test(t, test_memo_compares_all);
	tcase_add_test(t, test_memo_leaves_out);
	tcase_add_test(t, test_counts_follow_the_exchange);
	tcase_add_test(t, test_long_names);
	tcase_set_timeout(t, 30);
	suite_add_tcase(s, t);
	return run_suite(s);
}
