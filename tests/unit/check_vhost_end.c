/* SPDX-License-Identifier: Apache-2.0
 * A vhost that goes: what is done of it in a turn is bounded, whatever it holds. Counted in objects. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/parameter.h"
#include "broker/policy.h"
#include "broker/topic_permission.h"
#include "queue_args.h"
#include "queue_world.h"
#include "user_world.h"

enum { TURN_MAX = 512, MANY = 3000 };

static struct world w;
static struct vhost *vh;

static void
set_up(void)
{
	world_init(&w);
	vh = vhost_add(w.broker, "v");
}

static void
tear_down(void)
{
	world_fini(&w);
}

static const char *
number(const char *prefix, int i)
{
	static char name[32];

	snprintf(name, sizeof name, "%s%d", prefix, i);
	return name;
}

static struct queue *
declare(const char *name, const struct queue_arg *a, size_t n)
{
	struct table *arguments = queue_args(a, n);
	struct queue_spec spec = { .name = span_str(name), .arguments = arguments };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(vh, &spec, NULL, &q));
	table_free(&arguments);
	return q;
}

/* ---- what it holds ---- */

static void
parameters(void)
{
	for (int i = 0; i < MANY; i++)
		ck_assert_ptr_null(parameter_set(
		    w.broker, vh, SPAN_LIT("c"), span_str(number("p", i)), SPAN_LIT("1"), NULL));
}

static uint64_t
parameters_left(void)
{
	return HASH_COUNT(vh->parameters);
}

static void
policies(void)
{
	const struct queue_arg a = { "expires", 'l', 1, NULL };
	struct table *definition = queue_args(&a, 1);

	for (int i = 0; i < 2 * POLICIES_MAX; i++)
		ck_assert_ptr_null(policy_set(vh, (enum policy_kind)(i % 2),
		    &(struct policy_spec){ .name = span_str(number("p", i)),
		        .pattern = SPAN_LIT("x"),
		        .definition = definition },
		    NULL));
	table_free(&definition);
	world_turn(&w);
}

static uint64_t
policies_left(void)
{
	return HASH_COUNT(vh->policies[POLICY_USER]) + HASH_COUNT(vh->policies[POLICY_OPERATOR]);
}

static void
permissions(void)
{
	for (int i = 0; i < MANY / 2; i++) {
		struct user *u = user_add(w.broker, number("u", i), "", "", false);

		ck_assert_ptr_nonnull(u);
		ck_assert_ptr_null(permission_set(u, vh, "", "", ""));
		ck_assert_ptr_null(
		    topic_permission_set(u, vh, SPAN_LIT("amq.topic"), "", "", NULL));
	}
}

static uint64_t
permissions_left(void)
{
	const struct topic_permission *t;
	const struct permission *p;
	uint64_t n = 0;

	LIST_FOREACH (p, &vh->permissions, vhost_link)
		n++;
	LIST_FOREACH (t, &vh->topic_permissions, vhost_link)
		n++;
	return n;
}

static void
queues(void)
{
	for (int i = 0; i < MANY; i++)
		(void)declare(number("q", i), NULL, 0);
}

static uint64_t
queues_left(void)
{
	return 8 * w.broker->stats.queues;
}

static void
bindings_of_a_queue(void)
{
	struct exchange *x = exchange_find(vh, SPAN_LIT("amq.topic"));
	struct queue *q = declare("q", NULL, 0);

	for (int i = 0; i < MANY; i++)
		ck_assert_ptr_null(binding_add(x, q, NULL, span_str(number("k", i)), NULL));
}

/* Each of them would be deleted with its last binding. */
static void
bindings_of_exchanges(void)
{
	struct exchange_spec spec = { .type = SPAN_LIT("direct"), .auto_delete = true };
	struct exchange *from = exchange_find(vh, SPAN_LIT("amq.fanout")), *x = NULL;

	for (int i = 0; i < MANY / 2; i++) {
		spec.name = span_str(number("x", i));
		ck_assert_ptr_null(exchange_declare(vh, &spec, &x));
		ck_assert_ptr_null(binding_add(from, NULL, x, SPAN_LIT(""), NULL));
		ck_assert_ptr_null(binding_add(x, NULL, from, SPAN_LIT(""), NULL));
	}
}

static uint64_t
bindings_left(void)
{
	return w.broker->stats.bindings;
}

/* Letters of queues that are gone, which nobody takes. */
static void
letters(void)
{
	const struct queue_arg a[] = { { "x-dead-letter-exchange", 'S', 0, "amq.fanout" },
		{ "x-max-length", 'l', 0, NULL } };

	for (int i = 0; i < MANY; i++) {
		struct queue *q = declare(number("q", i), a, 2);

		queue_publish(q, world_msg(1, 8), 0);
		queue_remove(q);
	}
	ck_assert_uint_eq(w.broker->stats.dead_letters, MANY);
}

static uint64_t
letters_left(void)
{
	return w.broker->stats.dead_letters;
}

static struct client crowd[MANY];

static void
clients(void)
{
	for (int i = 0; i < MANY; i++) {
		world_client(&w, &crowd[i]);
		client_set_vhost(&crowd[i], vh);
	}
}

static uint64_t
clients_left(void)
{
	uint64_t n = 0;

	for (int i = 0; i < MANY; i++)
		n += crowd[i].close_reason == NULL;
	return n;
}

static const struct {
	void (*make)(void);
	uint64_t (*left)(void);
} held[] = {
	{ parameters, parameters_left },
	{ policies, policies_left },
	{ permissions, permissions_left },
	{ queues, queues_left },
	{ bindings_of_a_queue, bindings_left },
	{ bindings_of_exchanges, bindings_left },
	{ letters, letters_left },
	{ clients, clients_left },
};

/* ---- how it goes ---- */

START_TEST(some_in_a_turn)
{
	uint64_t (*count)(void) = held[_i].left, before, after;
	bool more = true;
	int turns = 0;

	held[_i].make();
	before = count();
	ck_assert_uint_ge(before, 2 * POLICIES_MAX);
	vhost_clear(vh);
	for (; more; turns++) {
		after = TAILQ_EMPTY(&w.broker->gone_vhosts) ? 0 : count();
		ck_assert_uint_le(before - after, TURN_MAX + 8);
		before = after;
		more = vhosts_run(w.broker);
		broker_reap(w.broker);
	}
	ck_assert_int_ge(turns, 4);
	if (count != clients_left) {
		ck_assert(TAILQ_EMPTY(&w.broker->gone_vhosts));
		return;
	}
	ck_assert_uint_eq(clients_left(), 0);
	for (int i = 0; i < MANY; i++)
		client_fini(&crowd[i]);
	world_turn(&w);
	ck_assert(TAILQ_EMPTY(&w.broker->gone_vhosts));
}
END_TEST

/* Many small ones are as much work as a large one. */
START_TEST(many_small_ones)
{
	const struct vhost *gone;
	uint64_t left = 1, before = MANY;
	int turns = 0;

	for (int i = 0; i < MANY; i++)
		vhost_clear(vhost_add(w.broker, number("small", i)));
	for (; left > 0; turns++) {
		(void)vhosts_run(w.broker);
		left = 0;
		TAILQ_FOREACH (gone, &w.broker->gone_vhosts, gone_link)
			left++;
		ck_assert_uint_le(before - left, TURN_MAX / 16);
		before = left;
	}
	ck_assert_int_ge(turns, MANY * 16 / TURN_MAX);
}
END_TEST

/* Queues that go with clients share the turn with it. */
START_TEST(with_clients_that_end)
{
	queues();
	vhost_clear(vh);
	ck_assert_uint_eq(w.broker->ended, 0);
	ck_assert(vhosts_run(w.broker));
	ck_assert_uint_eq(w.broker->ended, (MANY - w.broker->stats.queues) * BROKER_END_QUEUE);
	ck_assert_uint_gt(w.broker->ended, 0);
}
END_TEST

/* A change of policies that was still on its way to its queues goes no further. */
START_TEST(within_a_change_of_policies)
{
	const struct queue_arg a = { "max-length", 'l', 1, NULL };
	struct table *definition = queue_args(&a, 1);

	queues();
	ck_assert_ptr_null(policy_set(vh, POLICY_USER,
	    &(struct policy_spec){
	        .name = SPAN_LIT("p"), .pattern = SPAN_LIT("^q"), .definition = definition },
	    NULL));
	table_free(&definition);
	ck_assert(policies_run(w.broker));
	vhost_clear(vh);
	world_turn(&w);
	ck_assert(TAILQ_EMPTY(&w.broker->gone_vhosts));
	ck_assert(!policies_run(w.broker));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("vhost_end");
	TCase *t = tcase_create("vhost_end");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, some_in_a_turn, 0, COUNT_OF(held));
	tcase_add_test(t, many_small_ones);
	tcase_add_test(t, with_clients_that_end);
	tcase_add_test(t, within_a_change_of_policies);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
