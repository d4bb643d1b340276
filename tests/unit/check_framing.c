/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "mgmt/framing.h"

#define CHUNKED "PUT /api/vhosts/a HTTP/1.1\r\nHost: x\r\ntransfer-encoding:chunked\r\n\r\n"

/* Requests after which the next thing is a head; each as one piece, and byte by byte. */
static const char *const whole[] = {
	"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	"\r\nGET / HTTP/1.1\n\n",
	"PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\n\n\n\r\n0",
	"PUT / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
	CHUNKED "0\r\n\r\n",
	CHUNKED "2\r\n{}\r\n0\r\n\r\n",
	CHUNKED "A;name=value\r\n0\r\n0\r\n0\r\n0\r\n0\r\nX: y\r\n\r\n",
	CHUNKED "00000000000000f \n0123456789abcde\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nCookie: "
	"0123456789012345678901234567890123456789012345678901234567890\r\n\r\n",
	CHUNKED "1\r\nx\r\n1\r\ny\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
};

static void
feed(struct framing *f, const char *text, size_t n, size_t step)
{
	for (size_t at = 0; at < n; at += step)
		ck_assert(
		    framing_feed(f, (const uint8_t *)text + at, n - at < step ? n - at : step));
}

START_TEST(requests_end)
{
	const char *text = whole[_i];

	for (size_t step = 1; step < 40; step++) {
		struct framing f = { .left = 0 };

		for (int twice = 0; twice < 2; twice++) {
			feed(&f, text, strlen(text), step);
			ck_assert_int_eq(f.state, FRAMING_HEAD);
			ck_assert(!f.in_head && !f.is_chunked && f.left == 0 && f.line_n == 0);
		}
	}
}
END_TEST

static bool
takes(const char *begin, char c, size_t n, size_t step)
{
	char *text = malloc(step);
	struct framing f = { .left = 0 };
	bool ok = true;

	memset(text, c, step);
	feed(&f, begin, strlen(begin), strlen(begin));
	for (size_t at = 0; at < n && ok; at += step)
		ok = framing_feed(&f, (const uint8_t *)text, step);
	free(text);
	return ok;
}

START_TEST(lines_are_bounded)
{
	static const size_t steps[] = { 1, 7, 4096 };
	size_t step = steps[_i];

	ck_assert(!takes(CHUNKED, '0', 8192, step));
	ck_assert(!takes(CHUNKED "2\r\n{}", '{', 8192, step));
	ck_assert(!takes(CHUNKED "2\r\n{}\r\n0\r\n", 'x', 8192, step));
	/* but not what bodies hold, nor the head, which evhttp bounds */
	ck_assert(takes(CHUNKED "10000\r\n", '{', 8192, step));
	ck_assert(takes("PUT / HTTP/1.1\r\nContent-Length: 65536\r\n\r\n", '{', 8192, step));
	ck_assert(takes("PUT ", '{', 8192, step));
}
END_TEST

/* What evhttp reads as a length, or as a coding, and what is kept of a line is not. */
static const char *const hidden[] = {
	CHUNKED "0000000000000000000000000000000000000000000000000000000000000000005\r\n",
	CHUNKED "                                                                    5\r\n",
	CHUNKED " 5\r\n",
	CHUNKED "\r5\r\n",
	CHUNKED "\v5\n",
	CHUNKED "+5\r\n",
	CHUNKED "-5\r\n",
	CHUNKED "0x5\r\n",
	CHUNKED "7fffffffffffffff\r\n",
	("PUT / HTTP/1.1\r\nTransfer-Encoding:                                           "
	 "chunked\r\n"),
	"PUT / HTTP/1.1\r\nContent-Length:                                               500\r\n",
	"PUT / HTTP/1.1\r\nContent-Length: 00000000000000000000000000000000000000000000000500\r\n",
};

START_TEST(lengths_are_not_hidden)
{
	const char *text = hidden[_i];
	size_t n = strlen(text);

	for (size_t step = 1; step < 90; step += 11) {
		struct framing f = { .left = 0 };
		bool ok = true;

		for (size_t at = 0; at < n && ok; at += step)
			ok = framing_feed(
			    &f, (const uint8_t *)text + at, n - at < step ? n - at : step);
		ck_assert(!ok);
	}
}
END_TEST

START_TEST(bodies_are_not_looked_at)
{
	struct framing f = { .left = 0 };

	feed(&f, CHUNKED "400\r\n", strlen(CHUNKED "400\r\n"), 9);
	ck_assert_uint_eq(framing_unseen(&f), 1024);
	framing_skip(&f, 1000);
	ck_assert_uint_eq(framing_unseen(&f), 24);
	framing_skip(&f, 24);
	ck_assert_uint_eq(framing_unseen(&f), 0);
	ck_assert_int_eq(f.state, FRAMING_LENGTH);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("framing");
	TCase *t = tcase_create("framing");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, requests_end, 0, sizeof whole / sizeof whole[0]);
	tcase_add_loop_test(t, lines_are_bounded, 0, 3);
	tcase_add_loop_test(t, lengths_are_not_hidden, 0, sizeof hidden / sizeof hidden[0]);
	tcase_add_test(t, bodies_are_not_looked_at);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
