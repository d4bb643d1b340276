/* SPDX-License-Identifier: Apache-2.0
 * Metrics of the node as a whole: RabbitMQ's, and "hermes_..." of what only Hermes has, all counters of the broker and of
 * the store among them. */
#ifndef MGMT_METRIC_NODE_H
#define MGMT_METRIC_NODE_H

#include <stdbool.h>
#include <stdint.h>

struct metric_text;
struct mgmt;

/* Those that the official boards join with all others: always there. endpoint: "aggregated", "per-object", "detailed". */
void metric_node_identity(const struct mgmt *m, struct metric_text *t, const char *endpoint);
/* Those of some families (BIT(FAMILY_...), metric_objects.h) under this prefix; `all`: every one, of no family, too. */
void metric_node_write(struct mgmt *m, struct metric_text *t, const char *prefix, uint32_t families, bool all);

#endif
