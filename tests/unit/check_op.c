/* SPDX-License-Identifier: Apache-2.0
 * Operations: what is encoded comes back; what is cut, longer or out of order is refused. */
#include "store/op.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t buffer[4096];

/* The one operation that was encoded, to end. */
static struct span
only_op(const uint8_t *end, size_t size, enum op_kind kind)
{
	struct op op;
	size_t at = 0;
	int error;

	ck_assert_uint_eq((size_t)(end - buffer), size);
	ck_assert(op_next(span_of(buffer, size), &at, &op, &error));
	ck_assert_uint_eq(at, size);
	ck_assert_int_eq(op.kind, kind);
	ck_assert(!op_next(span_of(buffer, size), &at, &op, &error));
	ck_assert_int_eq(error, 0);
	return op.body;
}

static const struct op_target targets[] = { { 7, 1, 0 }, { 1ull << 60, SEQ_MAX, 300 } };

static struct op_msg
message(void)
{
	return (struct op_msg){
		.target = targets,
		.targets = 2,
		.arrived_ms = 1000,
		.expires_ms = 2000,
		.due_ms = 3000,
		.flags = MSG_FLAG_PERSISTENT | MSG_FLAG_COPY,
		.prio = 9,
		.spread = 11,
		.state = { true, 5, 6 },
		.names = SPAN_LIT("\x02"
		                  "ex"
		                  "\x03"
		                  "key"),
		.props = SPAN_LIT("\x10\x00\x02"),
		.body_size = 5,
		.body = SPAN_LIT("hello"),
	};
}

START_TEST(msg)
{
	struct op_msg m = message(), d;
	struct op_target t;
	size_t size = op_msg_size(&m);
	struct span body = only_op(op_msg_encode(&m, buffer), size, OP_MSG);

	ck_assert_int_eq(op_msg_decode(body, &d), 0);
	ck_assert_uint_eq(d.targets, 2);
	for (uint32_t i = 0; i < 2; i++) {
		op_msg_target(&d, i, &t);
		ck_assert(t.queue == targets[i].queue && t.seq == targets[i].seq &&
		          t.lane == targets[i].lane);
	}
	ck_assert(d.arrived_ms == 1000 && d.expires_ms == 2000 && d.due_ms == 3000);
	ck_assert(d.flags == m.flags && d.prio == 9 && d.spread == 11 && d.body_size == 5);
	ck_assert(d.state.redelivered && d.state.deliveries == 5 && d.state.acquired == 6);
	ck_assert(
	    span_eq(d.names, m.names) && span_eq(d.props, m.props) && span_eq(d.body, m.body));
	for (size_t n = 0; n < body.n; n++)
		ck_assert_int_eq(op_msg_decode(span_of(body.p, n), &d), -EBADMSG);
	ck_assert_int_eq(op_msg_decode(span_of(body.p, body.n + 1), &d), -EBADMSG);
}
END_TEST

static void
copy_hello(const void *item, uint8_t *to)
{
	memcpy(to, item, 5);
}

START_TEST(msg_body_from_its_owner)
{
	struct op_msg m = message(), d;
	size_t size = op_msg_size(&m);

	m.body = span_of(NULL, 0);
	m.copy_body = copy_hello;
	m.item = "HELLO";
	ck_assert_uint_eq(op_msg_size(&m), size);
	ck_assert_int_eq(op_msg_decode(only_op(op_msg_encode(&m, buffer), size, OP_MSG), &d), 0);
	ck_assert(span_is(d.body, "HELLO"));
	m.body_size = 0;
	m.copy_body = NULL;
	size = op_msg_size(&m);
	ck_assert_int_eq(op_msg_decode(only_op(op_msg_encode(&m, buffer), size, OP_MSG), &d), 0);
	ck_assert_uint_eq(d.body.n, 0);
}
END_TEST

START_TEST(msg_refused)
{
	static const struct op_target no_seq = { 7, 0, 0 }, too_high = { 7, SEQ_MAX + 1, 0 };
	struct op_msg m = message(), d;
	struct span body;

	m.targets = 1;
	m.target = &no_seq;
	body = only_op(op_msg_encode(&m, buffer), op_msg_size(&m), OP_MSG);
	ck_assert_int_eq(op_msg_decode(body, &d), -EBADMSG);
	m.target = &too_high;
	body = only_op(op_msg_encode(&m, buffer), op_msg_size(&m), OP_MSG);
	ck_assert_int_eq(op_msg_decode(body, &d), -EBADMSG);
	m = message();
	m.names = SPAN_LIT("\x02"
	                   "ex");
	body = only_op(op_msg_encode(&m, buffer), op_msg_size(&m), OP_MSG);
	ck_assert_int_eq(op_msg_decode(body, &d), -EBADMSG);
	m.names = SPAN_LIT("\x02"
	                   "ex"
	                   "\x01"
	                   "key");
	body = only_op(op_msg_encode(&m, buffer), op_msg_size(&m), OP_MSG);
	ck_assert_int_eq(op_msg_decode(body, &d), -EBADMSG);
	/* More targets than there is room for, in 32 bits and beyond. */
	m = message();
	body = only_op(op_msg_encode(&m, buffer), op_msg_size(&m), OP_MSG);
	memset(buffer + OP_HEADER, 0xff, 4);
	ck_assert_int_eq(op_msg_decode(body, &d), -EBADMSG);
}
END_TEST

START_TEST(ack)
{
	struct range r[] = { { 1, 1 }, { 3, 10 }, { 11, SEQ_MAX } }, got;
	struct op_ack a = { { 5, 2 }, ACK_MOVED, 9, 77, r, 3, NULL }, d;
	struct span body = only_op(op_ack_encode(&a, buffer), op_ack_size(3), OP_ACK);

	ck_assert_int_eq(op_ack_decode(body, &d), 0);
	ck_assert(d.lane.queue == 5 && d.lane.lane == 2 && d.reason == ACK_MOVED);
	ck_assert(d.count == 9 && d.bytes == 77 && d.ranges == 3);
	for (uint32_t i = 0; i < 3; i++) {
		op_range(d.raw, i, &got);
		ck_assert(got.first == r[i].first && got.last == r[i].last);
	}
	for (size_t n = 0; n < body.n; n++)
		ck_assert_int_eq(op_ack_decode(span_of(body.p, n), &d), -EBADMSG);
}
END_TEST

static int
ack_of(struct range a, struct range b, uint64_t count, enum ack_reason reason)
{
	struct range r[] = { a, b };
	struct op_ack op = { { 5, 2 }, reason, count, 0, r, 2, NULL }, d;

	return op_ack_decode(only_op(op_ack_encode(&op, buffer), op_ack_size(2), OP_ACK), &d);
}

START_TEST(ack_refused)
{
	struct op_ack none = { { 5, 2 }, ACK_ACKED, 0, 0, NULL, 0, NULL }, d;

	ck_assert_int_eq(ack_of((struct range){ 1, 2 }, (struct range){ 3, 4 }, 4, ACK_ACKED), 0);
	ck_assert_int_eq(
	    ack_of((struct range){ 1, 2 }, (struct range){ 3, 4 }, 5, ACK_ACKED), -EBADMSG);
	ck_assert_int_eq(
	    ack_of((struct range){ 1, 2 }, (struct range){ 2, 4 }, 1, ACK_ACKED), -EBADMSG);
	ck_assert_int_eq(
	    ack_of((struct range){ 5, 6 }, (struct range){ 3, 4 }, 1, ACK_ACKED), -EBADMSG);
	ck_assert_int_eq(
	    ack_of((struct range){ 2, 1 }, (struct range){ 3, 4 }, 1, ACK_ACKED), -EBADMSG);
	ck_assert_int_eq(
	    ack_of((struct range){ 0, 1 }, (struct range){ 3, 4 }, 1, ACK_ACKED), -EBADMSG);
	ck_assert_int_eq(
	    ack_of((struct range){ 1, 1 }, (struct range){ 3, UINT64_MAX }, 1, ACK_ACKED),
	    -EBADMSG);
	ck_assert_int_eq(ack_of((struct range){ 1, 1 }, (struct range){ 3, 3 }, 1,
	                     (enum ack_reason)(ACK_MOVED + 1)),
	    -EBADMSG);
	ck_assert_int_eq(
	    op_ack_decode(only_op(op_ack_encode(&none, buffer), op_ack_size(0), OP_ACK), &d),
	    -EBADMSG);
}
END_TEST

START_TEST(state_and_mark)
{
	struct op_state_change c = { { 5, 2 }, { 8, 9 }, { true, 3, 4 } }, cd;
	struct op_mark m = { { 5, 2 }, 100, 99 }, md;
	struct span body = only_op(op_state_encode(&c, buffer), OP_STATE_SIZE, OP_STATE);

	ck_assert_int_eq(op_state_decode(body, &cd), 0);
	ck_assert(
	    cd.lane.queue == 5 && cd.lane.lane == 2 && cd.range.first == 8 && cd.range.last == 9);
	ck_assert(cd.state.redelivered && cd.state.deliveries == 3 && cd.state.acquired == 4);
	ck_assert_int_eq(op_state_decode(span_of(body.p, body.n - 1), &cd), -EBADMSG);
	c.range.first = 10;
	body = only_op(op_state_encode(&c, buffer), OP_STATE_SIZE, OP_STATE);
	ck_assert_int_eq(op_state_decode(body, &cd), -EBADMSG);

	body = only_op(op_mark_encode(&m, buffer), OP_MARK_SIZE, OP_MARK);
	ck_assert_int_eq(op_mark_decode(body, &md), 0);
	ck_assert(
	    md.lane.queue == 5 && md.lane.lane == 2 && md.next_seq == 100 && md.delivered == 99);
	ck_assert_int_eq(op_mark_decode(span_of(body.p, body.n - 1), &md), -EBADMSG);
	m.delivered = 100; /* never given out */
	body = only_op(op_mark_encode(&m, buffer), OP_MARK_SIZE, OP_MARK);
	ck_assert_int_eq(op_mark_decode(body, &md), -EBADMSG);
}
END_TEST

START_TEST(objects)
{
	struct op_object o = { OBJECT_BINDING, 42, SPAN_LIT("what it is") }, d;
	struct span body = only_op(op_put_encode(&o, buffer), op_object_size(&o), OP_PUT);

	ck_assert_int_eq(op_object_decode(body, &d), 0);
	ck_assert(d.kind == OBJECT_BINDING && d.id == 42 && span_eq(d.state, o.state));
	ck_assert_int_eq(op_object_decode(span_of(body.p, 15), &d), -EBADMSG);
	o.state = span_of(NULL, 0);
	body = only_op(op_gone_encode(&o, buffer), op_object_size(&o), OP_GONE);
	ck_assert_int_eq(op_object_decode(body, &d), 0);
	ck_assert(d.kind == OBJECT_BINDING && d.id == 42 && d.state.n == 0);
	o.kind = (enum object_kind)0;
	body = only_op(op_put_encode(&o, buffer), op_object_size(&o), OP_PUT);
	ck_assert_int_eq(op_object_decode(body, &d), -EBADMSG);
	/* What a later version knows must not be taken for damage, which is skipped. */
	o.kind = OBJECT_KINDS;
	body = only_op(op_put_encode(&o, buffer), op_object_size(&o), OP_PUT);
	ck_assert_int_eq(op_object_decode(body, &d), -EPROTONOSUPPORT);
}
END_TEST

static struct range removed[] = { { 11, 11 }, { 15, 18 } };
static struct op_seg_exception exceptions[] = { { { 10, 12 }, { true, 1, 2 } },
	{ { 13, 20 }, { false, 3, 4 } } };

static struct op_seg
segment(void)
{
	return (struct op_seg){
		.lane = { 5, 2 },
		.first = 10,
		.last = 20,
		.end = 9000,
		.live = 6,
		.bytes = 600,
		.latest_expiry_ms = 77,
		.removed = removed,
		.removed_n = 2,
		.exception = exceptions,
		.exceptions = 2,
	};
}

START_TEST(seg)
{
	struct op_seg s = segment(), d;
	struct op_seg_exception e;
	struct range r;
	struct span body = only_op(op_seg_encode(&s, buffer), op_seg_size(&s), OP_SEG);

	ck_assert_int_eq(op_seg_decode(body, &d), 0);
	ck_assert(d.lane.queue == 5 && d.lane.lane == 2 && d.first == 10 && d.last == 20);
	ck_assert(d.end == 9000 && d.live == 6 && d.bytes == 600 && d.latest_expiry_ms == 77);
	ck_assert(d.removed_n == 2 && d.exceptions == 2);
	op_range(d.raw_removed, 1, &r);
	ck_assert(r.first == 15 && r.last == 18);
	op_exception(d.raw_exceptions, 1, &e);
	ck_assert(e.range.first == 13 && e.range.last == 20 && !e.state.redelivered);
	ck_assert(e.state.deliveries == 3 && e.state.acquired == 4);
	for (size_t n = 0; n < body.n; n++)
		ck_assert_int_eq(op_seg_decode(span_of(body.p, n), &d), -EBADMSG);
}
END_TEST

static int
seg_of(const struct op_seg *s)
{
	struct op_seg d;

	return op_seg_decode(only_op(op_seg_encode(s, buffer), op_seg_size(s), OP_SEG), &d);
}

START_TEST(seg_refused)
{
	struct op_seg s = segment();
	struct range outside[] = { { 11, 11 }, { 18, 21 } };

	s.live = 7; /* not what is left */
	ck_assert_int_eq(seg_of(&s), -EBADMSG);
	s = segment();
	s.first = 21;
	ck_assert_int_eq(seg_of(&s), -EBADMSG);
	s = segment();
	s.removed = outside;
	ck_assert_int_eq(seg_of(&s), -EBADMSG);
	s = segment();
	s.last = UINT64_MAX;
	ck_assert_int_eq(seg_of(&s), -EBADMSG);
	exceptions[1].range.first = 12; /* overlaps */
	s = segment();
	ck_assert_int_eq(seg_of(&s), -EBADMSG);
	exceptions[1].range.first = 13;
	ck_assert_int_eq(seg_of(&s), 0);
}
END_TEST

static const struct op_key keys[] = { { { 1, UINT64_MAX }, 5 }, { { 0, 0 }, UINT64_MAX } };

static int
dedup_of(struct op_dedup d)
{
	struct op_dedup out;

	return op_dedup_decode(
	    only_op(op_dedup_encode(&d, buffer), op_dedup_size(d.keys), OP_DEDUP), &out);
}

START_TEST(dedup)
{
	static const struct op_key never = { { 1, 2 }, 0 };
	struct op_dedup o = { .owner = 77, .first = 9, .size = 1000, .keys = 2, .key = keys }, d;
	struct span body = only_op(op_dedup_encode(&o, buffer), op_dedup_size(2), OP_DEDUP);
	struct op_key k;

	ck_assert_int_eq(op_dedup_decode(body, &d), 0);
	ck_assert(d.owner == 77 && d.first == 9 && d.size == 1000 && d.keys == 2);
	for (uint32_t i = 0; i < 2; i++) {
		op_key(d.raw, i, &k);
		ck_assert(memcmp(&k, &keys[i], sizeof k) == 0);
	}
	for (size_t n = 0; n < body.n; n++)
		ck_assert_int_eq(op_dedup_decode(span_of(body.p, n), &d), -EBADMSG);
	ck_assert_int_eq(op_dedup_decode(span_of(body.p, body.n + 1), &d), -EBADMSG);
	o.first = 0;
	ck_assert_int_eq(dedup_of(o), -EBADMSG);
	o.first = SEQ_MAX;
	ck_assert_int_eq(dedup_of(o), -EBADMSG);
	o.first = SEQ_MAX - 1;
	ck_assert_int_eq(dedup_of(o), 0);
	o.size = 0;
	ck_assert_int_eq(dedup_of(o), -EBADMSG);
	o.size = OP_DEDUP_MAX + 1;
	ck_assert_int_eq(dedup_of(o), -EBADMSG);
	o.size = 1;
	o.keys = 0;
	ck_assert_int_eq(dedup_of(o), -EBADMSG);
	o.keys = 1;
	o.key = &never;
	ck_assert_int_eq(dedup_of(o), -EBADMSG);
}
END_TEST

/* Several in a payload; one that may be skipped; one that may not; one that is cut. */
START_TEST(payloads)
{
	struct op_mark m = { { 5, 2 }, 100, 99 };
	uint8_t *p = op_mark_encode(&m, buffer), *second = p;
	struct op op;
	size_t at = 0, n;
	int error;

	p = op_mark_encode(&m, p);
	n = (size_t)(p - buffer);
	ck_assert(op_next(span_of(buffer, n), &at, &op, &error));
	ck_assert(op_next(span_of(buffer, n), &at, &op, &error));
	ck_assert(!op_next(span_of(buffer, n), &at, &op, &error) && error == 0);

	buffer[0] = 200;
	at = 0;
	ck_assert(!op_next(span_of(buffer, n), &at, &op, &error));
	ck_assert_int_eq(error, -EPROTONOSUPPORT);
	buffer[2] = OP_SKIP;
	at = 0;
	ck_assert(op_next(span_of(buffer, n), &at, &op, &error));
	ck_assert_ptr_eq(op.body.p, second + OP_HEADER);
	ck_assert(!op_next(span_of(buffer, n), &at, &op, &error) && error == 0);

	buffer[0] = OP_MARK; /* of a later version */
	buffer[1] = 2;
	buffer[2] = 0;
	at = 0;
	ck_assert(!op_next(span_of(buffer, n), &at, &op, &error));
	ck_assert_int_eq(error, -EPROTONOSUPPORT);
	buffer[1] = 1;
	for (size_t cut = 1; cut < n; cut++) {
		unsigned whole = 0;

		for (at = 0; op_next(span_of(buffer, cut), &at, &op, &error);)
			whole++;
		ck_assert_uint_eq(whole, cut / OP_MARK_SIZE);
		ck_assert_int_eq(error, cut % OP_MARK_SIZE == 0 ? 0 : -EBADMSG);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("op");
	TCase *t = tcase_create("op");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, msg);
	tcase_add_test(t, msg_body_from_its_owner);
	tcase_add_test(t, msg_refused);
	tcase_add_test(t, ack);
	tcase_add_test(t, ack_refused);
	tcase_add_test(t, state_and_mark);
	tcase_add_test(t, objects);
	tcase_add_test(t, seg);
	tcase_add_test(t, seg_refused);
	tcase_add_test(t, dedup);
	tcase_add_test(t, payloads);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
