/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/totals.h"

#include <stdlib.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/session.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/client_doc.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/stats_out.h"

/* What is added up: the node, or vhosts. */
struct totals {
	struct doc doc;
	const struct broker *b;
	bool whole;
	const struct vhost **vhost; /* owned */
	size_t vhosts;
	struct counted *part; /* owned: room for all of them, times PARTS */
};

enum { PARTS = 4 }; /* most counters that make one sum */

/* The counters at these places of struct broker_stats, or of each vhost. */
static void
put(struct totals *t, const char *name, const char *details, const struct sample_range *range,
    const uint64_t *const *node, const size_t *offset, size_t n)
{
	size_t parts = 0;

	for (size_t i = 0; i < n; i++) {
		if (t->whole) {
			t->part[parts++] = (struct counted){ &t->b->node, node[i] };
			continue;
		}
		for (size_t v = 0; v < t->vhosts; v++)
			t->part[parts++] = (struct counted){ &t->vhost[v]->series,
				(const uint64_t *)(const void *)((const char *)t->vhost[v] +
				                                 offset[i]) };
	}
	out_sum(&t->doc, name, details, range, t->part, parts);
}

#define STAT(name) &t->b->stats.name
#define PLACE(name) offsetof(struct vhost, name)
#define PUT(literal, range, nodes, places, n)                                      \
	put(t, literal, literal "_details", range, (const uint64_t *const[])nodes, \
	    (const size_t[])places, n)
#define ONE(name) PUT(#name, &t->doc.msg_rates, { STAT(name) }, { PLACE(stats.name) }, 1)
#define LIST(...)           \
	{                   \
		__VA_ARGS__ \
	}

static void
put_message_stats(struct totals *t)
{
	out_begin(t->doc.out, '{');
	ONE(ack);
	ONE(confirm);
	ONE(deliver);
	PUT("deliver_get", &t->doc.msg_rates,
	    LIST(STAT(deliver), STAT(deliver_no_ack), STAT(get), STAT(get_no_ack)),
	    LIST(PLACE(stats.deliver), PLACE(stats.deliver_no_ack), PLACE(stats.get),
	        PLACE(stats.get_no_ack)),
	    4);
	ONE(deliver_no_ack);
	ONE(drop_unroutable);
	ONE(get);
	ONE(get_empty);
	ONE(get_no_ack);
	ONE(publish);
	ONE(redeliver);
	ONE(return_unroutable);
	out_end(t->doc.out, '}');
}

static void
put_queue_totals(struct totals *t)
{
	const struct sample_range *range = &t->doc.lengths;

	out_begin(t->doc.out, '{');
	PUT("messages", range, LIST(STAT(messages_ready), STAT(messages_unacknowledged)),
	    LIST(PLACE(depth.ready), PLACE(depth.unacked)), 2);
	PUT("messages_ready", range, LIST(STAT(messages_ready)), LIST(PLACE(depth.ready)), 1);
	PUT("messages_unacknowledged", range, LIST(STAT(messages_unacknowledged)),
	    LIST(PLACE(depth.unacked)), 1);
	out_end(t->doc.out, '}');
}

/* ---- objects ---- */

struct objects {
	uint64_t channels, connections, consumers, exchanges, queues;
};

static struct objects
count_own(const struct totals *t, const struct user *u)
{
	struct objects n = { 0 };
	const struct session *s;
	const struct client *c;

	for (size_t v = 0; v < t->vhosts; v++) {
		n.queues += t->vhost[v]->queues_by_name.count;
		n.exchanges += HASH_COUNT(t->vhost[v]->exchanges);
	}
	TAILQ_FOREACH (c, &t->b->clients, link) {
		if (c->user != u || !client_is_shown(c))
			continue;
		n.connections++;
		LIST_FOREACH (s, &c->sessions, link) {
			n.channels++;
			n.consumers += s->consumer_count;
		}
	}
	return n;
}

/* What still lies in vhosts that were deleted is not to be seen any more. */
static struct objects
count_all(const struct broker *b)
{
	const struct broker_stats *s = &b->stats;
	struct objects n = { s->channels, s->connections, s->consumers, s->exchanges, s->queues };
	const struct vhost *vh;

	TAILQ_FOREACH (vh, &b->gone_vhosts, gone_link) {
		n.queues -= vh->queues_by_name.count;
		n.exchanges -= HASH_COUNT(vh->exchanges);
	}
	return n;
}

static void
put_objects(struct json_out *o, struct objects n)
{
	out_begin(o, '{');
	OUT_INT(o, "channels", n.channels);
	OUT_INT(o, "connections", n.connections);
	OUT_INT(o, "consumers", n.consumers);
	OUT_INT(o, "exchanges", n.exchanges);
	OUT_INT(o, "queues", n.queues);
	out_end(o, '}');
}

/* ---- all of it ---- */

static void
find_vhosts(struct totals *t, const struct user *u)
{
	const struct vhost *vh;

	t->vhost = xcalloc(HASH_COUNT(t->b->vhosts) + 1u, sizeof *t->vhost);
	for (vh = t->b->vhosts; vh != NULL; vh = vh->hh.next) {
		if (permission_vhost(u, vh))
			t->vhost[t->vhosts++] = vh;
	}
	t->part = xcalloc((t->vhosts + 1) * PARTS, sizeof *t->part);
}

static json_t *
write(struct totals *t, const struct user *u)
{
	struct json_out o;
	json_t *j;

	json_out_init(&o, NULL);
	t->doc.out = &o;
	out_begin(&o, '{');
	if (out_key(&o, "message_stats"))
		put_message_stats(t);
	if (out_key(&o, "queue_totals"))
		put_queue_totals(t);
	if (out_key(&o, "object_totals"))
		put_objects(&o, t->whole ? count_all(t->b) : count_own(t, u));
	out_end(&o, '}');
	j = json_loadb(o.p, o.n, 0, NULL);
	json_out_fini(&o);
	return j;
}

json_t *
totals_of(struct request *r)
{
	struct totals t = { .b = r->m->broker };
	json_t *j;

	if (!doc_init(&t.doc, r))
		return NULL;
	t.whole = (r->user->tags & (TAG_ADMINISTRATOR | TAG_MONITORING)) != 0;
	find_vhosts(&t, r->user);
	j = write(&t, r->user);
	free(t.vhost);
	free(t.part);
	return j;
}
