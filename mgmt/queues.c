/* SPDX-License-Identifier: Apache-2.0
 * /api/queues: lists, one queue, its contents and bindings. What is in it is got by pull.c. */
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/persist.h"
#include "broker/queue.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/binding_doc.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/queue_doc.h"
#include "mgmt/request.h"

void
route_queues(struct request *r)
{
	listing_reply(r, &queue_list, r->vhost, NULL);
}

void
route_queue(struct request *r)
{
	struct queue *q = queue_arg(r, 1);

	if (q == NULL)
		reply_not_found(r);
	else
		reply_document(r, &queue_list, q);
}

void
route_queue_bindings(struct request *r)
{
	struct queue *q = queue_arg(r, 1);

	if (q == NULL)
		reply_not_found(r);
	else
		listing_reply(r, &queue_binding_list, r->vhost, &q->series);
}

/* ---- making one ---- */

/* There is one node. */
static bool
check_node(struct request *r)
{
	json_t *node = json_object_get(r->body, "node");

	if (node == NULL ||
	    (json_is_string(node) && span_is(json_span(node), r->m->cfg->node_name)))
		return true;
	reply_bad(r, "node '%.*s' could not be contacted", SPAN_FMT(json_span(node)));
	return false;
}

static void
declare(struct request *r, struct queue_spec *spec)
{
	bool was_there = queue_find(r->vhost, spec->name) != NULL;
	const struct error *e;
	struct client client;
	struct queue *q;

	acting_client(&client, r);
	e = queue_declare(r->vhost, spec, &client, &q);
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_changed(r, was_there ? 204 : 201, q->durable);
}

void
route_queue_put(struct request *r)
{
	struct queue_spec spec = { .name = request_arg(r, 1) };
	struct table *arguments = NULL;

	if (spec.name.n == 0 || spec.name.n > 255) {
		reply_bad(r, "queue should be less than 255 bytes, actually was %zu", spec.name.n);
		return;
	}
	if (!check_node(r) || !body_flag(r, "durable", false, &spec.durable) ||
	    !body_flag(r, "auto_delete", false, &spec.auto_delete) ||
	    !body_table(r, "arguments", &arguments))
		return;
	spec.arguments = arguments;
	declare(r, &spec);
	table_free(&arguments);
}

/* ---- its end, and that of its messages ---- */

void
route_queue_delete(struct request *r)
{
	struct client client;
	struct queue *q = queue_for(r, &client, PERM_CONFIGURE);
	const struct error *e;
	uint32_t messages;
	bool durable;

	if (q == NULL)
		return;
	if (!query_true(r, "if-unused") && !query_true(r, "if-empty") && bindings_thin_queue(q)) {
		request_again(r);
		return;
	}
	durable = q->durable;
	e = queue_delete(q, query_true(r, "if-unused"), query_true(r, "if-empty"), &messages);
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_changed(r, 204, durable);
}

void
route_queue_purge(struct request *r)
{
	struct client client;
	struct queue *q = queue_for(r, &client, PERM_READ);

	if (q == NULL)
		return;
	(void)queue_purge(q);
	if (q->durable)
		reply_when(r, persist_all_wait(r->m->broker), 204, NULL);
	else
		reply_empty(r, 204);
}

static void
pause_queue(struct request *r, bool pause)
{
	struct client client;
	struct queue *q = queue_for(r, &client, PERM_CONFIGURE);

	if (q == NULL)
		return;
	if (q->is_paused != pause)
		log_info("queue '%.*s' in vhost '%s' is %s by user '%s'", (int)q->name_len, q->name,
		    q->vhost->name, pause ? "paused" : "resumed", r->user->name);
	queue_pause(q, pause);
	reply_changed(r, 204, q->durable);
}

void
route_queue_pause(struct request *r)
{
	pause_queue(r, true);
}

void
route_queue_resume(struct request *r)
{
	pause_queue(r, false);
}

/* Mirrors were synchronised by it: there are none. */
void
route_queue_actions(struct request *r)
{
	static const char *const needed[] = { "action", NULL };
	struct span action = json_span(json_object_get(r->body, "action"));

	if (!body_has(r, needed))
		return;
	if (queue_arg(r, 1) == NULL)
		reply_not_found(r);
	else if (action.p != NULL && (span_is(action, "sync") || span_is(action, "cancel_sync")))
		reply_empty(r, 204);
	else
		reply_bad(r, "unknown action '%.*s'", SPAN_FMT(action));
}
