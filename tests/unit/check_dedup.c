/* SPDX-License-Identifier: Apache-2.0
 * Deduplication: which messages are duplicates, of what, for how long; what is remembered and what is not; and that a
 * restart, a killed process or a journal file that is given up changes nothing. */
#include "broker/dedup.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "broker/death.h"
#include "broker/exchange.h"
#include "broker/publish.h"
#include "broker/table.h"
#include "tests/unit/persist_world.h"

static struct node n;

static void
nothing(void)
{
}

static void
setup(void)
{
	node_init(&n);
}

static void
teardown(void)
{
	node_fini(&n);
	ck_assert_uint_eq(mem_held[MEM_WINDOWS], 0);
}

static void
restart(bool gently)
{
	node_restart(&n, gently, n.w.broker->now_ms, nothing);
}

/* ---- arguments ---- */

static struct table *
arguments(bool on, int64_t size, int64_t ttl_ms)
{
	struct table_writer w;
	struct table *t;
	struct field f = { .kind = 'l' };

	table_writer_init(&w, 1000);
	table_put_bool(&w, "x-message-deduplication", on);
	if (size != 0) {
		f.name = SPAN_LIT("x-cache-size");
		f.integer = size;
		table_put_field(&w, &f);
	}
	if (ttl_ms != 0) {
		f.name = SPAN_LIT("x-cache-ttl");
		f.integer = ttl_ms;
		table_put_field(&w, &f);
	}
	ck_assert(!w.failed);
	t = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
	return t;
}

static const struct error *
try_queue(const char *name, bool durable, bool on, int64_t size, int64_t ttl_ms)
{
	struct table *t = arguments(on, size, ttl_ms);
	struct queue_spec spec = { .name = span_str(name), .durable = durable, .arguments = t };
	struct queue *q = NULL;
	const struct error *e = queue_declare(n.w.vhost, &spec, NULL, &q);

	table_free(&t);
	return e;
}

static struct queue *
queue(const char *name)
{
	return queue_find(n.w.vhost, span_str(name));
}

static struct queue *
make_queue(const char *name, int64_t size, int64_t ttl_ms)
{
	const struct error *e = try_queue(name, true, true, size, ttl_ms);

	ck_assert_msg(e == NULL, "%s", e->text);
	return queue(name);
}

static const struct error *
try_exchange(const char *name, bool on, int64_t size, int64_t ttl_ms)
{
	struct table *t = arguments(on, size, ttl_ms);
	struct exchange_spec spec = {
		.name = span_str(name), .type = SPAN_LIT("fanout"), .durable = true, .arguments = t
	};
	struct exchange *x = NULL;
	const struct error *e = exchange_declare(n.w.vhost, &spec, &x);

	table_free(&t);
	return e;
}

static struct exchange *
exchange(const char *name)
{
	return exchange_find(n.w.vhost, span_str(name));
}

static void
require_text(const struct error *e, const char *text)
{
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->code, 406);
	ck_assert_msg(strstr(e->text, text) != NULL, "%s", e->text);
}

START_TEST(test_arguments)
{
	static const struct {
		int64_t size, ttl_ms;
		const char *text;
	} bad[] = {
		{ -1, 0, "invalid arg 'x-cache-size' for %s in vhost '/': {value_negative,-1}" },
		{ 10000001, 0,
		    "invalid arg 'x-cache-size' for %s in vhost '/': {value_too_large,10000001}" },
		{ 0, -5, "invalid arg 'x-cache-ttl' for %s in vhost '/': {value_negative,-5}" },
		{ 0, 315360000001,
		    "invalid arg 'x-cache-ttl' for %s in vhost '/': "
		    "{value_too_large,315360000001}" },
	};
	char text[200];

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		snprintf(text, sizeof text, bad[i].text, "queue 'q'");
		require_text(try_queue("q", true, true, bad[i].size, bad[i].ttl_ms), text);
		snprintf(text, sizeof text, bad[i].text, "exchange 'x'");
		require_text(try_exchange("x", true, bad[i].size, bad[i].ttl_ms), text);
	}
	ck_assert_ptr_null(queue("q"));
	ck_assert_ptr_null(exchange("x"));
	ck_assert_ptr_null(try_queue("q", true, true, 5, 315360000000));
	ck_assert_ptr_null(try_exchange("x", true, 10000000, 1));
	require_text(try_queue("q", true, true, 6, 315360000000),
	    "inequivalent arg 'x-cache-size' for queue 'q' in vhost '/': received '6' but current "
	    "is "
	    "'5'");
	require_text(try_exchange("x", true, 10000000, 0),
	    "inequivalent arg 'x-cache-ttl' for exchange 'x' in vhost '/': received none but "
	    "current "
	    "is the value '1' of type '");
	ck_assert_ptr_null(try_exchange("x", true, 10000000, 1));
	/* told not to */
	ck_assert_ptr_null(try_queue("off", true, false, 6, 7));
	ck_assert_ptr_null(queue("off")->dedup);
	ck_assert_ptr_nonnull(queue("q")->dedup);
	ck_assert_ptr_null(try_queue("usual", true, true, 0, 0));
	queue_remove(queue("q"));
	ck_assert_ptr_null(exchange_delete(n.w.vhost, SPAN_LIT("x"), false));
	queue_remove(queue("usual"));
	ck_assert_ptr_null(n.w.broker->dedup); /* publishing costs nothing any more */
}
END_TEST

/* ---- messages ---- */

static uint64_t number;

/* headers: content of the table, or NULL; id: message-id, or NULL. */
static struct msg *
message(const char *x, const struct table_writer *headers, const char *id, bool persistent)
{
	uint8_t names[260] = { (uint8_t)strlen(x) }, props[2000], body[8];
	struct op_msg o = { .flags = persistent ? MSG_FLAG_PERSISTENT : 0 };
	uint16_t flags = PROP_DELIVERY_MODE;
	uint8_t *p = props + 2;
	struct msg *m;

	memcpy(names + 1, x, names[0]);
	names[1 + names[0]] = 0;
	if (headers != NULL) {
		flags |= PROP_HEADERS;
		put_be32(p, headers->n);
		memcpy(p + 4, headers->p, headers->n);
		p += 4 + headers->n;
	}
	*p++ = persistent ? 2 : 1;
	if (id != NULL) {
		flags |= PROP_MESSAGE_ID;
		*p++ = (uint8_t)strlen(id);
		memcpy(p, id, strlen(id));
		p += strlen(id);
	}
	put_be16(props, flags);
	number++;
	memcpy(body, &number, sizeof body);
	o.names = span_of(names, names[0] + 2u);
	o.props = span_of(props, (size_t)(p - props));
	o.body_size = sizeof body;
	o.body = span_of(body, sizeof body);
	m = persist_store_ops.make(n.w.broker, &o);
	ck_assert_ptr_nonnull(m);
	return m;
}

static struct store_wait last_wait;

/* To these queues, through that exchange. */
static void
deliver(struct msg *m, struct queue *a, struct queue *b)
{
	struct queue *list[2] = { a, b };
	struct route route = { .count = (a != NULL) + (b != NULL), .queue = list };

	(void)publish_deliver(n.w.broker, m, &route, 0, &last_wait);
}

/* Did it come in? */
static bool
send(struct queue *q, const char *id)
{
	uint64_t before = q->ready;

	deliver(message("", NULL, id, true), q, NULL);
	return q->ready > before;
}

static bool
send_field(struct queue *q, struct field f, const char *id)
{
	struct table_writer w;
	uint64_t before = q->ready;

	table_writer_init(&w, 1000);
	f.name = SPAN_LIT("x-deduplication-header");
	table_put_field(&w, &f);
	deliver(message("", &w, id, true), q, NULL);
	table_writer_fini(&w);
	return q->ready > before;
}

static struct field
text(const char *s)
{
	return (struct field){ .kind = 'S', .bytes = span_str(s) };
}

static struct field
integer(uint8_t kind, int64_t i)
{
	return (struct field){ .kind = kind, .integer = i };
}

START_TEST(test_keys)
{
	struct queue *q = make_queue("q", 0, 0);

	ck_assert(send(q, "a") && send(q, "b"));
	ck_assert(!send(q, "a") && !send(q, "b"));
	/* without a key, or with an empty one, never */
	ck_assert(send(q, NULL) && send(q, NULL) && send(q, "") && send(q, ""));
	ck_assert(send_field(q, text(""), NULL) && send_field(q, text(""), NULL));
	ck_assert(send_field(q, (struct field){ .kind = 'V' }, NULL));
	ck_assert(send_field(q, (struct field){ .kind = 'V' }, NULL));
	ck_assert(!send_field(q, (struct field){ .kind = 'V' }, "a"));
	/* the header comes first, and is the same key */
	ck_assert(!send_field(q, text("a"), "new"));
	ck_assert(send_field(q, text("c"), "a") && !send_field(q, text("c"), "d"));
	ck_assert(!send(q, "c"));
	ck_assert(send(q, "d"));
	/* a number is the same one in any width, and no text */
	ck_assert(send_field(q, integer('b', 7), NULL) && !send_field(q, integer('l', 7), NULL));
	ck_assert(!send_field(q, integer('I', 7), NULL) && send_field(q, text("7"), NULL));
	ck_assert(send_field(q, integer('I', -7), NULL) && send_field(q, integer('I', 8), NULL));
	ck_assert(send_field(q, (struct field){ .kind = 'd', .number = 7 }, NULL));
	ck_assert(!send_field(q, (struct field){ .kind = 'd', .number = 7 }, NULL));
	ck_assert(send_field(q, (struct field){ .kind = 't', .truth = true }, NULL));
	ck_assert(send_field(q, (struct field){ .kind = 't', .truth = false }, NULL));
	ck_assert(!send_field(q, (struct field){ .kind = 't', .truth = true }, NULL));
	ck_assert_uint_eq(q->stats.duplicates, q->dedup->duplicates);
	ck_assert_uint_eq(q->dedup->duplicates, 10);
	ck_assert_uint_eq(n.w.broker->stats.duplicates, 10);
}
END_TEST

START_TEST(test_window)
{
	struct queue *q = make_queue("q", 3, 0), *other;

	ck_assert(send(q, "1") && send(q, "2") && send(q, "3"));
	ck_assert(!send(q, "1")); /* a duplicate is not new: it stays as old as it is */
	ck_assert(send(q, "4"));
	ck_assert(send(q, "1") && !send(q, "3") && !send(q, "4") && send(q, "2"));
	ck_assert_uint_eq(window_count(q->dedup->window), 3);
	/* what left the queue is still known */
	ck_assert_uint_gt(queue_purge(q), 0);
	ck_assert(!send(q, "2"));
	/* each queue has its own; a new one of the same name knows nothing */
	other = make_queue("other", 3, 0);
	ck_assert(send(other, "2"));
	queue_remove(q);
	q = make_queue("q", 3, 0);
	ck_assert(send(q, "2") && !send(q, "2") && !send(other, "2"));
}
END_TEST

START_TEST(test_time)
{
	struct queue *q = make_queue("q", 0, 500);
	struct broker *b = n.w.broker;
	char id[20];

	ck_assert(send(q, "a"));
	world_at(&n.w, 1499);
	ck_assert(!send(q, "a") && send(q, "b"));
	world_at(&n.w, 1500);
	ck_assert(send(q, "a") && !send(q, "b"));
	world_at(&n.w, 1999);
	ck_assert(!send(q, "a") && send(q, "b"));
	/* what is over goes, whether somebody publishes or not */
	for (int i = 0; i < 20000; i++) {
		snprintf(id, sizeof id, "%d", i);
		ck_assert(send(q, id));
	}
	(void)make_queue("second", 0, 10);
	world_at(&n.w, 3000);
	for (int i = 0; i < 3; i++)
		dedup_tend(b);
	ck_assert_uint_eq(window_count(q->dedup->window), 0);
	/* a clock that was set back forgets nothing */
	ck_assert(send(q, "c"));
	b->now_ms = 2000;
	ck_assert(!send(q, "c"));
	dedup_tend(b);
	ck_assert(!send(q, "c"));
}
END_TEST

/* ---- exchanges, several queues ---- */

static void
send_through(const char *x, const char *id, struct queue *a, struct queue *b)
{
	deliver(message(x, NULL, id, true), a, b);
}

START_TEST(test_exchange)
{
	struct queue *a = node_queue(&n, "a", true), *b = node_queue(&n, "b", true);

	ck_assert_ptr_null(try_exchange("x", true, 0, 0));
	send_through("x", "1", NULL, NULL); /* no queue takes it: it may come again */
	send_through("x", "1", a, b);
	send_through("x", "1", a, b);
	ck_assert(a->ready == 1 && b->ready == 1);
	ck_assert_uint_eq(exchange("x")->dedup->duplicates, 1);
	ck_assert_uint_eq(n.w.broker->stats.duplicates, 1);
	/* through others it comes in */
	send_through("y", "1", a, NULL);
	send_through("", "1", a, NULL);
	ck_assert_uint_eq(a->ready, 3);
	send_through("x", NULL, a, b);
	send_through("x", NULL, a, b);
	ck_assert(a->ready == 5 && b->ready == 3);
	ck_assert_ptr_null(exchange_delete(n.w.vhost, SPAN_LIT("x"), false));
	ck_assert_ptr_null(try_exchange("x", true, 0, 0));
	send_through("x", "1", a, b);
	ck_assert(a->ready == 6 && b->ready == 4);
}
END_TEST

START_TEST(test_fan_out)
{
	struct queue *a = make_queue("a", 0, 0), *b = node_queue(&n, "b", true);
	struct queue *c = make_queue("c", 0, 0);

	ck_assert_ptr_null(try_exchange("x", true, 0, 0));
	ck_assert(send(a, "1"));
	send_through("y", "1", a, b); /* dropped by one only */
	send_through("y", "1", b, a);
	ck_assert(a->ready == 1 && b->ready == 2);
	send_through("y", "1", a, c);
	ck_assert(a->ready == 1 && c->ready == 1);
	send_through("y", "1", a, c); /* by both */
	ck_assert(a->ready == 1 && c->ready == 1);
	/* an exchange does not remember what all its queues dropped */
	send_through("x", "1", a, c);
	send_through("x", "1", b, NULL);
	ck_assert_uint_eq(b->ready, 3);
	send_through("x", "1", b, NULL);
	ck_assert_uint_eq(b->ready, 3);
}
END_TEST

/* ---- restarts ---- */

/* Everything that is ready is consumed. */
/* What the broker makes of a message that died in queue `died`, and had come by exchange `by`. */
static struct msg *
letter(const char *x, const char *died, const char *by)
{
	struct death death = { .reason = SPAN_LIT("rejected"),
		.queue = span_str(died),
		.exchange = span_str(by),
		.key = SPAN_LIT("k") };
	struct table_writer w;
	struct msg *m;

	table_writer_init(&w, 4096);
	death_write(&w, span_of(NULL, 0), &death, 0);
	m = message(x, &w, "1", true);
	table_writer_fini(&w);
	return m;
}

static void
forward(struct msg *m, struct queue *q)
{
	struct route r = { .count = 1, .queue = &q };

	(void)publish_forward(n.w.broker, m, &r, 0, PUBLISH_LETTER);
}

/* Retries: a message that comes back is no duplicate of itself; that of another queue is. */
START_TEST(test_dead_letters)
{
	struct queue *work = make_queue("work", 0, 0), *wait = make_queue("wait", 0, 0),
	             *plain = node_queue(&n, "plain", false);

	ck_assert(send(work, "1"));
	forward(letter("", "work", ""), wait);
	ck_assert_uint_eq(wait->ready, 1);
	forward(letter("", "work", ""), wait); /* another "1": it never was here */
	ck_assert_uint_eq(wait->ready, 1);
	forward(letter("", "work", ""), work);
	ck_assert_uint_eq(work->ready, 2);
	ck_assert(!send(work, "1"));
	/* A client may say what it likes. */
	deliver(letter("", "work", ""), work, NULL);
	ck_assert_uint_eq(work->ready, 2);
	ck_assert_ptr_null(try_exchange("x", true, 0, 0));
	send_through("x", "1", plain, NULL);
	forward(letter("x", "plain", "x"), plain);
	ck_assert_uint_eq(plain->ready, 2);
	forward(letter("x", "plain", ""), plain);
	ck_assert_uint_eq(plain->ready, 2);
	send_through("x", "1", plain, NULL);
	ck_assert_uint_eq(plain->ready, 2);
}
END_TEST

static void
consume(struct queue *q)
{
	struct entry e;

	while (queue_pop(q, &e)) {
		queue_entry_gone(q, &e, ACK_ACKED);
		msg_unref(&e.m);
	}
}

static void
check_restart(bool gently, bool rolls)
{
	struct queue *q = make_queue("q", 1000, 0), *loud;
	char id[20];

	ck_assert_ptr_null(try_exchange("x", true, 0, 0));
	for (int i = 0; i < 1500; i++) {
		snprintf(id, sizeof id, "%d", i);
		ck_assert(send(q, id));
		if (i % 3 == 0)
			consume(q);
	}
	send_through("x", "through", q, NULL);
	/* the last one is still there, and lies in the chain */
	lane_spill(q->strand.lane, 0);
	node_settle(&n);
	for (int round = 0; round < 2; round++) {
		loud = node_queue(&n, "loud", true);
		for (int i = 0; rolls && i < 2000; i++) {
			node_publish(&n, loud, persistent_msg(7, 4000), 0);
			if (i % 8 == 0)
				node_turn(&n);
			consume(loud);
		}
		node_settle(&n);
		restart(gently);
		q = queue("q");
		for (int i = 501; i < 1500; i++) {
			snprintf(id, sizeof id, "%d", i);
			ck_assert_msg(!send(q, id), "%s came in again", id);
		}
		ck_assert(!send(q, "through"));
		send_through("x", "through", queue("loud"), NULL);
		ck_assert_uint_eq(queue("loud")->ready, 0);
	}
	ck_assert(send(q, "499"));
	ck_assert_uint_eq(window_count(q->dedup->window), 1000);
}

START_TEST(test_restart)
{
	check_restart(_i % 2 == 0, _i / 2 == 1);
}
END_TEST

/* The key goes where its message goes. */
START_TEST(test_what_does_not_survive)
{
	struct queue *q = make_queue("q", 0, 0), *passing;

	ck_assert_ptr_null(try_queue("passing", false, true, 0, 0));
	passing = queue("passing");
	ck_assert_ptr_null(try_exchange("x", true, 0, 0));
	deliver(message("", NULL, "transient", false), q, NULL);
	deliver(message("", NULL, "transient", false), q, NULL);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(last_wait.lsn, 0);
	send_through("x", "to a transient queue", passing, NULL);
	send_through("x", "to a transient queue", passing, q);
	ck_assert(passing->ready == 1 && q->ready == 1);
	ck_assert(send(q, "kept"));
	node_settle(&n);
	/* not written yet when the process is killed: neither is there */
	ck_assert(send(q, "too late"));
	restart(false);
	q = queue("q");
	ck_assert_uint_eq(q->ready, 1);
	ck_assert(!send(q, "kept") && send(q, "transient") && send(q, "too late"));
	send_through("x", "to a transient queue", q, NULL);
	ck_assert_uint_eq(q->ready, 4);
}
END_TEST

/* A duplicate is confirmed once what it repeats is safe. */
START_TEST(test_confirm_of_a_duplicate)
{
	struct queue *q = make_queue("q", 0, 0), *b = node_queue(&n, "b", true);
	struct store *s = n.w.broker->store;
	struct store_wait first;

	node_settle(&n);
	ck_assert(send(q, "1"));
	first = last_wait;
	ck_assert(first.durable && store_must_wait(s, first));
	ck_assert(!send(q, "1"));
	ck_assert(last_wait.lsn == first.lsn && last_wait.durable);
	send_through("", "1", q, b); /* what it waits for itself comes later */
	ck_assert_uint_gt(last_wait.lsn, first.lsn);
	node_settle(&n);
	ck_assert(!send(q, "1"));
	ck_assert_uint_eq(last_wait.lsn, 0);
}
END_TEST

/* Over the node's bound the largest window forgets its oldest. */
START_TEST(test_memory)
{
	struct queue *big = make_queue("big", 0, 0), *small = make_queue("small", 0, 0);
	uint64_t most;
	char id[20];

	ck_assert(send(small, "first"));
	n.w.cfg.memory_deduplication = 10;
	n.w.broker->memory.limit = mem_held[MEM_WINDOWS] * 10 + 640000;
	most = n.w.broker->memory.limit / 100 * 10 + 8192;
	for (int i = 0; i < 8000; i++) {
		snprintf(id, sizeof id, "%d", i);
		ck_assert(send(big, id));
		ck_assert_uint_le(mem_held[MEM_WINDOWS], most);
	}
	n.w.broker->memory.limit = 0;
	ck_assert_uint_gt(n.w.broker->stats.dedup_evicted, 0);
	ck_assert_uint_gt(window_count(big->dedup->window), 1500);
	ck_assert(!send(small, "first") && !send(big, "7999") && send(big, "0"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dedup");
	TCase *t = tcase_create("dedup");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_arguments);
	tcase_add_test(t, test_keys);
	tcase_add_test(t, test_window);
	tcase_add_test(t, test_time);
	tcase_add_test(t, test_exchange);
	tcase_add_test(t, test_dead_letters);
	tcase_add_test(t, test_fan_out);
	tcase_add_loop_test(t, test_restart, 0, 4);
	tcase_add_test(t, test_what_does_not_survive);
	tcase_add_test(t, test_confirm_of_a_duplicate);
	tcase_add_test(t, test_memory);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
