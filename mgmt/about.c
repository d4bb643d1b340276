/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/about.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "broker/broker.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "net/loop.h"
#include "net/transport.h"

void
json_put(json_t *o, const char *name, json_t *value)
{
	(void)json_object_set_new(o, name, value);
}

void
json_put_counter(json_t *o, const char *name, uint64_t count, double rate)
{
	char details[64];

	(void)snprintf(details, sizeof details, "%s_details", name);
	(void)json_object_set_new(o, name, json_integer((json_int_t)count));
	(void)json_object_set_new(o, details, json_pack("{s:f}", "rate", rate));
}

#define STAT(name) offsetof(struct broker_stats, name)
static const struct {
	const char *name;
	size_t field;
} churn[] = {
	{ "connection_created", STAT(connections_opened) },
	{ "connection_closed", STAT(connections_closed) },
	{ "channel_created", STAT(channels_opened) },
	{ "channel_closed", STAT(channels_closed) },
	{ "queue_created", STAT(queues_created) },
	{ "queue_declared", STAT(queues_declared) },
	{ "queue_deleted", STAT(queues_deleted) },
};

void
about_put_churn(const struct mgmt *m, json_t *o)
{
	for (size_t i = 0; i < COUNT_OF(churn); i++) {
		const uint64_t *count =
		    (const void *)((const char *)&m->broker->stats + churn[i].field);

		json_put_counter(o, churn[i].name, *count,
		    series_rate(&m->broker->node, count, m->loop->now_ms));
	}
}

static const char standard[] = "AMQP exchange type, as in the AMQP 0-9-1 specification";
static const struct {
	const char *name, *description;
} exchange_types[] = {
	{ "direct", standard },
	{ "fanout", standard },
	{ "headers", standard },
	{ "topic", standard },
	{ "x-consistent-hash", "Consistent Hashing Exchange" },
	{ "x-delayed-message", "Delayed Message Exchange" },
};

json_t *
about_exchange_types(void)
{
	json_t *a = json_array();

	for (size_t i = 0; i < COUNT_OF(exchange_types); i++)
		(void)json_array_append_new(
		    a, json_pack("{s:s, s:s, s:b}", "name", exchange_types[i].name, "description",
		           exchange_types[i].description, "enabled", 1));
	return a;
}

struct port_list {
	const struct mgmt *m;
	json_t *array; /* borrowed */
};

static void
put_port(void *arg, const char *protocol, const char *address, uint16_t port)
{
	const struct port_list *list = arg;
	const struct config *cfg = list->m->cfg;

	(void)json_array_append_new(list->array,
	    json_pack("{s:s, s:s, s:s, s:i, s:{s:i, s:b}}", "node", cfg->node_name, "protocol",
	        protocol, "ip_address", address, "port", port, "socket_opts", "backlog",
	        (int)cfg->tcp_backlog, "nodelay", (int)cfg->tcp_nodelay));
}

void
about_ports(const struct mgmt *m, mgmt_port_fn *f, void *arg)
{
	struct transport_addr a;
	bool is_tls;

	if (m->node.ports != NULL)
		m->node.ports(m->node.arg, f, arg);
	for (unsigned i = 0; http_port(m->http, i, &a, &is_tls); i++)
		f(arg, is_tls ? "https" : "http", a.host, a.port);
	for (unsigned i = 0; mgmt_metrics_listener(m, i, &a, &is_tls); i++)
		f(arg, is_tls ? "https/prometheus" : "http/prometheus", a.host, a.port);
}

json_t *
about_listeners(const struct mgmt *m)
{
	struct port_list list = { .m = m, .array = json_array() };

	about_ports(m, put_port, &list);
	return list.array;
}

json_t *
about_contexts(const struct mgmt *m)
{
	struct transport_addr a;
	json_t *array = json_array();
	char port[8];
	bool is_tls;

	for (unsigned i = 0; http_port(m->http, i, &a, &is_tls); i++) {
		(void)snprintf(port, sizeof port, "%u", a.port);
		(void)json_array_append_new(
		    array, json_pack("{s:[], s:s, s:s, s:s, s:s, s:s}", "ssl_opts", "node",
		               m->cfg->node_name, "description", "RabbitMQ Management", "path", "/",
		               "cowboy_opts", "[]", "port", port));
	}
	return array;
}

json_int_t
about_resident(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long whole, resident = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%lu %lu", &whole, &resident) != 2)
		resident = 0;
	(void)fclose(f);
	return (json_int_t)resident * sysconf(_SC_PAGESIZE);
}
