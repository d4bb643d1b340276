/* SPDX-License-Identifier: Apache-2.0
 * GET /api/overview: the fields of RabbitMQ's, and what Hermes says of itself under "hermes". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "mgmt/body.h"
#include "broker/history.h"
#include "mgmt/about.h"
#include "mgmt/health.h"
#include "mgmt/http.h"
#include "mgmt/maintenance.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/rows.h"
#include "mgmt/totals.h"
#include "net/loop.h"
#include "net/transport.h"
#include "store/store.h"

/* --- what Hermes says of itself ------------------------------------------------------------------- */

static json_t *
memory(const struct mgmt *m)
{
	const struct memory *mem = &m->broker->memory;
	json_t *kinds = json_object();

	for (int i = 0; i < MEM_KINDS; i++)
		(void)json_object_set_new(
		    kinds, mem_kind_name((enum mem_kind)i), json_integer((json_int_t)mem_held[i]));
	return json_pack("{s:I, s:I, s:I, s:o}", "limit", (json_int_t)mem->limit, "held",
	    (json_int_t)mem_total(), "resident", about_resident(), "kinds", kinds);
}

static json_t *
alarms(const struct mgmt *m)
{
	const struct memory *mem = &m->broker->memory;
	json_t *a = json_array();

	if (memory_short(mem))
		(void)json_array_append_new(
		    a, json_pack("{s:s, s:I, s:b}", "kind", "memory", "since_ms",
		           (json_int_t)mem->since_ms, "hard", mem->state == MEMORY_HARD));
	if (m->broker->disk_low)
		(void)json_array_append_new(
		    a, json_pack("{s:s, s:b}", "kind", "disk", "hard",
		           m->broker->store != NULL &&
		               store_hold(m->broker->store) == STORE_DISK_FULL));
	return a;
}

/* Of the file system that the data folder is on; null without one. */
static json_t *
disk(const struct mgmt *m)
{
	uint64_t available = 0, least = 0;

	if (m->node.disk == NULL || m->broker->store == NULL)
		return json_null();
	m->node.disk(m->node.arg, &available, &least);
	return json_pack("{s:I, s:I}", "free", (json_int_t)available, "limit", (json_int_t)least);
}

static json_t *
all_counters(const struct broker_stats *s)
{
	json_t *o = json_object();

#define X(name, kind, help) (void)json_object_set_new(o, #name, json_integer((json_int_t)s->name));
	BROKER_STATS(X)
#undef X
	return o;
}

static json_t *
store_counters(const struct mgmt *m)
{
	struct store_stats s;
	json_t *o;

	if (m->broker->store == NULL)
		return json_null();
	store_stats(m->broker->store, &s);
	o = json_object();
#define X(name, kind, help) (void)json_object_set_new(o, #name, json_integer((json_int_t)s.name));
	STORE_STATS(X)
#undef X
	return o;
}

static json_t *
loop_counters(const struct mgmt *m)
{
	const struct http_stats *h = http_stats(m->http);
	const struct loop *l = m->loop;

	return json_pack(
	    "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
	    "loop_turns", (json_int_t)l->turns, "turn_longest_us", (json_int_t)l->turn_time.max_us,
	    "turn_longest_lately_us", (json_int_t)turn_time_lately(&l->turn_time, clock_mono_us()),
	    "recv_calls", (json_int_t)l->recv_calls, "writev_calls", (json_int_t)l->writev_calls,
	    "bytes_received", (json_int_t)l->bytes_in, "bytes_sent", (json_int_t)l->bytes_out,
	    "http_requests", (json_int_t)h->requests, "http_connections", (json_int_t)h->open,
	    "http_timed_out", (json_int_t)h->timed_out, "http_evicted", (json_int_t)h->evicted,
	    "http_too_much_input", (json_int_t)h->too_much_input, "http_too_much_output",
	    (json_int_t)h->too_much_output, "http_bodies_refused", (json_int_t)m->bodies_refused,
	    "http_values_bytes", (json_int_t)body_memory_held(), "log_lines_lost",
	    (json_int_t)log_dropped());
}

static json_t *
history_counters(const struct mgmt *m)
{
	struct history_stats s;

	history_stats(m->broker, &s);
	return json_pack("{s:I, s:I, s:i, s:I, s:I}", "tracks", (json_int_t)s.tracks, "asked",
	    (json_int_t)s.asked, "asked_max", HISTORY_ASKED, "evicted", (json_int_t)s.evicted,
	    "bytes", (json_int_t)s.bytes);
}

static json_t *
tail_counters(const struct mgmt *m)
{
	struct tap_stats s;

	tap_stats(m->broker, &s);
	return json_pack("{s:I, s:i, s:I, s:I, s:I, s:I}", "open", (json_int_t)s.open, "open_max",
	    (int)m->cfg->tails, "made", (json_int_t)s.made, "refused", (json_int_t)s.refused,
	    "messages", (json_int_t)s.messages, "left_out", (json_int_t)s.left_out);
}

static json_t *
hermes(const struct mgmt *m)
{
	char text[160];
	const char *problem = health_problem(m, text, sizeof text);

	return json_pack("{s:s, s:I, s:I, s:b, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	    "version", m->node.version, "started_ms", (json_int_t)m->node.started_ms, "uptime_ms",
	    (json_int_t)(m->loop->now_ms - m->node.started_ms), "healthy", problem == NULL,
	    "problem", problem, "memory", memory(m), "disk", disk(m), "alarms", alarms(m),
	    "counters", all_counters(&m->broker->stats), "process", loop_counters(m), "store",
	    store_counters(m), "history", history_counters(m), "tails", tail_counters(m),
	    "maintenance", maintenance_doc(m->broker));
}

void
route_overview(struct request *r)
{
	const struct mgmt *m = r->m;
	const struct config *cfg = m->cfg;
	json_t *o, *churn, *totals = totals_of(r);

	if (totals == NULL)
		return;
	o = json_object();

	json_put(o, "management_version", json_string(cfg->compat_version));
	json_put(o, "rates_mode", json_string("basic"));
	json_put(o, "sample_retention_policies",
	    json_pack("{s:[i], s:[i], s:[i]}", "global", 10, "basic", 10, "detailed", 10));
	json_put(o, "exchange_types", about_exchange_types());
	json_put(o, "product_version", json_string(cfg->compat_version));
	json_put(o, "product_name", json_string(cfg->compat_product));
	json_put(o, "rabbitmq_version", json_string(cfg->compat_version));
	json_put(o, "cluster_name", about_cluster_name(m));
	json_put(o, "erlang_version", json_string("none"));
	json_put(o, "erlang_full_version", json_string("none"));
	json_put(o, "disable_stats", json_false());
	json_put(o, "enable_queue_totals", json_true());
	churn = json_object();
	about_put_churn(m, churn);
	json_put(o, "churn_rates", churn);
	(void)json_object_update(o, totals);
	json_decref(totals);
	json_put(o, "statistics_db_event_queue", json_integer(0));
	json_put(o, "node", json_string(cfg->node_name));
	json_put(o, "listeners", about_listeners(m));
	json_put(o, "contexts", about_contexts(m));
	json_put(o, "platform", json_sprintf("Hermes %s", m->node.version));
	json_put(o, "hermes_version", json_string(m->node.version));
	json_put(o, "hermes", hermes(m));
	reply_row(r, o);
}
