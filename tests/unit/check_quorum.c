/* SPDX-License-Identifier: Apache-2.0
 * Quorum queues: what is refused, where messages go that come back, how often they did, and all of it after a kill. */
#include <stdlib.h>

#include "broker/binding.h"
#include "broker/dead_letter.h"
#include "broker/exchange.h"
#include "broker/quorum.h"
#include "broker/table.h"
#include "tests/unit/persist_peer.h"

enum { NO_LIMIT = -1 };

/* Further arguments of queues that are declared. */
static struct {
	int max_length, ttl_ms;
	bool keeps_letters; /* at least once, to queue "dead" */
} also;

static void
set_up(void)
{
	also.max_length = also.ttl_ms = NO_LIMIT;
	also.keeps_letters = false;
	setup();
}

static void
kill_node(void)
{
	node_settle(&n);
	restart(false);
}

static void
put_number(struct table_writer *w, const char *name, int value)
{
	struct field f = { .name = span_str(name), .kind = 'I', .integer = value };

	if (value != NO_LIMIT)
		table_put_field(w, &f);
}

static bool with_dead_letters;

/* x-queue-type quorum, x-delivery-limit or none */
static struct table *
arguments(int limit)
{
	struct table_writer w;
	struct table *t;

	table_writer_init(&w, 1024);
	table_put_string(&w, "x-queue-type", "quorum");
	put_number(&w, "x-delivery-limit", limit);
	put_number(&w, "x-max-length", also.max_length);
	put_number(&w, "x-message-ttl", also.ttl_ms);
	if (also.keeps_letters) {
		table_put_string(&w, "x-dead-letter-exchange", "");
		table_put_string(&w, "x-dead-letter-routing-key", "dead");
		table_put_string(&w, "x-dead-letter-strategy", "at-least-once");
		table_put_string(&w, "x-overflow", "reject-publish");
	}
	if (with_dead_letters)
		table_put_string(&w, "x-dead-letter-exchange", "amq.fanout");
	t = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
	return t;
}

static const struct error *
declare(
    const char *name, bool durable, bool auto_delete, bool exclusive, int limit, struct queue **q)
{
	struct table *t = arguments(limit);
	struct queue_spec spec = { .name = span_str(name),
		.durable = durable,
		.auto_delete = auto_delete,
		.exclusive = exclusive,
		.arguments = t };
	const struct error *e = queue_declare(n.w.vhost, &spec, &n.client, q);

	table_free(&t);
	return e;
}

static struct queue *
quorum(int limit)
{
	struct queue *q = NULL;
	const struct error *e = declare("q", true, false, false, limit, &q);

	ck_assert_msg(e == NULL, "%s", e != NULL ? e->text : "");
	return q;
}

/* Persistent and not in turn: quorum queues keep both. */
static void
put(struct queue *q, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++)
		(void)node_publish(&n, q, i % 2 ? world_msg(i, 8) : persistent_msg(i, 8), 0);
}

static void
take(struct queue *q, uint64_t *tag)
{
	struct entry e;
	uint32_t left;

	ck_assert_int_eq(session_get(&peer.session, q, false, &e, tag, &left), GET_GOT);
	msg_unref(&e.m);
}

static void
settle(uint64_t tag, bool multiple, enum settle how)
{
	ck_assert_ptr_null(session_settle(&peer.session, tag, multiple, how));
}

/* number and how often it came back, for each that is left, in order */
struct left {
	uint64_t number;
	uint32_t acquired;
};

static void
expect(struct queue *q, const struct left *want, size_t count)
{
	struct entry e;

	world_turn(&n.w);
	ck_assert_uint_eq(q->ready, count);
	for (size_t i = 0; i < count; i++) {
		ck_assert(queue_pop(q, &e));
		ck_assert_uint_eq(msg_number(e.m), want[i].number);
		ck_assert_uint_eq(e.acquired, want[i].acquired);
		ck_assert_int_eq((e.seq_flags & ENTRY_REDELIVERED) != 0, want[i].acquired > 0);
		queue_entry_gone(q, &e, ACK_ACKED);
		msg_unref(&e.m);
	}
	ck_assert_uint_eq(q->unacked, session_unacked(&peer.session));
}
#define EXPECT(q, ...)                                  \
	expect(q, (const struct left[]){ __VA_ARGS__ }, \
	    sizeof((const struct left[]){ __VA_ARGS__ }) / sizeof(struct left))

/* ---- what is refused ---- */

static const struct {
	const char *name;
	bool durable, auto_delete, exclusive;
	const char *text;
} refused[] = {
	{ "q", false, false, false, "invalid property 'non-durable' for queue 'q' in vhost '/'" },
	{ "q", true, false, true, "invalid property 'exclusive-owner' for queue 'q' in vhost '/'" },
	{ "q", false, false, true,
	    "invalid property 'exclusive-owner' for queue 'q' in vhost '/'" },
	{ "q", true, true, false, "invalid property 'auto-delete' for queue 'q' in vhost '/'" },
	{ "q", true, true, true, "invalid property 'auto-delete' for queue 'q' in vhost '/'" },
	{ "", true, false, false,
	    "Cannot declare a server-named queue for type rabbit_quorum_queue" },
	{ "", false, true, false,
	    "Cannot declare a server-named queue for type rabbit_quorum_queue" },
};

START_TEST(declared_as_they_must_be)
{
	struct queue *q;
	const struct error *e = declare(refused[_i].name, refused[_i].durable,
	    refused[_i].auto_delete, refused[_i].exclusive, NO_LIMIT, &q);

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->code, 406);
	ck_assert_str_eq(e->text + strlen("PRECONDITION_FAILED - "), refused[_i].text);
	ck_assert_uint_eq(n.w.broker->stats.queues, 0);
}
END_TEST

START_TEST(no_conditions_when_deleted)
{
	struct queue *q = quorum(NO_LIMIT);
	uint32_t messages;

	for (int i = 1; i < 4; i++) {
		const struct error *e = queue_delete(q, i & 1, i & 2, &messages);

		ck_assert_ptr_nonnull(e);
		ck_assert_int_eq(e->code, 540);
		ck_assert_ptr_nonnull(strstr(e->text, i & 1 ? "if-unused flag" : "if-empty flag"));
	}
	put(q, 1, 3);
	ck_assert_ptr_null(queue_delete(q, false, false, &messages));
	ck_assert_uint_eq(messages, 3);
}
END_TEST

/* Arguments are compared in RabbitMQ's order for this type. */
START_TEST(declared_again)
{
	static const char *const order[] = { "x-max-length", "x-delivery-limit", "x-message-ttl" };
	const struct error *e;
	struct queue *q;

	also.max_length = 5;
	also.ttl_ms = 1000;
	q = quorum(3);
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		also.max_length = i < 1 ? 6 : 5;
		also.ttl_ms = 2000;
		e = declare("q", true, false, false, i < 2 ? 4 : 3, &q);
		ck_assert_ptr_nonnull(e);
		ck_assert_ptr_nonnull(strstr(e->text, order[i]));
	}
}
END_TEST

/* A limit of the channel bars new consumers; those that are there do not obey it. */
START_TEST(limit_of_a_channel)
{
	struct queue *q = quorum(NO_LIMIT), *classic = node_queue(&n, "c", true);
	struct consumer *k;
	const struct error *e;

	(void)peer_consume(&peer, q, "a", false);
	session_set_limit(&peer.session, 2);
	e = peer_try_consume(&peer, q, "b", false, false, 0, &k);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->code, 540);
	(void)peer_consume(&peer, classic, "c", false);
	put(q, 1, 5);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 5);
	put(classic, 6, 8);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 5);
	settle(4, true, SETTLE_ACK);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 6);
}
END_TEST

/* "exclusive" of a consumer means nothing. */
START_TEST(exclusive_consumers)
{
	struct queue *q = quorum(NO_LIMIT);
	struct consumer *k;

	ck_assert_ptr_null(peer_try_consume(&peer, q, "a", true, true, 0, &k));
	ck_assert_ptr_null(peer_try_consume(&peer, q, "b", true, true, 0, &k));
	put(q, 1, 2);
	world_turn(&n.w);
	ck_assert_ptr_ne(peer.got[0].consumer, peer.got[1].consumer);
}
END_TEST

/* ---- what comes back ---- */

/* To the tail; with a delivery limit to the head. In the order in which they came back, both ways. Odd: after a kill. */
START_TEST(nacked)
{
	bool limited = _i < 2, killed = _i % 2 == 1;
	struct queue *q = quorum(limited ? 5 : NO_LIMIT);
	uint64_t tag[5];

	put(q, 1, 7);
	for (int i = 0; i < 5; i++)
		take(q, &tag[i]);
	settle(tag[4], false, SETTLE_REQUEUE);
	settle(tag[2], true, SETTLE_REQUEUE);
	settle(tag[3], false, SETTLE_REQUEUE);
	world_turn(&n.w);
	ck_assert_uint_eq(q->unacked, 0);
	if (killed) {
		kill_node();
		q = queue_find(n.w.vhost, SPAN_LIT("q"));
	}
	if (!limited)
		EXPECT(q, { 6, 0 }, { 7, 0 }, { 5, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 1 });
	else if (killed) /* the order of those that came back is not kept */
		EXPECT(q, { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 1 }, { 5, 1 }, { 6, 0 }, { 7, 0 });
	else
		EXPECT(q, { 5, 1 }, { 1, 1 }, { 2, 1 }, { 3, 1 }, { 4, 1 }, { 6, 0 }, { 7, 0 });
}
END_TEST

/* What a channel held when it went comes before all. */
START_TEST(channel_gone)
{
	struct queue *q = quorum(NO_LIMIT);
	uint64_t tag[3];

	put(q, 1, 5);
	for (int i = 0; i < 3; i++)
		take(q, &tag[i]);
	settle(tag[1], false, SETTLE_REQUEUE);
	end_peer();
	open_peer();
	EXPECT(q, { 1, 1 }, { 3, 1 }, { 4, 0 }, { 5, 0 }, { 2, 1 });
}
END_TEST

/* Much goes to the tail in several turns; a queue that is deleted or purged meanwhile takes it along. */
START_TEST(many_at_once)
{
	enum { MANY = 1000 };
	struct queue *q = quorum(NO_LIMIT);
	struct left want[MANY + 1];
	uint64_t tag;
	uint32_t messages;

	put(q, 1, MANY + 1);
	for (uint64_t i = 0; i < MANY; i++) {
		take(q, &tag);
		want[i + 1] = (struct left){ i + 1, 1 };
	}
	want[0] = (struct left){ MANY + 1, 0 };
	settle(0, true, SETTLE_REQUEUE);
	ck_assert_uint_eq(session_unacked(&peer.session), 0);
	ck_assert_uint_gt(q->unacked, 0);
	ck_assert_uint_eq(q->unacked + q->ready, MANY + 1);
	ck_assert_uint_eq(n.w.broker->stats.messages_unacknowledged, q->unacked);
	if (_i == 1) {
		ck_assert_ptr_null(queue_delete(q, false, false, &messages));
		world_turn(&n.w);
		ck_assert_uint_eq(n.w.broker->stats.messages_unacknowledged, 0);
		return;
	}
	if (_i == 3) {
		ck_assert_uint_eq(queue_purge(q), MANY + 1);
		ck_assert_uint_eq(n.w.broker->stats.messages_unacknowledged, 0);
		put(q, MANY + 2, MANY + 2);
		kill_node();
		q = queue_find(n.w.vhost, SPAN_LIT("q"));
		EXPECT(q, { MANY + 2, 0 });
		return;
	}
	if (_i == 2) { /* the node ends in good order before it is done */
		end_peer();
		node_close(&n);
		node_open(&n, 2000);
		open_peer();
		q = queue_find(n.w.vhost, SPAN_LIT("q"));
	}
	expect(q, want, MANY + 1);
}
END_TEST

/* Where the store can take no more, the old place has to do. */
START_TEST(disk_is_full)
{
	struct queue *q = quorum(NO_LIMIT);
	uint64_t tag[2];

	put(q, 1, 3);
	take(q, &tag[0]);
	take(q, &tag[1]);
	n.w.broker->disk_low = true;
	settle(tag[1], false, SETTLE_REQUEUE);
	settle(tag[0], false, SETTLE_REQUEUE);
	EXPECT(q, { 2, 1 }, { 1, 1 }, { 3, 0 });
}
END_TEST

/* Who gave them back takes them again before it is looked at how many there are; not so where nobody takes them. */
START_TEST(limits_after_consumers)
{
	struct queue *q;
	struct consumer *k;

	also.max_length = 1;
	q = quorum(_i == 0 ? NO_LIMIT : 5);
	k = peer_consume(&peer, q, "t", false);
	put(q, 1, 3);
	ck_assert_uint_eq(peer.count, 3);
	settle(0, true, SETTLE_REQUEUE);
	world_turn(&n.w);
	ck_assert_uint_eq(peer.count, 6);
	ck_assert_uint_eq(q->unacked, 3);
	session_cancel(&peer.session, k);
	settle(0, true, SETTLE_REQUEUE);
	EXPECT(q, { 3, 2 });
}
END_TEST

/* A dead letter whose target is full waits, over a kill as well: it is no message for consumers again. */
START_TEST(letters_wait)
{
	struct queue *q, *dead = node_queue(&n, "dead", true);
	uint64_t tag[3], now_ms;

	also.keeps_letters = true;
	q = quorum(1);
	for (uint64_t i = 1; i <= 4; i++)
		(void)node_publish(&n, q, persistent_msg(i, 8), 0);
	dead->refuses = true; /* there is no queue that holds nothing */
	dead->set.max_length = 0;
	dead->set.overflow = OVERFLOW_REJECT;
	n.w.broker->refusing++;
	for (int i = 0; i < 3; i++)
		take(q, &tag[i]);
	settle(tag[1], false, SETTLE_REJECT);
	settle(tag[0], false, SETTLE_REQUEUE);
	take(q, &tag[0]);
	settle(tag[0], false, SETTLE_REQUEUE);
	settle(tag[2], false, SETTLE_ACK);
	world_turn(&n.w);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(dead->ready, 0);
	if (_i == 1) {
		kill_node(); /* the queue "dead" is a usual one again */
		q = queue_find(n.w.vhost, SPAN_LIT("q"));
		dead = queue_find(n.w.vhost, SPAN_LIT("dead"));
		ck_assert_uint_eq(q->ready, 1);
	} else {
		dead->refuses = false;
		n.w.broker->refusing--;
	}
	now_ms = n.w.broker->now_ms + 1000;
	world_at(&n.w, now_ms);
	world_turn(&n.w);
	ck_assert_uint_eq(dead->ready, 2);
	kill_node();
	ck_assert_uint_eq(queue_find(n.w.vhost, SPAN_LIT("dead"))->ready, 2);
	EXPECT(queue_find(n.w.vhost, SPAN_LIT("q")), { 4, 0 });
}
END_TEST

/* Where they lead nowhere they are bounded, and all go when they can; what expired after them stays where a queue has it. */
START_TEST(letters_lead_nowhere)
{
	enum { HOLD = 8192, KEPT = 1 << 16, MANY = KEPT + HOLD };
	const struct broker_stats *stats = &n.w.broker->stats;
	struct queue *q, *dead;
	struct msg *m = persistent_msg(1, 8);
	struct entry e;
	uint64_t tag;
	uint32_t left;

	also.keeps_letters = true;
	also.ttl_ms = 10;
	q = quorum(NO_LIMIT);
	for (uint64_t i = 0; i < MANY; i++)
		(void)node_publish(&n, q, persistent_msg(i, 8), 0);
	world_at(&n.w, n.w.broker->now_ms + 10);
	world_turn(&n.w);
	ck_assert(stats->dead_letters_kept == HOLD && q->ready == MANY - HOLD);
	ck_assert(!queue_refuses(q, m));
	if (_i == 1) {
		kill_node();
		stats = &n.w.broker->stats;
		q = queue_find(n.w.vhost, SPAN_LIT("q"));
		ck_assert(stats->dead_letters_kept == HOLD && q->ready == MANY - HOLD);
	}
	/* somebody asks for what is behind them */
	ck_assert_int_eq(session_get(&peer.session, q, false, &e, &tag, &left), GET_LATER);
	for (int i = 0; i < 100 && stats->dead_letters_kept < KEPT; i++)
		(void)session_get(&peer.session, q, false, &e, &tag, &left);
	ck_assert(stats->dead_letters_kept == KEPT && q->ready == MANY - KEPT);
	ck_assert_int_eq(session_get(&peer.session, q, false, &e, &tag, &left), GET_EMPTY);
	ck_assert(queue_refuses(q, m));
	ck_assert_uint_eq(queue_purge(q), MANY - KEPT);
	ck_assert_uint_eq(stats->dead_letters_kept, KEPT);
	dead = node_queue(&n, "dead", true);
	ck_assert_ptr_null(binding_add(
	    exchange_find(n.w.vhost, SPAN_LIT("amq.fanout")), dead, NULL, SPAN_LIT(""), NULL));
	for (int i = 0; i < 1000 && stats->dead_letters_kept > 0; i++) {
		world_at(&n.w, n.w.broker->now_ms + 1000);
		node_settle(&n);
	}
	ck_assert(stats->dead_letters_kept == 0 && n.w.broker->kept_bytes == 0);
	ck_assert_uint_eq(dead->ready, KEPT);
	ck_assert(!queue_refuses(q, m));
	msg_unref(&m);
}
END_TEST

/* There may be so many that to give up all of them would take a turn too long. */
START_TEST(letters_go_with_the_queue)
{
	enum { MANY = 8192 };
	const struct broker_stats *stats = &n.w.broker->stats;
	struct msg *first = persistent_msg(1, 8);
	struct queue *q;
	uint32_t left;
	unsigned some = 1;

	also.keeps_letters = true;
	also.ttl_ms = 10;
	q = quorum(NO_LIMIT);
	msg_ref(first);
	for (uint64_t i = 0; i < MANY; i++)
		(void)node_publish(&n, q, i == 0 ? first : persistent_msg(i, 8), 0);
	world_at(&n.w, n.w.broker->now_ms + 10);
	ck_assert(stats->dead_letters_kept == MANY && q->ready == 0);
	if (_i == 0)
		ck_assert_ptr_null(queue_delete(q, false, false, &left));
	else
		ck_assert(!dead_letters_forget_some(n.w.vhost, &some));
	ck_assert(stats->dead_letters_kept == 0 && n.w.broker->kept_bytes == 0);
	ck_assert_uint_eq(first->refs, 2);
	while (queue_free_garbage(n.w.broker, 1000))
		continue;
	ck_assert_uint_eq(first->refs, 1);
	msg_unref(&first);
}
END_TEST

/* In a commit's record nothing else begins. */
START_TEST(within_a_commit)
{
	struct queue *q = quorum(NO_LIMIT);
	struct unacked_set set = { 0 };
	uint64_t tag;

	put(q, 1, 3);
	take(q, &tag);
	ck_assert_ptr_null(session_take(&peer.session, tag, false, &set));
	store_begin(n.w.broker->store);
	put(q, 4, 4);
	session_settle_taken(&peer.session, &set.item[0], SETTLE_REQUEUE);
	(void)store_end(n.w.broker->store);
	free(set.item);
	EXPECT(q, { 2, 0 }, { 3, 0 }, { 4, 0 }, { 1, 1 });
}
END_TEST

/* ---- how often ---- */

/* The queue's own limit, or the node's. */
START_TEST(delivery_limit)
{
	struct queue *q = quorum(_i == 0 ? 2 : NO_LIMIT);
	uint64_t tag;

	if (_i == 1)
		n.w.cfg.quorum_delivery_limit = 2;
	put(q, 1, 2);
	for (uint32_t i = 1; i <= 3; i++) {
		take(q, &tag);
		settle(tag, false, SETTLE_REQUEUE);
		ck_assert_uint_eq(q->ready, i < 3 ? 2 : 1);
	}
	kill_node();
	q = queue_find(n.w.vhost, SPAN_LIT("q"));
	EXPECT(q, { 2, 0 });
}
END_TEST

/* 1 came back three times, 2 once, and both are out when the process is killed; 3 is out for the first time. */
START_TEST(counts_after_a_kill)
{
	struct queue *q = quorum(_i == 0 ? 10 : 3);
	uint64_t tag[3];

	put(q, 1, 4);
	for (int i = 0; i < 3; i++) {
		take(q, &tag[0]);
		settle(tag[0], false, SETTLE_REQUEUE);
	}
	take(q, &tag[0]);
	take(q, &tag[1]);
	settle(tag[1], false, SETTLE_REQUEUE);
	take(q, &tag[1]);
	take(q, &tag[2]);
	kill_node();
	q = queue_find(n.w.vhost, SPAN_LIT("q"));
	world_turn(&n.w);
	if (_i == 0) {
		EXPECT(q, { 1, 4 }, { 2, 2 }, { 3, 1 }, { 4, 0 });
		return;
	}
	/* the kill was once too often for 1; and so it stays */
	ck_assert_uint_eq(q->ready, 3);
	kill_node();
	q = queue_find(n.w.vhost, SPAN_LIT("q"));
	EXPECT(q, { 2, 2 }, { 3, 1 }, { 4, 0 });
}
END_TEST

/* 2 was out once too often when the process was killed, so it leaves the queue before 1, which was never given out since. */
START_TEST(purged_after_a_kill)
{
	struct queue *q;
	uint64_t tag;

	with_dead_letters = true;
	q = quorum(1);
	with_dead_letters = false;
	put(q, 1, 3);
	take(q, &tag);
	take(q, &tag);
	settle(tag, false, SETTLE_REQUEUE);
	take(q, &tag);
	kill_node();
	q = queue_find(n.w.vhost, SPAN_LIT("q"));
	world_turn(&n.w);
	ck_assert_uint_eq(q->stats.over_delivery_limit, 1);
	ck_assert_uint_eq(queue_purge(q), 2);
	kill_node();
	q = queue_find(n.w.vhost, SPAN_LIT("q"));
	ck_assert_uint_eq(q->ready, 0);
}
END_TEST

static Suite *
quorum_suite(void)
{
	Suite *s = suite_create("quorum");
	TCase *t = tcase_create("quorum");

	tcase_add_checked_fixture(t, set_up, teardown);
	tcase_add_loop_test(t, declared_as_they_must_be, 0, COUNT_OF(refused));
	tcase_add_test(t, no_conditions_when_deleted);
	tcase_add_test(t, declared_again);
	tcase_add_test(t, limit_of_a_channel);
	tcase_add_test(t, exclusive_consumers);
	tcase_add_loop_test(t, nacked, 0, 4);
	tcase_add_test(t, channel_gone);
	tcase_add_loop_test(t, many_at_once, 0, 4);
	tcase_add_test(t, disk_is_full);
	tcase_add_loop_test(t, limits_after_consumers, 0, 2);
	tcase_add_loop_test(t, letters_wait, 0, 2);
	tcase_add_loop_test(t, letters_lead_nowhere, 0, 2);
	tcase_add_loop_test(t, letters_go_with_the_queue, 0, 2);
	tcase_add_test(t, within_a_commit);
	tcase_add_loop_test(t, delivery_limit, 0, 2);
	tcase_add_loop_test(t, counts_after_a_kill, 0, 2);
	tcase_add_test(t, purged_after_a_kill);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(quorum_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
