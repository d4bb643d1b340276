/* SPDX-License-Identifier: Apache-2.0
 * What survives beside the messages in queues: messages as operations and back, objects and their fields, and what waits
 * for the disk. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "broker/binding.h"
#include "broker/definition.h"
#include "broker/exchange.h"
#include "broker/table.h"
#include "tests/unit/persist_peer.h"

/* ---- messages ---- */

static const uint64_t body_sizes[] = { 0, 1, 4000, 131064, 131065, 1000000 };

static struct msg *
full_message(uint64_t body_size)
{
	/* headers {n: 1 (I)}, delivery mode 2, priority 7, expiration "250" */
	static const uint8_t props[] = { 0x39, 0, 0, 0, 0, 7, 1, 'n', 'I', 0, 0, 0, 1, 2, 7, 3, '2',
		'5', '0' };
	static const uint8_t names[] = { 2, 'e', 'x', 3, 'k', 'e', 'y', 0xCE };
	size_t meta = sizeof names + 7 + 12 + sizeof props + 1;
	bool in_wire = body_size <= 131064;
	struct msg *m = msg_try_new(msg_wire_size((uint32_t)meta, in_wire ? body_size : 0));
	uint8_t *p = m->wire, *body = xmalloc(body_size + 1);
	struct msg_piece *last = NULL;

	for (uint64_t i = 0; i < body_size; i++)
		body[i] = (uint8_t)(i * 7 + i / 251);
	memcpy(p, names, sizeof names);
	p += sizeof names;
	memset(p, 0, 7 + 12);
	p[0] = 2;
	put_be32(p + 3, (uint32_t)(12 + sizeof props));
	put_be16(p + 7, 60);
	put_be64(p + 11, body_size);
	memcpy(p + 19, props, sizeof props);
	p[19 + sizeof props] = 0xCE;
	m->names_len = sizeof names;
	m->meta_len = (uint32_t)meta;
	m->body_size = body_size;
	m->arrived_ms = 12345;
	m->prio = 7;
	m->flags = MSG_PERSISTENT;
	if (in_wire && body_size > 0) {
		p = m->wire + meta;
		memset(p, 0, 7);
		p[0] = 3;
		put_be32(p + 3, (uint32_t)body_size);
		memcpy(p + 7, body, body_size);
		p[7 + body_size] = 0xCE;
	} else if (body_size > 0) {
		ck_assert(msg_try_append(m, &last, body, 100000, body_size));
		ck_assert(msg_try_append(
		    m, &last, body + 100000, body_size - 100000, body_size - 100000));
	}
	free(body);
	return m;
}

static uint8_t *
body_of(const struct msg *m)
{
	uint8_t *to = xmalloc(m->body_size + 1), *p = to;

	if (m->rest == NULL) {
		memcpy(to, msg_body(m), m->body_size);
		return to;
	}
	for (const struct msg_piece *k = m->rest; k != NULL; p += k->n, k = k->next)
		memcpy(p, k->d, k->n);
	ck_assert_uint_eq((size_t)(p - to), m->body_size);
	return to;
}

START_TEST(a_message_comes_back_as_it_was)
{
	struct msg *m = full_message(body_sizes[_i]), *back;
	struct op_target target = { 1, 1, 0 };
	struct op_msg o = { 0 }, got;
	uint8_t *bytes, *a, *b;
	size_t at = 0;
	struct op op;
	int error = 0;

	msg_set_spread(m, 9);
	persist_store_ops.describe(m, &o);
	ck_assert_uint_eq(o.expires_ms, 12345 + 250);
	o.target = &target;
	o.targets = 1;
	bytes = xmalloc(op_msg_size(&o));
	ck_assert_ptr_eq(op_msg_encode(&o, bytes), bytes + op_msg_size(&o));
	ck_assert(op_next(span_of(bytes, op_msg_size(&o)), &at, &op, &error));
	ck_assert_int_eq(op_msg_decode(op.body, &got), 0);
	back = persist_store_ops.make(n.w.broker, &got);
	ck_assert_ptr_nonnull(back);
	free(bytes);
	ck_assert_uint_eq(back->names_len, m->names_len);
	ck_assert_uint_eq(back->meta_len, m->meta_len);
	ck_assert_uint_eq(back->body_size, m->body_size);
	ck_assert_uint_eq(back->arrived_ms, 12345);
	ck_assert_uint_eq(back->prio, 7);
	ck_assert_uint_eq(back->flags, m->flags);
	ck_assert_int_eq(back->rest == NULL, m->rest == NULL);
	ck_assert_mem_eq(back->wire, m->wire, m->meta_len);
	if (m->rest == NULL && m->body_size > 0)
		ck_assert_mem_eq(back->wire, m->wire, msg_wire_size(m->meta_len, m->body_size));
	a = body_of(m);
	b = body_of(back);
	ck_assert_int_eq(memcmp(a, b, m->body_size), 0);
	free(a);
	free(b);
	msg_unref(&m);
	msg_unref(&back);
}
END_TEST

/* A checksum says that the bytes are those that were written, not that they make sense. */
START_TEST(broken_parts_are_left_out)
{
	static const struct {
		const char *names;
		size_t n;
	} bad[] = { { "", 0 }, { "\1", 1 }, { "\1a", 2 }, { "\1a\5b", 4 }, { "\1a\1bc", 5 },
		{ "\377", 1 } };
	struct op_msg o = { .names = SPAN_LIT("\1a\1b"),
		.props = SPAN_LIT("\x10"),
		.body = SPAN_LIT("xy"),
		.body_size = 2 };
	struct msg *m = persist_store_ops.make(n.w.broker, &o);

	ck_assert_uint_eq(msg_props(m).n, 2);
	ck_assert_uint_eq(get_be16(msg_props(m).p), 0);
	ck_assert(span_is(msg_key(m), "b"));
	msg_unref(&m);
	o.props = SPAN_LIT("\0\0");
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		o.names = span_of(bad[i].names, bad[i].n);
		m = persist_store_ops.make(n.w.broker, &o);
		ck_assert_uint_eq(msg_exchange(m).n + msg_key(m).n, 0);
		ck_assert_uint_eq(m->body_size, 2);
		ck_assert_mem_eq(msg_body(m), "xy", 2);
		msg_unref(&m);
	}
}
END_TEST

START_TEST(no_memory_for_a_message)
{
	struct op_msg o = { .names = SPAN_LIT("\0\0"), .props = SPAN_LIT("\0\0") };
	uint8_t *body = xcalloc(1, 500000);

	o.body = span_of(body, 500000);
	o.body_size = 500000;
	for (unsigned long i = 1; i <= 2; i++) {
		mem_fail_try(i, 0);
		ck_assert_ptr_null(persist_store_ops.make(n.w.broker, &o));
	}
	mem_fail_try(0, 0);
	free(body);
}
END_TEST

/* ---- fields of objects ---- */

START_TEST(fields_are_found)
{
	struct definition d = { 0 };
	struct span s, state;

	definition_put(&d, DEF_NAME, SPAN_LIT("q"));
	definition_put_number(&d, DEF_FLAGS, UINT64_C(0x1122334455667788));
	definition_put(&d, DEF_KEY, span_of(NULL, 0));
	state = definition_span(&d);
	ck_assert(definition_name(state, DEF_NAME, &s) && span_is(s, "q"));
	ck_assert_uint_eq(definition_number(state, DEF_FLAGS), UINT64_C(0x1122334455667788));
	ck_assert_uint_eq(definition_number(state, DEF_QUEUE_ID), 0);
	ck_assert(definition_find(state, DEF_KEY, &s) && s.n == 0);
	ck_assert(!definition_find(state, DEF_TYPE, &s));
	/* cut anywhere: what is not whole is not there */
	for (size_t cut = 0; cut < state.n; cut++)
		ck_assert_int_eq(definition_find(span_of(state.p, cut), DEF_KEY, &s), false);
	definition_fini(&d);
	definition_put(&d, DEF_NAME, SPAN_LIT("a\0b"));
	ck_assert(!definition_name(definition_span(&d), DEF_NAME, &s));
	definition_fini(&d);
}
END_TEST

/* ---- topology ---- */

static struct exchange *
declare_exchange(struct vhost *vh, const char *name, const char *type, bool durable,
    bool auto_delete, bool internal, const struct table *arguments)
{
	struct exchange_spec spec = { .name = span_str(name),
		.type = span_str(type),
		.durable = durable,
		.auto_delete = auto_delete,
		.internal = internal,
		.arguments = arguments };
	const struct error *e;
	struct exchange *x = NULL;

	e = exchange_declare(vh, &spec, &x);
	ck_assert_msg(e == NULL, "%s", e->text);
	return x;
}

static struct table *
arguments(const char *name, const char *value)
{
	struct table_writer tw;
	struct table *t;

	table_writer_init(&tw, 1000);
	table_put_string(&tw, name, value);
	t = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	return t;
}

static void
make_topology(void)
{
	struct vhost *v = vhost_add(n.w.broker, "v");
	struct table *t = arguments("alternate-exchange", "amq.fanout"), *h = arguments("k", "v");
	struct exchange *x = declare_exchange(n.w.vhost, "x", "topic", true, false, false, t);
	struct exchange *y = declare_exchange(n.w.vhost, "y", "headers", true, true, true, NULL);
	struct exchange *z = declare_exchange(n.w.vhost, "z", "fanout", false, false, false, NULL);
	struct queue_spec spec = { .name = SPAN_LIT("auto"), .durable = true, .auto_delete = true };
	struct queue *q = node_queue(&n, "q", true), *tq = node_queue(&n, "t", false), *a;

	ck_assert_ptr_nonnull(declare_exchange(v, "in v", "direct", true, false, false, NULL));
	ck_assert_ptr_null(queue_declare(n.w.vhost, &spec, NULL, &a));
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("a.#"), h));
	ck_assert_ptr_null(binding_add(x, NULL, y, SPAN_LIT("b"), NULL));
	ck_assert_ptr_null(binding_add(y, q, NULL, SPAN_LIT(""), h));
	ck_assert_ptr_null(binding_add(x, tq, NULL, SPAN_LIT("c"), NULL));
	ck_assert_ptr_null(binding_add(z, q, NULL, SPAN_LIT("d"), NULL));
	ck_assert_ptr_null(binding_add(
	    exchange_find(n.w.vhost, SPAN_LIT("amq.direct")), q, NULL, SPAN_LIT("e"), NULL));
	ck_assert_ptr_null(binding_add(x, q, NULL, SPAN_LIT("gone"), NULL));
	ck_assert_ptr_null(binding_remove(x, q, NULL, SPAN_LIT("gone"), NULL));
	table_free(&t);
	table_free(&h);
}

static bool
is_bound(const char *source, const char *queue_name, const char *x, const char *key,
    const struct table *t)
{
	struct exchange *s = exchange_find(n.w.vhost, span_str(source));

	return s != NULL &&
	       binding_exists(s, queue_name != NULL ? queue(queue_name) : NULL,
	           x != NULL ? exchange_find(n.w.vhost, span_str(x)) : NULL, span_str(key), t);
}

START_TEST(topology_comes_back)
{
	struct table *h = arguments("k", "v");
	struct exchange *x;
	uint64_t id, x_id;

	make_topology();
	id = queue("q")->id;
	x_id = exchange_find(n.w.vhost, SPAN_LIT("x"))->id;
	for (int i = 0; i < 3; i++) {
		node_settle(&n);
		restart(i != 1);
		ck_assert_ptr_nonnull(vhost_find(n.w.broker, SPAN_LIT("v")));
		ck_assert_ptr_nonnull(
		    exchange_find(vhost_find(n.w.broker, SPAN_LIT("v")), SPAN_LIT("in v")));
		ck_assert_uint_eq(queue("q")->id, id);
		ck_assert(queue("q")->durable && !queue("q")->auto_delete);
		ck_assert(queue("auto")->auto_delete);
		ck_assert_ptr_null(queue("t"));
		x = exchange_find(n.w.vhost, SPAN_LIT("x"));
		ck_assert_uint_eq(x->id, x_id);
		ck_assert_int_eq(x->type, EXCHANGE_TOPIC);
		ck_assert(span_is(x->alternate, "amq.fanout") && x->durable && !x->internal);
		x = exchange_find(n.w.vhost, SPAN_LIT("y"));
		ck_assert(x->auto_delete && x->internal && x->type == EXCHANGE_HEADERS);
		ck_assert_ptr_null(exchange_find(n.w.vhost, SPAN_LIT("z")));
		ck_assert(is_bound("x", "q", NULL, "a.#", h));
		ck_assert(is_bound("x", NULL, "y", "b", NULL));
		ck_assert(is_bound("y", "q", NULL, "", h));
		ck_assert(is_bound("amq.direct", "q", NULL, "e", NULL));
		ck_assert(!is_bound("x", "q", NULL, "gone", NULL));
		ck_assert_uint_eq(n.w.broker->stats.bindings, 4);
		ck_assert_uint_eq(n.w.broker->stats.queues, 2);
		ck_assert_uint_ge(n.w.broker->next_id, id);
	}
	table_free(&h);
}
END_TEST

START_TEST(what_is_there_is_not_journalled_again)
{
	struct store_stats before, after;

	make_topology();
	node_settle(&n);
	restart(true);
	node_settle(&n);
	store_stats(n.w.broker->store, &before);
	(void)node_queue(&n, "q", true);
	(void)declare_exchange(n.w.vhost, "y", "headers", true, true, true, NULL);
	ck_assert_ptr_null(binding_add(exchange_find(n.w.vhost, SPAN_LIT("amq.direct")), queue("q"),
	    NULL, SPAN_LIT("e"), NULL));
	node_settle(&n);
	store_stats(n.w.broker->store, &after);
	ck_assert_uint_eq(after.journal_records, before.journal_records);
	ck_assert(!persist_must_wait(n.w.broker, persist_objects_wait(n.w.broker)));
}
END_TEST

START_TEST(what_was_deleted_stays_away)
{
	uint32_t messages;
	uint64_t id;

	make_topology();
	id = queue("q")->id;
	for (int i = 0; i < 10; i++)
		(void)node_publish(&n, queue("q"), persistent_msg((uint64_t)i, 8), 0);
	node_settle(&n);
	ck_assert_ptr_null(queue_delete(queue("q"), false, false, &messages));
	ck_assert_uint_eq(messages, 10);
	ck_assert_ptr_null(exchange_delete(n.w.vhost, SPAN_LIT("x"), false));
	ck_assert(persist_must_wait(n.w.broker, persist_objects_wait(n.w.broker)));
	node_settle(&n);
	ck_assert(!persist_must_wait(n.w.broker, persist_objects_wait(n.w.broker)));
	restart(false);
	ck_assert_ptr_null(queue("q"));
	ck_assert_ptr_null(exchange_find(n.w.vhost, SPAN_LIT("x")));
	/* y was auto-delete, and lost its last binding with q */
	ck_assert_ptr_null(exchange_find(n.w.vhost, SPAN_LIT("y")));
	ck_assert_uint_eq(n.w.broker->stats.bindings, 0);
	ck_assert_uint_eq(n.w.broker->stats.messages_ready, 0);
	ck_assert_uint_gt(node_queue(&n, "q", true)->id, id);
	node_settle(&n);
	restart(false);
	ck_assert_uint_eq(queue("q")->ready, 0);
	ck_assert(!is_bound("amq.direct", "q", NULL, "e", NULL));
}
END_TEST

/* Killed between the records of a deletion: the bindings are there without their queue. */
START_TEST(bindings_without_an_end_go)
{
	struct store *s = n.w.broker->store;
	uint64_t id;

	make_topology();
	id = queue("q")->id;
	store_gone(s, OBJECT_QUEUE, id);
	node_settle(&n);
	restart(false);
	ck_assert_ptr_null(queue("q"));
	ck_assert_uint_eq(n.w.broker->stats.bindings, 1);
	(void)node_queue(&n, "q", true);
	node_settle(&n);
	restart(false);
	ck_assert(LIST_EMPTY(&queue("q")->bindings));
}
END_TEST

/* As if the record that made it were damaged: that costs this record, and not all that lies in the vhost. */
START_TEST(a_vhost_whose_record_is_lost_is_made_again)
{
	struct vhost *v = vhost_add(n.w.broker, "v");
	struct queue_spec spec = { .name = SPAN_LIT("q"), .durable = true };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(v, &spec, NULL, &q));
	(void)node_publish(&n, q, persistent_msg(1, 8), 0);
	store_gone(n.w.broker->store, OBJECT_VHOST, v->id);
	for (int i = 0; i < 2; i++) {
		node_settle(&n);
		restart(false);
		v = vhost_find(n.w.broker, SPAN_LIT("v"));
		ck_assert_ptr_nonnull(v);
		q = queue_find(v, SPAN_LIT("q"));
		ck_assert_ptr_nonnull(q);
		ck_assert_uint_eq(q->ready, 1);
	}
}
END_TEST

/* As if the record that deleted the first one were damaged. */
START_TEST(of_two_queues_of_one_name_the_newer_stays)
{
	struct definition d = { 0 };
	struct queue *q = node_queue(&n, "q", true);
	uint64_t old = q->id, id;
	uint32_t messages;

	(void)node_publish(&n, q, persistent_msg(1, 8), 0);
	ck_assert_ptr_null(queue_delete(q, false, false, &messages));
	definition_put(&d, DEF_NAME, SPAN_LIT("q"));
	definition_put(&d, DEF_VHOST, SPAN_LIT("/"));
	store_put(n.w.broker->store, OBJECT_QUEUE, old, definition_span(&d));
	definition_fini(&d);
	q = node_queue(&n, "q", true);
	id = q->id;
	(void)node_publish(&n, q, persistent_msg(2, 8), 0);
	(void)node_publish(&n, q, persistent_msg(3, 8), 0);
	for (int i = 0; i < 2; i++) {
		node_settle(&n);
		restart(false);
		ck_assert_uint_eq(queue("q")->id, id);
		ck_assert_uint_eq(queue("q")->ready, 2);
		ck_assert(!object_exists(n.w.broker->store, OBJECT_QUEUE, old));
	}
}
END_TEST

/* ---- waiting ---- */

START_TEST(what_a_confirm_waits_for)
{
	struct queue *q = node_queue(&n, "q", true), *t = node_queue(&n, "t", false);
	struct table *a = arguments("x-sync", "never"), *bad = arguments("x-sync", "often");
	struct queue_spec spec = { .name = SPAN_LIT("never"), .durable = true, .arguments = a };
	const struct error *e;
	struct store_wait wait;
	struct queue *never;

	wait = node_publish(&n, q, persistent_msg(1, 8), 0);
	ck_assert(wait.durable && persist_must_wait(n.w.broker, wait));
	node_settle(&n);
	ck_assert(!persist_must_wait(n.w.broker, wait));
	wait = node_publish(&n, t, persistent_msg(1, 8), 0);
	ck_assert_uint_eq(wait.lsn, 0);
	wait = node_publish(&n, q, world_msg(1, 8), 0);
	ck_assert_uint_eq(wait.lsn, 0);
	ck_assert_ptr_null(queue_declare(n.w.vhost, &spec, NULL, &never));
	wait = node_publish(&n, never, persistent_msg(1, 8), 0);
	ck_assert(wait.lsn != 0 && !wait.durable);
	node_settle(&n);
	restart(false);
	wait = node_publish(&n, queue("never"), persistent_msg(1, 8), 0);
	ck_assert(wait.lsn != 0 && !wait.durable);
	spec.name = SPAN_LIT("bad");
	spec.arguments = bad;
	e = queue_declare(n.w.vhost, &spec, NULL, &never);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->text,
	    "PRECONDITION_FAILED - invalid arg 'x-sync' for queue 'bad' in vhost '/': "
	    "\"unsupported sync policy 'often'\"");
	table_free(&a);
	table_free(&bad);
}
END_TEST

START_TEST(sync_is_read)
{
	static const struct {
		const char *text;
		int rc;
		enum sync_policy policy;
		uint32_t ms;
	} cases[] = { { "always", 0, SYNC_POLICY_ALWAYS, 0 }, { "never", 0, SYNC_POLICY_NEVER, 0 },
		{ "50ms", 0, SYNC_POLICY_MS, 50 }, { "1s", 0, SYNC_POLICY_MS, 1000 },
		{ "60s", 0, SYNC_POLICY_MS, 60000 }, { "61s", -EINVAL, 0, 0 },
		{ "0ms", -EINVAL, 0, 0 }, { "1", -EINVAL, 0, 0 }, { "", -EINVAL, 0, 0 }, { "Always", -EINVAL, 0, 0 },
		{ "99999999999999999999ms", -EINVAL, 0, 0 } };
	struct sync_setting s;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		ck_assert_int_eq(sync_parse(span_str(cases[i].text), &s), cases[i].rc);
		ck_assert_int_eq(s.policy, cases[i].policy);
		ck_assert_uint_eq(s.ms, cases[i].ms);
	}
	ck_assert_int_eq(sync_parse(span_of("50ms\0", 5), &s), -EINVAL);
}
END_TEST

START_TEST(a_full_disk_holds_publishers)
{
	ck_assert_ptr_null(persist_hold(n.w.broker));
	n.w.broker->disk_low = true;
	ck_assert_str_eq(persist_hold(n.w.broker), "low on disk space");
	n.w.broker->disk_low = false;
	ck_assert_ptr_null(persist_hold(n.w.broker));
}
END_TEST

static Suite *
persist_suite(void)
{
	Suite *s = suite_create("persist");
	TCase *t = tcase_create("persist");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, a_message_comes_back_as_it_was, 0, COUNT_OF(body_sizes));
	tcase_add_test(t, broken_parts_are_left_out);
	tcase_add_test(t, no_memory_for_a_message);
	tcase_add_test(t, fields_are_found);
	tcase_add_test(t, topology_comes_back);
	tcase_add_test(t, what_is_there_is_not_journalled_again);
	tcase_add_test(t, what_was_deleted_stays_away);
	tcase_add_test(t, bindings_without_an_end_go);
	tcase_add_test(t, a_vhost_whose_record_is_lost_is_made_again);
	tcase_add_test(t, of_two_queues_of_one_name_the_newer_stays);
	tcase_add_test(t, what_a_confirm_waits_for);
	tcase_add_test(t, sync_is_read);
	tcase_add_test(t, a_full_disk_holds_publishers);
	suite_add_tcase(s, t);
	return s;
}

int
main(void)
{
	SRunner *r = srunner_create(persist_suite());
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
