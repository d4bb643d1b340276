/* SPDX-License-Identifier: Apache-2.0
 * Words of refusals that no test of its own is about, and memory that runs out while a method is
 * handled. Compared with RabbitMQ where RabbitMQ has them. */
#include <check.h>

#include "tests/unit/channel_world.h"

static struct world w;
static struct peer p;

static void
setup(void)
{
	world_init(&w);
	peer_init(&p, &w);
	peer_reach(&p, CONN_OPEN);
	peer_channel(&p, 1);
	(void)world_queue(&w, "q");
}

static void
teardown(void)
{
	peer_fini(&p);
	world_fini(&w);
	world_held_nothing();
}

#define CONSUME(n, table) "\0\0\1q\0\0\0\0\0" n table

static const struct {
	uint16_t channel;
	uint32_t method;
	struct span args;
	const char *text;
} refusals[] = {
	{ 1, AMQP_BASIC_QOS_METHOD, SPAN_LIT("\0\0\0\1\0\0\0"),
	    "NOT_IMPLEMENTED - prefetch_size!=0 (1)" },
	{ 1, AMQP_BASIC_CONSUME_METHOD, SPAN_LIT(CONSUME("\20", "\12x-priorityS\0\0\0\0")),
	    "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected "
	    "integer, got longstr\"" },
	{ 1, AMQP_BASIC_CONSUME_METHOD,
	    SPAN_LIT(CONSUME("\35", "\27x-cancel-on-ha-failoverS\0\0\0\0")),
	    "PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' for queue 'q' in vhost "
	    "'/': "
	    "{unacceptable_type,longstr}" },
	{ 1, AMQP_BASIC_CONSUME_METHOD, SPAN_LIT(CONSUME("\25", "\17x-stream-offsetS\0\0\0\0")),
	    "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/' of "
	    "queue "
	    "type rabbit_classic_queue" },
	{ 1, AMQP_BASIC_CONSUME_METHOD, SPAN_LIT(CONSUME("\30", "\22x-consumer-timeoutI\377\377\377\377")),
	    "PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/': "
	    "{value_negative,-1}" },
	{ 2048, AMQP_CHANNEL_OPEN_METHOD, SPAN_LIT("\0"),
	    "NOT_ALLOWED - channel number 2048 is above channel_max (2047)" },
};

START_TEST(words)
{
	struct seen s;

	peer_method(&p, refusals[_i].channel, refusals[_i].method, refusals[_i].args.p,
	    refusals[_i].args.n);
	s = peer_next(&p);
	ck_assert_str_eq(s.text, refusals[_i].text);
	ck_assert_uint_eq((uint32_t)s.class_id << 16 | s.method_id, refusals[_i].method);
}
END_TEST

static const struct {
	uint16_t channel;
	uint32_t method;
	struct span args;
	const char *text;
} failures[] = {
	{ 5, AMQP_CHANNEL_OPEN_METHOD, SPAN_LIT("\0"), "RESOURCE_ERROR - no memory for channel 5" },
	{ 1, AMQP_QUEUE_DECLARE_METHOD, SPAN_LIT("\0\0\1n\0\0\0\0\5\2xyt\1"),
	    "RESOURCE_ERROR - no memory for an argument table" },
};

/* The first allocation of a peer's size fails. */
START_TEST(memory)
{
	mem_fail_try(1, 0);
	peer_method(&p, failures[_i].channel, failures[_i].method, failures[_i].args.p,
	    failures[_i].args.n);
	ck_assert_uint_eq(mem_tries_to_fail, 0);
	ck_assert_str_eq(peer_next(&p).text, failures[_i].text);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("refusal");
	TCase *t = tcase_create("refusal");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, words, 0, COUNT_OF(refusals));
	tcase_add_loop_test(t, memory, 0, COUNT_OF(failures));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
