/* SPDX-License-Identifier: Apache-2.0
 * POST /api/hermes/exchanges/:vhost/:exchange/route: where a message with this key and these headers would go. The answer is
 * what broker/route_try.h found, in the walk's order:
 *
 *	{"vhost", "exchange", "routing_key", "routed": true, "complete": true, "internal": false,
 *	 "exchanges": [{"name", "type", "depth", "delay_ms"}],
 *	 "steps": [{"source", "via": "binding", "alternate" or "name", "destination", "destination_type", "again",
 *	            "routing_key", "arguments", "properties_key" (of a binding), "missing" (an alternate that is not there)}],
 *	 "queues": ["name"]}
 *
 * complete is false where there is more than an answer may hold. */
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/queue.h"
#include "broker/route_try.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/binding_doc.h"
#include "mgmt/json_out.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/table_out.h"

enum { ANSWER_MAX = 512 << 10 }; /* bytes of steps: arguments of bindings may be long */

/* ---- the answer ---- */

static struct span
name_of(const struct exchange *x)
{
	return span_of(x->name, x->name_len);
}

static void
put_places(struct json_out *o, const struct route_try *t)
{
	out_begin(o, '[');
	for (uint32_t i = 0; i < t->places; i++) {
		const struct route_place *p = &t->place[i];

		out_begin(o, '{');
		OUT_SPAN(o, "name", name_of(p->exchange));
		OUT_TEXT(o, "type", exchange_type_name(p->exchange->type));
		OUT_INT(o, "depth", p->depth);
		if (p->delay_ms > 0)
			OUT_INT(o, "delay_ms", p->delay_ms);
		out_end(o, '}');
	}
	out_end(o, ']');
}

static void
put_binding(struct json_out *o, const struct binding *b)
{
	struct binding_view v = binding_view(b);
	char key[PROPERTIES_KEY];

	OUT_SPAN(o, "routing_key", v.key);
	OUT_PUT(o, "arguments", out_table, table_span(v.arguments));
	OUT_TEXT(o, "properties_key", binding_properties_key(&v, key));
}

static void
put_step(struct json_out *o, const struct route_try *t, const struct route_step *s)
{
	static const char *const ways[] = { [ROUTE_BY_BINDING] = "binding",
		[ROUTE_BY_ALTERNATE] = "alternate",
		[ROUTE_BY_NAME] = "name" };
	const struct exchange *from = t->place[s->from].exchange;

	out_begin(o, '{');
	OUT_SPAN(o, "source", name_of(from));
	OUT_TEXT(o, "via", ways[s->way]);
	if (s->queue != NULL)
		OUT_SPAN(o, "destination", span_of(s->queue->name, s->queue->name_len));
	else
		OUT_SPAN(
		    o, "destination", s->exchange != NULL ? name_of(s->exchange) : from->alternate);
	OUT_TEXT(o, "destination_type", s->queue != NULL ? "queue" : "exchange");
	OUT_TRUTH(o, "again", s->again);
	if (s->queue == NULL && s->exchange == NULL)
		OUT_TRUTH(o, "missing", true);
	if (s->binding != NULL)
		put_binding(o, s->binding);
	out_end(o, '}');
}

/* False: there was no room for all of them. */
static bool
put_steps(struct json_out *o, const struct route_try *t)
{
	uint32_t i;

	out_begin(o, '[');
	for (i = 0; i < t->steps && o->n < ANSWER_MAX; i++)
		put_step(o, t, &t->step[i]);
	out_end(o, ']');
	return i == t->steps;
}

static void
put_queues(struct json_out *o, const struct route_try *t)
{
	out_begin(o, '[');
	for (uint32_t i = 0; i < t->steps; i++) {
		const struct queue *q = t->step[i].queue;

		if (q != NULL && !t->step[i].again)
			out_text(o, span_of(q->name, q->name_len));
	}
	out_end(o, ']');
}

static void
reply_tried(
    struct request *r, const struct exchange *x, const struct msg *m, const struct route_try *t)
{
	bool complete = !t->is_cut;
	struct json_out o;

	json_out_init(&o, NULL);
	out_begin(&o, '{');
	OUT_TEXT(&o, "vhost", x->vhost->name);
	OUT_SPAN(&o, "exchange", name_of(x));
	OUT_SPAN(&o, "routing_key", msg_key(m));
	OUT_TRUTH(&o, "routed", t->queues > 0);
	OUT_TRUTH(&o, "internal", x->internal);
	OUT_PUT(&o, "exchanges", put_places, t);
	if (out_key(&o, "steps"))
		complete &= put_steps(&o, t);
	OUT_PUT(&o, "queues", put_queues, t);
	OUT_TRUTH(&o, "complete", complete);
	out_end(&o, '}');
	reply_out(r, &o);
	json_out_fini(&o);
}

/* ---- what was asked ---- */

/* The same as a message without a body. NULL: it was answered. */
static struct msg *
message(struct request *r, struct span exchange)
{
	json_t *key = json_object_get(r->body, "routing_key"),
	       *headers = json_object_get(r->body, "headers"),
	       *properties = json_object_get(r->body, "properties"), *as, *problem = NULL;
	struct span k = key != NULL ? json_span(key) : SPAN_LIT("");
	struct msg *m;

	if (k.p == NULL || k.n > 255) {
		reply_bad(r, "routing_key is a string of at most 255 bytes");
		return NULL;
	}
	if (properties != NULL && !json_is_object(properties)) {
		reply_bad(r, "properties is an object");
		return NULL;
	}
	as = json_pack("{s:o, s:s, s:s}", "properties",
	    properties != NULL ? json_copy(properties) : json_object(), "payload", "",
	    "payload_encoding", "string");
	if (headers != NULL)
		(void)json_object_set(json_object_get(as, "properties"), "headers", headers);
	m = message_of_json(as, exchange, k, &problem);
	json_decref(as);
	if (m == NULL)
		reply_json(
		    r, 400, json_pack("{s:s, s:o}", "error", "bad_request", "reason", problem));
	return m;
}

void
route_try_key(struct request *r)
{
	struct exchange *x = exchange_find(r->vhost, exchange_arg(r, 1));
	const struct error *e;
	struct route_try t;
	struct msg *m;

	if (x == NULL) {
		reply_not_found(r);
		return;
	}
	m = message(r, name_of(x));
	if (m == NULL)
		return;
	e = route_try(&t, x, m);
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_tried(r, x, m, &t);
	route_try_fini(&t);
	msg_unref(&m);
}
