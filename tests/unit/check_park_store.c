/* SPDX-License-Identifier: Apache-2.0
 * Channels that wait for the disk: answers that are held back and what comes behind them, a full disk, both alarms at
 * once. The store does nothing until store_world_step(). */
#include <check.h>

#include "broker/table.h"
#include "tests/unit/channel_world.h"
#include "tests/unit/store_world.h"

enum { LIMIT = 64 << 20, HIGH = LIMIT + (1 << 20) };

static struct world w;
static struct peer p, other;
static struct inbox in;

static const struct span persistent = { (const uint8_t *)"\20\0\2", 3 };

static void
setup(void)
{
	world_init(&w);
	store_world_init(&w);
	memory_init(&w.b->memory, LIMIT);
	peer_open_to_hear(&p, &w);
	peer_open_to_hear(&other, &w);
	(void)store_world_queue(&w, "q");
	store_world_step(&w);
}

static void
teardown(void)
{
	inbox_fini(&in);
	peer_fini(&p);
	peer_fini(&other);
	for (unsigned i = 0; i < PARK_REASONS; i++)
		ck_assert(TAILQ_EMPTY(&w.a->parked[i]));
	store_world_fini(&w);
	world_fini(&w);
	world_held_nothing();
}

static void
expect(struct peer *of, uint32_t method)
{
	struct seen s;

	peer_read(of);
	s = peer_next(of);
	ck_assert_msg(s.id == method, "expected %u.%u, got %u.%u %s", method >> 16, method & 0xffff,
	    s.id >> 16, s.id & 0xffff, s.text);
}

static void
expect_nothing(struct peer *of)
{
	struct seen s;

	peer_read(of);
	s = peer_next(of);
	ck_assert_msg(s.type == 0, "unexpected %u.%u", s.id >> 16, s.id & 0xffff);
}

static struct channel *
channel(struct peer *of, uint16_t id)
{
	return connection_channel(of->c, id);
}

static uint64_t
ready(const char *name)
{
	return queue_find(vhost_find(w.b, SPAN_LIT("/")), span_str(name))->ready;
}

static void
qos(struct peer *of, uint16_t id)
{
	peer_method(of, id, AMQP_BASIC_QOS_METHOD, "\0\0\0\0\0\0\0", 7);
}

static void
publish(struct peer *of, uint16_t id, bool is_persistent)
{
	struct publish what = { .key = "q", .body = SPAN_LIT("m") };

	if (is_persistent)
		what.props = persistent;
	peer_publish(of, id, &what);
}

/* Arguments from short strings, an octet of bits, a table. */
struct method_args {
	uint8_t p[600];
	size_t n;
};

static struct method_args
args_of(const char *a, const char *b, const char *c, int bits, bool table)
{
	const char *const text[] = { a, b, c };
	struct method_args m = { .n = 2 };

	for (size_t i = 0; i < COUNT_OF(text); i++)
		if (text[i] != NULL)
			m.n += put_short(m.p + m.n, text[i]);
	if (bits >= 0)
		m.p[m.n++] = (uint8_t)bits;
	if (table)
		m.n += 4;
	return m;
}

enum { DURABLE = 2, NO_WAIT_DECLARE = 16 };

/* Each method that changes what survives, in an order in which each does change it. */
static const struct {
	uint32_t id;
	const char *a, *b, *c;
	int bits;
	bool table;
} changes[] = {
	{ AMQP_QUEUE_DECLARE_METHOD, "d", NULL, NULL, DURABLE, true },
	{ AMQP_EXCHANGE_DECLARE_METHOD, "x", "fanout", NULL, DURABLE, true },
	{ AMQP_EXCHANGE_DECLARE_METHOD, "y", "fanout", NULL, DURABLE, true },
	{ AMQP_EXCHANGE_BIND_METHOD, "y", "x", "", 0, true },
	{ AMQP_QUEUE_BIND_METHOD, "d", "x", "", 0, true },
	{ AMQP_QUEUE_UNBIND_METHOD, "d", "x", "", -1, true },
	{ AMQP_EXCHANGE_UNBIND_METHOD, "y", "x", "", 0, true },
	{ AMQP_EXCHANGE_DELETE_METHOD, "y", NULL, NULL, 0, false },
	{ AMQP_QUEUE_DELETE_METHOD, "d", NULL, NULL, 0, false },
};

static void
change(uint16_t id, size_t i)
{
	struct method_args m =
	    args_of(changes[i].a, changes[i].b, changes[i].c, changes[i].bits, changes[i].table);

	peer_method(&p, id, changes[i].id, m.p, m.n);
}

/* unbind's ids are not in a row: 40, 51 for exchanges; 50, 51 for queues. */
static uint32_t
ok_of(uint32_t id)
{
	return id == AMQP_EXCHANGE_UNBIND_METHOD ? AMQP_EXCHANGE_UNBIND_OK_METHOD : id + 1;
}

START_TEST(every_change_waits)
{
	for (size_t i = 0; i < COUNT_OF(changes); i++) {
		change(1, i);
		expect_nothing(&p);
		ck_assert_msg(channel(&p, 1)->is_parked, "change %zu does not wait", i);
		store_world_step(&w);
		expect(&p, ok_of(changes[i].id));
		ck_assert(!channel(&p, 1)->is_parked);
		qos(&p, 1);
		expect(&p, AMQP_BASIC_QOS_OK_METHOD);
	}
}
END_TEST

/* Whoever is told that it exists may rely on it. */
START_TEST(who_declares_it_again_waits_too)
{
	struct method_args m = args_of("d", NULL, NULL, DURABLE | _i, true);

	change(1, 0);
	peer_method(&other, 1, AMQP_QUEUE_DECLARE_METHOD, m.p, m.n);
	expect_nothing(&other);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DECLARE_OK_METHOD);
	expect(&other, AMQP_QUEUE_DECLARE_OK_METHOD);
}
END_TEST

START_TEST(what_does_not_survive_does_not_wait)
{
	struct method_args m = args_of("t", NULL, NULL, 0, true);

	change(1, 0); /* something else waits */
	expect_nothing(&p);
	peer_method(&p, 2, AMQP_QUEUE_DECLARE_METHOD, m.p, m.n);
	expect(&p, AMQP_QUEUE_DECLARE_OK_METHOD);
	m = args_of("t", "amq.fanout", "", 0, true);
	peer_method(&p, 2, AMQP_QUEUE_BIND_METHOD, m.p, m.n);
	expect(&p, AMQP_QUEUE_BIND_OK_METHOD);
	m = args_of("t", NULL, NULL, 0, false);
	peer_method(&p, 2, AMQP_QUEUE_PURGE_METHOD, m.p, m.n);
	expect(&p, AMQP_QUEUE_PURGE_OK_METHOD);
	peer_method(&p, 2, AMQP_QUEUE_DELETE_METHOD, m.p, m.n);
	expect(&p, AMQP_QUEUE_DELETE_OK_METHOD);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DECLARE_OK_METHOD);
}
END_TEST

START_TEST(no_wait_does_not_wait)
{
	struct method_args m = args_of("d", NULL, NULL, DURABLE | NO_WAIT_DECLARE, true);

	peer_method(&p, 1, AMQP_QUEUE_DECLARE_METHOD, m.p, m.n);
	ck_assert(!channel(&p, 1)->is_parked);
	qos(&p, 1);
	expect(&p, AMQP_BASIC_QOS_OK_METHOD);
}
END_TEST

START_TEST(purge_waits_for_all)
{
	struct method_args m = args_of("q", NULL, NULL, 0, false);

	publish(&p, 2, true);
	store_world_step(&w);
	peer_method(&p, 1, AMQP_QUEUE_PURGE_METHOD, m.p, m.n);
	ck_assert_uint_eq(ready("q"), 0);
	expect_nothing(&p);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_PURGE_OK_METHOD);
}
END_TEST

START_TEST(commit_waits)
{
	peer_method(&p, 1, AMQP_TX_SELECT_METHOD, NULL, 0);
	expect(&p, AMQP_TX_SELECT_OK_METHOD);
	publish(&p, 1, true);
	publish(&p, 1, false);
	peer_method(&p, 1, AMQP_TX_COMMIT_METHOD, NULL, 0);
	ck_assert_uint_eq(ready("q"), 2);
	publish(&p, 1, true);
	peer_method(&p, 1, AMQP_TX_COMMIT_METHOD, NULL, 0);
	expect_nothing(&p);
	ck_assert_uint_eq(ready("q"), 2);
	store_world_step(&w);
	expect(&p, AMQP_TX_COMMIT_OK_METHOD);
	ck_assert_uint_eq(ready("q"), 3);
	expect_nothing(&p);
	store_world_step(&w);
	expect(&p, AMQP_TX_COMMIT_OK_METHOD);
}
END_TEST

/* What stands behind it comes behind it; other channels go on. */
START_TEST(order_within_a_channel)
{
	change(1, 0);
	publish(&p, 1, false);
	qos(&p, 1);
	change(1, 8);
	qos(&p, 1);
	expect_nothing(&p);
	ck_assert_uint_eq(ready("q"), 0);
	qos(&p, 2);
	expect(&p, AMQP_BASIC_QOS_OK_METHOD);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DECLARE_OK_METHOD);
	expect(&p, AMQP_BASIC_QOS_OK_METHOD);
	expect_nothing(&p); /* the delete waits in its turn */
	ck_assert_uint_eq(ready("q"), 1);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DELETE_OK_METHOD);
	expect(&p, AMQP_BASIC_QOS_OK_METHOD);
	ck_assert_uint_eq(p.c->parked_count, 0);
	ck_assert_uint_eq(p.c->parked_bytes, 0);
}
END_TEST

/* RabbitMQ's order, and what kombu relies on. */
START_TEST(cancel_comes_behind_delete_ok)
{
	static const uint8_t consume[] = "\0\0\1d\1c\0\0\0\0\0";
	struct method_args m = args_of("d", NULL, NULL, 0, false);

	change(1, 0);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DECLARE_OK_METHOD);
	channel(&p, 1)->conn->client.cancel_notify = true;
	peer_method(&p, 1, AMQP_BASIC_CONSUME_METHOD, consume, sizeof consume - 1);
	expect(&p, AMQP_BASIC_CONSUME_OK_METHOD);
	peer_method(&p, 1, AMQP_QUEUE_DELETE_METHOD, m.p, m.n);
	expect_nothing(&p);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DELETE_OK_METHOD);
	expect(&p, AMQP_BASIC_CANCEL_METHOD);
}
END_TEST

START_TEST(close_comes_behind)
{
	change(1, 0);
	if (_i == 0)
		peer_method(&p, 1, AMQP_CHANNEL_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	else
		peer_method(&p, 0, AMQP_CONNECTION_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	expect_nothing(&p);
	store_world_step(&w);
	expect(&p, AMQP_QUEUE_DECLARE_OK_METHOD);
	expect(&p, _i == 0 ? AMQP_CHANNEL_CLOSE_OK_METHOD : AMQP_CONNECTION_CLOSE_OK_METHOD);
	ck_assert_uint_eq(w.b->stats.parked_dropped, 0);
}
END_TEST

START_TEST(the_peer_goes)
{
	change(1, 0);
	publish(&p, 1, true);
	change(2, 1);
	peer_fini(&p);
	ck_assert_uint_gt(w.b->stats.parked_dropped, 0);
	ck_assert_uint_eq(w.a->connection_count, 1);
	store_world_step(&w);
	ck_assert_uint_eq(ready("q"), 0);
	ck_assert_uint_eq(ready("d"), 0);
	peer_open_to_hear(&p, &w);
}
END_TEST

/* The node stops meanwhile: no -ok for what it cannot promise. */
START_TEST(the_node_stops)
{
	change(1, 0);
	amqp_stop(w.a, "shutdown");
	world_turns(&w, 2);
	expect(&p, AMQP_CONNECTION_CLOSE_METHOD);
	expect_nothing(&p);
}
END_TEST

/* A client that sends on and on behind a declare is not read any more. */
START_TEST(kept_frames_are_bounded)
{
	uint8_t body[3000] = { 0 };
	struct publish what = { .key = "q", .body = span_of(body, sizeof body) };
	size_t n;
	uint8_t *out = put_publish(1, &what, &n), *many = xmalloc(400 * n);

	for (unsigned i = 0; i < 400; i++)
		memcpy(many + i * n, out, n);
	change(1, 0);
	for (size_t sent = 0; sent < 400 * n;) {
		ssize_t took = send(p.fd, many + sent, 400 * n - sent, MSG_NOSIGNAL);

		world_turns(&w, 2);
		if (took > 0) {
			sent += (size_t)took;
		} else {
			ck_assert_uint_eq(p.c->io->paused, PAUSE_PARKED);
			ck_assert_uint_le(p.c->parked_bytes, (256 << 10) + n);
			ck_assert_uint_eq(ready("q"), 0);
			store_world_step(&w);
		}
	}
	store_world_step(&w);
	world_turns(&w, 20);
	ck_assert_uint_eq(ready("q"), 400);
	ck_assert_uint_eq(p.c->io->paused, 0);
	free(out);
	free(many);
}
END_TEST

/* --- a full disk -------------------------------------------------------- */

START_TEST(disk_alarm)
{
	store_world_low(&w, true);
	expect_nothing(&p);
	publish(&p, 1, false); /* needs no disk */
	ck_assert_uint_eq(ready("q"), 1);
	expect_nothing(&p);
	publish(&p, 1, true);
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	ck_assert(channel(&p, 1)->is_parked);
	publish(&p, 1, false); /* comes behind it */
	ck_assert_uint_eq(ready("q"), 1);
	publish(&p, 2, false);
	ck_assert_uint_eq(ready("q"), 2);
	publish(&p, 2, true);
	expect_nothing(&p); /* once is enough */
	expect_nothing(&other);
	peer_consume(&other, 1, "q", "t", false);
	inbox_fill(&in, &other);
	(void)inbox_method(&in, AMQP_BASIC_CONSUME_OK_METHOD);
	free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	peer_ack(&other, 1, 1);
	ck_assert_uint_eq(session_unacked(&channel(&other, 1)->session), 1);
	store_world_low(&w, false);
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_nothing(&p);
	inbox_fill(&in, &other);
	for (unsigned i = 0; i < 3; i++)
		free(inbox_content(&in, AMQP_BASIC_DELIVER_METHOD).body);
	inbox_empty(&in);
}
END_TEST

/* Quorum queues keep all messages: with a full disk those that are not persistent wait, too. */
START_TEST(quorum_queues_keep_all)
{
	static const uint8_t type[] = "\14x-queue-typeS\0\0\0\6quorum";
	struct table *t = table_from_raw(span_of(type, sizeof type - 1));
	struct queue_spec spec = { .name = SPAN_LIT("qq"), .durable = true, .arguments = t };
	struct publish what = { .key = "qq", .body = SPAN_LIT("m") };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(vhost_find(w.b, SPAN_LIT("/")), &spec, NULL, &q));
	table_free(&t);
	store_world_low(&w, true);
	publish(&p, 1, false);
	ck_assert_uint_eq(ready("q"), 1);
	peer_publish(&p, 1, &what);
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	ck_assert_uint_eq(ready("qq"), 0);
	store_world_low(&w, false);
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	ck_assert_uint_eq(ready("qq"), 1);
}
END_TEST

/* However the frames of a message were cut, it waits; a body that is under way is finished. */
START_TEST(cut_anywhere)
{
	struct publish what = { .key = "q", .props = persistent, .body = SPAN_LIT("body") };
	size_t n;
	uint8_t *out = put_publish(1, &what, &n);

	for (size_t at = 1; at < n; at++) {
		store_world_low(&w, true);
		peer_send(&p, out, at);
		peer_send(&p, out + at, n - at);
		expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
		ck_assert_uint_eq(ready("q"), at - 1);
		store_world_low(&w, false);
		expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
		ck_assert_uint_eq(ready("q"), at);
	}
	peer_send(&p, out, n - 2);
	store_world_low(&w, true);
	peer_send(&p, out + n - 2, 2);
	expect_nothing(&p);
	ck_assert_uint_eq(ready("q"), n);
	store_world_low(&w, false);
	free(out);
}
END_TEST

/* K25: two alarms, one of them ends: still blocked; one unblocked when the last one does. */
START_TEST(two_alarms)
{
	bool disk_first = _i & 1, disk_last = _i & 2;

	if (disk_first)
		store_world_low(&w, true);
	mem_add(MEM_OUTPUT, HIGH);
	store_world_low(&w, true);
	publish(&p, 1, true);
	publish(&other, 1, true);
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	expect(&other, AMQP_CONNECTION_BLOCKED_METHOD);
	if (disk_last) {
		mem_sub(MEM_OUTPUT, HIGH);
		world_turns(&w, 3);
	} else {
		store_world_low(&w, false);
	}
	publish(&p, 2, true);
	expect_nothing(&p);
	expect_nothing(&other);
	ck_assert_uint_eq(ready("q"), 0);
	if (disk_last) {
		store_world_low(&w, false);
	} else {
		mem_sub(MEM_OUTPUT, HIGH);
		world_turns(&w, 3);
	}
	expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect(&other, AMQP_CONNECTION_UNBLOCKED_METHOD);
	expect_nothing(&p);
	ck_assert_uint_eq(ready("q"), 3);
}
END_TEST

/* connection.close behind a publish that waits: not lost, unless the connection holds deliveries. */
START_TEST(close_at_a_full_disk)
{
	if (_i == 1) {
		publish(&other, 1, false);
		peer_consume(&p, 2, "q", "t", false);
		inbox_fill(&in, &p);
	}
	store_world_low(&w, true);
	publish(&p, 1, true);
	expect(&p, AMQP_CONNECTION_BLOCKED_METHOD);
	peer_method(&p, 0, AMQP_CONNECTION_CLOSE_METHOD, "\0\310\0\0\0\0\0", 7);
	if (_i == 1) {
		expect(&p, AMQP_CONNECTION_CLOSE_OK_METHOD);
		ck_assert_uint_gt(w.b->stats.parked_dropped, 0);
	} else {
		expect_nothing(&p);
	}
	store_world_low(&w, false);
	if (_i == 0) {
		expect(&p, AMQP_CONNECTION_UNBLOCKED_METHOD);
		expect(&p, AMQP_CONNECTION_CLOSE_OK_METHOD);
		ck_assert_uint_eq(w.b->stats.parked_dropped, 0);
	}
	ck_assert_uint_eq(ready("q"), 1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("park_store");
	TCase *t = tcase_create("park_store");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, every_change_waits);
	tcase_add_loop_test(t, who_declares_it_again_waits_too, 0, 2);
	tcase_add_test(t, what_does_not_survive_does_not_wait);
	tcase_add_test(t, no_wait_does_not_wait);
	tcase_add_test(t, purge_waits_for_all);
	tcase_add_test(t, commit_waits);
	tcase_add_test(t, order_within_a_channel);
	tcase_add_test(t, cancel_comes_behind_delete_ok);
	tcase_add_loop_test(t, close_comes_behind, 0, 2);
	tcase_add_test(t, the_peer_goes);
	tcase_add_test(t, the_node_stops);
	tcase_add_test(t, kept_frames_are_bounded);
	tcase_add_test(t, disk_alarm);
	tcase_add_test(t, quorum_queues_keep_all);
	tcase_add_test(t, cut_anywhere);
	tcase_add_loop_test(t, two_alarms, 0, 4);
	tcase_add_loop_test(t, close_at_a_full_disk, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
