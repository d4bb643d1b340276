/* SPDX-License-Identifier: Apache-2.0
 * The headers of dead letters: what RabbitMQ 3.10 writes, and what clients may have written before. */
#include "broker/death.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct table_writer in, out;
static char text[4096];

static void
set_up(void)
{
	table_writer_init(&in, 1 << 20);
	table_writer_init(&out, 128 << 10);
}

static void
tear_down(void)
{
	table_writer_fini(&in);
	table_writer_fini(&out);
}

/* ---- a table as text: name=value, tables in {}, arrays in [] ---- */

static void
say(const char *s, size_t n)
{
	ck_assert_uint_lt(strlen(text) + n, sizeof text);
	strncat(text, s, n);
}

static void say_table(struct span raw, bool is_array);

static void
say_field(const struct field *f)
{
	char number[40];

	switch (f->kind) {
	case 'S': say((const char *)f->bytes.p, f->bytes.n); break;
	case 'F': say_table(f->bytes, false); break;
	case 'A': say_table(f->bytes, true); break;
	default:
		snprintf(number, sizeof number, "%c%lld", f->kind, (long long)f->integer);
		say(number, strlen(number));
		break;
	}
}

static void
say_table(struct span raw, bool is_array)
{
	struct field f;
	size_t at = 0;
	bool first = true;

	say(is_array ? "[" : "{", 1);
	while (is_array ? array_next(raw, &at, &f) : table_next(raw, &at, &f)) {
		if (!first)
			say(" ", 1);
		first = false;
		if (!is_array) {
			say((const char *)f.name.p, f.name.n);
			say("=", 1);
		}
		say_field(&f);
	}
	say(is_array ? "]" : "}", 1);
}

static const char *
said(void)
{
	ck_assert(!out.failed);
	ck_assert_int_eq(table_check(span_of(out.p, out.n), TABLE_DEPTH_MAX), 0);
	text[0] = '\0';
	say_table(span_of(out.p, out.n), false);
	return text;
}

/* ---- deaths ---- */

static struct death
death_of(const char *queue, const char *reason)
{
	return (struct death){ .reason = span_str(reason),
		.queue = span_str(queue),
		.exchange = SPAN_LIT("x"),
		.key = SPAN_LIT("k"),
		.time_s = 7 };
}

/* What was written becomes what the next one starts from. */
static void
die(const char *queue, const char *reason)
{
	struct death d = death_of(queue, reason);
	struct table_writer t = in;

	table_writer_fini(&out);
	table_writer_init(&out, 128 << 10);
	death_write(&out, span_of(in.p, in.n), &d, DEATH_EVENTS_MAX - 1);
	ck_assert(!out.failed);
	table_writer_init(&in, 1 << 20);
	table_put_raw(&in, span_of(out.p, out.n));
	table_writer_fini(&t);
}

START_TEST(first_death)
{
	struct death d = death_of("q", "expired");

	d.expiration = SPAN_LIT("50");
	table_put_string(&in, "mine", "1");
	table_put_string(&in, "x-first-death-queue", "forged");
	death_write(&out, span_of(in.p, in.n), &d, DEATH_EVENTS_MAX - 1);
	ck_assert_str_eq(said(),
	    "{mine=1 x-death=[{count=l1 reason=expired queue=q time=T7 exchange=x routing-keys=[k] "
	    "original-expiration=50}] x-first-death-reason=expired x-first-death-queue=q "
	    "x-first-death-exchange=x}");
}
END_TEST

/* Each death turns the others round, once there are two of them. */
START_TEST(order_of_deaths)
{
	static const char *const expected[] = { "c1", "c2 c1", "c3 c1 c2", "c4 c2 c1 c3",
		"c5 c3 c1 c2 c4" };
	char name[8], names[64];
	struct field list, f, q;

	for (int i = 0; i < 5; i++) {
		size_t at = 0, used;

		snprintf(name, sizeof name, "c%d", i + 1);
		die(name, "expired");
		names[0] = '\0';
		ck_assert(table_find(span_of(out.p, out.n), "x-death", &list));
		while (array_next(list.bytes, &at, &f)) {
			ck_assert(table_find(f.bytes, "queue", &q));
			used = strlen(names);
			snprintf(names + used, sizeof names - used, "%s%.*s", used > 0 ? " " : "",
			    SPAN_FMT(q.bytes));
		}
		ck_assert_str_eq(names, expected[i]);
	}
}
END_TEST

START_TEST(again_in_the_same_queue)
{
	die("w", "rejected");
	die("t", "expired");
	die("w", "rejected");
	die("t", "expired");
	ck_assert_str_eq(said(),
	    "{x-first-death-reason=rejected x-first-death-queue=w x-first-death-exchange=x "
	    "x-death=[{count=l2 exchange=x queue=t reason=expired routing-keys=[k] time=T7} "
	    "{count=l2 exchange=x queue=w reason=rejected routing-keys=[k] time=T7}]}");
}
END_TEST

/* ---- what clients write ---- */

static void
put_death(const char *queue, const char *reason, int64_t count)
{
	static const uint8_t head[] = { 'F', 0, 0, 0, 0 };
	struct field f = { .name = SPAN_LIT("count"), .kind = 'I', .integer = count };
	uint32_t mark;

	table_put_raw(&in, span_of(head, sizeof head));
	mark = in.n;
	table_put_string(&in, "queue", queue);
	table_put_string(&in, "reason", reason);
	if (count > 0)
		table_put_field(&in, &f);
	table_end(&in, mark);
}

static uint32_t
begin_list(void)
{
	static const uint8_t head[] = "\7x-deathA\0\0\0";

	table_put_raw(&in, span_of(head, sizeof head));
	return in.n;
}

static const struct {
	struct {
		const char *queue, *reason;
		int64_t count;
	} was[3];
	const char *list;
} forged[] = {
	{ { { NULL, NULL, 0 } },
	    "[{count=l1 exchange=x queue=q reason=rejected routing-keys=[k] time=T7}]" },
	{ { { "q", "rejected", 0 } }, "[{count=l1 queue=q reason=rejected}]" },
	{ { { "q", "rejected", 5 } }, "[{count=l6 queue=q reason=rejected}]" },
	{ { { "q", "rejected", 5 }, { "q", "rejected", 7 } },
	    "[{count=l6 queue=q reason=rejected}]" },
	{ { { "q", "rejected", 0 }, { "q", "rejected", 0 }, { "b", "rejected", 0 } },
	    "[{count=l3 queue=q reason=rejected} {count=l1 queue=b reason=rejected}]" },
	{ { { "a", "x", 2 }, { "b", "x", 7 } },
	    "[{count=l1 exchange=x queue=q reason=rejected routing-keys=[k] time=T7} "
	    "{queue=b reason=x count=I7} {queue=a reason=x count=I2}]" },
};

START_TEST(forged_lists)
{
	uint32_t mark = begin_list();
	struct field list;

	for (int i = 0; i < 3 && forged[_i].was[i].queue != NULL; i++)
		put_death(
		    forged[_i].was[i].queue, forged[_i].was[i].reason, forged[_i].was[i].count);
	table_end(&in, mark);
	die("q", "rejected");
	ck_assert(table_find(span_of(out.p, out.n), "x-death", &list));
	text[0] = '\0';
	say_field(&list);
	ck_assert_str_eq(text, forged[_i].list);
	ck_assert(!table_find(span_of(out.p, out.n), "x-first-death-queue", &list));
}
END_TEST

START_TEST(not_a_list)
{
	table_put_string(&in, "x-death", "text");
	die("q", "rejected");
	ck_assert_str_eq(said(), "{x-death=[{count=l1 reason=rejected queue=q time=T7 exchange=x "
	                         "routing-keys=[k]}]}");
}
END_TEST

static bool
is_cycle(struct span queue)
{
	struct death_path path;

	death_path_read(span_of(in.p, in.n), &path);
	return death_is_cycle(&path, queue);
}

START_TEST(numbers_in_the_list)
{
	static const uint8_t number[] = { 'b', 1 };
	uint32_t mark = begin_list();

	table_put_raw(&in, span_of(number, sizeof number));
	table_end(&in, mark);
	ck_assert(!is_cycle(SPAN_LIT("q")));
	die("q", "rejected");
	ck_assert_str_eq(said(), "{x-death=[{count=l1 exchange=x queue=q reason=rejected "
	                         "routing-keys=[k] time=T7}]}");
}
END_TEST

/* However many deaths a client makes up: what is kept has a bound. */
START_TEST(long_lists_have_an_end)
{
	uint32_t mark = begin_list(), tables = 0;
	struct field list, f;
	char name[16];
	size_t at = 0;

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof name, "q%d", i);
		put_death(name, "expired", 1);
	}
	table_end(&in, mark);
	die("q", "expired");
	ck_assert(table_find(span_of(out.p, out.n), "x-death", &list));
	while (array_next(list.bytes, &at, &f))
		tables++;
	ck_assert_uint_eq(tables, DEATH_EVENTS_MAX);
}
END_TEST

START_TEST(carbon_copies)
{
	static const uint8_t cc[] = "\2CCA\0\0\0\7S\0\0\0\2c1";
	struct death d = death_of("q", "rejected");
	struct field f;

	table_put_raw(&in, span_of(cc, sizeof cc - 1));
	d.drops_cc = true;
	death_write(&out, span_of(in.p, in.n), &d, 0);
	ck_assert(strstr(said(), "routing-keys=[k c1]") != NULL);
	ck_assert(!table_find(span_of(out.p, out.n), "CC", &f));
}
END_TEST

/* ---- what operators are told ---- */

static bool
is(struct span s, const char *expected)
{
	return s.p != NULL && span_is(s, expected);
}

START_TEST(told)
{
	struct death_history h;
	struct field f;
	size_t at = 0;

	ck_assert(!death_read(span_of(NULL, 0), &h));
	ck_assert(!death_read(span_of(in.p, in.n), &h));
	die("q", "expired");
	die("b", "maxlen");
	die("c", "rejected");
	die("b", "maxlen");
	ck_assert(death_read(span_of(in.p, in.n), &h));
	ck_assert_uint_eq(h.count, 4);
	ck_assert(is(h.reason, "maxlen"));
	ck_assert(is(h.first.queue, "q"));
	ck_assert(is(h.first.reason, "expired"));
	ck_assert(is(h.first.exchange, "x"));
	ck_assert_uint_eq(h.first.time_s, 7);
	ck_assert(array_next(h.first.keys, &at, &f));
	ck_assert(is(f.bytes, "k"));
}
END_TEST

/* Lists that clients made up: what is not said is not there. */
START_TEST(told_of_forged_lists)
{
	struct death_history h;
	uint32_t mark;

	table_put_string(&in, "x-first-death-queue", "q");
	if (_i == 0) {
		table_put_string(&in, "x-death", "text");
		ck_assert(!death_read(span_of(in.p, in.n), &h));
		return;
	}
	mark = begin_list();
	for (int i = 1; i < _i; i++)
		put_death("q", "expired", i == 2 ? 5 : 0);
	table_end(&in, mark);
	ck_assert(death_read(span_of(in.p, in.n), &h) == (_i > 1));
	ck_assert(h.first.exchange.p == NULL && h.first.keys.p == NULL);
	ck_assert_uint_eq(h.first.time_s, 0);
	ck_assert_uint_eq(h.count, _i == 1 ? 0 : _i == 2 ? 1 : 6);
}
END_TEST

START_TEST(cycles)
{
	ck_assert(!is_cycle(SPAN_LIT("a")));
	die("a", "expired");
	ck_assert(is_cycle(SPAN_LIT("a")));
	ck_assert(!is_cycle(SPAN_LIT("b")));
	die("b", "maxlen");
	ck_assert(is_cycle(SPAN_LIT("a")));
	die("c", "rejected"); /* somebody took part */
	ck_assert(!is_cycle(SPAN_LIT("a")));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("death");
	TCase *tc = tcase_create("death");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, first_death);
	tcase_add_test(tc, order_of_deaths);
	tcase_add_test(tc, again_in_the_same_queue);
	tcase_add_loop_test(tc, forged_lists, 0, (int)(sizeof forged / sizeof forged[0]));
	tcase_add_test(tc, not_a_list);
	tcase_add_test(tc, numbers_in_the_list);
	tcase_add_test(tc, long_lists_have_an_end);
	tcase_add_test(tc, carbon_copies);
	tcase_add_test(tc, cycles);
	tcase_add_test(tc, told);
	tcase_add_loop_test(tc, told_of_forged_lists, 0, 4);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
