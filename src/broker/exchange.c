/* SPDX-License-Identifier: Apache-2.0
 * Exchanges of a vhost: declared, looked up, deleted, and what has to be routed anew when one changes. */
#include "broker/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/alternate.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/dedup.h"
#include "broker/delay.h"
#include "broker/event.h"
#include "broker/exchange_type/delayed.h"
#include "broker/exchange_type/type.h"
#include "broker/persist.h"
#include "broker/route.h"
#include "broker/table.h"
#include "broker/tap.h"
#include "broker/vhost.h"

static const char AE[] = "alternate-exchange";

struct exchange *
exchange_find(const struct vhost *vh, struct span name)
{
	struct exchange *x;

	HASH_FIND(hh, vh->exchanges, name.n > 0 ? (const void *)name.p : "", name.n, x);
	return x;
}

const struct error *
exchange_lookup(struct vhost *vh, struct span name, struct exchange **out)
{
	struct exchange *x = exchange_find(vh, name);

	if (x == NULL)
		return error_make(
		    E_NOT_FOUND, "no exchange '%.*s' in vhost '%s'", SPAN_FMT(name), vh->name);
	*out = x;
	return NULL;
}

/* Bytes of an exchange without its bindings, counted as MEM_TOPOLOGY. */
static size_t
exchange_size(const struct exchange *x)
{
	return sizeof *x + x->name_len + 1u + table_size(x->arguments);
}

/* Its arguments' goes before a policy's. */
static void
set_alternate(struct exchange *x)
{
	struct field f;

	x->alternate = table_find(table_span(x->arguments), AE, &f) ? f.bytes : policy_alternate(x);
	if (x->alternate.p != NULL)
		alternate_add(x);
}

void
exchange_choose_policies(struct exchange *x)
{
	struct policy *old[POLICY_KINDS];

	if (!policy_choose_exchange(x, old))
		return;
	if (x->alternate.p != NULL)
		alternate_remove(
		    x); /* under the name that it was added with: old[] still holds it */
	set_alternate(x);
	policy_drop(old);
	exchange_changed(x);
}

static struct exchange *
create(struct vhost *vh, const struct exchange_spec *spec, enum exchange_type type, uint64_t id)
{
	struct exchange *x = xcalloc(1, sizeof *x);
	struct policy *old[POLICY_KINDS]; /* none */
	struct dedup_settings dedup;

	x->vhost = vh;
	x->name = xstrndup(spec->name.n > 0 ? (const char *)spec->name.p : "", spec->name.n);
	x->name_len = (uint16_t)spec->name.n;
	x->id = id;
	x->type = type;
	x->routes_as = type == EXCHANGE_DELAYED ? delayed_type(spec->arguments) : type;
	x->durable = spec->durable;
	x->auto_delete = spec->auto_delete;
	x->internal = spec->internal;
	x->arguments = table_from_raw(table_span(spec->arguments));
	dedup_read_exchange(x->arguments, &dedup);
	x->dedup = dedup_new(vh->broker, id, &dedup, x->durable, true);
	mem_add(MEM_TOPOLOGY, exchange_size(x));
	if (policy_choose_exchange(x, old))
		policy_drop(old);
	set_alternate(x);
	if (type == EXCHANGE_DELAYED)
		x->delay = delay_new(x);
	LIST_INIT(&x->bindings);
	LIST_INIT(&x->inbound);
	series_init(&vh->broker->series, &x->series, SERIES_EXCHANGE, vh->broker->now_ms);
	if (vhost_is_own(vh))
		series_hide(&vh->broker->series, &x->series);
	HASH_ADD_KEYPTR(hh, vh->exchanges, x->name, x->name_len, x);
	vh->broker->stats.exchanges++;
	/* Routes of those that name it as their alternate change by its coming. */
	x->observed = true;
	exchange_changed(x);
	return x;
}

struct exchange *
exchange_predeclare(struct vhost *vh, const char *name, enum exchange_type type, bool internal)
{
	struct exchange_spec spec = {
		.name = span_str(name), .durable = true, .internal = internal
	};

	assert(exchange_find(vh, spec.name) == NULL);
	return create(vh, &spec, type, ++vh->broker->next_id);
}

/* What the type itself asks of the arguments. */
static const struct error *
check_type(const struct exchange_spec *spec, enum exchange_type type)
{
	const struct exchange_type_ops *ops = exchange_type_ops(type);

	return ops->check != NULL ? ops->check(spec->arguments) : NULL;
}

struct exchange *
exchange_restore(struct vhost *vh, const struct exchange_spec *spec, uint64_t id)
{
	enum exchange_type type = exchange_type_find(spec->type);
	struct field f;

	if (type == EXCHANGE_TYPES || exchange_find(vh, spec->name) != NULL)
		return NULL;
	if (table_find(table_span(spec->arguments), AE, &f) && f.kind != 'S')
		return NULL;
	if (check_type(spec, type) != NULL)
		return NULL;
	return create(vh, spec, type, id);
}

bool
exchange_is_predeclared(const struct exchange *x)
{
	return x->name_len == 0 || span_starts(span_of(x->name, x->name_len), "amq.");
}

static const struct error *
inequivalent(const struct exchange *x, const char *arg, const char *received, const char *current)
{
	return error_make(E_PRECONDITION_FAILED,
	    "inequivalent arg '%s' for exchange '%s' in vhost '%s': received %s but current is %s",
	    arg, x->name, x->vhost->name, received, current);
}

static const struct error *
differs(const struct exchange *x, const char *arg, bool received, bool current)
{
	if (received == current)
		return NULL;
	return inequivalent(
	    x, arg, received ? "'true'" : "'false'", current ? "'true'" : "'false'");
}

/* One side of the comparison of an argument: with its type where the other side has none. */
static const char *
print_argument(const struct field *f, bool with_type, char *buf, size_t n)
{
	char value[300];

	if (f == NULL)
		return "none";
	field_text(f, value, sizeof value);
	if (with_type)
		snprintf(buf, n, "the value '%s' of type '%s'", value, field_type_name(f));
	else
		snprintf(buf, n, "'%s'", value);
	return buf;
}

const struct error *
exchange_compare_argument(const struct exchange *x, const struct table *arguments, const char *name)
{
	struct field have, want, *h, *w;
	char a[400], b[400];

	h = table_find(table_span(x->arguments), name, &have) ? &have : NULL;
	w = table_find(table_span(arguments), name, &want) ? &want : NULL;
	if (h == w || (h != NULL && w != NULL && field_equal(h, w)))
		return NULL;
	return inequivalent(x, name, print_argument(w, h == NULL, a, sizeof a),
	    print_argument(h, w == NULL, b, sizeof b));
}

/* In quotes; RabbitMQ's types are atoms of Erlang, which get their own around a name with a hyphen. */
static const char *
print_type(enum exchange_type type, char *buf, size_t n)
{
	const char *name = exchange_type_name(type);

	snprintf(buf, n, strchr(name, '-') != NULL ? "''%s''" : "'%s'", name);
	return buf;
}

/* In RabbitMQ's order. */
static const struct error *
check_equivalent(
    const struct exchange *x, const struct exchange_spec *spec, enum exchange_type type)
{
	const struct error *e;
	char received[64], current[64];

	if (type != x->type) {
		return inequivalent(x, "type", print_type(type, received, sizeof received),
		    print_type(x->type, current, sizeof current));
	}
	if ((e = differs(x, "durable", spec->durable, x->durable)) == NULL &&
	    (e = differs(x, "auto_delete", spec->auto_delete, x->auto_delete)) == NULL &&
	    (e = differs(x, "internal", spec->internal, x->internal)) == NULL)
		e = exchange_compare_argument(x, spec->arguments, AE);
	if (e == NULL && type == EXCHANGE_DELAYED)
		e = exchange_compare_argument(x, spec->arguments, DELAYED_TYPE);
	if (e == NULL)
		e = dedup_compare_exchange(x, spec->arguments);
	return e;
}

static const struct error *
refuse_default(struct span name)
{
	return name.n > 0 ? NULL
	                  : error_make(E_ACCESS_REFUSED,
	                        "operation not permitted on the default exchange");
}

static const struct error *
check_new(const struct vhost *vh, const struct exchange_spec *spec, enum exchange_type type)
{
	const struct error *e;
	struct field f;

	if (span_starts(spec->name, "amq."))
		return error_make(E_ACCESS_REFUSED,
		    "exchange name '%.*s' contains reserved prefix 'amq.*'", SPAN_FMT(spec->name));
	if (table_find(table_span(spec->arguments), AE, &f) && f.kind != 'S')
		return error_make(E_PRECONDITION_FAILED,
		    "invalid type '%s' for arg '%s' in exchange '%.*s' in vhost '%s'",
		    field_type_name(&f), AE, SPAN_FMT(spec->name), vh->name);
	if ((e = check_type(spec, type)) != NULL ||
	    (e = dedup_check_exchange(vh->name, spec->name, spec->arguments)) != NULL)
		return e;
	return memory_check_topology(&vh->broker->memory, "declare exchange", spec->name, vh->name);
}

const struct error *
exchange_declare(struct vhost *vh, const struct exchange_spec *spec, struct exchange **out)
{
	enum exchange_type type = exchange_type_find(spec->type);
	const struct error *e;
	struct exchange *x;

	assert(spec->name.n <= 255);
	if (type == EXCHANGE_TYPES)
		return error_make(E_COMMAND_INVALID, "%s exchange type '%.*s'",
		    spec->type.n == 0 ? "invalid" : "unknown", SPAN_FMT(spec->type));
	if ((e = refuse_default(spec->name)) != NULL)
		return e;
	x = exchange_find(vh, spec->name);
	e = x != NULL ? check_equivalent(x, spec, type) : check_new(vh, spec, type);
	if (e != NULL)
		return e;
	if (x == NULL) {
		x = create(vh, spec, type, ++vh->broker->next_id);
		persist_exchange(x);
		event_exchange_of(x, true);
	}
	*out = x;
	return NULL;
}

/* Bindings go with it; sources of theirs that are to go as well are noted. */
static void
destroy(struct exchange *x)
{
	struct vhost *vh = x->vhost;

	event_exchange_of(x, false);
	if (vh->broker->events == x)
		vh->broker->events = NULL;
	x->is_deleted = true;
	persist_exchange_gone(x);
	dedup_free(vh->broker, &x->dedup);
	if (unlikely(x->is_tapped))
		tap_exchange_gone(x);
	exchange_changed(x);
	bindings_drop_exchange(x);
	if (x->alternate.p != NULL)
		alternate_remove(x);
	policy_forget_exchange(x);
	policy_drop(x->policy);
	series_fini(&vh->broker->series, &x->series);
	HASH_DEL(vh->exchanges, x);
	if (vh->default_exchange == x)
		vh->default_exchange = NULL;
	vh->epoch++;
	vh->broker->stats.exchanges--;
	exchange_type_ops(x->routes_as)->free(x);
	delay_free(&x->delay);
	route_cache_free(x);
	mem_sub(MEM_TOPOLOGY, exchange_size(x));
	table_free(&x->arguments);
	free(x->name);
	free(x);
}

const struct error *
exchange_delete(struct vhost *vh, struct span name, bool if_unused)
{
	const struct error *e = refuse_default(name);
	struct exchange *x;

	if (e != NULL)
		return e;
	if (span_starts(name, "amq."))
		return error_make(E_ACCESS_REFUSED,
		    "deletion of system exchange '%.*s' in vhost '%s' not allowed", SPAN_FMT(name),
		    vh->name);
	x = exchange_find(vh, name);
	if (x == NULL)
		return NULL;
	if (if_unused && x->binding_count > 0)
		return error_make(
		    E_PRECONDITION_FAILED, "exchange '%s' in vhost '%s' in use", x->name, vh->name);
	destroy(x);
	exchanges_reap_unbound(vh);
	return NULL;
}

bool
exchanges_free_some(struct vhost *vh, unsigned *left)
{
	while (*left > 0 && vh->exchanges != NULL &&
	       !bindings_drop_some_of_exchange(vh->exchanges, left) && *left > 0) {
		destroy(vh->exchanges);
		--*left;
	}
	return vh->exchanges != NULL;
}

void
exchange_note_unbound(struct exchange *x)
{
	/* In a vhost that goes each has its turn. */
	if (x->is_deleted || x->is_unbound || x->vhost->is_deleted)
		return;
	x->is_unbound = true;
	x->unbound_next = x->vhost->unbound;
	x->vhost->unbound = x;
}

/* A chain of them may be long: each one's going notes the next. */
void
exchanges_reap_unbound(struct vhost *vh)
{
	struct exchange *x;

	while ((x = vh->unbound) != NULL) {
		vh->unbound = x->unbound_next;
		destroy(x);
	}
}

/* Of the process: see struct exchange. */
static uint64_t last_generation;

static void
raise_generation(struct exchange *x, struct exchange **work)
{
	if (!x->observed)
		return;
	x->observed = false;
	x->generation = ++last_generation;
	x->changed_next = *work;
	*work = x;
}

void
exchange_changed(struct exchange *x)
{
	struct exchange *work = NULL, *y;
	struct binding *b;

	raise_generation(x, &work);
	while ((x = work) != NULL) {
		work = x->changed_next;
		LIST_FOREACH (b, &x->inbound, target_link)
			raise_generation(b->source, &work);
		for (y = alternate_first(x->vhost, span_of(x->name, x->name_len)); y != NULL;
		     y = LIST_NEXT(y, alternate_link))
			raise_generation(y, &work);
	}
}
