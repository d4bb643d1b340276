/* SPDX-License-Identifier: Apache-2.0
 * Permissions: patterns, what they refuse and how. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "queue_world.h"
#include "tests/unit/user_world.h"

static struct world w;
static struct client client;
static struct user *u;

static void
set_up(void)
{
	world_init(&w);
	u = user_add(w.broker, "u", "p", "", false);
	world_client(&w, &client);
	client_set_user(&client, u);
}

static void
tear_down(void)
{
	client_fini(&client);
	world_fini(&w);
}

static const struct {
	const char *pattern, *name;
	bool allowed;
} cases[] = {
	{ "", "anything", false },
	{ "^$", "anything", false },
	{ ".*", "anything", true },
	{ "any", "anything", true },
	{ "thing", "anything", true },
	{ "^thing", "anything", false },
	{ "^(a|b)-.*", "b-1", true },
	{ "^(a|b)-.*", "c-1", false },
	{ "^q[0-9]+$", "q12", true },
	{ "^q[0-9]+$", "q12x", false },
	{ "^q\\d{2}$", "q12", true },
	{ "(?i)^Q$", "q", true },
	{ "^[^.]+\\.out$", "a.out", true },
	{ "^(?!secret).*$", "secret", false },
	{ "^(?!secret).*$", "public", true },
	{ "^amq\\.default$", "", true },
	{ "^amq.default$", "", true },
	{ "^$", "", false },
	{ "", "", false },
	{ "^\xc3\xa9$", "\xc3\xa9", true },
	{ "^.$", "\xc3\xa9", false },
};

START_TEST(patterns)
{
	const struct error *e;

	for (int kind = PERM_CONFIGURE; kind <= PERM_READ; kind++) {
		const char *mine = cases[_i].pattern, *no = "^$";

		ck_assert_ptr_null(permission_set(u, w.vhost, kind == PERM_CONFIGURE ? mine : no,
		    kind == PERM_WRITE ? mine : no, kind == PERM_READ ? mine : no));
		e = permission_check(
		    &client, (enum permission_kind)kind, "queue", span_str(cases[_i].name));
		ck_assert_int_eq(e == NULL, cases[_i].allowed);
		e = permission_check(&client, (enum permission_kind)((kind + 1) % 3), "queue",
		    span_str(cases[_i].name));
		ck_assert_ptr_nonnull(e);
	}
}
END_TEST

START_TEST(texts)
{
	ck_assert(!permission_vhost(u, w.vhost));
	ck_assert_str_eq(permission_check(&client, PERM_READ, "queue", SPAN_LIT("q"))->text,
	    "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'");
	ck_assert_ptr_null(permission_set(u, w.vhost, "^$", "^$", "^$"));
	ck_assert(permission_vhost(u, w.vhost));
	ck_assert_str_eq(permission_check(&client, PERM_WRITE, "exchange", SPAN_LIT(""))->text,
	    "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'");
	ck_assert_uint_eq(
	    permission_check(&client, PERM_WRITE, "exchange", SPAN_LIT(""))->code, 403);
}
END_TEST

START_TEST(of_each_vhost)
{
	struct vhost *other = vhost_add(w.broker, "other");

	ck_assert_ptr_null(permission_set(u, other, ".*", ".*", ".*"));
	ck_assert_ptr_nonnull(permission_check(&client, PERM_READ, "queue", SPAN_LIT("q")));
	client_set_vhost(&client, other);
	ck_assert_ptr_null(permission_check(&client, PERM_READ, "queue", SPAN_LIT("q")));
}
END_TEST

START_TEST(wrong_pattern_changes_nothing)
{
	uint64_t epoch;
	const struct error *e;

	ck_assert_ptr_null(permission_set(u, w.vhost, "^a", "^a", "^a"));
	epoch = w.broker->permission_epoch;
	e = permission_set(u, w.vhost, ".*", "^b", "(b");
	ck_assert_ptr_nonnull(e);
	ck_assert_ptr_nonnull(strstr(e->text, "'(b'"));
	ck_assert_uint_eq(w.broker->permission_epoch, epoch);
	ck_assert_ptr_null(permission_check(&client, PERM_WRITE, "queue", SPAN_LIT("a")));
	ck_assert_ptr_null(permission_set(u, w.vhost, ".*", "^b", "b"));
	ck_assert_uint_gt(w.broker->permission_epoch, epoch);
	ck_assert_ptr_nonnull(permission_check(&client, PERM_WRITE, "queue", SPAN_LIT("a")));
}
END_TEST

/* A pattern that would run for ages is stopped, and refuses. */
START_TEST(steps_are_bounded)
{
	static const char *const slow[] = { "^(a+)+$", "^(a|aa)+$", "^(a*)*b", "(.*)*(.*)*(.*)*x",
		"^((?:a|b)+)*c" };
	char name[256];
	clock_t before;

	memset(name, 'a', sizeof name);
	name[254] = '!';
	ck_assert_ptr_null(permission_set(u, w.vhost, slow[_i], "", ""));
	before = clock();
	ck_assert_ptr_nonnull(
	    permission_check(&client, PERM_CONFIGURE, "queue", span_of(name, 255)));
	ck_assert_int_lt(clock() - before, CLOCKS_PER_SEC / 20);
}
END_TEST

/* Clients that are not closed yet make nothing more in it. */
START_TEST(of_a_deleted_vhost)
{
	ck_assert_ptr_null(permission_set(u, w.vhost, ".*", ".*", ".*"));
	ck_assert_ptr_null(permission_check(&client, PERM_CONFIGURE, "queue", SPAN_LIT("q")));
	w.vhost->is_deleted = true;
	ck_assert_ptr_nonnull(permission_check(&client, PERM_CONFIGURE, "queue", SPAN_LIT("q")));
	w.vhost->is_deleted = false;
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("permission");
	TCase *t = tcase_create("permission");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, patterns, 0, COUNT_OF(cases));
	tcase_add_test(t, texts);
	tcase_add_test(t, of_each_vhost);
	tcase_add_test(t, of_a_deleted_vhost);
	tcase_add_test(t, wrong_pattern_changes_nothing);
	tcase_add_loop_test(t, steps_are_bounded, 0, 5);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
