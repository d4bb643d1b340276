/* SPDX-License-Identifier: Apache-2.0
 * Where a message would go: the tree of what a real publish meets, and that nothing comes of it. */
#include "broker/route_try.h"

#include "broker/error.h"
#include "broker/props.h"
#include "route_world.h"

static struct world w;
static struct route_try t;

static const struct span none = SPAN_LIT("\0\0");
/* headers: {"CC": ["r", "r"]} */
static const struct span with_cc = SPAN_LIT("\x20\0\0\0\0\x14\2CCA\0\0\0\x0cS\0\0\0\1rS\0\0\0\1r");

static void
setup(void)
{
	world_init(&w);
}

static void
teardown(void)
{
	route_try_fini(&t);
	world_fini(&w);
}

static const struct error *
look(const char *exchange, const char *key, struct span props)
{
	struct msg *m = world_message(exchange, key, props);
	struct exchange *x = exchange_find(w.vh, span_str(exchange));
	const struct error *e;

	ck_assert_ptr_nonnull(x);
	route_try_fini(&t);
	e = route_try(&t, x, m);
	ck_assert_uint_eq(x->stats.publish_in, 0);
	msg_unref(&m);
	return e;
}

/* A real publish reaches so many queues, too. */
static void
compare(const char *exchange, const char *key, struct span props)
{
	struct msg *m = world_message(exchange, key, props);
	struct props pr;
	const struct route *r;

	ck_assert_int_eq(props_scan(msg_props(m), &pr), 0);
	r = route_find_msg(exchange_find(w.vh, span_str(exchange)), m, &pr);
	ck_assert_ptr_nonnull(r);
	ck_assert_uint_eq(r->count, t.queues);
	for (uint32_t i = 0; i < t.steps; i++)
		ck_assert(t.step[i].queue == NULL || route_has(r, t.step[i].queue));
	msg_unref(&m);
}

/* One of the steps out of a place is this one; an exchange's bindings are in no order. */
static void
has_step(
    enum route_way way, uint32_t from, const struct queue *q, const struct exchange *x, bool again)
{
	unsigned found = 0;

	for (uint32_t i = 0; i < t.steps; i++) {
		const struct route_step *s = &t.step[i];

		ck_assert(i == 0 || s->from >= s[-1].from);
		if (s->from != from || s->queue != q || s->exchange != x)
			continue;
		ck_assert_int_eq(s->way, way);
		ck_assert_int_eq(s->binding != NULL, way == ROUTE_BY_BINDING);
		found += s->again == again;
	}
	ck_assert_uint_eq(found, 1);
}

static void
is_place(uint32_t i, const struct exchange *x, uint32_t depth, uint64_t delay_ms)
{
	ck_assert_uint_lt(i, t.places);
	ck_assert_ptr_eq(t.place[i].exchange, x);
	ck_assert_uint_eq(t.place[i].depth, depth);
	ck_assert_uint_eq(t.place[i].delay_ms, delay_ms);
}

START_TEST(bindings_lead_on_and_back)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, NULL);
	struct exchange *y = world_exchange(&w, "y", "fanout", false, NULL);
	struct exchange *z = world_exchange(&w, "z", "fanout", false, NULL);
	struct queue *q = world_queue(&w, "q"), *r = world_queue(&w, "r");

	world_bind(x, NULL, y, "k");
	world_bind(x, q, NULL, "other");
	world_bind(y, NULL, z, "");
	world_bind(z, q, NULL, "");
	world_bind(z, NULL, x, "");
	world_bind(x, r, NULL, "k");
	world_bind(z, r, NULL, "");
	ck_assert_ptr_null(look("x", "k", none));
	ck_assert_uint_eq(t.places, 3);
	is_place(0, x, 0, 0);
	is_place(1, y, 1, 0);
	is_place(2, z, 2, 0);
	ck_assert_uint_eq(t.steps, 6);
	ck_assert_uint_eq(t.queues, 2);
	ck_assert(!t.is_cut);
	has_step(ROUTE_BY_BINDING, 0, NULL, y, false);
	has_step(ROUTE_BY_BINDING, 0, r, NULL, false);
	has_step(ROUTE_BY_BINDING, 1, NULL, z, false);
	has_step(ROUTE_BY_BINDING, 2, q, NULL, false);
	has_step(ROUTE_BY_BINDING, 2, NULL, x, true);
	has_step(ROUTE_BY_BINDING, 2, r, NULL, true);
	ck_assert_uint_eq(q->ready + r->ready, 0);
	compare("x", "k", none);
}
END_TEST

START_TEST(alternates_take_what_nothing_matches)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, "alt");
	struct exchange *alt = world_exchange(&w, "alt", "fanout", false, "gone");
	struct queue *q = world_queue(&w, "q");

	ck_assert_ptr_null(look("x", "k", none));
	ck_assert_uint_eq(t.steps, 2);
	has_step(ROUTE_BY_ALTERNATE, 0, NULL, alt, false);
	has_step(ROUTE_BY_ALTERNATE, 1, NULL, NULL, false); /* there is no "gone" */
	ck_assert_uint_eq(t.places, 2);
	is_place(1, alt, 1, 0);
	ck_assert_uint_eq(t.queues, 0);
	world_bind(alt, q, NULL, "");
	ck_assert_ptr_null(look("x", "k", none));
	ck_assert_uint_eq(t.steps, 2);
	has_step(ROUTE_BY_BINDING, 1, q, NULL, false);
	world_bind(x, q, NULL, "k");
	ck_assert_ptr_null(look("x", "k", none));
	ck_assert_uint_eq(t.steps, 1);
	has_step(ROUTE_BY_BINDING, 0, q, NULL, false);
	compare("x", "k", none);
}
END_TEST

START_TEST(the_default_exchange_goes_by_name)
{
	struct queue *q = world_queue(&w, "q"), *r = world_queue(&w, "r");

	ck_assert_ptr_null(look("", "q", with_cc));
	ck_assert_uint_eq(t.steps, 3);
	has_step(ROUTE_BY_NAME, 0, q, NULL, false);
	has_step(ROUTE_BY_NAME, 0, r, NULL, false);
	has_step(ROUTE_BY_NAME, 0, r, NULL, true);
	ck_assert_uint_eq(t.queues, 2);
	compare("", "q", with_cc);
	ck_assert_ptr_null(look("", "none", none));
	ck_assert_uint_eq(t.steps, 0);
	ck_assert_uint_eq(t.places, 1);
}
END_TEST

/* Of what leads further no more is kept than the bound, and that there was more is said. */
START_TEST(many_steps_are_cut)
{
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	char name[16];

	for (unsigned i = 0; i < ROUTE_TRY_STEPS_MAX; i++) {
		(void)snprintf(name, sizeof name, "q%u", i);
		world_bind(x, world_queue(&w, name), NULL, "");
	}
	ck_assert_ptr_null(look("x", "k", none));
	ck_assert_uint_eq(t.steps, ROUTE_TRY_STEPS_MAX);
	ck_assert_uint_eq(t.queues, ROUTE_TRY_STEPS_MAX);
	ck_assert(!t.is_cut);
	world_bind(x, world_queue(&w, "q"), NULL, "");
	ck_assert_ptr_null(look("x", "k", none));
	ck_assert_uint_eq(t.steps, ROUTE_TRY_STEPS_MAX);
	ck_assert(t.is_cut);
}
END_TEST

/* A chain of exchanges: each step is one deeper, and all fit. */
START_TEST(a_chain_as_long_as_the_bound)
{
	struct exchange *x[ROUTE_TRY_STEPS_MAX + 1];
	char name[16];

	for (unsigned i = 0; i < COUNT_OF(x); i++) {
		(void)snprintf(name, sizeof name, "x%u", i);
		x[i] = world_exchange(&w, name, "fanout", false, NULL);
		if (i > 0)
			world_bind(x[i - 1], NULL, x[i], "");
	}
	ck_assert_ptr_null(look("x0", "k", none));
	ck_assert_uint_eq(t.steps, ROUTE_TRY_STEPS_MAX);
	ck_assert_uint_eq(t.places, ROUTE_TRY_STEPS_MAX + 1);
	is_place(ROUTE_TRY_STEPS_MAX, x[ROUTE_TRY_STEPS_MAX], ROUTE_TRY_STEPS_MAX, 0);
	ck_assert(!t.is_cut);
}
END_TEST

static struct exchange *
delayed(const char *name)
{
	struct exchange_spec spec = { .name = span_str(name),
		.type = SPAN_LIT("x-delayed-message") };
	struct exchange *x = NULL;
	struct table_writer wr;
	struct table *arguments;

	table_writer_init(&wr, 100);
	table_put_string(&wr, "x-delayed-type", "fanout");
	spec.arguments = arguments = table_from_raw(span_of(wr.p, wr.n));
	ck_assert_ptr_null(exchange_declare(w.vh, &spec, &x));
	table_free(&arguments);
	table_writer_fini(&wr);
	return x;
}

START_TEST(a_delay_is_told_and_what_lies_behind)
{
	/* headers: {"x-delay": 5000}; then {"x-delay": true} */
	struct span delay = SPAN_LIT("\x20\0\0\0\0\x0d\7x-delayI\0\0\x13\x88"),
	            bad = SPAN_LIT("\x20\0\0\0\0\x0a\7x-delayt\1");
	struct exchange *x = delayed("x");
	struct queue *q = world_queue(&w, "q");
	const struct error *e;

	world_bind(x, q, NULL, "");
	ck_assert_ptr_null(look("x", "k", delay));
	is_place(0, x, 0, 5000);
	ck_assert_uint_eq(t.steps, 1);
	has_step(ROUTE_BY_BINDING, 0, q, NULL, false);
	ck_assert_uint_eq(w.b->stats.messages_delayed, 0);
	ck_assert_ptr_null(look("x", "k", none));
	is_place(0, x, 0, 0);
	e = look("x", "k", bad);
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 406);
}
END_TEST

START_TEST(what_a_publish_is_refused_with)
{
	/* headers: {"CC": true} */
	struct span bad_cc = SPAN_LIT("\x20\0\0\0\0\5\2CCt\1");
	const struct error *e;

	(void)world_exchange(&w, "x", "fanout", false, NULL);
	e = look("x", "k", bad_cc);
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 406);
	ck_assert_uint_eq(t.steps, 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("route_try");
	TCase *c = tcase_create("route_try");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, bindings_lead_on_and_back);
	tcase_add_test(c, alternates_take_what_nothing_matches);
	tcase_add_test(c, the_default_exchange_goes_by_name);
	tcase_add_test(c, many_steps_are_cut);
	tcase_add_test(c, a_chain_as_long_as_the_bound);
	tcase_add_test(c, a_delay_is_told_and_what_lies_behind);
	tcase_add_test(c, what_a_publish_is_refused_with);
	tcase_set_timeout(c, 30);
	suite_add_tcase(s, c);
	return run_suite(s);
}
