/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/consumer_doc.h"

#include <string.h>

#include "base/config.h"
#include "broker/broker.h"
#include "broker/queue.h"
#include "broker/single_active.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/client_doc.h"
#include "mgmt/table_out.h"
#include "mgmt/mgmt_priv.h"

static void
put_channel(const struct doc *d, const struct session *s)
{
	struct json_out *o = d->out;
	char name[CHANNEL_NAME];

	out_begin(o, '{');
	OUT_TEXT(o, "connection_name", client_name(s->client, name));
	OUT_TEXT(o, "name", channel_name(s, name));
	OUT_TEXT(o, "node", d->m->cfg->node_name);
	OUT_INT(o, "number", channel_number(s));
	OUT_TEXT(o, "peer_host", s->client->peer_host);
	OUT_INT(o, "peer_port", s->client->peer_port);
	OUT_TEXT(o, "user", s->client->user->name);
	out_end(o, '}');
}

static void
put_queue(struct json_out *o, const struct queue *q)
{
	out_begin(o, '{');
	OUT_SPAN(o, "name", span_of(q->name, q->name_len));
	OUT_TEXT(o, "vhost", q->vhost->name);
	out_end(o, '}');
}

void
consumer_write(const struct doc *d, const struct consumer *k)
{
	const struct single_active *single = k->queue->single;
	bool is_active = single == NULL || single->active == k;
	struct json_out *o = d->out;

	out_begin(o, '{');
	OUT_PUT(o, "arguments", out_table, table_span(k->arguments));
	OUT_TRUTH(o, "ack_required", !k->no_ack);
	OUT_TRUTH(o, "active", is_active);
	OUT_TEXT(o, "activity_status",
	    single == NULL ? "up"
	    : is_active    ? "single_active"
	                   : "waiting");
	if (out_key(o, "channel_details"))
		put_channel(d, k->session);
	OUT_SPAN(o, "consumer_tag", consumer_tag(k));
	OUT_INT(o, "consumer_timeout", k->timeout_ms);
	OUT_TRUTH(o, "exclusive", k->exclusive);
	OUT_INT(o, "prefetch_count", k->prefetch);
	OUT_PUT(o, "queue", put_queue, k->queue);
	out_end(o, '}');
}

/* ---- the list ---- */

static bool
is_in(const struct scope *scope, const struct consumer *k)
{
	const struct client *c = k->session->client;

	return !k->is_cancelled && k->queue != NULL && client_is_shown(c) &&
	       (scope->vhost == NULL || scope->vhost == c->vhost) &&
	       scope_sees_user(scope, c->user);
}

/* A row is of a session; its consumer is found by the tag, which the list keeps. */
static void *
find_consumer(const struct scope *scope, void *object, const struct row_id *id)
{
	struct session *s = object;
	struct consumer *k = s->is_ending ? NULL : session_find(s, id->text);

	return k != NULL && is_in(scope, k) ? k : NULL;
}

static void
collect_consumers(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct session *s = object;
	struct consumer *k;
	char order[3 * 256];
	size_t n, vhost;

	if (s->is_ending)
		return;
	TAILQ_FOREACH (k, &s->consumers, session_link) {
		if (!is_in(scope, k))
			continue;
		/* by queue, as in RabbitMQ */
		n = vhost = strlen(k->queue->vhost->name) + 1;
		memcpy(order, k->queue->vhost->name, n);
		memcpy(order + n, k->queue->name, k->queue->name_len);
		n += k->queue->name_len;
		order[n++] = '\0';
		id.text = consumer_tag(k);
		memcpy(order + n, id.text.p, id.text.n);
		/* a search looks at the queue's name and the tag */
		listing_add(l, &id, span_of(order + vhost, n - vhost + id.text.n),
		    span_of(order, n + id.text.n), k);
	}
}

static void
write_consumer(const struct doc *d, void *item)
{
	consumer_write(d, item);
}

const struct listing_source consumer_list = {
	.kinds = { SERIES_CHANNEL, SERIES_CHANNEL },
	.paging = PAGING_IF_TOLD,
	.collect = collect_consumers,
	.find = find_consumer,
	.write = write_consumer,
};
