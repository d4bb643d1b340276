/* SPDX-License-Identifier: Apache-2.0
 * Declaring queues: every refusal with its text, as RabbitMQ 3.10 gives it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/hash.h"
#include "broker/table.h"
#include "queue_world.h"
#include "tests/unit/user_world.h"

static struct world w;
static struct client client, other;

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	world_client(&w, &other);
}

static void
tear_down(void)
{
	client_fini(&client);
	client_fini(&other);
	world_fini(&w);
}

/* One argument as a test writes it; S: text, I and l: number, t: number as truth, V d A: no value. */
struct arg {
	const char *name;
	char kind;
	const char *text;
	int64_t number;
};

static struct table *
make_table(const struct arg *a, size_t n)
{
	struct table_writer tw;
	struct table *t;

	table_writer_init(&tw, 4096);
	for (size_t i = 0; i < n && a[i].name != NULL; i++) {
		struct field f = { .name = span_str(a[i].name),
			.kind = (uint8_t)a[i].kind,
			.integer = a[i].number,
			.truth = a[i].number != 0,
			.number = 1.5 };

		if (a[i].kind == 'S')
			f.bytes = span_str(a[i].text);
		table_put_field(&tw, &f);
	}
	ck_assert(!tw.failed);
	t = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	return t;
}

static const struct error *
declare(const char *name, bool durable, bool auto_delete, bool exclusive, const struct arg *a,
    size_t n, struct client *c)
{
	struct table *t = make_table(a, n);
	struct queue_spec spec = { .name = span_str(name),
		.durable = durable,
		.auto_delete = auto_delete,
		.exclusive = exclusive,
		.arguments = t };
	struct queue *q = NULL;
	const struct error *e = queue_declare(w.vhost, &spec, c, &q);

	ck_assert((e == NULL) == (q != NULL));
	table_free(&t);
	return e;
}

/* ---- arguments of a new queue ---- */

#define INVALID(name, what) \
	"PRECONDITION_FAILED - invalid arg '" name "' for queue 'q' in vhost '/': " what
#define OTHER(name)                                \
	"PRECONDITION_FAILED - invalid arg '" name \
	"' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
#define LATER(name) \
	"NOT_IMPLEMENTED - queue argument '" name "' comes with a later version of Hermes"

static const struct {
	struct arg arg[2];
	const char *text; /* NULL: accepted */
} new_cases[] = {
	{ { { "x-queue-type", 'S', "foo", 0 } },
	    INVALID("x-queue-type", "\"unsupported queue type 'foo'\"") },
	{ { { "x-queue-type", 'S', "", 0 } },
	    INVALID("x-queue-type", "\"unsupported queue type ''\"") },
	{ { { "x-queue-type", 'I', NULL, 5 } },
	    INVALID("x-queue-type", "{unacceptable_type,signedint}") },
	{ { { "x-queue-type", 'S', "classic", 0 } }, NULL },
	/* not durable: the queue of these cases */
	{ { { "x-queue-type", 'S', "quorum", 0 } },
	    "PRECONDITION_FAILED - invalid property 'non-durable' for queue 'q' in vhost '/'" },
	{ { { "x-queue-type", 'S', "quorum", 0 }, { "x-max-priority", 'I', NULL, -1 } },
	    "PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'q' in vhost '/' of "
	    "queue "
	    "type rabbit_quorum_queue" },
	{ { { "x-queue-type", 'S', "stream", 0 } },
	    "NOT_IMPLEMENTED - queue type 'stream' comes with a later version of Hermes" },
	{ { { "x-message-ttl", 'I', NULL, -1 }, { "x-queue-type", 'S', "foo", 0 } },
	    INVALID("x-queue-type", "\"unsupported queue type 'foo'\"") },
	{ { { "x-queue-mode", 'S', "default", 0 } }, NULL },
	{ { { "x-queue-mode", 'S', "lazy", 0 } }, NULL },
	{ { { "x-queue-mode", 'S', "foo", 0 } },
	    INVALID("x-queue-mode", "\"unsupported queue mode 'foo'\"") },
	{ { { "x-queue-mode", 'I', NULL, 5 } },
	    INVALID("x-queue-mode", "{unacceptable_type,signedint}") },
	{ { { "x-queue-version", 'I', NULL, 1 } }, NULL },
	{ { { "x-queue-version", 'I', NULL, 2 } }, NULL },
	{ { { "x-queue-version", 'I', NULL, 3 } },
	    INVALID("x-queue-version", "\"unsupported queue version '3'\"") },
	{ { { "x-queue-version", 'S', "1", 0 } },
	    INVALID("x-queue-version", "\"expected integer, got longstr\"") },
	{ { { "x-message-ttl", 'I', NULL, 1000 } }, NULL },
	{ { { "x-message-ttl", 'l', NULL, 1LL << 32 } }, NULL },
	{ { { "x-message-ttl", 'I', NULL, -1 } }, INVALID("x-message-ttl", "{value_negative,-1}") },
	{ { { "x-message-ttl", 'l', NULL, 1LL << 40 } },
	    INVALID("x-message-ttl", "{value_too_large,1099511627776}") },
	{ { { "x-message-ttl", 'S', "abc", 0 } },
	    INVALID("x-message-ttl", "\"expected integer, got longstr\"") },
	{ { { "x-message-ttl", 'V', NULL, 0 } },
	    INVALID("x-message-ttl", "\"expected integer, got void\"") },
	{ { { "x-message-ttl", 'd', NULL, 0 } },
	    INVALID("x-message-ttl", "\"expected integer, got double\"") },
	{ { { "x-message-ttl", 't', NULL, 1 } },
	    INVALID("x-message-ttl", "\"expected integer, got bool\"") },
	{ { { "x-message-ttl", 'A', NULL, 0 } },
	    INVALID("x-message-ttl", "\"expected integer, got array\"") },
	{ { { "x-expires", 'I', NULL, 0 } }, INVALID("x-expires", "{value_zero,0}") },
	{ { { "x-expires", 'I', NULL, 60000 } }, NULL },
	{ { { "x-message-ttl", 'I', NULL, -1 }, { "x-expires", 'I', NULL, 0 } },
	    INVALID("x-expires", "{value_zero,0}") },
	{ { { "x-max-length", 'I', NULL, -1 } }, INVALID("x-max-length", "{value_negative,-1}") },
	{ { { "x-max-length", 'I', NULL, 5 } }, NULL },
	{ { { "x-max-length-bytes", 'I', NULL, -5 } },
	    INVALID("x-max-length-bytes", "{value_negative,-5}") },
	{ { { "x-max-length-bytes", 'I', NULL, 5 } }, NULL },
	{ { { "x-max-priority", 'I', NULL, 256 } },
	    INVALID("x-max-priority", "{max_value_exceeded,256}") },
	{ { { "x-max-priority", 'I', NULL, 0 } }, NULL },
	{ { { "x-max-priority", 'I', NULL, 10 } }, NULL },
	{ { { "x-max-priority", 'l', NULL, 255 } }, NULL },
	{ { { "x-overflow", 'S', "foo", 0 } }, INVALID("x-overflow", "invalid_overflow") },
	{ { { "x-overflow", 'I', NULL, 5 } },
	    INVALID("x-overflow", "{unacceptable_type,signedint}") },
	{ { { "x-overflow", 'S', "drop-head", 0 } }, NULL },
	{ { { "x-dead-letter-exchange", 'I', NULL, 5 } },
	    "PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in "
	    "queue 'q' in vhost "
	    "'/'" },
	{ { { "x-dead-letter-exchange", 'S', "dlx", 0 } }, NULL },
	{ { { "x-dead-letter-exchange", 'S', "", 0 },
	      { "x-dead-letter-routing-key", 'S', "k", 0 } },
	    NULL },
	{ { { "x-dead-letter-routing-key", 'S', "k", 0 } },
	    INVALID("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined") },
	{ { { "x-dead-letter-routing-key", 'I', NULL, 5 } },
	    INVALID("x-dead-letter-routing-key", "{unacceptable_type,signedint}") },
	{ { { "x-single-active-consumer", 'S', "true", 0 } },
	    INVALID("x-single-active-consumer", "{unacceptable_type,longstr}") },
	{ { { "x-single-active-consumer", 't', NULL, 1 } }, NULL },
	{ { { "x-single-active-consumer", 't', NULL, 0 } }, NULL },
	{ { { "x-consumer-timeout", 'I', NULL, 5 } }, NULL },
	{ { { "x-consumer-timeout", 'S', "5", 0 } },
	    INVALID("x-consumer-timeout", "\"expected integer, got longstr\"") },
	{ { { "x-consumer-timeout", 'I', NULL, -5 } },
	    INVALID("x-consumer-timeout", "{value_negative,-5}") },
	{ { { "x-queue-master-locator", 'S', "min-masters", 0 } }, NULL },
	{ { { "x-queue-master-locator", 'S', "foo", 0 } },
	    INVALID("x-queue-master-locator", "\"unsupported queue master locator 'foo'\"") },
	{ { { "x-delivery-limit", 'I', NULL, 5 } }, OTHER("x-delivery-limit") },
	{ { { "x-max-in-memory-length", 'I', NULL, 1 } }, OTHER("x-max-in-memory-length") },
	{ { { "x-max-in-memory-bytes", 'I', NULL, 1 } }, OTHER("x-max-in-memory-bytes") },
	{ { { "x-quorum-initial-group-size", 'I', NULL, 1 } },
	    OTHER("x-quorum-initial-group-size") },
	{ { { "x-initial-cluster-size", 'I', NULL, 1 } }, OTHER("x-initial-cluster-size") },
	{ { { "x-max-age", 'S', "1h", 0 } }, OTHER("x-max-age") },
	{ { { "x-stream-max-segment-size-bytes", 'I', NULL, 1000 } },
	    OTHER("x-stream-max-segment-size-bytes") },
	{ { { "x-dead-letter-strategy", 'S', "at-least-once", 0 } },
	    OTHER("x-dead-letter-strategy") },
	{ { { "x-queue-leader-locator", 'S', "balanced", 0 } }, OTHER("x-queue-leader-locator") },
	/* the value of one that does not belong there is not looked at */
	{ { { "x-dead-letter-strategy", 'S', "foo", 0 } }, OTHER("x-dead-letter-strategy") },
	{ { { "x-max-in-memory-length", 'I', NULL, -1 } }, OTHER("x-max-in-memory-length") },
	{ { { "x-max-age", 'S', "1h", 0 }, { "x-message-ttl", 'I', NULL, -1 } },
	    INVALID("x-message-ttl", "{value_negative,-1}") },
	{ { { "x-max-age", 'S', "1h", 0 }, { "x-delivery-limit", 'I', NULL, 5 } },
	    OTHER("x-delivery-limit") },
	{ { { "x-ha-policy", 'S', "all", 0 } }, NULL },
	{ { { "x-foo", 'I', NULL, 1 }, { "foo", 'S', "bar", 0 } }, NULL },
};

START_TEST(new_queue)
{
	const struct error *e = declare("q", false, false, false, new_cases[_i].arg, 2, &client);

	if (new_cases[_i].text == NULL) {
		ck_assert_ptr_null(e);
		/* and again with the same */
		ck_assert_ptr_null(
		    declare("q", false, false, false, new_cases[_i].arg, 2, &client));
		return;
	}
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->text, new_cases[_i].text);
	ck_assert_int_eq(e->scope,
	    strncmp(e->text, "NOT_IMPLEMENTED", 15) == 0 ? ERROR_CONNECTION : ERROR_CHANNEL);
	ck_assert_ptr_null(queue_find(w.vhost, SPAN_LIT("q")));
}
END_TEST

/* ---- declared again ---- */

#define DIFFERS(name, how) \
	"PRECONDITION_FAILED - inequivalent arg '" name "' for queue 'q' in vhost '/': " how
#define LOCKED                                                                                   \
	"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It " \
	"could be "                                                                              \
	"originally declared on another connection or the exclusive property value does not "    \
	"match that of "                                                                         \
	"the original declaration."

static const struct {
	bool durable, auto_delete, exclusive;
	struct arg arg[2];
	const char *text;
} again_cases[] = {
	/* the queue has x-queue-mode=default and nothing else */
	{ false, false, false, { { "x-queue-mode", 'S', "default", 0 } }, NULL },
	{ true, false, false, { { "x-message-ttl", 'I', NULL, -1 } },
	    DIFFERS("durable", "received 'true' but current is 'false'") },
	{ true, true, false, { { 0 } },
	    DIFFERS("durable", "received 'true' but current is 'false'") },
	{ false, true, false, { { "x-queue-type", 'S', "quorum", 0 } },
	    DIFFERS("auto_delete", "received 'true' but current is 'false'") },
	{ true, false, true, { { 0 } }, LOCKED },
	{ false, false, false, { { 0 } },
	    DIFFERS("x-queue-mode",
	        "received none but current is the value 'default' of type 'longstr'") },
	{ false, false, false, { { "x-queue-mode", 'S', "lazy", 0 } },
	    DIFFERS("x-queue-mode", "received 'lazy' but current is 'default'") },
	{ false, false, false,
	    { { "x-queue-mode", 'S', "default", 0 }, { "x-message-ttl", 'I', NULL, -1 } },
	    DIFFERS("x-message-ttl",
	        "received the value '-1' of type 'signedint' but current is none") },
	{ false, false, false,
	    { { "x-queue-mode", 'S', "default", 0 }, { "x-queue-type", 'S', "quorum", 0 } },
	    DIFFERS("x-queue-type",
	        "received the value 'quorum' of type 'longstr' but current is none") },
	{ false, false, false,
	    { { "x-queue-mode", 'S', "default", 0 }, { "x-queue-type", 'S', "classic", 0 } },
	    NULL },
	{ false, false, false,
	    { { "x-queue-mode", 'S', "default", 0 }, { "x-max-age", 'S', "1h", 0 } }, NULL },
	{ false, false, false, { { "x-queue-mode", 'S', "default", 0 }, { "foo", 'S', "1h", 0 } },
	    NULL },
};

START_TEST(declared_again)
{
	static const struct arg mode = { "x-queue-mode", 'S', "default", 0 };
	const struct error *e;

	ck_assert_ptr_null(declare("q", false, false, false, &mode, 1, &client));
	e = declare("q", again_cases[_i].durable, again_cases[_i].auto_delete,
	    again_cases[_i].exclusive, again_cases[_i].arg, 2, &client);
	if (again_cases[_i].text == NULL)
		ck_assert_ptr_null(e);
	else
		ck_assert_str_eq(e->text, again_cases[_i].text);
}
END_TEST

START_TEST(width_of_a_number_does_not_matter)
{
	static const struct arg made = { "x-queue-version", 'I', NULL, 2 };
	static const char kinds[] = "bBsuil";
	struct arg again = made;

	ck_assert_ptr_null(declare("q", false, false, false, &made, 1, &client));
	for (const char *k = kinds; *k != '\0'; k++) {
		again.kind = *k;
		ck_assert_ptr_null(declare("q", false, false, false, &again, 1, &client));
	}
	again.number = 1;
	ck_assert_str_eq(declare("q", false, false, false, &again, 1, &client)->text,
	    DIFFERS("x-queue-version", "received '1' but current is '2'"));
}
END_TEST

START_TEST(exclusive_lock)
{
	struct queue *q;

	ck_assert_ptr_null(declare("q", false, false, true, NULL, 0, &client));
	ck_assert_ptr_null(declare("q", false, false, true, NULL, 0, &client));
	ck_assert_str_eq(declare("q", false, false, false, NULL, 0, &client)->text, LOCKED);
	ck_assert_str_eq(declare("q", true, false, true, NULL, 0, &other)->text, LOCKED);
	ck_assert_str_eq(queue_lookup(w.vhost, SPAN_LIT("q"), &other, &q)->text, LOCKED);
	ck_assert_ptr_null(queue_lookup(w.vhost, SPAN_LIT("q"), &client, &q));
	client_drop_exclusive(&client);
	ck_assert_str_eq(queue_lookup(w.vhost, SPAN_LIT("q"), &client, &q)->text,
	    "NOT_FOUND - no queue 'q' in vhost '/'");
}
END_TEST

/* What ends with its client needs no disk: `durable` is not kept, so it does not count either. */
START_TEST(exclusive_is_not_durable)
{
	ck_assert_ptr_null(declare("q", true, false, true, NULL, 0, &client));
	ck_assert(!queue_find(w.vhost, SPAN_LIT("q"))->durable);
	ck_assert_ptr_null(declare("q", false, false, true, NULL, 0, &client));
	ck_assert_ptr_null(declare("q", true, false, true, NULL, 0, &client));
}
END_TEST

static __attribute__((noinline)) uint64_t
unseeded(const char *name, size_t n)
{
	return XXH3_64bits(name, n);
}

/* Names that the hash puts into one bucket, whatever the table's size, where it has no seed. */
START_TEST(chosen_names_do_not_collide)
{
	enum { NAMES = 500, BITS = 10, MOST = 32 };
	const struct buckets *b = &w.vhost->queues_by_name;
	unsigned made = 0;
	char name[16];

	for (unsigned i = 0; made < NAMES; i++) {
		int n = snprintf(name, sizeof name, "q%u", i);

		if ((unseeded(name, (size_t)n) & ((1u << BITS) - 1)) != 0)
			continue;
		ck_assert_ptr_null(declare(name, false, false, false, NULL, 0, &client));
		made++;
	}
	for (uint64_t at = 0; at < b->low + b->split; at++) {
		unsigned length = 0;

		for (const struct bucket_node *k = *buckets_slot(b, at); k != NULL; k = k->next)
			length++;
		ck_assert_uint_lt(length, MOST);
	}
}
END_TEST

START_TEST(names)
{
	static const struct arg bad = { "x-message-ttl", 'I', NULL, -1 };
	struct queue_spec spec = { 0 };
	struct queue *one, *two;
	char longest[256];

	ck_assert_str_eq(declare("amq.mine", false, false, false, &bad, 1, &client)->text,
	    "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'");
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, &client, &one));
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, &client, &two));
	ck_assert_ptr_ne(one, two);
	ck_assert_uint_eq(one->name_len, 8 + 22);
	ck_assert_int_eq(strncmp(one->name, "amq.gen-", 8), 0);
	ck_assert_uint_eq(declare(one->name, false, false, false, NULL, 0, &client)->code, 403);
	memset(longest, 'n', 255);
	longest[255] = '\0';
	ck_assert_ptr_null(declare(longest, false, false, false, NULL, 0, &client));
	ck_assert_ptr_nonnull(queue_find(w.vhost, span_str(longest)));
	ck_assert_ptr_null(queue_find(w.vhost, span_of(longest, 254)));
}
END_TEST

START_TEST(limit_of_queues)
{
	w.cfg.queues = 2;
	ck_assert_ptr_null(declare("1", false, false, false, NULL, 0, &client));
	ck_assert_ptr_null(declare("2", false, false, false, NULL, 0, &client));
	ck_assert_str_eq(declare("3", false, false, false, NULL, 0, &client)->text,
	    "PRECONDITION_FAILED - cannot declare queue '3' in vhost '/': the limit limits.queues "
	    "(2) is reached");
	ck_assert_ptr_null(declare("2", false, false, false, NULL, 0, &client));
	queue_remove(queue_find(w.vhost, SPAN_LIT("1")));
	ck_assert_ptr_null(declare("3", false, false, false, NULL, 0, &client));
}
END_TEST

START_TEST(needs_configure)
{
	struct user *u = user_add(w.broker, "u", "p", "", false);
	struct queue_spec spec = { 0 };
	struct queue *q;
	const struct error *e;

	ck_assert_ptr_null(permission_set(u, w.vhost, "^mine-", ".*", ".*"));
	client_set_user(&client, u);
	ck_assert_ptr_null(declare("mine-1", false, false, false, NULL, 0, &client));
	ck_assert_str_eq(declare("other", false, false, false, NULL, 0, &client)->text,
	    "ACCESS_REFUSED - access to queue 'other' in vhost '/' refused for user 'u'");
	e = queue_declare(w.vhost, &spec, &client, &q);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(strncmp(e->text, "ACCESS_REFUSED - access to queue 'amq.gen-", 42), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("queue_declare");
	TCase *t = tcase_create("declare");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, new_queue, 0, COUNT_OF(new_cases));
	tcase_add_loop_test(t, declared_again, 0, COUNT_OF(again_cases));
	tcase_add_test(t, width_of_a_number_does_not_matter);
	tcase_add_test(t, exclusive_lock);
	tcase_add_test(t, exclusive_is_not_durable);
	tcase_add_test(t, chosen_names_do_not_collide);
	tcase_add_test(t, names);
	tcase_add_test(t, limit_of_queues);
	tcase_add_test(t, needs_configure);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
