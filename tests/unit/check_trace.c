/* SPDX-License-Identifier: Apache-2.0
 * The firehose: who is told, what is not, and that it has a bound. */
#include "broker/trace.h"

#include <check.h>

#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/publish.h"
#include "broker/publisher.h"
#include "tests/unit/queue_world.h"

static struct world w;
static struct client c;
static struct queue *seen;

static struct queue *
declare(struct vhost *vh, const char *name)
{
	struct queue_spec spec = { .name = span_str(name) };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(vh, &spec, NULL, &q));
	return q;
}

static void
watch(struct vhost *vh)
{
	struct exchange *x = exchange_find(vh, span_str(trace_exchange));

	ck_assert_ptr_null(binding_add(x, seen, NULL, SPAN_LIT("#"), NULL));
}

static void
setup(void)
{
	world_init(&w);
	world_client(&w, &c);
	seen = declare(w.vhost, "seen");
}

static void
teardown(void)
{
	client_fini(&c);
	world_fini(&w);
}

/* To the default exchange, with the key k. */
static void
publish(uint32_t size, unsigned n)
{
	struct publisher *p = publisher_new(&c);
	enum published how;

	while (n-- > 0)
		ck_assert_ptr_null(publisher_publish(p, world_msg(n, size), &how));
	publisher_free(&p);
}

/* Nothing is made that nobody would get. */
START_TEST(nobody_listens)
{
	publish(8, 1);
	ck_assert_uint_eq(w.broker->tracing, 0);
	trace_switch(w.vhost, true);
	trace_switch(w.vhost, true);
	ck_assert_uint_eq(w.broker->tracing, 1);
	publish(8, 1);
	ck_assert(STAILQ_EMPTY(&w.broker->notices.waiting));
	watch(w.vhost);
	publish(8, 1);
	ck_assert(!STAILQ_EMPTY(&w.broker->notices.waiting));
	ck_assert_uint_eq(seen->ready, 0);
	world_turn(&w);
	ck_assert_uint_eq(seen->ready, 1);
	ck_assert_uint_eq(w.broker->notices.bytes, 0);
	trace_switch(w.vhost, false);
	publish(8, 1);
	ck_assert(STAILQ_EMPTY(&w.broker->notices.waiting));
}
END_TEST

/* Who takes the copies out is not told of. */
START_TEST(not_of_itself)
{
	struct session s;
	static const struct session_ops none = { NULL, NULL, NULL };
	struct queue *q = declare(w.vhost, "k");
	struct entry e;
	uint64_t tag;
	uint32_t left;

	trace_switch(w.vhost, true);
	watch(w.vhost);
	publish(8, 1);
	world_turn(&w);
	session_init(&s, &c, &none);
	ck_assert_int_eq(session_get(&s, q, true, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	world_turn(&w);
	ck_assert_uint_eq(seen->ready, 2);
	ck_assert_int_eq(session_get(&s, seen, true, &e, &tag, &left), GET_GOT);
	msg_unref(&e.m);
	world_turn(&w);
	ck_assert_uint_eq(seen->ready, 1);
	session_fini(&s);
}
END_TEST

/* A turn that never comes: the list does not grow without end, and what is left out is counted. */
START_TEST(bound)
{
	uint64_t told;

	trace_switch(w.vhost, true);
	watch(w.vhost);
	publish(64 << 10, 1000);
	ck_assert_uint_ge(w.broker->notices.bytes, NOTICE_BYTES_MAX);
	ck_assert_uint_le(w.broker->notices.bytes, NOTICE_BYTES_MAX + (80 << 10));
	ck_assert_uint_gt(w.broker->stats.notices_dropped, 400);
	world_turn(&w);
	told = w.broker->stats.notices;
	ck_assert_uint_eq(told + w.broker->stats.notices_dropped, 1000);
	ck_assert_uint_eq(seen->ready, told);
	publish(8, 1);
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.notices, told + 1);
}
END_TEST

/* Who makes more than can be sent on is to wait for it. */
START_TEST(pace)
{
	uint64_t eased = w.broker->letters_eased;

	trace_switch(w.vhost, true);
	watch(w.vhost);
	publish(64 << 10, 100);
	ck_assert(!w.broker->letters_late);
	publish(64 << 10, 200);
	ck_assert(w.broker->letters_late && w.broker->notices.are_many);
	ck_assert_uint_eq(w.broker->letters_eased, eased);
	world_turn(&w);
	ck_assert(!w.broker->letters_late && !w.broker->notices.are_many);
	ck_assert_uint_eq(w.broker->letters_eased, eased + 1);
	ck_assert_uint_eq(w.broker->stats.notices_dropped, 0);
	ck_assert_uint_eq(seen->ready, 300);
}
END_TEST

/* The broker cannot be made to wait for memory, so it leaves out what it would say; but not that memory is short. */
START_TEST(memory_is_short)
{
	const struct notice_spec plain = { .exchange = trace_exchange, .key = SPAN_LIT("k") },
	                         alarm = { .exchange = trace_exchange,
		                         .key = SPAN_LIT("k"),
		                         .is_alarm = true };

	watch(w.vhost);
	w.broker->memory.state = MEMORY_HIGH;
	notice_send(w.vhost, &plain);
	ck_assert_uint_eq(w.broker->stats.notices_dropped, 1);
	notice_send(w.vhost, &alarm);
	world_turn(&w);
	ck_assert_uint_eq(w.broker->stats.notices_dropped, 1);
	ck_assert_uint_eq(seen->ready, 1);
}
END_TEST

/* What waits for a vhost goes with it, and it is traced no more. */
START_TEST(vhost_goes)
{
	const struct vhost_spec spec = { .tracing = 1 };
	struct vhost *vh, *old = c.vhost;

	ck_assert_ptr_null(vhost_set(w.broker, SPAN_LIT("v"), &spec, &vh, NULL));
	ck_assert_uint_eq(w.broker->tracing, 1);
	seen = declare(vh, "seen");
	watch(vh);
	ck_assert_ptr_null(permission_set(c.user, vh, ".*", ".*", ".*"));
	c.vhost = vh;
	publish(8, 3);
	c.vhost = old;
	vhost_clear(vh);
	world_turn(&w);
	ck_assert_uint_eq(w.broker->tracing, 0);
	ck_assert_uint_eq(w.broker->notices.bytes, 0);
	ck_assert_ptr_null(vhost_find(w.broker, SPAN_LIT("v")));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("trace");
	TCase *t = tcase_create("trace");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, nobody_listens);
	tcase_add_test(t, not_of_itself);
	tcase_add_test(t, bound);
	tcase_add_test(t, pace);
	tcase_add_test(t, memory_is_short);
	tcase_add_test(t, vhost_goes);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
