/* SPDX-License-Identifier: Apache-2.0
 * /api/hermes/maintenance: the node is drained, and serves everybody again. */
#include "mgmt/maintenance.h"

#include "base/log.h"
#include "broker/broker.h"
#include "broker/drain.h"
#include "broker/user.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

json_t *
maintenance_doc(const struct broker *b)
{
	struct drain_stats s = { 0 };
	json_t *o;

	if (!drain_is_on(b))
		return json_pack("{s:b}", "draining", 0);
	drain_stats(b, &s);
	o = json_pack("{s:b, s:s, s:I, s:I, s:b}", "draining", 1, "reason", drain_reason(b),
	    "since", (json_int_t)drain_since_ms(b), "channels_waiting",
	    (json_int_t)b->pressure[PRESSURE_memory].now, "empty", s.is_empty);
	if (s.is_known)
		(void)json_object_update_new(
		    o, json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "messages_left",
		           (json_int_t)s.left, "messages_unacknowledged", (json_int_t)s.unacked,
		           "queues_left", (json_int_t)s.queues_left, "messages_not_taken",
		           (json_int_t)s.stay, "queues_not_taken", (json_int_t)s.queues_stay,
		           "messages_delayed", (json_int_t)b->stats.messages_delayed, "jobs",
		           (json_int_t)s.jobs));
	return o;
}

void
route_maintenance(struct request *r)
{
	reply_json(r, 200, maintenance_doc(r->m->broker));
}

static void
say(const struct request *r, const char *what)
{
	log_line(
	    LOG_INFO, &(struct log_who){ .peer = r->peer.host, .user = r->user->name }, "%s", what);
}

/* It goes to clients and to terminals. */
static bool
is_plain(struct span text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return text.n <= DRAIN_REASON_MAX;
}

void
route_maintenance_begin(struct request *r)
{
	const json_t *given = json_object_get(r->body, "reason");
	struct span reason = json_span(given);

	if (given != NULL && (reason.p == NULL || !is_plain(reason))) {
		reply_bad(r,
		    "reason has to be a text of at most %d bytes, without control characters",
		    DRAIN_REASON_MAX);
		return;
	}
	if (drain_begin(r->m->broker, reason))
		say(r, "maintenance begins: nothing new is published, queues are drained");
	reply_empty(r, 204);
}

void
route_maintenance_end(struct request *r)
{
	if (drain_end(r->m->broker))
		say(r, "maintenance is over: publishers go on");
	reply_empty(r, 204);
}
