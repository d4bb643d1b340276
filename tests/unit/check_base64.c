/* SPDX-License-Identifier: Apache-2.0
 * Base64 and base64url. */
#include "base/base64.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"

static const struct {
	const char *in, *out;
} cases[] = {
	{ "", "" },
	{ "Zg==", "f" },
	{ "Zg", "" },
	{ "Zm8", "" },
	{ "Zg=", "" },
	{ "Zg===", "" },
	{ "Zg==Zg==", "" },
	{ "Zm9v\nYm Fy\r\n", "foobar" },
	{ "Z\tg= =\n", "f" },
	{ " \n", "" },
	{ "Zm8=", "fo" },
	{ "Zm9v", "foo" },
	{ "Zm9vYmE=", "fooba" },
	{ "Z", "" },
	{ "Zm9v!", "" },
	{ "Zm=v", "" },
	{ "====", "" },
	{ "+/+/", "\xfb\xff\xbf" },
};

START_TEST(decodes)
{
	char out[64];
	size_t n = base64_decode(cases[_i].in, strlen(cases[_i].in), out);

	ck_assert_uint_eq(n, strlen(cases[_i].out));
	ck_assert_mem_eq(out, cases[_i].out, n);
}
END_TEST

START_TEST(there_and_back)
{
	char in[256], there[BASE64_SIZE(256)], back[BASE64_SIZE(256)];

	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (char)(255 - i);
	for (size_t n = 0; n <= sizeof in; n++) {
		base64_encode(in, n, there);
		ck_assert_uint_eq(strlen(there) + 1, BASE64_SIZE(n));
		ck_assert_uint_eq(base64_decode(there, strlen(there), back), n);
		ck_assert_mem_eq(back, in, n);
	}
	base64_encode("fo", 2, there);
	ck_assert_str_eq(there, "Zm8=");
}
END_TEST

START_TEST(url_there_and_back)
{
	char in[256], there[BASE64URL_SIZE(256)], back[256];

	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (char)(255 - i);
	for (size_t n = 0; n <= sizeof in; n++) {
		base64url_encode(in, n, there);
		ck_assert_uint_eq(strlen(there) + 1, BASE64URL_SIZE(n));
		ck_assert_uint_eq(BASE64URL_DECODED(strlen(there)), n);
		ck_assert_uint_eq(base64url_decode(there, strlen(there), back), n);
		ck_assert_mem_eq(back, in, n);
	}
	base64url_encode("\xfb\xff\xbf\xfb", 4, there);
	ck_assert_str_eq(there, "-_-_-w");
	ck_assert_uint_eq(base64url_decode("+/+/", 4, back), 0);
	ck_assert_uint_eq(base64url_decode("Zg==", 4, back), 0);
	ck_assert_uint_eq(base64url_decode("Zm 9", 4, back), 0);
}
END_TEST

START_TEST(says_where_it_ends)
{
	ck_assert_uint_eq(base64_valid_length("Zm9v", 4), 4);
	ck_assert_uint_eq(base64_valid_length("Zm!v", 4), 2);
	ck_assert_uint_eq(base64_valid_length("Zg=v", 4), 3);
	ck_assert_uint_eq(base64_valid_length("Z g=\n", 5), 5);
	ck_assert_uint_eq(base64_valid_length("Z-", 2), 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("base64");
	TCase *t = tcase_create("base64");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, decodes, 0, (int)COUNT_OF(cases));
	tcase_add_test(t, there_and_back);
	tcase_add_test(t, url_there_and_back);
	tcase_add_test(t, says_where_it_ends);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
