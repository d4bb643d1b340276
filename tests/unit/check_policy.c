/* SPDX-License-Identifier: Apache-2.0
 * Policies: what may be said, which one applies, and what that does to queues and exchanges that are there. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/exchange.h"
#include "broker/pattern.h"
#include "broker/policy.h"
#include "persist_world.h"
#include "queue_args.h"

static struct world w;
static struct client client;
static struct peer peer;

static void
set_up(void)
{
	world_init(&w);
	world_client(&w, &client);
	peer_init(&peer, &client);
}

static void
tear_down(void)
{
	peer_fini(&peer);
	client_fini(&client);
	world_fini(&w);
}

/* ---- helpers ---- */

static const struct error *
try_set(struct vhost *vh, enum policy_kind kind, const char *name, const char *pattern,
    const char *apply_to, int64_t priority, const struct queue_arg *a, size_t n)
{
	struct table *definition = queue_args(a, n);
	const struct error *e;

	e = policy_set(vh, kind,
	    &(struct policy_spec){ .name = span_str(name),
	        .pattern = span_str(pattern),
	        .apply_to = span_str(apply_to),
	        .priority = priority,
	        .definition = definition },
	    NULL);
	table_free(&definition);
	return e;
}

#define SET(kind, name, pattern, apply_to, priority, ...)                                        \
	do {                                                                                     \
		const struct queue_arg a_[] = { __VA_ARGS__ };                                   \
		const struct error *e_ =                                                         \
		    try_set(w.vhost, kind, name, pattern, apply_to, priority, a_, COUNT_OF(a_)); \
		ck_assert_msg(e_ == NULL, "%s", e_ != NULL ? e_->text : "");                     \
	} while (0)

static void
publish(struct queue *q, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		queue_publish(q, world_msg(i, 8), 0);
}

static const char *
name_of(const struct policy *p)
{
	return p != NULL ? p->name : "none";
}

static void
clear(enum policy_kind kind, const char *name)
{
	ck_assert(policy_clear(w.vhost, kind, span_str(name)));
	world_turn(&w);
}

/* ---- what may be said ---- */

static const struct {
	enum policy_kind kind;
	const char *pattern, *apply_to;
	struct queue_arg a;
	const char *reason; /* NULL: it is right */
} said[] = {
	{ POLICY_USER, "x", "", { "max-length", 'l', 1, NULL }, NULL },
	{ POLICY_USER, "x", "classic_queues", { "max-length", 'l', 1, NULL }, NULL },
	{ POLICY_USER, "x", "", { "ha-mode", 'S', 0, "all" }, NULL },
	{ POLICY_USER, "x", "", { "alternate-exchange", 'S', 0, "a" }, NULL },
	{ POLICY_USER, "x", "", { "initial-cluster-size", 'l', 3, NULL }, NULL },
	{ POLICY_OPERATOR, "x", "", { "delivery-limit", 'l', 2, NULL }, NULL },
	{ POLICY_USER, "x", "", { "bogus", 'l', 1, NULL },
	    "[{<<\"bogus\">>,1}] are not recognised policy settings\n" },
	{ POLICY_USER, "x", "", { "zip", 'S', 0, "a" },
	    "[{<<\"zip\">>,<<\"a\">>}] are not recognised policy settings\n" },
	{ POLICY_USER, "x", "", { "mesage-ttl", 'l', 1, NULL },
	    "[{<<\"mesage-ttl\">>,1}] are not recognised policy settings: unknown key "
	    "'mesage-ttl'; did you mean 'message-ttl'?\n" },
	{ POLICY_USER, "x", "", { "ha-modes", 'S', 0, "all" },
	    "[{<<\"ha-modes\">>,<<\"all\">>}] are not recognised policy settings: unknown key "
	    "'ha-modes'; did you mean 'ha-mode'?\n" },
	{ POLICY_OPERATOR, "x", "", { "max-lenght", 'l', 1, NULL },
	    "[{<<\"max-lenght\">>,1}] are not recognised policy settings: unknown key "
	    "'max-lenght'; did you mean 'max-length'?\n" },
	/* a name is cut, but no character */
	{ POLICY_USER, "x", "", { "a-name-of-39-bytes-and-then-a-character\xc3\xa4", 'l', 1, NULL },
	    "[{<<\"a-name-of-39-bytes-and-then-a-character\">>,1}] are not recognised policy "
	    "settings\n" },
	{ POLICY_OPERATOR, "x", "", { "overflow", 'S', 0, "drop-head" },
	    "[{<<\"overflow\">>,<<\"drop-head\">>}] are not recognised policy settings\n" },
	{ POLICY_OPERATOR, "x", "", { "consumer-timeout", 'l', 4, NULL },
	    "[{<<\"consumer-timeout\">>,4}] are not recognised policy settings\n" },
	{ POLICY_USER, "x", "", { "max-length", 'l', -1, NULL },
	    "-1 is not a valid maximum length\n" },
	{ POLICY_USER, "x", "", { "max-length", 'S', 0, "a" },
	    "<<\"a\">> is not a valid maximum length\n" },
	{ POLICY_USER, "x", "", { "max-length", 't', 1, NULL },
	    "true is not a valid maximum length\n" },
	{ POLICY_USER, "x", "", { "max-length-bytes", 'l', -1, NULL },
	    "-1 is not a valid maximum length in bytes\n" },
	{ POLICY_USER, "x", "", { "message-ttl", 'l', -1, NULL },
	    "-1 is not a valid message TTL\n" },
	{ POLICY_USER, "x", "", { "expires", 'l', 0, NULL }, "0 is not a valid queue expiry\n" },
	{ POLICY_USER, "x", "", { "overflow", 'S', 0, "foo" },
	    "<<\"foo\">> is not a valid overflow value\n" },
	{ POLICY_USER, "x", "", { "queue-mode", 'l', 5, NULL },
	    "5 is not a valid queue-mode value\n" },
	{ POLICY_USER, "x", "", { "dead-letter-exchange", 'l', 5, NULL },
	    "5 is not a valid dead letter exchange name\n" },
	{ POLICY_USER, "x", "", { "dead-letter-routing-key", 'l', 5, NULL },
	    "5 is not a valid dead letter routing key\n" },
	{ POLICY_USER, "x", "", { "dead-letter-strategy", 'S', 0, "foo" },
	    "<<\"foo\">> is not a valid dead letter strategy\n" },
	{ POLICY_USER, "x", "", { "alternate-exchange", 'l', 5, NULL },
	    "5 is not a valid alternate exchange name\n" },
	{ POLICY_USER, "x", "", { "delivery-limit", 'l', -1, NULL },
	    "-1 is not a valid delivery limit\n" },
	{ POLICY_USER, "x", "", { "queue-version", 'l', 3, NULL },
	    "3 is not a valid queue-version value\n" },
	{ POLICY_USER, "x", "", { "ha-mode", 'S', 0, "foo" },
	    "<<\"foo\">> is not a valid ha-mode value\n" },
	{ POLICY_USER, "x", "", { "ha-mode", 'S', 0, "exactly" },
	    "ha-mode=\"exactly\" takes an integer, none given\n" },
	{ POLICY_USER, "x", "", { "ha-sync-mode", 'S', 0, "automatic" },
	    "ha-mode must be specified to specify ha-params, ha-sync-mode or "
	    "ha-promote-on-shutdown\n" },
	{ POLICY_USER, "[", "", { "max-length", 'l', 1, NULL },
	    "pattern should be regular expression but is invalid: missing terminating ] for "
	    "character class at byte 1\n" },
	{ POLICY_USER, "x", "bogus", { "max-length", 'l', 1, NULL },
	    "apply-to 'bogus' unrecognised; should be 'queues', 'classic_queues', 'quorum_queues', "
	    "'streams', 'exchanges' or 'all'\n" },
	{ POLICY_USER, "x", "b", { "max-length", 'S', 0, "s" },
	    "<<\"s\">> is not a valid maximum length\napply-to 'b' unrecognised; should be "
	    "'queues', "
	    "'classic_queues', 'quorum_queues', 'streams', 'exchanges' or 'all'\n" },
};

START_TEST(what_may_be_said)
{
	const struct error *e = try_set(
	    w.vhost, said[_i].kind, "p", said[_i].pattern, said[_i].apply_to, 0, &said[_i].a, 1);
	char text[256];

	if (said[_i].reason == NULL) {
		ck_assert_ptr_null(e);
		ck_assert_ptr_nonnull(policy_find(w.vhost, said[_i].kind, SPAN_LIT("p")));
		return;
	}
	snprintf(
	    text, sizeof text, "PRECONDITION_FAILED - Validation failed\n\n%s", said[_i].reason);
	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(e->text, text);
	ck_assert_ptr_null(policy_find(w.vhost, said[_i].kind, SPAN_LIT("p")));
}
END_TEST

START_TEST(nothing_said)
{
	const struct error *e = try_set(w.vhost, POLICY_USER, "p", "x", "all", 0, NULL, 0);

	ck_assert_ptr_nonnull(e);
	ck_assert_str_eq(
	    e->text, "PRECONDITION_FAILED - Validation failed\n\nno policy provided\n");
}
END_TEST

START_TEST(bounds)
{
	const struct queue_arg a = { "max-length", 'l', 1, NULL };
	char name[20], pattern[PATTERN_LEN_MAX + 2];

	for (int i = 0; i < POLICIES_MAX; i++) {
		snprintf(name, sizeof name, "p%d", i);
		ck_assert_ptr_null(try_set(w.vhost, POLICY_USER, name, "x", "all", 0, &a, 1));
	}
	ck_assert_ptr_nonnull(try_set(w.vhost, POLICY_USER, "more", "x", "all", 0, &a, 1));
	ck_assert_ptr_null(try_set(w.vhost, POLICY_USER, "p7", "y", "all", 0, &a, 1));
	memset(pattern, 'a', sizeof pattern - 1);
	pattern[sizeof pattern - 1] = '\0';
	ck_assert_ptr_nonnull(try_set(w.vhost, POLICY_OPERATOR, "p", pattern, "all", 0, &a, 1));
	ck_assert_ptr_nonnull(try_set(w.vhost, POLICY_OPERATOR, "", "x", "all", 0, &a, 1));
}
END_TEST

/* ---- which one applies ---- */

START_TEST(highest_priority_then_name)
{
	struct queue *q;

	SET(POLICY_USER, "c", "^q", "queues", 1, { "max-length", 'l', 3, NULL });
	SET(POLICY_USER, "b", "^q", "queues", 2, { "max-length", 'l', 4, NULL });
	SET(POLICY_USER, "a", "^q", "queues", 1, { "max-length", 'l', 5, NULL });
	SET(POLICY_USER, "x", "^q", "exchanges", 9, { "max-length", 'l', 6, NULL });
	SET(POLICY_USER, "y", "^other", "all", 9, { "max-length", 'l', 7, NULL });
	SET(POLICY_USER, "z", "^q", "quorum_queues", 9, { "max-length", 'l', 8, NULL });
	q = world_queue(&w, "q1");
	ck_assert_str_eq(name_of(q->policy[POLICY_USER]), "b");
	ck_assert_uint_eq(q->set.max_length, 4);
	clear(POLICY_USER, "b");
	ck_assert_str_eq(name_of(q->policy[POLICY_USER]), "a");
	ck_assert_uint_eq(q->set.max_length, 5);
	clear(POLICY_USER, "a");
	clear(POLICY_USER, "c");
	ck_assert_ptr_null(q->policy[POLICY_USER]);
	ck_assert_uint_eq(q->set.max_length, SETTING_NONE);
	ck_assert(!q->is_limited);
}
END_TEST

/* Arguments, the user's policy, the operator's. */
START_TEST(merged)
{
	static const struct queue_arg arguments[] = { { "x-max-length", 'l', 5, NULL },
		{ "x-overflow", 'S', 0, "reject-publish" } };
	struct queue *q = world_queue(&w, "m1"),
	             *r = world_queue_with(&w, "m2", false, arguments, 2);
	struct table *effective;
	struct field f;

	SET(POLICY_USER, "u", "^m", "all", 0, { "max-length", 'l', 10, NULL },
	    { "overflow", 'S', 0, "drop-head" }, { "message-ttl", 'l', 70, NULL });
	SET(POLICY_OPERATOR, "o", ".", "all", 0, { "max-length", 'l', 20, NULL },
	    { "message-ttl", 'l', 30, NULL }, { "expires", 'l', 100000, NULL });
	world_turn(&w);
	ck_assert_uint_eq(q->set.max_length, 10);
	ck_assert_uint_eq(q->set.ttl_ms, 30);
	ck_assert_uint_eq(q->set.expires_ms, 100000);
	ck_assert_ptr_nonnull(q->lease);
	ck_assert_uint_eq(r->set.max_length, 5);
	ck_assert_int_eq(r->set.overflow, OVERFLOW_REJECT);
	ck_assert_int_eq(policy_effective(q->policy, &effective), 0);
	ck_assert(table_find(table_span(effective), "max-length", &f) && f.integer == 10);
	ck_assert(table_find(table_span(effective), "message-ttl", &f) && f.integer == 30);
	ck_assert(table_find(table_span(effective), "expires", &f) && f.integer == 100000);
	ck_assert(
	    table_find(table_span(effective), "overflow", &f) && span_is(f.bytes, "drop-head"));
	table_free(&effective);
	clear(POLICY_OPERATOR, "o");
	ck_assert_uint_eq(q->set.ttl_ms, 70);
	ck_assert_ptr_null(q->lease);
}
END_TEST

/* What a queue's type does not know says nothing to it. */
START_TEST(of_its_type)
{
	struct queue *q = world_queue(&w, "q");

	SET(POLICY_USER, "u", ".", "all", 0, { "delivery-limit", 'l', 1, NULL },
	    { "dead-letter-strategy", 'S', 0, "at-least-once" });
	world_turn(&w);
	ck_assert_str_eq(name_of(q->policy[POLICY_USER]), "u");
	ck_assert_uint_eq(q->set.delivery_limit, SETTING_NONE);
	ck_assert(!q->set.at_least_once);
}
END_TEST

/* For "aaa...": one that would not end, one that takes its time at each place, one that takes less than each may. */
static const char *const slow[] = { "^(a+)+(b|c)+$", "(?:a|aa){1,14}[qr]", "^(?:a|aa){8}[qr]" };

/* A pattern made to take long matches nothing, and many of them hold nobody up. */
START_TEST(slow_patterns)
{
	const struct queue_arg a = { "max-length", 'l', 1, NULL };
	char name[256];
	struct queue_spec spec = { .name = span_of(name, 250) };
	struct queue *q = NULL;
	uint64_t before;

	memset(name, 'a', sizeof name);
	for (int i = 0; i < POLICIES_MAX; i++) {
		char p[10];

		snprintf(p, sizeof p, "s%d", i);
		ck_assert_ptr_null(try_set(w.vhost, POLICY_USER, p, slow[_i], "all", 1, &a, 1));
		ck_assert_ptr_null(try_set(w.vhost, POLICY_OPERATOR, p, slow[_i], "all", 1, &a, 1));
	}
	before = w.broker->work;
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, NULL, &q));
	ck_assert_ptr_null(q->policy[POLICY_USER]);
	ck_assert_uint_gt(w.broker->work - before, 2 * 8000 / PATTERN_STEPS_WORK);
	ck_assert_uint_lt(w.broker->work - before, 5000);
}
END_TEST

/* Simple ones have their say, whatever stands before them. */
START_TEST(simple_behind_slow)
{
	char name[256];
	struct queue_spec spec = { .name = span_of(name, 250) };
	struct queue *q = NULL;

	memset(name, 'a', sizeof name);
	for (int i = 0; i < 9; i++) {
		char p[10];

		snprintf(p, sizeof p, "s%d", i);
		SET(POLICY_USER, p, slow[0], "all", 1, { "max-length", 'l', 1, NULL });
	}
	SET(POLICY_USER, "t", "^a+", "all", 0, { "max-length", 'l', 7, NULL });
	SET(POLICY_OPERATOR, "o", "^a+", "all", 0, { "expires", 'l', 1000, NULL });
	ck_assert_ptr_null(queue_declare(w.vhost, &spec, NULL, &q));
	ck_assert_str_eq(name_of(q->policy[POLICY_USER]), "t");
	ck_assert_str_eq(name_of(q->policy[POLICY_OPERATOR]), "o");
}
END_TEST

/* One of the highest priority that matches is the last that is tried. */
START_TEST(in_order)
{
	uint64_t before;
	char p[10];

	for (int i = 0; i < POLICIES_MAX; i++) {
		snprintf(p, sizeof p, "p%d", i);
		SET(POLICY_USER, p, "^q", "all", i * 7 % POLICIES_MAX,
		    { "max-length", 'l', 1, NULL });
	}
	world_turn(&w);
	before = w.broker->work;
	ck_assert_int_eq(world_queue(&w, "q")->policy[POLICY_USER]->priority, POLICIES_MAX - 1);
	ck_assert_uint_lt(w.broker->work - before, 10);
}
END_TEST

/* ---- what is there already ---- */

START_TEST(backlog)
{
	struct queue *q = world_queue(&w, "q");

	publish(q, 5);
	SET(POLICY_USER, "cap", "^q", "queues", 0, { "max-length", 'l', 2, NULL });
	world_turn(&w);
	ck_assert_uint_eq(q->ready, 2);
	SET(POLICY_USER, "cap", "^q", "queues", 0, { "max-length", 'l', 1, NULL },
	    { "overflow", 'S', 0, "reject-publish" });
	world_turn(&w);
	ck_assert_uint_eq(q->ready, 2);
	ck_assert(q->refuses);
	ck_assert_uint_eq(w.broker->refusing, 1);
	clear(POLICY_USER, "cap");
	ck_assert_uint_eq(w.broker->refusing, 0);
	publish(q, 3);
	ck_assert_uint_eq(q->ready, 5);
}
END_TEST

static void
publish_now(struct queue *q)
{
	struct msg *m = world_msg(1, 8);

	m->arrived_ms = w.broker->now_ms;
	queue_publish(q, m, 0);
}

/* What comes in the millisecond of the change counts as old. */
static void
set_ttl(int64_t ms)
{
	SET(POLICY_USER, "t", "^q", "queues", 0, { "message-ttl", 'l', ms, NULL });
	world_turn(&w);
	world_at(&w, w.broker->now_ms + 2);
}

/* Each keeps the one under which it came; at the head only, as ever. */
START_TEST(ttl_of_what_is_there)
{
	struct queue *q = world_queue(&w, "q");

	publish_now(q);
	set_ttl(100);
	world_at(&w, w.broker->now_ms + 150);
	ck_assert_uint_eq(q->ready, 1);
	publish_now(q);
	set_ttl(50);
	(void)queue_purge(q);
	ck_assert_ptr_nonnull(q->ttl_past);
	publish_now(q); /* the queue was empty: nothing has to be known */
	ck_assert_ptr_null(q->ttl_past);
	set_ttl(1000);
	publish_now(q);
	clear(POLICY_USER, "t");
	world_at(&w, w.broker->now_ms + 2);
	publish_now(q);
	world_at(&w, w.broker->now_ms + 40);
	ck_assert_uint_eq(q->ready, 3);
	world_at(&w, w.broker->now_ms + 20);
	world_turn(&w);
	ck_assert_uint_eq(q->ready, 2);
	world_at(&w, w.broker->now_ms + 1000);
	world_turn(&w);
	ck_assert_uint_eq(q->ready, 1);
	world_at(&w, w.broker->now_ms + 100000);
	world_turn(&w);
	ck_assert_uint_eq(q->ready, 1);
}
END_TEST

/* The oldest two become one, of the longer life. */
START_TEST(many_ttls)
{
	struct queue *q = world_queue(&w, "q");
	uint64_t at[TTL_PAST_MAX + 2];

	set_ttl(500);
	for (int i = 0; i < TTL_PAST_MAX + 2; i++) {
		at[i] = w.broker->now_ms;
		publish_now(q);
		set_ttl(300 + i);
	}
	ck_assert_uint_eq(queue_ttl_at(q, at[0]), 500);
	ck_assert_uint_eq(queue_ttl_at(q, at[2]), 500);
	ck_assert_uint_eq(queue_ttl_at(q, at[4]), 303);
	ck_assert_uint_eq(queue_ttl_at(q, at[TTL_PAST_MAX + 1]), 300 + TTL_PAST_MAX);
	ck_assert_uint_eq(queue_ttl_at(q, w.broker->now_ms), 300 + TTL_PAST_MAX + 1);
}
END_TEST

START_TEST(lease_of_what_is_there)
{
	uint64_t now = w.broker->now_ms;

	(void)world_queue(&w, "q");
	SET(POLICY_USER, "e", "^q", "queues", 0, { "expires", 'l', 100, NULL });
	world_turn(&w);
	world_at(&w, now + 90);
	ck_assert_ptr_nonnull(queue_find(w.vhost, SPAN_LIT("q")));
	world_at(&w, now + 102);
	ck_assert_ptr_null(queue_find(w.vhost, SPAN_LIT("q")));
}
END_TEST

/* Letters that wait when the policy goes are sent to where it said: also to the default exchange, which has an empty name. */
START_TEST(letters_without_their_policy)
{
	struct queue *q = world_queue(&w, "q"), *k = world_queue(&w, "k");

	SET(POLICY_USER, "d", "^q", "queues", 0, { "dead-letter-exchange", 'S', 0, "" },
	    { "dead-letter-routing-key", 'S', 0, "k" }, { "max-length", 'l', 0, NULL });
	world_turn(&w);
	publish(q, 2);
	ck_assert(policy_clear(w.vhost, POLICY_USER, SPAN_LIT("d")));
	queue_choose_policies(q);
	publish(q, 1);
	world_turn(&w);
	ck_assert_uint_eq(k->ready, 2);
	ck_assert_uint_eq(q->ready, 1);
	ck_assert_uint_eq(w.broker->stats.dead_letters_lost, 0);
}
END_TEST

/* A deleted queue may still have letters to send: to where its policy said. */
START_TEST(letters_of_a_deleted_queue)
{
	struct queue *q = world_queue(&w, "q"), *k = world_queue(&w, "k");

	SET(POLICY_USER, "d", "^q", "queues", 0, { "dead-letter-exchange", 'S', 0, "" },
	    { "dead-letter-routing-key", 'S', 0, "k" }, { "max-length", 'l', 0, NULL });
	world_turn(&w);
	publish(q, 1);
	queue_remove(q);
	ck_assert(policy_clear(w.vhost, POLICY_USER, SPAN_LIT("d")));
	world_turn(&w);
	ck_assert_uint_eq(k->ready, 1);
}
END_TEST

/* Queues go while the walk stands before them. */
START_TEST(queues_go_in_the_walk)
{
	enum { QUEUES = 5000 };
	struct queue *q;
	char name[20];

	for (int i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "q%d", i);
		(void)world_queue(&w, name);
	}
	SET(POLICY_USER, "p", "9$", "queues", 0, { "max-length", 'l', 2, NULL });
	ck_assert(broker_run(w.broker));
	while (w.vhost->policy_walk.queue != NULL && w.vhost->queues_by_name.count > 100) {
		queue_remove(w.vhost->policy_walk.queue);
		if (w.vhost->queues_by_name.count % 64 == 0)
			(void)broker_run(w.broker);
	}
	world_turn(&w);
	ck_assert(!w.vhost->policy_walk.is_on);
	TAILQ_FOREACH (q, &w.vhost->queues, vhost_link)
		ck_assert((q->policy[POLICY_USER] != NULL) == (q->name[q->name_len - 1] == '9'));
}
END_TEST

/* Whoever changes policies all the time keeps no queue from learning of the first change, and no other vhost; each change is
 * known to all when the round after it has ended. */
START_TEST(changes_after_one_another)
{
	enum { QUEUES = 9000 };
	const struct queue_arg a = { "max-length", 'l', 3, NULL };
	struct vhost *first = w.vhost, *other = vhost_add(w.broker, "other");
	uint64_t change, all = 0;
	struct queue *last = NULL, *late, *q;
	char name[20];

	for (int i = 0; i < QUEUES; i++) {
		snprintf(name, sizeof name, "q%d", i);
		last = world_queue(&w, name);
	}
	SET(POLICY_USER, "p", "^q", "queues", 1, { "max-length", 'l', 1, NULL });
	change = w.broker->policy_changes;
	w.vhost = other;
	q = world_queue(&w, "q");
	w.vhost = first;
	ck_assert_ptr_null(try_set(other, POLICY_USER, "o", "^q", "all", 0, &a, 1));
	for (int i = 0; i < 10; i++) {
		(void)policies_run(w.broker);
		SET(POLICY_USER, "more", "^q", "queues", i - 10, { "max-length", 'l', 2, NULL });
		if (i == 2)
			ck_assert_str_eq(name_of(q->policy[POLICY_USER]), "o");
		if (all == 0 && policies_pending(w.broker) > change)
			all = (uint64_t)i;
	}
	ck_assert_uint_ge(all, QUEUES / 2000);
	ck_assert_str_eq(name_of(last->policy[POLICY_USER]), "p");
	/* one that is declared and one that goes within a round */
	ck_assert(policy_clear(w.vhost, POLICY_USER, SPAN_LIT("p")));
	change = w.broker->policy_changes;
	late = world_queue(&w, "qlate");
	ck_assert_str_eq(name_of(late->policy[POLICY_USER]), "more");
	ck_assert_uint_le(policies_pending(w.broker), change);
	while (policies_run(w.broker))
		ck_assert_uint_le(policies_pending(w.broker), change);
	ck_assert_uint_eq(policies_pending(w.broker), UINT64_MAX);
	TAILQ_FOREACH (q, &w.vhost->queues, vhost_link)
		ck_assert_str_eq(name_of(q->policy[POLICY_USER]), "more");
}
END_TEST

/* ---- a model ---- */

enum { MODEL_QUEUES = 2000, MODEL_NAMES = 6, MODEL_STEPS = 120 };

/* What a policy of the model says: that it is for names with this digit, and which maximum length it sets. */
struct said_so {
	bool is_set;
	int priority;
	char digit;
	uint64_t max_length;
};

static const struct said_so *
model_choice(const struct said_so *said_by, const char *queue)
{
	const struct said_so *best = NULL;

	for (int i = 0; i < MODEL_NAMES; i++) {
		const struct said_so *p = &said_by[i];

		if (p->is_set && strchr(queue, p->digit) != NULL &&
		    (best == NULL || p->priority > best->priority))
			best = p;
	}
	return best;
}

static void
model_check(const struct queue *q, struct said_so model[POLICY_KINDS][MODEL_NAMES])
{
	const struct said_so *user = model_choice(model[POLICY_USER], q->name),
	                     *op = model_choice(model[POLICY_OPERATOR], q->name);
	uint64_t most = SETTING_NONE;

	if (user != NULL)
		most = user->max_length;
	if (op != NULL && (user == NULL || op->max_length < most))
		most = op->max_length;
	ck_assert_msg(q->set.max_length == most, "%s: %llu, not %llu", q->name,
	    (unsigned long long)q->set.max_length, (unsigned long long)most);
	ck_assert(q->is_limited == (most != SETTING_NONE));
}

static void
model_change(struct said_so model[POLICY_KINDS][MODEL_NAMES])
{
	enum policy_kind kind = rand() % 2 == 0 ? POLICY_USER : POLICY_OPERATOR;
	unsigned which = (unsigned)rand() % MODEL_NAMES;
	char name[] = { (char)('a' + which), '\0' }, pattern[] = { 0, '\0' };
	struct said_so *p = &model[kind][which];

	if (p->is_set && rand() % 3 == 0) {
		ck_assert(policy_clear(w.vhost, kind, span_str(name)));
		p->is_set = false;
		return;
	}
	*p = (struct said_so){ true, rand() % 3, (char)('0' + rand() % 10),
		(uint64_t)(rand() % 5 + 1) };
	pattern[0] = p->digit;
	SET(kind, name, pattern, "all", p->priority,
	    { "max-length", 'l', (int64_t)p->max_length, NULL });
}

/* Changes while those before are on their way, queues that come and go meanwhile: in the end each has what applies, one that
 * is declared has it at once, and what is undone leaves nothing. */
START_TEST(model)
{
	struct said_so said_by[POLICY_KINDS][MODEL_NAMES] = { 0 };
	struct queue *q;
	char name[20];
	int made = 0;

	srand((unsigned)_i);
	for (; made < MODEL_QUEUES; made++) {
		snprintf(name, sizeof name, "q%d", made);
		(void)world_queue(&w, name);
	}
	for (int step = 0; step < MODEL_STEPS; step++) {
		model_change(said_by);
		snprintf(name, sizeof name, "q%d", made++);
		model_check(world_queue(&w, name), said_by);
		if (rand() % 4 == 0)
			queue_remove(TAILQ_FIRST(&w.vhost->queues));
		if (rand() % 2 == 0)
			(void)policies_run(w.broker);
		if (rand() % 8 != 0)
			continue;
		while (policies_run(w.broker))
			continue;
		TAILQ_FOREACH (q, &w.vhost->queues, vhost_link)
			model_check(q, said_by);
	}
	for (int i = 0; i < POLICY_KINDS * MODEL_NAMES; i++) {
		const char one[] = { (char)('a' + i / POLICY_KINDS), '\0' };

		(void)policy_clear(w.vhost, (enum policy_kind)(i % POLICY_KINDS), span_str(one));
	}
	world_turn(&w);
	TAILQ_FOREACH (q, &w.vhost->queues, vhost_link) {
		ck_assert(!q->is_limited && q->set.max_length == SETTING_NONE);
		ck_assert_ptr_null(q->policy[POLICY_USER]);
		ck_assert_ptr_null(q->policy[POLICY_OPERATOR]);
	}
}
END_TEST

/* ---- exchanges ---- */

static struct exchange *
declare(const char *name, const char *type)
{
	struct exchange_spec spec = { .name = span_str(name), .type = span_str(type) };
	struct exchange *x = NULL;

	ck_assert_ptr_null(exchange_declare(w.vhost, &spec, &x));
	return x;
}

START_TEST(alternate)
{
	struct exchange *x = declare("x", "direct"),
	                *y = exchange_find(w.vhost, SPAN_LIT("amq.direct"));

	SET(POLICY_USER, "ae", "x$|^amq", "exchanges", 0, { "alternate-exchange", 'S', 0, "alt" });
	world_turn(&w);
	ck_assert(span_is(x->alternate, "alt") && span_is(y->alternate, "alt"));
	SET(POLICY_USER, "ae", "x$", "exchanges", 0, { "alternate-exchange", 'S', 0, "other" });
	world_turn(&w);
	ck_assert(span_is(x->alternate, "other"));
	ck_assert_ptr_null(y->alternate.p);
	ck_assert(span_is(declare("xx", "fanout")->alternate, "other"));
	clear(POLICY_USER, "ae");
	ck_assert_ptr_null(x->alternate.p);
}
END_TEST

/* ---- after a restart ---- */

static struct node node;

static void
end_none(void)
{
}

START_TEST(restart)
{
	static const struct queue_arg a = { "max-length", 'l', 2, NULL },
	                              ae = { "alternate-exchange", 'S', 0, "alt" };
	struct queue_spec spec = { .name = SPAN_LIT("q"), .durable = true };
	struct queue *q = NULL;
	const struct policy *p;

	node_init(&node);
	ck_assert_ptr_null(try_set(node.w.vhost, POLICY_USER, "p", "^q$", "queues", -7, &a, 1));
	ck_assert_ptr_null(try_set(node.w.vhost, POLICY_USER, "gone", "^q$", "queues", 7, &a, 1));
	ck_assert_ptr_null(
	    try_set(node.w.vhost, POLICY_USER, "ae", "^amq.fanout", "all", 0, &ae, 1));
	ck_assert_ptr_null(try_set(node.w.vhost, POLICY_OPERATOR, "p", "^none$", "all", 1, &a, 1));
	ck_assert(policy_clear(node.w.vhost, POLICY_USER, SPAN_LIT("gone")));
	ck_assert_ptr_null(queue_declare(node.w.vhost, &spec, NULL, &q));
	node_settle(&node);
	node_restart(&node, false, 2000, end_none);
	p = policy_find(node.w.vhost, POLICY_USER, SPAN_LIT("p"));
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(p->priority, -7);
	ck_assert_str_eq(policy_apply_to(p), "queues");
	ck_assert_str_eq(p->pattern_text, "^q$");
	ck_assert_ptr_nonnull(policy_find(node.w.vhost, POLICY_OPERATOR, SPAN_LIT("p")));
	ck_assert_ptr_null(policy_find(node.w.vhost, POLICY_USER, SPAN_LIT("gone")));
	q = queue_find(node.w.vhost, SPAN_LIT("q"));
	ck_assert_uint_eq(q->set.max_length, 2);
	ck_assert(span_is(exchange_find(node.w.vhost, SPAN_LIT("amq.fanout"))->alternate, "alt"));
	node_fini(&node);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy");
	TCase *t = tcase_create("policy"), *kept = tcase_create("kept");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_loop_test(t, what_may_be_said, 0, COUNT_OF(said));
	tcase_add_test(t, nothing_said);
	tcase_add_test(t, bounds);
	tcase_add_test(t, highest_priority_then_name);
	tcase_add_test(t, merged);
	tcase_add_test(t, of_its_type);
	tcase_add_loop_test(t, slow_patterns, 0, COUNT_OF(slow));
	tcase_add_test(t, simple_behind_slow);
	tcase_add_test(t, in_order);
	tcase_add_test(t, backlog);
	tcase_add_test(t, ttl_of_what_is_there);
	tcase_add_test(t, many_ttls);
	tcase_add_test(t, lease_of_what_is_there);
	tcase_add_test(t, letters_without_their_policy);
	tcase_add_test(t, letters_of_a_deleted_queue);
	tcase_add_test(t, queues_go_in_the_walk);
	tcase_add_test(t, changes_after_one_another);
	tcase_add_loop_test(t, model, 0, 4);
	tcase_add_test(t, alternate);
	suite_add_tcase(s, t);
	tcase_add_test(kept, restart);
	suite_add_tcase(s, kept);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
