/* SPDX-License-Identifier: Apache-2.0
 * The fields are RabbitMQ's, but for those that say something of Erlang's processes. */
#include "mgmt/queue_doc.h"

#include "base/config.h"
#include "broker/broker.h"
#include "broker/dead_letter.h"
#include "broker/policy.h"
#include "broker/queue.h"
#include "broker/queue_sums.h"
#include "broker/single_active.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/client_doc.h"
#include "mgmt/consumer_doc.h"
#include "mgmt/list_order.h"
#include "mgmt/table_out.h"
#include "mgmt/mgmt_priv.h"

/* ---- what it is ---- */

static void
put_definition(const struct doc *d, const struct queue *q)
{
	struct json_out *o = d->out;

	OUT_PUT(o, "arguments", out_table, table_span(q->arguments));
	OUT_TRUTH(o, "auto_delete", q->auto_delete);
	OUT_TRUTH(o, "durable", q->durable);
	OUT_TRUTH(o, "exclusive", q->exclusive);
	OUT_SPAN(o, "name", span_of(q->name, q->name_len));
	OUT_TEXT(o, "node", d->m->cfg->node_name);
	OUT_TEXT(o, "type", q->quorum != NULL ? "quorum" : "classic");
	OUT_TEXT(o, "vhost", q->vhost->name);
}

static void
put_nodes(struct json_out *o, const char *node)
{
	out_begin(o, '[');
	out_text(o, span_str(node));
	out_end(o, ']');
}

/* This node is all of a quorum queue's. */
static void
put_members(const struct doc *d)
{
	const char *node = d->m->cfg->node_name;

	OUT_TEXT(d->out, "leader", node);
	OUT_PUT(d->out, "members", put_nodes, node);
	OUT_PUT(d->out, "online", put_nodes, node);
}

static void
put_policy(struct json_out *o, const struct policy *p)
{
	if (p != NULL)
		out_text(o, span_str(p->name));
	else
		out_null(o);
}

static void
put_policies(struct json_out *o, const struct queue *q)
{
	struct table *all = NULL;

	OUT_PUT(o, "policy", put_policy, q->policy[POLICY_USER]);
	OUT_PUT(o, "operator_policy", put_policy, q->policy[POLICY_OPERATOR]);
	if (!out_key(o, "effective_policy_definition"))
		return;
	/* without memory for it none is shown */
	(void)!policy_effective(q->policy, &all);
	out_table(o, table_span(all));
	table_free(&all);
}

/* In the short rows of disable_stats. */
static void
put_policy_if_any(struct json_out *o, const struct queue *q)
{
	if (q->policy[POLICY_USER] != NULL)
		OUT_TEXT(o, "policy", q->policy[POLICY_USER]->name);
}

/* ---- what it holds and does ---- */

static void
put_time(struct json_out *o, uint64_t at, bool is_known)
{
	if (is_known)
		out_uint(o, at);
	else
		out_null(o);
}

static void
put_sums(struct json_out *o, const struct queue *q)
{
	static const char *const names[] = { "memory", "message_bytes_paged_out",
		"message_bytes_persistent", "message_bytes_ram", "messages_paged_out",
		"messages_persistent", "messages_ram", "messages_ready_ram",
		"head_message_timestamp", "head_arrived", NULL };
	struct queue_sums s;

	if (!out_wants(o, names))
		return;
	queue_sum(q, &s);
	OUT_INT(o, "memory", s.memory);
	OUT_INT(o, "message_bytes_paged_out", s.unread_bytes);
	OUT_INT(o, "message_bytes_persistent", s.persistent_bytes);
	OUT_INT(o, "message_bytes_ram", s.bytes_ram);
	OUT_INT(o, "messages_paged_out", s.unread);
	OUT_INT(o, "messages_persistent", s.persistent);
	OUT_INT(o, "messages_ram", s.ready_ram + q->unacked);
	OUT_INT(o, "messages_ready_ram", s.ready_ram);
	if (out_key(o, "head_message_timestamp"))
		put_time(o, s.head_time, s.has_head_time);
	if (out_key(o, "head_arrived"))
		put_time(o, s.head_arrived_ms, s.head_arrived_ms != 0);
}

static void
put_tag(struct json_out *o, const struct consumer *k)
{
	if (k != NULL)
		out_text(o, consumer_tag(k));
	else
		out_null(o);
}

static void
put_capacity(struct json_out *o, struct queue *q, uint64_t now_ms)
{
	double share = queue_capacity(q, now_ms);

	if (q->consumer_count == 0)
		out_uint(o, 0);
	else
		out_number(o, share);
}

static void
put_consumers(const struct doc *d, struct queue *q)
{
	struct json_out *o = d->out;

	OUT_INT(o, "consumers", q->consumer_count);
	if (out_key(o, "consumer_capacity"))
		put_capacity(o, q, d->now_ms);
	if (out_key(o, "consumer_utilisation"))
		put_capacity(o, q, d->now_ms);
	OUT_PUT(o, "exclusive_consumer_tag", put_tag, q->exclusive_consumer);
	OUT_PUT(
	    o, "single_active_consumer_tag", put_tag, q->single != NULL ? q->single->active : NULL);
}

/* At least once: what its target has not taken. They are in none of the other figures. */
static void
put_letters(struct json_out *o, const struct queue *q)
{
	uint64_t bytes = 0, n = dead_letters_kept(q, &bytes);

	OUT_INT(o, "messages_dlx", n);
	OUT_INT(o, "message_bytes_dlx", bytes);
}

static const char *
state_of(const struct queue *q, const char *usual)
{
	return q->is_paused ? "paused" : usual;
}

static void
put_state(const struct doc *d, struct queue *q)
{
	struct json_out *o = d->out;

	put_policies(o, q);
	out_depth(d, &q->series, &q->ready, &q->unacked);
	OUT_INT(o, "message_bytes", q->ready_bytes + q->unacked_bytes);
	OUT_INT(o, "message_bytes_ready", q->ready_bytes);
	OUT_INT(o, "message_bytes_unacknowledged", q->unacked_bytes);
	OUT_INT(o, "messages_unacknowledged_ram", q->unacked);
	put_sums(o, q);
	if (q->quorum != NULL)
		put_letters(o, q);
	put_consumers(d, q);
	out_queue_stats(d, &q->series, &q->stats);
	out_idle_since(d, &q->series);
	OUT_TEXT(o, "state", state_of(q, "running"));
}

/* Too much for lists. */
static void
put_details(const struct doc *d, const struct queue *q)
{
	const struct consumer *k;

	if (out_key(d->out, "consumer_details")) {
		out_begin(d->out, '[');
		TAILQ_FOREACH (k, &q->consumers, queue_link)
			consumer_write(d, k);
		out_end(d->out, ']');
	}
	if (q->owner != NULL && out_key(d->out, "owner_pid_details"))
		client_write_brief(d->out, q->owner);
	OUT_PUT(d->out, "deliveries", out_raw, SPAN_LIT("[]"));
	OUT_PUT(d->out, "incoming", out_raw, SPAN_LIT("[]"));
}

static void
put_more(const struct doc *d, struct queue *q)
{
	if (q->quorum != NULL)
		put_members(d);
	if (!d->no_stats || d->is_single) {
		put_state(d, q);
	} else if (d->totals) {
		put_policy_if_any(d->out, q);
		OUT_INT(d->out, "messages", q->ready + q->unacked);
		OUT_INT(d->out, "messages_ready", q->ready);
		OUT_INT(d->out, "messages_unacknowledged", q->unacked);
		OUT_TEXT(d->out, "state", state_of(q, "running"));
	} else {
		put_policy_if_any(d->out, q);
		OUT_TEXT(d->out, "state", state_of(q, "live"));
	}
	if (d->is_single)
		put_details(d, q);
}

static void
write_queue(const struct doc *d, void *item)
{
	struct queue *q = item;

	out_begin(d->out, '{');
	put_definition(d, q);
	/* 50,000 of them are sorted by name more often than by anything else */
	if (!d->out->has_caught)
		put_more(d, q);
	out_end(d->out, '}');
}

/* ---- the list ---- */

static void *
find_queue(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	struct queue *q = object;

	return scope_sees(scope, q->vhost) ? q : NULL;
}

static void
collect_queue(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct queue *q = find_queue(scope, object, &id);
	char order[LIST_ORDER_NAME];
	struct span name;

	if (q == NULL)
		return;
	name = span_of(q->name, q->name_len);
	listing_add(l, &id, name, list_order_name(order, q->vhost->name, name), q);
}

const struct listing_source queue_list = {
	.kinds = { SERIES_QUEUE, SERIES_QUEUE },
	.paging = PAGING,
	.collect = collect_queue,
	.find = find_queue,
	.write = write_queue,
};
