/* SPDX-License-Identifier: Apache-2.0
 * What the `x-` arguments of a queue do when it is declared. Wrong values are refused with 406 and RabbitMQ's texts.
 * What this version does not do yet is refused with 540, never ignored. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "broker/queue_argument.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum { DETAIL_MAX = ARGUMENT_DETAIL_MAX };

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
	int type = table_find(raw, "x-queue-type", &f) ? argument_word(queue_type_words, f.bytes)
	                                               : QUEUE_CLASSIC;

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
	if (!argument_check_type(&f, detail))
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

	for (size_t i = 0; i < queue_arguments_count; i++) {
		const struct argument *a = &queue_arguments[i];

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

	for (size_t i = 0; i < queue_arguments_count; i++) {
		const struct argument *a = &queue_arguments[i];

		if (!(a->types & 1u << type) && table_find(raw, a->name, &f))
			return error_make(E_PRECONDITION_FAILED,
			    "invalid arg '%s' for queue '%.*s' in vhost '%s' of queue type "
			    "rabbit_%s_queue",
			    a->name, SPAN_FMT(spec->name), vh->name, queue_type_words[type]);
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
	for (size_t i = 0; i < queue_arguments_count; i++) {
		if (table_find(raw, queue_arguments[i].name, &f) &&
		    is_later(&queue_arguments[i], &f))
			return later("queue argument", queue_arguments[i].name);
	}
	return type_of(raw) == QUEUE_QUORUM ? quorum_check_spec(vh, spec) : NULL;
}

/* ---- what they say ---- */

static void
set(struct queue_settings *set, const struct argument *a, const struct field *f)
{
	void *to = (uint8_t *)set + a->at;
	int word = a->words != NULL ? argument_word(a->words, f->bytes) : 0;

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

static bool
has_policy(const struct queue *q)
{
	return q->policy[POLICY_USER] != NULL || q->policy[POLICY_OPERATOR] != NULL;
}

/* What arguments and policies say together. Those of a restored queue come from a file: what would be refused today says
 * nothing. */
static bool
value_of(const struct queue *q, const struct argument *a, struct field *f)
{
	char detail[DETAIL_MAX];
	struct field policy;
	bool has = table_find(table_span(q->arguments), a->name, f) &&
	           (a->check == NULL || a->check(f, detail));

	if (a->policy == NULL || !(a->types & 1u << q->set.type) ||
	    !policy_value(q->policy, a->policy, a->least, &policy))
		return has;
	if (!has || (a->least && policy.integer < f->integer))
		*f = policy;
	return true;
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
	if (raw.n == 0 && !has_policy(q))
		return;
	if (table_find(raw, "x-queue-type", &f) && argument_check_type(&f, detail))
		q->set.type = (enum queue_type)argument_word(queue_type_words, f.bytes);
	for (size_t i = 0; i < queue_arguments_count; i++) {
		const struct argument *a = &queue_arguments[i];

		if (a->kind != SET_NOTHING && value_of(q, a, &f))
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
	if (r->check == argument_check_type && q->set.type == QUEUE_CLASSIC &&
	    (!has_now || span_is(a.bytes, "classic")))
		return NULL;
	return differs(q, r->name, has_now ? &a : NULL, has_was ? &b : NULL);
}

const struct error *
queue_compare_arguments(const struct queue *q, const struct queue_spec *spec)
{
	bool moved = q->set.type == QUEUE_QUORUM;
	const struct error *e = NULL;

	for (size_t i = 0; e == NULL && i < queue_arguments_count; i++) {
		const struct argument *r = &queue_arguments[i];

		if (!moved || r->behind == NULL)
			e = compare_one(q, spec, r);
		for (size_t j = 0; moved && e == NULL && j < i; j++) {
			if (queue_arguments[j].behind != NULL &&
			    strcmp(queue_arguments[j].behind, r->name) == 0)
				e = compare_one(q, spec, &queue_arguments[j]);
		}
	}
	return e;
}
