/* SPDX-License-Identifier: Apache-2.0
 * GET /api/nodes: the fields of RabbitMQ's. Where it counts things that are not here (garbage collections, transactions of
 * its database) the count is 0; checks divide by the totals, so these are never 0. */
#include "mgmt/nodes.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/machine.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/drain.h"
#include "mgmt/about.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/rows.h"
#include "net/loop.h"
#include "store/stats.h"
#include "store/store.h"

enum {
	PROC_TOTAL = 1 << 20, /* RabbitMQ's */
	NET_TICKTIME_S = 60,
	OWN_DESCRIPTORS = 16 /* of the log, the journal, wake-ups: where the kernel does not tell */
};

bool
node_is(const struct mgmt *m, struct span name)
{
	static const char alias[] = "rabbit";
	const char *own = m->cfg->node_name;
	const char *host = strchr(own, '@');

	if (span_is(name, own))
		return true;
	return host != NULL && name.n > sizeof alias - 1 &&
	       memcmp(name.p, alias, sizeof alias - 1) == 0 &&
	       span_is(
	           (struct span){ name.p + sizeof alias - 1, name.n - (sizeof alias - 1) }, host);
}

/* --- gauges --------------------------------------------------------------------- */

static uint64_t
descriptors_total(void)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_NOFILE, &lim) == 0 ? lim.rlim_cur : 1024;
}

/* The kernel tells the number since 6.2; to count them takes milliseconds where there are many. */
static uint64_t
descriptors_used(uint64_t sockets)
{
	struct stat st;

	if (stat("/proc/self/fd", &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	return sockets + OWN_DESCRIPTORS;
}

void
node_gauges(const struct mgmt *m, struct node_gauges *out)
{
	const struct broker_stats *s = &m->broker->stats;
	uint64_t least;

	*out = (struct node_gauges){ .mem_used = (uint64_t)about_resident(),
		.sockets_used = s->connections + http_stats(m->http)->open +
		                (m->http_metrics != NULL ? http_stats(m->http_metrics)->open : 0),
		.proc_used = 1 + s->connections + s->channels + s->queues };
	out->fd_used = descriptors_used(out->sockets_used);
	if (m->node.disk != NULL)
		m->node.disk(m->node.arg, &out->disk_free, &least);
}

static void
put_gauges(struct mgmt *m, json_t *o)
{
	struct node_samples *s = &m->node_samples;
	struct node_gauges now;
	uint64_t now_ms = m->loop->now_ms, ms = now_ms - s->at_ms[0];

	node_gauges(m, &now);
#define X(name)                              \
	json_put_counter(o, #name, now.name, \
	    ms == 0 || s->at_ms[0] == 0      \
	        ? 0.0                        \
	        : ((double)now.name - (double)s->sample[0].name) * 1000.0 / (double)ms);
	NODE_GAUGES(X)
#undef X
	if (now_ms >= s->at_ms[1] + NODE_SAMPLE_MS) {
		s->sample[0] = s->sample[1];
		s->at_ms[0] = s->at_ms[1];
		s->sample[1] = now;
		s->at_ms[1] = now_ms;
	}
}

void
node_limits(const struct mgmt *m, struct node_limits *out)
{
	const struct memory *mem = &m->broker->memory;
	uint64_t available;

	*out = (struct node_limits){ .fd = descriptors_total(),
		.proc = PROC_TOTAL,
		.mem = mem->limit != 0 ? mem->limit : machine_memory() };
	out->sockets = m->node.connections_max != 0 ? m->node.connections_max : out->fd;
	if (m->node.disk != NULL)
		m->node.disk(m->node.arg, &available, &out->disk_free);
}

static void
put_limits(const struct mgmt *m, json_t *o)
{
	struct node_limits most;

	node_limits(m, &most);
	json_put(o, "fd_total", json_integer((json_int_t)most.fd));
	json_put(o, "sockets_total", json_integer((json_int_t)most.sockets));
	json_put(o, "proc_total", json_integer((json_int_t)most.proc));
	json_put(o, "mem_limit", json_integer((json_int_t)most.mem));
	json_put(o, "mem_alarm", json_boolean(memory_short(&m->broker->memory)));
	json_put(o, "disk_free_limit", json_integer((json_int_t)most.disk_free));
	json_put(o, "disk_free_alarm", json_boolean(m->broker->disk_low));
}

/* --- counters ------------------------------------------------------------------- */

static double
per(uint64_t us, uint64_t count)
{
	return count == 0 ? 0.0 : (double)us / 1000.0 / (double)count;
}

static void
put_counters(const struct mgmt *m, json_t *o)
{
	static const char *const zero[] = { "gc_num", "gc_bytes_reclaimed", "io_seek_count",
		"io_reopen_count", "mnesia_ram_tx_count", "mnesia_disk_tx_count",
		"queue_index_read_count", "queue_index_write_count" };
	struct store_stats s = { 0 };
	struct rusage use;
	uint64_t switches = 0;

	if (m->broker->store != NULL)
		store_stats(m->broker->store, &s);
	if (getrusage(RUSAGE_SELF, &use) == 0)
		switches = (uint64_t)(use.ru_nvcsw + use.ru_nivcsw);
	for (size_t i = 0; i < COUNT_OF(zero); i++)
		json_put_counter(o, zero[i], 0, 0.0);
	json_put(o, "context_switches", json_integer((json_int_t)switches));
	json_put(o, "io_read_count", json_integer((json_int_t)s.loaded));
	json_put(o, "io_read_bytes", json_integer((json_int_t)s.loaded_bytes));
	json_put(o, "io_write_count", json_integer((json_int_t)(s.journal_batches + s.spilled)));
	json_put(
	    o, "io_write_bytes", json_integer((json_int_t)(s.journal_bytes + s.spilled_bytes)));
	json_put(o, "io_sync_count", json_integer((json_int_t)s.journal_syncs));
	json_put(o, "io_sync_avg_time", json_real(per(s.journal_sync_us, s.journal_syncs)));
	json_put(o, "io_read_avg_time", json_real(0.0)); /* not measured; nobody waits for them */
	json_put(o, "io_write_avg_time", json_real(0.0));
	json_put(o, "io_seek_avg_time", json_real(0.0));
	json_put(o, "msg_store_read_count", json_integer((json_int_t)s.loaded));
	json_put(o, "msg_store_write_count", json_integer((json_int_t)s.spilled));
	about_put_churn(m, o);
}

/* --- what it is ------------------------------------------------------------------ */

static json_t *
applications(const struct mgmt *m)
{
	return json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}]", "name", "hermes", "description",
	    "Hermes", "version", m->node.version, "name", "rabbit", "description",
	    "what Hermes announces itself as", "version", m->cfg->compat_version);
}

static json_t *
mechanisms(const struct mgmt *m)
{
	return json_pack("[{s:s, s:s, s:b}, {s:s, s:s, s:b}, {s:s, s:s, s:b}]", "name", "EXTERNAL",
	    "description", "the certificate of the client, on ports for TLS", "enabled",
	    m->cfg->tls_port != 0 && m->cfg->tls_verify != 0, "name", "PLAIN", "description",
	    "user name and password (RFC 4616)", "enabled", 1, "name", "AMQPLAIN", "description",
	    "user name and password in a table", "enabled", 1);
}

static void
put_lists(const struct mgmt *m, json_t *o)
{
	json_put(o, "partitions", json_array());
	json_put(o, "cluster_links", json_array());
	json_put(o, "exchange_types", about_exchange_types());
	json_put(o, "auth_mechanisms", mechanisms(m));
	json_put(o, "applications", applications(m));
	json_put(o, "contexts", about_contexts(m));
	json_put(o, "enabled_plugins",
	    json_pack("[s, s, s]", "rabbitmq_consistent_hash_exchange",
	        "rabbitmq_delayed_message_exchange", "rabbitmq_management"));
	json_put(o, "log_files",
	    json_pack("[s]", strcmp(m->cfg->log_file, "-") == 0 ? "<stderr>" : m->cfg->log_file));
	json_put(o, "config_files",
	    m->node.config_file != NULL ? json_pack("[s]", m->node.config_file) : json_array());
	json_put(o, "metrics_gc_queue_length", json_object());
}

/* Categories of RabbitMQ's, as far as ours are the same thing. */
static json_t *
memory_of(void)
{
	static const char *const zero[] = { "connection_writers", "connection_channels",
		"queue_slave_procs", "quorum_queue_procs", "quorum_queue_dlx_procs",
		"stream_queue_procs", "stream_queue_replica_reader_procs",
		"stream_queue_coordinator_procs", "plugins", "metrics", "mgmt_db", "mnesia",
		"quorum_ets", "other_ets", "code", "atom", "other_system", "allocated_unused",
		"metadata_store", "metadata_store_ets" };
	json_int_t rss = about_resident(), held = (json_int_t)mem_total();
	json_t *o = json_object();

	for (size_t i = 0; i < COUNT_OF(zero); i++)
		json_put(o, zero[i], json_integer(0));
	json_put(o, "connection_readers", json_integer((json_int_t)mem_held[MEM_INPUT]));
	json_put(o, "connection_other", json_integer((json_int_t)mem_held[MEM_OUTPUT]));
	json_put(o, "queue_procs",
	    json_integer((json_int_t)(mem_held[MEM_ENTRIES] + mem_held[MEM_TOPOLOGY])));
	json_put(o, "binary",
	    json_integer((json_int_t)(mem_held[MEM_SLABS] + mem_held[MEM_LARGE] +
	                              mem_held[MEM_CONTENT] + mem_held[MEM_JOURNAL])));
	json_put(o, "msg_index", json_integer((json_int_t)mem_held[MEM_WINDOWS]));
	json_put(o, "other_proc", json_integer(0));
	json_put(o, "reserved_unallocated", json_integer(rss > held ? rss - held : 0));
	json_put(o, "strategy", json_string("rss"));
	json_put(o, "total",
	    json_pack("{s:I, s:I, s:I}", "erlang", held, "rss", rss, "allocated", held));
	return o;
}

static json_t *
document(struct request *r)
{
	struct mgmt *m = r->m;
	const struct config *cfg = m->cfg;
	const char *with_memory = request_query(r, "memory");
	json_t *o = json_object();

	json_put(o, "name", json_string(cfg->node_name));
	json_put(o, "type", json_string("disc"));
	json_put(o, "running", json_true());
	json_put(o, "being_drained", json_boolean(m->broker->closing || drain_is_on(m->broker)));
	json_put(o, "os_pid", json_sprintf("%d", (int)getpid()));
	json_put(o, "uptime", json_integer((json_int_t)(m->loop->now_ms - m->node.started_ms)));
	json_put(o, "processors", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_put(o, "run_queue", json_integer(0));
	json_put(o, "rates_mode", json_string("basic"));
	json_put(o, "net_ticktime", json_integer(NET_TICKTIME_S));
	json_put(o, "mem_calculation_strategy", json_string("rss"));
	json_put(o, "db_dir", json_string(cfg->data_dir));
	put_gauges(m, o);
	put_limits(m, o);
	put_counters(m, o);
	put_lists(m, o);
	if (with_memory != NULL && strcmp(with_memory, "true") == 0)
		json_put(o, "memory", memory_of());
	return o;
}

void
route_nodes(struct request *r)
{
	reply_rows(r, json_pack("[o]", document(r)));
}

void
route_node(struct request *r)
{
	if (node_is(r->m, request_arg(r, 0)))
		reply_row(r, document(r));
	else
		reply_not_found(r);
}

void
route_node_memory(struct request *r)
{
	if (node_is(r->m, request_arg(r, 0)))
		reply_json(r, 200, json_pack("{s:o}", "memory", memory_of()));
	else
		reply_not_found(r);
}
