/* SPDX-License-Identifier: Apache-2.0
 * Headers exchanges: the matrix of arguments and headers as RabbitMQ 3.10 answers it. */
#include "broker/exchange_type/headers.h"

#include <check.h>
#include <stdlib.h>

#include "broker/table.h"
#include "route_world.h"

#define ANY "\7x-matchS\0\0\0\3any"
#define ALL "\7x-matchS\0\0\0\3all"
#define ANY_X "\7x-matchS\0\0\0\12any-with-x"
#define ALL_X "\7x-matchS\0\0\0\12all-with-x"
#define A1 "\1aI\0\0\0\1"
#define A2 "\1aI\0\0\0\2"
#define B1 "\1bI\0\0\0\1"
#define B2 "\1bI\0\0\0\2"
#define C1 "\1cI\0\0\0\1"
#define XA1 "\3x-aI\0\0\0\1"
#define XA2 "\3x-aI\0\0\0\2"
#define AV "\1aV"
#define A_TEXT         \
	"\1aS\0\0\0\1" \
	"1"

static const struct {
	struct span arguments, headers;
	bool match;
} cases[] = {
	{ SPAN_LIT(""), SPAN_LIT(""), true },
	{ SPAN_LIT(""), SPAN_LIT(A1), true },
	{ SPAN_LIT(A1), SPAN_LIT(A1), true },
	{ SPAN_LIT(A1), SPAN_LIT(A1 B2), true },
	{ SPAN_LIT(A1), SPAN_LIT(A2), false },
	{ SPAN_LIT(A1), SPAN_LIT(""), false },
	{ SPAN_LIT(A1 B2), SPAN_LIT(A1), false },
	{ SPAN_LIT(A1 B2), SPAN_LIT(B2 A1), true },
	{ SPAN_LIT(ALL), SPAN_LIT(""), true },
	{ SPAN_LIT(ALL A1 B2), SPAN_LIT(A1 B2), true },
	{ SPAN_LIT(ALL A1 B2), SPAN_LIT(A1 B1), false },
	{ SPAN_LIT(ANY), SPAN_LIT(""), false },
	{ SPAN_LIT(ANY), SPAN_LIT(A1), false },
	{ SPAN_LIT(ANY A1 B2), SPAN_LIT(A1), true },
	{ SPAN_LIT(ANY A1 B2), SPAN_LIT(B2), true },
	{ SPAN_LIT(ANY A1 B2), SPAN_LIT(A2 B2), true },
	{ SPAN_LIT(ANY A1 B2), SPAN_LIT(A2 B1), false },
	{ SPAN_LIT(ANY A1 B2), SPAN_LIT(C1), false },
	{ SPAN_LIT(ANY A1 B2), SPAN_LIT(""), false },
	/* no value: presence */
	{ SPAN_LIT(AV), SPAN_LIT(A1), true },
	{ SPAN_LIT(AV), SPAN_LIT(A_TEXT), true },
	{ SPAN_LIT(AV), SPAN_LIT(AV), true },
	{ SPAN_LIT(AV), SPAN_LIT(B1), false },
	{ SPAN_LIT(ANY AV B1), SPAN_LIT(A2), true },
	{ SPAN_LIT(A1), SPAN_LIT(AV), false },
	/* values */
	{ SPAN_LIT(A_TEXT), SPAN_LIT(A1), false },
	{ SPAN_LIT(A1), SPAN_LIT(A_TEXT), false },
	{ SPAN_LIT(A1), SPAN_LIT("\1al\0\0\0\0\0\0\0\1"), true },
	{ SPAN_LIT("\1al\0\0\0\0\0\0\0\1"), SPAN_LIT("\1aB\1"), true },
	{ SPAN_LIT("\1ab\xff"), SPAN_LIT("\1al\xff\xff\xff\xff\xff\xff\xff\xff"), true },
	{ SPAN_LIT("\1ai\0\0\0\1"), SPAN_LIT("\1aT\0\0\0\0\0\0\0\1"), true },
	{ SPAN_LIT("\1al\xff\xff\xff\xff\xff\xff\xff\xff"),
	    SPAN_LIT("\1aT\xff\xff\xff\xff\xff\xff\xff\xff"), false },
	{ SPAN_LIT("\1ad\x3f\xf0\0\0\0\0\0\0"), SPAN_LIT("\1af\x3f\x80\0\0"), true },
	{ SPAN_LIT("\1ad\x3f\xf0\0\0\0\0\0\0"), SPAN_LIT(A1), true },
	{ SPAN_LIT(A1), SPAN_LIT("\1ad\x3f\xf0\0\0\0\0\0\0"), true },
	{ SPAN_LIT("\1ad\x3f\xf8\0\0\0\0\0\0"), SPAN_LIT(A1), false },
	{ SPAN_LIT("\1ad\0\0\0\0\0\0\0\0"), SPAN_LIT("\1ad\x80\0\0\0\0\0\0\0"), true },
	{ SPAN_LIT("\1al\0\x20\0\0\0\0\0\1"), SPAN_LIT("\1ad\x43\x40\0\0\0\0\0\0"),
	    false }, /* 2^53 + 1 */
	{ SPAN_LIT("\1al\x7f\xff\xff\xff\xff\xff\xff\xff"), SPAN_LIT("\1ad\x43\xe0\0\0\0\0\0\0"),
	    false },
	{ SPAN_LIT("\1aT\x80\0\0\0\0\0\0\0"), SPAN_LIT("\1ad\x43\xe0\0\0\0\0\0\0"), true },
	{ SPAN_LIT("\1al\x80\0\0\0\0\0\0\0"), SPAN_LIT("\1ad\xc3\xe0\0\0\0\0\0\0"), true },
	{ SPAN_LIT("\1ax\0\0\0\1s"), SPAN_LIT("\1aS\0\0\0\1s"), true },
	{ SPAN_LIT("\1at\1"), SPAN_LIT("\1at\5"), true },
	{ SPAN_LIT("\1at\1"), SPAN_LIT("\1at\0"), false },
	{ SPAN_LIT("\1at\1"), SPAN_LIT(A1), false },
	{ SPAN_LIT("\1aA\0\0\0\2B\1"), SPAN_LIT("\1aA\0\0\0\2B\1"), true },
	{ SPAN_LIT("\1aA\0\0\0\2B\1"), SPAN_LIT("\1aA\0\0\0\2b\1"), false },
	{ SPAN_LIT("\1aF\0\0\0\4\1bB\1"), SPAN_LIT("\1aF\0\0\0\4\1bB\1"), true },
	{ SPAN_LIT("\1aF\0\0\0\4\1bB\1"), SPAN_LIT("\1aF\0\0\0\4\1bB\2"), false },
	{ SPAN_LIT("\1aF\0\0\0\0"), SPAN_LIT("\1aA\0\0\0\0"), true },
	{ SPAN_LIT("\1aD\2\0\0\1\x3a"), SPAN_LIT("\1aD\2\0\0\1\x3a"), true },
	{ SPAN_LIT("\1aD\2\0\0\1\x3a"), SPAN_LIT("\1aD\3\0\0\1\x3a"), false },
	{ SPAN_LIT("\1aS\0\0\0\0"), SPAN_LIT("\1aS\0\0\0\0"), true },
	{ SPAN_LIT("\1AI\0\0\0\1"), SPAN_LIT(A1), false },
	/* names that begin with x- */
	{ SPAN_LIT(ALL XA1), SPAN_LIT(""), true },
	{ SPAN_LIT(ALL XA1), SPAN_LIT(XA2), true },
	{ SPAN_LIT(ALL XA1 B1), SPAN_LIT(B1), true },
	{ SPAN_LIT(ANY XA1), SPAN_LIT(XA1), false },
	{ SPAN_LIT(ANY XA1 B1), SPAN_LIT(XA1), false },
	{ SPAN_LIT(ALL_X XA1), SPAN_LIT(XA1), true },
	{ SPAN_LIT(ALL_X XA1), SPAN_LIT(XA2), false },
	{ SPAN_LIT(ALL_X XA1), SPAN_LIT(""), false },
	{ SPAN_LIT(ALL_X XA1 B1), SPAN_LIT(XA1), false },
	{ SPAN_LIT(ANY_X XA1 B1), SPAN_LIT(XA1), true },
	{ SPAN_LIT(ANY_X XA1 B1), SPAN_LIT(B1), true },
	{ SPAN_LIT(ANY_X XA1 B1), SPAN_LIT(XA2 B2), false },
	{ SPAN_LIT(ALL_X), SPAN_LIT(""), true },
	{ SPAN_LIT(ANY_X), SPAN_LIT(ANY_X), false },
	{ SPAN_LIT(ALL A1), SPAN_LIT(ANY A1), true },
	/* names that come twice */
	{ SPAN_LIT(A1), SPAN_LIT(A1 A2), true },
	{ SPAN_LIT(A2), SPAN_LIT(A1 A2), false },
	{ SPAN_LIT(ANY A2), SPAN_LIT(A1 A2), false },
	{ SPAN_LIT(A1 A2), SPAN_LIT(A1), false },
	{ SPAN_LIT(ANY A1 A2), SPAN_LIT(A2), false },
	{ SPAN_LIT(A1 A2), SPAN_LIT(A1 A2), true },
	{ SPAN_LIT(A1 B1 A2), SPAN_LIT(A1 A2 B1), true },
	{ SPAN_LIT(ANY ALL A1 B1), SPAN_LIT(A1), true },
};

START_TEST(test_matrix)
{
	struct table *arguments = table_from_raw(cases[_i].arguments);
	struct message_headers *h = message_headers_new();
	struct headers_match *m;

	ck_assert_int_eq(table_check(cases[_i].arguments, TABLE_DEPTH_MAX), 0);
	ck_assert_int_eq(table_check(cases[_i].headers, TABLE_DEPTH_MAX), 0);
	ck_assert_ptr_null(headers_match_check(arguments));
	m = headers_match_new(arguments);
	message_headers_set(h, cases[_i].headers);
	ck_assert_int_eq(headers_match_is(m, h, &(uint32_t){ 0 }), cases[_i].match);
	/* the same again after another message */
	message_headers_set(h, SPAN_LIT(A2 C1));
	message_headers_set(h, cases[_i].headers);
	ck_assert_int_eq(headers_match_is(m, h, &(uint32_t){ 0 }), cases[_i].match);
	headers_match_free(&m);
	message_headers_free(&h);
	table_free(&arguments);
}
END_TEST

static const struct {
	struct span arguments;
	const char *text;
} refused[] = {
	{ SPAN_LIT("\7x-matchS\0\0\0\3foo"),
	    "PRECONDITION_FAILED - Invalid x-match field value <<\"foo\">>; expected all, any, "
	    "all-with-x, or any-with-x" },
	{ SPAN_LIT("\7x-matchS\0\0\0\3ALL"),
	    "PRECONDITION_FAILED - Invalid x-match field value <<\"ALL\">>; expected all, any, "
	    "all-with-x, or any-with-x" },
	{ SPAN_LIT("\7x-matchS\0\0\0\0"), "PRECONDITION_FAILED - Invalid x-match field value <<>>; "
	                                  "expected all, any, all-with-x, or any-with-x" },
	{ SPAN_LIT("\7x-matchI\0\0\0\5"), "PRECONDITION_FAILED - Invalid x-match field type "
	                                  "signedint (value 5); expected longstr" },
	{ SPAN_LIT("\7x-matcht\1"), "PRECONDITION_FAILED - Invalid x-match field type bool (value "
	                            "true); expected longstr" },
	{ SPAN_LIT("\7x-matchV"), "PRECONDITION_FAILED - Invalid x-match field type void (value "
	                          "undefined); expected longstr" },
	{ SPAN_LIT("\7x-matchx\0\0\0\3any"), "PRECONDITION_FAILED - Invalid x-match field type "
	                                     "binary (value <<\"any\">>); expected longstr" },
};

START_TEST(test_refused)
{
	struct table *arguments = table_from_raw(refused[_i].arguments);
	const struct error *e = headers_match_check(arguments);

	ck_assert_ptr_nonnull(e);
	ck_assert_uint_eq(e->code, 406);
	ck_assert_str_eq(e->text, refused[_i].text);
	table_free(&arguments);
}
END_TEST

/* 40,000 headers of one name, and as many arguments: linear, or this takes minutes. */
START_TEST(test_many_of_one_name)
{
	struct table_writer w;
	struct field f = { .name = SPAN_LIT("a"), .kind = 'V' };
	struct message_headers *h = message_headers_new();
	struct headers_match *m;
	struct table *arguments;
	int i;

	table_writer_init(&w, 1 << 20);
	for (i = 0; i < 40000; i++)
		table_put_field(&w, &f);
	ck_assert(!w.failed);
	arguments = table_from_raw(span_of(w.p, w.n));
	m = headers_match_new(arguments);
	for (i = 0; i < 20; i++) {
		message_headers_set(h, span_of(w.p, w.n));
		ck_assert(headers_match_is(m, h, &(uint32_t){ 0 }));
		message_headers_set(h, span_of(w.p, w.n - 3));
		ck_assert(!headers_match_is(m, h, &(uint32_t){ 0 }));
	}
	headers_match_free(&m);
	message_headers_free(&h);
	table_free(&arguments);
	table_writer_fini(&w);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("headers");
	TCase *t = tcase_create("headers");

	tcase_add_loop_test(t, test_matrix, 0, COUNT_OF(cases));
	tcase_add_loop_test(t, test_refused, 0, COUNT_OF(refused));
	tcase_add_test(t, test_many_of_one_name);
	tcase_set_timeout(t, 30);
	suite_add_tcase(s, t);
	return run_suite(s);
}
