/* SPDX-License-Identifier: Apache-2.0
 * Accounts and logins. */
#include <check.h>
#include <stdlib.h>
#include <time.h>

#include "queue_world.h"

static struct world w;

static void
set_up(void)
{
	world_init(&w);
}

static void
tear_down(void)
{
	world_fini(&w);
}

static const struct {
	const char *name, *password;
	bool loopback, right;
} cases[] = {
	{ "guest", "guest", true, true },
	{ "admin", "admin", true, true },
	{ "guest", "guest", false, false },
	{ "guest", "Guest", true, false },
	{ "guest", "", true, false },
	{ "guest", "guestguest", true, false },
	{ "gues", "tguest", true, false },
	{ "", "guest", true, false },
	{ "nobody", "guest", true, false },
	{ "far", "secret", false, true },
	{ "far", "secret", true, true },
	{ "none", "", true, false },
	{ "none", "x", true, false },
};

START_TEST(logins)
{
	const char *why = NULL;

	(void)user_add(w.broker, "far", "secret", 0, false);
	(void)user_add(w.broker, "none", "", 0, false);
	for (int again = 0; again < 3; again++) { /* what is remembered says the same */
		struct user *u = user_login(w.broker, span_str(cases[_i].name),
		    span_str(cases[_i].password), cases[_i].loopback, &why);

		ck_assert_int_eq(u != NULL, cases[_i].right);
		ck_assert_ptr_eq(
		    u, cases[_i].right ? user_find(w.broker, span_str(cases[_i].name)) : NULL);
		if (u == NULL)
			ck_assert_ptr_nonnull(why);
		ck_assert_uint_eq(w.broker->stats.login_failures, cases[_i].right ? 0 : again + 1);
	}
}
END_TEST

START_TEST(password_changed)
{
	const char *why;

	ck_assert_ptr_nonnull(
	    user_login(w.broker, SPAN_LIT("guest"), SPAN_LIT("guest"), true, &why));
	ck_assert_ptr_null(user_login(w.broker, SPAN_LIT("guest"), SPAN_LIT("new"), true, &why));
	(void)user_add(w.broker, "guest", "new", 0, true);
	ck_assert_ptr_null(user_login(w.broker, SPAN_LIT("guest"), SPAN_LIT("guest"), true, &why));
	ck_assert_ptr_nonnull(user_login(w.broker, SPAN_LIT("guest"), SPAN_LIT("new"), true, &why));
}
END_TEST

START_TEST(too_long)
{
	static uint8_t long_one[2000];
	const char *why;

	ck_assert_ptr_null(user_login(w.broker, span_of(long_one, 256), SPAN_LIT("x"), true, &why));
	ck_assert_ptr_null(
	    user_login(w.broker, SPAN_LIT("guest"), span_of(long_one, 1025), true, &why));
	ck_assert_ptr_null(
	    user_login(w.broker, span_of(long_one, 255), span_of(long_one, 1024), true, &why));
}
END_TEST

START_TEST(default_user)
{
	struct world v = { .cfg = { .default_user = (char *)"app",
		               .default_password = (char *)"pw",
		               .default_user_remote = _i == 1 } };
	const char *why;

	v.wheel = wheel_new(1000);
	v.broker = broker_new(&v.cfg, v.wheel, 1000);
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("guest")));
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("admin")));
	ck_assert_ptr_nonnull(user_login(v.broker, SPAN_LIT("app"), SPAN_LIT("pw"), true, &why));
	ck_assert_int_eq(
	    user_login(v.broker, SPAN_LIT("app"), SPAN_LIT("pw"), false, &why) != NULL, _i == 1);
	ck_assert_uint_eq(user_find(v.broker, SPAN_LIT("app"))->tags, TAG_ADMINISTRATOR);
	ck_assert(permission_vhost(
	    user_find(v.broker, SPAN_LIT("app")), vhost_find(v.broker, SPAN_LIT("/"))));
	broker_free(&v.broker);
	wheel_free(&v.wheel);
}
END_TEST

/* PBKDF2-HMAC-SHA-256 of another implementation. */
START_TEST(password_hash)
{
	static const uint8_t right[MAC_PASSWORD_SIZE] = { 0xb1, 0x3d, 0x66, 0x97, 0xe9, 0x9c, 0xd6,
		0xd1, 0x74, 0x5d, 0xa0, 0x97, 0xee, 0x03, 0xe4, 0xbe, 0x50, 0x13, 0x41, 0xe7, 0x6f,
		0xe9, 0x16, 0x1a, 0x78, 0x8d, 0xe3, 0xd4, 0xcd, 0x0b, 0xe2, 0x19 };
	uint8_t out[MAC_PASSWORD_SIZE], more[MAC_PASSWORD_SIZE];

	mac_password("password", 8, (const uint8_t *)"saltsaltsaltsalt", 1, out);
	ck_assert_mem_eq(out, right, sizeof right);
	mac_password("password", 8, (const uint8_t *)"saltsaltsaltsalt", 2, more);
	ck_assert(!mac_same(out, more, sizeof out));
	mac_password("", 0, (const uint8_t *)"saltsaltsaltsalt", 1, more);
	ck_assert(!mac_same(out, more, sizeof out));
}
END_TEST

/* Reconnecting in a loop, right or wrong, must not cost a password hash each time (0.25 ms: 2.5 s here). */
START_TEST(repeated_logins_are_cheap)
{
	struct span password = span_str(_i == 0 ? "guest" : "wrong");
	clock_t before = clock();
	const char *why;
	int right = 0;

	for (int i = 0; i < 10000; i++)
		right += user_login(w.broker, SPAN_LIT("guest"), password, true, &why) != NULL;
	ck_assert_int_eq(right, _i == 0 ? 10000 : 0);
	ck_assert_int_lt(clock() - before, CLOCKS_PER_SEC);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("user");
	TCase *t = tcase_create("user");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, logins, 0, COUNT_OF(cases));
	tcase_add_test(t, password_changed);
	tcase_add_test(t, too_long);
	tcase_add_test(t, password_hash);
	tcase_add_loop_test(t, default_user, 0, 2);
	tcase_add_loop_test(t, repeated_logins_are_cheap, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
