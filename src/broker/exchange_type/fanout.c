/* SPDX-License-Identifier: Apache-2.0
 * fanout: every binding matches (0-9-1, 3.1.3.2). The exchange's own list is all the index it needs. */
#include "broker/exchange_type/type.h"

static void
fanout_add(struct exchange *x UNUSED, struct binding *b UNUSED)
{
}

static void
fanout_route(struct exchange *x, struct span key UNUSED, struct route_walk *w)
{
	struct binding *b;

	LIST_FOREACH (b, &x->bindings, source_link) {
		if (!route_hit(w, b))
			break;
	}
}

static void
fanout_free(struct exchange *x UNUSED)
{
}

const struct exchange_type_ops exchange_fanout = {
	.name = "fanout",
	.add = fanout_add,
	.remove = fanout_add,
	.route = fanout_route,
	.free = fanout_free,
};
