/* SPDX-License-Identifier: Apache-2.0
 * Taps: what they see of messages, which of them, how many, and in how much memory. */
#include "broker/tap.h"

#include <check.h>
#include <stdio.h>

#include "broker/dead_letter.h"
#include "broker/exchange.h"
#include "broker/publish.h"
#include "queue_world.h"

enum { BEGIN = 100000 };

static struct world w;
static struct queue *q;
static uint64_t now;

static void
set_up(void)
{
	world_init(&w);
	world_at(&w, now = BEGIN);
	q = world_queue(&w, "q");
}

static void
tear_down(void)
{
	world_fini(&w);
	ck_assert_uint_eq(mem_held[MEM_OUTPUT], 0);
}

/* A message with a key and a body of n bytes, 0, 1, 2, ...; its exchange is "x". */
static struct msg *
message(const char *key, size_t n)
{
	size_t k = strlen(key), names = 1 + k + 3, meta = names + 7 + 12 + 2 + 1;
	struct msg *m = msg_try_new(msg_wire_size((uint32_t)meta, n));
	uint8_t *p = m->wire;

	memset(p, 0, msg_wire_size((uint32_t)meta, n));
	p[0] = 1;
	p[1] = 'x';
	p[2] = (uint8_t)k;
	memcpy(p + 3, key, k);
	m->names_len = (uint16_t)names;
	m->meta_len = (uint32_t)meta;
	m->body_size = n;
	for (size_t i = 0; i < n; i++)
		p[meta + 7 + i] = (uint8_t)i;
	return m;
}

static struct tap *
tap_on(struct queue *queue, const char *key, uint32_t rate, uint32_t body)
{
	struct tap_spec spec = { .queue = queue, .rate = rate, .body = body };

	if (key != NULL)
		spec.key = span_str(key);
	return tap_new(w.broker, &spec);
}

static void
publish(struct msg *m, uint64_t due_ms)
{
	struct route route = { .count = 1, .queue = &q };
	struct store_wait wait;

	ck_assert_int_eq(publish_deliver(w.broker, m, &route, due_ms, &wait), PUBLISH_ROUTED);
}

static void
enter(const char *key, size_t n)
{
	publish(message(key, n), 0);
}

static unsigned
take_all(struct tap *t)
{
	struct tapped m;
	unsigned n = 0;

	while (tap_take(t, &m))
		n++;
	return n;
}

START_TEST(a_queue_keeps_what_is_seen)
{
	struct tap *t = tap_on(q, NULL, 10, 4);
	struct tapped m;

	enter("a.b", 3);
	enter("", 100);
	enter("c", 0);
	ck_assert(tap_take(t, &m));
	ck_assert(span_is(m.exchange, "x") && span_is(m.key, "a.b"));
	ck_assert_uint_eq(m.body_size, 3);
	ck_assert_uint_eq(m.at_ms, now);
	ck_assert(m.body.n == 3 && memcmp(m.body.p, "\0\1\2", 3) == 0);
	ck_assert_uint_eq(m.props.n, 2);
	ck_assert(tap_take(t, &m));
	ck_assert(m.key.n == 0 && m.body.n == 4 && m.body_size == 100);
	ck_assert(tap_take(t, &m) && m.body.n == 0 && !tap_take(t, &m));
	ck_assert_uint_eq(q->ready, 3);
	ck_assert_uint_eq(tap_left_out(t), 0);
	tap_free(&t);
	ck_assert(!q->is_tapped);
	enter("d", 1);
	queue_remove(q);
}
END_TEST

START_TEST(a_long_body_is_put_together)
{
	static uint8_t part[1000];
	struct tap *t = tap_on(q, NULL, 10, 1500);
	struct msg *m = message("k", 0);
	struct msg_piece *last = NULL;
	struct tapped got;

	m->body_size = 3000;
	for (unsigned i = 0; i < 3; i++) {
		memset(part, 'a' + (int)i, sizeof part);
		ck_assert(msg_try_append(m, &last, part, sizeof part, 3000 - i * sizeof part));
	}
	publish(m, 0);
	ck_assert(tap_take(t, &got));
	ck_assert_uint_eq(got.body.n, 1500);
	ck_assert(got.body.p[999] == 'a' && got.body.p[1000] == 'b' && got.body_size == 3000);
	tap_free(&t);
}
END_TEST

START_TEST(so_many_a_second)
{
	struct tap *t = tap_on(q, NULL, 5, 10), *fast = tap_on(q, NULL, 1000, 10);

	for (unsigned i = 0; i < 100; i++)
		enter("k", 10);
	ck_assert_uint_eq(take_all(t), 5);
	ck_assert_uint_eq(tap_left_out(t), 95);
	ck_assert_uint_eq(tap_left_out(t), 0);
	ck_assert_uint_eq(take_all(fast), 100);
	world_at(&w, now += 1000);
	enter("k", 10);
	ck_assert_uint_eq(take_all(t), 1);
	tap_free(&t);
	ck_assert(q->is_tapped);
	tap_free(&fast);
	ck_assert(!q->is_tapped);
}
END_TEST

START_TEST(memory_is_bounded_and_used_again)
{
	struct tap *t = tap_on(q, NULL, TAP_RATE_MAX, TAP_BODY_MAX);
	struct tap_stats s;
	struct tapped m;
	uint64_t seen = 0;

	ck_assert_uint_eq(mem_held[MEM_OUTPUT], TAP_BYTES);
	for (unsigned i = 0; i < 10; i++)
		enter("k", TAP_BODY_MAX + 5);
	ck_assert_uint_eq(tap_left_out(t), 7);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert(tap_take(t, &m));
		seen++;
		ck_assert_uint_eq(m.body.n, TAP_BODY_MAX);
		ck_assert_uint_eq(m.body.p[TAP_BODY_MAX - 1], 255);
		enter("k", TAP_BODY_MAX); /* behind two that wait */
	}
	ck_assert_uint_eq(tap_left_out(t), 0);
	ck_assert_uint_eq(take_all(t), 3);
	tap_stats(w.broker, &s);
	ck_assert_uint_eq(s.messages, seen + 3);
	ck_assert_uint_eq(s.left_out, 7);
	tap_free(&t);
}
END_TEST

START_TEST(there_are_not_more_than_so_many)
{
	struct tap *t[TAPS_MAX], *more;
	struct tap_stats s;

	for (unsigned i = 0; i < TAPS_MAX; i++)
		t[i] = tap_on(q, NULL, 1, 1);
	more = tap_on(q, NULL, 1, 1);
	ck_assert_ptr_null(more);
	enter("k", 1);
	for (unsigned i = 0; i < TAPS_MAX; i++) {
		ck_assert_uint_eq(take_all(t[i]), 1);
		tap_free(&t[i]);
	}
	tap_stats(w.broker, &s);
	ck_assert_uint_eq(s.open, 0);
	ck_assert_uint_eq(s.made, TAPS_MAX);
	ck_assert_uint_eq(s.refused, 1);
}
END_TEST

START_TEST(a_queue_that_goes_is_noticed)
{
	struct tap *t = tap_on(q, NULL, 1, 1);

	enter("k", 1);
	queue_remove(q);
	world_turn(&w);
	ck_assert_ptr_null(tap_queue(t));
	q = world_queue(&w, "q");
	enter("k", 1);
	ck_assert_uint_eq(take_all(t), 1);
	tap_free(&t);
}
END_TEST

static struct exchange *
declare(const char *name)
{
	struct exchange_spec spec = { .name = span_str(name), .type = SPAN_LIT("fanout") };
	struct exchange *x = NULL;

	ck_assert_ptr_null(exchange_declare(w.vhost, &spec, &x));
	return x;
}

START_TEST(an_exchange_shows_what_is_published_to_it)
{
	struct exchange *x = declare("x"), *other = declare("y");
	struct tap *t =
	    tap_new(w.broker, &(struct tap_spec){ .exchange = x, .rate = 10, .body = 10 });
	struct session session;
	struct client client;
	struct msg *m = message("k", 3);
	static const struct session_ops none = { NULL, NULL, NULL };

	world_client(&w, &client);
	session_init(&session, &client, &none);
	publish_late(&session, other, m, 0);
	ck_assert_uint_eq(take_all(t), 0);
	publish_late(&session, x, m, 0);
	ck_assert_uint_eq(take_all(t), 1);
	ck_assert_ptr_null(exchange_delete(w.vhost, SPAN_LIT("x"), false));
	ck_assert_ptr_null(tap_exchange(t));
	tap_free(&t);
	msg_unref(&m);
	session_fini(&session);
	client_fini(&client);
}
END_TEST

START_TEST(dead_letters_are_published_too)
{
	struct exchange *x = declare("x");
	struct tap *t =
	    tap_new(w.broker, &(struct tap_spec){ .exchange = x, .rate = 10, .body = 10 });
	struct tapped m;

	q->set.dead_letter_exchange = SPAN_LIT("x");
	publish(message("k", 3), now + 10);
	world_at(&w, now += 100);
	world_turn(&w);
	ck_assert_uint_eq(q->ready, 0);
	ck_assert(tap_take(t, &m)); /* though no queue is bound */
	ck_assert(span_is(m.key, "k") && m.body.n == 3 && m.props.n > 20);
	tap_free(&t);
}
END_TEST

static const struct {
	const char *pattern, *key;
	bool matches;
} patterns[] = {
	{ "a.b", "a.b", true },
	{ "a.b", "a.bc", false },
	{ "a.b", "a", false },
	{ "a", "a.b", false },
	{ "", "", true },
	{ "", "a", false },
	{ "a", "", false },
	{ "#", "", true },
	{ "#", "a.b.c", true },
	{ "*", "", false },
	{ "*", "a", true },
	{ "*", "a.b", false },
	{ "*.*", "a.b", true },
	{ "*.b", ".b", true },
	{ "a.*", "a.", true },
	{ "a.#", "a", true },
	{ "a.#", "a.b.c", true },
	{ "#.a", "b.c.a", true },
	{ "#.a", "a", true },
	{ "#.a", "a.b", false },
	{ "#.a.#", "b.a.c", true },
	{ "#.a.#.b", "a.a.c.b.b", true },
	{ "#.a.#.b", "a.a.c.b.c", false },
	{ "#.#", "", true },
	{ "*.#.*", "a", false },
	{ "*.#.*", "a.b", true },
	{ "a*", "ab", false },
};

START_TEST(keys_match_as_in_a_topic_exchange)
{
	struct tap *t = tap_on(q, patterns[_i].pattern, 10, 10);

	enter(patterns[_i].key, 1);
	ck_assert_msg(
	    take_all(t) == patterns[_i].matches, "%s %s", patterns[_i].pattern, patterns[_i].key);
	ck_assert_uint_eq(tap_left_out(t), 0);
	tap_free(&t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("tap");
	TCase *t = tcase_create("tap");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, a_queue_keeps_what_is_seen);
	tcase_add_test(t, a_long_body_is_put_together);
	tcase_add_test(t, so_many_a_second);
	tcase_add_test(t, memory_is_bounded_and_used_again);
	tcase_add_test(t, there_are_not_more_than_so_many);
	tcase_add_test(t, a_queue_that_goes_is_noticed);
	tcase_add_test(t, an_exchange_shows_what_is_published_to_it);
	tcase_add_test(t, dead_letters_are_published_too);
	tcase_add_loop_test(t, keys_match_as_in_a_topic_exchange, 0, COUNT_OF(patterns));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
