/* SPDX-License-Identifier: Apache-2.0
 * Transports over socket pairs and loopback TCP: input split at every byte, tails, pauses, ends. */
#include "net/transport.h"

#include "tests/unit/transport_peer.h"

START_TEST(split_at_every_byte)
{
	uint8_t w[64];
	size_t n = frame(w, "first", 5);

	n += frame(w + n, "", 0);
	n += frame(w + n, "second frame", 12);
	for (size_t cut = 0; cut <= n; cut++) {
		struct peer o;

		setup(&o, false);
		if (cut > 0)
			put(&o, w, cut);
		turn(o.l);
		if (cut < n)
			put(&o, w + cut, n - cut);
		turn(o.l);
		ck_assert_uint_eq(o.got_n, 17);
		ck_assert_mem_eq(o.got, "firstsecond frame", 17);
		ck_assert_uint_eq(o.t->bytes_in, n);
		teardown(&o);
	}
}
END_TEST

START_TEST(one_byte_at_a_time)
{
	struct peer o;
	uint8_t w[64];
	size_t n = frame(w, "abcdefgh", 8);

	setup(&o, false);
	n += frame(w + n, "ij", 2);
	for (size_t i = 0; i < n; i++) {
		put(&o, w + i, 1);
		turn(o.l);
		ck_assert_uint_eq(o.calls, i + 1);
	}
	ck_assert_uint_eq(o.got_n, 10);
	ck_assert_mem_eq(o.got, "abcdefghij", 10);
	teardown(&o);
}
END_TEST

/* A frame of the largest size in pieces: the tail grows to it, and is given back. */
START_TEST(large_tail_is_given_back)
{
	struct peer o;
	uint8_t *w = malloc(TAIL), *body = malloc(TAIL);
	size_t n = TAIL, sent = 0;

	for (size_t i = 0; i < TAIL; i++)
		body[i] = (uint8_t)(i * 7);
	frame(w, body, TAIL - 4);
	setup(&o, false);
	while (sent < n) {
		size_t now = n - sent < 10000 ? n - sent : 10000;

		put(&o, w + sent, now);
		sent += now;
		turn(o.l);
		if (sent < n)
			ck_assert_uint_ge(mem_held[MEM_INPUT], sent);
	}
	ck_assert_uint_eq(o.got_n, TAIL - 4);
	ck_assert_mem_eq(o.got, body, TAIL - 4);
	ck_assert_uint_eq(mem_held[MEM_INPUT], 0);
	teardown(&o);
	free(w);
	free(body);
}
END_TEST

START_TEST(a_tail_over_its_bound_ends_it)
{
	struct peer o;
	uint8_t w[4096] = { 0 };

	setup(&o, false);
	o.take_nothing = true;
	for (unsigned i = 0; i < 64 && o.ends == 0; i++) {
		put(&o, w, sizeof w);
		turn(o.l);
	}
	ck_assert_uint_eq(o.ends, 1);
	ck_assert_int_eq(o.why, END_ERROR);
	ck_assert_int_eq(o.err, EMSGSIZE);
	teardown(&o);
}
END_TEST

START_TEST(no_memory_for_a_tail_ends_it)
{
	struct peer o;

	setup(&o, false);
	put(&o, "\0\0\1", 3);
	mem_fail_try(1, 0);
	turn(o.l);
	mem_fail_try(0, 0);
	ck_assert_uint_eq(o.ends, 1);
	ck_assert_int_eq(o.err, ENOMEM);
	teardown(&o);
}
END_TEST

START_TEST(what_came_before_the_hangup_is_read)
{
	struct peer o;
	uint8_t w[64];
	size_t n = frame(w, "last words", 10);

	setup(&o, _i == 1);
	put(&o, w, n);
	close(o.fd);
	o.fd = -1;
	turns(o.l, 4);
	ck_assert_uint_eq(o.got_n, 10);
	ck_assert_uint_eq(o.ends, 1);
	ck_assert_int_eq(o.why, END_HANGUP);
	teardown(&o);
}
END_TEST

/* The peer closes without having read our output: a reset, yet what it had sent is not lost. */
START_TEST(what_came_before_a_reset_is_read)
{
	struct peer o;
	uint8_t w[64];
	size_t n = frame(w, "last words", 10);

	setup(&o, true);
	transport_write(o.t, "unread", 6);
	turn(o.l);
	usleep(10000);
	put(&o, w, n);
	close(o.fd);
	o.fd = -1;
	usleep(10000);
	transport_write(o.t, "more", 4);
	loop_flush(o.l);
	ck_assert_uint_eq(o.ends, 0);
	turns(o.l, 4);
	ck_assert_uint_eq(o.got_n, 10);
	ck_assert_uint_eq(o.ends, 1);
	ck_assert_int_eq(o.why, END_RESET);
	teardown(&o);
}
END_TEST

static void
reset_peer(struct peer *o)
{
	struct linger lg = { 1, 0 };

	ck_assert_int_eq(setsockopt(o->fd, SOL_SOCKET, SO_LINGER, &lg, sizeof lg), 0);
	close(o->fd);
	o->fd = -1;
}

static uint64_t
cpu_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Three ways for a peer that is not read to go: each is seen, once, without spinning. */
START_TEST(end_is_seen_while_paused)
{
	struct peer o;
	uint64_t cpu;

	setup(&o, true);
	o.keep_open = true;
	transport_pause(o.t, PAUSE_PARKED);
	turn(o.l);
	put(&o, "unread", 6);
	ck_assert_uint_le(wait_turns(o.l, 20), 5);
	ck_assert_uint_eq(o.ends, 0);
	if (_i == 0)
		reset_peer(&o);
	else if (_i == 1)
		close(o.fd), o.fd = -1;
	else
		shutdown(o.fd, SHUT_WR);
	cpu = cpu_us();
	ck_assert_uint_le(wait_turns(o.l, 200), 8);
	ck_assert_uint_le(cpu_us() - cpu, 50000);
	ck_assert_uint_eq(o.calls, 0);
	ck_assert_uint_eq(o.ends, 1);
	ck_assert_int_eq(o.why, _i == 0 ? END_RESET : END_HANGUP);
	teardown(&o);
}
END_TEST

/* The end is reported once, also where the owner is slow to close. */
START_TEST(end_is_told_once)
{
	struct peer o;

	setup(&o, true);
	o.keep_open = true;
	close(o.fd);
	o.fd = -1;
	ck_assert_uint_le(wait_turns(o.l, 100), 8);
	ck_assert_uint_eq(o.ends, 1);
	transport_write(o.t, "nobody", 6);
	turns(o.l, 3);
	ck_assert_uint_eq(o.ends, 1);
	teardown(&o);
}
END_TEST

START_TEST(pause_and_resume)
{
	struct peer o;
	uint8_t w[64];
	size_t n = frame(w, "abc", 3);

	setup(&o, false);
	o.take_nothing = true;
	put(&o, w, n);
	turn(o.l);
	ck_assert_uint_eq(o.calls, 1);
	transport_pause(o.t, PAUSE_PARKED);
	transport_pause(o.t, PAUSE_OUTPUT);
	o.take_nothing = false;
	put(&o, w, n);
	turns(o.l, 3);
	ck_assert_uint_eq(o.calls, 1);
	transport_resume(o.t, PAUSE_PARKED);
	turns(o.l, 3);
	ck_assert_uint_eq(o.calls, 1); /* one reason is left */
	transport_resume(o.t, PAUSE_OUTPUT);
	turns(o.l, 3);
	ck_assert_uint_eq(o.got_n, 6);
	ck_assert_mem_eq(o.got, "abcabc", 6);
	teardown(&o);
}
END_TEST

/* The tail comes again although nothing was received: after a resume and when asked for. */
START_TEST(tail_is_shown_again)
{
	struct peer o;
	uint8_t w[64];
	size_t n = frame(w, "abc", 3);

	setup(&o, false);
	o.take_nothing = true;
	put(&o, w, n);
	turn(o.l);
	transport_again(o.t);
	turn(o.l);
	ck_assert_uint_eq(o.calls, 2);
	turns(o.l, 2);
	ck_assert_uint_eq(o.calls, 2);
	transport_pause(o.t, PAUSE_PARKED);
	transport_again(o.t);
	turns(o.l, 2);
	ck_assert_uint_eq(o.calls, 2);
	o.take_nothing = false;
	transport_resume(o.t, PAUSE_PARKED);
	turn(o.l);
	ck_assert_uint_eq(o.got_n, 3);
	teardown(&o);
}
END_TEST

START_TEST(close_within_on_bytes)
{
	struct peer o;

	setup(&o, false);
	o.close_in_bytes = true;
	put(&o, "\0\0\0\1x", 5);
	loop_wait(o.l, true);
	loop_read(o.l);
	ck_assert(o.t->is_closed);
	transport_close(o.t); /* twice is harmless */
	ck_assert_ptr_nonnull(transport_room(o.t, 10));
	transport_wrote(o.t, 10);
	transport_write_ref(o.t, (const uint8_t *)"x", 1, &o);
	ck_assert_uint_eq(unrefs, 1);
	loop_flush(o.l);
	ck_assert_uint_eq(o.t->pending, 0);
	teardown(&o);
}
END_TEST

/* All output arrives, then the end of the stream, although the peer had sent what nobody read. */
START_TEST(close_after_flush)
{
	struct peer o;
	static uint8_t big[3 << 20], back[4 << 20];
	ssize_t n;
	size_t got = 0;

	setup(&o, true);
	put(&o, "never read", 10);
	transport_write(o.t, big, sizeof big);
	transport_close_after_flush(o.t, 5000);
	put(&o, "nor this", 8);
	for (unsigned i = 0; i < 2000; i++) {
		turn(o.l);
		n = drain(o.fd, back, sizeof back);
		if (n < 0)
			break;
		got += (size_t)n;
	}
	ck_assert_uint_eq(got, sizeof big);
	ck_assert(!TAILQ_EMPTY(&o.l->closing)); /* waits for the peer's end */
	close(o.fd);
	o.fd = -1;
	(void)wait_turns(o.l, 20);
	ck_assert(TAILQ_EMPTY(&o.l->closing));
	ck_assert_uint_eq(o.calls + o.ends, 0);
	loop_free(&o.l);
	ck_assert_uint_eq(mem_held[MEM_OUTPUT], 0);
}
END_TEST

START_TEST(close_after_flush_ends_at_its_deadline)
{
	struct peer o;
	static uint8_t big[8 << 20];

	setup(&o, true);
	if (_i == 1)
		transport_write_ref(o.t, big, sizeof big, big);
	transport_close_after_flush(o.t, 30);
	ck_assert_uint_le(wait_turns(o.l, 60), 12);
	ck_assert(TAILQ_EMPTY(&o.l->closing));
	ck_assert_uint_eq(unrefs, _i);
	loop_free(&o.l);
	close(o.fd);
}
END_TEST

/* A loop that stops in the middle of it leaks nothing. */
START_TEST(loop_free_closes_what_is_closing)
{
	struct peer o;
	static uint8_t big[8 << 20];

	setup(&o, true);
	transport_write_ref(o.t, big, sizeof big, big);
	transport_close_after_flush(o.t, 10000);
	turn(o.l);
	loop_free(&o.l);
	ck_assert_uint_eq(unrefs, 1);
	close(o.fd);
}
END_TEST

/* A descriptor number that comes back within one turn is watched like any other. */
START_TEST(descriptor_is_used_again_at_once)
{
	struct peer o, p;
	int fd[2], old, mine;
	uint8_t w[16];
	size_t n = frame(w, "abc", 3);

	setup(&o, true);
	turn(o.l);
	old = o.t->fd;
	transport_close(o.t);
	o.t = NULL; /* freed with the next turn */
	tcp_pair(fd);
	mine = fd[0] == old ? 0 : 1;
	ck_assert_int_eq(fd[mine], old);
	memset(&p, 0, sizeof p);
	p.t = transport_new(o.l, old, &ops, &p, TAIL, LOW);
	ck_assert_int_eq(write(fd[!mine], w, n), (ssize_t)n);
	(void)wait_turns(o.l, 20);
	ck_assert_uint_eq(p.got_n, 3);
	transport_close(p.t);
	free(p.got);
	close(fd[!mine]);
	teardown(&o);
}
END_TEST

/* With many readable, each gets its share of bytes, and all are served before one is served twice for long: a turn takes
 * as many as its time allows, the next one begins with the others. */
START_TEST(shares_of_a_turn)
{
	enum { PEERS = 100 };
	static struct peer p[PEERS];
	static uint8_t w[64 << 10];
	struct loop *l = loop_new();
	int fd[2];

	for (unsigned i = 0; i < PEERS; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		p[i].fd = fd[1];
		p[i].t = transport_new(l, fd[0], &ops, &p[i], TAIL, LOW);
		put(&p[i], w, sizeof w);
	}
	/* libevent's first waits return 32, then 64 at most */
	for (unsigned i = 0; i < 50 && (i < 3 || l->readable_count > 0); i++)
		turns(l, 1);
	for (unsigned i = 0; i < PEERS; i++) {
		ck_assert_uint_ge(p[i].calls, 1);
		ck_assert_uint_ge(p[i].t->bytes_in, LOOP_READ_MIN);
		ck_assert_uint_le(p[i].t->bytes_in, 3 * (LOOP_TURN_BYTES / 32));
	}
	for (unsigned i = 0; i < PEERS; i++) {
		transport_close(p[i].t);
		close(p[i].fd);
		free(p[i].got);
	}
	loop_free(&l);
}
END_TEST

/* Strangers who all ask for something dear in the same moment: others are read in every turn, strangers a few at a time.
 * Case 1: one that is vouched for while it waits. */
START_TEST(strangers_come_last)
{
	enum { STRANGERS = 31, ASK = 100 };
	static struct peer p[STRANGERS + 1], *known = &p[STRANGERS];
	struct loop *l = loop_new();
	unsigned turns_taken = 0, served = 0;
	int fd[2];

	memset(p, 0, sizeof p);
	for (unsigned i = 0; i <= STRANGERS; i++) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
		p[i].fd = fd[1];
		p[i].t = transport_new(l, fd[0], &ops, &p[i], TAIL, LOW);
		p[i].slow_us = i < STRANGERS ? 1000 : 0;
		transport_set_stranger(p[i].t, i < STRANGERS || _i == 1);
		put(&p[i], "\0\0\0\1x", 5);
	}
	loop_wait(l, true);
	transport_set_stranger(known->t, false);
	ck_assert_uint_eq(l->readable_count, 1);
	for (unsigned n = 1; served < STRANGERS; n++) {
		loop_read(l);
		loop_flush(l);
		ck_assert_uint_eq(known->calls, n);
		served = 0;
		for (unsigned i = 0; i < STRANGERS; i++)
			served += p[i].calls;
		ck_assert_uint_le(served, 4 * n);
		put(known, "\0\0\0\1x", 5);
		loop_wait(l, true);
		ck_assert_uint_lt(++turns_taken, ASK);
	}
	for (unsigned i = 0; i <= STRANGERS; i++) {
		transport_close(p[i].t);
		close(p[i].fd);
		free(p[i].got);
	}
	ck_assert_uint_eq(l->readable_count + l->stranger_count, 0);
	loop_free(&l);
}
END_TEST

START_TEST(addresses)
{
	struct peer o;
	struct transport_addr peer, local;

	setup(&o, true);
	transport_peer(o.t, &peer, &local);
	ck_assert_str_eq(peer.host, "127.0.0.1");
	ck_assert_uint_ne(peer.port, 0);
	ck_assert(peer.loopback);
	ck_assert_str_eq(local.host, "127.0.0.1");
	ck_assert_uint_ne(peer.port, local.port);
	transport_close(o.t);
	transport_peer(o.t, &peer, NULL);
	ck_assert_str_eq(peer.host, "?");
	ck_assert(!peer.loopback);
	teardown(&o);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("transport");
	TCase *in = tcase_create("input"), *end = tcase_create("end");

	tcase_add_test(in, split_at_every_byte);
	tcase_add_test(in, one_byte_at_a_time);
	tcase_add_test(in, large_tail_is_given_back);
	tcase_add_test(in, a_tail_over_its_bound_ends_it);
	tcase_add_test(in, no_memory_for_a_tail_ends_it);
	tcase_add_test(in, pause_and_resume);
	tcase_add_test(in, tail_is_shown_again);
	tcase_add_test(in, close_within_on_bytes);
	tcase_add_test(in, shares_of_a_turn);
	tcase_add_loop_test(in, strangers_come_last, 0, 2);
	tcase_add_test(in, addresses);
	tcase_add_loop_test(end, what_came_before_the_hangup_is_read, 0, 2);
	tcase_add_test(end, what_came_before_a_reset_is_read);
	tcase_add_loop_test(end, end_is_seen_while_paused, 0, 3);
	tcase_add_test(end, end_is_told_once);
	tcase_add_test(end, close_after_flush);
	tcase_add_loop_test(end, close_after_flush_ends_at_its_deadline, 0, 2);
	tcase_add_test(end, loop_free_closes_what_is_closing);
	tcase_add_test(end, descriptor_is_used_again_at_once);
	suite_add_tcase(s, in);
	suite_add_tcase(s, end);
	return s;
}

int
main(void)
{
	SRunner *sr = srunner_create(suite());
	int failed;

	clock_init();
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
