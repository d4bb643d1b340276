/* SPDX-License-Identifier: Apache-2.0
 * Lists of the HTTP API are made in slices, and stay right while what they list comes and goes between two of them. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/limits.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/policy.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/topic_permission.h"
#include "broker/vhost.h"
#include "mgmt/listing.h"
#include "mgmt/users_bulk.h"
#include "tests/unit/mgmt_world.h"

enum { MANY = 300 };

static struct vhost *vh;
static struct user *guest;
static struct exchange *x;
static struct queue *q;
static struct table *definition;

static void
set_up(void)
{
	const struct queue_spec spec = { .name = SPAN_LIT("q"), .durable = true };
	struct table_writer w;

	setup();
	vh = vhost_find(b, SPAN_LIT("/"));
	guest = user_find(b, SPAN_LIT("guest"));
	x = exchange_find(vh, SPAN_LIT("amq.direct"));
	ck_assert_ptr_null(queue_declare(vh, &spec, NULL, &q));
	table_writer_init(&w, 100);
	table_put_string(&w, "dead-letter-exchange", "x");
	definition = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
}

static void
tear_down(void)
{
	table_free(&definition);
	teardown();
}

/* A turn in which lists have a microsecond, so that each slice ends at the first look at the clock. */
static void
short_turn(void)
{
	m->listings.spent_us = LISTING_SLICE_US - 1;
	turn();
}

/* ---- what is listed ---- */

static struct span
name_of(unsigned i)
{
	static char name[16];

	return span_of(name, (size_t)snprintf(name, sizeof name, "n%04u", i));
}

static void
make_user(unsigned i)
{
	const struct user_spec spec = { .name = name_of(i) };

	ck_assert_ptr_null(user_set(b, &spec, NULL));
}

static void
drop_user(unsigned i)
{
	user_clear(user_find(b, name_of(i)));
}

static void
make_right(unsigned i)
{
	struct user *u;

	if (user_find(b, name_of(i)) == NULL)
		make_user(i);
	u = user_find(b, name_of(i));
	ck_assert_ptr_null(permission_set(u, vh, "", "", ""));
	ck_assert_ptr_null(topic_permission_set(u, vh, SPAN_LIT("amq.topic"), "", "", NULL));
}

static void
drop_right(unsigned i)
{
	struct user *u = user_find(b, name_of(i));

	permission_clear(permission_find(u, vh));
	topic_permission_clear(topic_permission_find(u, vh, SPAN_LIT("amq.topic")));
}

static void
make_right_of_guest(unsigned i)
{
	struct vhost *other = vhost_find(b, name_of(i));

	if (other == NULL)
		ck_assert_ptr_null(
		    vhost_set(b, name_of(i), &(struct vhost_spec){ .tracing = -1 }, &other, NULL));
	ck_assert_ptr_null(permission_set(guest, other, "", "", ""));
}

static void
drop_right_of_guest(unsigned i)
{
	permission_clear(permission_find(guest, vhost_find(b, name_of(i))));
}

static void
make_topic(unsigned i)
{
	ck_assert_ptr_null(topic_permission_set(guest, vh, name_of(i), "", "", NULL));
}

static void
drop_topic(unsigned i)
{
	topic_permission_clear(topic_permission_find(guest, vh, name_of(i)));
}

static void
make_policy(unsigned i)
{
	const struct policy_spec spec = {
		.name = name_of(i), .pattern = SPAN_LIT("^no$"), .definition = definition
	};

	ck_assert_ptr_null(policy_set(vh, POLICY_USER, &spec, NULL));
}

static void
drop_policy(unsigned i)
{
	ck_assert(policy_clear(vh, POLICY_USER, name_of(i)));
}

static void
make_parameter(unsigned i)
{
	ck_assert_ptr_null(
	    parameter_set(b, vh, SPAN_LIT("shovel"), name_of(i), SPAN_LIT("{\"a\":1}"), NULL));
}

static void
drop_parameter(unsigned i)
{
	parameter_clear(parameter_find(b, vh, SPAN_LIT("shovel"), name_of(i)));
}

static void
make_global(unsigned i)
{
	ck_assert_ptr_null(parameter_set(b, NULL, SPAN_LIT(""), name_of(i), SPAN_LIT("1"), NULL));
}

static void
drop_global(unsigned i)
{
	parameter_clear(parameter_find(b, NULL, SPAN_LIT(""), name_of(i)));
}

static void
make_user_limit(unsigned i)
{
	if (user_find(b, name_of(i)) == NULL)
		make_user(i);
	user_limit_set(user_find(b, name_of(i)), USER_MAX_CHANNELS, i);
}

static void
drop_user_limit(unsigned i)
{
	user_limit_clear(user_find(b, name_of(i)), USER_MAX_CHANNELS);
}

static void
make_binding(unsigned i)
{
	ck_assert_ptr_null(binding_add(x, q, NULL, name_of(i), NULL));
}

static void
drop_binding(unsigned i)
{
	ck_assert_ptr_null(binding_remove(x, q, NULL, name_of(i), NULL));
}

static const struct {
	const char *path, *key; /* key: the column that tells rows apart */
	void (*make)(unsigned), (*drop)(unsigned);
} lists[] = {
	{ "users", "name", make_user, drop_user },
	{ "users/without-permissions", "name", make_user, drop_user },
	{ "permissions", "user", make_right, drop_right },
	{ "vhosts/%2f/permissions", "user", make_right, drop_right },
	{ "users/guest/permissions", "vhost", make_right_of_guest, drop_right_of_guest },
	{ "topic-permissions", "user", make_right, drop_right },
	{ "vhosts/%2f/topic-permissions", "user", make_right, drop_right },
	{ "users/guest/topic-permissions", "exchange", make_topic, drop_topic },
	{ "topic-permissions/%2f/guest", "exchange", make_topic, drop_topic },
	{ "policies", "name", make_policy, drop_policy },
	{ "policies/%2f", "name", make_policy, drop_policy },
	{ "parameters/policy", "name", make_policy, drop_policy },
	{ "parameters", "name", make_parameter, drop_parameter },
	{ "parameters/shovel", "name", make_parameter, drop_parameter },
	{ "parameters/shovel/%2f", "name", make_parameter, drop_parameter },
	{ "global-parameters", "name", make_global, drop_global },
	{ "user-limits", "user", make_user_limit, drop_user_limit },
	{ "exchanges/%2f/amq.direct/bindings/source", "routing_key", make_binding, drop_binding },
	{ "queues/%2f/q/bindings", "routing_key", make_binding, drop_binding },
	{ "bindings/%2f/e/amq.direct/q/q", "routing_key", make_binding, drop_binding },
	{ "bindings", "routing_key", make_binding, drop_binding },
};

/* ---- asking ---- */

struct asked {
	int fd;
	char *p; /* owned: what has come */
	size_t n, cap;
	unsigned slices;    /* turns behind which the list was not made; */
	unsigned collected; /* those of them behind which not all rows were met */
};

static struct asked
begin(const char *path, const char *key, bool sorted)
{
	struct asked a = { .fd = dial(), .cap = 1 << 20 };
	char text[400];
	int n = snprintf(text, sizeof text, "GET /api/%s?columns=%s%s%s HTTP/1.0\r\n" GUEST "\r\n",
	    path, key, sorted ? "&sort=" : "", sorted ? key : "");

	a.p = xmalloc(a.cap);
	ck_assert_int_eq(write(a.fd, text, (size_t)n), n);
	return a;
}

/* A turn. False: the answer is there. */
static bool
wait_on(struct asked *a)
{
	ssize_t n;

	short_turn();
	a->slices += m->listings.count;
	a->collected += !LIST_EMPTY(&b->walks);
	n = read(a->fd, a->p + a->n, a->cap - 1 - a->n);
	if (n > 0)
		a->n += (size_t)n;
	ck_assert(n >= 0 || errno == EAGAIN);
	return n != 0;
}

static json_t *
finish(struct asked *a)
{
	json_t *j;

	a->p[a->n] = '\0';
	ck_assert_msg(status_of(a->p) == 200, "%s", a->p);
	j = json_loads(body_of(a->p), 0, NULL);
	ck_assert(json_is_array(j));
	close(a->fd);
	free(a->p);
	ck_assert(LIST_EMPTY(&b->walks));
	return j;
}

/* How often each has a row. */
static void
count_rows(json_t *rows, const char *key, unsigned times[MANY])
{
	const json_t *row;
	unsigned i;
	size_t at;

	memset(times, 0, MANY * sizeof *times);
	json_array_foreach(rows, at, row)
	{
		const char *name = json_string_value(json_object_get(row, key));

		ck_assert_ptr_nonnull(name);
		if (sscanf(name, "n%04u", &i) == 1)
			times[i]++;
	}
	json_decref(rows);
}

/* No list is made at once, whatever it is of: neither collected nor written. */
START_TEST(in_slices)
{
	bool sorted = (unsigned)_i >= COUNT_OF(lists);
	unsigned which = (unsigned)_i % COUNT_OF(lists), times[MANY];
	struct asked a;

	for (unsigned i = 0; i < MANY; i++)
		lists[which].make(i);
	a = begin(lists[which].path, lists[which].key, sorted);
	while (wait_on(&a))
		continue;
	/* how many rows fit into a microsecond depends on the machine */
	ck_assert_uint_ge(a.collected, 2);
	ck_assert_uint_ge(a.slices - a.collected, 3);
	count_rows(finish(&a), lists[which].key, times);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_uint_eq(times[i], 1);
}
END_TEST

static void
change(unsigned which, unsigned i)
{
	if (i % 3 == 2)
		return;
	lists[which].drop(i);
	if (i % 3 == 1)
		lists[which].make(i);
}

/* Of three one stays, one goes, one goes and comes again: nothing is met twice, and what stays is there. */
START_TEST(while_things_come_and_go)
{
	bool sorted = (unsigned)_i >= COUNT_OF(lists);
	unsigned which = (unsigned)_i % COUNT_OF(lists), times[MANY], n = 0;
	struct asked a;

	for (unsigned i = 0; i < MANY; i++)
		lists[which].make(i);
	a = begin(lists[which].path, lists[which].key, sorted);
	while (wait_on(&a)) {
		for (unsigned k = 0; k < 10 && m->listings.count > 0; k++)
			if (n < MANY)
				change(which, n++ * 7 % MANY);
	}
	ck_assert_uint_gt(n, MANY / 10);
	count_rows(finish(&a), lists[which].key, times);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_uint_le(times[i], 1);
		if (i % 3 == 2)
			ck_assert_msg(times[i] == 1, "%s: %u", lists[which].path, i);
	}
}
END_TEST

static void
make_queue(unsigned i)
{
	const struct queue_spec spec = { .name = name_of(i) };
	struct queue *made;

	ck_assert_ptr_null(queue_declare(vh, &spec, NULL, &made));
}

/* Turns until all of the answer is there. */
static unsigned
turns_until(struct asked *a)
{
	unsigned n = 1;

	while (wait_on(a))
		n++;
	a->p[a->n] = '\0';
	ck_assert_int_eq(status_of(a->p), 200);
	close(a->fd);
	free(a->p);
	return n;
}

static unsigned
turns_of_page(void)
{
	struct asked a = begin("queues", "name&page=1&page_size=10", true);

	return turns_until(&a);
}

/* It does not wait for all those that others want as a whole, and they go on meanwhile. */
START_TEST(a_page_comes_first)
{
	enum { WHOLE = LISTING_AT_ONCE + 2 };
	struct asked whole[WHOLE];
	unsigned alone, beside, rest = 0;

	for (unsigned i = 0; i < MANY; i++)
		make_queue(i);
	alone = turns_of_page();
	for (unsigned i = 0; i < WHOLE; i++) {
		whole[i] = begin("queues", "name", true);
		ck_assert(wait_on(&whole[i]));
	}
	beside = turns_of_page();
	ck_assert_msg(beside < 3 * alone, "%u turns, %u by itself", beside, alone);
	ck_assert_uint_eq(m->listings.count, WHOLE);
	for (unsigned i = 0; i < WHOLE; i++)
		rest += turns_until(&whole[i]);
	ck_assert_msg(rest > WHOLE * alone / 2, "%u turns for the rest", rest);
}
END_TEST

/* One that is set again is another one in the same place: listed, and once. */
START_TEST(policies_set_again)
{
	unsigned times[MANY], n = 0;
	struct asked a;

	for (unsigned i = 0; i < MANY; i++)
		make_policy(i);
	a = begin("policies", "name", _i != 0);
	while (wait_on(&a))
		for (unsigned i = 0; i < 20; i++)
			make_policy(n++ % MANY);
	ck_assert_uint_gt(n, MANY / 4);
	count_rows(finish(&a), "name", times);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_uint_eq(times[i], 1);
}
END_TEST

static void
drop_exchange(void)
{
	ck_assert_ptr_null(exchange_delete(vh, SPAN_LIT("x"), false));
}

static void
clear_vhost(void)
{
	vhost_clear(vhost_find(b, SPAN_LIT("other")));
	while (vhosts_run(b) || !TAILQ_EMPTY(&b->gone_vhosts))
		continue;
}

static void
clear_user(void)
{
	user_clear(user_find(b, SPAN_LIT("somebody")));
}

static const struct {
	const char *path;
	void (*drop)(void);
} owners[] = {
	{ "exchanges/other/x/bindings/source", clear_vhost },
	{ "queues/other/q/bindings", clear_vhost },
	{ "vhosts/other/permissions", clear_vhost },
	{ "policies/other", clear_vhost },
	{ "parameters/shovel/other", clear_vhost },
	{ "users/somebody/topic-permissions", clear_user },
	{ "users/somebody/topic-permissions", clear_vhost },
	{ "exchanges/%2f/x/bindings/source", drop_exchange },
};

static void
fill(const char *name)
{
	struct vhost *other = vhost_find(b, span_str(name));
	const struct exchange_spec spec = { .name = SPAN_LIT("x"), .type = SPAN_LIT("direct") };
	const struct queue_spec queue = { .name = SPAN_LIT("q"), .durable = true };
	struct user *u = user_find(b, SPAN_LIT("somebody"));
	struct exchange *e;
	struct queue *to;

	ck_assert_ptr_null(exchange_declare(other, &spec, &e));
	ck_assert_ptr_null(queue_declare(other, &queue, NULL, &to));
	for (unsigned i = 0; i < MANY; i++) {
		const struct policy_spec policy = {
			.name = name_of(i), .pattern = SPAN_LIT("^no$"), .definition = definition
		};

		ck_assert_ptr_null(policy_set(other, POLICY_USER, &policy, NULL));
		make_user(i);
		ck_assert_ptr_null(binding_add(e, to, NULL, name_of(i), NULL));
		ck_assert_ptr_null(permission_set(user_find(b, name_of(i)), other, "", "", ""));
		ck_assert_ptr_null(topic_permission_set(u, other, name_of(i), "", "", NULL));
		ck_assert_ptr_null(
		    parameter_set(b, other, SPAN_LIT("shovel"), name_of(i), SPAN_LIT("1"), NULL));
	}
}

/* The object that the rows are of goes while they are collected, and while they are written. */
START_TEST(what_they_belong_to_goes)
{
	unsigned which = (unsigned)_i % COUNT_OF(owners);
	bool late = (unsigned)_i >= COUNT_OF(owners);
	struct asked a;
	json_t *rows;

	(void)user_add(b, "somebody", NULL, "", false);
	(void)vhost_add(b, "other");
	fill("other");
	fill("/");
	a = begin(owners[which].path, "vhost", false);
	while (late ? a.slices < a.collected + 3 : a.collected < 2)
		ck_assert(wait_on(&a));
	ck_assert_int_eq(LIST_EMPTY(&b->walks), late);
	owners[which].drop();
	while (wait_on(&a))
		continue;
	rows = finish(&a);
	ck_assert_uint_lt(json_array_size(rows), which == 6 ? 2 * MANY : MANY);
	json_decref(rows);
}
END_TEST

/* Another account of that name is not who asked. */
START_TEST(who_asked_is_made_again)
{
	struct asked a;
	json_t *rows;

	for (unsigned i = 0; i < MANY; i++)
		make_right(i);
	a = begin("permissions", "user", false);
	while (a.slices < a.collected + 3)
		ck_assert(wait_on(&a));
	user_clear(user_find(b, SPAN_LIT("guest")));
	(void)user_add(b, "guest", "guest", "administrator", false);
	while (wait_on(&a))
		continue;
	rows = finish(&a);
	ck_assert_uint_lt(json_array_size(rows), MANY);
	json_decref(rows);
}
END_TEST

START_TEST(who_asked_goes)
{
	struct asked a;

	for (unsigned i = 0; i < MANY; i++)
		make_binding(i);
	a = begin("bindings", "routing_key", false);
	while (LIST_EMPTY(&b->walks))
		ck_assert(wait_on(&a));
	close(a.fd);
	free(a.p);
	for (unsigned i = 0; i < 2000 && !LIST_EMPTY(&b->walks); i++)
		short_turn();
	ck_assert(LIST_EMPTY(&b->walks));
}
END_TEST

/* Rights are asked for again in each slice. */
START_TEST(no_administrator_any_more)
{
	const struct user_spec spec = { .name = SPAN_LIT("guest") };
	struct asked a;
	json_t *rows;

	for (unsigned i = 0; i < MANY; i++)
		make_right(i);
	a = begin("permissions", "user", false);
	while (a.slices < a.collected + 3)
		ck_assert(wait_on(&a));
	ck_assert_ptr_null(user_set(b, &spec, NULL));
	while (wait_on(&a))
		continue;
	rows = finish(&a);
	ck_assert_uint_lt(json_array_size(rows), MANY / 2);
	json_decref(rows);
}
END_TEST

/* Many users are deleted in as many turns as there are slices; the answer comes when they are gone. */
START_TEST(bulk_delete_in_slices)
{
	enum { USERS = 3 * BULK_DELETE_MAX };
	static char text[USERS * 16 + 400], body[USERS * 16];
	struct asked a = { .fd = dial(), .cap = 1 << 16 };
	size_t n = (size_t)snprintf(body, sizeof body, "{\"users\":[");
	unsigned turns = 0;
	int len;

	for (unsigned i = 0; i < USERS; i++) {
		make_user(i);
		n += (size_t)snprintf(body + n, sizeof body - n, "%s\"%.*s\"", i > 0 ? "," : "",
		    SPAN_FMT(name_of(i)));
		ck_assert_uint_lt(n, sizeof body);
	}
	n += (size_t)snprintf(body + n, sizeof body - n, "]}");
	ck_assert_uint_lt(n, sizeof body);
	len = snprintf(text, sizeof text,
	    "POST /api/users/bulk-delete HTTP/1.0\r\n" GUEST
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
	    n, body);
	a.p = xmalloc(a.cap);
	ck_assert_int_eq(write(a.fd, text, (size_t)len), len);
	while (wait_on(&a)) {
		unsigned there = HASH_COUNT(b->users);

		turns += there < USERS && there > 3;
	}
	ck_assert_uint_ge(turns, 2);
	ck_assert_uint_eq(HASH_COUNT(b->users), 3); /* admin, guest, plain */
	a.p[a.n] = '\0';
	ck_assert_int_eq(status_of(a.p), 204);
	close(a.fd);
	free(a.p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mgmt_lists");
	TCase *t = tcase_create("mgmt_lists");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 30);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, in_slices, 0, 2 * (int)COUNT_OF(lists));
	tcase_add_loop_test(t, while_things_come_and_go, 0, 2 * (int)COUNT_OF(lists));
	tcase_add_loop_test(t, policies_set_again, 0, 2);
	tcase_add_test(t, a_page_comes_first);
	tcase_add_loop_test(t, what_they_belong_to_goes, 0, 2 * (int)COUNT_OF(owners));
	tcase_add_test(t, who_asked_goes);
	tcase_add_test(t, bulk_delete_in_slices);
	tcase_add_test(t, who_asked_is_made_again);
	tcase_add_test(t, no_administrator_any_more);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
