/* SPDX-License-Identifier: Apache-2.0
 * The end of channels and connections that hold very much: in steps, and as if it were at once. */
#include <check.h>
#include <stdio.h>

#include "broker/session.h"
#include "tests/unit/amqp_world.h"
#include "tests/unit/channel_world.h"

enum { CONSUMERS = 3 * BROKER_END_MAX, QUEUES = 2 * BROKER_END_MAX / BROKER_END_QUEUE };

static struct world w;
static struct peer p;
static struct queue *q;

static void
setup(void)
{
	world_init(&w);
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	peer_channel(&p, 1);
	q = world_queue(&w, "q");
}

static void
teardown(void)
{
	peer_fini(&p);
	world_fini(&w);
	world_held_nothing();
}

static struct msg *
message(void)
{
	static const uint8_t meta[] = { 0, 1, 'k', 0xCE, 2, 0, 0, 0, 0, 0, 14, 0, 60, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0xCE };
	struct msg *m = msg_try_new(msg_wire_size(sizeof meta, 0));

	ck_assert_ptr_nonnull(m);
	memcpy(m->wire, meta, sizeof meta);
	m->names_len = 4;
	m->meta_len = sizeof meta;
	return m;
}

static void
many_consumers(uint16_t channel)
{
	struct session *s = &connection_channel(p.c, channel)->session;
	uint8_t prefix[12 + 8] = { FRAME_METHOD };
	struct consumer *k;

	for (unsigned i = 0; i < CONSUMERS; i++) {
		struct consumer_spec spec = { .no_ack = i % 2 };
		char tag[9];

		snprintf(tag, sizeof tag, "%08u", i);
		memcpy(prefix + 12, tag, 8);
		prefix[11] = 8;
		spec.tag = span_of(prefix + 12, 8);
		spec.prefix = span_of(prefix, sizeof prefix);
		ck_assert_ptr_null(session_consume(s, q, &spec, &k));
	}
	world_turn(&w);
}

static const struct error *
declare(struct client *c, const char *name, struct queue **out)
{
	struct queue_spec spec = { .name = span_str(name), .exclusive = true };

	return queue_declare(c->vhost, &spec, c, out);
}

static void
many_queues(void)
{
	char name[16];
	struct queue *mine;

	for (unsigned i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "mine-%u", i);
		ck_assert_ptr_null(declare(&p.c->client, name, &mine));
	}
}

/* Sends a frame without a turn. */
static void
say(uint16_t channel, uint32_t method, const void *args, size_t n)
{
	uint8_t out[64];
	size_t size = put_method(out, channel, method, args, n);

	ck_assert_int_eq(send(p.fd, out, size, MSG_NOSIGNAL), (ssize_t)size);
}

/* The answer comes when all is gone, after several turns; none takes more than it may, and nothing is delivered. */
static void
wait_for(uint32_t method)
{
	unsigned turns = 0;
	struct seen f;

	do {
		uint64_t consumers = w.b->stats.consumers, queues = w.b->stats.queues;

		world_turn(&w);
		ck_assert_uint_le(consumers - w.b->stats.consumers, 2 * BROKER_END_MAX + 2);
		ck_assert_uint_le(
		    queues - w.b->stats.queues, 2 * BROKER_END_MAX / BROKER_END_QUEUE + 2);
		if (w.b->stats.consumers > 0)
			queue_publish(q, message(), 0);
		ck_assert_uint_lt(++turns, 100);
		peer_read(&p);
		f = peer_next(&p);
	} while (f.type == 0);
	ck_assert_uint_gt(turns, 1);
	ck_assert_uint_eq(f.id, method);
	ck_assert_uint_eq(w.b->stats.consumers, 0);
	ck_assert_uint_eq(q->ready, w.b->stats.messages_ready);
	ck_assert_uint_gt(q->ready, 0);
}

static const uint8_t close_args[] = { 0, 200, 0, 0, 0, 0, 0 };

START_TEST(close_of_a_channel)
{
	many_consumers(1);
	say(1, AMQP_CHANNEL_CLOSE_METHOD, close_args, sizeof close_args);
	wait_for(AMQP_CHANNEL_CLOSE_OK_METHOD);
	ck_assert_uint_eq(w.b->stats.channels, 0);
	peer_channel(&p, 1);
}
END_TEST

START_TEST(close_of_a_connection)
{
	many_consumers(1);
	many_queues();
	say(0, AMQP_CONNECTION_CLOSE_METHOD, close_args, sizeof close_args);
	wait_for(AMQP_CONNECTION_CLOSE_OK_METHOD);
	ck_assert_uint_eq(w.b->stats.queues, 1);
}
END_TEST

/* An error of the channel: its number is free when the client has answered, and can be used while the old one ends. */
START_TEST(channel_error)
{
	many_consumers(1);
	say(1, AMQP_BASIC_ACK_METHOD, "\0\0\0\0\0\0\0\7", 9);
	world_turn(&w);
	peer_read(&p);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_CLOSE_METHOD);
	ck_assert_uint_gt(w.b->stats.consumers, 0);
	queue_publish(q, message(), 0);
	ck_assert_uint_eq(q->ready, 1);
	say(1, AMQP_CHANNEL_CLOSE_OK_METHOD, NULL, 0);
	say(1, AMQP_CHANNEL_OPEN_METHOD, "", 1);
	world_turn(&w);
	peer_read(&p);
	ck_assert_uint_eq(peer_next(&p).id, AMQP_CHANNEL_OPEN_OK_METHOD);
	world_turns(&w, 10);
	ck_assert_uint_eq(w.b->stats.consumers, 0);
	ck_assert_uint_eq(w.b->stats.channels, 1);
	ck_assert_uint_eq(p.c->ending, 0);
}
END_TEST

/* The client is gone without a word, or made an error that ends the connection. Its names are free at once. */
START_TEST(connection_lost)
{
	struct peer other;
	struct queue *theirs;
	const struct queue *old;
	char last[16];

	snprintf(last, sizeof last, "mine-%d", 0); /* the queues go newest first */
	many_consumers(1);
	many_queues();
	old = queue_find(p.c->client.vhost, span_str(last));
	peer_init(&other, &w);
	peer_reach(&other, CONN_OPEN);
	if (_i == 0) {
		close(p.fd);
		p.fd = -1;
	} else {
		say(77, AMQP_BASIC_ACK_METHOD, "\0\0\0\0\0\0\0\7", 9);
	}
	world_turn(&w);
	ck_assert_uint_gt(w.b->stats.queues, 2);
	ck_assert_ptr_eq(queue_find(other.c->client.vhost, span_str(last)), old);
	if (_i == 1) {
		ck_assert_ptr_nonnull(
		    queue_lookup(other.c->client.vhost, span_str(last), &other.c->client, &theirs));
	}
	ck_assert_ptr_null(declare(&other.c->client, last, &theirs));
	ck_assert_ptr_eq(theirs->owner, &other.c->client);
	world_turns(&w, 20);
	ck_assert_uint_eq(w.b->stats.queues, 2);
	ck_assert_uint_eq(w.b->stats.consumers, 0);
	ck_assert_uint_eq(w.b->stats.connections, _i == 0 ? 1 : 2);
	ck_assert_ptr_eq(queue_find(other.c->client.vhost, span_str(last)), theirs);
	peer_fini(&other);
}
END_TEST

/* The node stops in the middle of it: teardown. */
START_TEST(stop)
{
	many_consumers(1);
	many_queues();
	close(p.fd);
	p.fd = -1;
	if (_i > 0)
		world_turns(&w, (unsigned)_i);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ending");
	TCase *t = tcase_create("ending");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, close_of_a_channel);
	tcase_add_test(t, close_of_a_connection);
	tcase_add_test(t, channel_error);
	tcase_add_loop_test(t, connection_lost, 0, 2);
	tcase_add_loop_test(t, stop, 0, 5);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
