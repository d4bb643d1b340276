/* SPDX-License-Identifier: Apache-2.0
 * What a disk says of a chain is not what its files have. */
#include "tests/unit/chain_world.h"

/* A record says so, and it stands in the journal when the node starts. */
static void
say_of_segment(struct lane *l, uint32_t i, uint64_t end, uint64_t more)
{
	struct segment g = *l->segment[i];
	uint8_t *p;
	size_t n;

	g.end = end != 0 ? end : g.end;
	g.last += more;
	g.live += more;
	p = seg_encode(l, &g, &n);
	(void)seg_append(cw.store, p, n);
	free(p);
}

static void
fill(struct owner *q)
{
	for (unsigned i = 0; i < 50000; i++) {
		owner_publish(q, 20, true, 0);
		if (i % 100 == 0)
			(void)chain_turn();
	}
	chain_settle();
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(q->lane->segments >= 3 && q->lane->live == 0);
}

START_TEST(no_place_in_the_file)
{
	struct owner *q = &cw.q[0];
	uint64_t live, got;

	chain_init((uint64_t)_i);
	chain_start();
	fill(q);
	chain_is_durable();
	live = q->lane->segment[_i]->live;
	say_of_segment(q->lane, (uint32_t)_i, FILE_HEADER, 0);
	chain_stop();
	cw.is_damaged = true;
	chain_start();
	REQUIRE(cw.report.messages == 50000);
	got = owner_drain(q);
	REQUIRE(got == 50000 - live && q->lost == live);
	REQUIRE(cw.store->stats.damaged == 1 && cw.store->stats.damaged_messages == live);
	chain_settle();
	REQUIRE(lane_unread(q->lane) == 0 && q->lane->segments == 0);
	chain_stop();
	chain_start();
	REQUIRE(cw.report.messages == 0);
	chain_fini();
}
END_TEST

START_TEST(all_of_them_have_none)
{
	struct owner *q = &cw.q[0];

	chain_init(7);
	chain_start();
	fill(q);
	chain_is_durable();
	for (uint32_t i = 0; i < q->lane->segments; i++)
		say_of_segment(q->lane, i, FILE_HEADER, 0);
	chain_stop();
	cw.is_damaged = true;
	chain_start();
	REQUIRE(owner_drain(q) == 0 && q->lost == 50000);
	chain_fini();
}
END_TEST

/* It counts 40 messages that were never written. */
START_TEST(more_than_there_are)
{
	struct owner *q = &cw.q[0];

	chain_init(8);
	chain_start();
	fill(q);
	chain_is_durable();
	say_of_segment(q->lane, q->lane->segments - 1, 0, 40);
	chain_stop();
	cw.is_damaged = true;
	chain_start();
	REQUIRE(cw.report.messages == 50040);
	REQUIRE(owner_drain(q) == 50000 && q->lost == 40);
	REQUIRE(lane_unread(q->lane) == 0);
	chain_fini();
}
END_TEST

/* The lane's sum itself is wrong: it is put right, once. */
START_TEST(a_sum_that_is_wrong)
{
	struct owner *q = &cw.q[0];

	chain_init(9);
	chain_start();
	fill(q);
	cw.is_damaged = true;
	q->lane->unread += 5;
	REQUIRE(owner_drain(q) == 50000 && q->lost == 5);
	REQUIRE(lane_unread(q->lane) == 0 && cw.store->stats.damaged == 1);
	chain_fini();
}
END_TEST

/* ---- seqs ---- */

static const struct sync_setting always = { .policy = SYNC_POLICY_ALWAYS };

static void
append_mark(struct owner *q, uint64_t next_seq)
{
	struct op_mark mark = { q->lane->name, next_seq, 0 };
	uint64_t lsn;

	op_mark_encode(&mark, store_append(cw.store, OP_MARK_SIZE, 1, always, &lsn));
}

static void
append_message(struct owner *q, uint64_t seq)
{
	struct item *it = item_new(q->id, seq, 20);
	struct op_target target = { q->id, seq, 0 };
	struct op_msg m = { 0 };
	uint64_t lsn;

	item_describe(it, &m);
	m.target = &target;
	m.targets = 1;
	op_msg_encode(&m, store_append(cw.store, (uint32_t)op_msg_size(&m), 1, always, &lsn));
	item_unref(it);
}

/* A MARK, or a message, that is far from all others: left out, and the queue goes on. */
START_TEST(far_away)
{
	struct owner *q = &cw.q[0];

	chain_init(10);
	chain_start();
	for (unsigned i = 0; i < 10; i++)
		owner_publish(q, 20, true, 0);
	if (_i == 0)
		append_mark(q, SEQ_MAX);
	else
		append_message(q, SEQ_MAX);
	chain_stop();
	cw.is_damaged = true;
	chain_start();
	REQUIRE(cw.report.damaged == 1 && cw.report.messages == 10);
	owner_publish(q, 20, true, 0);
	REQUIRE(owner_drain(q) == 11);
	chain_fini();
}
END_TEST

/* Messages that were not persistent have no record but the SEG of their file: it shows which seqs are used up, also when
 * all of them are gone and the journal file with the SEG, too. */
START_TEST(a_segment_is_evidence)
{
	struct owner *q = &cw.q[0], *other = &cw.q[1];
	uint32_t first;

	chain_init(11);
	chain_start();
	for (unsigned i = 0; i < 10; i++)
		owner_publish(q, 20, false, 0);
	REQUIRE(lane_spill(q->lane, 0));
	chain_settle();
	REQUIRE(owner_drain(q) == 10);
	chain_settle();
	REQUIRE(files_in("segments") == 0);
	first = journal_current(cw.store->journal);
	for (unsigned i = 0; journal_oldest(cw.store->journal) <= first; i++) {
		REQUIRE(i < 20000);
		owner_publish(other, 1000, true, 0);
		owner_ack(other, owner_deliver(other));
		(void)chain_turn();
	}
	chain_is_durable();
	chain_stop();
	chain_start();
	REQUIRE(lane_next_seq(q->lane) == 11);
	chain_fini();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("read_ahead");
	TCase *t = tcase_create("read_ahead");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, no_place_in_the_file, 0, 3);
	tcase_add_test(t, all_of_them_have_none);
	tcase_add_test(t, more_than_there_are);
	tcase_add_test(t, a_sum_that_is_wrong);
	tcase_add_loop_test(t, far_away, 0, 2);
	tcase_add_test(t, a_segment_is_evidence);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
