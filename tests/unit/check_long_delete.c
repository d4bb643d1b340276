/* SPDX-License-Identifier: Apache-2.0
 * Exchanges and queues with so many bindings that they go in several turns: the channel waits for it, others do not. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "tests/unit/amqp_world.h"
#include "tests/unit/channel_world.h"

enum { MANY = 20000 };

static struct world w;
static struct peer p;
static struct vhost *vh;
static struct exchange *x;
static struct queue *q;

static struct exchange *
declare(const char *name)
{
	struct exchange_spec spec = { .name = span_str(name), .type = SPAN_LIT("direct") };
	struct exchange *made = NULL;

	ck_assert_ptr_null(exchange_declare(vh, &spec, &made));
	return made;
}

static void
bind_many(unsigned n)
{
	char key[16];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof key, "%u", i);
		ck_assert_ptr_null(binding_add(x, q, NULL, span_str(key), NULL));
	}
}

static void
setup(void)
{
	log_set_level(LOG_ERROR);
	world_init(&w);
	vh = vhost_find(w.b, SPAN_LIT("/"));
	x = declare("x");
	q = world_queue(&w, "q");
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	peer_channel(&p, 1);
	peer_channel(&p, 2);
}

static void
teardown(void)
{
	peer_fini(&p);
	world_fini(&w);
}

/* Deletes what has this name and makes one anew, in one go; then something small on the other channel. */
static void
ask(uint32_t delete_id, const char *name, uint32_t declare_id, const char *type)
{
	uint8_t out[512], args[128];
	size_t n = 2, at;

	args[0] = args[1] = 0;
	n += put_short(args + n, name);
	args[n++] = 0;
	at = put_method(out, 1, delete_id, args, n);
	n = 2 + put_short(args + 2, name);
	if (type != NULL)
		n += put_short(args + n, type);
	args[n++] = 0;
	put_be32(args + n, 0);
	at += put_method(out + at, 1, declare_id, args, n + 4);
	memset(args, 0, 7);
	at += put_method(out + at, 2, AMQP_BASIC_QOS_METHOD, args, 7);
	peer_send(&p, out, at);
}

static void
expect(uint32_t id)
{
	struct seen f = peer_next(&p);

	for (unsigned turns = 0; f.type == 0 && turns < 10000; turns++) {
		world_turn(&w);
		peer_read(&p);
		f = peer_next(&p);
	}
	ck_assert_uint_eq(f.id, id);
}

START_TEST(an_exchange)
{
	bind_many(MANY);
	ask(AMQP_EXCHANGE_DELETE_METHOD, "x", AMQP_EXCHANGE_DECLARE_METHOD, "fanout");
	expect(AMQP_BASIC_QOS_OK_METHOD);
	expect(AMQP_EXCHANGE_DELETE_OK_METHOD);
	expect(AMQP_EXCHANGE_DECLARE_OK_METHOD);
	x = exchange_find(vh, SPAN_LIT("x"));
	ck_assert_int_eq(x->type, EXCHANGE_FANOUT);
	ck_assert_uint_eq(w.b->stats.bindings, 0);
}
END_TEST

START_TEST(a_queue)
{
	bind_many(MANY);
	ask(AMQP_QUEUE_DELETE_METHOD, "q", AMQP_QUEUE_DECLARE_METHOD, NULL);
	expect(AMQP_BASIC_QOS_OK_METHOD);
	expect(AMQP_QUEUE_DELETE_OK_METHOD);
	expect(AMQP_QUEUE_DECLARE_OK_METHOD);
	ck_assert_ptr_nonnull(queue_find(vh, SPAN_LIT("q")));
	ck_assert_uint_eq(w.b->stats.bindings, 0);
}
END_TEST

/* One with conditions loses nothing before they are looked at. */
START_TEST(what_is_in_use_stays_whole)
{
	uint8_t args[] = { 0, 0, 1, 'x', 1 /* if-unused */ };

	bind_many(3 * BINDINGS_AT_ONCE);
	peer_method(&p, 1, AMQP_EXCHANGE_DELETE_METHOD, args, sizeof args);
	expect(AMQP_CHANNEL_CLOSE_METHOD);
	ck_assert_uint_eq(x->binding_count, 3 * BINDINGS_AT_ONCE);
}
END_TEST

START_TEST(some_at_a_time)
{
	struct exchange *to = declare("to");

	bind_many(2 * BINDINGS_AT_ONCE - 1);
	ck_assert(!bindings_thin_exchange(x) && !bindings_thin_queue(q));
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("one more"), NULL));
	ck_assert(bindings_thin_queue(q));
	ck_assert_uint_eq(x->binding_count, BINDINGS_AT_ONCE);
	ck_assert(!bindings_thin_exchange(x) && !bindings_thin_queue(q));
	/* what leads to an exchange counts as what leads from it */
	for (unsigned i = 0; i < 2 * BINDINGS_AT_ONCE; i++) {
		char key[16];

		(void)snprintf(key, sizeof key, "%u", i);
		ck_assert_ptr_null(binding_add(x, NULL, to, span_str(key), NULL));
	}
	ck_assert(bindings_thin_exchange(to));
	ck_assert(!bindings_thin_exchange(to));
	ck_assert_uint_eq(x->binding_count, 2 * BINDINGS_AT_ONCE);
}
END_TEST

/* An auto-delete exchange is not gone before it is deleted. */
START_TEST(an_exchange_that_would_go_by_itself)
{
	struct exchange_spec spec = {
		.name = SPAN_LIT("auto"), .type = SPAN_LIT("direct"), .auto_delete = true
	};

	ck_assert_ptr_null(exchange_declare(vh, &spec, &x));
	bind_many(5 * BINDINGS_AT_ONCE);
	while (bindings_thin_exchange(x))
		continue;
	ck_assert_ptr_eq(exchange_find(vh, SPAN_LIT("auto")), x);
	ck_assert_uint_ge(x->binding_count, BINDINGS_AT_ONCE);
	ck_assert_ptr_null(exchange_delete(vh, SPAN_LIT("auto"), false));
	ck_assert_ptr_null(exchange_find(vh, SPAN_LIT("auto")));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("long_delete");
	TCase *t = tcase_create("long_delete");
	SRunner *r;
	int failed;

	clock_init();
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, an_exchange);
	tcase_add_test(t, a_queue);
	tcase_add_test(t, what_is_in_use_stays_whole);
	tcase_add_test(t, some_at_a_time);
	tcase_add_test(t, an_exchange_that_would_go_by_itself);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
