/* SPDX-License-Identifier: Apache-2.0
 * What an import makes of the accounts that are there, and of those that are not. */
#include <check.h>

#include "mgmt/definitions.h"
#include "tests/unit/queue_world.h"

/* As RabbitMQ exports its own: name and password are "guest". */
static const char guest_json[] =
    "{\"users\": [{\"name\": \"guest\", \"tags\": [\"administrator\"], \"limits\": {},"
    " \"password_hash\": \"KSkpKYORHiRzRhCOfb9kRHcTpD92FxdV4nYC8C9DIjpe2kmJ\","
    " \"hashing_algorithm\": \"rabbit_password_hashing_sha256\"},"
    " {\"name\": \"app\", \"tags\": \"\", \"password_hash\": \"\"}]}";

static struct world w;

static void
setup(void)
{
	world_init(&w);
}

static void
teardown(void)
{
	world_fini(&w);
}

static void
import(const char *text, uint64_t want_done, uint64_t want_failed)
{
	struct import *im =
	    import_new(w.broker, json_loads(text, 0, NULL), NULL); /* takes the document */
	uint64_t done, failed;

	while (!import_run(im, 1000000))
		ck_assert(!import_waits(im)); /* no workers here */
	import_counts(im, &done, &failed);
	ck_assert_uint_eq(done, want_done);
	ck_assert_uint_eq(failed, want_failed);
	import_free(&im, NULL);
}

static const struct user *
user(const char *name)
{
	return user_find(w.broker, span_str(name));
}

/* Every export of RabbitMQ has this account, whose password everybody knows: it opens nothing to other machines. */
START_TEST(guest_stays_at_home)
{
	ck_assert(user("guest")->loopback_only);
	import(guest_json, 2, 0);
	ck_assert(!user("guest")->is_default);
	ck_assert(user("guest")->loopback_only);
	ck_assert(!user("app")->loopback_only);
	import(guest_json, 2, 0);
	ck_assert(user("guest")->loopback_only);
}
END_TEST

START_TEST(guest_is_new)
{
	user_clear(user_find(w.broker, SPAN_LIT("guest")));
	import(guest_json, 2, 0);
	ck_assert(user("guest")->loopback_only);
}
END_TEST

/* An operator has said otherwise. */
START_TEST(guest_from_everywhere)
{
	const struct user_spec spec = { .name = SPAN_LIT("guest") };

	ck_assert_ptr_null(user_set(w.broker, &spec, NULL));
	import(guest_json, 2, 0);
	ck_assert(!user("guest")->loopback_only);
}
END_TEST

/* All of them or none, as over HTTP. */
START_TEST(limits_of_a_vhost)
{
	import("{\"parameters\": [{\"vhost\": \"/\", \"component\": \"vhost-limits\", \"name\": "
	       "\"limits\","
	       " \"value\": {\"max-queues\": 5, \"max-nothing\": 6}}]}",
	    0, 1);
	ck_assert(!w.vhost->limit[VHOST_MAX_QUEUES].is_set);
	import("{\"parameters\": [{\"vhost\": \"/\", \"component\": \"vhost-limits\", \"name\": "
	       "\"limits\","
	       " \"value\": {\"max-queues\": 5, \"max-connections\": 6}}]}",
	    1, 0);
	ck_assert_int_eq(w.vhost->limit[VHOST_MAX_QUEUES].value, 5);
	ck_assert_int_eq(w.vhost->limit[VHOST_MAX_CONNECTIONS].value, 6);
}
END_TEST

/* None is left out in silence. */
START_TEST(more_tags_than_are_kept)
{
	char text[64 + 2 * TAGS_MAX] = "{\"users\": [{\"name\": \"app\", \"tags\": \"t",
	                   *end = text + strlen(text);

	for (int i = 1; i < TAGS_MAX; i++)
		end = stpcpy(end, ",t");
	strcpy(end, "\"}]}");
	import(text, 1, 0);
	ck_assert_uint_eq(user("app")->tag_list.count, TAGS_MAX);
	strcpy(end, ",t\"}]}");
	import(text, 0, 1);
	strcpy(end, "\"}]}");
	import(text, 1, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("definitions");
	TCase *t = tcase_create("definitions");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, guest_stays_at_home);
	tcase_add_test(t, guest_is_new);
	tcase_add_test(t, guest_from_everywhere);
	tcase_add_test(t, limits_of_a_vhost);
	tcase_add_test(t, more_tags_than_are_kept);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
