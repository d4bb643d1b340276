/* SPDX-License-Identifier: Apache-2.0
 * Frames as they come from a socket: every method in every state of connection and channel gives what methods.def
 * says; broken frames, split frames and frames out of order are refused as RabbitMQ does. */
#include "amqp/frame.h"

#include <check.h>
#include <stdio.h>

#include "base/mem.h"
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
	for (int k = 0; k < MEM_KINDS; k++)
		if (k != MEM_SLABS)
			ck_assert_msg(mem_held[k] == 0, "%s: %lu bytes left", mem_kind_name(k),
			    (unsigned long)mem_held[k]);
}

static void
again(enum connection_state state)
{
	peer_fini(&p);
	peer_init(&p, &w);
	peer_reach(&p, state);
	ck_assert_int_eq(p.c->state, state);
}

static uint32_t
id_of(const struct method *m)
{
	return (uint32_t)m->class_id << 16 | m->method_id;
}

/* The least that the row's description allows: zeros. */
static size_t
least(const struct method *m, uint8_t *out)
{
	size_t n = 0;

	for (const char *k = m->arguments; *k != '\0'; k++)
		n += *k == 'h' ? 2 : *k == 'l' || *k == 'S' || *k == 't' ? 4 : *k == 'L' ? 8 : 1;
	memset(out, 0, n);
	return n;
}

static void
send_method(const struct method *m, uint16_t channel)
{
	uint8_t args[64];

	peer_method(&p, channel, id_of(m), args, least(m, args));
}

static void
expect_close(
    uint16_t code, const char *begins, uint16_t class_id, uint16_t method_id, const char *what)
{
	struct seen s = peer_next(&p);

	ck_assert_msg(
	    s.id == AMQP_CONNECTION_CLOSE_METHOD, "%s: no connection.close but %08x", what, s.id);
	ck_assert_msg(s.code == code, "%s: %u %s", what, s.code, s.text);
	ck_assert_msg(strncmp(s.text, begins, strlen(begins)) == 0, "%s: %s", what, s.text);
	ck_assert_msg(s.class_id == class_id && s.method_id == method_id, "%s: names %u.%u", what,
	    s.class_id, s.method_id);
}

static void
expect_silence(const char *what)
{
	struct seen s = peer_next(&p);

	ck_assert_msg(s.type == 0, "%s: unexpected frame, type %u method %08x %s", what, s.type,
	    s.id, s.text);
}

/* --- every method in every state ------------------------------------------------------------------ */

/* Before OPENING: connection.close is answered, all else ends the connection a moment later without a word. */
START_TEST(early_states)
{
	static const enum connection_state early[] = { CONN_STARTING, CONN_TUNING };

	for (size_t s = 0; s < COUNT_OF(early); s++) {
		for (int i = 0; i < METHOD_COUNT; i++) {
			for (uint16_t channel = 0; channel < 2; channel++) {
				const struct method *m = &methods[i];

				again(early[s]);
				send_method(m, channel);
				if (i == METHOD_CONNECTION_CLOSE && channel == 0) {
					ck_assert_uint_eq(
					    peer_next(&p).id, AMQP_CONNECTION_CLOSE_OK_METHOD);
					continue;
				}
				expect_silence(m->constant);
				ck_assert_msg(p.c->is_deaf, "%s", m->constant);
				ck_assert(!p.ended);
				world_pass(&w, CONN_TURN_AWAY_MS);
				peer_read(&p);
				expect_silence(m->constant);
				ck_assert_msg(p.ended, "%s", m->constant);
			}
		}
	}
}
END_TEST

START_TEST(opening_state)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		const struct method *m = &methods[i];

		again(CONN_OPENING);
		send_method(m, 3);
		expect_close(504, "CHANNEL_ERROR - channel 3 used in connection state opening", 0,
		    0, m->constant);
		again(CONN_OPENING);
		send_method(m, 0);
		if (i == METHOD_CONNECTION_OPEN)
			expect_close(530, "NOT_ALLOWED - vhost  not found", 10, 40, m->constant);
		else if (i == METHOD_CONNECTION_CLOSE)
			ck_assert_uint_eq(peer_next(&p).id, AMQP_CONNECTION_CLOSE_OK_METHOD);
		else
			expect_close(504,
			    "CHANNEL_ERROR - unexpected method in connection state opening",
			    m->class_id, m->method_id, m->constant);
	}
}
END_TEST

START_TEST(open_state_on_zero)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		const struct method *m = &methods[i];

		again(CONN_OPEN);
		send_method(m, 0);
		if (i == METHOD_CONNECTION_CLOSE)
			ck_assert_uint_eq(peer_next(&p).id, AMQP_CONNECTION_CLOSE_OK_METHOD);
		else if (i == METHOD_CONNECTION_UPDATE_SECRET)
			ck_assert_uint_eq(peer_next(&p).id, 10 << 16 | 71);
		else
			expect_close(504,
			    "CHANNEL_ERROR - unexpected method in connection state running",
			    m->class_id, m->method_id, m->constant);
	}
}
END_TEST

START_TEST(closing_state)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		for (uint16_t channel = 0; channel < 2; channel++) {
			const struct method *m = &methods[i];

			again(CONN_CLOSING);
			send_method(m, channel);
			if (channel == 0 &&
			    (i == METHOD_CONNECTION_CLOSE || i == METHOD_CONNECTION_CLOSE_OK)) {
				if (i == METHOD_CONNECTION_CLOSE)
					ck_assert_uint_eq(
					    peer_next(&p).id, AMQP_CONNECTION_CLOSE_OK_METHOD);
				expect_silence(m->constant);
				ck_assert(p.ended);
				continue;
			}
			expect_silence(m->constant);
			ck_assert_int_eq(p.c->state, CONN_CLOSING);
		}
	}
}
END_TEST

/* Open channel: handlers are reached exactly where the row says so. */
START_TEST(open_channel)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		const struct method *m = &methods[i];
		uint64_t before;

		again(CONN_OPEN);
		peer_channel(&p, 1);
		before = method_count[i];
		send_method(m, 1);
		ck_assert_msg(
		    method_count[i] == before + ((m->needs & ON_CHANNEL) != 0), "%s", m->constant);
		if ((m->needs & ON_ZERO) != 0 || i == METHOD_CHANNEL_CLOSE_OK ||
		    i == METHOD_CHANNEL_FLOW_OK)
			expect_close(503, "COMMAND_INVALID - unimplemented method", m->class_id,
			    m->method_id, m->constant);
		else if (i == METHOD_CHANNEL_OPEN)
			expect_close(
			    504, "CHANNEL_ERROR - second 'channel.open' seen", 20, 10, m->constant);
		else if (i == METHOD_CHANNEL_CLOSE)
			ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_CLOSE_OK_METHOD);
		else if (i == METHOD_CHANNEL_FLOW)
			expect_close(540, "NOT_IMPLEMENTED - active=false", 20, 20, m->constant);
		else if (i == METHOD_ACCESS_REQUEST)
			ck_assert_uint_eq(peer_next(&p).id, AMQP_ACCESS_REQUEST_OK_METHOD);
	}
}
END_TEST

START_TEST(free_channel)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		const struct method *m = &methods[i];

		again(CONN_OPEN);
		send_method(m, 7);
		if (i == METHOD_CHANNEL_OPEN)
			ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_OPEN_OK_METHOD);
		else
			expect_close(504, "CHANNEL_ERROR - expected 'channel.open'", m->class_id,
			    m->method_id, m->constant);
	}
}
END_TEST

/* We close channel 1, for a passive declaration of nothing. */
static void
close_channel(void)
{
	static const char declare[] = "\0\0\6absent\1\0\0\0\0";

	peer_method(&p, 1, AMQP_QUEUE_DECLARE_METHOD, declare, sizeof declare - 1);
	ck_assert_uint_eq(peer_next(&p).code, 404);
}

/* We closed it: dropped but for three. */
START_TEST(closing_channel)
{
	for (int i = 0; i < METHOD_COUNT; i++) {
		const struct method *m = &methods[i];

		again(CONN_OPEN);
		peer_channel(&p, 1);
		close_channel();
		send_method(m, 1);
		if (i == METHOD_CHANNEL_OPEN)
			expect_close(
			    504, "CHANNEL_ERROR - second 'channel.open' seen", 20, 10, m->constant);
		else if (i == METHOD_CHANNEL_CLOSE)
			ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_CLOSE_OK_METHOD);
		expect_silence(m->constant);
		ck_assert_int_eq(connection_channel(p.c, 1) != NULL, i != METHOD_CHANNEL_CLOSE_OK);
	}
}
END_TEST

/* --- broken frames -------------------------------------------------------------------------------- */

#define PUBLISH "\1\0\1\0\0\0\11\0\74\0\50\0\0\0\0\0\316"
#define HEADER(size) "\2\0\1\0\0\0\16\0\74\0\0\0\0\0\0\0\0\0" size "\0\0\316"
#define RAW(s) (s), sizeof(s) - 1

static const struct {
	const char *raw;
	size_t n;
	uint16_t code, class_id, method_id;
	const char *text;
} broken[] = {
	{ RAW("\1\0\1\0\0\0\4\0\62\0\12\0"), 501, 0, 0,
	    "FRAME_ERROR - type 1, all octets = <<0,50,0,10>>: {invalid_frame_end_marker,0}" },
	{ RAW("\3\0\1\0\0\0\3abc\377"), 501, 0, 0,
	    "FRAME_ERROR - type 3, all octets = <<...>>: {invalid_frame_end_marker,255}" },
	{ RAW("\10\0\0\0\0\0\0\40"), 501, 0, 0,
	    "FRAME_ERROR - type 8, all octets = <<>>: {invalid_frame_end_marker,32}" },
	{ RAW("\0\0\1\0\0\0\0\316"), 501, 0, 0,
	    "FRAME_ERROR - type 0, all octets = <<>>: unknown_frame" },
	{ RAW("\7\0\1\0\0\0\3abc\316"), 501, 0, 0,
	    "FRAME_ERROR - type 7, all octets = <<>>: unknown_frame" },
	{ RAW("\7\0\1\0\0\0\3"), 501, 0, 0,
	    "FRAME_ERROR - type 7, all octets = <<>>: unknown_frame" },
	{ RAW("\10\0\0\0\0\0\2xx\316"), 501, 0, 0,
	    "FRAME_ERROR - type 8, all octets = <<\"xx\">>: unknown_frame" },
	{ RAW("\3\0\1\0\2\0\1"), 501, 0, 0,
	    "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}" },
	{ RAW("\1\0\1\377\377\377\377"), 501, 0, 0,
	    "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large," },
	{ RAW("\1\0\1\0\0\0\2\0\62\316"), 501, 0, 0,
	    "FRAME_ERROR - type 1, all octets = <<0,50>>: unknown_frame" },
	{ RAW("\1\0\0\0\0\0\0\316"), 501, 0, 0,
	    "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame" },
	{ RAW("\2\0\1\0\0\0\1\0\316"), 501, 0, 0,
	    "FRAME_ERROR - type 2, all octets = <<0>>: unknown_frame" },
	{ RAW("\1\0\1\0\0\0\6\0\62\0\12\0\0\316"), 501, 50, 10,
	    "FRAME_ERROR - cannot decode <<0,0>>" },
	{ RAW("\1\0\1\0\0\0\5\0\74\0\120\0\316"), 501, 60, 80,
	    "FRAME_ERROR - cannot decode <<0>>" },
	{ RAW("\1\0\1\0\0\0\5\0\74\0\50\0\316"), 501, 60, 40, "FRAME_ERROR - cannot decode <<0>>" },
	{ RAW("\2\0\0\0\0\0\16\0\74\0\0\0\0\0\0\0\0\0\0\0\0\316"), 505, 0, 0,
	    "UNEXPECTED_FRAME - type 2, all octets = <<0,60" },
	{ RAW("\3\0\0\0\0\0\0\316"), 505, 0, 0, "UNEXPECTED_FRAME - type 3, all octets = <<>>" },
	{ RAW("\10\0\1\0\0\0\0\316"), 505, 0, 0, "UNEXPECTED_FRAME - type 8, all octets = <<>>" },
	{ RAW("\3\0\1\0\0\0\1x\316"), 505, 0, 0,
	    "UNEXPECTED_FRAME - expected method frame, got non method frame instead" },
	{ RAW("\3\0\5\0\0\0\1x\316"), 505, 0, 0,
	    "UNEXPECTED_FRAME - expected method frame, got non method frame instead" },
	{ RAW(HEADER("\0")), 505, 0, 0,
	    "UNEXPECTED_FRAME - expected method frame, got non method frame instead" },
	{ RAW(PUBLISH PUBLISH), 505, 60, 40,
	    "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame "
	    "instead" },
	{ RAW(PUBLISH "\3\0\1\0\0\0\1x\316"), 505, 60, 40,
	    "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame "
	    "instead" },
	{ RAW(PUBLISH HEADER("\3") PUBLISH), 505, 60, 40,
	    "UNEXPECTED_FRAME - expected content body, got non content body frame instead" },
	{ RAW(PUBLISH HEADER("\3") HEADER("\3")), 505, 60, 40,
	    "UNEXPECTED_FRAME - expected content body, got non content body frame instead" },
	{ RAW(PUBLISH HEADER("\3") "\3\0\1\0\0\0\4abcd\316"), 501, 60, 40,
	    "FRAME_ERROR - type 3, " },
	{ RAW("\1\0\1\0\0\0\4\3\347\0\12\316"), 503, 999, 10,
	    "COMMAND_INVALID - unimplemented method" },
	{ RAW("\1\0\0\0\0\0\4\3\347\0\12\316"), 503, 999, 10,
	    "COMMAND_INVALID - unimplemented method" },
	{ RAW("\1\0\1\0\0\0\4\0\62\0\13\316"), 503, 50, 11,
	    "COMMAND_INVALID - unimplemented method" },
	{ RAW("\1\377\377\0\0\0\5\0\24\0\12\0\316"), 530, 20, 10,
	    "NOT_ALLOWED - channel number 65535 is above" },
};

START_TEST(broken_frames)
{
	again(CONN_OPEN);
	peer_channel(&p, 1);
	peer_send(&p, broken[_i].raw, broken[_i].n);
	expect_close(broken[_i].code, broken[_i].text, broken[_i].class_id, broken[_i].method_id,
	    broken[_i].text);
	expect_silence(broken[_i].text);
}
END_TEST

/* The same, each octet in a read of its own: nothing may depend on where reads end. */
START_TEST(broken_frames_octet_by_octet)
{
	again(CONN_OPEN);
	peer_channel(&p, 1);
	for (size_t i = 0; i < broken[_i].n; i++)
		peer_send(&p, broken[_i].raw + i, 1);
	expect_close(
	    broken[_i].code, "", broken[_i].class_id, broken[_i].method_id, broken[_i].text);
	expect_silence(broken[_i].text);
}
END_TEST

/* Where frames can no longer be told apart nothing more is read, and there is no wait for close-ok. */
START_TEST(reading_stops_at_a_bad_end)
{
	again(CONN_OPEN);
	peer_channel(&p, 1);
	peer_send(&p, RAW("\1\0\1\0\0\0\4\0\62\0\12\0"
	                  "\1\0\2\0\0\0\5\0\24\0\12\0\316"));
	ck_assert_uint_eq(peer_next(&p).code, 501);
	expect_silence("behind a bad frame end");
	ck_assert(p.ended);
}
END_TEST

/* A method that is refused leaves the frames readable: close-ok is waited for, but not for ever. */
START_TEST(close_ok_has_a_limit)
{
	again(CONN_CLOSING);
	world_pass(&w, CONN_LINGER_MS - 1);
	peer_read(&p);
	ck_assert(!p.ended);
	world_pass(&w, 1);
	peer_read(&p);
	ck_assert(p.ended);
}
END_TEST

/* --- whole frames in every cut -------------------------------------------------------------------- */

START_TEST(split_at_every_octet)
{
	static const char stream[] = "\1\0\1\0\0\0\5\0\24\0\12\0\316"
	                             "\10\0\0\0\0\0\0\316"
	                             "\1\0\1\0\0\0\5\0\24\0\24\1\316"
	                             "\1\0\1\0\0\0\13\0\24\0\50\0\310\0\0\0\0\0\316";

	for (size_t cut = 0; cut < sizeof stream; cut++) {
		again(CONN_OPEN);
		peer_send(&p, stream, cut);
		peer_send(&p, stream + cut, sizeof stream - 1 - cut);
		ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_OPEN_OK_METHOD);
		ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_FLOW_OK_METHOD);
		ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_CLOSE_OK_METHOD);
		expect_silence("at the end");
		ck_assert_uint_eq(p.c->channel_count, 0);
	}
}
END_TEST

/* A size that is only declared costs nothing. */
START_TEST(declared_size_allocates_nothing)
{
	again(CONN_OPEN);
	peer_channel(&p, 1);
	peer_send(&p, RAW("\3\0\1\0\1\377\370"));
	ck_assert_uint_le(mem_held[MEM_INPUT], 256);
	ck_assert_uint_eq(mem_held[MEM_CONTENT], 0);
}
END_TEST

/* channel.flow; channel.close of one that we closed */
static const struct {
	const char *frame;
	size_t n, answer;
} floods[] = {
	{ RAW("\1\0\1\0\0\0\5\0\24\0\24\1\316"), 13 },
	{ RAW("\1\0\1\0\0\0\13\0\24\0\50\0\310\0\0\0\0\0\316"), 12 },
};

/* Thousands of requests whose answers nobody takes: reading stops, and what was read waits. */
START_TEST(unread_answers_stop_the_reading)
{
	static uint8_t many[19 * 10000];
	size_t n = 0, all = floods[_i].n * 10000, sent = 0;

	w.cfg.output = 64 << 10;
	w.cfg.output_max = 128 << 10;
	again(CONN_OPEN);
	peer_channel(&p, 1);
	if (_i == 1)
		close_channel();
	for (size_t at = 0; at < all; at += floods[_i].n)
		memcpy(many + at, floods[_i].frame, floods[_i].n);
	for (int i = 0; i < 200 && p.c->io->paused == 0; i++) {
		ssize_t took = send(p.fd, many + sent, all - sent, MSG_NOSIGNAL);

		if (took > 0)
			sent = (sent + (size_t)took) % all;
		world_turn(&w);
		ck_assert_uint_lt(p.c->io->pending, w.cfg.output_max + 1024);
	}
	ck_assert_uint_eq(p.c->io->paused, PAUSE_OUTPUT);
	ck_assert(p.c->client.output_full);
	/* until nothing came in ten turns: what was read is answered in shares of a turn */
	for (int idle = 0; idle < 10;) {
		uint8_t got[4096];
		ssize_t r = read(p.fd, got, sizeof got);

		world_turn(&w);
		idle = r < 0 ? idle + 1 : 0;
		n += r < 0 ? 0 : (size_t)r;
	}
	ck_assert_uint_eq(p.c->io->paused, 0);
	ck_assert(!p.c->client.output_full);
	ck_assert_uint_gt(n, w.cfg.output_max);
	ck_assert_uint_eq(n % floods[_i].answer, 0);
}
END_TEST

/* Slow requests that came in one read: after a share of time the others have their turn, and what is left comes again. */
START_TEST(slow_requests_share_the_turn)
{
	static const uint8_t flow[] = "\1\0\1\0\0\0\5\0\24\0\24\1\316";
	enum { ONE = sizeof flow - 1, MANY = 50 };
	uint8_t many[MANY * ONE];

	again(CONN_OPEN);
	peer_channel(&p, 1);
	for (int i = 0; i < MANY; i++)
		memcpy(many + (size_t)i * ONE, flow, ONE);
	w.l->share_us = 0;
	for (int i = 0; i < MANY; i++) {
		size_t left = sizeof many - (size_t)i * ONE;

		ck_assert(!p.c->io->is_readable);
		ck_assert_uint_eq(frame_walk(p.c, many + (size_t)i * ONE, left), ONE);
		ck_assert(p.c->io->is_readable == (i + 1 < MANY));
		loop_read(w.l); /* nothing is kept: takes it off the list */
		w.l->share_us = 0;
	}
	w.l->share_us = 1000000;
	ck_assert_uint_eq(frame_walk(p.c, many, sizeof many), sizeof many);
	world_turn(&w);
	for (int i = 0; i < 2 * MANY; i++) {
		peer_read(&p);
		ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_FLOW_OK_METHOD);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("frame");
	TCase *t = tcase_create("states"), *f = tcase_create("frames");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, early_states);
	tcase_add_test(t, opening_state);
	tcase_add_test(t, open_state_on_zero);
	tcase_add_test(t, closing_state);
	tcase_add_test(t, open_channel);
	tcase_add_test(t, free_channel);
	tcase_add_test(t, closing_channel);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(f, setup, teardown);
	tcase_set_timeout(f, 60);
	tcase_add_loop_test(f, broken_frames, 0, COUNT_OF(broken));
	tcase_add_loop_test(f, broken_frames_octet_by_octet, 0, COUNT_OF(broken));
	tcase_add_test(f, reading_stops_at_a_bad_end);
	tcase_add_test(f, close_ok_has_a_limit);
	tcase_add_test(f, split_at_every_octet);
	tcase_add_test(f, declared_size_allocates_nothing);
	tcase_add_loop_test(f, unread_answers_stop_the_reading, 0, COUNT_OF(floods));
	tcase_add_test(f, slow_requests_share_the_turn);
	suite_add_tcase(s, f);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
