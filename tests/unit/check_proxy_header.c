/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/attr.h"
#include "base/net_range.h"
#include "net/proxy_header.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\x0a\0\0\x01\x0a\0\0\x02\xc3\x50\x16\x28" /* 10.0.0.1:50000 to 10.0.0.2:5672 */

static const struct {
	const char *bytes;
	size_t n;
	const char *peer; /* NULL: those of the socket hold */
	uint16_t port;
	bool loopback;
} good[] = {
	{ "PROXY TCP4 192.0.2.1 10.0.0.1 56324 5672\r\n", 0, "192.0.2.1", 56324, false },
	{ "PROXY TCP4 127.0.0.1 10.0.0.1 0 65535\r\n", 0, "127.0.0.1", 0, true },
	{ "PROXY TCP6 2001:db8::1 ::1 4000 5672\r\n", 0, "2001:db8::1", 4000, false },
	{ "PROXY TCP6 ::ffff:1.2.3.4 ::1 4000 5672\r\n", 0, "1.2.3.4", 4000, false },
	{ "PROXY UNKNOWN\r\n", 0, NULL, 0, false },
	{ "PROXY UNKNOWN ffff:f...f 4000\r\n", 0, NULL, 0, false },
	{ SIGNATURE "\x21\x11\0\x0c" V4, 28, "10.0.0.1", 50000, false },
	{ SIGNATURE "\x21\x11\0\x10" V4 "\x04\0\x01x", 32, "10.0.0.1", 50000, false },
	{ SIGNATURE "\x20\0\0\0", 16, NULL, 0, false },
	{ SIGNATURE "\x21\x31\0\0", 16, NULL, 0, false },      /* a local socket */
	{ SIGNATURE "\x21\x12\0\x0c" V4, 28, NULL, 0, false }, /* datagrams */
	{ SIGNATURE "\x21\x21\0\x24"
	            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
	            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2"
	            "\0\1\0\2",
	    52, "::1", 1, true },
};

START_TEST(headers_are_read)
{
	size_t n = good[_i].n != 0 ? good[_i].n : strlen(good[_i].bytes);
	uint8_t *p = malloc(n + 4);
	struct proxy_header h;
	const char *why = NULL;

	memcpy(p, good[_i].bytes, n);
	memcpy(p + n, "AMQP", 4);
	for (size_t cut = 0; cut < n; cut++)
		ck_assert_int_eq(proxy_parse(p, cut, &h, &why), PROXY_MORE);
	for (size_t behind = 0; behind <= 4; behind++) {
		ck_assert_int_eq(proxy_parse(p, n + behind, &h, &why), PROXY_DONE);
		ck_assert_uint_eq(h.used, n);
		ck_assert(h.has_addresses == (good[_i].peer != NULL));
		if (!h.has_addresses)
			continue;
		ck_assert_str_eq(h.peer.host, good[_i].peer);
		ck_assert_uint_eq(h.peer.port, good[_i].port);
		ck_assert(h.peer.loopback == good[_i].loopback);
	}
	ck_assert(proxy_begins(p, n));
	free(p);
}
END_TEST

static const struct {
	const char *bytes;
	size_t n;
	const char *why;
} bad[] = {
	{ "AMQP\0\0\x09\x01", 8, "does not begin" },
	{ "X", 1, "does not begin" },
	{ "PROXZ", 5, "does not begin" },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4  1.2.3.4 1 2\r\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4 1.2.3.4 -1 2\r\n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n", 0, "well formed" },
	{ "PROXY TCP4 ::1 ::1 1 2\r\n", 0, "well formed" },
	{ "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n", 0, "well formed" },
	{ "PROXY UNKNOWNX\r\n", 0, "well formed" },
	{ "PROXY \n", 0, "well formed" },
	{ "PROXY TCP4 1.2.3.4\0 1.2.3.4 1 2\r\n", 33, "well formed" },
	{ SIGNATURE "\x11\x11\0\x0c" V4, 28, "version or command" },
	{ SIGNATURE "\x22\x11\0\x0c" V4, 28, "version or command" },
	{ SIGNATURE "\x21\x11\0\x0b" V4, 27, "too short" },
	{ SIGNATURE "\x21\x21\0\x0c" V4, 28, "too short" },
	{ SIGNATURE "\x21\x11\xff\xff" V4, 28, "too long" },
};

START_TEST(others_are_refused)
{
	size_t n = bad[_i].n != 0 ? bad[_i].n : strlen(bad[_i].bytes);
	struct proxy_header h;
	const char *why = "";

	ck_assert_int_eq(proxy_parse((const uint8_t *)bad[_i].bytes, n, &h, &why), PROXY_BAD);
	ck_assert_msg(strstr(why, bad[_i].why) != NULL, "%s", why);
}
END_TEST

START_TEST(lines_end)
{
	uint8_t line[PROXY_LINE_MAX];
	struct proxy_header h;
	const char *why = "";

	memset(line, ' ', sizeof line);
	memcpy(line, "PROXY UNKNOWN", 13);
	ck_assert_int_eq(proxy_parse(line, sizeof line - 1, &h, &why), PROXY_MORE);
	ck_assert_int_eq(proxy_parse(line, sizeof line, &h, &why), PROXY_BAD);
	memcpy(line + sizeof line - 2, "\r\n", 2);
	ck_assert_int_eq(proxy_parse(line, sizeof line, &h, &why), PROXY_DONE);
}
END_TEST

static struct sockaddr_storage
address(const char *text)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (void *)&ss;
	struct sockaddr_in6 *in6 = (void *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		ss.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		ss.ss_family = AF_INET6;
	return ss;
}

static const struct {
	const char *range, *inside, *outside;
} ranges[] = {
	{ "10.0.0.0/8", "10.255.0.1", "11.0.0.0" },
	{ "10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3" },
	{ "192.168.1.1", "192.168.1.1", "192.168.1.2" },
	{ "192.168.1.128/25", "192.168.1.129", "192.168.1.127" },
	{ "0.0.0.0/0", "1.2.3.4", "::1" },
	{ "::1", "::1", "::2" },
	{ "::/0", "1.2.3.4", "" },
	{ "2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1" },
};

START_TEST(ranges_have)
{
	struct sockaddr_storage in = address(ranges[_i].inside), out = address(ranges[_i].outside);
	struct net_range r;

	ck_assert(net_range_parse(ranges[_i].range, &r));
	ck_assert(net_range_has(&r, &in));
	ck_assert(!net_range_has(&r, &out));
}
END_TEST

START_TEST(no_ranges)
{
	static const char *const texts[] = { "", "/", "10.0.0.0/", "10.0.0.0/33", "::/129",
		"10.0.0.1/8", "10.0.0.0/8x", "10.0.0.0/-1", "2001:db8::1/64", "host",
		"10.0.0.0/0000008", "::1/8",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999:1111:2222:3333" };
	struct net_range r;

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		ck_assert_msg(!net_range_parse(texts[i], &r), "%s", texts[i]);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("proxy_header");
	TCase *t = tcase_create("all");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(t, headers_are_read, 0, (int)COUNT_OF(good));
	tcase_add_loop_test(t, others_are_refused, 0, (int)COUNT_OF(bad));
	tcase_add_test(t, lines_end);
	tcase_add_loop_test(t, ranges_have, 0, (int)COUNT_OF(ranges));
	tcase_add_test(t, no_ranges);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
