/* SPDX-License-Identifier: Apache-2.0
 * UTF-8: every code point, every wrong form, and cuts that split nothing. */
#include "base/utf8.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *bytes;
	size_t n;
	bool valid;
} forms[] = {
	{ "", 0, true },
	{ "plain", 5, true },
	{ "nul\0in", 6, true },
	{ "\xc3\xa4", 2, true },
	{ "\xe2\x82\xac", 3, true },
	{ "\xf0\x9f\x90\x87", 4, true },
	{ "\xf4\x8f\xbf\xbf", 4, true },  /* U+10FFFF */
	{ "\xf4\x90\x80\x80", 4, false }, /* one above */
	{ "\xed\x9f\xbf", 3, true },      /* U+D7FF */
	{ "\xed\xa0\x80", 3, false },     /* surrogates */
	{ "\xed\xbf\xbf", 3, false },
	{ "\xee\x80\x80", 3, true }, /* U+E000 */
	{ "\xc0\x80", 2, false },    /* overlong */
	{ "\xc1\xbf", 2, false },
	{ "\xe0\x9f\xbf", 3, false },
	{ "\xf0\x8f\xbf\xbf", 4, false },
	{ "\x80", 1, false }, /* begins with a continuation */
	{ "\xc3", 1, false }, /* ends early */
	{ "\xe2\x82", 2, false },
	{ "\xf0\x9f\x90", 3, false },
	{ "\xc3(", 2, false },
	{ "\xf8\x88\x80\x80\x80", 5, false },
	{ "\xff", 1, false },
	{ "seven b\xff", 8, false }, /* behind a run of eight */
	{ "eight by\xc3\xa4tes and m\xc3\xa4re", 23, true },
	{ "eight bytes and then \xc3", 22, false },
};

START_TEST(valid_or_not)
{
	ck_assert_int_eq(utf8_valid(forms[_i].bytes, forms[_i].n), forms[_i].valid);
}
END_TEST

static size_t
encode(uint32_t c, uint8_t *p)
{
	if (c < 0x80) {
		p[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		p[0] = (uint8_t)(0xc0 | c >> 6);
		p[1] = (uint8_t)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		p[0] = (uint8_t)(0xe0 | c >> 12);
		p[1] = (uint8_t)(0x80 | (c >> 6 & 63));
		p[2] = (uint8_t)(0x80 | (c & 63));
		return 3;
	}
	p[0] = (uint8_t)(0xf0 | c >> 18);
	p[1] = (uint8_t)(0x80 | (c >> 12 & 63));
	p[2] = (uint8_t)(0x80 | (c >> 6 & 63));
	p[3] = (uint8_t)(0x80 | (c & 63));
	return 4;
}

START_TEST(every_code_point)
{
	for (uint32_t c = 0; c < 0x110000; c++) {
		uint8_t b[4];
		size_t n = encode(c, b);
		uint32_t back = 0xffffffff;
		bool surrogate = c >= 0xd800 && c <= 0xdfff;
		size_t got = utf8_decode(b, n, &back);

		if (got != (surrogate ? 0 : n) || (!surrogate && back != c))
			ck_abort_msg("U+%04X: %zu bytes, U+%04X", c, got, back);
	}
}
END_TEST

static const struct {
	const char *s;
	size_t n, max, cut;
} cuts[] = {
	{ "abc", 3, 5, 3 },
	{ "abc", 3, 3, 3 },
	{ "abc", 3, 2, 2 },
	{ "abc", 3, 0, 0 },
	{ "", 0, 0, 0 },
	{ "a\xc3\xa4", 3, 2, 1 },
	{ "\xc3\xa4", 2, 1, 0 },
	{ "a\xe2\x82\xac", 4, 2, 1 },
	{ "a\xe2\x82\xac", 4, 3, 1 },
	{ "a\xe2\x82\xac", 4, 4, 4 },
	{ "\xf0\x9f\x90\x87z", 5, 1, 0 },
	{ "\xf0\x9f\x90\x87z", 5, 2, 0 },
	{ "\xf0\x9f\x90\x87z", 5, 3, 0 },
	{ "\xf0\x9f\x90\x87z", 5, 4, 4 },
	{ "\x80\x80\x80\x80\x80\x80", 6, 5, 5 }, /* no UTF-8 */
	{ "a\xc3z\x80\x80", 5, 4, 4 },
};

START_TEST(cut_between_characters)
{
	ck_assert_uint_eq(utf8_cut(cuts[_i].s, cuts[_i].n, cuts[_i].max), cuts[_i].cut);
}
END_TEST

/* Of a valid text every cut is valid, and loses less than one character. */
START_TEST(every_cut_of_a_text)
{
	static const char text[] =
	    "z\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x87 \xd0\x96\xf0\x9f\x90\x87\xe4\xb8\xad!";
	size_t n = sizeof text - 1;

	for (size_t max = 0; max <= n; max++) {
		size_t cut = utf8_cut(text, n, max);

		ck_assert_uint_le(cut, max);
		ck_assert_uint_ge(cut + 3, max);
		ck_assert(utf8_valid(text, cut));
		ck_assert(utf8_valid(text + cut, n - cut));
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("utf8");
	TCase *t = tcase_create("utf8");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, valid_or_not, 0, (int)(sizeof forms / sizeof forms[0]));
	tcase_add_test(t, every_code_point);
	tcase_add_loop_test(t, cut_between_characters, 0, (int)(sizeof cuts / sizeof cuts[0]));
	tcase_add_test(t, every_cut_of_a_text);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
