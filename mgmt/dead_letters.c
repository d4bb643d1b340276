/* SPDX-License-Identifier: Apache-2.0
 * /api/hermes/dead-letters: the queues that hold dead letters, or may get some. They are known by their first message, which says
 * that it died, by the letters that came in since the node began, or by what settings of queues and bindings say
 * (letter_target.h). A first message that lies on disk is read, so that the next list knows it. */
#include "broker/death.h"
#include "broker/letter_target.h"
#include "broker/msg.h"
#include "broker/props.h"
#include "broker/queue.h"
#include "broker/vhost.h"
#include "mgmt/list_order.h"
#include "mgmt/listing.h"
#include "mgmt/request.h"

static bool
read_head(struct queue *q, struct death_history *out)
{
	const struct msg *m = queue_first(q);
	struct span headers;

	if (m == NULL && q->ready > 0)
		(void)queue_fetch_first(q);
	return m != NULL && props_find(msg_props(m), PROP_HEADERS, &headers) &&
	       death_read(headers, out);
}

static void
put_head(struct json_out *o, const struct death_history *h)
{
	out_begin(o, '{');
	OUT_PUT(o, "reason", out_text_or_null, h->reason);
	OUT_INT(o, "count", h->count);
	OUT_PUT(o, "queue", out_text_or_null, h->first.queue);
	OUT_PUT(o, "exchange", out_text_or_null, h->first.exchange);
	OUT_INT(o, "time", h->first.time_s);
	out_end(o, '}');
}

static void
write_row(const struct doc *d, void *item)
{
	struct queue *q = item;
	struct json_out *o = d->out;
	struct death_history h;

	out_begin(o, '{');
	OUT_SPAN(o, "name", span_of(q->name, q->name_len));
	OUT_TEXT(o, "vhost", q->vhost->name);
	OUT_INT(o, "messages_ready", q->ready);
	OUT_INT(o, "messages_unacknowledged", q->unacked);
	OUT_INT(o, "message_bytes_ready", q->ready_bytes);
	OUT_INT(o, "consumers", q->consumer_count);
	OUT_INT(o, "dead_letters", q->letters_in);
	if (!read_head(q, &h))
		OUT_NULL(o, "first");
	else
		OUT_PUT(o, "first", put_head, &h);
	out_end(o, '}');
}

static void *
find_row(const struct scope *scope, void *object, const struct row_id *id)
{
	struct queue *q = object;
	struct death_history h;

	if (!scope_sees(scope, q->vhost))
		return NULL;
	if (q->letters_in > 0 || letter_target_is(q, (uint32_t)id->a) || read_head(q, &h))
		return q;
	return NULL;
}

static void
survey(struct listing *l, const struct scope *scope, void *object)
{
	struct queue *q = object;

	if (scope_sees(scope, q->vhost))
		letter_targets_mark(q, listing_number(l));
}

static void
collect(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct queue *q;
	char order[LIST_ORDER_NAME];
	struct span name;

	id.a = listing_number(l);
	q = find_row(scope, object, &id);
	if (q == NULL)
		return;
	name = span_of(q->name, q->name_len);
	listing_add(l, &id, name, list_order_name(order, q->vhost->name, name), q);
}

static const struct listing_source list = {
	.kinds = { SERIES_QUEUE, SERIES_QUEUE },
	.paging = PAGING,
	.is_heavy = true,
	.survey = survey,
	.collect = collect,
	.find = find_row,
	.write = write_row,
};

void
route_dead_letters(struct request *r)
{
	listing_reply(r, &list, r->vhost, NULL);
}
