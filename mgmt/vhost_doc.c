/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/vhost_doc.h"

#include "base/config.h"
#include "broker/vhost.h"
#include "mgmt/access_out.h"
#include "mgmt/mgmt_priv.h"

static void
put_metadata(struct json_out *o, const struct vhost *vh)
{
	OUT_TEXT(o, "description", vh->description);
	OUT_PUT(o, "tags", out_tags, &vh->tags);
	if (vh->default_queue_type != NULL)
		OUT_TEXT(o, "default_queue_type", vh->default_queue_type);
}

static void
write_vhost(const struct doc *d, void *item)
{
	const struct vhost *vh = item;
	struct json_out *o = d->out;

	out_begin(o, '{');
	OUT_TEXT(o, "name", vh->name);
	put_metadata(o, vh);
	if (vh->default_queue_type == NULL)
		OUT_TEXT(o, "default_queue_type", "undefined");
	if (out_key(o, "metadata")) {
		out_begin(o, '{');
		put_metadata(o, vh);
		out_end(o, '}');
	}
	OUT_TRUTH(o, "tracing", vh->tracing);
	if (out_key(o, "cluster_state")) {
		out_begin(o, '{');
		if (out_key_span(o, span_str(d->m->cfg->node_name)))
			out_text(o, SPAN_LIT("running"));
		out_end(o, '}');
	}
	if (!d->no_stats) {
		out_depth(d, &vh->series, &vh->depth.ready, &vh->depth.unacked);
		OUT_COUNTER(d, "recv_oct", &d->data_rates, &vh->series, &vh->traffic.recv_oct);
		OUT_COUNTER(d, "send_oct", &d->data_rates, &vh->series, &vh->traffic.send_oct);
		out_message_stats(d, &vh->series, &vh->stats);
	}
	out_end(o, '}');
}

/* Users with the tag monitoring see them all, though not what is in them. */
static void *
find_vhost(const struct scope *scope, void *object, const struct row_id *id UNUSED)
{
	struct vhost *vh = object;

	return scope->all_users && scope->user != NULL && !vh->is_deleted ? vh
	       : scope_sees(scope, vh)                                    ? vh
	                                                                  : NULL;
}

static void
collect_vhost(struct listing *l, const struct scope *scope, void *object, struct row_id id)
{
	struct vhost *vh = find_vhost(scope, object, &id);

	if (vh != NULL)
		listing_add(l, &id, span_str(vh->name), span_str(vh->name), vh);
}

const struct listing_source vhost_list = {
	.kinds = { SERIES_VHOST, SERIES_VHOST },
	.paging = PAGING,
	.collect = collect_vhost,
	.find = find_vhost,
	.write = write_vhost,
};
