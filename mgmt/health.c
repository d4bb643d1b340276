/* SPDX-License-Identifier: Apache-2.0
 * Health checks: RabbitMQ 3's and 4's, and /healthz. What is well is 200 {"status":"ok"}; what is not is 503 with the
 * reason. */
#include "mgmt/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/drain.h"
#include "mgmt/about.h"
#include "mgmt/http.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/nodes.h"
#include "mgmt/request.h"
#include "net/gate.h"
#include "net/transport.h"
#include "store/store.h"

static const char *
alarm_problem(const struct mgmt *m, char *text, size_t n)
{
	const struct memory *mem = &m->broker->memory;

	if (memory_short(mem)) {
		(void)snprintf(text, n,
		    "memory alarm: %" PRIu64 " bytes held of %" PRIu64 "; publishers are held back",
		    mem_total(), mem->limit);
		return text;
	}
	if (m->broker->store != NULL && store_hold(m->broker->store) == STORE_DISK_FULL) {
		(void)snprintf(text, n,
		    "disk alarm: there is no space to write; changes that are to last wait for it");
		return text;
	}
	if (m->broker->disk_low) {
		(void)snprintf(text, n,
		    "disk alarm: free space is under disk.min_free; publishers of persistent "
		    "messages are held back");
		return text;
	}
	return NULL;
}

const char *
health_problem(const struct mgmt *m, char *text, size_t n)
{
	if (m->broker->closing) {
		(void)snprintf(text, n, "the node is stopping");
		return text;
	}
	return alarm_problem(m, text, n);
}

static void
answer(struct request *r, const char *problem)
{
	if (problem == NULL)
		reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
	else
		reply_json(r, 503, json_pack("{s:s, s:s}", "status", "failed", "reason", problem));
}

/* Nobody has logged in: why is for the log. */
static void
answer_anybody(struct request *r, const char *problem)
{
	static struct log_limit lines = { .burst = 1 };

	if (problem == NULL) {
		reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
		return;
	}
	if (log_allowed(&lines))
		log_line(LOG_WARNING, &(struct log_who){ .peer = r->peer.host },
		    "%s is answered with 503: %s", r->route->path, problem);
	reply_json(r, 503, json_pack("{s:s}", "status", "failed"));
}

void
route_healthz(struct request *r)
{
	char text[160];

	answer_anybody(r, health_problem(r->m, text, sizeof text));
}

/* Whether to send clients here: an alarm holds back publishers only, and others are to drain what is there. Those that do so
 * in maintenance are here already. */
static const char *
service_problem(const struct mgmt *m)
{
	if (m->broker->closing)
		return "the node is stopping";
	return drain_is_on(m->broker) ? "the node is drained for maintenance" : NULL;
}

void
route_readyz(struct request *r)
{
	answer_anybody(r, service_problem(r->m));
}

void
route_health_alarms(struct request *r)
{
	char text[160];

	answer(r, alarm_problem(r->m, text, sizeof text));
}

/* is-in-service, ready-to-serve-clients */
void
route_health_service(struct request *r)
{
	answer(r, service_problem(r->m));
}

/* Virtual hosts are up as long as the node is; there are no mirrors; a quorum is the node itself. */
void
route_health_always(struct request *r)
{
	answer(r, NULL);
}

void
route_health_connections(struct request *r)
{
	uint64_t open = r->m->broker->stats.connections;
	json_t *o;
	bool below = r->m->node.connections_max == 0 || open < r->m->node.connections_max;

	o = json_pack("{s:s, s:I, s:I}", "status", below ? "ok" : "failed", "current",
	    (json_int_t)open, "limit", (json_int_t)r->m->node.connections_max);
	if (!below)
		json_put(o, "reason", json_string("node connection limit is reached"));
	reply_json(r, below ? 200 : 503, o);
}

/* RabbitMQ's old check answers 200 either way. */
void
route_health_node(struct request *r)
{
	char text[160];
	const char *problem = health_problem(r->m, text, sizeof text);

	if (r->args[0].p != NULL && !node_is(r->m, request_arg(r, 0)))
		reply_not_found(r);
	else if (problem == NULL)
		reply_json(r, 200, json_pack("{s:s}", "status", "ok"));
	else
		reply_json(r, 200, json_pack("{s:s, s:s}", "status", "failed", "reason", problem));
}

/* --- ports ---------------------------------------------------------------------- */

struct ports {
	json_int_t wanted_port;
	const char *wanted_protocol; /* lower case; NULL: a port is wanted */
	bool found;
	json_t *list; /* of ports, or of protocols */
};

static void
on_port(void *arg, const char *protocol, UNUSED const char *address, uint16_t port)
{
	struct ports *p = arg;
	json_t *value = p->wanted_protocol != NULL ? json_string(protocol) : json_integer(port),
	       *one;
	size_t i;

	p->found |= p->wanted_protocol != NULL ? strcmp(p->wanted_protocol, protocol) == 0
	                                       : p->wanted_port == port;
	json_array_foreach(p->list, i, one) if (json_equal(one, value))
	{
		json_decref(value);
		return;
	}
	(void)json_array_append_new(p->list, value);
}

static void
all_ports(const struct mgmt *m, struct ports *p)
{
	p->list = json_array();
	about_ports(m, on_port, p);
}

void
route_health_port(struct request *r)
{
	struct span given = request_arg(r, 0);
	struct ports p = { 0 };
	char *end;
	long port = strtol(r->args[0].p, &end, 10);

	if (given.n == 0 || *end != '\0' || end != r->args[0].p + given.n || port < 0) {
		reply_bad(r, "Invalid port");
		return;
	}
	p.wanted_port = port;
	all_ports(r->m, &p);
	if (p.found)
		reply_json(r, 200, json_pack("{s:s, s:I}", "status", "ok", "port", p.wanted_port));
	else
		reply_json(r, 503,
		    json_pack("{s:s, s:s, s:I, s:O}", "status", "failed", "reason",
		        "No active listener", "missing", p.wanted_port, "ports", p.list));
	json_decref(p.list);
}

static const struct {
	const char *given, *name;
} protocol_names[] = { { "amqp091", "amqp" }, { "amqp0.9.1", "amqp" }, { "amqp0-9-1", "amqp" },
	{ "amqp0_9_1", "amqp" }, { "amqp/ssl", "amqp/ssl" }, { "amqps", "amqp/ssl" } };

void
route_health_protocol(struct request *r)
{
	struct ports p = { 0 };
	char name[64];
	size_t n = 0;

	for (; n < sizeof name - 1 && r->args[0].p[n] != '\0'; n++) {
		char c = r->args[0].p[n];

		name[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	name[n] = '\0';
	p.wanted_protocol = name;
	for (size_t i = 0; i < COUNT_OF(protocol_names); i++)
		if (strcmp(name, protocol_names[i].given) == 0)
			p.wanted_protocol = protocol_names[i].name;
	all_ports(r->m, &p);
	if (p.found)
		reply_json(
		    r, 200, json_pack("{s:s, s:s}", "status", "ok", "protocol", p.wanted_protocol));
	else
		reply_json(r, 503,
		    json_pack("{s:s, s:s, s:o, s:O}", "status", "failed", "reason",
		        "No active listener", "missing", json_text(span_str(name)), "protocols",
		        p.list));
	json_decref(p.list);
}

/* NULL, or what expires within so many seconds; in buf. */
static const char *
expires(const struct mgmt *m, int64_t within_s, char *buf, size_t n)
{
	const char *file;
	int64_t at = m->node.gate != NULL ? gate_expiry(m->node.gate, &file) : 0;

	if (at == 0 || at > (int64_t)time(NULL) + within_s)
		return NULL;
	(void)snprintf(buf, n, "Certificates expiring: %s", file);
	return buf;
}

void
route_health_certificates(struct request *r)
{
	static const struct {
		const char *name;
		int days;
	} units[] = { { "day", 1 }, { "days", 1 }, { "week", 7 }, { "weeks", 7 }, { "month", 30 },
		{ "months", 30 }, { "year", 365 }, { "years", 365 } };
	const int64_t most = 1000 * 365;
	struct span within = request_arg(r, 0);
	char *end;
	long n = strtol(r->args[0].p, &end, 10);
	int days = 0;
	char text[512];

	for (size_t i = 0; i < COUNT_OF(units); i++)
		if (strcasecmp(r->args[1].p, units[i].name) == 0)
			days = units[i].days;
	if (days == 0)
		reply_bad(
		    r, "Time unit not recognised. Supported units: days, weeks, months, years.");
	else if (within.n == 0 || end != r->args[0].p + within.n || n < 0)
		reply_bad(r, "Invalid expiration value.");
	else
		answer(
		    r, expires(r->m, (n < most ? n : most) * days * 24 * 3600, text, sizeof text));
}
