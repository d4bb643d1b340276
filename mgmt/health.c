/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/health.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

const char *
health_problem(const struct mgmt *m, char *text, size_t n)
{
	const struct memory *mem = &m->broker->memory;

	if (m->broker->closing) {
		(void)snprintf(text, n, "the node is stopping");
		return text;
	}
	if (memory_short(mem)) {
		(void)snprintf(text, n,
		    "memory alarm: %" PRIu64 " bytes held of %" PRIu64 "; publishers are held back",
		    mem_total(), mem->limit);
		return text;
	}
	return NULL;
}

void
route_healthz(struct request *r)
{
	char text[160];
	const char *problem = health_problem(r->m, text, sizeof text);

	if (problem == NULL)
		reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
	else
		reply_json(r, 503, json_pack("{s:s, s:s}", "status", "failed", "reason", problem));
}
