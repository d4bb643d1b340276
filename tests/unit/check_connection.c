/* SPDX-License-Identifier: Apache-2.0
 * A connection's life: protocol headers, logins, tuning, time limits, channel numbers, errors, the node's stop. */
#include "amqp/connection.h"

#include <check.h>
#include <stdio.h>

#include "amqp/handshake.h"
#include "tests/unit/amqp_world.h"

static struct world w;
static struct peer p;

static void
setup(void)
{
	world_init(&w);
	peer_init(&p, &w);
}

static void
teardown(void)
{
	peer_fini(&p);
	world_fini(&w);
}

/* --- protocol header ------------------------------------------------------------------------------ */

static const char *const bad_headers[] = {
	"AMQP\0\0\10\0",
	"AMQP\0\0\11\0",
	"AMQP\0\1\0\0",
	"AMQP\3\1\0\0",
	"amqp\0\0\11\1",
	"GET / HT",
	"\26\3\1\2\0\1\0\1",
	"\0\0\0\0\0\0\0\0",
};

START_TEST(other_protocols_get_our_header)
{
	peer_send(&p, bad_headers[_i], 7);
	ck_assert_uint_eq(p.n, 0);
	peer_send(&p, bad_headers[_i] + 7, 1);
	ck_assert_uint_eq(p.n, 8);
	ck_assert_mem_eq(p.in, "AMQP\0\0\11\1", 8);
	ck_assert(p.ended);
	ck_assert_uint_eq(w.a->connection_count, 0);
}
END_TEST

/* --- login ---------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool failure_close;
	const char *mechanism;
	const char *response;
	size_t n;
	uint16_t code; /* 0: closed without a word; 1: logged in */
} logins[] = {
	{ "right", true, "PLAIN", "\0guest\0guest", 12, 1 },
	{ "right, AMQPLAIN", true, "AMQPLAIN", "\5LOGINS\0\0\0\5guest\10PASSWORDS\0\0\0\5guest", 35,
	    1 },
	{ "reordered, with more", true, "AMQPLAIN",
	    "\1xV\10PASSWORDS\0\0\0\5guest\5LOGINS\0\0\0\5guest", 38, 1 },
	{ "wrong password", true, "PLAIN", "\0guest\0wrong", 12, 403 },
	{ "wrong password, cannot be told", false, "PLAIN", "\0guest\0wrong", 12, 0 },
	{ "unknown name", true, "PLAIN", "\0nobody\0guest", 13, 403 },
	{ "empty both", true, "PLAIN", "\0\0", 2, 403 },
	{ "wrong, AMQPLAIN", true, "AMQPLAIN", "\5LOGINS\0\0\0\5guest\10PASSWORDS\0\0\0\5wrong", 35,
	    403 },
	{ "unknown mechanism", true, "EXTERNAL", "", 0, 0 },
	{ "lower case", true, "plain", "\0guest\0guest", 12, 0 },
	{ "no separators", true, "PLAIN", "guest", 5, 0 },
	{ "one separator", true, "PLAIN", "\0guest", 6, 0 },
	{ "three separators", true, "PLAIN", "\0guest\0guest\0", 13, 0 },
	{ "identity in front", true, "PLAIN", "me\0guest\0guest", 14, 0 },
	{ "empty", true, "PLAIN", "", 0, 0 },
	{ "no table", true, "AMQPLAIN", "junk", 4, 0 },
	{ "table without PASSWORD", true, "AMQPLAIN", "\5LOGINS\0\0\0\5guest", 16, 0 },
	{ "LOGIN is a number", true, "AMQPLAIN", "\5LOGINI\0\0\0\5\10PASSWORDS\0\0\0\5guest", 30,
	    0 },
	{ "PASSWORD is bytes", true, "AMQPLAIN", "\5LOGINS\0\0\0\5guest\10PASSWORDx\0\0\0\5guest",
	    35, 0 },
	{ "table cut short", true, "AMQPLAIN", "\5LOGINS\0\0\0\5guest\10PASSWORDS\0\0\0\5gue", 33,
	    0 },
};

static size_t
build_start_ok(
    uint8_t *out, bool failure_close, const char *mechanism, const char *response, size_t n)
{
	size_t at, m = strlen(mechanism);

	if (failure_close) {
		/* table > capabilities > authentication_failure_close = true */
		static const char key[] = "authentication_failure_close";
		size_t inner = 1 + sizeof key - 1 + 2, all = 1 + 12 + 1 + 4 + inner;

		put_be32(out, (uint32_t)all);
		memcpy(out + 4, "\14capabilitiesF", 14);
		put_be32(out + 18, (uint32_t)inner);
		out[22] = sizeof key - 1;
		memcpy(out + 23, key, sizeof key - 1);
		memcpy(out + 23 + sizeof key - 1, "t\1", 2);
		at = 4 + all;
	} else {
		put_be32(out, 0);
		at = 4;
	}
	out[at++] = (uint8_t)m;
	memcpy(out + at, mechanism, m);
	at += m;
	put_be32(out + at, (uint32_t)n);
	memcpy(out + at + 4, response, n);
	at += 4 + n;
	memcpy(out + at, "\5en_US", 6);
	return at + 6;
}

START_TEST(login)
{
	uint8_t args[512];
	size_t n = build_start_ok(args, logins[_i].failure_close, logins[_i].mechanism,
	    logins[_i].response, logins[_i].n);
	uint64_t failures = w.b->stats.login_failures;
	struct seen s;

	peer_reach(&p, CONN_STARTING);
	peer_method(&p, 0, AMQP_CONNECTION_START_OK_METHOD, args, n);
	if (logins[_i].code == 1) {
		ck_assert_uint_eq(peer_next(&p).id, AMQP_CONNECTION_TUNE_METHOD);
		ck_assert_str_eq(p.c->client.user->name, "guest");
		return;
	}
	ck_assert_msg(peer_next(&p).type == 0, "%s: answered at once", logins[_i].name);
	world_pass(&w, CONN_TURN_AWAY_MS);
	peer_read(&p);
	s = peer_next(&p);
	ck_assert_msg(s.code == logins[_i].code, "%s: %u %s", logins[_i].name, s.code, s.text);
	ck_assert_msg(p.ended == (s.code == 0), "%s", logins[_i].name);
	if (s.code == 403) {
		ck_assert_uint_eq(s.class_id, 0);
		ck_assert_uint_eq(s.method_id, 0);
		ck_assert_int_eq(
		    strncmp(s.text,
		        "ACCESS_REFUSED - Login was refused using authentication mechanism ", 66),
		    0);
		ck_assert_ptr_nonnull(strstr(s.text, ". For details see the broker logfile."));
		ck_assert_uint_eq(w.b->stats.login_failures, failures + 1);
		peer_method(&p, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, NULL, 0);
		ck_assert(p.ended);
	}
}
END_TEST

/* --- tuning --------------------------------------------------------------------------------------- */

static const struct {
	uint16_t channel_max;
	uint32_t frame_max;
	bool fine;
} tunings[] = {
	{ 2047, 131072, true },
	{ 1, 4096, true },
	{ 2046, 131071, true },
	{ 0, 131072, false },
	{ 2048, 131072, false },
	{ 2047, 0, false },
	{ 2047, 4095, false },
	{ 2047, 1, false },
	{ 2047, 131073, false },
	{ 65535, UINT32_MAX, false },
};

START_TEST(tuning)
{
	uint8_t args[8];

	put_be16(args, tunings[_i].channel_max);
	put_be32(args + 2, tunings[_i].frame_max);
	put_be16(args + 6, 7);
	peer_reach(&p, CONN_TUNING);
	peer_method(&p, 0, AMQP_CONNECTION_TUNE_OK_METHOD, args, sizeof args);
	ck_assert_int_eq(p.c->state, tunings[_i].fine ? CONN_OPENING : CONN_TUNING);
	ck_assert(p.c->is_deaf == !tunings[_i].fine);
	if (tunings[_i].fine) {
		ck_assert_uint_eq(p.c->frame_max, tunings[_i].frame_max);
		ck_assert_uint_eq(p.c->heartbeat_s, 7);
	}
}
END_TEST

/* --- time ----------------------------------------------------------------------------------------- */

START_TEST(handshake_has_a_limit)
{
	static const enum connection_state at[] = { CONN_HEADER, CONN_STARTING, CONN_TUNING,
		CONN_OPENING };

	peer_reach(&p, at[_i]);
	world_pass(&w, w.cfg.handshake_ms - 1);
	peer_read(&p);
	ck_assert(!p.ended);
	world_pass(&w, 1);
	peer_read(&p);
	ck_assert(p.ended);
}
END_TEST

static void
open_with_heartbeat(uint16_t seconds)
{
	uint8_t tune_ok[8] = { 7, 255, 0, 2, 0, 0, (uint8_t)(seconds >> 8), (uint8_t)seconds };

	peer_reach(&p, CONN_TUNING);
	peer_method(&p, 0, AMQP_CONNECTION_TUNE_OK_METHOD, tune_ok, sizeof tune_ok);
	peer_method(&p, 0, AMQP_CONNECTION_OPEN_METHOD, "\1/\0\0", 4);
	ck_assert_int_eq(p.c->state, CONN_OPEN);
	peer_forget(&p);
}

START_TEST(heartbeats_are_written_and_supervised)
{
	unsigned beats = 0;

	open_with_heartbeat(10);
	for (int ms = 0; ms < 19000; ms += 500) {
		world_pass(&w, 500);
		peer_read(&p);
		while (peer_next(&p).type == FRAME_HEARTBEAT)
			beats++;
	}
	ck_assert_uint_ge(beats, 3);
	ck_assert_uint_le(beats, 4);
	ck_assert(!p.ended);
	world_pass(&w, 1000);
	peer_read(&p);
	ck_assert(p.ended);
}
END_TEST

START_TEST(any_octet_keeps_it_alive)
{
	open_with_heartbeat(1);
	for (int i = 0; i < 20; i++) {
		world_pass(&w, 900);
		peer_send(&p, &"\10\0\0\0\0\0\0\316"[i % 8], 1); /* a heartbeat in eight pieces */
		peer_forget(&p);
		ck_assert(!p.ended);
	}
}
END_TEST

/* What we do not read proves nothing about the peer. */
START_TEST(silence_does_not_count_while_paused)
{
	open_with_heartbeat(1);
	transport_pause(p.c->io, PAUSE_PARKED);
	for (int i = 0; i < 20; i++)
		world_pass(&w, 500);
	peer_read(&p);
	ck_assert(!p.ended);
	transport_resume(p.c->io, PAUSE_PARKED);
	world_pass(&w, 1400);
	peer_read(&p);
	ck_assert(!p.ended);
	world_pass(&w, 1000);
	peer_read(&p);
	ck_assert(p.ended);
}
END_TEST

START_TEST(heartbeat_zero_means_none)
{
	open_with_heartbeat(0);
	for (int i = 0; i < 10; i++)
		world_pass(&w, 100000);
	peer_read(&p);
	ck_assert_uint_eq(p.n, 0);
	ck_assert(!p.ended);
}
END_TEST

/* --- channels ------------------------------------------------------------------------------------- */

START_TEST(channel_numbers)
{
	static const uint16_t numbers[] = { 1, 5, 2047, 4, 2 };

	peer_reach(&p, CONN_OPEN);
	for (size_t i = 0; i < COUNT_OF(numbers); i++) {
		peer_channel(&p, numbers[i]);
		ck_assert_ptr_nonnull(connection_channel(p.c, numbers[i]));
	}
	ck_assert_uint_eq(p.c->channel_count, COUNT_OF(numbers));
	ck_assert_ptr_null(connection_channel(p.c, 3));
	ck_assert_ptr_null(connection_channel(p.c, 2048));
	ck_assert_ptr_null(connection_channel(p.c, 65535));
}
END_TEST

START_TEST(channels_are_counted)
{
	static const uint8_t tune_ok[] = { 0, 2, 0, 2, 0, 0, 0, 0 };
	struct seen s;

	peer_reach(&p, CONN_TUNING);
	peer_method(&p, 0, AMQP_CONNECTION_TUNE_OK_METHOD, tune_ok, sizeof tune_ok);
	peer_method(&p, 0, AMQP_CONNECTION_OPEN_METHOD, "\1/\0\0", 4);
	peer_forget(&p);
	peer_channel(&p, 1);
	peer_channel(&p, 2);
	peer_method(&p, 3, AMQP_CHANNEL_OPEN_METHOD, "", 1);
	s = peer_next(&p);
	ck_assert_uint_eq(s.code, 530);
	ck_assert_str_eq(s.text, "NOT_ALLOWED - number of channels opened (2) has reached the "
	                         "negotiated channel_max (2)");
}
END_TEST

/* An idle connection with one channel has to stay small: thousands are held at once. */
START_TEST(idle_connection_is_small)
{
	ck_assert_uint_le(sizeof(struct connection), 1536);
	ck_assert_uint_le(sizeof(struct channel), 896);
}
END_TEST

START_TEST(blocked_is_told_once)
{
	peer_reach(&p, CONN_OPEN);
	p.c->can_blocked = true;
	connection_tell_blocked(p.c, "low on memory");
	connection_tell_blocked(p.c, "low on memory");
	world_turns(&w, 2);
	peer_read(&p);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_CONNECTION_BLOCKED_METHOD);
	ck_assert_uint_eq(peer_next(&p).type, 0);
	connection_tell_unblocked(p.c);
	connection_tell_unblocked(p.c);
	world_turns(&w, 2);
	peer_read(&p);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_CONNECTION_UNBLOCKED_METHOD);
	ck_assert_uint_eq(peer_next(&p).type, 0);
}
END_TEST

START_TEST(stop_tells_clients)
{
	struct peer early;
	struct seen s;

	peer_init(&early, &w);
	peer_reach(&early, CONN_STARTING);
	peer_reach(&p, CONN_OPEN);
	amqp_stop(w.a, "shutdown");
	world_turns(&w, 3);
	peer_read(&early);
	ck_assert(early.ended);
	peer_read(&p);
	s = peer_next(&p);
	ck_assert_uint_eq(s.code, 320);
	ck_assert_str_eq(
	    s.text, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'");
	ck_assert(!amqp_idle(w.a));
	peer_method(&p, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, NULL, 0);
	ck_assert(amqp_idle(w.a));
	peer_fini(&early);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("connection");
	TCase *t = tcase_create("life");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, other_protocols_get_our_header, 0, COUNT_OF(bad_headers));
	tcase_add_loop_test(t, login, 0, COUNT_OF(logins));
	tcase_add_loop_test(t, tuning, 0, COUNT_OF(tunings));
	tcase_add_loop_test(t, handshake_has_a_limit, 0, 4);
	tcase_add_test(t, heartbeats_are_written_and_supervised);
	tcase_add_test(t, any_octet_keeps_it_alive);
	tcase_add_test(t, silence_does_not_count_while_paused);
	tcase_add_test(t, heartbeat_zero_means_none);
	tcase_add_test(t, channel_numbers);
	tcase_add_test(t, channels_are_counted);
	tcase_add_test(t, idle_connection_is_small);
	tcase_add_test(t, blocked_is_told_once);
	tcase_add_test(t, stop_tells_clients);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
