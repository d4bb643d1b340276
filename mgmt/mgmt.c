/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/mgmt.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "broker/parameter.h"
#include "broker/broker.h"
#include "mgmt/browse.h"
#include "mgmt/chain.h"
#include "mgmt/definitions.h"
#include "mgmt/dispatch.h"
#include "mgmt/history.h"
#include "mgmt/http.h"
#include "mgmt/listing.h"
#include "mgmt/metrics.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/policies.h"
#include "mgmt/publish.h"
#include "mgmt/pull.h"
#include "mgmt/tail.h"
#include "mgmt/web_session.h"
#include "mgmt/snapshot.h"
#include "mgmt/users_bulk.h"
#include "net/listen_addresses.h"
#include "net/loop.h"
#include "net/transport.h"

static void
on_request(void *arg, struct evhttp_request *req, const struct transport_addr *peer)
{
	struct mgmt *m = arg;

	dispatch(m, m->http, req, peer);
}

static void
on_metrics_request(void *arg, struct evhttp_request *req, const struct transport_addr *peer)
{
	struct mgmt *m = arg;

	dispatch(m, m->http_metrics, req, peer);
}

static bool
listen_at(struct http *h, const struct config *cfg, const struct config_list *given, uint16_t port,
    bool is_tls, const char **error)
{
	struct config_list addresses;
	bool fine = listen_addresses(given, &addresses, error);

	for (uint32_t i = 0; fine && i < addresses.count; i++)
		fine = http_listen(h, cfg, addresses.item[i], port, is_tls, error);
	listen_addresses_free(&addresses);
	return fine;
}

/* 0: closed. In tests, where there is no other, 0 lets the kernel choose. The ports for TLS come last (http.c). */
static bool
open_api(struct mgmt *m, const char **error)
{
	const struct config *cfg = m->cfg;
	bool is_plain = cfg->management_port != 0 || cfg->management_tls_port == 0;

	return (!is_plain || listen_at(m->http, cfg, &cfg->management_listen, cfg->management_port,
	                         false, error)) &&
	       (cfg->management_tls_port == 0 || listen_at(m->http, cfg, &cfg->management_listen,
	                                             cfg->management_tls_port, true, error));
}

static bool
open_metrics(struct mgmt *m, const char **error)
{
	const struct config *cfg = m->cfg;
	bool is_plain = cfg->prometheus_port != 0 || cfg->prometheus_tls_port == 0;

	return (!is_plain || listen_at(m->http_metrics, cfg, &cfg->prometheus_listen,
	                         cfg->prometheus_port, false, error)) &&
	       (cfg->prometheus_tls_port == 0 ||
	           listen_at(m->http_metrics, cfg, &cfg->prometheus_listen,
	               cfg->prometheus_tls_port, true, error));
}

/* RabbitMQ's way to tell clusters apart: made once, and kept. */
static void
name_cluster(struct broker *b)
{
	static const char prefix[] = "rabbitmq-cluster-id-";
	char id[RANDOM_NAME_SIZE], value[sizeof prefix + sizeof id + 2];
	const struct span name = SPAN_LIT("internal_cluster_id"), global = span_of(NULL, 0);
	const struct error *e;

	if (parameter_find(b, NULL, global, name) != NULL)
		return;
	random_name(id);
	(void)snprintf(value, sizeof value, "\"%s%s\"", prefix, id);
	e = parameter_set(b, NULL, global, name, span_str(value), NULL);
	if (e != NULL)
		log_error("the cluster's id: %s", e->text);
}

struct mgmt *
mgmt_start(struct loop *l, struct broker *b, const struct config *cfg,
    const struct mgmt_node_info *node, const char **error)
{
	struct mgmt *m = xcalloc(1, sizeof *m);

	m->loop = l;
	m->broker = b;
	m->cfg = cfg;
	m->node = *node;
	TAILQ_INIT(&m->deferred);
	TAILQ_INIT(&m->imports);
	TAILQ_INIT(&m->exports);
	TAILQ_INIT(&m->policy_changes);
	TAILQ_INIT(&m->listings.all);
	TAILQ_INIT(&m->bulk_deletes);
	TAILQ_INIT(&m->scrapes.all);
	TAILQ_INIT(&m->pulls);
	TAILQ_INIT(&m->browses.all);
	TAILQ_INIT(&m->chains.all);
	TAILQ_INIT(&m->tails.all);
	TAILQ_INIT(&m->batches);
	m->sessions = web_sessions_new(b);
	name_cluster(b);
	m->http = http_new(l, cfg, node->gate, on_request, m);
	series_start(b);
	histories_start(m);
	if (node->metrics)
		m->http_metrics = http_new(l, cfg, node->gate, on_metrics_request, m);
	if ((!node->no_api && !open_api(m, error)) || (node->metrics && !open_metrics(m, error)))
		mgmt_stop(&m);
	return m;
}

uint16_t
mgmt_port(const struct mgmt *m)
{
	struct transport_addr a = { .port = 0 };

	bool is_tls;

	(void)http_port(m->http, 0, &a, &is_tls);
	return a.port;
}

bool
mgmt_listener(const struct mgmt *m, unsigned i, struct transport_addr *out, bool *is_tls)
{
	return http_port(m->http, i, out, is_tls);
}

bool
mgmt_metrics_listener(const struct mgmt *m, unsigned i, struct transport_addr *out, bool *is_tls)
{
	return m->http_metrics != NULL && http_port(m->http_metrics, i, out, is_tls);
}

bool
mgmt_run(struct mgmt *m)
{
	bool more = batches_run(m);

	more |= listings_run(m);
	more |= bulk_deletes_run(m);
	policy_changes_run(m);
	requests_run(m);
	more |= requests_go_on(m);
	pulls_run(m);
	more |= browses_run(m);
	more |= chains_run(m);
	tails_run(m);
	more |= exports_run(m);
	return imports_run(m) || more;
}

void
mgmt_stop(struct mgmt **mp)
{
	struct mgmt *m = *mp;

	if (m == NULL)
		return;
	*mp = NULL;
	snapshot_stop(m);
	imports_stop(m);
	exports_stop(m);
	bulk_deletes_stop(m);
	policy_changes_stop(m);
	listings_stop(m);
	scrapes_stop(m);
	pulls_stop(m);
	browses_stop(m);
	chains_stop(m);
	tails_stop(m);
	batches_stop(m);
	requests_stop(m);
	series_stop(m->broker);
	histories_stop(m);
	http_free(&m->http);
	http_free(&m->http_metrics);
	web_sessions_free(&m->sessions);
	free(m);
}
