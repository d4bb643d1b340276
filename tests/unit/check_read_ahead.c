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
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
