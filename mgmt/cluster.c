/* SPDX-License-Identifier: Apache-2.0
 * What RabbitMQ tells of a cluster as a whole. */
#include <string.h>

#include "base/config.h"
#include "broker/broker.h"
#include "mgmt/about.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

/* Features that RabbitMQ lets operators switch on after an upgrade, as far as Hermes has them: always on. */
static const struct {
	const char *name, *text;
} features[] = {
	{ "drop_unroutable_metric", "Unroutable messages are counted" },
	{ "empty_basic_get_metric", "basic.get on an empty queue is counted" },
	{ "implicit_default_bindings", "Bindings of the default exchange take no memory" },
	{ "quorum_queue", "Queues of type quorum" },
	{ "user_limits", "Limits for users" },
	{ "virtual_host_metadata", "Description and tags of virtual hosts" },
};

void
route_cluster_name(struct request *r)
{
	reply_json(r, 200, json_pack("{s:o}", "name", about_cluster_name(r->m)));
}

void
route_extensions(struct request *r)
{
	reply_json(r, 200, json_array());
}

void
route_feature_flags(struct request *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < COUNT_OF(features); i++)
		(void)json_array_append_new(
		    list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", features[i].name,
		              "desc", features[i].text, "doc_url", "", "state", "enabled",
		              "stability", "stable", "provided_by", "hermes"));
	reply_json(r, 200, list);
}

void
route_feature_flag_enable(struct request *r)
{
	for (size_t i = 0; i < COUNT_OF(features); i++) {
		if (!span_is(request_arg(r, 0), features[i].name))
			continue;
		reply_empty(r, 204);
		return;
	}
	reply_bad(r, "unsupported");
}

/* There is one node, so every queue is where it should be. */
void
route_rebalance(struct request *r)
{
	reply_empty(r, 204);
}
