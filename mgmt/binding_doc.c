/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/binding_doc.h"

#include <stdio.h>
#include <string.h>

#include "broker/broker.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/table_out.h"

/* ---- the key of its properties ---- */

/* FNV-1a. Of arguments the sum over the fields, for their order means nothing. */
static uint32_t
hash_arguments(const struct table *t)
{
	struct span raw = table_span(t);
	size_t at = 0, from = 0;
	uint64_t sum = 0;
	struct field f;

	while (table_next(raw, &at, &f)) {
		uint64_t h = UINT64_C(14695981039346656037);

		for (; from < at; from++)
			h = (h ^ raw.p[from]) * UINT64_C(1099511628211);
		sum += h;
	}
	return (uint32_t)(sum ^ sum >> 32);
}

static char *
put_hash(char *to, uint32_t hash)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (int shift = 26; shift >= -4; shift -= 6)
		*to++ = digits[(shift >= 0 ? hash >> shift : hash << -shift) & 63];
	return to;
}

static char *
put_key(char *to, struct span key)
{
	static const char plain[] = "-._", hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < key.n; i++) {
		uint8_t c = key.p[i];

		if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		    (c != 0 && strchr(plain, c) != NULL)) {
			*to++ = (char)c;
		} else if (c == ' ') {
			*to++ = '+';
		} else {
			*to++ = '%';
			*to++ = hex[c >> 4];
			*to++ = hex[c & 15];
		}
	}
	return to;
}

const char *
binding_properties_key(const struct binding_view *v, char buf[PROPERTIES_KEY])
{
	char *to = put_key(buf, v->key);

	if (v->arguments != NULL || v->key.n == 0)
		*to++ = '~';
	if (v->arguments != NULL)
		to = put_hash(to, hash_arguments(v->arguments));
	*to = '\0';
	return buf;
}

struct binding *
binding_by_properties(const struct exchange *source, const struct queue *q,
    const struct exchange *x, struct span props)
{
	struct binding *b = LIST_FIRST(q != NULL ? &q->bindings : &x->inbound);
	struct binding_view v;
	char buf[PROPERTIES_KEY];

	for (; b != NULL; b = LIST_NEXT(b, target_link)) {
		/* a key never becomes shorter */
		if (b->source != source || b->key_len > props.n)
			continue;
		v = binding_view(b);
		if (span_is(props, binding_properties_key(&v, buf)))
			break;
	}
	return b;
}

/* ---- the document ---- */

struct binding_view
binding_view(const struct binding *b)
{
	return (
	    struct binding_view){ b->source, b->queue, b->exchange, binding_key(b), b->arguments };
}

struct binding_view
binding_view_default(const struct queue *q)
{
	return (struct binding_view){ q->vhost->default_exchange, q, NULL,
		span_of(q->name, q->name_len), NULL };
}

static struct span
exchange_span(const struct exchange *x)
{
	return span_of(x->name, x->name_len);
}

static struct span
destination(const struct binding_view *v)
{
	return v->queue != NULL ? span_of(v->queue->name, v->queue->name_len)
	                        : exchange_span(v->exchange);
}

void
binding_write(const struct doc *d, void *view)
{
	const struct binding_view *v = view;
	struct json_out *o = d->out;
	char key[PROPERTIES_KEY];

	out_begin(o, '{');
	OUT_SPAN(o, "source", exchange_span(v->source));
	OUT_TEXT(o, "vhost", v->source->vhost->name);
	OUT_SPAN(o, "destination", destination(v));
	OUT_TEXT(o, "destination_type", v->queue != NULL ? "queue" : "exchange");
	OUT_SPAN(o, "routing_key", v->key);
	OUT_PUT(o, "arguments", out_table, table_span(v->arguments));
	OUT_TEXT(o, "properties_key", binding_properties_key(v, key));
	out_end(o, '}');
}

/* ---- the lists ---- */

static char *
put_name(char *to, struct span name)
{
	if (name.n > 0)
		memcpy(to, name.p, name.n);
	to[name.n] = '\0';
	return to + name.n + 1;
}

/* What a search looks at: both ends and the key, a line each. */
static struct span
searched(const struct binding_view *v, char text[3 * 256])
{
	struct span part[] = { exchange_span(v->source), destination(v), v->key };
	char *to = text;

	for (size_t i = 0; i < COUNT_OF(part); i++) {
		to = put_name(to, part[i]);
		to[-1] = '\n';
	}
	return span_of(text, (size_t)(to - text) - 1);
}

static void
add(struct listing *l, const struct row_id *id, struct binding_view v)
{
	char order[4 * 256 + 2], text[3 * 256], *to = order;

	to = put_name(to, span_str(v.source->vhost->name));
	to = put_name(to, exchange_span(v.source));
	to = put_name(to, destination(&v));
	*to++ = v.queue != NULL ? 'q' : 'e';
	to = put_name(to, v.key);
	listing_add(l, id, searched(&v, text), span_of(order, (size_t)(to - order)), &v);
}

/* Its row is that of its source, in which it is found by identity and id. */
static void
add_binding(struct listing *l, const struct scope *scope, const struct binding *b)
{
	const struct vhost *vh = b->source->vhost;
	struct row_id id = { .object = series_ref(&vh->broker->series, &b->source->series),
		.a = b->identity.hash,
		.b = b->id };

	if (scope_sees(scope, vh) && (scope->peer == NULL || scope->peer == &b->source->series))
		add(l, &id, binding_view(b));
}

static void
add_default(struct listing *l, const struct scope *scope, const struct queue *q, struct row_id id)
{
	if (q->vhost == NULL || !scope_sees(scope, q->vhost))
		return;
	if (scope->peer == NULL || scope->peer == &q->vhost->default_exchange->series)
		add(l, &id, binding_view_default(q));
}

/* a: 0 for a queue's binding by its name. */
static void *
find_binding(const struct scope *scope, void *object, const struct row_id *id)
{
	static struct binding_view found; /* core thread only */
	const struct binding *b;

	if (id->b == 0) {
		const struct queue *q = object;

		if (q->vhost == NULL || !scope_sees(scope, q->vhost))
			return NULL;
		found = binding_view_default(q);
		return &found;
	}
	b = binding_find_id(object, id->a, id->b);
	if (b == NULL || !scope_sees(scope, b->source->vhost))
		return NULL;
	found = binding_view(b);
	return &found;
}

static void
collect_default(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	add_default(l, scope, object, id);
}

/* Bindings between exchanges are met with their destination, others with their queue. */
static void
collect_any(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	if (series_find(listing_series(l), id.object)->kind == SERIES_QUEUE)
		add_default(l, scope, object, id);
}

static const void *
first_to(const struct series *s)
{
	const struct binding *b;

	if (s->kind == SERIES_QUEUE)
		b = LIST_FIRST(&((const struct queue *)series_object(s))->bindings);
	else
		b = LIST_FIRST(&((const struct exchange *)series_object(s))->inbound);
	return WALK_LINK(b, target_link);
}

static const void *
add_to(struct listing *l, const struct scope *scope, const void *at)
{
	const struct binding *b = WALK_AT(at, binding, target_link);

	add_binding(l, scope, b);
	return WALK_LINK(LIST_NEXT(b, target_link), target_link);
}

static const void *
first_from(const struct series *s)
{
	const struct exchange *x = series_object(s);

	return WALK_LINK(LIST_FIRST(&x->bindings), source_link);
}

static const void *
add_from(struct listing *l, const struct scope *scope, const void *at)
{
	const struct binding *b = WALK_AT(at, binding, source_link);

	add_binding(l, scope, b);
	return WALK_LINK(LIST_NEXT(b, source_link), source_link);
}

#define BINDINGS(walked, other, how, ...)                                              \
	{                                                                              \
		.kinds = { walked, other }, .paging = PAGING_IF_TOLD, .collect = how,  \
		.parts = { __VA_ARGS__ }, .find = find_binding, .write = binding_write \
	}
const struct listing_source binding_list =
    BINDINGS(SERIES_QUEUE, SERIES_EXCHANGE, collect_any, { first_to, add_to });
const struct listing_source queue_binding_list =
    BINDINGS(SERIES_QUEUE, SERIES_QUEUE, collect_default, { first_to, add_to });
const struct listing_source source_binding_list =
    BINDINGS(SERIES_EXCHANGE, SERIES_EXCHANGE, NULL, { first_from, add_from });
const struct listing_source destination_binding_list =
    BINDINGS(SERIES_EXCHANGE, SERIES_EXCHANGE, NULL, { first_to, add_to });
const struct listing_source default_binding_list =
    BINDINGS(SERIES_QUEUE, SERIES_QUEUE, collect_default, { NULL, NULL });
