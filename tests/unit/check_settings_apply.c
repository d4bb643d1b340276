/* SPDX-License-Identifier: Apache-2.0
 * What a broker makes of users, policies and vhosts of the settings: once, again, changed, and taken away. */
#include "settings_apply.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/wheel.h"
#include "base/worker.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/policy.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "settings.h"
#include "user_world.h"

static struct settings s;
static struct problems p;
static struct broker *b;
static struct wheel *w;

static void
load(const char *text)
{
	problems_fini(&p);
	settings_free_lists(&s); /* the broker looks at s.config for good */
	if (b == NULL) {
		settings_fini(&s);
		p.file = "h.yml";
		settings_load_text(&s, text, strlen(text), &p);
		s.file = xstrdup("h.yml");
		settings_finish(&s, &p);
		w = wheel_new(0);
		b = broker_new(&s.config, w, 0);
	} else {
		struct settings fresh;

		p.file = "h.yml";
		settings_load_text(&fresh, text, strlen(text), &p);
		s.vhosts = fresh.vhosts;
		s.users = fresh.users;
		s.policies = fresh.policies;
		s.operator_policies = fresh.operator_policies;
		s.queues = fresh.queues;
		s.config.has_users = s.users.count > 0;
		fresh.vhosts = fresh.users = fresh.policies = fresh.operator_policies =
		    fresh.queues = (struct settings_list){ 0 };
		settings_fini(&fresh);
	}
	ck_assert_msg(p.count == 0, "%s", p.count > 0 ? p.item[0] : "");
}

/* The settings in force are these. Returns the first problem, or "". */
static const char *
apply(const char *text)
{
	load(text);
	settings_declare(&s, b, &p);
	return p.count > 0 ? p.item[0] : "";
}

static void
teardown(void)
{
	problems_fini(&p);
	if (b != NULL)
		broker_free(&b);
	if (w != NULL)
		wheel_free(&w);
	settings_fini(&s);
}

static struct user *
user(const char *name)
{
	return user_find(b, span_str(name));
}

static struct vhost *
vhost(const char *name)
{
	return vhost_find(b, span_str(name));
}

static struct policy *
policy(const char *vhost_name, enum policy_kind kind, const char *name)
{
	return policy_find(vhost(vhost_name), kind, span_str(name));
}

static const char *
rights(const char *name, const char *vhost_name)
{
	static char text[200];
	const struct permission *have = permission_find(user(name), vhost(vhost_name));

	if (have == NULL)
		return "none";
	snprintf(text, sizeof text, "%s %s %s", have->text[PERM_CONFIGURE], have->text[PERM_WRITE],
	    have->text[PERM_READ]);
	return text;
}

static const char three[] =
    "vhosts: [{name: v, description: shop, tags: 'a, b', default_queue_type: quorum, limits: "
    "{max-queues: 3}}]\n"
    "users:\n"
    "- {username: app, password: one, tags: [monitoring, own], permissions: [a, b, c], vhost: [/, "
    "v], limits: {max-channels: -1}}\n"
    "- {username: ops, password: two, tags: 'administrator, management'}\n"
    "- {username: tool, password_hash: c2FsdEPmxZqf1dmnTmRshtWe00Zl8KH7e/jeGk7s9sKyB2UQ}\n"
    "policies: [{name: cap, pattern: ^o, apply-to: queues, priority: 7, definition: {max-length: "
    "5}}]\n"
    "operator_policies: [{name: cap, vhost: v, pattern: '', definition: {max-length: 9}}]\n"
    "queues: [{name: orders}]\n";

START_TEST(all_is_applied)
{
	struct field f;

	ck_assert_str_eq(apply(three), "");
	ck_assert_str_eq(vhost("v")->description, "shop");
	ck_assert_str_eq(vhost("v")->default_queue_type, "quorum");
	ck_assert_uint_eq(vhost("v")->tags.count, 2);
	ck_assert(vhost("v")->limit[VHOST_MAX_QUEUES].is_set);
	ck_assert_int_eq(vhost("v")->limit[VHOST_MAX_QUEUES].value, 3);
	ck_assert(!vhost("v")->limit[VHOST_MAX_CONNECTIONS].is_set);
	ck_assert_uint_eq(HASH_COUNT(b->users), 3); /* neither guest nor admin */
	ck_assert(password_is(&user("app")->password, span_str("one")));
	ck_assert_uint_eq(user("app")->tags, TAG_MONITORING);
	ck_assert_str_eq(user("app")->tag_list.item[1], "own");
	ck_assert(!user("app")->loopback_only);
	ck_assert_int_eq(user("app")->limit[USER_MAX_CHANNELS].value, -1);
	ck_assert_str_eq(rights("app", "/"), "a b c");
	ck_assert_str_eq(rights("app", "v"), "a b c");
	ck_assert_uint_eq(user("ops")->tags, TAG_ADMINISTRATOR | TAG_MANAGEMENT);
	ck_assert_str_eq(rights("ops", "/"), "none");
	ck_assert(password_is(&user("tool")->password, span_str("imported")));
	ck_assert_ptr_eq(queue_find(vhost("/"), span_str("orders"))->policy[POLICY_USER],
	    policy("/", POLICY_USER, "cap"));
	ck_assert_int_eq(policy("/", POLICY_USER, "cap")->priority, 7);
	ck_assert_str_eq(policy_apply_to(policy("v", POLICY_OPERATOR, "cap")), "all");
	ck_assert(table_find(
	    table_span(policy("v", POLICY_OPERATOR, "cap")->definition), "max-length", &f));
	ck_assert_int_eq(f.integer, 9);
}
END_TEST

START_TEST(again_changes_nothing)
{
	const struct policy *was;
	struct password hash;
	uint64_t epoch, id;

	ck_assert_str_eq(apply(three), "");
	was = policy("/", POLICY_USER, "cap");
	hash = user("app")->password;
	epoch = b->permission_epoch;
	id = b->next_id;
	ck_assert_str_eq(apply(three), "");
	ck_assert_ptr_eq(policy("/", POLICY_USER, "cap"), was);
	ck_assert_mem_eq(&user("app")->password, &hash, sizeof hash); /* the same salt */
	ck_assert_uint_eq(b->permission_epoch, epoch);
	ck_assert_uint_eq(b->next_id, id);
}
END_TEST

START_TEST(changes_are_applied)
{
	ck_assert_str_eq(apply(three), "");
	ck_assert_str_eq(
	    apply("users:\n"
	          "- {username: app, password: three, permissions: [x, y, z], vhost: v, "
	          "limits: {}}\n"
	          "policies: [{name: cap, pattern: ^o, definition: {max-length: 6}}]\n"
	          "vhosts: [{name: v, description: '', limits: {max-queues: 4}}]\n"),
	    "");
	ck_assert(password_is(&user("app")->password, span_str("three")));
	ck_assert_uint_eq(user("app")->tag_list.count, 0);
	ck_assert(!user("app")->limit[USER_MAX_CHANNELS].is_set);
	ck_assert_str_eq(rights("app", "v"), "x y z");
	ck_assert_str_eq(rights("app", "/"), "none");
	ck_assert_int_eq(policy("/", POLICY_USER, "cap")->priority, 0);
	ck_assert_str_eq(policy_apply_to(policy("/", POLICY_USER, "cap")), "all");
	ck_assert_int_eq(vhost("v")->limit[VHOST_MAX_QUEUES].value, 4);
	ck_assert_str_eq(vhost("v")->description, "");
	ck_assert_str_eq(vhost("v")->default_queue_type, "quorum"); /* not said: as it was */
}
END_TEST

/* What the settings do not say is as others set it. */
START_TEST(what_is_not_said_stays)
{
	ck_assert_str_eq(apply(three), "");
	ck_assert_ptr_null(permission_set(user("ops"), vhost("v"), "1", "2", "3"));
	user_limit_set(user("ops"), USER_MAX_CHANNELS, 4);
	ck_assert_str_eq(apply(three), "");
	ck_assert_str_eq(rights("ops", "v"), "1 2 3");
	ck_assert_int_eq(user("ops")->limit[USER_MAX_CHANNELS].value, 4);
}
END_TEST

/* Somebody else's users and policies stay, also those that the settings had before. */
START_TEST(what_is_taken_out_goes)
{
	struct table *definition;
	struct table_writer tw;
	struct policy_spec spec = { .name = span_str("mine"), .pattern = span_str("x") };

	ck_assert_str_eq(apply(three), "");
	user_add(b, "other", "x", "", false);
	user_add(b, "tool", "new", "", false);
	table_writer_init(&tw, 100);
	table_put_string(&tw, "dead-letter-exchange", "d");
	definition = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	spec.definition = definition;
	ck_assert_ptr_null(policy_set(vhost("v"), POLICY_USER, &spec, NULL));
	table_free(&definition);
	ck_assert_str_eq(apply("users: [{username: app, password: one}]\npolicies:\n"
	                       "operator_policies: []\n"),
	    "");
	ck_assert_ptr_null(user("ops"));
	ck_assert_ptr_nonnull(user("app"));
	ck_assert_ptr_nonnull(user("tool"));
	ck_assert_ptr_nonnull(user("other"));
	ck_assert_ptr_null(policy("/", POLICY_USER, "cap"));
	ck_assert_ptr_null(policy("v", POLICY_OPERATOR, "cap"));
	ck_assert_ptr_nonnull(policy("v", POLICY_USER, "mine"));
	ck_assert_ptr_nonnull(queue_find(vhost("/"), span_str("orders")));
}
END_TEST

START_TEST(without_the_list_nobody_goes)
{
	ck_assert_str_eq(apply(three), "");
	ck_assert_str_eq(apply("operator_policies: []\n"), "");
	ck_assert_ptr_nonnull(user("ops"));
	ck_assert_ptr_nonnull(policy("/", POLICY_USER, "cap"));
	ck_assert_ptr_null(policy("v", POLICY_OPERATOR, "cap"));
}
END_TEST

/* admin and guest are there as long as nobody else is. */
START_TEST(default_accounts)
{
	ck_assert_str_eq(apply(""), "");
	ck_assert_ptr_nonnull(user("guest"));
	ck_assert_str_eq(apply("users: [{username: admin, password: mine}]\n"), "");
	ck_assert_ptr_null(user("guest"));
	ck_assert(password_is(&user("admin")->password, span_str("mine")));
	ck_assert(!user("admin")->loopback_only);
	ck_assert_str_eq(apply("users: []\n"), "");
	ck_assert_ptr_nonnull(user("guest"));
	ck_assert(password_is(&user("admin")->password, span_str("admin")));
	ck_assert(user("admin")->loopback_only);
	ck_assert_str_eq(rights("admin", "/"), ".* .* .*");
}
END_TEST

/* A new vhost is opened to administrators, but to those whose rights the settings say. */
START_TEST(new_vhosts)
{
	ck_assert_str_eq(apply("users: [{username: app, password: x, tags: administrator}]\n"), "");
	user_add(b, "boss", "x", "administrator", false);
	ck_assert_str_eq(apply("users: [{username: app, password: x, tags: administrator}]\n"
	                       "vhosts: [{name: v}]\n"),
	    "");
	ck_assert_str_eq(rights("boss", "v"), ".* .* .*");
	ck_assert_str_eq(rights("app", "v"), "none");
}
END_TEST

static const struct refusal {
	const char *text, *said;
} refusals[] = {
	{ "users:\n- {username: bad, password: x, permissions: ['(', '', '']}\n",
	    "h.yml:2:4: permissions of user 'bad': " },
	{ "users:\n- {username: bad, password: x, permissions: ['', '', ''], vhost: [none, /]}\n",
	    "h.yml:2:4: no vhost 'none' here; add it to vhosts" },
	{ "vhosts:\n- {name: v}\n- {name: bad, default_queue_type: round}\n",
	    "h.yml:3:4: vhost 'bad': PRECONDITION_FAILED - unknown default queue type 'round'" },
	{ "policies:\n- {name: bad, vhost: none, pattern: a, definition: {max-length: 1}}\n",
	    "h.yml:2:4: no vhost 'none' here; add it to vhosts" },
	{ "policies:\n- {name: bad, pattern: '(', definition: {max-length: 1}}\n",
	    "h.yml:2:4: policy 'bad': PRECONDITION_FAILED - Validation failed pattern should be "
	    "regular expression but is invalid: " },
	{ "operator_policies:\n- {name: bad, pattern: a, definition: {max-lenght: 1}}\n",
	    "h.yml:2:4: operator policy 'bad': PRECONDITION_FAILED - Validation failed " },
	{ "policies:\n- {name: bad, pattern: a, definition: {}}\n",
	    "h.yml:2:4: policy 'bad': PRECONDITION_FAILED - Validation failed " },
	{ "policies:\n- {name: bad, pattern: a, apply-to: all of them, definition: {max-length: "
	  "1}}\n",
	    "h.yml:2:4: policy 'bad': PRECONDITION_FAILED - Validation failed apply-to 'all of "
	    "them' "
	    "unrecognised; " },
};

/* The rest is applied: here a user with the same rights, and a policy. */
START_TEST(refusals_are_single)
{
	const struct refusal *r = &refusals[_i];
	bool is_user = strncmp(r->text, "users", 5) == 0;
	bool is_policy = strncmp(r->text, "policies", 8) == 0;
	char text[600];

	/* The list that the bad entry is in goes on; the other one is new. */
	snprintf(text, sizeof text, "%s%s- {username: good, password: x}\n%s", r->text,
	    is_user     ? ""
	    : is_policy ? "- {name: good, pattern: a, definition: {max-length: 1}}\nusers:\n"
	                : "users:\n",
	    is_policy ? ""
	              : "policies:\n- {name: good, pattern: a, definition: {max-length: 1}}\n");
	ck_assert_msg(strncmp(apply(text), r->said, strlen(r->said)) == 0, "%s", p.item[0]);
	ck_assert_ptr_null(strchr(p.item[0], '\n'));
	ck_assert_uint_eq(p.count, 1);
	ck_assert_ptr_nonnull(user("good"));
	ck_assert_ptr_nonnull(policy("/", POLICY_USER, "good"));
}
END_TEST

/* ---- slow hashes ---- */

static struct workers *hashers;

static void
start_hashers(void)
{
	hashers = workers_new(0);
	b->hashers = hashers;
}

/* Until all is done; returns how many passwords went over a worker. */
static unsigned
run(struct settings_apply *a)
{
	unsigned n = 0;

	while (!settings_apply_run(a, 1000000)) {
		if (!settings_apply_waits(a))
			continue;
		ck_assert(workers_step(hashers, workers_waiting(hashers) - 1)); /* in any order */
		workers_take(hashers);
		n++;
	}
	return n;
}

static unsigned
apply_with_workers(const char *text)
{
	struct settings_apply *a;
	unsigned n;

	load(text);
	a = settings_apply_new(b, &s, &p);
	n = run(a);
	settings_apply_free(&a);
	ck_assert_uint_eq(p.count, 0);
	return n;
}

START_TEST(passwords_go_to_workers)
{
	char text[4000] = "users:\n";
	struct password hash;

	for (int i = 0; i < 20; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text),
		    "- {username: u%d, password: p%d}\n", i, i);
	load("");
	start_hashers();
	ck_assert_uint_ge(apply_with_workers(text), 20);
	hash = user("u19")->password;
	ck_assert_int_eq(hash.kind, PASSWORD_PBKDF2);
	ck_assert(password_is(&hash, span_str("p19")));
	ck_assert_uint_ge(apply_with_workers(text), 20); /* compared, and kept */
	ck_assert_mem_eq(&user("u19")->password, &hash, sizeof hash);
	/* A quick hash that is right is compared at once, and kept. */
	user_add(b, "u0", "p0", "", false);
	ck_assert_uint_eq(apply_with_workers("users: [{username: u0, password: p0}]\n"), 0);
	ck_assert_int_eq(user("u0")->password.kind, PASSWORD_SHA256);
	ck_assert(user("u0")->of_settings);
	ck_assert_uint_eq(apply_with_workers("users: [{username: u0, password: new}]\n"), 1);
	ck_assert(password_is(&user("u0")->password, span_str("new")));
	b->hashers = NULL;
	workers_free(&hashers);
}
END_TEST

/* What it began ends by itself. */
START_TEST(given_up_in_the_middle)
{
	struct settings_apply *a;

	load("users: [{username: a, password: x}, {username: b, password: y}]\n");
	start_hashers();
	a = settings_apply_new(b, &s, &p);
	ck_assert(!settings_apply_run(a, 1000000));
	ck_assert(settings_apply_waits(a));
	settings_apply_free(&a);
	ck_assert_uint_eq(apply_with_workers("users: [{username: b, password: z}]\n"), 1);
	ck_assert_ptr_null(user("a"));
	ck_assert(password_is(&user("b")->password, span_str("z")));
	b->hashers = NULL;
	workers_free(&hashers);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("settings_apply");
	TCase *t = tcase_create("settings_apply");
	SRunner *r = srunner_create(suite);
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, all_is_applied);
	tcase_add_test(t, again_changes_nothing);
	tcase_add_test(t, changes_are_applied);
	tcase_add_test(t, what_is_not_said_stays);
	tcase_add_test(t, what_is_taken_out_goes);
	tcase_add_test(t, without_the_list_nobody_goes);
	tcase_add_test(t, default_accounts);
	tcase_add_test(t, new_vhosts);
	tcase_add_loop_test(t, refusals_are_single, 0, COUNT_OF(refusals));
	tcase_add_test(t, passwords_go_to_workers);
	tcase_add_test(t, given_up_in_the_middle);
	suite_add_tcase(suite, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
