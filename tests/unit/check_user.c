/* SPDX-License-Identifier: Apache-2.0
 * Accounts and logins. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/worker.h"
#include "broker/login.h"
#include "broker/permission.h"
#include "broker/topic_permission.h"
#include "queue_world.h"
#include "tests/unit/user_world.h"

static struct world w;

/* Without workers the answer is there at once. */
static struct user *
login(struct broker *b, struct span name, struct span password, bool loopback, const char **why)
{
	const struct credentials c = {
		.name = name, .password = password, .address = "192.0.2.1", .loopback = loopback
	};
	struct login *later;
	struct user *u = login_begin(b, &c, NULL, NULL, &later, why);

	ck_assert_ptr_null(later);
	return u;
}

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

	(void)user_add(w.broker, "far", "secret", "", false);
	(void)user_add(w.broker, "none", "", "", false);
	for (int again = 0; again < 3; again++) { /* what is remembered says the same */
		struct user *u = login(w.broker, span_str(cases[_i].name),
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

	ck_assert_ptr_nonnull(login(w.broker, SPAN_LIT("guest"), SPAN_LIT("guest"), true, &why));
	ck_assert_ptr_null(login(w.broker, SPAN_LIT("guest"), SPAN_LIT("new"), true, &why));
	(void)user_add(w.broker, "guest", "new", "", true);
	ck_assert_ptr_null(login(w.broker, SPAN_LIT("guest"), SPAN_LIT("guest"), true, &why));
	ck_assert_ptr_nonnull(login(w.broker, SPAN_LIT("guest"), SPAN_LIT("new"), true, &why));
}
END_TEST

START_TEST(too_long)
{
	static uint8_t long_one[2000];
	const char *why;

	ck_assert_ptr_null(login(w.broker, span_of(long_one, 256), SPAN_LIT("x"), true, &why));
	ck_assert_ptr_null(login(w.broker, SPAN_LIT("guest"), span_of(long_one, 1025), true, &why));
	ck_assert_ptr_null(
	    login(w.broker, span_of(long_one, 255), span_of(long_one, 1024), true, &why));
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
	users_begin(v.broker);
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("guest")));
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("admin")));
	ck_assert_ptr_nonnull(login(v.broker, SPAN_LIT("app"), SPAN_LIT("pw"), true, &why));
	ck_assert_int_eq(
	    login(v.broker, SPAN_LIT("app"), SPAN_LIT("pw"), false, &why) != NULL, _i == 1);
	ck_assert_uint_eq(user_find(v.broker, SPAN_LIT("app"))->tags, TAG_ADMINISTRATOR);
	ck_assert(permission_vhost(
	    user_find(v.broker, SPAN_LIT("app")), vhost_find(v.broker, SPAN_LIT("/"))));
	broker_free(&v.broker);
	wheel_free(&v.wheel);
}
END_TEST

/* Who adds an account and names a default_user afterwards still has an administrator. */
START_TEST(default_user_comes_later)
{
	const struct user_spec other = { .name = SPAN_LIT("shop") };
	struct world v = { .cfg = { 0 } };

	v.wheel = wheel_new(1000);
	v.broker = broker_new(&v.cfg, v.wheel, 1000);
	users_begin(v.broker);
	ck_assert_ptr_null(user_set(v.broker, &other, NULL));
	v.cfg.default_user = (char *)"app";
	v.cfg.default_password = (char *)"pw";
	users_go_on(v.broker);
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("guest")));
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("admin")));
	ck_assert_ptr_nonnull(user_find(v.broker, SPAN_LIT("shop")));
	ck_assert_ptr_nonnull(user_find(v.broker, SPAN_LIT("app")));
	ck_assert_uint_eq(user_find(v.broker, SPAN_LIT("app"))->tags, TAG_ADMINISTRATOR);
	user_clear(user_find(v.broker, SPAN_LIT("app")));
	users_go_on(v.broker); /* somebody took it away, and others are there */
	ck_assert_ptr_null(user_find(v.broker, SPAN_LIT("app")));
	broker_free(&v.broker);
	wheel_free(&v.wheel);
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
		right += login(w.broker, SPAN_LIT("guest"), password, true, &why) != NULL;
	ck_assert_int_eq(right, _i == 0 ? 10000 : 0);
	ck_assert_int_lt(clock() - before, CLOCKS_PER_SEC);
}
END_TEST

/* ---- accounts ---- */

START_TEST(tags)
{
	struct span tag[] = { SPAN_LIT("management"), SPAN_LIT("own, tag"), SPAN_LIT("") };
	const struct user_spec spec = { .name = SPAN_LIT("t"), .tag = tag, .tag_count = 3 };
	struct span many[TAGS_MAX + 1];
	const struct user_spec too_many = {
		.name = SPAN_LIT("t"), .tag = many, .tag_count = TAGS_MAX + 1
	};
	struct user *u;
	bool created;

	ck_assert_ptr_null(user_set(w.broker, &spec, &created));
	ck_assert(created);
	u = user_find(w.broker, SPAN_LIT("t"));
	ck_assert_uint_eq(u->tags, TAG_MANAGEMENT);
	ck_assert_uint_eq(u->tag_list.count, 3);
	ck_assert_str_eq(u->tag_list.item[1], "own, tag");
	for (int i = 0; i <= TAGS_MAX; i++)
		many[i] = SPAN_LIT("administrator");
	ck_assert_ptr_nonnull(user_set(w.broker, &too_many, &created));
	ck_assert_uint_eq(u->tags, TAG_MANAGEMENT);
	ck_assert_ptr_null(
	    user_set(w.broker, &(struct user_spec){ .name = SPAN_LIT("t") }, &created));
	ck_assert(!created);
	ck_assert_uint_eq(u->tags, 0);
}
END_TEST

START_TEST(bad_names)
{
	static uint8_t long_one[256];
	struct span names[] = { SPAN_LIT(""), span_of(long_one, 256), SPAN_LIT("a\0b"),
		SPAN_LIT("\xff") };

	memset(long_one, 'n', sizeof long_one);
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		ck_assert_ptr_nonnull(
		    user_set(w.broker, &(struct user_spec){ .name = names[i] }, NULL));
		ck_assert_ptr_null(user_find(w.broker, names[i]));
	}
}
END_TEST

/* Open connections are to be closed, and have no rights any more; the record lives as long as they do. */
START_TEST(deleted)
{
	struct user *u = user_add(w.broker, "u", "p", "", false);
	struct client mine, other;
	const char *why;

	ck_assert_ptr_null(permission_set(u, w.vhost, ".*", ".*", ".*"));
	world_client(&w, &mine);
	world_client(&w, &other);
	client_set_user(&mine, u);
	ck_assert_ptr_null(permission_check(&mine, PERM_READ, "queue", SPAN_LIT("q")));
	user_clear(u);
	ck_assert_ptr_null(user_find(w.broker, SPAN_LIT("u")));
	ck_assert_ptr_null(login(w.broker, SPAN_LIT("u"), SPAN_LIT("p"), true, &why));
	ck_assert_ptr_nonnull(permission_check(&mine, PERM_READ, "queue", SPAN_LIT("q")));
	ck_assert_ptr_eq(client_take_forced(w.broker), &mine);
	ck_assert_ptr_null(client_take_forced(w.broker));
	ck_assert_str_eq(mine.close_reason, "user 'u' is deleted");
	ck_assert_str_eq(mine.who.user, "u");
	client_fini(&mine);
	client_fini(&other);
}
END_TEST

/* ---- with a worker ---- */

static struct {
	unsigned calls;
	struct user *user;
	const char *why;
} answer;

static void
answered(void *arg, struct user *u, const char *why)
{
	ck_assert_ptr_eq(arg, &answer);
	answer.calls++;
	answer.user = u;
	answer.why = why;
}

static struct user *
slow_user(const char *name, const char *password)
{
	struct password p;
	const struct user_spec spec = { .name = span_str(name), .password = &p };

	password_make(&p, PASSWORD_PBKDF2, span_str(password), 10);
	ck_assert_ptr_null(user_set(w.broker, &spec, NULL));
	return user_find(w.broker, spec.name);
}

static struct user *
begin(const char *name, const char *password, struct login **later)
{
	const struct credentials c = {
		.name = span_str(name), .password = span_str(password), .address = "192.0.2.2"
	};
	const char *why;

	return login_begin(w.broker, &c, answered, &answer, later, &why);
}

static void
work(void)
{
	while (workers_step(w.broker->hashers, 0))
		continue;
	workers_take(w.broker->hashers);
}

START_TEST(hashed_by_a_worker)
{
	struct login *later;
	struct user *u;

	w.broker->hashers = workers_new(0);
	answer.calls = 0;
	u = slow_user("slow", "right");
	ck_assert_ptr_null(begin("slow", "right", &later));
	ck_assert_ptr_nonnull(later);
	ck_assert_uint_eq(answer.calls, 0);
	work();
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_ptr_eq(answer.user, u);
	ck_assert_ptr_null(later);
	ck_assert_ptr_eq(begin("slow", "right", &later), u); /* at once, from now on */
	ck_assert_ptr_null(later);
	/* Wrong ones take a worker whoever it is; then they are known. */
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "slow", "guest", "nobody" };

		ck_assert_ptr_null(begin(names[i], "wrong", &later));
		ck_assert_ptr_nonnull(later);
		work();
		ck_assert_uint_eq(answer.calls, 2 + i);
		ck_assert_ptr_null(answer.user);
		ck_assert_str_eq(answer.why, i == 2 ? "unknown user" : "wrong password");
		ck_assert_ptr_null(begin(names[i], "wrong", &later));
		ck_assert_ptr_null(later);
	}
	workers_free(&w.broker->hashers);
}
END_TEST

/* What changes while the worker hashes counts as it is at the end. */
START_TEST(changed_meanwhile)
{
	struct login *later;

	w.broker->hashers = workers_new(0);
	answer.calls = 0;
	(void)slow_user("slow", "right");
	ck_assert_ptr_null(begin("slow", "right", &later));
	if (_i == 0)
		(void)slow_user("slow", "other");
	else if (_i == 1)
		user_clear(user_find(w.broker, SPAN_LIT("slow")));
	else
		login_cancel(&later);
	work();
	ck_assert_uint_eq(answer.calls, _i == 2 ? 0 : 1);
	ck_assert_ptr_null(answer.user);
	ck_assert_uint_eq(w.broker->logins_waiting, 0);
	workers_free(&w.broker->hashers);
}
END_TEST

/* Guessing ends, from an address and at an account; who got in before still gets in. */
START_TEST(guesses_are_limited)
{
	struct login *later, *waiting[1000];
	unsigned handed_over = 0;
	char guess[16];

	w.broker->hashers = workers_new(0);
	(void)slow_user("slow", "right");
	ck_assert_ptr_null(begin("slow", "right", &later));
	work();
	for (unsigned i = 0; i < COUNT_OF(waiting); i++) {
		snprintf(guess, sizeof guess, "%u", i);
		ck_assert_ptr_null(begin("slow", guess, &waiting[i]));
		handed_over += waiting[i] != NULL;
		if (i % 2 == 0)
			work();
	}
	work();
	ck_assert_uint_gt(handed_over, 20);
	ck_assert_uint_lt(handed_over, 200);
	ck_assert_ptr_nonnull(begin("slow", "right", &later));
	ck_assert_ptr_null(begin("guest", "guest", &later)); /* not known yet, from this address */
	ck_assert_ptr_null(later);
	w.broker->now_ms += 60000;
	(void)begin("guest", "other", &later);
	ck_assert_ptr_nonnull(later);
	work();
	workers_free(&w.broker->hashers);
}
END_TEST

/* So many wait, and no more. */
START_TEST(waiting_is_bounded)
{
	struct login *waiting[1000];
	unsigned handed_over = 0;

	w.broker->hashers = workers_new(0);
	(void)slow_user("slow", "right");
	for (unsigned i = 0; i < COUNT_OF(waiting); i++) {
		(void)begin("slow", "right", &waiting[i]);
		handed_over += waiting[i] != NULL;
	}
	ck_assert_uint_gt(handed_over, 100);
	ck_assert_uint_lt(handed_over, 500);
	ck_assert_uint_eq(w.broker->stats.logins_dropped, COUNT_OF(waiting) - handed_over);
	work();
	workers_free(&w.broker->hashers);
}
END_TEST

static void
keep(void *arg, const struct password *p)
{
	*(struct password *)arg = *p;
}

START_TEST(hash_of_a_new_password)
{
	struct password p = { 0 };

	w.cfg.password_kind = (uint32_t)_i;
	w.broker->hashers = workers_new(0);
	user_hash(w.broker, SPAN_LIT("pw"), keep, &p);
	ck_assert_int_eq(p.kind != PASSWORD_NONE, _i < 2); /* there at once */
	work();
	ck_assert_int_eq(p.kind, _i == 0   ? PASSWORD_SHA256
	                         : _i == 1 ? PASSWORD_SHA512
	                                   : PASSWORD_PBKDF2);
	ck_assert(password_is(&p, SPAN_LIT("pw")));
	workers_free(&w.broker->hashers);
}
END_TEST

/* What operators make takes memory as what clients declare does, is counted until it is gone, and stops at the same bound;
 * what is there can still be changed. */
START_TEST(is_counted_and_bounded)
{
	struct broker *b = w.broker;
	uint64_t before, with_user, with_right, with_longer;
	struct vhost *other_vhost = vhost_add(b, "other");
	struct user *u;
	struct user_spec other = { .name = SPAN_LIT("v") }, same = { .name = SPAN_LIT("u") };

	before = mem_held[MEM_TOPOLOGY];
	u = user_add(b, "u", "p", "management", false);
	with_user = mem_held[MEM_TOPOLOGY];
	ck_assert_uint_ge(with_user, before + sizeof *u + sizeof "management");
	ck_assert_ptr_null(permission_set(u, w.vhost, "^a", ".*", ""));
	with_right = mem_held[MEM_TOPOLOGY];
	ck_assert_uint_gt(with_right, with_user + sizeof(struct permission));
	ck_assert_ptr_null(permission_set(u, w.vhost, "^a(b|c|d){2,3}", ".*", ""));
	with_longer = mem_held[MEM_TOPOLOGY];
	ck_assert_uint_gt(with_longer, with_right);
	ck_assert_ptr_null(topic_permission_set(u, w.vhost, SPAN_LIT("x"), "^a", "^b", NULL));
	ck_assert_uint_gt(mem_held[MEM_TOPOLOGY], with_longer + sizeof(struct topic_permission));

	b->memory.limit = 2;
	ck_assert_ptr_nonnull(user_set(b, &other, NULL));
	ck_assert_ptr_nonnull(permission_set(u, other_vhost, "", "", ""));
	ck_assert_ptr_nonnull(topic_permission_set(u, w.vhost, SPAN_LIT("y"), "", "", NULL));
	ck_assert_ptr_null(user_set(b, &same, NULL));
	ck_assert_ptr_null(permission_set(u, w.vhost, ".*", ".*", ".*"));
	ck_assert_ptr_null(topic_permission_set(u, w.vhost, SPAN_LIT("x"), "", "", NULL));
	b->memory.limit = 0;

	user_clear(u);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], before);
}
END_TEST

static unsigned
rights_in(const struct vhost *vh)
{
	const struct topic_permission *p;
	unsigned n = 0;

	LIST_FOREACH (p, &vh->topic_permissions, vhost_link)
		n++;
	return n;
}

/* However many rights a deleted user had: it has none any more, and what is kept of them goes in slices. */
START_TEST(rights_go_in_slices)
{
	struct broker *b = w.broker;
	uint64_t before = mem_held[MEM_TOPOLOGY];
	struct user *u = user_add(b, "u", NULL, "", false);
	unsigned left, turns = 0;
	char name[16];

	ck_assert_ptr_null(permission_set(u, w.vhost, ".*", ".*", ".*"));
	for (unsigned i = 0; i < TOPIC_PERMISSIONS_MAX; i++) {
		snprintf(name, sizeof name, "x%u", i);
		ck_assert_ptr_null(topic_permission_set(u, w.vhost, span_str(name), "", "", NULL));
	}
	if (_i == 1) /* somebody keeps a pointer */
		(void)user_ref(u);
	user_clear(u);
	ck_assert_ptr_null(user_find(b, SPAN_LIT("u")));
	if (_i == 1)
		ck_assert(!permission_vhost(u, w.vhost));
	left = rights_in(w.vhost);
	ck_assert_uint_gt(left, TOPIC_PERMISSIONS_MAX - 32);
	for (; left > 0; turns++) {
		(void)broker_run(b);
		ck_assert_uint_lt(rights_in(w.vhost), left);
		ck_assert_uint_ge(rights_in(w.vhost) + 256, left);
		left = rights_in(w.vhost);
	}
	ck_assert_uint_ge(turns, 4);
	while (broker_run(b))
		continue;
	ck_assert(TAILQ_EMPTY(&b->gone_users));
	if (_i == 1)
		user_unref(&u);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], before);
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
	tcase_add_loop_test(t, default_user, 0, 2);
	tcase_add_test(t, default_user_comes_later);
	tcase_add_loop_test(t, repeated_logins_are_cheap, 0, 2);
	tcase_add_test(t, tags);
	tcase_add_test(t, bad_names);
	tcase_add_test(t, deleted);
	tcase_add_test(t, hashed_by_a_worker);
	tcase_add_loop_test(t, changed_meanwhile, 0, 3);
	tcase_add_test(t, guesses_are_limited);
	tcase_add_test(t, waiting_is_bounded);
	tcase_add_loop_test(t, hash_of_a_new_password, 0, 3);
	tcase_add_test(t, is_counted_and_bounded);
	tcase_add_loop_test(t, rights_go_in_slices, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
