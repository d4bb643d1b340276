/* SPDX-License-Identifier: Apache-2.0
 * Accounts, rights, limits, parameters and vhosts over a restart, after a stop and after a kill. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/parameter.h"
#include "broker/persist_access.h"
#include "broker/topic_permission.h"
#include "tests/unit/persist_world.h"
#include "tests/unit/user_world.h"

static struct node n;

static void
set_up(void)
{
	node_init(&n);
}

static void
tear_down(void)
{
	node_fini(&n);
}

static void
no_sessions(void)
{
}

static void
restart(int i)
{
	node_restart(&n, i == 0, 2000, no_sessions);
}

static struct broker *
b(void)
{
	return n.w.broker;
}

static struct user *
user(const char *name)
{
	return user_find(b(), span_str(name));
}

static struct vhost *
vhost(const char *name)
{
	return vhost_find(b(), span_str(name));
}

static void
fine(const struct error *e)
{
	ck_assert_msg(e == NULL, "%s", e->text);
}

/* ---- all that can be set ---- */

static void
make_all(void)
{
	struct span tag[] = { SPAN_LIT("management"), SPAN_LIT("own") };
	struct password p;
	const struct user_spec spec = { .name = SPAN_LIT("u"),
		.password = &p,
		.tag = tag,
		.tag_count = 2,
		.loopback_only = true };
	const struct vhost_spec about = { .description = SPAN_LIT("what for"),
		.default_queue_type = SPAN_LIT("quorum"),
		.tag = tag,
		.tag_count = 2,
		.tracing = 1 };
	struct vhost *vh;

	password_make(&p, PASSWORD_PBKDF2, SPAN_LIT("secret"), 3);
	fine(user_set(b(), &spec, NULL));
	user_limit_set(user("u"), USER_MAX_CHANNELS, 7);
	user_limit_set(user("u"), USER_MAX_CONNECTIONS, -1);
	fine(vhost_set(b(), SPAN_LIT("v"), &about, &vh, NULL));
	vhost_limit_set(vh, VHOST_MAX_QUEUES, 9);
	fine(permission_set(user("u"), vh, "c", "^$", ".*"));
	fine(topic_permission_set(user("u"), vh, SPAN_LIT("amq.topic"), "^w", "", NULL));
	fine(topic_permission_set(user("u"), vh, SPAN_LIT("other"), "", "^{username}", NULL));
	fine(
	    parameter_set(b(), vh, SPAN_LIT("shovel"), SPAN_LIT("s"), SPAN_LIT("{\"a\":1}"), NULL));
	fine(parameter_set(b(), NULL, SPAN_LIT(""), SPAN_LIT("g"), SPAN_LIT("[1]"), NULL));
}

static void
check_all(void)
{
	struct vhost *vh = vhost("v");
	struct user *u = user("u");
	struct topic_permission *t;
	struct permission *p;

	ck_assert_ptr_nonnull(u);
	ck_assert(password_is(&u->password, SPAN_LIT("secret")));
	ck_assert_uint_eq(u->tags, TAG_MANAGEMENT);
	ck_assert_uint_eq(u->tag_list.count, 2);
	ck_assert_str_eq(u->tag_list.item[1], "own");
	ck_assert(u->loopback_only && !u->is_default);
	ck_assert_int_eq(u->limit[USER_MAX_CHANNELS].value, 7);
	ck_assert_int_eq(u->limit[USER_MAX_CONNECTIONS].value, -1);
	ck_assert(u->limit[USER_MAX_CONNECTIONS].is_set);
	ck_assert_ptr_nonnull(vh);
	ck_assert_str_eq(vh->description, "what for");
	ck_assert_str_eq(vh->default_queue_type, "quorum");
	ck_assert_uint_eq(vh->tags.count, 2);
	ck_assert(vh->tracing);
	ck_assert(!vh->limit[VHOST_MAX_CONNECTIONS].is_set);
	ck_assert_int_eq(vh->limit[VHOST_MAX_QUEUES].value, 9);
	p = permission_find(u, vh);
	ck_assert_ptr_nonnull(p);
	ck_assert_str_eq(p->text[PERM_CONFIGURE], "c");
	ck_assert_str_eq(p->text[PERM_WRITE], "^$");
	ck_assert_str_eq(p->text[PERM_READ], ".*");
	ck_assert(!permission_vhost(u, n.w.vhost));
	t = topic_permission_find(u, vh, SPAN_LIT("other"));
	ck_assert_ptr_nonnull(t);
	ck_assert_str_eq(t->text[TOPIC_READ], "^{username}");
	t = topic_permission_find(u, vh, SPAN_LIT("amq.topic"));
	ck_assert_str_eq(t->text[TOPIC_WRITE], "^w");
	ck_assert_str_eq(
	    parameter_find(b(), vh, SPAN_LIT("shovel"), SPAN_LIT("s"))->value, "{\"a\":1}");
	ck_assert_str_eq(parameter_find(b(), NULL, SPAN_LIT(""), SPAN_LIT("g"))->value, "[1]");
}

START_TEST(all_of_it_lasts)
{
	make_all();
	check_all();
	for (int i = 0; i < 2; i++) {
		node_settle(&n);
		restart(_i);
		check_all();
	}
	/* The last one said counts. */
	make_all();
	user_limit_clear(user("u"), USER_MAX_CHANNELS);
	fine(permission_set(user("u"), vhost("v"), "other", "", ""));
	fine(parameter_set(b(), NULL, SPAN_LIT(""), SPAN_LIT("g"), SPAN_LIT("[2]"), NULL));
	node_settle(&n);
	restart(_i);
	ck_assert(!user("u")->limit[USER_MAX_CHANNELS].is_set);
	ck_assert_str_eq(permission_find(user("u"), vhost("v"))->text[PERM_CONFIGURE], "other");
	ck_assert_str_eq(parameter_find(b(), NULL, SPAN_LIT(""), SPAN_LIT("g"))->value, "[2]");
}
END_TEST

START_TEST(what_is_taken_away_stays_away)
{
	make_all();
	permission_clear(permission_find(user("u"), vhost("v")));
	ck_assert_uint_eq(topic_permissions_drop(user("u"), vhost("v")), 2);
	parameter_clear(parameter_find(b(), vhost("v"), SPAN_LIT("shovel"), SPAN_LIT("s")));
	parameter_clear(parameter_find(b(), NULL, SPAN_LIT(""), SPAN_LIT("g")));
	node_settle(&n);
	restart(_i);
	ck_assert_ptr_null(permission_find(user("u"), vhost("v")));
	ck_assert_ptr_null(user("u")->topic_permissions);
	ck_assert_ptr_null(vhost("v")->parameters);
	ck_assert_ptr_null(b()->parameters);
}
END_TEST

/* Who, or what, has the name of one that was deleted, gets nothing that it had. */
START_TEST(names_are_used_again)
{
	make_all();
	if (_i / 2 == 0) {
		/* more than go at once: what is left of them goes at the start */
		for (int i = 0; i < 40; i++) {
			char name[8];

			snprintf(name, sizeof name, "x%d", i);
			fine(topic_permission_set(
			    user("u"), vhost("v"), span_str(name), "", "", NULL));
		}
		user_clear(user("u"));
		ck_assert(!TAILQ_EMPTY(&b()->gone_users));
		(void)user_add(b(), "u", "x", "", false);
	} else {
		vhost_clear(vhost("v"));
		fine(vhost_set(
		    b(), SPAN_LIT("v"), &(struct vhost_spec){ .tracing = -1 }, NULL, NULL));
	}
	for (int i = 0; i < 2; i++) {
		ck_assert_ptr_null(permission_find(user("u"), vhost("v")));
		ck_assert_ptr_null(user("u")->topic_permissions);
		ck_assert_int_eq(vhost("v")->parameters == NULL, _i / 2 == 1);
		ck_assert_int_eq(vhost("v")->limit[VHOST_MAX_QUEUES].is_set, _i / 2 == 0);
		node_settle(&n);
		restart(_i % 2);
	}
}
END_TEST

/* ---- default accounts ---- */

START_TEST(default_accounts)
{
	ck_assert(user("guest")->is_default && user("guest")->loopback_only);
	ck_assert(permission_vhost(user("guest"), n.w.vhost));
	user_clear(user("guest"));
	node_settle(&n);
	restart(_i);
	ck_assert_ptr_null(user("guest"));
	ck_assert(password_is(&user("admin")->password, SPAN_LIT("admin")));
	ck_assert(permission_vhost(user("admin"), n.w.vhost));
	user_clear(user("admin"));
	node_settle(&n);
	restart(_i); /* none is left: they are made again */
	ck_assert_ptr_nonnull(user("guest"));
	ck_assert(permission_vhost(user("admin"), n.w.vhost));
}
END_TEST

/* A permission that was taken away from an administrator does not come back by a restart. */
START_TEST(administrators_are_admitted_once)
{
	permission_clear(permission_find(user("admin"), n.w.vhost));
	node_settle(&n);
	restart(_i);
	ck_assert(!permission_vhost(user("admin"), n.w.vhost));
	ck_assert(permission_vhost(user("guest"), n.w.vhost));
}
END_TEST

/* Another password of the default account is that, and no rights: neither for it nor for others. */
START_TEST(another_password_gives_no_rights)
{
	n.w.cfg.default_user = (char *)"boss";
	n.w.cfg.default_password = (char *)"one";
	restart(_i);
	ck_assert(permission_vhost(user("boss"), n.w.vhost));
	(void)user_add(b(), "other", "x", "administrator", false);
	(void)vhost_add(b(), "v");
	permission_clear(permission_find(user("boss"), n.w.vhost));
	fine(permission_set(user("other"), n.w.vhost, "^$", "^$", "^$"));
	node_settle(&n);
	n.w.cfg.default_password = (char *)"two";
	restart(_i);
	ck_assert(password_is(&user("boss")->password, SPAN_LIT("two")));
	ck_assert_ptr_null(user("boss")->permissions);
	ck_assert(!permission_vhost(user("other"), vhost("v")));
	ck_assert_str_eq(permission_find(user("other"), n.w.vhost)->text[PERM_WRITE], "^$");
}
END_TEST

START_TEST(default_user_replaces_them)
{
	(void)user_add(b(), "guest", "my own", "", false); /* changed: stays */
	node_settle(&n);
	n.w.cfg.default_user = (char *)"boss";
	n.w.cfg.default_password = (char *)"one";
	restart(_i);
	ck_assert_ptr_null(user("admin"));
	ck_assert(password_is(&user("guest")->password, SPAN_LIT("my own")));
	/* in admin's place, though somebody has an account of his own */
	ck_assert(password_is(&user("boss")->password, SPAN_LIT("one")));
	ck_assert(user("boss")->loopback_only);
	n.w.cfg.default_password = (char *)"two";
	n.w.cfg.default_user_remote = true;
	node_settle(&n);
	restart(_i); /* it follows the settings, */
	ck_assert(password_is(&user("boss")->password, SPAN_LIT("two")));
	ck_assert(!user("boss")->loopback_only);
	(void)user_add(b(), "boss", "three", "administrator", false);
	node_settle(&n);
	restart(_i); /* until it was changed */
	ck_assert(password_is(&user("boss")->password, SPAN_LIT("three")));
}
END_TEST

/* ---- the end of a vhost ---- */

enum { QUEUES = 300 };

static uint64_t
fill_vhost(struct vhost *vh)
{
	const struct exchange_spec x = {
		.name = SPAN_LIT("x"), .type = SPAN_LIT("fanout"), .durable = true
	};
	struct exchange *exchange;
	struct queue *q = NULL;
	char name[16];

	fine(exchange_declare(vh, &x, &exchange));
	for (int i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "q%d", i);
		fine(queue_declare(
		    vh, &(struct queue_spec){ .name = span_str(name), .durable = true }, NULL, &q));
		fine(binding_add(exchange, q, NULL, SPAN_LIT("k"), NULL));
		(void)node_publish(&n, q, persistent_msg((uint64_t)i, 100), 0);
	}
	return q->id;
}

/* Killed in any turn of it, and begun again under the same name. */
START_TEST(vhost_that_goes)
{
	struct vhost *old = vhost_add(b(), "v"), *fresh;
	struct queue *q;

	(void)fill_vhost(old);
	node_settle(&n);
	ck_assert_uint_eq(b()->stats.queues, QUEUES);
	vhost_clear(old);
	ck_assert_ptr_null(vhost("v"));
	ck_assert_uint_eq(b()->stats.queues, QUEUES); /* not in one go */
	fresh = vhost_add(b(), "v");
	ck_assert_ptr_nonnull(fresh);
	fine(queue_declare(
	    fresh, &(struct queue_spec){ .name = SPAN_LIT("q7"), .durable = true }, NULL, &q));
	(void)node_publish(&n, q, persistent_msg(77, 100), 0);
	for (int i = 0; i < _i; i++) {
		(void)vhosts_run(b());
		broker_reap(b());
	}
	if (_i < 3)
		ck_assert_uint_gt(b()->stats.queues, 1);
	/* What the store has by now, a killed process leaves. */
	store_turn(b()->store, b()->next_id, b()->now_ms);
	while (journal_step(b()->store->journal))
		continue;
	restart(1);
	node_settle(&n);
	for (int i = 0; i < 2; i++) {
		ck_assert(TAILQ_EMPTY(&b()->gone_vhosts));
		ck_assert_uint_eq(b()->stats.queues, 1);
		q = queue_find(vhost("v"), SPAN_LIT("q7"));
		ck_assert_uint_eq(q->ready, 1);
		ck_assert_uint_eq(b()->stats.messages_ready, 1);
		ck_assert_ptr_null(exchange_find(vhost("v"), SPAN_LIT("x")));
		ck_assert_uint_eq(n.report.damaged, 0);
		restart(i);
		node_settle(&n);
	}
}
END_TEST

static char log_path[80];

static void
begin_log(void)
{
	snprintf(log_path, sizeof log_path, "%s.log", n.folder);
	ck_assert_int_eq(log_open(LOG_INFO, LOG_TEXT, log_path), 0);
}

/* Whether it has a line with this in it; the log ends. */
static bool
was_logged(const char *text)
{
	char line[500];
	bool found = false;
	FILE *f;

	log_close();
	f = fopen(log_path, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof line, f) != NULL)
		found |= strstr(line, text) != NULL;
	fclose(f);
	unlink(log_path);
	return found;
}

/* The process ends when the vhost's record says that it goes, and nothing else does. The rest goes without a word. */
START_TEST(killed_within_a_deletion)
{
	struct table_writer t;
	struct table *definition;
	struct policy_spec policy = { .name = SPAN_LIT("p"), .pattern = SPAN_LIT(".*") };
	struct vhost *vh;

	make_all();
	vh = vhost("v");
	vhost_limit_clear(vh, VHOST_MAX_QUEUES);
	(void)fill_vhost(vh);
	table_writer_init(&t, 1000);
	table_put_field(
	    &t, &(struct field){ .name = SPAN_LIT("max-length"), .kind = 'l', .integer = 5 });
	definition = table_from_raw(span_of(t.p, t.n));
	table_writer_fini(&t);
	policy.definition = definition;
	fine(policy_set(vh, POLICY_USER, &policy, NULL));
	table_free(&definition);
	vh->is_deleted = true;
	persist_vhost(vh);
	vh->is_deleted = false;
	node_settle(&n);
	for (int i = 0; i < 3; i++) {
		begin_log();
		restart(i % 2);
		ck_assert(!was_logged("left out"));
		ck_assert_ptr_null(vhost("v"));
		ck_assert_ptr_null(user("u")->permissions);
		ck_assert_ptr_null(user("u")->topic_permissions);
		node_settle(&n);
		ck_assert(TAILQ_EMPTY(&b()->gone_vhosts));
		ck_assert_uint_eq(b()->stats.queues, 0);
	}
}
END_TEST

/* Damage is said: a permission whose vhost's record is not there at all. */
START_TEST(damage_is_said)
{
	struct vhost *vh;

	make_all();
	node_settle(&n);
	vh = vhost("v");
	store_gone(b()->store, OBJECT_VHOST, vh->id);
	node_settle(&n);
	begin_log();
	restart(1);
	ck_assert(was_logged("is left out: it cannot be read, or what it belongs to is gone"));
	ck_assert_ptr_null(user("u")->permissions);
}
END_TEST

/* Nothing is left in the store of one that went. */
START_TEST(nothing_is_left)
{
	struct vhost *vh = vhost_add(b(), "v");
	uint64_t id = vh->id, last = fill_vhost(vh);

	vhost_clear(vh);
	node_settle(&n);
	ck_assert(TAILQ_EMPTY(&b()->gone_vhosts));
	ck_assert_uint_eq(b()->stats.queues, 0);
	ck_assert(!object_exists(b()->store, OBJECT_VHOST, id));
	ck_assert(!object_exists(b()->store, OBJECT_QUEUE, last));
	restart(_i);
	ck_assert_ptr_null(vhost("v"));
	ck_assert(TAILQ_EMPTY(&b()->gone_vhosts));
	ck_assert_uint_eq(b()->stats.messages_ready, 0);
}
END_TEST

/* Its clients hold pointers into it: it waits for them. */
START_TEST(it_waits_for_its_clients)
{
	struct vhost *vh = vhost_add(b(), "v");
	struct queue_spec spec = { .name = SPAN_LIT("late"), .durable = true };
	struct client c = { 0 };
	struct queue *q;

	client_init(&c, b());
	client_set_user(&c, user("guest"));
	client_set_vhost(&c, vh);
	ck_assert_uint_eq(vh->connections, 1);
	vhost_clear(vh);
	ck_assert_ptr_eq(client_take_forced(b()), &c);
	ck_assert_str_eq(c.close_reason, "vhost 'v' is deleted");
	ck_assert_ptr_nonnull(permission_check(&c, PERM_READ, "queue", SPAN_LIT("q")));
	node_settle(&n);
	fine(queue_declare(vh, &spec, NULL, &q)); /* what it had sent before it was told */
	node_settle(&n);
	ck_assert_ptr_null(queue_find(vh, SPAN_LIT("late")));
	ck_assert(!TAILQ_EMPTY(&b()->gone_vhosts));
	client_fini(&c);
	node_settle(&n);
	ck_assert(TAILQ_EMPTY(&b()->gone_vhosts));
}
END_TEST

START_TEST(the_first_vhost_too)
{
	(void)vhost_add(b(), "other");
	client_set_vhost(&n.client, NULL);
	vhost_clear(n.w.vhost);
	n.w.vhost = NULL;
	node_settle(&n);
	for (int i = 0; i < 2; i++) {
		restart(i);
		ck_assert_ptr_null(vhost("/"));
		ck_assert_ptr_nonnull(vhost("other"));
	}
}
END_TEST

/* A data folder of a version that kept no accounts, and no record of "/". */
START_TEST(older_data)
{
	struct vhost *old = vhost_add(b(), "old");
	struct queue *q = node_queue(&n, "q", true);

	(void)node_publish(&n, q, persistent_msg(1, 100), 0);
	for (struct user *u = b()->users; u != NULL; u = u->hh.next) {
		for (struct permission *p = u->permissions; p != NULL; p = p->hh.next)
			store_gone(b()->store, OBJECT_PERMISSION, p->id);
		store_gone(b()->store, OBJECT_USER, u->id);
	}
	store_gone(b()->store, OBJECT_VHOST, n.w.vhost->id);
	old->since = 0;
	persist_vhost(old);
	node_settle(&n);
	for (int i = 0; i < 2; i++) {
		restart(i);
		ck_assert_uint_eq(queue_find(n.w.vhost, SPAN_LIT("q"))->ready, 1);
		ck_assert(permission_vhost(user("guest"), n.w.vhost));
		ck_assert(permission_vhost(user("guest"), vhost("old")));
		node_settle(&n);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("persist_access");
	TCase *t = tcase_create("persist_access");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, all_of_it_lasts, 0, 2);
	tcase_add_loop_test(t, what_is_taken_away_stays_away, 0, 2);
	tcase_add_loop_test(t, names_are_used_again, 0, 4);
	tcase_add_loop_test(t, default_accounts, 0, 2);
	tcase_add_loop_test(t, administrators_are_admitted_once, 0, 2);
	tcase_add_loop_test(t, another_password_gives_no_rights, 0, 2);
	tcase_add_loop_test(t, default_user_replaces_them, 0, 2);
	tcase_add_loop_test(t, vhost_that_goes, 0, 8);
	tcase_add_test(t, killed_within_a_deletion);
	tcase_add_test(t, damage_is_said);
	tcase_add_loop_test(t, nothing_is_left, 0, 2);
	tcase_add_test(t, it_waits_for_its_clients);
	tcase_add_test(t, the_first_vhost_too);
	tcase_add_test(t, older_data);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
