/* SPDX-License-Identifier: Apache-2.0
 * The arguments of queues: one row each for those that RabbitMQ knows, then Hermes' own, and what their values may be.
 * Arguments without a row are stored and mean nothing, as in RabbitMQ. */
#include "broker/queue_argument.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "broker/dedup.h"
#include "broker/persist.h"

/* The queue types that an argument belongs to: elsewhere it is refused. One that belongs to the queue's type counts
 * when the queue is declared again. */
enum {
	CLASSIC = 1 << QUEUE_CLASSIC,
	QUORUM = 1 << QUEUE_QUORUM,
	STREAM = 1 << QUEUE_STREAM,
	EVERY = CLASSIC | QUORUM | STREAM
};
enum { DETAIL_MAX = ARGUMENT_DETAIL_MAX };
static const int64_t expiry_max_ms = 315360000000; /* ten years, RabbitMQ's bound */

/* Words that a value may be; the place in the list is what they stand for. */
static const char *const overflow_words[] = { "drop-head", "reject-publish", "reject-publish-dlx",
	NULL };
static const char *const strategy_words[] = { "at-most-once", "at-least-once", NULL };
const char *const queue_type_words[] = { "classic", "quorum", "stream", NULL };

int
argument_word(const char *const *words, struct span s)
{
	for (int i = 0; words[i] != NULL; i++) {
		if (span_is(s, words[i]))
			return i;
	}
	return -1;
}

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
	if (argument_word(words, f->bytes) >= 0)
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

bool
argument_check_type(const struct field *f, char *detail)
{
	if (!check_string(f, detail))
		return false;
	return argument_word(queue_type_words, f->bytes) >= 0 ||
	       unsupported("queue type", f, detail);
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

#define SETS(field)                                                       \
	.at = offsetof(struct queue_settings, field),                     \
	.kind = _Generic(((struct queue_settings *)NULL)->field, uint64_t \
	                 : SET_NUMBER, uint8_t                            \
	                 : SET_BYTE, bool                                 \
	                 : SET_BOOL, struct span                          \
	                 : SET_SPAN, default                              \
	                 : SET_WORD)

/* RabbitMQ lets operators say these. */
#define LEAST .by_operator = true, .least = true

const struct argument queue_arguments[] = {
	{ "x-expires", check_expires, CLASSIC | QUORUM, .policy = "expires", LEAST, SETS(expires_ms),
	    .behind = "x-dead-letter-strategy" },
	{ "x-message-ttl", check_ttl, CLASSIC | QUORUM, .policy = "message-ttl", LEAST, SETS(ttl_ms),
	    .behind = "x-delivery-limit" },
	/* its type: check_dead_letter */
	{ "x-dead-letter-exchange", NULL, CLASSIC | QUORUM, .policy = "dead-letter-exchange",
	    SETS(dead_letter_exchange) },
	{ "x-dead-letter-routing-key", check_string, CLASSIC | QUORUM,
	    .policy = "dead-letter-routing-key", SETS(dead_letter_key) },
	{ "x-dead-letter-strategy", check_strategy, QUORUM, .policy = "dead-letter-strategy",
	    .words = strategy_words, SETS(at_least_once) },
	{ "x-max-length", check_natural, CLASSIC | QUORUM, .policy = "max-length", LEAST,
	    SETS(max_length) },
	{ "x-max-length-bytes", check_natural, EVERY, .policy = "max-length-bytes", LEAST,
	    SETS(max_bytes) },
	/* Hermes decides itself what it keeps in memory. */
	{ "x-max-in-memory-length", check_natural, QUORUM, .policy = "max-in-memory-length", LEAST },
	{ "x-max-in-memory-bytes", check_natural, QUORUM, .policy = "max-in-memory-bytes", LEAST },
	{ "x-max-priority", check_priority, CLASSIC, .policy = NULL, SETS(max_priority) },
	{ "x-overflow", check_overflow, CLASSIC | QUORUM, .policy = "overflow",
	    .words = overflow_words, SETS(overflow) },
	/* A long queue goes to disk in either mode. */
	{ "x-queue-mode", check_mode, CLASSIC, .policy = "queue-mode" },
	/* Which format RabbitMQ keeps the queue's index in: no client can see it, so both are taken. */
	{ "x-queue-version", check_version, CLASSIC, .policy = "queue-version" },
	{ "x-single-active-consumer", check_bool, CLASSIC | QUORUM, .policy = NULL,
	    SETS(single_active) },
	{ "x-queue-type", argument_check_type, EVERY, .policy = NULL, .words = queue_type_words,
	    SETS(type) },
	/* How many nodes of a cluster hold the queue, and where its leader is: there is one. */
	{ "x-quorum-initial-group-size", check_group_size, QUORUM, .policy = NULL },
	{ "x-initial-cluster-size", check_group_size, STREAM, .policy = "initial-cluster-size" },
	{ "x-delivery-limit", NULL, QUORUM, .policy = "delivery-limit", LEAST, SETS(delivery_limit) },
	{ "x-max-age", check_age, STREAM, .policy = "max-age" },
	{ "x-stream-max-segment-size-bytes", check_natural, STREAM,
	    .policy = "stream-max-segment-size-bytes" },
	{ "x-queue-leader-locator", check_leader_locator, QUORUM | STREAM,
	    .policy = "queue-leader-locator" },
	{ "x-queue-master-locator", check_locator, CLASSIC, .policy = "queue-master-locator" },
	{ "x-consumer-timeout", check_ttl, CLASSIC | QUORUM, .policy = "consumer-timeout", .least = true,
	    SETS(consumer_timeout_ms) },
	/* What confirms of the queue's messages wait for, in place of store.sync. */
	{ "x-sync", check_sync, EVERY, .policy = NULL },
	/* How many keys are remembered, and for how long. */
	{ "x-message-deduplication", check_bool, CLASSIC | QUORUM, .policy = NULL, SETS(dedup) },
	{ "x-cache-size", dedup_check_size, CLASSIC | QUORUM, .policy = NULL, SETS(cache_size) },
	{ "x-cache-ttl", check_expires, CLASSIC | QUORUM, .policy = NULL, SETS(cache_ttl_ms) },
};
const size_t queue_arguments_count = COUNT_OF(queue_arguments);
