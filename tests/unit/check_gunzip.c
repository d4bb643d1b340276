/* SPDX-License-Identifier: Apache-2.0
 * What comes compressed: whole, cut anywhere, damaged anywhere, longer than allowed. */
#include "mgmt/gunzip.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/mem.h"
#include "mgmt/gzip.h"

/* `n` bytes that do not compress to nothing, and do compress; the caller frees. */
static char *
make_text(size_t n)
{
	char *p = xmalloc(n + 1);

	for (size_t i = 0; i < n; i++)
		p[i] = (char)('a' + (i * i / 7 + i / 100) % 26);
	return p;
}

static struct evbuffer *
pack(const char *text, size_t n)
{
	struct evbuffer *in = evbuffer_new(), *out = evbuffer_new();

	ck_assert_int_eq(evbuffer_add(in, text, n), 0);
	gzip_buffer(in, out);
	evbuffer_free(in);
	return out;
}

static struct span
bytes_of(struct evbuffer *b)
{
	return span_of(evbuffer_pullup(b, -1), evbuffer_get_length(b));
}

static void
check_whole(size_t n)
{
	char *text = make_text(n), *got;
	struct evbuffer *packed = pack(text, n);
	size_t got_n;

	ck_assert(gunzip_is(bytes_of(packed)));
	ck_assert_int_eq(gunzip(bytes_of(packed), n, &got, &got_n), GUNZIP_DONE);
	ck_assert_uint_eq(got_n, n);
	ck_assert_int_eq(memcmp(got, text, n), 0);
	ck_assert_int_eq(got[n], '\0');
	free(got);
	if (n > 0) {
		ck_assert_int_eq(gunzip(bytes_of(packed), n - 1, &got, &got_n), GUNZIP_LONG);
		ck_assert_ptr_null(got);
	}
	evbuffer_free(packed);
	free(text);
}

START_TEST(test_whole)
{
	static const size_t sizes[] = { 0, 1, 1000, 65534, 65535, 65536, 65537, 131071, 131072,
		1000000 };

	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		check_whole(sizes[i]);
}
END_TEST

START_TEST(test_cut_or_longer)
{
	char *text = make_text(3000), *got;
	struct evbuffer *packed = pack(text, 3000);
	size_t n = evbuffer_get_length(packed), got_n;

	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(
		    gunzip(span_of(bytes_of(packed).p, i), 3000, &got, &got_n), GUNZIP_DAMAGED);
	ck_assert_int_eq(evbuffer_add(packed, "x", 1), 0);
	ck_assert_int_eq(gunzip(bytes_of(packed), 3000, &got, &got_n), GUNZIP_DAMAGED);
	evbuffer_free(packed);
	free(text);
}
END_TEST

/* A checksum is at its end: no wrong byte of the content goes unseen. */
START_TEST(test_damaged)
{
	char *text = make_text(3000), *got;
	struct evbuffer *packed = pack(text, 3000);
	struct span all = bytes_of(packed);
	size_t got_n;

	for (size_t i = 0; i < all.n; i++) {
		unsigned char *p = evbuffer_pullup(packed, -1);
		enum gunzip rc;

		p[i] ^= 0x10;
		rc = gunzip(all, 3000, &got, &got_n);
		if (rc == GUNZIP_DONE)
			ck_assert(got_n == 3000 && memcmp(got, text, 3000) == 0);
		free(got);
		p[i] ^= 0x10;
	}
	evbuffer_free(packed);
	free(text);
}
END_TEST

/* 50 MB out of 50 kB: no more is unpacked than is allowed. */
START_TEST(test_bomb)
{
	size_t n = 50 << 20, got_n;
	char *text = xcalloc(1, n), *got;
	struct evbuffer *packed = pack(text, n);

	ck_assert_uint_lt(evbuffer_get_length(packed), 300000);
	ck_assert_int_eq(gunzip(bytes_of(packed), 1 << 20, &got, &got_n), GUNZIP_LONG);
	mem_fail_try(1, 1);
	ck_assert_int_eq(gunzip(bytes_of(packed), n, &got, &got_n), GUNZIP_NO_MEMORY);
	mem_fail_try(0, 0);
	evbuffer_free(packed);
	free(text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("gunzip");
	TCase *tc = tcase_create("all");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_test(tc, test_whole);
	tcase_add_test(tc, test_cut_or_longer);
	tcase_add_test(tc, test_damaged);
	tcase_add_test(tc, test_bomb);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
