/* SPDX-License-Identifier: Apache-2.0
 * Listening sockets: both families, ports that are taken, limits of connections and of descriptors. */
#include "net/listener.h"

#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "net/listen_addresses.h"
#include "net/loop.h"
#include "tests/unit/dial.h"

enum { FDS = 300 };

static struct config cfg;
static struct loop *l;
static struct listener *ls;
static int accepted[FDS];
static unsigned accepted_n;

static void
on_accept(void *arg, int fd)
{
	ck_assert_ptr_eq(arg, &cfg);
	ck_assert_uint_lt(accepted_n, FDS);
	accepted[accepted_n++] = fd;
}

static void
setup(void)
{
	cfg = (struct config){ .tcp_backlog = 128, .tcp_nodelay = true, .tcp_keepalive = true };
	l = loop_new();
	accepted_n = 0;
}

static void
teardown(void)
{
	while (accepted_n > 0)
		close(accepted[--accepted_n]);
	listener_free(&ls);
	loop_free(&l);
}

static void
open_on(const char *address, uint32_t max_open)
{
	const char *error = NULL;

	ls = listener_open(l, &cfg, address, 0, max_open, on_accept, &cfg, &error);
	ck_assert_msg(ls != NULL, "%s", error);
	ck_assert_uint_ne(listener_port(ls), 0);
}

static int
dial4(void)
{
	return dial_port(listener_port(ls), 0);
}

static int
dial6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
		.sin6_port = htons(listener_port(ls)),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
		return fd;
	close(fd);
	return -1;
}

static void
wake_up(struct wheel_node *n, uint64_t now_ms)
{
	(void)n;
	(void)now_ms;
}

static uint64_t
wait_turns(uint64_t ms)
{
	uint64_t until = clock_now_ms() + ms, before = l->turns;
	struct wheel_node node = { .fire = wake_up };

	while (clock_now_ms() < until) {
		wheel_arm(l->wheel, &node, until);
		loop_wait(l, false);
	}
	wheel_disarm(l->wheel, &node);
	return l->turns - before;
}

static bool
is_closed_by_peer(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

START_TEST(both_families)
{
	int a, b, on = 0;
	socklen_t n = sizeof on;

	open_on("::", 0);
	a = dial4();
	b = dial6();
	(void)wait_turns(20);
	ck_assert_uint_eq(accepted_n, b >= 0 ? 2 : 1);
	ck_assert_int_eq(getsockopt(accepted[0], IPPROTO_TCP, TCP_NODELAY, &on, &n), 0);
	ck_assert_int_ne(on, 0);
	on = 0;
	ck_assert_int_eq(getsockopt(accepted[0], SOL_SOCKET, SO_KEEPALIVE, &on, &n), 0);
	ck_assert_int_ne(on, 0);
	close(a);
	if (b >= 0)
		close(b);
}
END_TEST

static int
option(int fd, int name)
{
	int v = -1;
	socklen_t n = sizeof v;

	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, name, &v, &n), 0);
	return v;
}

/* The one descriptor that listens. */
static int
listening(void)
{
	for (int fd = 0; fd < FDS; fd++) {
		int on = 0;
		socklen_t n = sizeof on;

		if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) == 0 && on != 0)
			return fd;
	}
	ck_abort_msg("nothing listens");
}

START_TEST(length_of_the_backlog)
{
	for (uint32_t backlog = 7; backlog < 10; backlog++) {
		struct tcp_info info = { 0 };
		socklen_t n = sizeof info;

		cfg.tcp_backlog = backlog;
		open_on("127.0.0.1", 0);
		/* of a socket that listens: tcp_get_info() in net/ipv4/tcp.c of Linux */
		ck_assert_int_eq(getsockopt(listening(), IPPROTO_TCP, TCP_INFO, &info, &n), 0);
		ck_assert_uint_eq(info.tcpi_sacked, backlog);
		listener_free(&ls);
	}
}
END_TEST

START_TEST(times_of_keepalive)
{
	int a;

	open_on("127.0.0.1", 0);
	a = dial4();
	(void)wait_turns(20);
	ck_assert_uint_eq(accepted_n, 1);
	ck_assert_int_ne(option(accepted[0], TCP_KEEPIDLE), 77);
	close(a);
	listener_free(&ls);
	cfg.tcp_keepalive_idle_s = 77;
	cfg.tcp_keepalive_interval_s = 7;
	cfg.tcp_keepalive_count = 3;
	open_on("127.0.0.1", 0);
	a = dial4();
	(void)wait_turns(20);
	ck_assert_uint_eq(accepted_n, 2);
	ck_assert_int_eq(option(accepted[1], TCP_KEEPIDLE), 77);
	ck_assert_int_eq(option(accepted[1], TCP_KEEPINTVL), 7);
	ck_assert_int_eq(option(accepted[1], TCP_KEEPCNT), 3);
	close(a);
}
END_TEST

START_TEST(one_address_only)
{
	int a;

	open_on("127.0.0.1", 0);
	ck_assert_str_eq(listener_address(ls), "127.0.0.1");
	a = dial4();
	ck_assert_int_eq(dial6(), -1);
	(void)wait_turns(20);
	ck_assert_uint_eq(accepted_n, 1);
	close(a);
}
END_TEST

START_TEST(taken_port)
{
	const char *error = NULL;
	char expect[128];

	open_on("127.0.0.1", 0);
	ck_assert_ptr_null(
	    listener_open(l, &cfg, "127.0.0.1", listener_port(ls), 0, on_accept, &cfg, &error));
	(void)snprintf(expect, sizeof expect,
	    "port %u on 127.0.0.1 is taken by another process: stop it, or choose another port",
	    listener_port(ls));
	ck_assert_str_eq(error, expect);
}
END_TEST

static const struct {
	const char *address, *error;
} wrong[] = {
	{ "192.0.2.1",
	    "port 5672 on 192.0.2.1 cannot be opened: the machine does not have this address" },
	{ "nonsense..",
	    "port 5672 on nonsense.. cannot be opened: the machine does not have this address" },
};

START_TEST(wrong_address)
{
	const char *error = NULL;

	ck_assert_ptr_null(
	    listener_open(l, &cfg, wrong[_i].address, 5672, 0, on_accept, &cfg, &error));
	ck_assert_str_eq(error, wrong[_i].error);
}
END_TEST

/* Over the limit a connection is told by being closed; one that goes makes room again. */
/* Written so, it is looked up as a name is. */
START_TEST(name_of_one_link)
{
	struct config_list given = { .item = { (char *)(uintptr_t) "127.0.0.1",
		                         (char *)(uintptr_t) "fe80::1%lo" },
		.count = 2 };
	struct config_list out;
	const char *error = NULL;

	ck_assert(!listen_addresses(&given, &out, &error));
	ck_assert_str_eq(error,
	    "cannot listen on 'fe80::1%lo': it is fe80::1, which is an address of one link only; "
	    "listen on an address of the machine, or on :: for all");
	ck_assert_uint_eq(out.count, 0);
}
END_TEST

START_TEST(limit_of_connections)
{
	int fd[4];

	open_on("127.0.0.1", 2);
	for (unsigned i = 0; i < 3; i++)
		fd[i] = dial4();
	ck_assert_uint_le(wait_turns(50), 8);
	ck_assert_uint_eq(accepted_n, 2);
	ck_assert_uint_eq(listener_stats(ls)->open, 2);
	ck_assert_uint_eq(listener_stats(ls)->refused, 1);
	ck_assert(is_closed_by_peer(fd[2]));
	ck_assert(!is_closed_by_peer(fd[0]));
	listener_closed(ls);
	fd[3] = dial4();
	(void)wait_turns(200);
	ck_assert_uint_eq(accepted_n, 3);
	for (unsigned i = 0; i < 4; i++)
		close(fd[i]);
}
END_TEST

/* No descriptor left: peers are told, the loop rests, and goes on when there are some again. */
START_TEST(limit_of_descriptors)
{
	struct rlimit old, low;
	int fd[3], spare[3], last;
	uint64_t woken;

	open_on("127.0.0.1", 0);
	for (unsigned i = 0; i < 3; i++)
		fd[i] = dial4();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	spare[0] = dup(0);
	last = spare[0];
	low = (struct rlimit){ .rlim_cur = (rlim_t)last + 1, .rlim_max = old.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
	ck_assert_int_lt(dup(0), 0);
	ck_assert_int_eq(errno, EMFILE);
	woken = wait_turns(300);
	ck_assert_uint_le(woken, 12);
	ck_assert_uint_eq(accepted_n, 0);
	ck_assert_uint_eq(listener_stats(ls)->refused, 3);
	for (unsigned i = 0; i < 3; i++)
		ck_assert(is_closed_by_peer(fd[i]));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
	close(spare[0]);
	spare[1] = dial4();
	(void)wait_turns(200);
	ck_assert_uint_eq(accepted_n, 1);
	close(spare[1]);
	for (unsigned i = 0; i < 3; i++)
		close(fd[i]);
}
END_TEST

START_TEST(at_most_64_a_turn)
{
	int fd[100];

	open_on("127.0.0.1", 0);
	for (unsigned i = 0; i < 100; i++)
		fd[i] = dial4();
	loop_wait(l, true);
	ck_assert_uint_eq(accepted_n, 64);
	loop_wait(l, true);
	ck_assert_uint_eq(accepted_n, 100);
	for (unsigned i = 0; i < 100; i++)
		close(fd[i]);
}
END_TEST

START_TEST(stopped)
{
	int fd;

	open_on("127.0.0.1", 0);
	fd = dial4();
	listener_stop(ls);
	listener_stop(ls);
	(void)wait_turns(20);
	ck_assert_uint_eq(accepted_n, 0);
	ck_assert(is_closed_by_peer(fd));
	close(fd);
}
END_TEST

START_TEST(descriptors_are_raised)
{
	struct rlimit old, now;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
	now = (struct rlimit){ .rlim_cur = 100, .rlim_max = old.rlim_max };
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
	ck_assert_uint_eq(listener_raise_descriptors(), old.rlim_max);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
	ck_assert_uint_eq(now.rlim_cur, old.rlim_max);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("listener");
	TCase *tc = tcase_create("listener");
	SRunner *sr;
	int failed;

	clock_init();
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, both_families);
	tcase_add_test(tc, length_of_the_backlog);
	tcase_add_test(tc, times_of_keepalive);
	tcase_add_test(tc, one_address_only);
	tcase_add_test(tc, taken_port);
	tcase_add_loop_test(tc, wrong_address, 0, (int)COUNT_OF(wrong));
	tcase_add_test(tc, name_of_one_link);
	tcase_add_test(tc, limit_of_connections);
	tcase_add_test(tc, limit_of_descriptors);
	tcase_add_test(tc, at_most_64_a_turn);
	tcase_add_test(tc, stopped);
	tcase_add_test(tc, descriptors_are_raised);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
