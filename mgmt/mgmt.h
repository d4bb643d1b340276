/* SPDX-License-Identifier: Apache-2.0
 * The HTTP side of a node: /api in the shape that RabbitMQ's management plugin has, and /healthz. What the
 * node calls; everything runs on the core thread's loop. */
#ifndef MGMT_MGMT_H
#define MGMT_MGMT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

struct broker;
struct config;
struct gate;
struct loop;
struct mgmt;
struct transport_addr;
struct workers;

/* An open port, for the list of listeners. */
typedef void mgmt_port_fn(void *arg, const char *protocol, const char *address, uint16_t port);

/* What only the node knows. Copied by mgmt_start; what it points to outlives the mgmt. */
struct mgmt_node_info {
	const char *version; /* of Hermes */
	uint64_t started_ms; /* node's clock */
	/* calls f(f_arg, ...) for each port that takes AMQP; may be NULL */
	void (*ports)(void *arg, mgmt_port_fn *f, void *f_arg);
	/* free space of the data folder's disk and the least that has to be, in bytes; 0, 0: not known yet. May be NULL */
	void (*disk)(void *arg, uint64_t *available, uint64_t *least);
	void *arg;
	const char *config_file; /* NULL: none */
	uint32_t connections_max;
	bool no_api;  /* the ports of the API stay closed */
	bool metrics; /* those of prometheus.* are opened */
	struct gate *gate; /* for ports with TLS, and behind load balancers; NULL (tests): there are none */
	struct workers *workers; /* for what takes long; NULL (tests): it is done at once */
};

/* Opens cfg->management_port and management_tls_port on each of cfg->management_listen, and the same of prometheus, as the
 * node says. NULL: *error is a static text. */
struct mgmt *mgmt_start(struct loop *l, struct broker *b, const struct config *cfg,
    const struct mgmt_node_info *node, const char **error) MUSTUSE;

/* The port that was opened (where the settings say 0, the kernel chose one). */
uint16_t mgmt_port(const struct mgmt *m);
/* The i-th address and port that are listened on; false when there is no such one. */
bool mgmt_listener(const struct mgmt *m, unsigned i, struct transport_addr *out, bool *is_tls);
bool mgmt_metrics_listener(const struct mgmt *m, unsigned i, struct transport_addr *out, bool *is_tls);

/* Each turn: answers what waited for the store, goes on with what goes in slices. True: there is more to do now. */
bool mgmt_run(struct mgmt *m);

/* Closes every port and connection. */
void mgmt_stop(struct mgmt **mp);

#endif
