/* SPDX-License-Identifier: Apache-2.0
 * /api/bindings: lists, and the bindings between two ends. The path says whether the second is a queue (q) or an exchange
 * (e). */
#include <string.h>

#include <event2/http.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/table.h"
#include "broker/topic_permission.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/binding_doc.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

void
route_bindings(struct request *r)
{
	listing_reply(r, &binding_list, r->vhost, NULL);
}

/* The ends that the path names; each NULL where there is none. */
struct ends {
	struct span source_name, name;
	bool to_queue;
	struct exchange *source, *exchange;
	struct queue *queue;
};

static void
find_ends(const struct request *r, struct ends *e)
{
	*e = (struct ends){ .source_name = exchange_arg(r, 1),
		.to_queue = strstr(r->route->path, "/q/") != NULL };
	e->name = e->to_queue ? request_arg(r, 2) : exchange_arg(r, 2);
	e->source = exchange_find(r->vhost, e->source_name);
	if (e->to_queue)
		e->queue = queue_arg(r, 2);
	else
		e->exchange = exchange_find(r->vhost, e->name);
}

void
route_bindings_between(struct request *r)
{
	struct ends e;

	find_ends(r, &e);
	if (e.source == NULL || (e.queue == NULL && e.exchange == NULL))
		reply_json(r, 200, json_array());
	else if (e.to_queue)
		listing_reply_pair(r, &queue_binding_list, &e.queue->series, &e.source->series);
	else
		listing_reply_pair(
		    r, &destination_binding_list, &e.exchange->series, &e.source->series);
}

/* The one that the last piece of the path names. False: it was answered. */
static bool
find_one(struct request *r, struct ends *e, struct binding_view *v, struct binding **b)
{
	struct span props = request_arg(r, 3);
	char key[PROPERTIES_KEY];

	find_ends(r, e);
	*b = NULL;
	if (e->source != NULL && (e->queue != NULL || e->exchange != NULL))
		*b = binding_by_properties(e->source, e->queue, e->exchange, props);
	if (*b != NULL) {
		*v = binding_view(*b);
		return true;
	}
	if (e->source != NULL && e->source == r->vhost->default_exchange && e->queue != NULL) {
		*v = binding_view_default(e->queue);
		if (span_is(props, binding_properties_key(v, key)))
			return true;
	}
	reply_not_found(r);
	return false;
}

void
route_binding(struct request *r)
{
	struct binding_view v;
	struct binding *b;
	struct ends e;

	if (find_one(r, &e, &v, &b))
		reply_document(r, &binding_list, &v);
}

/* ---- changes ---- */

static const struct error *
check_rights(const struct request *r, const struct ends *e, struct span key, struct client *client)
{
	const struct error *err;

	acting_client(client, r);
	if (e->source_name.n == 0 || (!e->to_queue && e->name.n == 0))
		return error_make(
		    E_ACCESS_REFUSED, "operation not permitted on the default exchange");
	err = permission_check(client, PERM_WRITE, e->to_queue ? "queue" : "exchange", e->name);
	if (err == NULL)
		err = permission_check(client, PERM_READ, "exchange", e->source_name);
	if (err == NULL)
		err = topic_permission_check_name(client, TOPIC_READ, e->source_name, key);
	return err;
}

static const struct error *
make(const struct request *r, struct ends *e, struct span key, const struct table *arguments)
{
	struct client client;
	const struct error *err = check_rights(r, e, key, &client);

	if (err == NULL)
		err = exchange_lookup(r->vhost, e->source_name, &e->source);
	if (err == NULL && e->to_queue)
		err = queue_lookup(r->vhost, e->name, &client, &e->queue);
	else if (err == NULL)
		err = exchange_lookup(r->vhost, e->name, &e->exchange);
	return err != NULL ? err : binding_add(e->source, e->queue, e->exchange, key, arguments);
}

/* Location: {destination}/{properties_key}, each encoded once more. */
static void
say_where(struct request *r, const struct ends *e, struct span key, const struct table *arguments)
{
	struct binding_view v = { e->source, e->queue, e->exchange, key, arguments };
	char props[PROPERTIES_KEY], *name, *encoded, *where;

	name = evhttp_uriencode((const char *)e->name.p, (ssize_t)e->name.n, 0);
	encoded = evhttp_uriencode(binding_properties_key(&v, props), -1, 0);
	if (name == NULL || encoded == NULL)
		mem_exhausted(0, __builtin_return_address(0));
	where = xasprintf("%s/%s", name, encoded);
	reply_header(r, "Location", where);
	free(name);
	free(encoded);
	free(where);
}

static bool
survives(const struct ends *e)
{
	return e->source->durable && (e->to_queue ? e->queue->durable : e->exchange->durable);
}

void
route_bind(struct request *r)
{
	json_t *key = json_object_get(r->body, "routing_key");
	struct table *arguments = NULL;
	const struct error *err;
	struct span k = key != NULL ? json_span(key) : SPAN_LIT("");
	struct ends e;

	if (k.p == NULL || k.n > 255) {
		reply_bad(r, "routing_key is a string of at most 255 bytes");
		return;
	}
	if (!body_table(r, "arguments", &arguments))
		return;
	find_ends(r, &e);
	err = make(r, &e, k, arguments);
	if (err != NULL) {
		reply_refused(r, err);
	} else {
		say_where(r, &e, k, arguments);
		reply_changed(r, 201, survives(&e));
	}
	table_free(&arguments);
}

void
route_unbind(struct request *r)
{
	const struct error *err;
	struct binding_view v;
	struct client client;
	struct binding *b;
	struct queue *q;
	struct ends e;
	bool durable;

	if (!find_one(r, &e, &v, &b))
		return;
	durable = survives(&e);
	err = check_rights(r, &e, b != NULL ? binding_key(b) : SPAN_LIT(""), &client);
	if (err == NULL && e.to_queue)
		err = queue_lookup(r->vhost, e.name, &client, &q);
	if (err == NULL)
		err = binding_remove(e.source, e.queue, e.exchange, binding_key(b), b->arguments);
	if (err != NULL)
		reply_refused(r, err);
	else
		reply_changed(r, 204, durable);
}
