/* SPDX-License-Identifier: Apache-2.0
 * The x-delayed-message exchange: what headers say, when messages come, and a model of what waits that is published to,
 * moved to files, killed and started again at random. */
#include "broker/delay.h"

#include "broker/binding.h"
#include "broker/delay_priv.h"
#include "broker/exchange.h"
#include "broker/props.h"
#include "broker/route.h"
#include "broker/table.h"
#include "tests/unit/persist_peer.h"

static void
consume(void)
{
	open_peer();
	(void)peer_consume(&peer, queue_find(n.w.vhost, SPAN_LIT("q")), "t", true);
}

static struct table *
arguments(const char *type)
{
	struct table_writer t;
	struct table *made;

	table_writer_init(&t, 1000);
	if (type != NULL)
		table_put_string(&t, "x-delayed-type", type);
	made = table_from_raw(span_of(t.p, t.n));
	table_writer_fini(&t);
	return made;
}

static const struct error *
declare(const char *name, const char *type, bool durable, struct exchange **x)
{
	struct table *t = arguments(type);
	struct exchange_spec spec = { .name = span_str(name),
		.type = SPAN_LIT("x-delayed-message"),
		.durable = durable,
		.arguments = t };
	const struct error *e = exchange_declare(n.w.vhost, &spec, x);

	table_free(&t);
	return e;
}

static struct exchange *
exchange(void)
{
	return exchange_find(n.w.vhost, SPAN_LIT("x"));
}

static void
make(bool durable)
{
	struct exchange *x = NULL;

	ck_assert_ptr_null(declare("x", "direct", durable, &x));
	ck_assert_ptr_null(binding_add(x, node_queue(&n, "q", true), NULL, SPAN_LIT("k"), NULL));
	consume();
}

/* Without a session: make() opens it. */
static void
set_up(void)
{
	node_init(&n);
}

/* To x with key k; body: its number. headers: raw. */
static struct msg *
message(uint64_t number, uint32_t body_size, struct span headers)
{
	size_t props = 2 + 4 + headers.n, meta = 5 + 7 + 12 + props + 1;
	struct msg *m = msg_try_new(msg_wire_size((uint32_t)meta, body_size));
	uint8_t *p = m->wire;

	memset(p, 0, msg_wire_size((uint32_t)meta, body_size));
	memcpy(p, "\1x\1k\xCE\2", 6);
	put_be32(p + 8, (uint32_t)(12 + props));
	p[13] = 60;
	put_be64(p + 16, body_size);
	put_be16(p + 24, PROP_HEADERS);
	put_be32(p + 26, (uint32_t)headers.n);
	memcpy(p + 30, headers.p, headers.n);
	p[meta - 1] = 0xCE;
	p[meta] = 3;
	put_be32(p + meta + 3, body_size);
	memcpy(p + meta + 7, &number, sizeof number);
	p[meta + 7 + body_size] = 0xCE;
	m->names_len = 5;
	m->meta_len = (uint32_t)meta;
	m->body_size = body_size;
	m->flags = MSG_PERSISTENT;
	return m;
}

static struct store_wait
publish(struct msg *m)
{
	const struct route *r;
	struct store_wait wait;
	struct props pr;

	ck_assert_int_eq(props_scan(msg_props(m), &pr), 0);
	r = route_find_msg(exchange(), m, &pr);
	ck_assert(r != NULL && !r->bad_delay);
	ck_assert_int_eq(publish_deliver(n.w.broker, m, r, 0, &wait), PUBLISH_ROUTED);
	return wait;
}

static struct store_wait
publish_delayed(uint64_t number, uint32_t body_size, uint64_t delay_ms)
{
	uint8_t headers[] = "\7x-delayl........";

	put_be64(headers + 9, delay_ms);
	return publish(message(number, body_size, span_of(headers, 17)));
}

static void
at(uint64_t now_ms)
{
	world_at(&n.w, now_ms);
	node_settle(&n);
}

/* ---- headers ---- */

static const struct {
	struct span headers;
	enum delay_wish wish;
	uint64_t ms;
	struct span negated; /* of wanted ones */
} headers[] = {
	{ SPAN_LIT(""), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\1aI\0\0\0\5"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayb\5"), DELAY_WANTED, 5, SPAN_LIT("\7x-delayb\xFB") },
	{ SPAN_LIT("\7x-delayb\xFB"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayB\xFB"), DELAY_WANTED, 251,
	    SPAN_LIT("\7x-delayl\xFF\xFF\xFF\xFF\xFF\xFF\xFF\5") },
	{ SPAN_LIT("\7x-delays\1\0"), DELAY_WANTED, 256, SPAN_LIT("\7x-delays\xFF\0") },
	{ SPAN_LIT("\7x-delayu\xFF\xFF"), DELAY_WANTED, 65535,
	    SPAN_LIT("\7x-delayl\xFF\xFF\xFF\xFF\xFF\xFF\0\1") },
	{ SPAN_LIT("\1aV\7x-delayI\0\0\0\1\1bt\1"), DELAY_WANTED, 1,
	    SPAN_LIT("\1aV\7x-delayI\xFF\xFF\xFF\xFF\1bt\1") },
	{ SPAN_LIT("\7x-delayI\0\0\0\0"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayI\x80\0\0\0"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayi\x80\0\0\0"), DELAY_WANTED, 1ull << 31,
	    SPAN_LIT("\7x-delayl\xFF\xFF\xFF\xFF\x80\0\0\0") },
	{ SPAN_LIT("\7x-delayl\0\0\0\1\0\0\0\0"), DELAY_WANTED, 1ull << 32,
	    SPAN_LIT("\7x-delayl\xFF\xFF\xFF\xFF\0\0\0\0") },
	{ SPAN_LIT("\7x-delayl\0\0\0\x49\x6C\xEB\xB8\0"), DELAY_WANTED, DELAY_MAX,
	    SPAN_LIT("\7x-delayl\xFF\xFF\xFF\xB6\x93\x14\x48\0") },
	{ SPAN_LIT("\7x-delayl\0\0\0\x49\x6C\xEB\xB8\1"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayl\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayl\x80\0\0\0\0\0\0\0"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayL\x80\0\0\0\0\0\0\0"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayS\0\0\0\4"
	           "5000"),
	    DELAY_WANTED, 5000, SPAN_LIT("\7x-delayS\0\0\0\5-5000") },
	{ SPAN_LIT("\7x-delayS\0\0\0\3+07"), DELAY_WANTED, 7, SPAN_LIT("\7x-delayS\0\0\0\2-7") },
	{ SPAN_LIT("\7x-delayS\0\0\0\2-5"), DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayS\0\0\0\1"
	           "0"),
	    DELAY_NONE, 0, { 0 } },
	{ SPAN_LIT("\7x-delayS\0\0\0\0"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayS\0\0\0\1-"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayS\0\0\0\2"
	           "5s"),
	    DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayS\0\0\0\x15"
	           "184467440737095516210"),
	    DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayt\1"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayV"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayd\x40\x14\0\0\0\0\0\0"), DELAY_INVALID, 0, { 0 } },
	{ SPAN_LIT("\7x-delayF\0\0\0\0"), DELAY_INVALID, 0, { 0 } },
};

START_TEST(header)
{
	struct span h = headers[_i].headers;
	uint64_t ms = 0;
	uint8_t *negated;
	size_t len;

	ck_assert_int_eq(delay_wish(h, &ms), headers[_i].wish);
	if (headers[_i].wish == DELAY_INVALID)
		ck_assert_uint_eq(delay_refuse(h)->code, 406);
	if (headers[_i].wish != DELAY_WANTED)
		return;
	ck_assert_uint_eq(ms, headers[_i].ms);
	negated = delay_negate(h, &len);
	ck_assert_ptr_nonnull(negated);
	ck_assert(span_eq(span_of(negated, len), headers[_i].negated));
	ck_assert_int_eq(delay_wish(span_of(negated, len), &ms), DELAY_NONE);
	free(negated);
}
END_TEST

START_TEST(refusals)
{
	ck_assert_str_eq(delay_refuse(SPAN_LIT("\7x-delayS\0\0\0\2"
	                                       "5s"))
	                     ->text,
	    "PRECONDITION_FAILED - invalid header 'x-delay' of type longstr: '5s' is no integer");
	ck_assert_str_eq(delay_refuse(SPAN_LIT("\7x-delayl\0\0\0\x49\x6C\xEB\xB8\1"))->text,
	    "PRECONDITION_FAILED - invalid header 'x-delay': '315360000001' is more than "
	    "315360000000 ms");
}
END_TEST

/* ---- declaring ---- */

START_TEST(types)
{
	static const char must[] =
	    "PRECONDITION_FAILED - Invalid argument, 'x-delayed-type' must be an "
	    "existing exchange type";
	struct exchange *x = NULL;
	const struct error *e;

	ck_assert_str_eq(declare("a", NULL, true, &x)->text, must);
	ck_assert_str_eq(declare("a", "", true, &x)->text, must);
	ck_assert_str_eq(declare("a", "nothing", true, &x)->text, must);
	ck_assert_uint_eq(declare("a", "x-delayed-message", true, &x)->code, 406);
	ck_assert_ptr_null(exchange_find(n.w.vhost, SPAN_LIT("a")));
	ck_assert_ptr_null(declare("a", "topic", true, &x));
	ck_assert_ptr_null(declare("a", "topic", true, &x));
	e = declare("a", "direct", true, &x);
	ck_assert_str_eq(e->text, "PRECONDITION_FAILED - inequivalent arg 'x-delayed-type' for "
	                          "exchange 'a' in vhost '/': "
	                          "received 'direct' but current is 'topic'");
	ck_assert_ptr_null(declare("b", "x-consistent-hash", true, &x));
	e = binding_add(x, node_queue(&n, "q", true), NULL, SPAN_LIT("k"), NULL);
	ck_assert_str_eq(
	    e->text, "PRECONDITION_FAILED - The binding key must be an integer: <<\"k\">>");
}
END_TEST

/* ---- time ---- */

START_TEST(in_order_of_due_time)
{
	static const uint64_t delay[] = { 10000, 1000, 5000, 1000, (1ull << 32) + 5 };
	static const uint64_t want[] = { 1, 3, 2, 0 };
	struct store_wait wait = { 0 };

	make(true);
	for (uint64_t i = 0; i < COUNT_OF(delay); i++)
		wait = publish_delayed(i, 8, delay[i]);
	ck_assert(persist_must_wait(n.w.broker, wait));
	at(1000 + 999);
	ck_assert(!persist_must_wait(n.w.broker, wait));
	ck_assert_uint_eq(peer.count, 0);
	ck_assert_uint_eq(delay_messages(exchange()->delay), 5);
	ck_assert_uint_eq(n.w.broker->stats.messages_delayed, 5);
	at(1000 + 1000);
	ck_assert_uint_eq(peer.count, 2);
	at(1000 + 4999);
	ck_assert_uint_eq(peer.count, 2);
	at(1000 + 5000);
	ck_assert_uint_eq(peer.count, 3);
	at(1000 + 10000);
	ck_assert_uint_eq(peer.count, 4);
	for (size_t i = 0; i < COUNT_OF(want); i++)
		ck_assert_uint_eq(peer.got[i].number, want[i]);
	at(1000 + (1ull << 32) + 4);
	ck_assert_uint_eq(peer.count, 4);
	at(1000 + (1ull << 32) + 5);
	ck_assert_uint_eq(peer.count, 5);
	ck_assert_uint_eq(n.w.broker->stats.messages_delayed, 0);
	ck_assert_uint_eq(n.w.broker->stats.delayed_out, 5);
}
END_TEST

/* No delay, or one that was negative: at once. */
START_TEST(at_once)
{
	make(true);
	publish_delayed(1, 8, 0);
	publish_delayed(2, 8, UINT64_MAX);
	publish(message(3, 8, SPAN_LIT("\1aV")));
	at(1000);
	ck_assert_uint_eq(peer.count, 3);
	ck_assert_uint_eq(delay_messages(exchange()->delay), 0);
}
END_TEST

/* Through the bindings that there are when it is due. */
START_TEST(routed_when_due)
{
	make(true);
	publish_delayed(1, 8, 100);
	ck_assert_ptr_null(binding_remove(
	    exchange(), queue_find(n.w.vhost, SPAN_LIT("q")), NULL, SPAN_LIT("k"), NULL));
	at(1100);
	ck_assert_uint_eq(n.w.broker->stats.drop_unroutable, 1);
	publish_delayed(2, 8, 100);
	ck_assert_ptr_null(binding_add(
	    exchange(), queue_find(n.w.vhost, SPAN_LIT("q")), NULL, SPAN_LIT("k"), NULL));
	at(1200);
	ck_assert_uint_eq(peer.count, 1);
	ck_assert_uint_eq(peer.got[0].number, 2);
}
END_TEST

/* Behind another exchange, and to a queue of that one as well: here it waits, there it does not. */
START_TEST(behind_another)
{
	struct exchange_spec spec = { .name = SPAN_LIT("f"), .type = SPAN_LIT("fanout") };
	struct exchange *f = NULL, *x;
	uint8_t raw[] = "\7x-delayI\0\0\0\x64";
	const struct route *r;
	struct store_wait wait;
	struct props pr;
	struct msg *m;

	make(true);
	ck_assert_ptr_null(exchange_declare(n.w.vhost, &spec, &f));
	ck_assert_ptr_null(binding_add(f, NULL, exchange(), SPAN_LIT(""), NULL));
	ck_assert_ptr_null(
	    binding_add(f, queue_find(n.w.vhost, SPAN_LIT("q")), NULL, SPAN_LIT(""), NULL));
	m = message(1, 8, span_of(raw, 13));
	ck_assert_int_eq(props_scan(msg_props(m), &pr), 0);
	r = route_find_msg(f, m, &pr);
	ck_assert_uint_eq(r->count, 1);
	ck_assert_uint_eq(r->delays, 1);
	ck_assert_int_eq(publish_deliver(n.w.broker, m, r, 0, &wait), PUBLISH_ROUTED);
	at(1000);
	ck_assert_uint_eq(peer.count, 1);
	at(1100);
	ck_assert_uint_eq(peer.count, 2);
	/* Invalid: the publisher hears of it. */
	raw[8] = 't';
	m = message(1, 8, span_of(raw, 10));
	ck_assert_int_eq(props_scan(msg_props(m), &pr), 0);
	x = f;
	ck_assert(route_find_msg(x, m, &pr)->bad_delay);
	msg_unref(&m);
}
END_TEST

/* What a queue has of it and what waits are the same message, which nobody changes once it was routed: the records of both,
 * each made when it entered, say the same. */
START_TEST(behind_another_and_killed)
{
	struct exchange_spec spec = {
		.name = SPAN_LIT("f"), .type = SPAN_LIT("fanout"), .durable = true
	};
	uint8_t raw[] = "\7x-delayI\0\0\0\x64";
	struct exchange *f = NULL;
	const struct route *r;
	struct store_wait wait;
	struct queue *other;
	struct props pr;
	struct msg *m;
	struct entry e;

	make(true);
	ck_assert_ptr_null(exchange_declare(n.w.vhost, &spec, &f));
	ck_assert_ptr_null(binding_add(f, NULL, exchange(), SPAN_LIT(""), NULL));
	ck_assert_ptr_null(binding_add(f, node_queue(&n, "other", true), NULL, SPAN_LIT(""), NULL));
	m = message(1, 8, span_of(raw, 13));
	ck_assert_int_eq(props_scan(msg_props(m), &pr), 0);
	r = route_find_msg(f, m, &pr);
	ck_assert_int_eq(publish_deliver(n.w.broker, m, r, 0, &wait), PUBLISH_ROUTED);
	node_settle(&n);
	node_restart(&n, false, 1000, end_peer);
	consume();
	other = queue_find(n.w.vhost, SPAN_LIT("other"));
	ck_assert_uint_eq(other->ready, 1);
	ck_assert(queue_pop(other, &e));
	ck_assert((e.m->flags & MSG_DELAYED) != 0);
	queue_entry_gone(other, &e, ACK_ACKED);
	msg_unref(&e.m);
	at(1050);
	ck_assert_uint_eq(peer.count, 0);
	at(1200);
	ck_assert_uint_eq(peer.count, 1);
}
END_TEST

/* What waits goes with the exchange, also from the disk. */
START_TEST(deleted)
{
	make(true);
	publish_delayed(1, 8, 100);
	node_settle(&n);
	ck_assert_ptr_null(exchange_delete(n.w.vhost, SPAN_LIT("x"), false));
	ck_assert_uint_eq(n.w.broker->stats.messages_delayed, 0);
	at(2000);
	node_restart(&n, _i == 0, 3000, end_peer);
	ck_assert_ptr_null(exchange());
	consume();
	at(4000);
	ck_assert_uint_eq(peer.count, 0);
	ck_assert_uint_eq(n.report.messages, 0);
}
END_TEST

/* However much waits, its deletion is soon over, and the messages go some a turn. */
START_TEST(deleted_in_slices)
{
	enum { MANY = 10000 };
	struct msg *first;

	make(_i == 0);
	first = message(0, 8, SPAN_LIT("\7x-delayl\0\0\0\0\0\1\0\0"));
	msg_ref(first);
	for (uint64_t i = 1; i < MANY; i++)
		publish_delayed(i, 8, 65537 + i);
	publish(first);
	node_settle(&n);
	ck_assert_ptr_null(exchange_delete(n.w.vhost, SPAN_LIT("x"), false));
	ck_assert_uint_eq(n.w.broker->stats.messages_delayed, 0);
	ck_assert_uint_eq(first->refs, 2); /* it is the first that would be let go */
	ck_assert(delay_garbage_free(n.w.broker, 4096));
	ck_assert_uint_eq(first->refs, 1);
	ck_assert(delay_garbage_free(n.w.broker, 4096));
	ck_assert(!delay_garbage_free(n.w.broker, 4096));
	ck_assert_ptr_null(n.w.broker->delay_garbage);
	msg_unref(&first);
}
END_TEST

/* ---- the model ---- */

enum { MODEL_MESSAGES = 12000, MODEL_STEPS = 300 };

static struct {
	struct {
		uint64_t due;
		bool is_out;
	} m[MODEL_MESSAGES];
	uint64_t count, out;
	uint64_t seen; /* of peer.got */
} model;
static uint64_t seed;

static uint32_t
random_below(uint32_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 20) % limit;
}

/* Takes what came: in order of due time, those of one by number. */
static void
model_take(uint64_t now)
{
	uint64_t last_due = 0, last = 0;

	for (; model.seen < peer.count; model.seen++) {
		uint64_t i = peer.got[model.seen].number;

		ck_assert_uint_lt(i, model.count);
		ck_assert(!model.m[i].is_out && model.m[i].due <= now);
		ck_assert_msg(
		    model.m[i].due > last_due || (model.m[i].due == last_due && i >= last),
		    "%llu came behind %llu", (unsigned long long)i, (unsigned long long)last);
		last_due = model.m[i].due;
		last = i;
		model.m[i].is_out = true;
		model.out++;
	}
}

/* All that is due came. */
static void
model_compare(uint64_t now)
{
	model_take(now);
	for (uint64_t i = 0; i < model.count; i++)
		ck_assert(model.m[i].is_out || model.m[i].due > now);
	ck_assert_uint_eq(delay_messages(exchange()->delay), model.count - model.out);
	ck_assert_uint_eq(n.w.broker->stats.messages_delayed, model.count - model.out);
}

static void
model_publish(unsigned how)
{
	uint64_t now = n.w.broker->now_ms, delay;

	bool small = how % 2 == 0;

	for (unsigned i = 0; i < (small ? 40 : 20) && model.count < MODEL_MESSAGES; i++) {
		switch (how) {
		case 0: delay = 100 * (1 + random_below(1000)); break;
		case 1: delay = 5000; break;                      /* as it comes */
		case 2: delay = 130000 - model.count * 10; break; /* the other way round */
		default: delay = 1 + random_below(3); break;
		}
		model.m[model.count].due = now + delay;
		publish_delayed(model.count++, 8 + random_below(small ? 600 : 6000), delay);
	}
}

/* Only a part of what is to be done: moves stand in the middle. */
static void
half_turn(void)
{
	struct store *s = n.w.broker->store;

	(void)broker_run(n.w.broker);
	(void)store_turn(s, n.w.broker->next_id, n.w.broker->now_ms);
	while (journal_step(s->journal))
		continue;
	for (uint32_t i = random_below(3); i > 0 && workers_step(n.workers, 0); i--)
		continue;
	workers_take(n.workers);
	(void)store_events(s);
}

static void
model_restart(bool gently, uint64_t now)
{
	model_take(n.w.broker->now_ms);
	node_restart(&n, gently, now, end_peer);
	n.w.broker->memory.spill = 1;
	consume();
	model.seen = 0;
}

/* _i: how delays are spread; from 4 on without restarts, which would put right what was wrong in memory; from 8 on a
 * transient exchange. */
START_TEST(any_order)
{
	bool durable = _i < 8, restarts = _i < 4;
	unsigned moved = 0;

	seed = 88172645463325252u + (uint64_t)_i;
	memset(&model, 0, sizeof model);
	n.cfg.lane_bytes = _i % 2 == 0
	                       ? 64 << 10
	                       : 32 << 20; /* little: the store puts lanes into files by itself */
	node_restart(&n, true, 1000, end_peer);
	make(durable);
	n.w.broker->memory.spill = 1; /* a buffer is full at 1 MiB */
	for (int step = 0; step < MODEL_STEPS; step++) {
		model_publish((unsigned)_i % 4);
		switch (random_below(12)) {
		case 0: at(n.w.broker->now_ms + random_below(8000)); break;
		case 1:
		case 2:
			at(n.w.broker->now_ms + random_below(50));
			model_compare(n.w.broker->now_ms);
			break;
		case 3:
			half_turn();
			half_turn();
			if (restarts && random_below(3) == 0)
				model_restart(false, n.w.broker->now_ms);
			break;
		case 4:
			node_settle(&n);
			model_compare(n.w.broker->now_ms);
			if (!restarts)
				break;
			model_restart(
			    random_below(2) == 0, n.w.broker->now_ms + random_below(3000));
			at(n.w.broker->now_ms);
			model_compare(n.w.broker->now_ms);
			break;
		default: half_turn(); break;
		}
		moved += !TAILQ_EMPTY(&exchange()->delay->runs);
	}
	ck_assert(moved > 0 || _i % 4 == 3);
	node_settle(&n);
	model_compare(n.w.broker->now_ms);
	at(n.w.broker->now_ms + 200000);
	model_compare(n.w.broker->now_ms);
	ck_assert_uint_eq(model.out, model.count);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("delay");
	TCase *t = tcase_create("delay");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, set_up, teardown);
	tcase_add_loop_test(t, header, 0, COUNT_OF(headers));
	tcase_add_test(t, refusals);
	tcase_add_test(t, types);
	tcase_add_test(t, in_order_of_due_time);
	tcase_add_test(t, at_once);
	tcase_add_test(t, routed_when_due);
	tcase_add_test(t, behind_another);
	tcase_add_test(t, behind_another_and_killed);
	tcase_add_loop_test(t, deleted, 0, 2);
	tcase_add_loop_test(t, deleted_in_slices, 0, 2);
	tcase_add_loop_test(t, any_order, 0, 12);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
