/* SPDX-License-Identifier: Apache-2.0
 * Metrics of queues, channels, connections, exchanges and vhosts: tables of name, kind, help and value. Names, kinds and
 * labels are RabbitMQ's. */
#ifndef MGMT_METRIC_OBJECTS_H
#define MGMT_METRIC_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/series.h"
#include "mgmt/metric_text.h"

struct mgmt;

/* Groups of metrics that /metrics/detailed is asked for by name. */
#define METRIC_FAMILIES(X)           \
	X(queue_coarse_metrics)          \
	X(queue_metrics)                 \
	X(queue_consumer_count)          \
	X(channel_metrics)               \
	X(channel_exchange_metrics)      \
	X(channel_queue_metrics)         \
	X(channel_queue_exchange_metrics) \
	X(connection_coarse_metrics)     \
	X(connection_metrics)            \
	X(connection_churn_metrics)      \
	X(node_metrics)                  \
	X(node_coarse_metrics)           \
	X(node_persister_metrics)        \
	X(auth_attempt_metrics)          \
	X(vhost_status)                  \
	X(exchange_names)                \
	X(exchange_bindings)             \
	X(hermes_queue_metrics)
enum metric_family {
#define X(name) FAMILY_##name,
	METRIC_FAMILIES(X)
#undef X
	METRIC_FAMILY_COUNT
};
extern const char *const metric_family_names[METRIC_FAMILY_COUNT];
/* Those that /metrics/per-object has: sets are of BIT(FAMILY_...). */
extern const uint32_t metric_families_per_object;

struct object_metric {
	const char *name; /* without "rabbitmq_" or "rabbitmq_detailed_"; "hermes_..." and "cluster_..." as they are */
	enum metric_kind kind;
	uint32_t families; /* 0: it is a sum only */
	const char *help;
};

enum { OBJECT_METRICS_MAX = 48 };

/* A kind of object and of row: an object may have several. */
struct object_metrics {
	enum series_kind kind;
	const struct object_metric *metric;
	unsigned count;
	/* Is there something to show of it? vhost: set to the name of the one that it is in, where that has a say. */
	bool (*is_shown)(void *object, struct span *vhost);
	/* How many rows; NULL: one. */
	unsigned (*rows)(const void *object);
	/* False: not this row. */
	bool (*labels)(const struct mgmt *m, const void *object, unsigned row, struct metric_text *t);
	void (*values)(const struct mgmt *m, void *object, unsigned row, double *to);
	/* The sum over all objects is in v; or what is known better. NAN: none is shown. */
	void (*totals)(const struct mgmt *m, double *v);
	bool has_sums; /* totals need a walk */
};
extern const struct object_metrics object_metrics[];
extern const unsigned object_metrics_count;

#endif
