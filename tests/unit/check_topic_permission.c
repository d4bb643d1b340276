/* SPDX-License-Identifier: Apache-2.0
 * Topic permissions: their patterns and variables, and what they hold for. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/exchange.h"
#include "broker/pattern.h"
#include "broker/topic_permission.h"
#include "tests/unit/queue_world.h"
#include "tests/unit/user_world.h"

static struct world w;
static struct user *u;
static struct exchange *x;

static void
set_up(void)
{
	world_init(&w);
	u = user_add(w.broker, "a.b{vhost}+", "p", "", false);
	x = exchange_find(w.vhost, SPAN_LIT("amq.topic"));
}

static void
tear_down(void)
{
	world_fini(&w);
}

static const struct {
	const char *pattern, *key;
	bool allowed;
} cases[] = {
	{ ".*", "", true },
	{ ".*", "any", true },
	{ "^a\\.", "a.b", true },
	{ "^a\\.", "b.a", false },
	{ "", "", true }, /* as "^$" */
	{ "", "k", false },
	{ "^$", "", true },
	{ "^$", "k", false },
	/* names stand for themselves, however much they look like patterns */
	{ "^{username}$", "a.b{vhost}+", true },
	{ "^{username}$", "axb{vhost}+", false },
	{ "^{username}$", "a.b{vhost}}", false },
	{ "^{username}\\.{vhost}$", "a.b{vhost}+./", true },
	{ "{vhost}{vhost}", "//", true },
	{ "^{client_id}$", "{client_id}", true },
	{ "^{client_id}$", "c", false },
	{ "^{user}$", "{user}", true },
	{ "^(x|{username})$", "x", true },
	{ "^x{2}$", "xx", true },
};

START_TEST(patterns)
{
	const struct error *e;
	bool created = false;

	for (int right = TOPIC_WRITE; right <= TOPIC_READ; right++) {
		const char *mine = cases[_i].pattern, *no = "^nothing$";

		ck_assert_ptr_null(topic_permission_set(u, w.vhost, SPAN_LIT("amq.topic"),
		    right == TOPIC_WRITE ? mine : no, right == TOPIC_READ ? mine : no, &created));
		ck_assert_int_eq(created, right == TOPIC_WRITE);
		e = topic_permission_check(u, (enum topic_right)right, x, span_str(cases[_i].key));
		ck_assert_int_eq(e == NULL, cases[_i].allowed);
		e = topic_permission_check(
		    u, (enum topic_right)(1 - right), x, span_str(cases[_i].key));
		ck_assert_ptr_nonnull(e);
	}
}
END_TEST

START_TEST(what_it_holds_for)
{
	struct vhost *other = vhost_add(w.broker, "other");
	struct user *guest = user_find(w.broker, SPAN_LIT("guest"));
	const struct error *e;

	ck_assert_ptr_null(
	    topic_permission_set(u, w.vhost, SPAN_LIT("amq.topic"), "^$", "^$", NULL));
	ck_assert_ptr_null(
	    topic_permission_set(u, w.vhost, SPAN_LIT("amq.direct"), "^$", "^$", NULL));
	e = topic_permission_check(u, TOPIC_WRITE, x, SPAN_LIT("k"));
	ck_assert_uint_eq(e->code, 403);
	ck_assert_str_eq(e->text, "ACCESS_REFUSED - access to topic 'k' in exchange 'amq.topic' in "
	                          "vhost '/' refused for user 'a.b{vhost}+'");
	/* other users, vhosts, exchanges, types are open */
	ck_assert_ptr_null(topic_permission_check(guest, TOPIC_WRITE, x, SPAN_LIT("k")));
	ck_assert_ptr_null(topic_permission_check(
	    u, TOPIC_WRITE, exchange_find(other, SPAN_LIT("amq.topic")), SPAN_LIT("k")));
	ck_assert_ptr_null(topic_permission_check(
	    u, TOPIC_WRITE, exchange_find(w.vhost, SPAN_LIT("amq.direct")), SPAN_LIT("k")));
	ck_assert_ptr_null(topic_permission_check(
	    u, TOPIC_READ, exchange_find(w.vhost, SPAN_LIT("amq.rabbitmq.trace")), SPAN_LIT("k")));
}
END_TEST

START_TEST(refused_and_taken_away)
{
	struct span exchange = SPAN_LIT("amq.topic");
	uint64_t epoch;
	char longest[PATTERN_LEN_MAX + 2], name[16];

	ck_assert_ptr_null(topic_permission_set(u, w.vhost, exchange, "^a", "^a", NULL));
	epoch = w.broker->permission_epoch;
	ck_assert_ptr_nonnull(topic_permission_set(u, w.vhost, exchange, ".*", "[", NULL));
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	ck_assert_ptr_nonnull(topic_permission_set(u, w.vhost, exchange, longest, ".*", NULL));
	ck_assert_uint_eq(w.broker->permission_epoch, epoch);
	ck_assert_ptr_nonnull(topic_permission_check(u, TOPIC_WRITE, x, SPAN_LIT("b")));
	topic_permission_clear(topic_permission_find(u, w.vhost, exchange));
	ck_assert_uint_gt(w.broker->permission_epoch, epoch);
	ck_assert_ptr_null(topic_permission_check(u, TOPIC_WRITE, x, SPAN_LIT("b")));
	for (int i = 0; i <= TOPIC_PERMISSIONS_MAX; i++) {
		const struct error *e;

		snprintf(name, sizeof name, "x%d", i);
		e = topic_permission_set(u, w.vhost, span_str(name), "", "", NULL);
		ck_assert_int_eq(e == NULL, i < TOPIC_PERMISSIONS_MAX);
	}
	ck_assert_uint_eq(topic_permissions_drop(u, w.vhost), TOPIC_PERMISSIONS_MAX);
}
END_TEST

/* What a pattern costs is work of the turn, or keys sent one after the other would hold it up. */
START_TEST(counted_as_work)
{
	char key[255];
	uint64_t before;

	memset(key, 'a', sizeof key);
	ck_assert_ptr_null(
	    topic_permission_set(u, w.vhost, SPAN_LIT("amq.topic"), "^(a+)+[bc]$", ".*", NULL));
	before = w.broker->work;
	ck_assert_ptr_nonnull(topic_permission_check(u, TOPIC_WRITE, x, span_of(key, sizeof key)));
	ck_assert_uint_ge(w.broker->work - before, PATTERN_STEPS_MAX / PATTERN_STEPS_WORK);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("topic_permission");
	TCase *t = tcase_create("topic_permission");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, patterns, 0, COUNT_OF(cases));
	tcase_add_test(t, what_it_holds_for);
	tcase_add_test(t, refused_and_taken_away);
	tcase_add_test(t, counted_as_work);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
