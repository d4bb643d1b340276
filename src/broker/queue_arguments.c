/* SPDX-License-Identifier: Apache-2.0
 * The `x-` arguments of queues: one row each for those that RabbitMQ knows, in the order in which it looks at them.
 * Wrong values are refused with 406 and its texts. What this version does not do yet is refused with 540, never
 * ignored. Arguments without a row are stored and mean nothing, as in RabbitMQ. */
#include <inttypes.h>
#include <stdio.h>

#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum {
	COMPARED = 1,   /* counts when a queue is declared again */
	OTHER_TYPE = 2, /* belongs to quorum queues or streams: refused for classic ones */
	LATER = 4       /* comes with a later version, whatever the value */
};
enum { DETAIL_MAX = 160 };
static const int64_t expiry_max_ms = 315360000000; /* ten years, RabbitMQ's bound */

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

static bool
check_bool(const struct field *f, char *detail)
{
	return f->kind == 't' || wrong_type(f, detail);
}

static bool
check_overflow(const struct field *f, char *detail)
{
	if (!check_string(f, detail))
		return false;
	if (span_is(f->bytes, "drop-head") || span_is(f->bytes, "reject-publish") ||
	    span_is(f->bytes, "reject-publish-dlx"))
		return true;
	snprintf(detail, DETAIL_MAX, "invalid_overflow");
	return false;
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
	return span_is(f->bytes, "classic") || span_is(f->bytes, "quorum") ||
	       span_is(f->bytes, "stream") || unsupported("queue type", f, detail);
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
check_sync(const struct field *f, char *detail)
{
	struct sync_setting s;

	if (!check_string(f, detail))
		return false;
	return sync_parse(f->bytes, &s) == 0 || unsupported("sync policy", f, detail);
}

static const struct argument {
	const char *name;
	check_fn *check; /* NULL: any value */
	unsigned flags;
} arguments[] = {
	{ "x-expires", check_expires, COMPARED | LATER },
	{ "x-message-ttl", check_ttl, COMPARED | LATER },
	{ "x-dead-letter-exchange", NULL, COMPARED | LATER }, /* its type: check_dead_letter */
	{ "x-dead-letter-routing-key", check_string, COMPARED | LATER },
	{ "x-dead-letter-strategy", NULL, OTHER_TYPE },
	{ "x-max-length", check_natural, COMPARED | LATER },
	{ "x-max-length-bytes", check_natural, COMPARED | LATER },
	{ "x-max-in-memory-length", NULL, OTHER_TYPE },
	{ "x-max-in-memory-bytes", NULL, OTHER_TYPE },
	{ "x-max-priority", check_priority, COMPARED | LATER },
	{ "x-overflow", check_overflow, COMPARED | LATER },
	{ "x-queue-mode", check_mode, COMPARED },
	/* Which format RabbitMQ keeps the queue's index in: no client can see it, so both are taken. */
	{ "x-queue-version", check_version, COMPARED },
	{ "x-single-active-consumer", check_bool, COMPARED },
	{ "x-queue-type", check_type, COMPARED },
	{ "x-quorum-initial-group-size", NULL, OTHER_TYPE },
	{ "x-initial-cluster-size", NULL, OTHER_TYPE },
	{ "x-delivery-limit", NULL, OTHER_TYPE },
	{ "x-max-age", NULL, OTHER_TYPE },
	{ "x-stream-max-segment-size-bytes", NULL, OTHER_TYPE },
	{ "x-queue-leader-locator", NULL, OTHER_TYPE },
	/* On which node of a cluster the queue is put: there is one. */
	{ "x-queue-master-locator", check_locator, COMPARED },
	{ "x-consumer-timeout", NULL, LATER },
	/* Hermes' own: what confirms of the queue's messages wait for, in place of store.sync. */
	{ "x-sync", check_sync, COMPARED },
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
	if (span_is(f.bytes, "classic"))
		return NULL;
	return later("queue type", span_is(f.bytes, "quorum") ? "quorum" : "stream");
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
	char detail[DETAIL_MAX];
	struct field f, dlx;

	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		const struct argument *a = &arguments[i];

		if (a->check == NULL || !table_find(raw, a->name, &f))
			continue;
		if (!a->check(&f, detail))
			return invalid(vh, spec, a->name, detail);
		if (span_is(f.name, "x-dead-letter-routing-key") &&
		    !table_find(raw, "x-dead-letter-exchange", &dlx))
			return invalid(vh, spec, a->name, "routing_key_but_no_dlx_defined");
	}
	return NULL;
}

/* Is the row's argument, with this value, one that a later version brings? A value that says what a queue without
 * the argument does is taken. */
static bool
is_later(const struct argument *a, const struct field *f)
{
	if (a->flags & LATER)
		return true;
	if (a->check == check_mode)
		return span_is(f->bytes, "lazy");
	return a->check == check_bool && f->truth;
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
	    (e = check_values(vh, spec, raw)) != NULL)
		return e;
	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		if (arguments[i].flags & OTHER_TYPE && table_find(raw, arguments[i].name, &f))
			return error_make(E_PRECONDITION_FAILED,
			    "invalid arg '%s' for queue '%.*s' in vhost '%s' of queue type "
			    "rabbit_classic_queue",
			    arguments[i].name, SPAN_FMT(spec->name), vh->name);
	}
	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		if (table_find(raw, arguments[i].name, &f) && is_later(&arguments[i], &f))
			return later("queue argument", arguments[i].name);
	}
	return NULL;
}

void
queue_read_arguments(struct queue *q)
{
	q->set = (struct queue_settings){ .ttl_ms = SETTING_NONE,
		.expires_ms = SETTING_NONE,
		.max_length = SETTING_NONE,
		.max_bytes = SETTING_NONE,
		.delivery_limit = SETTING_NONE,
		.consumer_timeout_ms = SETTING_NONE };
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

const struct error *
queue_compare_arguments(const struct queue *q, const struct queue_spec *spec)
{
	struct span now = table_span(spec->arguments), was = table_span(q->arguments);
	struct field a, b;

	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		const char *name = arguments[i].name;
		bool has_now, has_was;

		if (!(arguments[i].flags & COMPARED))
			continue;
		has_now = table_find(now, name, &a);
		has_was = table_find(was, name, &b);
		if (has_now && has_was ? field_equal(&a, &b) : has_now == has_was)
			continue;
		/* Every queue is a classic one, whether its declaration says so or not. */
		if (arguments[i].check == check_type && (!has_now || span_is(a.bytes, "classic")))
			continue;
		return differs(q, name, has_now ? &a : NULL, has_was ? &b : NULL);
	}
	return NULL;
}
