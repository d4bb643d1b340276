/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/metric_node.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/drain.h"
#include "broker/history.h"
#include "broker/parameter.h"
#include "broker/tap.h"
#include "mgmt/about.h"
#include "mgmt/attempts.h"
#include "mgmt/http.h"
#include "mgmt/metric_objects.h"
#include "mgmt/metric_text.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/nodes.h"
#include "net/gate.h"
#include "net/loop.h"
#include "net/transport.h"
#include "store/store.h"

/* All that values are taken from, as of one moment. */
struct view {
	const struct mgmt *m;
	const struct broker *b;
	const struct broker_stats *s;
	const struct delivery_stats *quorum;
	struct store_stats store;
	struct node_gauges gauges;
	struct node_limits limits;
	struct login_counts logins;
	struct history_stats history;
	struct tap_stats taps;
	struct drain_stats drain; /* 0 while nothing is drained */
	const struct http_stats *http, *http_metrics;
	const struct gate_stats *gate; /* zeros where there is no gate */
};

/* X(name, labels, kind, families, value, help). Rows of one name stand together. */
#define F(name) BIT(FAMILY_##name)
#define P "protocol=\"amqp091\""
#define TYPE(of) P ",queue_type=\"rabbit_" of "_queue\""
#define ONE(X, name, kind, family, value, help) X(name, NULL, kind, F(family), value, help)
#define GLOBAL(X, name, kind, value, help) X("global_" name, P, kind, 0, value, help)
#define BY_TYPE(X, name, of_all, of_quorum, help)                                             \
	X("global_messages_" name, TYPE("classic"), COUNTER, 0, (of_all) - (of_quorum), help) \
	X("global_messages_" name, TYPE("quorum"), COUNTER, 0, of_quorum, help)               \
	X("global_messages_" name, TYPE("stream"), COUNTER, 0, 0, help)
#define FIELD(X, name, field, help) BY_TYPE(X, name, v->s->field, v->quorum->field, help)
#define GIVEN(of) ((of)->deliver + (of)->deliver_no_ack + (of)->get + (of)->get_no_ack)
#define LOGINS(X, name, field, help)                                                            \
	X("auth_attempts" name "_total", P, COUNTER, F(auth_attempt_metrics),                   \
	    field(v->logins.amqp_ok, v->logins.amqp_failed), help)                              \
	X("auth_attempts" name "_total", "protocol=\"http\"", COUNTER, F(auth_attempt_metrics), \
	    field(v->logins.http_ok, v->logins.http_failed), help)
#define BOTH(ok, failed) (ok) + (failed)
#define OK(ok, failed) (ok)
#define FAILED(ok, failed) (failed)

/* What RabbitMQ has and means the same. */
#define RABBIT_METRICS(X)                                                                         \
	X("connections", NULL, GAUGE, 0, v->s->connections, "Connections that are open")          \
	X("channels", NULL, GAUGE, 0, v->s->channels, "Channels that are open")                   \
	X("consumers", NULL, GAUGE, 0, v->s->consumers, "Consumers")                              \
	X("queues", NULL, GAUGE, 0, v->s->queues, "Queues")                                       \
	ONE(X, "connections_opened_total", COUNTER, connection_churn_metrics,                     \
	    v->s->connections_opened, "Connections opened")                                       \
	ONE(X, "connections_closed_total", COUNTER, connection_churn_metrics,                     \
	    v->s->connections_closed, "Connections closed")                                       \
	ONE(X, "channels_opened_total", COUNTER, connection_churn_metrics, v->s->channels_opened, \
	    "Channels opened")                                                                    \
	ONE(X, "channels_closed_total", COUNTER, connection_churn_metrics, v->s->channels_closed, \
	    "Channels closed")                                                                    \
	ONE(X, "queues_declared_total", COUNTER, connection_churn_metrics, v->s->queues_declared, \
	    "Queues declared")                                                                    \
	ONE(X, "queues_created_total", COUNTER, connection_churn_metrics, v->s->queues_created,   \
	    "Queues made")                                                                        \
	ONE(X, "queues_deleted_total", COUNTER, connection_churn_metrics, v->s->queues_deleted,   \
	    "Queues deleted")                                                                     \
	LOGINS(X, "", BOTH, "Logins tried")                                                       \
	LOGINS(X, "_succeeded", OK, "Logins let in")                                              \
	LOGINS(X, "_failed", FAILED, "Logins refused")                                            \
	ONE(X, "process_open_fds", GAUGE, node_coarse_metrics, v->gauges.fd_used,                 \
	    "File descriptors in use")                                                            \
	ONE(X, "process_open_tcp_sockets", GAUGE, node_coarse_metrics, v->gauges.sockets_used,    \
	    "Sockets in use")                                                                     \
	ONE(X, "process_resident_memory_bytes", GAUGE, node_coarse_metrics, v->gauges.mem_used,   \
	    "Memory that the process has")                                                        \
	ONE(X, "disk_space_available_bytes", GAUGE, node_coarse_metrics, v->gauges.disk_free,     \
	    "Free space on the disk of the data folder")                                          \
	ONE(X, "erlang_processes_used", GAUGE, node_coarse_metrics, v->gauges.proc_used,          \
	    "Connections, channels and queues, one more for the node")                            \
	ONE(X, "process_max_fds", GAUGE, node_metrics, v->limits.fd, "Most file descriptors")     \
	ONE(X, "process_max_tcp_sockets", GAUGE, node_metrics, v->limits.sockets, "Most sockets") \
	ONE(X, "resident_memory_limit_bytes", GAUGE, node_metrics, v->limits.mem,                 \
	    "Memory above which publishers are held back")                                        \
	ONE(X, "disk_space_available_limit_bytes", GAUGE, node_metrics, v->limits.disk_free,      \
	    "Free space below which publishers are held back")                                    \
	ONE(X, "erlang_processes_limit", GAUGE, node_metrics, v->limits.proc,                     \
	    "Most of what erlang_processes_used counts")                                          \
	ONE(X, "erlang_uptime_seconds", GAUGE, node_metrics,                                      \
	    (double)(v->m->loop->now_ms - v->m->node.started_ms) / 1000,                          \
	    "Time since the node started")                                                        \
	ONE(X, "io_read_ops_total", COUNTER, node_persister_metrics, v->store.loaded,             \
	    "Messages read from disk")                                                            \
	ONE(X, "io_read_bytes_total", COUNTER, node_persister_metrics, v->store.loaded_bytes,     \
	    "Bytes read from disk")                                                               \
	ONE(X, "io_write_ops_total", COUNTER, node_persister_metrics,                             \
	    v->store.journal_batches + v->store.spilled,                                          \
	    "Writes of the journal, and messages written to segments")                            \
	ONE(X, "io_write_bytes_total", COUNTER, node_persister_metrics,                           \
	    v->store.journal_bytes + v->store.spilled_bytes, "Bytes written to disk")             \
	ONE(X, "io_sync_ops_total", COUNTER, node_persister_metrics, v->store.journal_syncs,      \
	    "Syncs of the journal")                                                               \
	ONE(X, "io_sync_time_seconds_total", COUNTER, node_persister_metrics,                     \
	    (double)v->store.journal_sync_us / 1e6, "Time spent in them")                         \
	ONE(X, "msg_store_read_total", COUNTER, node_persister_metrics, v->store.loaded,          \
	    "Messages read from segments")                                                        \
	ONE(X, "msg_store_write_total", COUNTER, node_persister_metrics, v->store.spilled,        \
	    "Messages written to segments")                                                       \
	X("queue_disk_reads_total", NULL, COUNTER, 0, v->store.loaded,                            \
	    "Messages of queues read from disk")                                                  \
	X("queue_disk_writes_total", NULL, COUNTER, 0, v->store.spilled,                          \
	    "Messages of queues written to disk")                                                 \
	X("alarms_memory_used_watermark", NULL, UNTYPED, 0, memory_short(&v->b->memory),          \
	    "1: memory is short, publishers are held back")                                       \
	X("alarms_free_disk_space_watermark", NULL, UNTYPED, 0, v->b->disk_low,                   \
	    "1: disk space is short, publishers of persistent messages are held back")            \
	X("alarms_file_descriptor_limit", NULL, UNTYPED, 0, v->gauges.fd_used >= v->limits.fd,    \
	    "1: no file descriptor is left")                                                      \
	GLOBAL(X, "publishers", GAUGE, v->s->publishers, "Channels that have published")          \
	GLOBAL(X, "consumers", GAUGE, v->s->consumers, "Consumers")                               \
	GLOBAL(X, "messages_received_total", COUNTER, v->s->publish, "Messages published")        \
	GLOBAL(X, "messages_received_confirm_total", COUNTER, v->s->publish_confirm,              \
	    "Those of them that are to be confirmed")                                             \
	GLOBAL(X, "messages_confirmed_total", COUNTER, v->s->confirm, "Messages confirmed")       \
	GLOBAL(X, "messages_routed_total", COUNTER, v->s->routed, "Copies put into queues")       \
	GLOBAL(X, "messages_unroutable_dropped_total", COUNTER, v->s->drop_unroutable,            \
	    "Messages dropped because no queue took them")                                        \
	GLOBAL(X, "messages_unroutable_returned_total", COUNTER, v->s->return_unroutable,         \
	    "Mandatory messages returned because no queue took them")                             \
	BY_TYPE(X, "delivered_total", GIVEN(v->s), GIVEN(v->quorum),                              \
	    "Messages given out: to consumers, or got")                                           \
	FIELD(X, "delivered_consume_auto_ack_total", deliver_no_ack,                              \
	    "Messages delivered to consumers that do not acknowledge")                            \
	FIELD(X, "delivered_consume_manual_ack_total", deliver,                                   \
	    "Messages delivered to consumers that acknowledge")                                   \
	FIELD(X, "delivered_get_auto_ack_total", get_no_ack,                                      \
	    "Messages got with basic.get without acknowledgement")                                \
	FIELD(X, "delivered_get_manual_ack_total", get,                                           \
	    "Messages got with basic.get, to be acknowledged")                                    \
	FIELD(X, "get_empty_total", get_empty, "basic.get on an empty queue")                     \
	FIELD(X, "redelivered_total", redeliver, "Messages delivered again")                      \
	FIELD(X, "acknowledged_total", ack, "Messages acknowledged")

/* What only Hermes has, beside its counters. */
#define BOUND(X, bound, value)                                                     \
	X("hermes_bounds_reached_total", "bound=\"" bound "\"", COUNTER, 0, value, \
	    "Times that something was refused, dropped or held back at a bound")
#define BOUND_ROW(name, label) BOUND(X_, label, bound_count(BOUND_##name))
#define PAUSED(bit) v->m->loop->paused[__builtin_ctz(bit)]
#define WAITS "Channels that wait for something, connections that are not read"
#define WAITED "Times that channels or connections were held back"
#define PORT(X, name, kind, field, help)                              \
	X(name, "port=\"management\"", kind, 0, v->http->field, help) \
	X(name, "port=\"metrics\"", kind, 0, v->http_metrics->field, help)
#define HERMES_METRICS(X)                                                                      \
	X("hermes_healthy", NULL, GAUGE, 0,                                                    \
	    !v->b->closing && !memory_short(&v->b->memory) && !v->b->disk_low,                 \
	    "1: no alarm, and the node is not stopping")                                       \
	X("hermes_draining", NULL, GAUGE, 0, drain_is_on(v->b),                                \
	    "1: maintenance, publishers wait until its end")                                   \
	X("hermes_drain_messages_left", NULL, GAUGE, 0, v->drain.left,                         \
	    "In maintenance: messages that are held, or ready where consumers are")            \
	X("hermes_drain_messages_not_taken", NULL, GAUGE, 0, v->drain.stay,                    \
	    "In maintenance: messages that are ready where nobody takes them")                 \
	X("hermes_memory_held_bytes", NULL, GAUGE, 0, mem_total(),                             \
	    "Memory that counts against memory.limit")                                         \
	X("hermes_memory_limit_bytes", NULL, GAUGE, 0, v->b->memory.limit, "memory.limit")     \
	X("hermes_loop_turns_total", NULL, COUNTER, 0, v->m->loop->turns,                      \
	    "Turns of the core thread")                                                        \
	X("hermes_loop_turn_longest_seconds", NULL, GAUGE, 0,                                  \
	    (double)v->m->loop->turn_time.max_us / 1e6, "The longest of them since the start") \
	X("hermes_log_lines_lost_total", NULL, COUNTER, 0, log_dropped(),                      \
	    "Lines of the log that there was no room for")                                     \
	PORT(X, "hermes_http_requests_total", COUNTER, requests, "HTTP requests")              \
	PORT(X, "hermes_http_connections", GAUGE, open, "HTTP connections that are open")      \
	X("hermes_scrapes_waiting", NULL, GAUGE, 0, v->m->scrapes.count,                       \
	    "Requests for metrics that are being answered or wait for that")                   \
	BOUND(X, "limits.unacknowledged", v->s->consumers_paused)                              \
	BOUND(X, "limits.consumer_timeout", v->s->consumer_timeouts)                           \
	BOUND(X, "logins", v->s->logins_dropped)                                               \
	BOUND(X, "memory.limit", v->b->memory.alarms)                                          \
	BOUND(X, "memory.hard_limit", v->s->alarm_closed)                                      \
	BOUND(X, "memory.deduplication", v->s->dedup_evicted)                                  \
	BOUND(X, "allocation", mem_try_failures())                                             \
	BOUND(X, "queue_length", v->s->dropped_maxlen + v->s->refused)                         \
	BOUND(X, "route_steps", v->s->route_refused)                                           \
	BOUND(X, "dead_letters", v->s->dead_letters_late)                                      \
	BOUND(X, "rate_samples", v->b->series.cut)                                             \
	BOUND(X, "history", v->history.evicted)                                                \
	BOUND(X, "exchanges_of_a_channel", v->b->exchanges_uncounted)                          \
	BOUND(X, "http_connections", v->http->evicted + v->http_metrics->evicted)              \
	BOUND(X, "http_time", v->http->timed_out + v->http_metrics->timed_out)                 \
	BOUND(X, "http_input", v->http->too_much_input + v->http_metrics->too_much_input)      \
	BOUND(X, "http_output", v->http->too_much_output + v->http_metrics->too_much_output)   \
	BOUND(X, "tls.handshakes", v->gate->gate_evicted + v->gate->gate_refused)              \
	BOUND(X, "limits.tails", v->taps.refused)                                              \
	BOUND(X, "tail_messages", v->taps.left_out)                                            \
	BOUND(X, "notices", v->s->notices_dropped)                                             \
	BOUND(X, "direct_replies", v->s->reply_to_dropped)                                     \
	BOUND(X, "log", log_dropped())                                                         \
	BOUNDS(BOUND_ROW)

#define CONNECTIONS_WAIT(X, part, kind, name, help)                           \
	X(name, "reason=\"input\"", kind, 0, PAUSED(PAUSE_PARKED).part, help) \
	X(name, "reason=\"output\"", kind, 0, PAUSED(PAUSE_OUTPUT).part, help)
#define WAITS_ROW(name, help)                                        \
	X_("hermes_back_pressure", "reason=\"" #name "\"", GAUGE, 0, \
	    v->b->pressure[PRESSURE_##name].now, WAITS)
#define WAITED_ROW(name, help)                                               \
	X_("hermes_back_pressure_total", "reason=\"" #name "\"", COUNTER, 0, \
	    v->b->pressure[PRESSURE_##name].times, WAITED)
#define PRESSURE_METRICS(X)                                            \
	BACK_PRESSURE(WAITS_ROW)                                       \
	CONNECTIONS_WAIT(X, now, GAUGE, "hermes_back_pressure", WAITS) \
	BACK_PRESSURE(WAITED_ROW)                                      \
	CONNECTIONS_WAIT(X, times, COUNTER, "hermes_back_pressure_total", WAITED)

#define ALL_METRICS(X) RABBIT_METRICS(X) HERMES_METRICS(X) PRESSURE_METRICS(X)

struct node_metric {
	const char *name, *labels; /* labels: NULL, or text */
	enum metric_kind kind;
	uint32_t families;
	const char *help;
};
#define ROW(name, labels, kind, families, value, help) \
	{ name, labels, METRIC_##kind, families, help },
#define X_ ROW
static const struct node_metric rows[] = { ALL_METRICS(ROW) };
#undef X_

static void
values(const struct view *v, double *to)
{
#define VALUE(name, labels, kind, families, value, help) *to++ = (double)(value);
#define X_ VALUE
	ALL_METRICS(VALUE)
#undef X_
}

static void
look(struct mgmt *m, struct view *v)
{
	static const struct http_stats none;
	static const struct gate_stats no_gate;
	struct broker *b = m->broker;

	*v = (struct view){ .m = m,
		.b = b,
		.s = &b->stats,
		.quorum = &b->quorum_stats,
		.logins = login_counts_of(m),
		.gate = m->node.gate != NULL ? gate_stats(m->node.gate) : &no_gate,
		.http = http_stats(m->http),
		.http_metrics = m->http_metrics != NULL ? http_stats(m->http_metrics) : &none };
	if (b->store != NULL)
		store_stats(b->store, &v->store);
	node_gauges(m, &v->gauges);
	node_limits(m, &v->limits);
	history_stats(b, &v->history);
	tap_stats(b, &v->taps);
	drain_stats(b, &v->drain);
}

/* ---- counters that have tables of their own ---- */

/* "hermes_" or "hermes_store_", seconds instead of microseconds, _total where it is a counter. */
static void
put_counter(struct metric_text *t, const char *prefix, const char *field, enum metric_kind kind,
    uint64_t value, const char *help)
{
	size_t n = strlen(field);
	bool is_time = n > 3 && strcmp(field + n - 3, "_us") == 0;
	char name[80];

	(void)snprintf(name, sizeof name, "%.*s%s%s", (int)(is_time ? n - 3 : n), field,
	    is_time ? "_seconds" : "", kind == METRIC_COUNTER ? "_total" : "");
	metric_head(t, prefix, name, kind, help);
	metric_sample(t, prefix, name, NULL, is_time ? (double)value / 1e6 : (double)value);
}

static void
put_gate(const struct view *v, struct metric_text *t)
{
	const struct gate *gate = v->m->node.gate;
	const char *file;
	int64_t expires = gate != NULL ? gate_expiry(gate, &file) : 0;

#define X(name, kind, help) \
	put_counter(t, "hermes_", #name, METRIC_##kind, v->gate->name, "Gate: " help);
	GATE_STATS(X)
#undef X
	metric_head(t, "hermes_", "tls_certificate_expires_seconds", METRIC_GAUGE,
	    "When the first certificate in force expires, in seconds since 1970; 0: there is none");
	metric_sample(t, "hermes_", "tls_certificate_expires_seconds", NULL, (double)expires);
}

static void
put_counters(const struct view *v, struct metric_text *t)
{
#define X(name, kind, help) \
	put_counter(t, "hermes_", #name, METRIC_##kind, v->s->name, "Broker: " help);
	BROKER_STATS(X)
#undef X
#define X(name, kind, help) \
	put_counter(t, "hermes_store_", #name, METRIC_##kind, v->store.name, "Store: " help);
	STORE_STATS(X)
#undef X
	put_gate(v, t);
}

static void
put_processor_time(struct metric_text *t)
{
	struct rusage use;

	if (getrusage(RUSAGE_SELF, &use) != 0)
		return;
	metric_head(t, "", "process_cpu_seconds_total", METRIC_COUNTER,
	    "Processor time of the node, of all its threads");
	metric_sample(t, "", "process_cpu_seconds_total", NULL,
	    (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	        (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6);
}

static void
put_memory(struct metric_text *t)
{
	char label[64];

	metric_head(t, "", "hermes_memory_bytes", METRIC_GAUGE,
	    "Memory that counts against memory.limit, by what it is for");
	for (int i = 0; i < MEM_KINDS; i++) {
		(void)snprintf(label, sizeof label, "kind=\"%s\"", mem_kind_name((enum mem_kind)i));
		metric_sample(t, "", "hermes_memory_bytes", label, (double)mem_held[i]);
	}
}

static void
put_histograms(const struct view *v, struct metric_text *t)
{
	struct histogram sizes = v->b->sizes, syncs = { 0 }, batches = { 0 };
	uint64_t large = 0;

	for (unsigned i = 1; i < HISTOGRAM_MAX; i++)
		large += sizes.count[i];
	sizes.count[0] = v->s->publish - large;
	sizes.sum = v->s->publish_in;
	if (v->b->store != NULL)
		store_histograms(v->b->store, &syncs, &batches);
	metric_histogram(t, "rabbitmq_message_size_bytes", P, "Size of published messages", &sizes,
	    histogram_sizes, 1);
	metric_histogram(t, "hermes_confirm_latency_seconds", NULL,
	    "How long confirms waited for the disk; those that need not are left out",
	    &v->b->confirm_waits, histogram_us, 1e6);
	metric_histogram(t, "hermes_loop_lag_seconds", NULL,
	    "How long turns of the core thread kept it busy; short ones are added up",
	    &v->m->loop->turn_time.turns, histogram_us, 1e6);
	metric_histogram(t, "hermes_journal_sync_seconds", NULL,
	    "How long syncs of the journal took", &syncs, histogram_us, 1e6);
	metric_histogram(t, "hermes_journal_batch_bytes", NULL,
	    "Bytes of records that the journal wrote at once", &batches, histogram_writes, 1);
}

void
metric_node_write(
    struct mgmt *m, struct metric_text *t, const char *prefix, uint32_t families, bool all)
{
	double value[COUNT_OF(rows)];
	const char *last = "";
	struct view v;

	look(m, &v);
	values(&v, value);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct node_metric *r = &rows[i];
		const char *p = strncmp(r->name, "hermes_", 7) == 0 ? "" : prefix;

		if (!all && (r->families & families) == 0)
			continue;
		if (strcmp(last, r->name) != 0)
			metric_head(t, p, r->name, r->kind, r->help);
		last = r->name;
		metric_sample(t, p, r->name, r->labels, value[i]);
	}
	if (!all)
		return;
	metric_head(t, "", "process_start_time_seconds", METRIC_GAUGE,
	    "When the node started, in seconds since 1970");
	metric_sample(t, "", "process_start_time_seconds", NULL, (double)m->node.started_ms / 1000);
	put_processor_time(t);
	put_memory(t);
	put_histograms(&v, t);
	put_counters(&v, t);
}

/* ---- who it is ---- */

static void
put_labels(struct metric_text *t, const char *const *pair, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		metric_puts(t, i == 0 ? "{" : ",");
		metric_label(t, pair[i], span_str(pair[i + 1]));
	}
	metric_puts(t, "}");
	metric_value(t, 1);
}

/* The value of a parameter is JSON text. */
static json_t *
cluster_id(const struct mgmt *m)
{
	const struct parameter *p =
	    parameter_find(m->broker, NULL, span_of(NULL, 0), SPAN_LIT("internal_cluster_id"));

	return p != NULL ? json_loads(p->value, JSON_DECODE_ANY, NULL) : NULL;
}

void
metric_node_identity(const struct mgmt *m, struct metric_text *t, const char *endpoint)
{
	json_t *name = about_cluster_name(m), *id = cluster_id(m);
	const char *cluster = json_string_value(name), *permanent = json_string_value(id);
	const char *const who[] = { "rabbitmq_node", m->cfg->node_name, "rabbitmq_cluster",
		cluster != NULL ? cluster : "", "rabbitmq_cluster_permanent_id",
		permanent != NULL ? permanent : "", "rabbitmq_endpoint", endpoint };
	const char *const what[] = { "rabbitmq_version", m->cfg->compat_version,
		"prometheus_plugin_version", m->node.version, "prometheus_client_version",
		m->node.version, "erlang_version", "none" };
	const char *const own[] = { "version", m->node.version, "node", m->cfg->node_name };

	metric_head(t, "rabbitmq_", "identity_info", METRIC_UNTYPED, "Names of node and cluster");
	metric_puts(t, "rabbitmq_identity_info");
	put_labels(t, who, COUNT_OF(who));
	metric_head(t, "rabbitmq_", "build_info", METRIC_UNTYPED, "Versions, as clients are told");
	metric_puts(t, "rabbitmq_build_info");
	put_labels(t, what, COUNT_OF(what));
	metric_head(t, "hermes_", "build_info", METRIC_GAUGE, "The version of Hermes");
	metric_puts(t, "hermes_build_info");
	put_labels(t, own, COUNT_OF(own));
	json_decref(name);
	json_decref(id);
}
