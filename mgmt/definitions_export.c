/* SPDX-License-Identifier: Apache-2.0
 * GET /api/definitions: all that an import would make again, whole or of a vhost, written in slices. What is walked by name
 * was there when its section began; each row is true when it is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "base/bound.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/name.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/topic_permission.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/access_json.h"
#include "mgmt/access_out.h"
#include "mgmt/definitions.h"
#include "mgmt/json_out.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/table_out.h"

enum {
	SLICE_US = 1500,
	LOOK_AT_CLOCK = 16, /* steps between two looks */
	EXPORTS_MAX = 4,
	BYTES_MAX = 256 << 20
};

/* Something to write: a name, or a binding by its destination's reference, identity and id. */
struct key {
	char *name; /* owned */
	uint64_t source, hash, id;
};

struct definitions_export {
	struct mgmt *m;    /* borrowed */
	struct request *r; /* borrowed: waits for the answer */
	char *only;        /* owned: name of the vhost; NULL: all */
	struct json_out out;
	unsigned section;
	bool is_open;      /* the section has begun */
	bool in_exchanges; /* of the bindings: those to exchanges, after those to queues */
	uint32_t at;       /* in the series */
	struct key *key;   /* owned */
	size_t keys, cap, next;
	TAILQ_ENTRY(definitions_export) link;
};

/* ---- keys ---- */

static struct key *
add_key(struct definitions_export *x)
{
	if (x->keys == x->cap) {
		x->cap = x->cap > 0 ? 2 * x->cap : 64;
		x->key = xrealloc(x->key, x->cap * sizeof *x->key);
	}
	x->key[x->keys] = (struct key){ .name = NULL };
	return &x->key[x->keys++];
}

static void
drop_keys(struct definitions_export *x)
{
	for (size_t i = 0; i < x->keys; i++)
		free(x->key[i].name);
	x->keys = x->next = 0;
}

static void
collect_vhosts(struct definitions_export *x)
{
	for (const struct vhost *vh = x->m->broker->vhosts; vh != NULL; vh = vh->hh.next)
		if (x->only == NULL || strcmp(x->only, vh->name) == 0)
			add_key(x)->name = xstrdup(vh->name);
}

static void
collect_parameters(struct definitions_export *x)
{
	for (const struct parameter *p = x->m->broker->parameters; p != NULL; p = p->hh.next)
		add_key(x)->name = xstrdup(p->name);
}

/* ---- rows by name ---- */

static void
put_json(struct json_out *o, json_t *j)
{
	char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);

	out_raw(o, span_str(text != NULL ? text : "null"));
	free(text);
	json_decref(j);
}

static void
write_vhost(struct definitions_export *x, const char *name)
{
	const struct vhost *vh = vhost_find(x->m->broker, span_str(name));

	if (vh != NULL)
		put_json(&x->out, vhost_json(vh));
}

/* Operators' policies and limits are parameters in these files. */
static void
write_parameters(struct definitions_export *x, const char *name)
{
	const struct vhost *vh = vhost_find(x->m->broker, span_str(name));

	if (vh == NULL)
		return;
	if (vhost_has_limits(vh))
		out_limits_parameter(&x->out, vh);
	for (const struct policy *p = vh->policies[POLICY_OPERATOR]; p != NULL; p = p->hh.next)
		out_policy_parameter(&x->out, p);
	for (const struct parameter *p = vh->parameters; p != NULL; p = p->hh.next)
		out_parameter(&x->out, p);
}

static void
write_global_parameter(struct definitions_export *x, const char *name)
{
	const struct parameter *p =
	    parameter_find(x->m->broker, NULL, span_of(NULL, 0), span_str(name));

	if (p != NULL)
		out_parameter(&x->out, p);
}

static void
write_policies(struct definitions_export *x, const char *name)
{
	const struct vhost *vh = vhost_find(x->m->broker, span_str(name));

	for (const struct policy *p = vh != NULL ? vh->policies[POLICY_USER] : NULL; p != NULL;
	     p = p->hh.next)
		out_policy(&x->out, p, true);
}

/* ---- users and what they may do ---- */

static void
write_user(struct definitions_export *x, void *object)
{
	out_user(&x->out, object, false);
}

static void
write_permissions(struct definitions_export *x, void *object)
{
	const struct user *u = object;

	for (const struct permission *p = u->permissions; p != NULL; p = p->hh.next)
		if (!p->vhost->is_deleted)
			out_permission(&x->out, p);
}

static void
write_topic_permissions(struct definitions_export *x, void *object)
{
	const struct user *u = object;

	for (const struct topic_permission *p = u->topic_permissions; p != NULL; p = p->next)
		if (!p->vhost->is_deleted)
			out_topic_permission(&x->out, p);
}

/* ---- queues, exchanges, bindings ---- */

static bool
is_wanted(const struct definitions_export *x, const struct vhost *vh)
{
	return vh != NULL && !vh->is_deleted && (x->only == NULL || strcmp(x->only, vh->name) == 0);
}

static bool
queue_is_wanted(const struct definitions_export *x, const struct queue *q)
{
	return is_wanted(x, q->vhost) && !q->exclusive;
}

static void
put_vhost(struct definitions_export *x, const struct vhost *vh)
{
	if (x->only == NULL)
		OUT_TEXT(&x->out, "vhost", vh->name);
}

static void
write_queue(struct definitions_export *x, void *object)
{
	const struct queue *q = object;
	struct json_out *o = &x->out;

	if (!queue_is_wanted(x, q))
		return;
	out_begin(o, '{');
	OUT_SPAN(o, "name", span_of(q->name, q->name_len));
	put_vhost(x, q->vhost);
	OUT_TRUTH(o, "durable", q->durable);
	OUT_TRUTH(o, "auto_delete", q->auto_delete);
	OUT_PUT(o, "arguments", out_table, table_span(q->arguments));
	out_end(o, '}');
}

static void
write_exchange(struct definitions_export *x, void *object)
{
	const struct exchange *e = object;
	struct json_out *o = &x->out;

	if (!is_wanted(x, e->vhost) || exchange_is_predeclared(e))
		return;
	out_begin(o, '{');
	OUT_SPAN(o, "name", span_of(e->name, e->name_len));
	put_vhost(x, e->vhost);
	OUT_TEXT(o, "type", exchange_type_name(e->type));
	OUT_TRUTH(o, "durable", e->durable);
	OUT_TRUTH(o, "auto_delete", e->auto_delete);
	OUT_TRUTH(o, "internal", e->internal);
	OUT_PUT(o, "arguments", out_table, table_span(e->arguments));
	out_end(o, '}');
}

/* Those to a queue or an exchange become keys. */
static void
collect_bindings(struct definitions_export *x, void *object)
{
	const struct series_list *series = &x->m->broker->series;
	const struct queue *q = object;
	const struct exchange *e = object;
	const struct binding *b;

	if (x->in_exchanges ? !is_wanted(x, e->vhost) : !queue_is_wanted(x, q))
		return;
	b = LIST_FIRST(x->in_exchanges ? &e->inbound : &q->bindings);
	for (; b != NULL; b = LIST_NEXT(b, target_link)) {
		struct key *k = add_key(x);

		k->source = series_ref(series, &b->source->series);
		k->hash = b->identity.hash;
		k->id = b->id;
	}
}

static void
write_binding(struct definitions_export *x, const struct key *k)
{
	struct series *s = series_find(&x->m->broker->series, k->source);
	const struct binding *b =
	    s != NULL ? binding_find_id(series_object(s), k->hash, k->id) : NULL;
	struct json_out *o = &x->out;

	if (b == NULL || !is_wanted(x, b->source->vhost))
		return;
	out_begin(o, '{');
	OUT_SPAN(o, "source", span_of(b->source->name, b->source->name_len));
	put_vhost(x, b->source->vhost);
	OUT_SPAN(o, "destination",
	    b->queue != NULL ? span_of(b->queue->name, b->queue->name_len)
	                     : span_of(b->exchange->name, b->exchange->name_len));
	OUT_TEXT(o, "destination_type", b->queue != NULL ? "queue" : "exchange");
	OUT_SPAN(o, "routing_key", binding_key(b));
	OUT_PUT(o, "arguments", out_table, table_span(b->arguments));
	out_end(o, '}');
}

/* ---- sections ---- */

/* Either keys, collected when the section begins, or objects of a kind. */
static const struct section {
	const char *name;
	bool in_vhost; /* of the export of a vhost, too */
	void (*collect)(struct definitions_export *x);
	void (*write)(struct definitions_export *x, const char *name);
	void (*object)(struct definitions_export *x, void *object);
	enum series_kind kind;
} sections[] = {
	{ "users", false, NULL, NULL, write_user, SERIES_USER },
	{ "vhosts", false, collect_vhosts, write_vhost, NULL, SERIES_KINDS },
	{ "permissions", false, NULL, NULL, write_permissions, SERIES_USER },
	{ "topic_permissions", false, NULL, NULL, write_topic_permissions, SERIES_USER },
	{ "parameters", true, collect_vhosts, write_parameters, NULL, SERIES_KINDS },
	{ "global_parameters", false, collect_parameters, write_global_parameter, NULL,
	    SERIES_KINDS },
	{ "policies", true, collect_vhosts, write_policies, NULL, SERIES_KINDS },
	{ "queues", true, NULL, NULL, write_queue, SERIES_QUEUE },
	{ "exchanges", true, NULL, NULL, write_exchange, SERIES_EXCHANGE },
	{ "bindings", true, NULL, NULL, collect_bindings, SERIES_QUEUE },
};

static void
open_section(struct definitions_export *x, const struct section *s)
{
	x->is_open = true;
	x->at = 0;
	x->in_exchanges = false;
	if (out_key_n(&x->out, s->name, strlen(s->name)))
		out_begin(&x->out, '[');
	if (s->collect != NULL)
		s->collect(x);
}

/* The next object of the section; NULL: there is none. */
static struct series *
next_object(struct definitions_export *x, const struct section *s)
{
	const struct series_list *all = &x->m->broker->series;
	enum series_kind kind = x->in_exchanges ? SERIES_EXCHANGE : s->kind;
	struct series *o = series_next(all, kind, &x->at);

	if (o != NULL || s->object != collect_bindings || x->in_exchanges)
		return o;
	x->in_exchanges = true;
	x->at = 0;
	return series_next(all, SERIES_EXCHANGE, &x->at);
}

/* One row or object. False: the section is at its end. */
static bool
step(struct definitions_export *x, const struct section *s)
{
	struct series *o;

	if (x->next < x->keys) {
		const struct key *k = &x->key[x->next++];

		if (k->name != NULL)
			s->write(x, k->name);
		else
			write_binding(x, k);
		return true;
	}
	drop_keys(x);
	if (s->object == NULL || (o = next_object(x, s)) == NULL)
		return false;
	s->object(x, series_object(o));
	return true;
}

static bool
section_is_wanted(const struct definitions_export *x, const struct section *s)
{
	return x->only == NULL || s->in_vhost;
}

/* True: it is done. */
static bool
run(struct definitions_export *x)
{
	uint64_t end_us = clock_mono_us() + SLICE_US;
	unsigned n = 0;

	for (; x->section < COUNT_OF(sections); x->section++) {
		const struct section *s = &sections[x->section];

		if (!section_is_wanted(x, s))
			continue;
		if (!x->is_open)
			open_section(x, s);
		while (step(x, s)) {
			if (x->out.n > BYTES_MAX)
				return true;
			if (++n % LOOK_AT_CLOCK == 0 && clock_mono_us() >= end_us)
				return false;
		}
		out_end(&x->out, ']');
		x->is_open = false;
	}
	out_end(&x->out, '}');
	return true;
}

/* ---- over HTTP ---- */

static void
export_free(struct definitions_export *x)
{
	json_out_fini(&x->out);
	drop_keys(x);
	free(x->key);
	free(x->only);
	free(x);
}

static void
release(const void *data UNUSED, size_t n UNUSED, void *arg)
{
	export_free(arg);
}

static void
answer(struct definitions_export *x)
{
	struct evbuffer *body;

	if (x->out.n > BYTES_MAX) {
		bound_reached(BOUND_exports);
		reply_error(x->r, 503, "service_unavailable",
		    "the definitions are too large to be exported at once");
		export_free(x);
		return;
	}
	body = evbuffer_new();
	if (body == NULL || evbuffer_add_reference(body, x->out.p, x->out.n, release, x) != 0) {
		reply_error(x->r, 503, "service_unavailable", "no memory for the definitions");
		export_free(x);
	} else {
		reply_bytes(x->r, 200, "application/json", body);
	}
	if (body != NULL)
		evbuffer_free(body);
}

bool
exports_run(struct mgmt *m)
{
	struct definitions_export *x = TAILQ_FIRST(&m->exports);

	if (likely(x == NULL))
		return false;
	TAILQ_REMOVE(&m->exports, x, link);
	if (run(x)) {
		m->exports_waiting--;
		answer(x);
	} else {
		TAILQ_INSERT_TAIL(&m->exports, x, link);
	}
	return !TAILQ_EMPTY(&m->exports);
}

void
exports_stop(struct mgmt *m)
{
	struct definitions_export *x;

	while ((x = TAILQ_FIRST(&m->exports)) != NULL) {
		TAILQ_REMOVE(&m->exports, x, link);
		export_free(x);
	}
}

static void
put_head(struct definitions_export *x)
{
	const struct config *cfg = x->m->cfg;
	struct json_out *o = &x->out;

	json_out_init(o, NULL);
	out_begin(o, '{');
	OUT_TEXT(o, "rabbit_version", cfg->compat_version);
	OUT_TEXT(o, "rabbitmq_version", cfg->compat_version);
	OUT_TEXT(o, "product_name", cfg->compat_product);
	OUT_TEXT(o, "product_version", cfg->compat_version);
}

/* A name of a file goes into a header: nothing that could end it. */
static void
attach(struct request *r)
{
	const char *file = request_query(r, "download");
	char value[300];

	if (file == NULL)
		return;
	for (const char *p = file; *p != '\0'; p++)
		if (*p < ' ' || *p == '"' || *p == ';' || *p == 0x7F)
			return;
	if (snprintf(value, sizeof value, "attachment; filename=%s", file) < (int)sizeof value)
		reply_header(r, "Content-Disposition", value);
}

static void
start(struct request *r, const struct vhost *vh)
{
	struct mgmt *m = r->m;
	struct definitions_export *x;

	if (m->exports_waiting >= EXPORTS_MAX) {
		bound_reached(BOUND_exports);
		reply_error(r, 503, "service_unavailable",
		    "too many exports are under way: try again later");
		return;
	}
	attach(r);
	x = xcalloc(1, sizeof *x);
	x->m = m;
	x->r = r;
	x->only = vh != NULL ? xstrdup(vh->name) : NULL;
	put_head(x);
	m->exports_waiting++;
	TAILQ_INSERT_TAIL(&m->exports, x, link);
	request_defer(r);
}

void
route_definitions(struct request *r)
{
	start(r, NULL);
}

void
route_definitions_vhost(struct request *r)
{
	const struct vhost *vh = vhost_find(r->m->broker, request_arg(r, 0));

	if (vh == NULL)
		reply_bad(r, "vhost_not_found");
	else
		start(r, vh);
}
