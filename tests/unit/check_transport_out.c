/* SPDX-License-Identifier: Apache-2.0
 * A transport's output: partial writes through small socket buffers, references, room, stalls. */
#include "net/transport.h"

#include "tests/unit/transport_peer.h"

static void
write_pattern(struct transport *t, size_t from, size_t n)
{
	uint8_t *p = transport_room(t, n);

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((from + i) % 251);
	transport_wrote(t, n);
}

/* Copied and referenced pieces of all sizes through a small socket buffer come out in order, and each
 * reference is dropped once. */
START_TEST(partial_writes)
{
	enum { TOTAL = 6 << 20 };
	struct peer o;
	uint8_t *whole = malloc(TOTAL), *back = malloc(TOTAL);
	size_t at = 0, got = 0, refs = 0;
	int small = _i == 1 ? 65536 : 4096;

	for (size_t i = 0; i < TOTAL; i++)
		whole[i] = (uint8_t)(i % 251);
	setup(&o, _i == 1);
	ck_assert_int_eq(setsockopt(o.t->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
	for (size_t step = 1; at < TOTAL; step = step * 5 % 70001 + 1) {
		size_t n = step < TOTAL - at ? step : TOTAL - at;

		if (step % 3 == 0) {
			transport_write_ref(o.t, whole + at, n, whole);
			refs++;
		} else if (n <= CHUNK_SIZE && step % 3 == 1) {
			write_pattern(o.t, at, n);
		} else {
			transport_write(o.t, whole + at, n);
		}
		at += n;
		if (step % 7 == 0)
			loop_flush(o.l);
	}
	ck_assert_uint_gt(refs, 10);
	ck_assert_uint_gt(o.t->pending, LOW);
	for (unsigned i = 0; got < TOTAL && i < 200000; i++) {
		ssize_t r = read(o.fd, back + got, i % 5 == 0 ? 100000 : 777);

		if (r > 0)
			got += (size_t)r;
		turn(o.l);
	}
	ck_assert_uint_eq(got, TOTAL);
	ck_assert_mem_eq(back, whole, TOTAL);
	ck_assert_uint_eq(unrefs, refs);
	ck_assert_uint_eq(o.t->pending, 0);
	ck_assert_uint_eq(o.t->bytes_out, TOTAL);
	ck_assert_uint_eq(mem_held[MEM_OUTPUT], 0); /* nothing is held while nothing waits */
	ck_assert_uint_le(o.t->seg_cap, SEG_KEEP);
	ck_assert_uint_ge(o.rooms, 1);
	teardown(&o);
	free(whole);
	free(back);
}
END_TEST

START_TEST(room_comes_only_after_too_much)
{
	struct peer o;
	static uint8_t big[LOW], back[LOW * 2];

	setup(&o, false);
	transport_write(o.t, big, LOW - 1);
	for (unsigned i = 0; i < 100 && o.t->pending > 0; i++) {
		drain(o.fd, back, sizeof back);
		turn(o.l);
	}
	ck_assert_uint_eq(o.rooms, 0);
	transport_write(o.t, big, LOW);
	for (unsigned i = 0; i < 100 && o.t->pending > 0; i++) {
		drain(o.fd, back, sizeof back);
		turn(o.l);
	}
	ck_assert_uint_eq(o.rooms, 1);
	teardown(&o);
}
END_TEST

START_TEST(dropped_output_is_unreferenced)
{
	struct peer o;
	static uint8_t big[4 << 20];

	setup(&o, false);
	for (unsigned i = 0; i < 10; i++) {
		transport_write_ref(o.t, big, sizeof big / 10, big);
		transport_write(o.t, "x", 1);
	}
	turn(o.l);
	ck_assert_uint_lt(unrefs, 10);
	transport_close(o.t);
	ck_assert_uint_eq(unrefs, 10);
	teardown(&o);
	ck_assert_uint_eq(unrefs, 10);
}
END_TEST

/* Waiting for a peer that takes nothing costs no turns. */
START_TEST(blocked_output_does_not_spin)
{
	struct peer o;
	static uint8_t big[4 << 20];

	setup(&o, false);
	transport_write(o.t, big, sizeof big);
	turns(o.l, 8);
	ck_assert_uint_gt(o.t->pending, 0);
	ck_assert_uint_le(wait_turns(o.l, 100), 5);
	teardown(&o);
}
END_TEST

START_TEST(stalled_peer_is_ended)
{
	struct peer o;
	static uint8_t big[4 << 20], back[1 << 20];
	uint64_t now;

	setup(&o, false);
	now = o.l->now_ms;
	transport_write(o.t, big, sizeof big);
	for (unsigned i = 0; i < 10; i++)
		loop_flush(o.l);
	(void)wheel_run(o.l->wheel, now + STALL_MS - 1, 100);
	ck_assert_uint_eq(o.ends, 0);
	/* a little is taken: the time begins anew */
	o.l->now_ms = now + STALL_MS - 1;
	ck_assert_int_gt(drain(o.fd, back, sizeof back), 0);
	event_base_loop(o.l->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	loop_flush(o.l);
	(void)wheel_run(o.l->wheel, now + STALL_MS + 10, 100);
	ck_assert_uint_eq(o.ends, 0);
	(void)wheel_run(o.l->wheel, now + 2 * STALL_MS, 100);
	ck_assert_uint_eq(o.ends, 1);
	ck_assert_int_eq(o.why, END_STALLED);
	teardown(&o);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("transport_out");
	TCase *out = tcase_create("output");

	tcase_add_loop_test(out, partial_writes, 0, 2);
	tcase_add_test(out, room_comes_only_after_too_much);
	tcase_add_test(out, dropped_output_is_unreferenced);
	tcase_add_test(out, blocked_output_does_not_spin);
	tcase_add_test(out, stalled_peer_is_ended);
	tcase_set_timeout(out, 60);
	suite_add_tcase(s, out);
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
