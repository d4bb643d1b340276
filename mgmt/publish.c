/* SPDX-License-Identifier: Apache-2.0
 * POST /api/exchanges/:vhost/:exchange/publish, and a batch of the same. The answer comes when a confirm would. */
#include "broker/broker.h"
#include "broker/error.h"
#include "broker/publisher.h"
#include "mgmt/acting.h"
#include "mgmt/message.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

enum { BATCH_MAX = 1000 };

static const char *const needed[] = { "routing_key", "properties", "payload", "payload_encoding",
	NULL };

/* Publishes what body says, which has all that is needed. NULL, or the reason why it was refused (owned). */
static json_t *
publish(struct publisher *p, const json_t *body, struct span exchange, bool *routed)
{
	struct span key = json_span(json_object_get(body, "routing_key"));
	const struct error *e;
	enum published how;
	json_t *problem;
	struct msg *m;

	*routed = false;
	if (key.p == NULL || key.n > 255)
		return json_string("routing_key is a string of at most 255 bytes");
	m = message_of_json(body, exchange, key, &problem);
	if (m == NULL)
		return problem;
	e = publisher_publish(p, m, &how);
	if (e != NULL)
		return json_sprintf("%u %s", e->code, e->text);
	*routed = how == PUBLISHED_ROUTED;
	return how == PUBLISHED_REFUSED ? json_string("rejected") : NULL;
}

static bool
may_begin(struct request *r)
{
	const char *why = publisher_hold(r->m->broker);

	if (exchange_arg(r, 1).n > 255) {
		reply_bad(r, "the name of an exchange is at most 255 bytes long");
		return false;
	}
	if (why == NULL)
		return true;
	reply_error(r, 503, "service_unavailable", why);
	return false;
}

void
route_publish(struct request *r)
{
	struct publisher *p;
	struct client client;
	struct store_wait wait;
	json_t *problem;
	bool routed;

	if (!body_has(r, needed) || !may_begin(r))
		return;
	acting_client(&client, r);
	p = publisher_new(&client);
	problem = publish(p, r->body, exchange_arg(r, 1), &routed);
	wait = publisher_wait(p);
	publisher_free(&p);
	if (problem != NULL)
		reply_json(
		    r, 400, json_pack("{s:s, s:o}", "error", "bad_request", "reason", problem));
	else
		reply_when(r, wait, 200, json_pack("{s:b}", "routed", routed));
}

/* ---- batches ---- */

static json_t *
publish_item(struct publisher *p, const json_t *item, struct span exchange)
{
	bool routed = false;
	json_t *problem = NULL;

	for (const char *const *name = needed; *name != NULL && problem == NULL; name++) {
		if (json_object_get(item, *name) == NULL)
			problem = json_sprintf("key_missing,%s", *name);
	}
	if (problem == NULL)
		problem = publish(p, item, exchange, &routed);
	return problem != NULL ? json_pack("{s:b, s:o}", "routed", 0, "error", problem)
	                       : json_pack("{s:b}", "routed", routed);
}

void
route_publish_batch(struct request *r)
{
	json_t *messages = json_object_get(r->body, "messages"), *results, *item;
	struct store_wait wait;
	struct publisher *p;
	struct client client;
	size_t i;

	if (!json_is_array(messages) || json_array_size(messages) > BATCH_MAX) {
		reply_bad(r, "messages is a list of at most %d", BATCH_MAX);
		return;
	}
	if (!may_begin(r))
		return;
	results = json_array();
	acting_client(&client, r);
	p = publisher_new(&client);
	json_array_foreach(messages, i, item)(void)
	    json_array_append_new(results, publish_item(p, item, exchange_arg(r, 1)));
	wait = publisher_wait(p);
	publisher_free(&p);
	reply_when(r, wait, 200, json_pack("{s:o}", "results", results));
}
