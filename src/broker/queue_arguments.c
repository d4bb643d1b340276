/* SPDX-License-Identifier: Apache-2.0
 * The `x-` arguments of queues: one row each for those that RabbitMQ knows, in the order in which it looks at them,
 * then Hermes' own. Wrong values are refused with 406 and its texts. What this version does not do yet is refused with
 * 540, never ignored. Arguments without a row are stored and mean nothing, as in RabbitMQ. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/dedup.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/table.h"
#include "broker/vhost.h"

/* The queue types that an argument belongs to: elsewhere it is refused. One that belongs to the queue's type counts
 * when the queue is declared again. */
enum {
	CLASSIC = 1 << QUEUE_CLASSIC,
	QUORUM = 1 << QUEUE_QUORUM,
	STREAM = 1 << QUEUE_STREAM,
	EVERY = CLASSIC | QUORUM | STREAM
};
enum { DETAIL_MAX = 160 };
static const int64_t expiry_max_ms = 315360000000; /* ten years, RabbitMQ's bound */

/* Words that a value may be; the place in the list is what they stand for. */
static const char *const overflow_words[] = { "drop-head", "reject-publish", "reject-publish-dlx",
	NULL };
static const char *const strategy_words[] = { "at-most-once", "at-least-once", NULL };
static const char *const type_words[] = { "classic", "quorum", "stream", NULL };

/* -1: it is none of them. */
static int
word_of(const char *const *words, struct span s)
{
	for (int i = 0; words[i] != NULL; i++) {
		if (span_is(s, words[i]))
			return i;
	}
	return -1;
}

/* Is the value one that the argument may have? If not, detail says why, in the form of RabbitMQ's text. */
typedef bool check_fn(const struct field *f, char *detail);

static bool
wrong_type(const struct field *f, char *detail)
{
	snprintf(detail, DETAIL_MAX, "{unacceptable_type,%s}", field_type_name(f));
	return false;
}

static bool
wrong_number(const char *why, int64_t n, char *detail)
{
	snprintf(detail, DETAIL_MAX, "{%s,%" PRId64 "}", why, n);
	return false;
}

static bool
check_integer(const struct field *f, char *detail)
{
	if (field_is_integer(f))
		return true;
	snprintf(detail, DETAIL_MAX, "\"expected integer, got %s\"", field_type_name(f));
	return false;
}

static bool
check_natural(const struct field *f, char *detail)
{
	if (!check_integer(f, detail))
		return false;
	return f->integer >= 0 || wrong_number("value_negative", f->integer, detail);
}

static bool
check_ttl(const struct field *f, char *detail)
{
	if (!check_natural(f, detail))
		return false;
	return f->integer <= expiry_max_ms || wrong_number("value_too_large", f->integer, detail);
}

static bool
check_expires(const struct field *f, char *detail)
{
	if (!check_ttl(f, detail))
		return false;
	return f->integer > 0 || wrong_number("value_zero", f->integer, detail);
}

static bool
check_priority(const struct field *f, char *detail)
{
	if (!check_natural(f, detail))
		return false;
	return f->integer <= 255 || wrong_number("max_value_exceeded", f->integer, detail);
}

static bool
check_string(const struct field *f, char *detail)
{
	return f->kind == 'S' || wrong_type(f, detail);
}

/* One of the words, or detail is `why`. */
static bool
check_word(const struct field *f, const char *const *words, const char *why, char *detail)
{
	if (!check_string(f, detail))
		return false;
	if (word_of(words, f->bytes) >= 0)
		return true;
	snprintf(detail, DETAIL_MAX, "%s", why);
	return false;
}

static bool
check_overflow(const struct field *f, char *detail)
{
	return check_word(f, overflow_words, "invalid_overflow", detail);
}

static bool
check_strategy(const struct field *f, char *detail)
{
	return check_word(f, strategy_words, "invalid_dlx_strategy", detail);
}

static bool
check_bool(const struct field *f, char *detail)
{
	return f->kind == 't' || wrong_type(f, detail);
}

static bool
unsupported(const char *what, const struct field *f, char *detail)
{
	char text[100];

	snprintf(
	    detail, DETAIL_MAX, "\"unsupported %s '%s'\"", what, field_text(f, text, sizeof text));
	return false;
}

static bool
check_mode(const struct field *f, char *detail)
{
	if (!check_string(f, detail))
		return false;
	return span_is(f->bytes, "default") || span_is(f->bytes, "lazy") ||
	       unsupported("queue mode", f, detail);
}

static bool
check_version(const struct field *f, char *detail)
{
	if (!check_integer(f, detail))
		return false;
	return f->integer == 1 || f->integer == 2 || unsupported("queue version", f, detail);
}

static bool
check_type(const struct field *f, char *detail)
{
	if (!check_string(f, detail))
		return false;
	return word_of(type_words, f->bytes) >= 0 || unsupported("queue type", f, detail);
}

static bool
check_locator(const struct field *f, char *detail)
{
	if (!check_string(f, detail))
		return false;
	return span_is(f->bytes, "min-masters") || span_is(f->bytes, "client-local") ||
	       span_is(f->bytes, "random") || unsupported("queue master locator", f, detail);
}

static bool
check_leader_locator(const struct field *f, char *detail)
{
	static const char *const words[] = { "client-local", "balanced", "random", "least-leaders",
		NULL };

	return check_word(f, words, "invalid_queue_locator_arg", detail);
}

static bool
check_group_size(const struct field *f, char *detail)
{
	if (!check_natural(f, detail))
		return false;
	return f->integer > 0 || wrong_number("value_zero", f->integer, detail);
}

/* A number and a unit. */
static bool
check_age(const struct field *f, char *detail)
{
	size_t i = 0;

	if (!check_string(f, detail))
		return false;
	while (i < f->bytes.n && f->bytes.p[i] >= '0' && f->bytes.p[i] <= '9')
		i++;
	if (i > 0 && i + 1 == f->bytes.n && strchr("YMDhms", f->bytes.p[i]) != NULL)
		return true;
	snprintf(detail, DETAIL_MAX, "invalid_max_age");
	return false;
}

static bool
check_sync(const struct field *f, char *detail)
{
	struct sync_setting s;

	if (!check_string(f, detail))
		return false;
	return sync_parse(f->bytes, &s) == 0 || unsupported("sync policy", f, detail);
}

/* Where the value goes: what kind of field of q->set stands at the offset. */
enum set_kind { SET_NOTHING, SET_NUMBER, SET_BYTE, SET_BOOL, SET_SPAN, SET_WORD };
#define SETS(field)                                                       \
	.at = offsetof(struct queue_settings, field),                     \
	.kind = _Generic(((struct queue_settings *)NULL)->field, uint64_t \
	                 : SET_NUMBER, uint8_t                            \
	                 : SET_BYTE, bool                                 \
	                 : SET_BOOL, struct span                          \
	                 : SET_SPAN, default                              \
	                 : SET_WORD)

static const struct argument {
	const char *name;
	check_fn *check;          /* NULL: any value */
	unsigned types;           /* queue types it belongs to */
	const char *policy;       /* key of a policy that says the same; NULL: none does */
	const char *const *words; /* of an enum or a bool that is said by a word */
	size_t at;
	enum set_kind kind;
	const char *behind; /* in a quorum queue: compared behind this one */
	bool is_later;      /* comes with a later version */
} arguments[] = {
	{ "x-expires", check_expires, CLASSIC | QUORUM, .policy = "expires", SETS(expires_ms),
	    .behind = "x-dead-letter-strategy" },
	{ "x-message-ttl", check_ttl, CLASSIC | QUORUM, .policy = "message-ttl", SETS(ttl_ms),
	    .behind = "x-delivery-limit" },
	/* its type: check_dead_letter */
	{ "x-dead-letter-exchange", NULL, CLASSIC | QUORUM, .policy = "dead-letter-exchange",
	    SETS(dead_letter_exchange) },
	{ "x-dead-letter-routing-key", check_string, CLASSIC | QUORUM,
	    .policy = "dead-letter-routing-key", SETS(dead_letter_key) },
	{ "x-dead-letter-strategy", check_strategy, QUORUM, .policy = "dead-letter-strategy",
	    .words = strategy_words, SETS(at_least_once) },
	{ "x-max-length", check_natural, CLASSIC | QUORUM, .policy = "max-length",
	    SETS(max_length) },
	{ "x-max-length-bytes", check_natural, EVERY, .policy = "max-length-bytes",
	    SETS(max_bytes) },
	/* Hermes decides itself what it keeps in memory. */
	{ "x-max-in-memory-length", check_natural, QUORUM, .policy = "max-in-memory-length" },
	{ "x-max-in-memory-bytes", check_natural, QUORUM, .policy = "max-in-memory-bytes" },
	{ "x-max-priority", check_priority, CLASSIC, .policy = NULL, SETS(max_priority) },
	{ "x-overflow", check_overflow, CLASSIC | QUORUM, .policy = "overflow",
	    .words = overflow_words, SETS(overflow) },
	/* A long queue goes to disk in either mode. */
	{ "x-queue-mode", check_mode, CLASSIC, .policy = "queue-mode" },
	/* Which format RabbitMQ keeps the queue's index in: no client can see it, so both are taken. */
	{ "x-queue-version", check_version, CLASSIC, .policy = "queue-version" },
	{ "x-single-active-consumer", check_bool, CLASSIC | QUORUM, .policy = NULL,
	    SETS(single_active) },
	{ "x-queue-type", check_type, EVERY, .policy = NULL, .words = type_words, SETS(type) },
	/* How many nodes of a cluster hold the queue, and where its leader is: there is one. */
	{ "x-quorum-initial-group-size", check_group_size, QUORUM, .policy = NULL },
	{ "x-initial-cluster-size", check_group_size, STREAM, .policy = NULL },
	{ "x-delivery-limit", NULL, QUORUM, .policy = "delivery-limit", SETS(delivery_limit) },
	{ "x-max-age", check_age, STREAM, .policy = "max-age" },
	{ "x-stream-max-segment-size-bytes", check_natural, STREAM,
	    .policy = "stream-max-segment-size-bytes" },
	{ "x-queue-leader-locator", check_leader_locator, QUORUM | STREAM,
	    .policy = "queue-leader-locator" },
	{ "x-queue-master-locator", check_locator, CLASSIC, .policy = "queue-master-locator" },
	{ "x-consumer-timeout", check_ttl, CLASSIC | QUORUM, .policy = "consumer-timeout",
	    SETS(consumer_timeout_ms) },
	/* What confirms of the queue's messages wait for, in place of store.sync. */
	{ "x-sync", check_sync, EVERY, .policy = NULL },
	/* How many keys are remembered, and for how long. */
	{ "x-message-deduplication", check_bool, CLASSIC | QUORUM, .policy = NULL, SETS(dedup) },
	{ "x-cache-size", dedup_check_size, CLASSIC | QUORUM, .policy = NULL, SETS(cache_size) },
	{ "x-cache-ttl", check_expires, CLASSIC | QUORUM, .policy = NULL, SETS(cache_ttl_ms) },
};

/* ---- a new queue ---- */

static const struct error *
invalid(const struct vhost *vh, const struct queue_spec *spec, const char *name, const char *detail)
{
	return error_make(E_PRECONDITION_FAILED,
	    "invalid arg '%s' for queue '%.*s' in vhost '%s': %s", name, SPAN_FMT(spec->name),
	    vh->name, detail);
}

static const struct error *
later(const char *what, const char *name)
{
	return error_make(
	    E_NOT_IMPLEMENTED, "%s '%s' comes with a later version of Hermes", what, name);
}

static enum queue_type
type_of(struct span raw)
{
	struct field f;
	int type =
	    table_find(raw, "x-queue-type", &f) ? word_of(type_words, f.bytes) : QUEUE_CLASSIC;

	assert(type >= 0);
	return (enum queue_type)type;
}

/* The queue type decides which other arguments there are, so it is looked at first. */
static const struct error *
check_queue_type(const struct vhost *vh, const struct queue_spec *spec, struct span raw)
{
	char detail[DETAIL_MAX];
	struct field f;

	if (!table_find(raw, "x-queue-type", &f))
		return NULL;
	if (!check_type(&f, detail))
		return invalid(vh, spec, "x-queue-type", detail);
	return type_of(raw) == QUEUE_STREAM ? later("queue type", "stream") : NULL;
}

static const struct error *
check_dead_letter(const struct vhost *vh, const struct queue_spec *spec, struct span raw)
{
	struct field f;

	if (!table_find(raw, "x-dead-letter-exchange", &f) || f.kind == 'S')
		return NULL;
	return error_make(E_PRECONDITION_FAILED,
	    "invalid type '%s' for arg 'x-dead-letter-exchange' in queue '%.*s' in vhost '%s'",
	    field_type_name(&f), SPAN_FMT(spec->name), vh->name);
}

static const struct error *
check_values(const struct vhost *vh, const struct queue_spec *spec, struct span raw)
{
	enum queue_type type = type_of(raw);
	char detail[DETAIL_MAX];
	struct field f, dlx;

	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		const struct argument *a = &arguments[i];

		if (a->check == NULL || !(a->types & 1u << type) || !table_find(raw, a->name, &f))
			continue;
		if (!a->check(&f, detail))
			return invalid(vh, spec, a->name, detail);
		if (span_is(f.name, "x-dead-letter-routing-key") &&
		    !table_find(raw, "x-dead-letter-exchange", &dlx))
			return invalid(vh, spec, a->name, "routing_key_but_no_dlx_defined");
	}
	return NULL;
}

static const struct error *
check_types(const struct vhost *vh, const struct queue_spec *spec, struct span raw)
{
	enum queue_type type = type_of(raw);
	struct field f;

	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		const struct argument *a = &arguments[i];

		if (!(a->types & 1u << type) && table_find(raw, a->name, &f))
			return error_make(E_PRECONDITION_FAILED,
			    "invalid arg '%s' for queue '%.*s' in vhost '%s' of queue type "
			    "rabbit_%s_queue",
			    a->name, SPAN_FMT(spec->name), vh->name, type_words[type]);
	}
	return NULL;
}

/* Is the row's argument, with this value, one that a later version brings? A value that says what a queue without
 * the argument does is taken. */
static bool
is_later(const struct argument *a, const struct field *f)
{
	return a->is_later && !(a->kind == SET_BOOL && f->kind == 't' && !f->truth);
}

const struct error *
queue_check_arguments(const struct vhost *vh, const struct queue_spec *spec)
{
	struct span raw = table_span(spec->arguments);
	const struct error *e;
	struct field f;

	if (raw.n == 0)
		return NULL;
	if ((e = check_dead_letter(vh, spec, raw)) != NULL ||
	    (e = check_queue_type(vh, spec, raw)) != NULL ||
	    (e = check_values(vh, spec, raw)) != NULL || (e = check_types(vh, spec, raw)) != NULL)
		return e;
	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		if (table_find(raw, arguments[i].name, &f) && is_later(&arguments[i], &f))
			return later("queue argument", arguments[i].name);
	}
	return type_of(raw) == QUEUE_QUORUM ? quorum_check_spec(vh, spec) : NULL;
}

/* ---- what they say ---- */

static void
set(struct queue_settings *set, const struct argument *a, const struct field *f)
{
	void *to = (uint8_t *)set + a->at;
	int word = a->words != NULL ? word_of(a->words, f->bytes) : 0;

	switch (a->kind) {
	case SET_NOTHING: break;
	case SET_NUMBER:
		if (field_is_integer(f) && f->integer >= 0)
			*(uint64_t *)to = (uint64_t)f->integer;
		break;
	case SET_BYTE: *(uint8_t *)to = (uint8_t)f->integer; break;
	case SET_BOOL: *(bool *)to = a->words != NULL ? word != 0 : f->truth; break;
	case SET_SPAN:
		if (f->kind == 'S')
			*(struct span *)to = f->bytes;
		break;
	case SET_WORD: *(unsigned *)to = (unsigned)word; break;
	}
}

void
queue_read_arguments(struct queue *q)
{
	struct span raw = table_span(q->arguments);
	char detail[DETAIL_MAX];
	struct field f;

	q->set = (struct queue_settings){ .ttl_ms = SETTING_NONE,
		.expires_ms = SETTING_NONE,
		.max_length = SETTING_NONE,
		.max_bytes = SETTING_NONE,
		.delivery_limit = SETTING_NONE,
		.consumer_timeout_ms = SETTING_NONE,
		.cache_size = SETTING_NONE,
		.cache_ttl_ms = SETTING_NONE };
	if (raw.n == 0)
		return;
	/* Those of a restored queue come from a file: what would be refused today says nothing. */
	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		const struct argument *a = &arguments[i];

		if (a->kind == SET_NOTHING || !table_find(raw, a->name, &f))
			continue;
		if (a->check == NULL || a->check(&f, detail))
			set(&q->set, a, &f);
	}
	/* Quorum queues do not know it: as in RabbitMQ it is as if nothing was said. */
	if (q->set.type == QUEUE_QUORUM && q->set.overflow == OVERFLOW_REJECT_DLX)
		q->set.overflow = OVERFLOW_DROP_HEAD;
}

/* ---- declared again ---- */

static const struct error *
differs(const struct queue *q, const char *name, const struct field *now, const struct field *was)
{
	char a[100], b[100], received[160], current[160];

	if (now != NULL && was != NULL)
		return error_make(E_PRECONDITION_FAILED,
		    "inequivalent arg '%s' for queue '%.*s' in vhost '%s': received '%s' but "
		    "current is '%s'",
		    name, (int)q->name_len, q->name, q->vhost->name, field_text(now, a, sizeof a),
		    field_text(was, b, sizeof b));
	snprintf(received, sizeof received, "none");
	snprintf(current, sizeof current, "none");
	if (now != NULL)
		snprintf(received, sizeof received, "the value '%s' of type '%s'",
		    field_text(now, a, sizeof a), field_type_name(now));
	if (was != NULL)
		snprintf(current, sizeof current, "the value '%s' of type '%s'",
		    field_text(was, b, sizeof b), field_type_name(was));
	return error_make(E_PRECONDITION_FAILED,
	    "inequivalent arg '%s' for queue '%.*s' in vhost '%s': received %s but current is %s",
	    name, (int)q->name_len, q->name, q->vhost->name, received, current);
}

static const struct error *
compare_one(const struct queue *q, const struct queue_spec *spec, const struct argument *r)
{
	struct field a, b;
	bool has_now, has_was;

	if (!(r->types & 1u << q->set.type))
		return NULL;
	has_now = table_find(table_span(spec->arguments), r->name, &a);
	has_was = table_find(table_span(q->arguments), r->name, &b);
	if (has_now && has_was ? field_equal(&a, &b) : has_now == has_was)
		return NULL;
	/* A queue is a classic one whether its declaration says so or not. */
	if (r->check == check_type && q->set.type == QUEUE_CLASSIC &&
	    (!has_now || span_is(a.bytes, "classic")))
		return NULL;
	return differs(q, r->name, has_now ? &a : NULL, has_was ? &b : NULL);
}

const struct error *
queue_compare_arguments(const struct queue *q, const struct queue_spec *spec)
{
	bool moved = q->set.type == QUEUE_QUORUM;
	const struct error *e = NULL;

	for (size_t i = 0; e == NULL && i < COUNT_OF(arguments); i++) {
		const struct argument *r = &arguments[i];

		if (!moved || r->behind == NULL)
			e = compare_one(q, spec, r);
		for (size_t j = 0; moved && e == NULL && j < i; j++) {
			if (arguments[j].behind != NULL &&
			    strcmp(arguments[j].behind, r->name) == 0)
				e = compare_one(q, spec, &arguments[j]);
		}
	}
	return e;
}
