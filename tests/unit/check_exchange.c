/* SPDX-License-Identifier: Apache-2.0
 * Declaring, deleting and binding exchanges: refusals in RabbitMQ's words, what goes with what. */
#include "broker/exchange.h"

#include "route_world.h"

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
expect(const struct error *e, unsigned code, const char *text)
{
	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, code);
	ck_assert_str_eq(e->text, text);
}

static bool
exists(const char *name)
{
	return exchange_find(w.vh, span_str(name)) != NULL;
}

static const struct error *
declare(const char *name, const char *type, bool durable, bool auto_delete, bool internal,
    struct span arguments)
{
	struct table *t = table_from_raw(arguments);
	struct exchange_spec spec = { span_str(name), span_str(type), durable, auto_delete,
		internal, t };
	const struct error *e;
	struct exchange *x = NULL;

	e = exchange_declare(w.vh, &spec, &x);
	if (e == NULL)
		ck_assert_ptr_eq(exchange_find(w.vh, span_str(name)), x);
	table_free(&t);
	return e;
}

#define NONE SPAN_LIT("")
#define AE(type, value) SPAN_LIT("\22alternate-exchange" type value)
#define AE_A AE("S", "\0\0\0\1a")

static const struct {
	const char *name, *type;
	bool durable, auto_delete, internal;
	struct span arguments;
	unsigned code;
	const char *text;
} declared[] = {
	{ "", "direct", true, false, false, NONE, 403,
	    "ACCESS_REFUSED - operation not permitted on the default exchange" },
	{ "amq.x", "direct", false, false, false, NONE, 403,
	    "ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'" },
	{ "n", "no-such", false, false, false, NONE, 503,
	    "COMMAND_INVALID - unknown exchange type 'no-such'" },
	{ "n", "", false, false, false, NONE, 503, "COMMAND_INVALID - invalid exchange type ''" },
	{ "n", "Direct", false, false, false, NONE, 503,
	    "COMMAND_INVALID - unknown exchange type 'Direct'" },
	{ "n", "direct", false, false, false, AE("I", "\0\0\0\5"), 406,
	    "PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in "
	    "exchange 'n' in vhost 'test'" },
	{ "x", "fanout", true, true, true, NONE, 406,
	    "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost 'test': "
	    "received 'fanout' but "
	    "current is 'direct'" },
	{ "x", "direct", true, true, true, NONE, 406,
	    "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost 'test': "
	    "received 'true' but "
	    "current is 'false'" },
	{ "x", "direct", false, true, true, NONE, 406,
	    "PRECONDITION_FAILED - inequivalent arg 'auto_delete' for exchange 'x' in vhost "
	    "'test': received 'true' "
	    "but current is 'false'" },
	{ "x", "direct", false, false, true, NONE, 406,
	    "PRECONDITION_FAILED - inequivalent arg 'internal' for exchange 'x' in vhost 'test': "
	    "received 'true' but "
	    "current is 'false'" },
	{ "x", "direct", false, false, false, AE_A, 406,
	    "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'x' in vhost "
	    "'test': received "
	    "the value 'a' of type 'longstr' but current is none" },
	{ "xa", "direct", false, false, false, NONE, 406,
	    "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'xa' in "
	    "vhost 'test': received "
	    "none but current is the value 'a' of type 'longstr'" },
	{ "xa", "direct", false, false, false, AE("S", "\0\0\0\1b"), 406,
	    "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'xa' in "
	    "vhost 'test': received "
	    "'b' but current is 'a'" },
	{ "xa", "direct", false, false, false, AE("I", "\0\0\0\5"), 406,
	    "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'xa' in "
	    "vhost 'test': received "
	    "'5' but current is 'a'" },
	{ "xa", "direct", false, false, false, AE_A, 0, NULL },
	{ "x", "direct", false, false, false, SPAN_LIT("\3fooI\0\0\0\1"), 0, NULL },
	{ "amq.topic", "topic", true, false, false, NONE, 0, NULL },
	{ "amq.rabbitmq.trace", "topic", true, false, true, NONE, 0, NULL },
	{ "amqp", "topic", true, false, false, NONE, 0, NULL },
};

START_TEST(test_declare)
{
	const struct error *e;

	ck_assert_ptr_null(declare("x", "direct", false, false, false, NONE));
	ck_assert_ptr_null(declare("xa", "direct", false, false, false, AE_A));
	e = declare(declared[_i].name, declared[_i].type, declared[_i].durable,
	    declared[_i].auto_delete, declared[_i].internal, declared[_i].arguments);
	if (declared[_i].code == 0)
		ck_assert_msg(e == NULL, "%s", e != NULL ? e->text : "");
	else
		expect(e, declared[_i].code, declared[_i].text);
	ck_assert(!exists("n"));
}
END_TEST

START_TEST(test_delete)
{
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	struct queue *q = world_queue(&w, "q");

	expect(exchange_delete(w.vh, SPAN_LIT(""), false), 403,
	    "ACCESS_REFUSED - operation not permitted on the default exchange");
	expect(exchange_delete(w.vh, SPAN_LIT("amq.not-there"), false), 403,
	    "ACCESS_REFUSED - deletion of system exchange 'amq.not-there' in vhost 'test' not "
	    "allowed");
	world_bind(x, q, NULL, "k");
	expect(exchange_delete(w.vh, SPAN_LIT("x"), true), 406,
	    "PRECONDITION_FAILED - exchange 'x' in vhost 'test' in use");
	ck_assert_uint_eq(w.b->stats.bindings, 1);
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("x"), false));
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("x"), true));
	ck_assert(!exists("x") && LIST_EMPTY(&q->bindings));
	ck_assert_uint_eq(w.b->stats.bindings, 0);
	ck_assert_ptr_null(exchange_lookup(w.vh, SPAN_LIT(""), &x));
	expect(exchange_lookup(w.vh, SPAN_LIT("x"), &x), 404,
	    "NOT_FOUND - no exchange 'x' in vhost 'test'");
}
END_TEST

/* if-unused looks at bindings out of it only. */
START_TEST(test_delete_if_unused)
{
	struct exchange *from = world_exchange(&w, "from", "fanout", false, NULL);
	struct exchange *to = world_exchange(&w, "to", "fanout", false, NULL);

	world_bind(from, NULL, to, "");
	ck_assert_ptr_nonnull(exchange_delete(w.vh, SPAN_LIT("from"), true));
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("to"), true));
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("from"), true));
}
END_TEST

START_TEST(test_auto_delete)
{
	struct exchange *x = world_exchange(&w, "x", "topic", true, NULL);
	struct exchange *up = world_exchange(&w, "up", "direct", true, NULL);
	struct queue *q = world_queue(&w, "q");

	world_bind(x, q, NULL, "a");
	world_bind(x, q, NULL, "b");
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("c"), NULL));
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("a"), NULL));
	ck_assert(exists("x"));
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("b"), NULL));
	ck_assert(!exists("x"));
	world_bind(up, NULL, world_exchange(&w, "down", "direct", true, NULL), "k");
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("down"), false));
	ck_assert(!exists("up"));
	/* Deleted by somebody while bindings stand, it goes once. */
	world_bind(world_exchange(&w, "x", "topic", true, NULL), q, NULL, "a");
	ck_assert_ptr_null(exchange_delete(w.vh, SPAN_LIT("x"), false));
	ck_assert(!exists("x") && w.vh->unbound == NULL);
	ck_assert_uint_eq(w.b->stats.exchanges, 2 * 7 + 1);
}
END_TEST

/* A chain of 20,000: no recursion. */
START_TEST(test_auto_delete_chain)
{
	struct exchange *before = NULL, *x = NULL;
	struct queue *q = world_queue(&w, "q");
	char name[20];
	int i;

	for (i = 0; i < 20000; i++, before = x) {
		snprintf(name, sizeof name, "x%d", i);
		x = world_exchange(&w, name, "fanout", true, NULL);
		if (before != NULL)
			world_bind(before, NULL, x, "");
	}
	world_bind(x, q, NULL, "");
	ck_assert_uint_eq(
	    route_find(exchange_find(w.vh, SPAN_LIT("x0")), SPAN_LIT("k"), NONE)->count, 1);
	queue_remove(q);
	ck_assert_uint_eq(w.b->stats.exchanges, 2 * 7 + 1);
}
END_TEST

START_TEST(test_bind_default)
{
	struct exchange *x = world_exchange(&w, "x", "fanout", false, NULL);
	struct exchange *d = w.vh->default_exchange;
	struct queue *q = world_queue(&w, "q");
	const char *text = "ACCESS_REFUSED - operation not permitted on the default exchange";

	expect(binding_add(d, q, NULL, SPAN_LIT("q"), NULL), 403, text);
	expect(binding_add(d, NULL, x, SPAN_LIT("q"), NULL), 403, text);
	expect(binding_add(x, NULL, d, SPAN_LIT("q"), NULL), 403, text);
	expect(binding_remove(d, q, NULL, SPAN_LIT("q"), NULL), 403, text);
	expect(binding_remove(x, NULL, d, SPAN_LIT("q"), NULL), 403, text);
}
END_TEST

/* Key and arguments are the binding's identity, the order of arguments is not. */
START_TEST(test_identity)
{
	struct exchange *x = world_exchange(&w, "x", "direct", false, NULL);
	struct queue *q = world_queue(&w, "q");
	struct table *ab = table_from_raw(SPAN_LIT("\1aV\1bt\1")),
	             *ba = table_from_raw(SPAN_LIT("\1bt\1\1aV"));
	struct table *other = table_from_raw(SPAN_LIT("\1aV\1bt\0"));

	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), ab));
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), ba));
	ck_assert_uint_eq(x->binding_count, 1);
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), other));
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), NULL));
	ck_assert_uint_eq(x->binding_count, 3);
	ck_assert_uint_eq(route_find(x, SPAN_LIT("k"), NONE)->count, 1);
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("k"), ba));
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("k"), ba));
	ck_assert_uint_eq(x->binding_count, 2);
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("k"), NULL));
	ck_assert_uint_eq(route_find(x, SPAN_LIT("k"), NONE)->count, 1);
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("k"), other));
	ck_assert_uint_eq(route_find(x, SPAN_LIT("k"), NONE)->count, 0);
	table_free(&ab);
	table_free(&ba);
	table_free(&other);
}
END_TEST

START_TEST(test_bind_without_memory)
{
	struct exchange *x = world_exchange(&w, "x", "headers", false, NULL);
	struct table *arguments = table_from_raw(SPAN_LIT("\1aV"));
	struct queue *q = world_queue(&w, "q");
	unsigned long n;

	for (n = 1; n <= 2; n++) {
		mem_fail_try(n, 0);
		expect(binding_add(x, q, NULL, SPAN_LIT("k"), arguments), 506,
		    "RESOURCE_ERROR - no memory for a binding");
		ck_assert_uint_eq(x->binding_count, 0);
	}
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("k"), arguments));
	table_free(&arguments);
}
END_TEST

/* Ten thousand bindings of one queue, under keys of their own and all under one: quick to make and to drop. */
START_TEST(test_many)
{
	static const char *const types[] = { "direct", "fanout", "topic", "headers" };
	struct exchange *x = world_exchange(&w, "x", types[_i], false, NULL);
	struct queue *q = world_queue(&w, "q"), *other[100];
	char key[40];
	int i;

	for (i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "a.k%d", i);
		world_bind(x, q, NULL, key);
	}
	for (i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "q%d", i);
		other[i] = world_queue(&w, key);
		world_bind(x, other[i], NULL, "one");
	}
	ck_assert_uint_eq(
	    route_find(x, SPAN_LIT("a.k77"), NONE)->count, _i == 0 || _i == 2 ? 1 : 101);
	ck_assert_uint_eq(
	    route_find(x, SPAN_LIT("one"), NONE)->count, _i == 0 || _i == 2 ? 100 : 101);
	for (i = 0; i < 5000; i++) {
		snprintf(key, sizeof key, "a.k%d", i * 2);
		ck_assert_ptr_null(binding_remove(x, q, NULL, span_str(key), NULL));
	}
	ck_assert_uint_eq(x->binding_count, 5100);
	queue_remove(q);
	ck_assert_uint_eq(x->binding_count, 100);
	ck_assert_uint_eq(
	    route_find(x, SPAN_LIT("a.k77"), NONE)->count, _i == 0 || _i == 2 ? 0 : 100);
}
END_TEST

START_TEST(test_vhosts)
{
	char name[257];

	memset(name, 'v', 256);
	name[256] = '\0';
	ck_assert_ptr_null(vhost_add(w.b, name));
	ck_assert_ptr_null(vhost_add(w.b, ""));
	ck_assert_ptr_null(vhost_add(w.b, "test"));
	ck_assert_ptr_nonnull(vhost_add(w.b, name + 1));
	ck_assert_ptr_eq(vhost_find(w.b, SPAN_LIT("test")), w.vh);
	ck_assert_ptr_null(vhost_find(w.b, SPAN_LIT("")));
}
END_TEST

/* Of a reply: 255 bytes at most, cut before a character that does not fit. The text itself has them all. */
START_TEST(test_error_text)
{
	char name[300], long_name[ERROR_TEXT_MAX + 10];
	const struct error *e;
	int i;

	for (i = 0; i < 298; i += 2)
		memcpy(name + i, "\xc3\xa9", 3);
	e = error_make(E_NOT_FOUND, "%s", name);
	ck_assert_uint_eq(strlen(e->text), 310);
	ck_assert_uint_eq(error_reply_text(e).n, 254);
	ck_assert_int_eq(strncmp(e->text, "NOT_FOUND - \xc3\xa9", 14), 0);
	e = error_make(E_NOT_FOUND, "x%s", name);
	ck_assert_uint_eq(error_reply_text(e).n, 255);
	e = error_make(E_NOT_FOUND, "short");
	ck_assert(span_is(error_reply_text(e), "NOT_FOUND - short"));
	for (i = 0; i < ERROR_TEXT_MAX; i += 2)
		memcpy(long_name + i, "\xc3\xa9", 3);
	e = error_make(E_NOT_FOUND, "%s", long_name);
	ck_assert_uint_eq(strlen(e->text), ERROR_TEXT_MAX - 2);
	e = error_make(E_NOT_FOUND, "%s", e->text); /* its own text, which is overwritten */
	ck_assert_int_eq(strncmp(e->text, "NOT_FOUND - NOT_FOUND - \xc3\xa9", 26), 0);
	ck_assert_int_eq(e->scope, ERROR_CHANNEL);
	e = error_with_scope(e, ERROR_CONNECTION);
	ck_assert_int_eq(e->scope, ERROR_CONNECTION);
	ck_assert_uint_eq(e->code, 404);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("exchange");
	TCase *t = tcase_create("exchange");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, test_declare, 0, COUNT_OF(declared));
	tcase_add_test(t, test_delete);
	tcase_add_test(t, test_delete_if_unused);
	tcase_add_test(t, test_auto_delete);
	tcase_add_test(t, test_auto_delete_chain);
	tcase_add_test(t, test_bind_default);
	tcase_add_test(t, test_identity);
	tcase_add_test(t, test_bind_without_memory);
	tcase_add_loop_test(t, test_many, 0, 4);
	tcase_add_test(t, test_vhosts);
	tcase_add_test(t, test_error_text);
	tcase_set_timeout(t, 30);
	suite_add_tcase(s, t);
	return run_suite(s);
}
