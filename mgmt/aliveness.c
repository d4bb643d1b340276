/* SPDX-License-Identifier: Apache-2.0
 * GET /api/aliveness-test/:vhost: a message goes into the queue aliveness-test and comes out of it, as the user that asks.
 * As with RabbitMQ in an alarm, too: it is in memory for this turn only, and a probe that failed would have the node killed
 * that only waits for consumers. */
#include "broker/broker.h"
#include "broker/permission.h"
#include "broker/publisher.h"
#include "broker/queue.h"
#include "mgmt/acting.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

static const char name[] = "aliveness-test";

static const struct error *
put_in(struct client *client, enum published *how)
{
	json_t *body = json_pack("{s:s, s:s, s:{}}", "payload", "test_message", "payload_encoding",
	    "string", "properties");
	struct publisher *p = publisher_new(client);
	const struct error *e;
	json_t *problem;
	struct msg *m = message_of_json(body, SPAN_LIT(""), span_str(name), &problem);

	if (m != NULL) {
		e = publisher_publish(p, m, how);
	} else {
		json_decref(problem);
		e = error_make(E_RESOURCE_ERROR, "no memory for a message");
	}
	publisher_free(&p);
	json_decref(body);
	return e;
}

static bool
take_out(struct client *client, struct queue *q)
{
	static const struct session_ops none = { NULL, NULL, NULL };
	struct session s;
	struct entry e;
	uint64_t tag;
	uint32_t left;
	bool got;

	session_init(&s, client, &none);
	got = session_get(&s, q, true, &e, &tag, &left) == GET_GOT;
	if (got)
		msg_unref(&e.m);
	session_fini(&s);
	return got;
}

void
route_aliveness(struct request *r)
{
	struct queue_spec spec = { .name = span_str(name) };
	const struct error *e;
	enum published how;
	struct client client;
	struct queue *q;

	acting_client(&client, r);
	e = queue_declare(r->vhost, &spec, &client, &q);
	if (e == NULL)
		e = put_in(&client, &how);
	if (e == NULL)
		e = permission_check(&client, PERM_READ, "queue", spec.name);
	if (e != NULL)
		reply_refused(r, e);
	else if (how != PUBLISHED_ROUTED || !take_out(&client, q))
		reply_error(
		    r, 503, "failed", "the queue aliveness-test did not give a message back");
	else
		reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
}
