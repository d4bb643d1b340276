/* SPDX-License-Identifier: Apache-2.0
 * Patterns, and what a match may cost. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "broker/pattern.h"

static enum pattern_result
match(const char *text, struct span subject, uint32_t most, uint32_t *took)
{
	char why[128];
	struct pattern *p = pattern_new(span_str(text), why, sizeof why);
	enum pattern_result r;

	ck_assert_msg(p != NULL, "%s", why);
	r = pattern_match(p, subject, most, took);
	pattern_free(&p);
	return r;
}

static const struct {
	const char *pattern, *subject;
	enum pattern_result result;
} cases[] = {
	{ ".*", "", PATTERN_YES },
	{ "", "x", PATTERN_YES },
	{ "^$", "x", PATTERN_NO },
	{ "der", "orders.eu", PATTERN_YES },
	{ "^der", "orders.eu", PATTERN_NO },
	{ "^(?!amq\\.).*", "amq.direct", PATTERN_NO },
	{ "^(?!amq\\.).*", "orders", PATTERN_YES },
	{ "(.)\\1", "baab", PATTERN_YES },
	{ "(?i)^ORDERS", "orders.eu", PATTERN_YES },
	{ "a(?C1)b(?C)", "ab", PATTERN_YES },
	{ "[qr]", "aaa", PATTERN_NO },
};

START_TEST(matches)
{
	uint32_t took;

	ck_assert_int_eq(
	    match(cases[_i].pattern, span_str(cases[_i].subject), 100, &took), cases[_i].result);
	ck_assert_uint_lt(took, 30);
}
END_TEST

/* Steps that there are at all places of a subject: PCRE2 itself counts those of each. */
START_TEST(places)
{
	char a[255];
	uint32_t took;

	memset(a, 'a', sizeof a);
	ck_assert_int_eq(
	    match("(?:a|aa){1,14}[qr]", span_of(a, sizeof a), PATTERN_STEPS_MAX, &took),
	    PATTERN_TOO_LONG);
	ck_assert_uint_eq(took, PATTERN_STEPS_MAX + 1);
	ck_assert_int_eq(
	    match("(?=a*a*a*b)", span_of(a, sizeof a), PATTERN_STEPS_MAX, &took), PATTERN_TOO_LONG);
	ck_assert_int_eq(
	    match("(?:a|aa)[qr]", span_of(a, sizeof a), PATTERN_STEPS_MAX, &took), PATTERN_NO);
	ck_assert_uint_gt(took, 255);
}
END_TEST

START_TEST(as_many_as_given)
{
	uint32_t all, took;

	ck_assert_int_eq(match("^(a|b)+c", SPAN_LIT("abababc"), 1000, &all), PATTERN_YES);
	ck_assert_int_eq(match("^(a|b)+c", SPAN_LIT("abababc"), all, &took), PATTERN_YES);
	ck_assert_int_eq(match("^(a|b)+c", SPAN_LIT("abababc"), all - 1, &took), PATTERN_TOO_LONG);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("pattern");
	TCase *t = tcase_create("pattern");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, matches, 0, sizeof cases / sizeof *cases);
	tcase_add_test(t, places);
	tcase_add_test(t, as_many_as_given);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
