/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/exchange_doc.h"

#include "broker/exchange.h"
#include "broker/policy.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/list_order.h"
#include "mgmt/table_out.h"

static void
write_exchange(const struct doc *d, void *item)
{
	const struct exchange *x = item;
	struct json_out *o = d->out;

	out_begin(o, '{');
	OUT_PUT(o, "arguments", out_table, table_span(x->arguments));
	OUT_TRUTH(o, "auto_delete", x->auto_delete);
	OUT_TRUTH(o, "durable", x->durable);
	OUT_TRUTH(o, "internal", x->internal);
	if (!d->no_stats || d->is_single)
		out_exchange_stats(d, &x->series, &x->stats);
	OUT_SPAN(o, "name", span_of(x->name, x->name_len));
	if (x->policy[POLICY_USER] != NULL)
		OUT_TEXT(o, "policy", x->policy[POLICY_USER]->name);
	OUT_TEXT(o, "type", exchange_type_name(x->type));
	OUT_TEXT(o, "vhost", x->vhost->name);
	if (d->is_single) {
		OUT_PUT(o, "incoming", out_raw, SPAN_LIT("[]"));
		OUT_PUT(o, "outgoing", out_raw, SPAN_LIT("[]"));
	}
	out_end(o, '}');
}

static void *
find_exchange(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	struct exchange *x = object;

	return scope_sees(scope, x->vhost) ? x : NULL;
}

static void
collect_exchange(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct exchange *x = find_exchange(scope, object, &id);
	char order[LIST_ORDER_NAME];
	struct span name;

	if (x == NULL)
		return;
	name = span_of(x->name, x->name_len);
	listing_add(l, &id, name, list_order_name(order, x->vhost->name, name), x);
}

const struct listing_source exchange_list = {
	.kinds = { SERIES_EXCHANGE, SERIES_EXCHANGE },
	.paging = PAGING,
	.collect = collect_exchange,
	.find = find_exchange,
	.write = write_exchange,
};
