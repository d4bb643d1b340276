/* SPDX-License-Identifier: Apache-2.0
 * Hashes of passwords: results of another implementation, and what an import may bring. */
#include <check.h>
#include <stdlib.h>

#include "base/password.h"

#define BYTES(s)                                    \
	{                                           \
		(const uint8_t *)(s), sizeof(s) - 1 \
	}

/* Of "pw", with salt "abcd" or "saltsaltsaltsalt". */
static const struct {
	enum password_kind kind;
	struct span kept;
} cases[] = {
	{ PASSWORD_SHA256,
	    BYTES("abcd"
	          "\x25\x28\x70\xfb\xbe\x94\x08\xcb\x5d\x4e\x12\x7b\xb4\x45\xca\x29\xec\xf2\x52\x5a"
	          "\xcf\xe0\x39\x82\xff\xdb\xd7\xd2\x29\x7e\xa5\x05") },
	{ PASSWORD_SHA512,
	    BYTES("abcd"
	          "\x01\x99\xb4\xd8\x82\x80\x2f\x20\xf8\xa7\x3c\xc2\x58\x34\x94\x04\x3e\xbc\xf5\x33"
	          "\x46\x2d\x7f\xdf\xbf\x96\xd3\xc9\x0e\xa5\xdb\x4c\xf2\x05\x87\xb4\x52\x69\x56\x6a"
	          "\x76\x69\x62\xd4\x51\x4a\x1a\x97\x7a\x17\x9c\xb3\x0a\x7b\x71\x48\x07\x1b\xfa\xdd"
	          "\xf1\x72\x02\x93") },
	{ PASSWORD_MD5, BYTES("abcd"
	                      "\xe0\xf3\xcb\xa3\x51\x89\x31\xd4\x62\x93\x49\x76\xc1\xc5\xbc\xd4") },
	{ PASSWORD_PBKDF2,
	    BYTES("\0\0\x03\xe8"
	          "saltsaltsaltsalt"
	          "\xb5\x42\x45\x58\x2b\xdf\x27\x88\xcd\x09\x8c\x21\x5b\x60\x9a\xf8\xaf\x3f\x54\x55"
	          "\x9d\x4f\xa5\x19\x1e\xda\x39\xe1\x3c\xfd\x07\x21\x6e\x81\xa2\xe8\xf6\xe5\x83\x74"
	          "\x83\x54\xfd\x3a\xc0\xa0\x2d\xdc\x86\x5d\xc1\x9a\x77\x42\xc2\x3b\xcc\x94\x5b\xe5"
	          "\xe8\x98\xf9\x06") },
};

START_TEST(right_and_wrong)
{
	struct span kept = cases[_i].kept;
	struct password p;

	ck_assert(password_from(&p, cases[_i].kind, kept));
	ck_assert(password_is(&p, SPAN_LIT("pw")));
	ck_assert(!password_is(&p, SPAN_LIT("pW")));
	ck_assert(!password_is(&p, SPAN_LIT("")));
	p.bytes[p.n - 1] ^= 1;
	ck_assert(!password_is(&p, SPAN_LIT("pw")));
	if (cases[_i].kind == PASSWORD_PBKDF2)
		return;
	for (size_t n = 0; n < kept.n; n++) { /* shorter ones are kept, and match nothing */
		ck_assert(password_from(&p, cases[_i].kind, span_of(kept.p, n)));
		ck_assert(!password_is(&p, SPAN_LIT("pw")));
	}
}
END_TEST

START_TEST(made)
{
	struct password p, again;
	enum password_kind kind = cases[_i].kind;

	password_make(&p, kind, SPAN_LIT("pw"), 3);
	password_make(&again, kind, SPAN_LIT("pw"), 3);
	ck_assert_uint_eq(p.n, cases[_i].kept.n);
	ck_assert_mem_ne(p.bytes, again.bytes, p.n); /* salted */
	ck_assert(password_is(&p, SPAN_LIT("pw")));
	ck_assert(!password_is(&p, SPAN_LIT("p")));
	ck_assert_int_eq(password_kind_find(span_str(password_kind_name(kind))), kind);
}
END_TEST

START_TEST(what_cannot_be_kept)
{
	uint8_t bytes[PASSWORD_HASH_MAX + 1] = { 0 };
	struct password p;

	ck_assert(password_from(&p, PASSWORD_SHA256, span_of(bytes, PASSWORD_HASH_MAX)));
	ck_assert(!password_from(&p, PASSWORD_SHA256, span_of(bytes, PASSWORD_HASH_MAX + 1)));
	ck_assert(!password_from(&p, PASSWORD_NONE, span_of(bytes, 1)));
	ck_assert(!password_from(&p, PASSWORD_PBKDF2, span_of(bytes, 84))); /* no iterations */
	bytes[0] = 0x7f;
	ck_assert(!password_from(&p, PASSWORD_PBKDF2, span_of(bytes, 84))); /* too many */
	bytes[0] = 0;
	bytes[3] = 1;
	ck_assert(!password_from(&p, PASSWORD_PBKDF2, span_of(bytes, 83)));
	ck_assert(password_from(&p, PASSWORD_PBKDF2, span_of(bytes, 84)));
	ck_assert(password_from(&p, PASSWORD_NONE, span_of(NULL, 0)));
	ck_assert(!password_is(&p, SPAN_LIT("")));
	ck_assert_int_eq(password_kind_find(SPAN_LIT("")), PASSWORD_KINDS);
	ck_assert_int_eq(password_kind_find(SPAN_LIT("nonsense")), PASSWORD_KINDS);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("password");
	TCase *t = tcase_create("password");
	SRunner *r = srunner_create(s);
	int failed;

	password_init();
	tcase_add_loop_test(t, right_and_wrong, 0, COUNT_OF(cases));
	tcase_add_loop_test(t, made, 0, COUNT_OF(cases));
	tcase_add_test(t, what_cannot_be_kept);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
