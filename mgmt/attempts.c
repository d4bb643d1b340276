/* SPDX-License-Identifier: Apache-2.0
 * /api/auth/attempts: logins by protocol. */
#include "mgmt/attempts.h"

#include "broker/broker.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/nodes.h"
#include "mgmt/request.h"
#include "mgmt/rows.h"

struct login_counts
login_counts_of(const struct mgmt *m)
{
	const struct broker_stats *s = &m->broker->stats;
	struct login_counts c = m->logins;

	c.amqp_ok = s->logins - c.http_ok;
	c.amqp_failed = s->login_failures + s->logins_dropped - c.http_failed;
	return c;
}

static void
add(json_t *list, const char *protocol, uint64_t ok, uint64_t failed)
{
	if (ok + failed > 0)
		(void)json_array_append_new(
		    list, json_pack("{s:s, s:I, s:I, s:I}", "protocol", protocol, "auth_attempts",
		              (json_int_t)(ok + failed), "auth_attempts_failed", (json_int_t)failed,
		              "auth_attempts_succeeded", (json_int_t)ok));
}

void
route_attempts(struct request *r)
{
	const struct login_counts *from = &r->m->attempts;
	struct login_counts c = login_counts_of(r->m);
	json_t *list = json_array();

	if (!node_is(r->m, request_arg(r, 0))) {
		json_decref(list);
		reply_not_found(r);
		return;
	}
	add(list, "amqp091", c.amqp_ok - from->amqp_ok, c.amqp_failed - from->amqp_failed);
	add(list, "http", c.http_ok - from->http_ok, c.http_failed - from->http_failed);
	reply_rows(r, list);
}

/* By address and user: RabbitMQ's default is not to keep that. */
void
route_attempts_source(struct request *r)
{
	if (node_is(r->m, request_arg(r, 0)))
		reply_json(r, 200, json_array());
	else
		reply_not_found(r);
}

void
route_attempts_reset(struct request *r)
{
	if (!node_is(r->m, request_arg(r, 0))) {
		reply_not_found(r);
		return;
	}
	r->m->attempts = login_counts_of(r->m);
	reply_empty(r, 204);
}
