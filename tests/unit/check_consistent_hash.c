/* SPDX-License-Identifier: Apache-2.0
 * The consistent-hash exchange: shares as the weights are, a binding that goes moves its own messages only, the same
 * places in every run, and what the plugin refuses. */
#include "broker/exchange_type/type.h"
#include "broker/hash.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "route_world.h"

enum { KEYS = 100000, QUEUES = 10 };
#define NONE span_of(NULL, 0)

static struct world w;
static uint32_t got[QUEUES];
static struct queue *q[QUEUES];

static void
setup(void)
{
	world_init(&w);
}

static void
teardown(void)
{
	world_fini(&w);
	ck_assert_uint_eq(mem_held[MEM_TOPOLOGY], 0);
}

static struct table *
argument(const char *name, const char *value)
{
	struct table_writer t;
	struct table *made;

	table_writer_init(&t, 1000);
	table_put_string(&t, name, value);
	made = table_from_raw(span_of(t.p, t.n));
	table_writer_fini(&t);
	return made;
}

static const struct error *
declare(const char *name, const struct table *arguments, struct exchange **x)
{
	struct exchange_spec spec = { .name = span_str(name),
		.type = SPAN_LIT("x-consistent-hash"),
		.arguments = arguments };

	return exchange_declare(w.vh, &spec, x);
}

static struct exchange *
make(const char *name, const char *argument_name, const char *value)
{
	struct table *t = argument_name != NULL ? argument(argument_name, value) : NULL;
	struct exchange *x = NULL;

	ck_assert_ptr_null(declare(name, t, &x));
	table_free(&t);
	return x;
}

static void
make_queues(struct exchange *x, const char *const *weight)
{
	char name[8];
	int i;

	for (i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "q%d", i);
		q[i] = world_queue(&w, name);
		if (weight[i] != NULL)
			world_bind(x, q[i], NULL, weight[i]);
	}
}

static int
place_of(const struct route *r)
{
	int i;

	ck_assert_ptr_nonnull(r);
	ck_assert_uint_eq(r->count, 1);
	for (i = 0; i < QUEUES; i++) {
		if (r->queue[0] == q[i])
			return i;
	}
	ck_abort_msg("another queue");
	return -1;
}

static int
place_of_key(struct exchange *x, unsigned key)
{
	char text[20];

	snprintf(text, sizeof text, "key.%u", key);
	return place_of(route_find(x, span_str(text), NONE));
}

static const char *const ones[QUEUES] = { "1", "1", "1", "1", "1", "1", "1", "1", "1", "1" };
static const char *const mixed[QUEUES] = { "1", "2", "3", "4", "10", "20", "10", "+5", "040", "5" };
static const char *const large[QUEUES] = { "1000000", "500000", "1000000", "500000", "1000000",
	"500000", "1000000", "500000", "1000000", "1000000" };

START_TEST(test_shares)
{
	const char *const *weight = _i == 0 ? ones : _i == 1 ? mixed : large;
	struct exchange *x = make("x", NULL, NULL);
	double sum = 0, want;
	unsigned i;

	make_queues(x, weight);
	for (i = 0; i < QUEUES; i++)
		sum += atof(weight[i]);
	for (i = 0; i < KEYS; i++)
		got[place_of_key(x, i)]++;
	for (i = 0; i < QUEUES; i++) {
		want = KEYS * atof(weight[i]) / sum;
		ck_assert_double_eq_tol(got[i], want, want * 0.03 + 100);
	}
}
END_TEST

/* Places with one queue missing, and with it back: only its own keys had moved. */
START_TEST(test_moves)
{
	static int8_t before[KEYS];
	struct exchange *x = make("x", NULL, NULL);
	unsigned i, moved = 0;
	int gone = _i, at;

	make_queues(x, mixed);
	for (i = 0; i < KEYS; i++)
		before[i] = (int8_t)place_of_key(x, i);
	ck_assert_ptr_null(binding_remove(x, q[gone], NULL, span_str(mixed[gone]), NULL));
	for (i = 0; i < KEYS; i++) {
		at = place_of_key(x, i);
		ck_assert_int_ne(at, gone);
		moved += before[i] == gone;
		ck_assert(before[i] == gone || at == before[i]);
	}
	ck_assert_uint_gt(moved, 0);
	world_bind(x, q[gone], NULL, mixed[gone]);
	for (i = 0; i < KEYS; i++)
		ck_assert_int_eq(place_of_key(x, i), before[i]);
}
END_TEST

/* These places must never change: they are what a restart relies on. Another seed of the process, another order. */
START_TEST(test_same_in_every_run)
{
	static const char want[] = "590604376334975677141290";
	struct exchange *x = make("x", NULL, NULL);
	char have[sizeof want] = "";
	unsigned i;

	hash_seed = 4711 * (uint64_t)_i;
	make_queues(x, _i == 0 ? ones : (const char *const[QUEUES]){ 0 });
	for (i = QUEUES; _i != 0 && i-- > 0;)
		world_bind(x, q[i], NULL, "1");
	for (i = 0; i + 1 < sizeof want; i++)
		have[i] = (char)('0' + place_of_key(x, i));
	ck_assert_str_eq(have, want);
}
END_TEST

/* Several bindings to one queue: the heaviest counts, and one that goes leaves the others. */
START_TEST(test_bound_twice)
{
	struct exchange *x = make("x", NULL, NULL);
	unsigned i;

	make_queues(x, (const char *const[QUEUES]){ "1", "3" });
	world_bind(x, q[0], NULL, "3");
	for (i = 0; i < KEYS; i++)
		got[place_of_key(x, i)]++;
	ck_assert_double_eq_tol(got[0], KEYS / 2., KEYS * 0.01);
	ck_assert_ptr_null(binding_remove(x, q[0], NULL, SPAN_LIT("3"), NULL));
	memset(got, 0, sizeof got);
	for (i = 0; i < KEYS; i++)
		got[place_of_key(x, i)]++;
	ck_assert_double_eq_tol(got[0], KEYS / 4., KEYS * 0.01);
}
END_TEST

/* Through a binding between exchanges, and to the alternate while nothing is bound. */
START_TEST(test_exchanges)
{
	struct exchange *x = make("x", "alternate-exchange", "alt");
	struct exchange *fan = world_exchange(&w, "fan", "fanout", false, NULL);
	struct exchange *alt = world_exchange(&w, "alt", "fanout", false, NULL);

	make_queues(x, (const char *const[QUEUES]){ 0 });
	world_bind(fan, q[3], NULL, "");
	world_bind(alt, q[4], NULL, "");
	ck_assert_int_eq(place_of_key(x, 0), 4);
	world_bind(x, NULL, fan, "7");
	ck_assert_int_eq(place_of_key(x, 0), 3);
	queue_remove(q[3]);
	ck_assert_uint_eq(route_find(x, SPAN_LIT("k"), NONE)->count, 0);
}
END_TEST

/* The message with these properties: flags and what stands behind them. */
static const struct route *
find_with(struct exchange *x, const uint8_t *props, size_t n)
{
	const size_t names = 5, meta = names + 7 + 12 + n + 1;
	struct msg *m = msg_try_new(msg_wire_size((uint32_t)meta, 0));
	const struct route *r;
	struct props pr;

	ck_assert_int_eq(props_scan(span_of(props, n), &pr), 0);
	memset(m->wire, 0, meta);
	memcpy(m->wire, "\1x\1k\xCE", names);
	memcpy(m->wire + names + 7 + 12, props, n);
	m->names_len = names;
	m->meta_len = (uint32_t)meta;
	m->body_size = 0;
	if (pr.headers.p != NULL)
		pr.headers.p = msg_props(m).p + (pr.headers.p - props);
	r = route_find_msg(x, m, &pr);
	msg_unref(&m);
	return r;
}

/* A correlation id, a message id, a timestamp, a header k behind another: 4 bytes each. */
static size_t
put_props(unsigned what, uint32_t value, uint8_t *to)
{
	static const uint8_t before[][14] = {
		{ 4, 0, 4 },
		{ 0, 0x80, 4 },
		{ 0, 0x40, 0, 0, 0, 0 },
		{ 0x20, 0, 0, 0, 0, 11, 1, 'j', 't', 1, 1, 'k', 'I' },
	};
	static const size_t length[] = { 3, 3, 6, 13 };

	memcpy(to, before[what], length[what]);
	put_be32(to + length[what], value);
	return length[what] + 4;
}

START_TEST(test_by_message)
{
	static const char *const property[] = { "correlation_id", "message_id", "timestamp", "k" };
	struct exchange *x = make("x", _i == 3 ? "hash-header" : "hash-property", property[_i]);
	uint8_t props[32], empty[2] = { 0 };
	unsigned i, seen = 0;
	size_t n;
	int at;

	make_queues(x, ones);
	at = place_of(find_with(x, empty, 2));
	for (i = 0; i < KEYS; i++) {
		n = put_props((unsigned)_i, i, props);
		got[place_of(find_with(x, props, n))]++;
	}
	for (i = 0; i < QUEUES; i++)
		ck_assert_double_eq_tol(got[i], KEYS / 10., KEYS * 0.004);
	/* What it is not hashed by changes nothing: all of them where those without are. */
	for (i = 0; i < 100; i++) {
		n = put_props((unsigned)(_i + 1) % 4, i, props);
		ck_assert_int_eq(place_of(find_with(x, props, n)), at);
		seen |= 1u << place_of_key(x, i);
	}
	ck_assert_uint_eq(seen, 1u << at);
}
END_TEST

/* CC is for those who route by key: a message goes to one place all the same. */
START_TEST(test_cc)
{
	struct exchange *x = make("x", NULL, NULL);
	static const uint8_t cc[] = "\x20\0\0\0\0\x0E\2CCA\0\0\0\6S\0\0\0\1z";
	int at;

	make_queues(x, ones);
	at = place_of(route_find(x, SPAN_LIT("k"), NONE));
	ck_assert_int_ne(at, place_of(route_find(x, SPAN_LIT("z"), NONE)));
	ck_assert_int_eq(place_of(find_with(x, cc, sizeof cc - 1)), at);
}
END_TEST

static const struct {
	const char *key, *text;
} keys[] = {
	{ "0", "PRECONDITION_FAILED - The binding key must be greater than 0" },
	{ "-1", "PRECONDITION_FAILED - The binding key must be greater than 0" },
	{ "abc", "PRECONDITION_FAILED - The binding key must be an integer: <<\"abc\">>" },
	{ "", "PRECONDITION_FAILED - The binding key must be an integer: <<>>" },
	{ "1.5", "PRECONDITION_FAILED - The binding key must be an integer: <<\"1.5\">>" },
	{ " 3", "PRECONDITION_FAILED - The binding key must be an integer: <<\" 3\">>" },
	{ "1000001", "PRECONDITION_FAILED - The binding key must not be greater than 1000000" },
	{ "2147483648", "PRECONDITION_FAILED - The binding key must not be greater than 1000000" },
	{ "18446744073709551617",
	    "PRECONDITION_FAILED - The binding key must not be greater than 1000000" },
};

START_TEST(test_weight_refused)
{
	struct exchange *x = make("x", NULL, NULL);
	const struct error *e;

	e = binding_add(x, world_queue(&w, "q"), NULL, span_str(keys[_i].key), NULL);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->text, keys[_i].text);
	ck_assert_uint_eq(x->binding_count, 0);
}
END_TEST

START_TEST(test_arguments_refused)
{
	struct table_writer t;
	struct table *made;
	struct exchange *x = NULL;
	const struct error *e;

	made = argument("hash-property", "app_id");
	e = declare("x", made, &x);
	ck_assert_str_eq(e->text, "PRECONDITION_FAILED - Unsupported property: app_id");
	table_free(&made);
	table_writer_init(&t, 1000);
	table_put_string(&t, "hash-property", "app_id");
	table_put_string(&t, "hash-header", "h");
	made = table_from_raw(span_of(t.p, t.n));
	table_writer_fini(&t);
	e = declare("x", made, &x);
	ck_assert_str_eq(
	    e->text, "PRECONDITION_FAILED - hash-header and hash-property are mutually exclusive");
	table_free(&made);
	made = table_from_raw(SPAN_LIT("\13hash-headert\1"));
	e = declare("x", made, &x);
	ck_assert_str_eq(e->text,
	    "PRECONDITION_FAILED - Unsupported hash-header of type bool; expected longstr");
	table_free(&made);
	ck_assert_ptr_null(exchange_find(w.vh, SPAN_LIT("x")));
}
END_TEST

START_TEST(test_inequivalent)
{
	struct exchange *x = make("x", NULL, NULL);
	struct exchange_spec spec = { .name = SPAN_LIT("x"), .type = SPAN_LIT("direct") };
	const struct error *e = exchange_declare(w.vh, &spec, &x);

	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->text,
	    "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost 'test': "
	    "received 'direct' but current is ''x-consistent-hash''");
	ck_assert_ptr_eq(make("x", "hash-header", "h"), x);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("consistent_hash");
	TCase *t = tcase_create("all");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_shares, 0, 3);
	tcase_add_loop_test(t, test_moves, 0, QUEUES);
	tcase_add_loop_test(t, test_same_in_every_run, 0, 2);
	tcase_add_test(t, test_bound_twice);
	tcase_add_test(t, test_exchanges);
	tcase_add_loop_test(t, test_by_message, 0, 4);
	tcase_add_test(t, test_cc);
	tcase_add_loop_test(t, test_weight_refused, 0, COUNT_OF(keys));
	tcase_add_test(t, test_arguments_refused);
	tcase_add_test(t, test_inequivalent);
	suite_add_tcase(s, t);
	return run_suite(s);
}
