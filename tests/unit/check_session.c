/* SPDX-License-Identifier: Apache-2.0
 * Sessions: tags, settling, prefetch, transactions, and what is kept of tags that stay open for long. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/two_peers.h"

static void
put(uint64_t n)
{
	static uint64_t number;

	while (n-- > 0)
		queue_publish(q, world_msg(++number, 8), 0);
}

/* ---- what RabbitMQ says to acks: four deliveries wait ---- */

static const struct {
	struct {
		uint64_t tag;
		bool multiple;
	} ack[3];
	const char *text; /* what the last one is answered; NULL: fine */
	unsigned left;
} ack_cases[] = {
	{ { { 1, false } }, NULL, 3 },
	{ { { 3, false }, { 1, false }, { 4, false } }, NULL, 1 },
	{ { { 3, true } }, NULL, 1 },
	{ { { 0, true } }, NULL, 0 },
	{ { { 0, true }, { 0, true } }, NULL, 0 },
	{ { { 2, false }, { 4, true } }, NULL, 0 },
	{ { { 3, false }, { 2, true } }, NULL, 1 },
	{ { { 0, false } }, "PRECONDITION_FAILED - unknown delivery tag 0", 4 },
	{ { { 5, false } }, "PRECONDITION_FAILED - unknown delivery tag 5", 4 },
	{ { { 5, true } }, "PRECONDITION_FAILED - unknown delivery tag 5", 4 },
	{ { { 1, false }, { 1, false } }, "PRECONDITION_FAILED - unknown delivery tag 1", 3 },
	{ { { 2, false }, { 2, true } }, "PRECONDITION_FAILED - unknown delivery tag 2", 3 },
	{ { { 4, true }, { 3, true } }, "PRECONDITION_FAILED - unknown delivery tag 3", 0 },
	{ { { 1ull << 63, false } },
	    "PRECONDITION_FAILED - unknown delivery tag 9223372036854775808", 4 },
	{ { { UINT64_MAX, true } },
	    "PRECONDITION_FAILED - unknown delivery tag 18446744073709551615", 4 },
};

START_TEST(acks)
{
	const struct error *e = NULL;

	(void)peer_consume(&peer[0], q, "t", false);
	put(4);
	for (int i = 0;
	     i < 3 && (ack_cases[_i].ack[i].tag != 0 || ack_cases[_i].ack[i].multiple || i == 0);
	     i++) {
		ck_assert_ptr_null(e);
		e = settle(ack_cases[_i].ack[i].tag, ack_cases[_i].ack[i].multiple, SETTLE_ACK);
	}
	if (ack_cases[_i].text == NULL)
		ck_assert_ptr_null(e);
	else
		ck_assert_str_eq(e->text, ack_cases[_i].text);
	ck_assert_uint_eq(session_unacked(&peer[0].session), ack_cases[_i].left);
	ck_assert_uint_eq(q->unacked, ack_cases[_i].left);
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, ack_cases[_i].left);
	ck_assert_uint_eq(q->stats.ack, 4 - ack_cases[_i].left);
}
END_TEST

START_TEST(tags_count_all_deliveries)
{
	struct entry e;
	uint64_t tag;
	uint32_t left;

	(void)peer_consume(&peer[0], q, "no ack", true);
	put(40); /* tags 1 to 40: none of them waits */
	ck_assert_uint_eq(session_unacked(&peer[0].session), 0);
	ck_assert_ptr_nonnull(settle(7, false, SETTLE_ACK));
	session_cancel(&peer[0].session, session_find(&peer[0].session, SPAN_LIT("no ack")));
	put(2);
	ck_assert(session_get(&peer[0].session, q, false, &e, &tag, &left));
	ck_assert_uint_eq(tag, 41);
	ck_assert_uint_eq(left, 1);
	msg_unref(&e.m);
	ck_assert(session_get(&peer[0].session, q, true, &e, &tag, &left));
	ck_assert_uint_eq(tag, 42);
	msg_unref(&e.m);
	ck_assert(!session_get(&peer[0].session, q, true, &e, &tag, &left));
	ck_assert_uint_eq(session_allowance(&peer[0].session), 42);
	ck_assert_ptr_null(settle(41, true, SETTLE_ACK));
	ck_assert_uint_eq(q->stats.deliver_no_ack, 40);
	ck_assert_uint_eq(q->stats.get, 1);
	ck_assert_uint_eq(q->stats.get_no_ack, 1);
}
END_TEST

/* ---- prefetch ---- */

START_TEST(prefetch_of_a_consumer)
{
	peer[0].session.prefetch = 2;
	(void)peer_consume(&peer[0], q, "t", false);
	peer[0].session.prefetch = 1; /* for later consumers only */
	put(5);
	ck_assert_uint_eq(peer[0].count, 2);
	ck_assert_ptr_null(settle(1, false, SETTLE_REJECT));
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 3);
	ck_assert_ptr_null(settle(3, true, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 5);
	ck_assert_uint_eq(w.broker->stats.reject, 1);
}
END_TEST

/* K10 */
START_TEST(limit_of_the_session)
{
	(void)peer_consume(&peer[0], q, "1", false);
	(void)peer_consume(&peer[0], q, "2", false);
	put(6);
	ck_assert_uint_eq(peer[0].count, 6);
	session_set_limit(&peer[0].session, 2); /* below what is out: nothing until acks come */
	put(4);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 6);
	ck_assert(!broker_run(w.broker)); /* and no spinning */
	ck_assert_ptr_null(settle(4, true, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 6);
	ck_assert_ptr_null(settle(5, false, SETTLE_ACK));
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 7);
	session_set_limit(&peer[0].session, 3);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 8);
	session_set_limit(&peer[0].session, 0);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 10);
}
END_TEST

START_TEST(limit_is_shared_fairly)
{
	struct queue *other = world_queue(&w, "other");
	unsigned of[2] = { 0 };

	session_set_limit(&peer[0].session, 1);
	(void)peer_consume(&peer[0], q, "1", false);
	(void)peer_consume(&peer[0], other, "2", false);
	for (uint64_t i = 0; i < 20; i++) {
		put(1);
		queue_publish(other, world_msg(i, 8), 0);
	}
	for (uint64_t tag = 1; tag <= 20; tag++) {
		world_turn(&w);
		ck_assert_uint_eq(peer[0].count, tag);
		of[peer[0].got[tag - 1].consumer->queue == other]++;
		ck_assert_ptr_null(settle(tag, false, SETTLE_ACK));
	}
	ck_assert_uint_eq(of[0], 10);
	ck_assert_uint_eq(of[1], 10);
}
END_TEST

/* Thousands of consumers under one limit, each on a queue of its own or all on one: a message costs a few of them a look,
 * and nobody waits for ever. */
START_TEST(limit_of_very_many)
{
	enum { MANY = 4000 };
	static struct queue *queue[MANY];
	static unsigned of[MANY];
	uint64_t before;
	char name[16];

	memset(of, 0, sizeof of);
	session_set_limit(&peer[0].session, 1);
	for (int i = 0; i < MANY; i++) {
		struct consumer *k;

		snprintf(name, sizeof name, "%d", i);
		queue[i] = _i == 0 ? world_queue(&w, name) : q;
		ck_assert_ptr_null(peer_try_consume(&peer[0], queue[i], name, false, false,
		    _i == 2 ? (i * 7919) % MANY - MANY / 2 : 0, &k));
		k->limit = (uint32_t)i + 1; /* to know it by */
		queue_publish(queue[i], world_msg(1, 8), 0);
		queue_publish(queue[i], world_msg(1, 8), 0);
	}
	world_turn(&w);
	before = w.broker->work;
	for (uint64_t tag = 1; tag <= 2 * MANY; tag++) {
		ck_assert_uint_eq(peer[0].count, tag);
		of[peer[0].got[tag - 1].consumer->limit - 1]++;
		ck_assert_ptr_null(settle(tag, false, SETTLE_ACK));
		world_turn(&w);
	}
	ck_assert_uint_lt(w.broker->work - before, 2 * MANY * 2 * 1000);
	for (int i = 0; _i < 2 && i < MANY; i++)
		ck_assert_uint_eq(of[i], 2);
	ck_assert(!broker_run(w.broker));
}
END_TEST

/* With few of them priority decides among those that waited. */
START_TEST(limit_and_priority)
{
	struct consumer *k[20];
	char name[16];

	session_set_limit(&peer[0].session, 1);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "%d", i);
		ck_assert_ptr_null(
		    peer_try_consume(&peer[0], q, name, false, false, i * 7 % 20, &k[i]));
	}
	put(50);
	for (uint64_t tag = 1; tag <= 50; tag++) {
		world_turn(&w);
		ck_assert_uint_eq(peer[0].count, tag);
		ck_assert_int_eq(peer[0].got[tag - 1].consumer->priority, 19);
		ck_assert_ptr_null(settle(tag, false, SETTLE_ACK));
	}
}
END_TEST

/* A consumer that goes while it waits, and a session that ends while others wait. */
START_TEST(waiting_and_gone)
{
	struct consumer *k[40];
	char name[16];

	session_set_limit(&peer[0].session, 1);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "%d", i);
		k[i] = peer_consume(&peer[0], q, name, false);
	}
	put(10);
	world_turn(&w);
	for (int i = 1; i < 39; i++)
		session_cancel(&peer[0].session, k[i]);
	ck_assert_ptr_null(settle(1, false, SETTLE_ACK));
	world_turn(&w);
	ck_assert_ptr_eq(peer[0].got[1].consumer, k[39]);
	if (_i == 1)
		queue_remove(q);
	world_turn(&w);
	session_set_limit(&peer[0].session, 0);
}
END_TEST

START_TEST(found_by_tag)
{
	enum { MANY = 1000 };
	char name[16];

	for (int step = 0; step < 3 * MANY; step++) {
		int i = step % MANY;
		struct consumer *k;

		snprintf(name, sizeof name, "%d", i);
		k = session_find(&peer[0].session, span_str(name));
		if (step < MANY) {
			ck_assert_ptr_null(k);
			(void)peer_consume(&peer[0], q, name, false);
			continue;
		}
		ck_assert_int_eq(k == NULL, step >= 2 * MANY && i % 3 != 0);
		if (k == NULL)
			continue;
		ck_assert(span_eq(consumer_tag(k), span_str(name)));
		if (i % 3 != 0)
			session_cancel(&peer[0].session, k);
	}
	queue_remove(q);
	ck_assert_ptr_null(session_find(&peer[0].session, SPAN_LIT("0")));
	q = world_queue(&w, "q"); /* before the client was told */
	ck_assert_ptr_eq(session_find(&peer[0].session, SPAN_LIT("0")), NULL);
	(void)peer_consume(&peer[0], q, "0", false);
	world_turn(&w);
	ck_assert_ptr_nonnull(session_find(&peer[0].session, SPAN_LIT("0")));
}
END_TEST

START_TEST(limit_of_the_node)
{
	struct consumer *k;

	w.cfg.unacknowledged = 3;
	k = peer_consume(&peer[0], q, "t", false);
	ck_assert_uint_eq(k->limit, 3);
	put(5);
	ck_assert_uint_eq(peer[0].count, 3);
	ck_assert(!k->is_own_limit);                      /* named in the log, once */
	ck_assert_ptr_null(settle(2, false, SETTLE_ACK)); /* and it goes on */
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 4);
	ck_assert_ptr_null(settle(0, true, SETTLE_ACK));
	put(3);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 7);
	ck_assert_uint_eq(w.broker->stats.consumers_paused, 1);
	peer[1].session.prefetch = 10; /* what a client sets itself is not cut */
	ck_assert_uint_eq(peer_consume(&peer[1], q, "t", false)->limit, 10);
	w.cfg.consumers = 2;
	ck_assert_str_eq(peer_try_consume(&peer[1], q, "u", false, false, 0, &k)->text,
	    "PRECONDITION_FAILED - cannot consume from queue 'q' in vhost '/': the limit "
	    "limits.consumers (2) is "
	    "reached");
}
END_TEST

/* ---- the end of a session ---- */

/* K13: what a dead consumer held is there once, redelivered, at its place. */
START_TEST(what_was_out_goes_back)
{
	struct entry e;

	(void)peer_consume(&peer[0], q, "t", false);
	put(10);
	ck_assert_ptr_null(settle(2, false, SETTLE_ACK));
	ck_assert_ptr_null(settle(5, false, SETTLE_ACK));
	session_cancel(&peer[0].session, session_find(&peer[0].session, SPAN_LIT("t")));
	put(1);
	peer_fini(&peer[0]);
	ck_assert_uint_eq(q->ready, 9);
	ck_assert_uint_eq(q->unacked, 0);
	for (uint64_t last = 0; queue_pop(q, &e); last = e.seq_flags) {
		ck_assert_uint_gt(e.seq_flags, last);
		ck_assert_uint_eq(
		    e.seq_flags & ENTRY_REDELIVERED, q->ready > 0 ? ENTRY_REDELIVERED : 0);
		msg_unref(&e.m);
	}
	peer_init(&peer[0], &client);
}
END_TEST

START_TEST(recover_gives_new_tags)
{
	(void)peer_consume(&peer[0], q, "t", false);
	put(2);
	session_recover(&peer[0].session);
	ck_assert_uint_eq(session_unacked(&peer[0].session), 0);
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 4);
	ck_assert_uint_eq(peer[0].got[2].number, peer[0].got[0].number);
	ck_assert_uint_eq(peer[0].got[3].tag, 4);
	ck_assert(peer[0].got[3].redelivered);
	ck_assert_ptr_nonnull(settle(1, false, SETTLE_ACK));
	ck_assert_uint_eq(w.broker->stats.redeliver, 2);
}
END_TEST

/* ---- transactions ---- */

START_TEST(transaction)
{
	struct unacked_set set = { 0 };

	peer[0].session.prefetch = 8;
	(void)peer_consume(&peer[0], q, "t", false);
	put(10);
	ck_assert_ptr_null(session_take(&peer[0].session, 6, false, &set));
	ck_assert_ptr_null(session_take(&peer[0].session, 3, true, &set));
	ck_assert_uint_eq(set.count, 4);
	ck_assert_str_eq(session_take(&peer[0].session, 3, false, &set)->text,
	    "PRECONDITION_FAILED - unknown delivery tag 3");
	ck_assert_ptr_nonnull(session_take(&peer[0].session, 0, false, &set));
	ck_assert_uint_eq(q->unacked, 8); /* they count until the commit */
	world_turn(&w);
	ck_assert_uint_eq(peer[0].count, 8);
	session_put_back(&peer[0].session, &set);
	ck_assert_uint_eq(session_unacked(&peer[0].session), 8);
	for (uint64_t tag = 8; tag >= 1; tag -= tag > 1 ? 2 : 1) {
		ck_assert_ptr_null(session_take(&peer[0].session, tag, false, &set));
		if (tag == 2)
			tag = 3; /* then the odd ones below: 1 */
		if (tag == 1)
			break;
	}
	session_put_back(&peer[0].session, &set);
	ck_assert_ptr_null(session_take(&peer[0].session, 0, true, &set));
	ck_assert_uint_eq(set.count, 8);
	for (uint32_t i = 0; i < set.count; i++) {
		ck_assert_uint_eq(set.item[i].tag, i + 1); /* in order again */
		session_settle_taken(
		    &peer[0].session, &set.item[i], i == 7 ? SETTLE_REQUEUE : SETTLE_ACK);
	}
	free(set.item);
	world_turn(&w);
	ck_assert_uint_eq(q->stats.ack, 7);
	ck_assert_uint_eq(peer[0].count, 11);
	ck_assert(peer[0].got[8].redelivered);
}
END_TEST

/* ---- one tag is held while others go by ---- */

static const struct {
	unsigned held, every,
	    batch; /* `held` ones are kept, one of `every`; the others acked, last first, `batch` in a row */
	bool no_ack_too; /* every other delivery goes to a consumer that does not acknowledge */
	unsigned messages, bytes_max;
} sparse_cases[] = {
	{ 1, 1, 1, false, 10000000, 4 << 10 },
	{ 1, 1, 100, false, 2000000, 64 << 10 },
	{ 50, 1000, 1, false, 2000000, 32 << 10 },
	{ 200, 7, 64, false, 2000000, 128 << 10 },
	{ 3, 1, 1, true, 2000000, 4 << 10 },
};

START_TEST(memory_stays_bounded)
{
	uint64_t most = 0, held = 0, first_held = 0, pending[100], n_pending = 0, unknown = 0;
	struct session *s = &peer[0].session;

	(void)peer_consume(&peer[0], q, "t", false);
	if (sparse_cases[_i].no_ack_too)
		(void)peer_consume(&peer[0], q, "no ack", true);
	for (uint64_t i = 1; i <= sparse_cases[_i].messages; i++) {
		peer[0].count = 0;
		queue_publish(q, world_msg(i, 8), 0);
		if (peer[0].got[0].consumer->no_ack)
			continue;
		if (held < sparse_cases[_i].held && (i / 2 % sparse_cases[_i].every) == 0) {
			held++;
			first_held = first_held == 0 ? peer[0].got[0].tag : first_held;
			continue;
		}
		pending[n_pending++] = peer[0].got[0].tag;
		if (n_pending < sparse_cases[_i].batch)
			continue;
		if (mem_held[MEM_ENTRIES] > most)
			most = mem_held[MEM_ENTRIES];
		while (n_pending > 0)
			unknown +=
			    session_settle(s, pending[--n_pending], false, SETTLE_ACK) != NULL;
	}
	ck_assert_uint_eq(unknown, 0);
	ck_assert_uint_eq(held, sparse_cases[_i].held);
	ck_assert_uint_eq(session_unacked(s), held + n_pending);
	ck_assert_uint_lt(most, sparse_cases[_i].bytes_max);
	ck_assert_ptr_null(session_settle(s, first_held, false, SETTLE_ACK));
	ck_assert_ptr_nonnull(session_settle(s, first_held, false, SETTLE_ACK));
	ck_assert_ptr_null(session_settle(s, 0, true, SETTLE_ACK));
	ck_assert_uint_eq(q->unacked, 0);
}
END_TEST

/* Every tenth tag stays open for 5,000 others and goes then: those in the sorted array come and go all the time. */
START_TEST(sliding_window)
{
	enum { EVERY = 10, FOR = 5000, MANY = 1000000 };
	struct session *s = &peer[0].session;
	uint64_t most = 0, unknown = 0;

	(void)peer_consume(&peer[0], q, "t", false);
	for (uint64_t tag = 1; tag <= MANY; tag++) {
		peer[0].count = 0;
		queue_publish(q, world_msg(tag, 8), 0);
		if (tag % EVERY != 0)
			unknown += session_settle(s, tag, false, SETTLE_ACK) != NULL;
		else if (tag > FOR)
			unknown += session_settle(s, tag - FOR, false, SETTLE_ACK) != NULL;
		if (mem_held[MEM_ENTRIES] > most)
			most = mem_held[MEM_ENTRIES];
	}
	ck_assert_uint_eq(unknown, 0);
	ck_assert_uint_eq(session_unacked(s), FOR / EVERY);
	ck_assert_uint_lt(most, 8 * sizeof(struct unacked) * FOR / EVERY);
}
END_TEST

START_TEST(memory_falls_again)
{
	(void)peer_consume(&peer[0], q, "t", false);
	put(60000);
	ck_assert_uint_gt(mem_held[MEM_ENTRIES], 60000 * 56);
	for (uint64_t tag = 1; _i == 1 && tag <= 60000; tag++) {
		if (settle(tag, false, SETTLE_ACK) != NULL)
			ck_abort();
	}
	if (_i == 0)
		ck_assert_ptr_null(settle(0, true, SETTLE_ACK));
	ck_assert_uint_lt(mem_held[MEM_ENTRIES], 8 << 10);
}
END_TEST

/* Many deliveries of several sessions come back in several turns, those of one session together. */
START_TEST(many_come_back_in_turns)
{
	enum { EACH = 20000 };
	struct peer more[3];
	struct entry e;

	for (int i = 0; i < 3; i++) {
		peer_init(&more[i], &client);
		(void)peer_consume(&more[i], q, "t", false);
	}
	put(UINT64_C(3) * EACH);
	ck_assert_uint_eq(q->unacked, 3 * EACH);
	ck_assert(!session_must_wait(&more[0].session));
	peer_fini(&more[0]);
	ck_assert(session_must_wait(&more[1].session));
	peer_fini(&more[1]);
	peer_fini(&more[2]);
	ck_assert_uint_eq(q->ready, EACH);
	ck_assert_uint_eq(q->unacked, 2 * EACH);
	ck_assert(broker_run(w.broker));
	ck_assert_uint_eq(q->ready, 2 * EACH);
	ck_assert(!broker_run(w.broker));
	ck_assert_uint_eq(q->ready, 3 * EACH);
	ck_assert_uint_eq(q->unacked, 0);
	ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
	for (uint64_t i = 0, last = 0; i < UINT64_C(3) * EACH; i++) {
		if (!queue_pop(q, &e) || (e.seq_flags >> 8) != i + 1 ||
		    (e.seq_flags & ENTRY_REDELIVERED) == 0)
			ck_abort_msg("entry %lu after %lu", (unsigned long)(e.seq_flags >> 8),
			    (unsigned long)last);
		last = e.seq_flags >> 8;
		msg_unref(&e.m);
	}
}
END_TEST

/* The node stops, or the queue goes, while they are on their way. */
START_TEST(many_come_back_to_nothing)
{
	struct peer more[2];
	uint32_t messages;

	for (int i = 0; i < 2; i++) {
		peer_init(&more[i], &client);
		(void)peer_consume(&more[i], q, "t", false);
	}
	put(60000);
	for (int i = 0; i < 2; i++)
		peer_fini(&more[i]);
	ck_assert_uint_eq(q->unacked, 30000);
	if (_i == 1) {
		ck_assert_ptr_null(queue_delete(q, false, false, &messages));
		world_turn(&w);
		ck_assert_uint_eq(w.broker->stats.messages_unacknowledged, 0);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("session");
	TCase *t = tcase_create("session");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, acks, 0, COUNT_OF(ack_cases));
	tcase_add_test(t, tags_count_all_deliveries);
	tcase_add_test(t, prefetch_of_a_consumer);
	tcase_add_test(t, limit_of_the_session);
	tcase_add_test(t, limit_is_shared_fairly);
	tcase_add_loop_test(t, limit_of_very_many, 0, 3);
	tcase_add_test(t, limit_and_priority);
	tcase_add_loop_test(t, waiting_and_gone, 0, 2);
	tcase_add_test(t, found_by_tag);
	tcase_add_test(t, limit_of_the_node);
	tcase_add_test(t, what_was_out_goes_back);
	tcase_add_test(t, recover_gives_new_tags);
	tcase_add_test(t, transaction);
	tcase_add_loop_test(t, memory_stays_bounded, 0, COUNT_OF(sparse_cases));
	tcase_add_test(t, sliding_window);
	tcase_add_loop_test(t, memory_falls_again, 0, 2);
	tcase_add_test(t, many_come_back_in_turns);
	tcase_add_loop_test(t, many_come_back_to_nothing, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
