/* SPDX-License-Identifier: Apache-2.0
 * The keyed code, and the random bytes and names behind it. */
#include "base/mac.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static const char text[] = "amq.rabbitmq.reply-to.17.4";

START_TEST(right_and_wrong)
{
	uint8_t a[MAC_SIZE], b[MAC_SIZE];

	mac_compute(text, sizeof text, a);
	mac_compute(text, sizeof text, b);
	ck_assert_mem_eq(a, b, MAC_SIZE);
	ck_assert(mac_verify(text, sizeof text, a));
	/* Every bit of it counts, and every byte of the text. */
	for (size_t i = 0; i < 8 * MAC_SIZE; i++) {
		memcpy(b, a, MAC_SIZE);
		b[i / 8] ^= (uint8_t)(1 << i % 8);
		ck_assert(!mac_verify(text, sizeof text, b));
	}
	for (size_t i = 0; i < sizeof text; i++) {
		char other[sizeof text];

		memcpy(other, text, sizeof text);
		other[i] ^= 1;
		ck_assert(!mac_verify(other, sizeof other, a));
	}
	ck_assert(!mac_verify(text, sizeof text - 1, a));
}
END_TEST

START_TEST(nothing_and_much)
{
	uint8_t a[MAC_SIZE], b[MAC_SIZE], *much = calloc(1, 1 << 20);

	ck_assert_ptr_nonnull(much);
	mac_compute("", 0, a);
	ck_assert(mac_verify("", 0, a));
	mac_compute(much, 1 << 20, b);
	ck_assert(mac_verify(much, 1 << 20, b));
	ck_assert_mem_ne(a, b, MAC_SIZE);
	free(much);
}
END_TEST

START_TEST(a_new_key_changes_all)
{
	uint8_t a[MAC_SIZE];

	mac_init();
	mac_compute(text, sizeof text, a);
	ck_assert(mac_verify(text, sizeof text, a));
	mac_init();
	ck_assert(!mac_verify(text, sizeof text, a));
}
END_TEST

START_TEST(names_are_base64url_and_differ)
{
	enum { N = 2000 };
	static char names[N][RANDOM_NAME_SIZE];
	unsigned seen[128] = { 0 };

	for (int i = 0; i < N; i++) {
		random_name(names[i]);
		ck_assert_uint_eq(strlen(names[i]), RANDOM_NAME_SIZE - 1);
		ck_assert_uint_eq(
		    strspn(names[i],
		        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
		    RANDOM_NAME_SIZE - 1);
		/* The last one carries two bits. */
		ck_assert_ptr_nonnull(strchr("AQgw", names[i][RANDOM_NAME_SIZE - 2]));
		for (int k = 0; k < RANDOM_NAME_SIZE - 2; k++)
			seen[(unsigned char)names[i][k]]++;
	}
	for (int i = 0; i < N; i++) {
		for (int k = 0; k < i; k++) {
			if (strcmp(names[i], names[k]) == 0)
				ck_abort_msg("twice: %s", names[i]);
		}
	}
	/* 656 of each are to be expected. */
	for (const char *c = "AZaz09-_"; *c != '\0'; c++) {
		ck_assert_uint_gt(seen[(unsigned char)*c], 450);
		ck_assert_uint_lt(seen[(unsigned char)*c], 900);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("mac");
	TCase *t = tcase_create("mac");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, right_and_wrong);
	tcase_add_test(t, nothing_and_much);
	tcase_add_test(t, a_new_key_changes_all);
	tcase_add_test(t, names_are_base64url_and_differ);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
