/* SPDX-License-Identifier: Apache-2.0
 * Limits of vhosts and users, the vhost's default queue type, its metadata, and parameters. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/parameter.h"
#include "tests/unit/queue_world.h"
#include "tests/unit/user_world.h"

static struct world w;
static struct client client;
static struct user *u;

static void
set_up(void)
{
	world_init(&w);
	u = user_add(w.broker, "u", "p", "", false);
	ck_assert_ptr_null(permission_set(u, w.vhost, ".*", ".*", ".*"));
	world_client(&w, &client);
	client_set_vhost(&client, NULL);
	client_set_user(&client, u);
	client_set_vhost(&client, w.vhost);
}

static void
tear_down(void)
{
	client_fini(&client);
	world_fini(&w);
}

static const struct error *
declare(const char *name, bool durable, bool exclusive, bool auto_delete, struct queue **q)
{
	struct queue_spec spec = { .name = span_str(name),
		.durable = durable,
		.exclusive = exclusive,
		.auto_delete = auto_delete };

	return queue_declare(w.vhost, &spec, &client, q);
}

/* ---- limits ---- */

START_TEST(connections)
{
	struct client second;

	ck_assert_ptr_null(limits_check_connection(w.vhost, u));
	vhost_limit_set(w.vhost, VHOST_MAX_CONNECTIONS, 2);
	ck_assert_ptr_null(limits_check_connection(w.vhost, u));
	world_client(&w, &second); /* of guest */
	ck_assert_uint_eq(w.vhost->connections, 2);
	ck_assert_str_eq(limits_check_connection(w.vhost, u)->text,
	    "NOT_ALLOWED - access to vhost '/' refused for user 'u': connection limit (2) is "
	    "reached");
	vhost_limit_set(w.vhost, VHOST_MAX_CONNECTIONS, -5);
	ck_assert_ptr_null(limits_check_connection(w.vhost, u));
	user_limit_set(u, USER_MAX_CONNECTIONS, 1);
	ck_assert_uint_eq(limits_check_connection(w.vhost, u)->code, 530);
	ck_assert_str_eq(limits_check_connection(w.vhost, u)->text,
	    "NOT_ALLOWED - connection refused for user 'u': user connection limit (1) is reached");
	ck_assert_ptr_null(limits_check_connection(w.vhost, second.user));
	user_limit_clear(u, USER_MAX_CONNECTIONS);
	ck_assert_ptr_null(limits_check_connection(w.vhost, u));
	vhost_limit_set(w.vhost, VHOST_MAX_CONNECTIONS, 0);
	client_fini(&second);
	ck_assert_uint_eq(w.vhost->connections, 1);
	ck_assert_ptr_nonnull(limits_check_connection(w.vhost, u));
	vhost_limit_clear(w.vhost, VHOST_MAX_CONNECTIONS);
	ck_assert_ptr_null(limits_check_connection(w.vhost, u));
}
END_TEST

START_TEST(channels)
{
	struct peer one, two;

	user_limit_set(u, USER_MAX_CHANNELS, 2);
	peer_init(&one, &client);
	ck_assert_ptr_null(limits_check_channel(u));
	peer_init(&two, &client);
	ck_assert_uint_eq(u->channels, 2);
	ck_assert_str_eq(limits_check_channel(u)->text,
	    "NOT_ALLOWED - number of channels opened for user 'u' has reached the maximum allowed "
	    "user limit of (2)");
	peer_fini(&one);
	ck_assert_ptr_null(limits_check_channel(u));
	peer_fini(&two);
	ck_assert_uint_eq(u->channels, 0);
}
END_TEST

START_TEST(queues)
{
	struct queue *q;

	vhost_limit_set(w.vhost, VHOST_MAX_QUEUES, 1);
	ck_assert_ptr_null(declare("one", false, false, false, &q));
	ck_assert_str_eq(declare("two", false, false, false, &q)->text,
	    "PRECONDITION_FAILED - cannot declare queue 'two': queue limit in vhost '/' (1) is "
	    "reached");
	ck_assert_ptr_null(declare("one", false, false, false, &q));
	queue_remove(q);
	ck_assert_ptr_null(declare("two", false, false, false, &q));
}
END_TEST

START_TEST(names)
{
	ck_assert_int_eq(vhost_limit_find(SPAN_LIT("max-queues")), VHOST_MAX_QUEUES);
	ck_assert_int_eq(vhost_limit_find(SPAN_LIT("max-channels")), VHOST_LIMITS);
	ck_assert_int_eq(user_limit_find(SPAN_LIT("max-channels")), USER_MAX_CHANNELS);
	ck_assert_int_eq(user_limit_find(SPAN_LIT("max-")), USER_LIMITS);
}
END_TEST

/* ---- default_queue_type ---- */

static const struct {
	const char *type;
	bool durable, exclusive, auto_delete;
	enum queue_type want;
	bool with_argument;
} types[] = {
	{ "quorum", true, false, false, QUEUE_QUORUM, true },
	{ "quorum", false, false, false, QUEUE_CLASSIC, false },
	{ "quorum", true, true, false, QUEUE_CLASSIC, false },
	{ "quorum", true, false, true, QUEUE_CLASSIC, false },
	{ "classic", true, false, false, QUEUE_CLASSIC, true },
	{ "classic", false, true, false, QUEUE_CLASSIC, true },
	{ "undefined", true, false, false, QUEUE_CLASSIC, false },
};

START_TEST(default_queue_type)
{
	const struct vhost_spec spec = { .default_queue_type = span_str(types[_i].type),
		.tracing = -1 };
	struct queue *q, *again;
	struct field f;

	ck_assert_ptr_null(vhost_set(w.broker, SPAN_LIT("/"), &spec, NULL, NULL));
	ck_assert_ptr_null(
	    declare("q", types[_i].durable, types[_i].exclusive, types[_i].auto_delete, &q));
	ck_assert_int_eq(q->set.type, types[_i].want);
	ck_assert_int_eq(
	    table_find(table_span(q->arguments), "x-queue-type", &f), types[_i].with_argument);
	ck_assert_ptr_null(
	    declare("q", types[_i].durable, types[_i].exclusive, types[_i].auto_delete, &again));
	ck_assert_ptr_eq(q, again);
	/* Another default is for other queues. */
	for (size_t i = 0; i < COUNT_OF(types); i++) {
		const struct vhost_spec other = { .default_queue_type = span_str(types[i].type),
			.tracing = -1 };

		ck_assert_ptr_null(vhost_set(w.broker, SPAN_LIT("/"), &other, NULL, NULL));
		if (w.vhost->default_queue_type != NULL)
			ck_assert_ptr_null(declare("q", types[_i].durable, types[_i].exclusive,
			    types[_i].auto_delete, &again));
	}
}
END_TEST

/* What the client says counts. */
START_TEST(given_type)
{
	struct vhost_spec spec = { .default_queue_type = SPAN_LIT("quorum"), .tracing = -1 };
	struct queue_spec classic = { .name = SPAN_LIT("q"), .durable = true };
	struct table_writer t;
	struct table *arguments;
	struct queue *q;

	ck_assert_ptr_null(vhost_set(w.broker, SPAN_LIT("/"), &spec, NULL, NULL));
	table_writer_init(&t, 1000);
	table_put_string(&t, "x-queue-type", "classic");
	arguments = table_from_raw(span_of(t.p, t.n));
	table_writer_fini(&t);
	classic.arguments = arguments;
	ck_assert_ptr_null(queue_declare(w.vhost, &classic, &client, &q));
	ck_assert_int_eq(q->set.type, QUEUE_CLASSIC);
	table_free(&arguments);
	spec.default_queue_type = SPAN_LIT("nonsense");
	ck_assert_ptr_nonnull(vhost_set(w.broker, SPAN_LIT("/"), &spec, NULL, NULL));
	ck_assert_str_eq(w.vhost->default_queue_type, "quorum");
}
END_TEST

/* ---- metadata ---- */

START_TEST(metadata)
{
	struct span tags[] = { SPAN_LIT("a"), SPAN_LIT("b") };
	struct vhost_spec spec = { .description = SPAN_LIT("d"), .tag = tags, .tag_count = 2 };
	uint8_t long_one[256];
	struct vhost *vh;
	bool created;

	ck_assert_ptr_null(vhost_set(w.broker, SPAN_LIT("v"), &spec, &vh, &created));
	ck_assert(created && vh == vhost_find(w.broker, SPAN_LIT("v")));
	ck_assert_uint_eq(vh->tags.count, 2);
	/* What is not given stays. */
	ck_assert_ptr_null(vhost_set(
	    w.broker, SPAN_LIT("v"), &(struct vhost_spec){ .tracing = 1 }, NULL, &created));
	ck_assert(!created && vh->tracing);
	ck_assert_str_eq(vh->description, "d");
	ck_assert_uint_eq(vh->tags.count, 2);
	spec = (struct vhost_spec){ .tag = tags, .tag_count = 0, .tracing = 0 };
	ck_assert_ptr_null(vhost_set(w.broker, SPAN_LIT("v"), &spec, NULL, NULL));
	ck_assert_uint_eq(vh->tags.count, 0);
	ck_assert(!vh->tracing);
	memset(long_one, 'v', sizeof long_one);
	ck_assert_ptr_nonnull(vhost_set(w.broker, span_of(long_one, 256), &spec, NULL, NULL));
	ck_assert_ptr_nonnull(vhost_set(w.broker, SPAN_LIT(""), &spec, NULL, NULL));
	ck_assert_ptr_nonnull(vhost_set(w.broker, SPAN_LIT("\xff"), &spec, NULL, NULL));
}
END_TEST

/* ---- parameters ---- */

START_TEST(parameters)
{
	struct span c = SPAN_LIT("shovel"), name = SPAN_LIT("s"), none = SPAN_LIT("");
	static uint8_t large[PARAMETER_VALUE_MAX + 1];
	bool created;

	ck_assert_ptr_null(parameter_set(w.broker, w.vhost, c, name, SPAN_LIT("1"), &created));
	ck_assert(created);
	ck_assert_ptr_null(parameter_set(w.broker, w.vhost, c, name, SPAN_LIT("2"), &created));
	ck_assert(!created);
	ck_assert_str_eq(parameter_find(w.broker, w.vhost, c, name)->value, "2");
	ck_assert_ptr_null(parameter_find(w.broker, NULL, c, name));
	ck_assert_ptr_null(parameter_find(w.broker, w.vhost, SPAN_LIT("shovels"), none));
	ck_assert_ptr_null(parameter_set(w.broker, NULL, none, name, SPAN_LIT("3"), &created));
	ck_assert(created);
	memset(large, ' ', sizeof large);
	ck_assert_ptr_nonnull(
	    parameter_set(w.broker, NULL, none, name, span_of(large, sizeof large), NULL));
	ck_assert_ptr_nonnull(parameter_set(w.broker, NULL, none, none, SPAN_LIT("3"), NULL));
	ck_assert_ptr_nonnull(parameter_set(w.broker, NULL, none, name, SPAN_LIT("\xff"), NULL));
	ck_assert_str_eq(parameter_find(w.broker, NULL, none, name)->value, "3");
	parameter_clear(parameter_find(w.broker, w.vhost, c, name));
	ck_assert_ptr_null(parameter_find(w.broker, w.vhost, c, name));
}
END_TEST

/* They count as what else operators and clients make. */
START_TEST(parameters_take_memory)
{
	static uint8_t value[PARAMETER_VALUE_MAX];
	struct span c = SPAN_LIT("shovel");
	size_t before = mem_held[MEM_TOPOLOGY];

	memset(value, ' ', sizeof value);
	memory_init(&w.broker->memory, 2 * (before + 2 * sizeof value));
	ck_assert_ptr_null(
	    parameter_set(w.broker, w.vhost, c, SPAN_LIT("1"), span_of(value, sizeof value), NULL));
	ck_assert_uint_ge(mem_held[MEM_TOPOLOGY], before + sizeof value);
	ck_assert_ptr_null(parameter_set(
	    w.broker, NULL, SPAN_LIT(""), SPAN_LIT("2"), span_of(value, sizeof value), NULL));
	ck_assert_ptr_nonnull(parameter_set(w.broker, w.vhost, c, SPAN_LIT("3"), c, NULL));
	parameter_clear(parameter_find(w.broker, NULL, SPAN_LIT(""), SPAN_LIT("2")));
	ck_assert_ptr_null(parameter_set(w.broker, w.vhost, c, SPAN_LIT("1"), c, NULL));
	parameter_clear(parameter_find(w.broker, w.vhost, c, SPAN_LIT("1")));
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], before);
}
END_TEST

START_TEST(vhosts_are_bounded)
{
	const struct vhost_spec spec = { .tracing = -1 };
	char name[16];

	for (int i = 1; i <= VHOSTS_MAX; i++) { /* "/" is there */
		const struct error *e;

		snprintf(name, sizeof name, "%d", i);
		e = vhost_set(w.broker, span_str(name), &spec, NULL, NULL);
		ck_assert_int_eq(e == NULL, i < VHOSTS_MAX);
	}
}
END_TEST

START_TEST(parameters_are_bounded)
{
	char name[16];

	for (int i = 0; i <= PARAMETERS_MAX; i++) {
		const struct error *e;

		snprintf(name, sizeof name, "%d", i);
		e = parameter_set(
		    w.broker, NULL, SPAN_LIT(""), span_str(name), SPAN_LIT("1"), NULL);
		ck_assert_int_eq(e == NULL, i < PARAMETERS_MAX);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("limits");
	TCase *t = tcase_create("limits");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, connections);
	tcase_add_test(t, channels);
	tcase_add_test(t, queues);
	tcase_add_test(t, names);
	tcase_add_loop_test(t, default_queue_type, 0, COUNT_OF(types));
	tcase_add_test(t, given_type);
	tcase_add_test(t, metadata);
	tcase_add_test(t, parameters);
	tcase_add_test(t, parameters_are_bounded);
	tcase_add_test(t, parameters_take_memory);
	tcase_add_test(t, vhosts_are_bounded);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
