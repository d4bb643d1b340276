/* SPDX-License-Identifier: Apache-2.0
 * Probes: a message of the broker's own all the way through, in nobody's way, and nothing is left of it. */
#include "broker/probe.h"

#include <check.h>

#include "broker/exchange.h"
#include "tests/unit/persist_world.h"

static struct node n;
static struct probe p;

static void
setup(void)
{
	node_init(&n);
}

static void
teardown(void)
{
	node_fini(&n);
}

static void
begin(void)
{
	enum probe_step step;
	const char *why = probe_begin(&p, n.w.broker, &step);

	ck_assert_msg(why == NULL, "%s", why);
	ck_assert_int_eq(step, PROBE_CONSUMER);
}

static void
end(void)
{
	probe_end(&p);
}

static void
nobody(void)
{
}

/* As if there had been none. */
static void
nothing_is_left(void)
{
	const struct broker_stats *s = &n.w.broker->stats;

	node_settle(&n);
	ck_assert(TAILQ_EMPTY(&vhost_own(n.w.broker)->queues));
	ck_assert_uint_eq(s->queues + s->channels + s->consumers, 0);
	ck_assert_uint_eq(s->messages_unacknowledged, 0);
	ck_assert_uint_eq(n.w.broker->vhosts->queues_by_name.count, 0);
}

/* From lists and from the numbers of what there is. */
static void
is_hidden(void)
{
	static const enum series_kind kinds[] = { SERIES_QUEUE, SERIES_CHANNEL, SERIES_CONNECTION };
	const struct broker *b = n.w.broker;
	uint32_t at;

	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		at = 0;
		while (series_next(&b->series, kinds[i], &at) != NULL)
			ck_assert_int_eq(kinds[i], SERIES_CONNECTION); /* n.client's */
	}
	at = 0;
	ck_assert_ptr_eq(series_next(&b->series, SERIES_VHOST, &at), &n.w.vhost->series);
	ck_assert_ptr_null(series_next(&b->series, SERIES_VHOST, &at));
	ck_assert_uint_eq(b->stats.queues + b->stats.channels + b->stats.consumers, 0);
	ck_assert_uint_eq(b->stats.exchanges, HASH_COUNT(n.w.vhost->exchanges));
}

START_TEST(all_the_way)
{
	begin();
	ck_assert(!p.is_delivered && !probe_is_confirmed(&p));
	node_settle(&n);
	ck_assert(p.is_delivered && probe_is_confirmed(&p));
	is_hidden();
	ck_assert(probe_ack(&p));
	end();
	nothing_is_left();
}
END_TEST

/* The two ends are told apart: it is delivered before it is safe, and may be safe and not delivered. */
START_TEST(step_by_step)
{
	begin();
	world_turn(&n.w);
	ck_assert(p.is_delivered && !probe_is_confirmed(&p));
	end();
	nothing_is_left();

	begin();
	queue_pause(p.queue, true);
	node_settle(&n);
	ck_assert(!p.is_delivered && probe_is_confirmed(&p));
	end();
	nothing_is_left();
}
END_TEST

/* Nobody finds it, and what holds for others does not hold for it. */
START_TEST(in_nobodys_way)
{
	n.w.cfg.queues = n.w.cfg.consumers = 1;
	n.w.broker->stats.consumers = 1;
	(void)node_queue(&n, "q", true);
	begin();
	ck_assert_ptr_null(vhost_find(n.w.broker, SPAN_LIT("")));
	ck_assert_ptr_null(queue_find(n.w.vhost, span_of(p.queue->name, p.queue->name_len)));
	node_settle(&n);
	ck_assert(p.is_delivered && probe_ack(&p));
	end();
	n.w.broker->stats.consumers--;
	queue_remove(queue_find(n.w.vhost, SPAN_LIT("q")));
	nothing_is_left();
}
END_TEST

/* A node that is killed in the midst of it starts without it, and reports no damage. */
START_TEST(killed_meanwhile)
{
	begin();
	node_settle(&n);
	node_restart(&n, false, 2000, end);
	ck_assert_uint_eq(n.w.broker->store->stats.damaged_messages, 0);
	nothing_is_left();
	/* nor does it come back from a place in the journal */
	node_restart(&n, true, 3000, nobody);
	ck_assert_ptr_null(n.w.broker->own);
	ck_assert_uint_eq(n.w.broker->stats.queues, 0);
	begin();
	node_settle(&n);
	ck_assert(p.is_delivered && probe_ack(&p));
	end();
	nothing_is_left();
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("probe");
	TCase *t = tcase_create("probe");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, all_the_way);
	tcase_add_test(t, step_by_step);
	tcase_add_test(t, in_nobodys_way);
	tcase_add_test(t, killed_meanwhile);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
