/* SPDX-License-Identifier: Apache-2.0
 * What RabbitMQ counts by channel and queue, or by channel, exchange and queue, is counted here by channel or by queue:
 * such rows have the labels that are left. Counters over all objects are the node's, which do not fall when an object
 * goes. */
#include "mgmt/metric_objects.h"

#include <assert.h>
#include <math.h>

#include "base/attr.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/exchange.h"
#include "broker/queue.h"
#include "broker/queue_sums.h"
#include "broker/session.h"
#include "broker/vhost.h"
#include "mgmt/client_doc.h"
#include "mgmt/mgmt_priv.h"
#include "net/loop.h"
#include "store/store.h"

const char *const metric_family_names[METRIC_FAMILY_COUNT] = {
#define X(name) #name,
	METRIC_FAMILIES(X)
#undef X
};

#define F(name) BIT(FAMILY_##name)
const uint32_t metric_families_per_object =
    F(queue_coarse_metrics) | F(queue_metrics) | F(channel_metrics) | F(channel_exchange_metrics) |
    F(channel_queue_metrics) | F(channel_queue_exchange_metrics) | F(connection_coarse_metrics) |
    F(connection_metrics);

/* X(name, kind, families, value, total, help). `total` may say SUM, or NONE: it makes no sense. */
#define SUM (*v)
#define NONE ((double)NAN)
#define ROW(name, kind, families, value, total, help) { #name, METRIC_##kind, families, help },
#define VALUE(name, kind, families, value, total, help) *to++ = (double)(value);
#define TOTAL(name, kind, families, value, total, help) \
	*v = (double)(total);                           \
	v++;

static void
put_names(struct metric_text *t, const struct vhost *vh, const char *what, struct span name)
{
	metric_label(t, "vhost", span_str(vh->name));
	metric_put(t, ",", 1);
	metric_label(t, what, name);
}

/* ---- queues ---- */

#define COARSE F(queue_coarse_metrics)
#define DETAIL F(queue_metrics)
#define QUEUE_METRICS(X)                                                                          \
	X(queue_messages_ready, GAUGE, COARSE, q->ready, b->stats.messages_ready,                 \
	    "Messages that are ready for delivery")                                               \
	X(queue_messages_unacked, GAUGE, COARSE, q->unacked, b->stats.messages_unacknowledged,    \
	    "Messages that were delivered and are not acknowledged")                              \
	X(queue_messages, GAUGE, COARSE, q->ready + q->unacked,                                   \
	    b->stats.messages_ready + b->stats.messages_unacknowledged, "Both together")          \
	X(queue_consumers, GAUGE, DETAIL | F(queue_consumer_count), q->consumer_count,            \
	    b->stats.consumers, "Consumers of queues")                                            \
	X(queue_consumer_capacity, GAUGE, DETAIL, share, NONE,                                    \
	    "Share of the last seconds in which a message needed not wait for a consumer")        \
	X(queue_consumer_utilisation, GAUGE, DETAIL, share, SUM, "The same, by its older name")   \
	X(queue_process_memory_bytes, GAUGE, DETAIL, s.memory, SUM,                               \
	    "Memory of queues, with the messages in it")                                          \
	X(queue_messages_ram, GAUGE, DETAIL, s.ready_ram + q->unacked, SUM, "Messages in memory") \
	X(queue_messages_ram_bytes, GAUGE, DETAIL, s.bytes_ram, SUM, "Size of their bodies")      \
	X(queue_messages_ready_ram, GAUGE, DETAIL, s.ready_ram, SUM, "Ready messages in memory")  \
	X(queue_messages_unacked_ram, GAUGE, DETAIL, q->unacked, SUM,                             \
	    "Unacknowledged messages in memory")                                                  \
	X(queue_messages_persistent, GAUGE, DETAIL, s.persistent, SUM,                            \
	    "Messages that survive a restart")                                                    \
	X(queue_messages_persistent_bytes, GAUGE, DETAIL, s.persistent_bytes, SUM,                \
	    "Size of their bodies")                                                               \
	X(queue_messages_bytes, GAUGE, DETAIL, q->ready_bytes + q->unacked_bytes, SUM,            \
	    "Size of the bodies of all messages")                                                 \
	X(queue_messages_ready_bytes, GAUGE, DETAIL, q->ready_bytes, SUM,                         \
	    "Size of the bodies of ready messages")                                               \
	X(queue_messages_unacked_bytes, GAUGE, DETAIL, q->unacked_bytes, SUM,                     \
	    "Size of the bodies of unacknowledged messages")                                      \
	X(queue_messages_paged_out, GAUGE, DETAIL, s.unread, SUM,                                 \
	    "Messages that lie on disk only")                                                     \
	X(queue_messages_paged_out_bytes, GAUGE, DETAIL, s.unread_bytes, SUM,                     \
	    "Size of their bodies")                                                               \
	X(queue_head_message_timestamp, GAUGE, DETAIL,                                            \
	    s.has_head_time ? (double)s.head_time : (double)NAN, NONE,                            \
	    "Timestamp property of the next message")                                             \
	X(queue_messages_published_total, COUNTER, F(channel_queue_exchange_metrics),             \
	    q->stats.publish, b->stats.routed, "Messages that came into queues")                  \
	X(hermes_queues_without_consumers, GAUGE, 0, q->ready > 0 && q->consumer_count == 0, SUM, \
	    "Queues with ready messages that nobody consumes from")                               \
	X(hermes_queues_over_10000_messages, GAUGE, 0, q->ready > 10000, SUM,                     \
	    "Queues with more than 10,000 ready messages")                                        \
	X(hermes_queues_over_100000_messages, GAUGE, 0, q->ready > 100000, SUM,                   \
	    "Queues with more than 100,000 ready messages")

#define OWN_ROW(name, kind, help) \
	{ "hermes_queue_" #name "_total", METRIC_##kind, F(hermes_queue_metrics), help },
#define OWN_VALUE(name, kind, help) *to++ = (double)q->stats.name;
#define OWN_TOTAL(name, kind, help) *v++ = NONE;

static const struct object_metric queue_rows[] = { QUEUE_METRICS(ROW) QUEUE_STATS(OWN_ROW) };

static bool
queue_is_shown(void *object, struct span *vhost)
{
	const struct queue *q = object;

	if (q->vhost == NULL || q->is_deleted || q->vhost->is_deleted)
		return false;
	*vhost = span_str(q->vhost->name);
	return true;
}

static bool
queue_labels(
    const struct mgmt *m UNUSED, const void *object, unsigned row UNUSED, struct metric_text *t)
{
	const struct queue *q = object;

	put_names(t, q->vhost, "queue", span_of(q->name, q->name_len));
	return true;
}

static void
queue_values(const struct mgmt *m, void *object, unsigned row UNUSED, double *to)
{
	struct queue *q = object;
	double share = queue_capacity(q, m->loop->now_ms);
	struct queue_sums s;

	queue_sum(q, &s);
	QUEUE_METRICS(VALUE)
	QUEUE_STATS(OWN_VALUE)
}

static void
queue_totals(const struct mgmt *m, double *v)
{
	const struct broker *b = m->broker;

	QUEUE_METRICS(TOTAL)
	QUEUE_STATS(OWN_TOTAL)
}

/* ---- channels ---- */

#define CHANNEL_METRICS(X)                                                                     \
	X(channel_consumers, GAUGE, F(channel_metrics), s->consumer_count, b->stats.consumers, \
	    "Consumers of channels")                                                           \
	X(channel_messages_unacked, GAUGE, F(channel_metrics), session_unacked(s),             \
	    b->stats.messages_unacknowledged, "Messages delivered and not acknowledged")       \
	X(channel_messages_unconfirmed, GAUGE, F(channel_metrics), info.unconfirmed, SUM,      \
	    "Messages published and not confirmed")                                            \
	X(channel_messages_uncommitted, GAUGE, F(channel_metrics), info.uncommitted, SUM,      \
	    "Messages published in transactions that are open")                                \
	X(channel_acks_uncommitted, GAUGE, F(channel_metrics), info.acks_uncommitted, SUM,     \
	    "Acknowledgements in transactions that are open")                                  \
	X(consumer_prefetch, GAUGE, F(channel_metrics), s->prefetch, SUM,                      \
	    "Most unacknowledged messages of a new consumer")                                  \
	X(channel_prefetch, GAUGE, F(channel_metrics), s->limit, SUM,                          \
	    "Most unacknowledged messages of all consumers of a channel")

static const struct object_metric channel_rows[] = { CHANNEL_METRICS(ROW) };

static bool
channel_is_shown(void *object, struct span *vhost)
{
	const struct session *s = object;

	if (s->ops->describe == NULL || s->is_ending || !client_is_shown(s->client))
		return false;
	*vhost = span_str(s->client->vhost->name);
	return true;
}

static bool
channel_labels(
    const struct mgmt *m UNUSED, const void *object, unsigned row UNUSED, struct metric_text *t)
{
	char name[CHANNEL_NAME];

	metric_label(t, "channel", span_str(channel_name(object, name)));
	return true;
}

static void
channel_values(const struct mgmt *m UNUSED, void *object, unsigned row UNUSED, double *to)
{
	const struct session *s = object;
	struct session_info info = { 0 };

	s->ops->describe(s, &info);
	CHANNEL_METRICS(VALUE)
}

static void
channel_totals(const struct mgmt *m, double *v)
{
	const struct broker *b = m->broker;

	CHANNEL_METRICS(TOTAL)
}

/* ---- what went through them ---- */

#define TRAFFIC(X, name, family, field, help) \
	X(name, COUNTER, F(family), s->stats.field, b->stats.field, help)
#define CHANNEL_TRAFFIC(X)                                                                        \
	TRAFFIC(X, channel_messages_confirmed_total, channel_exchange_metrics, confirm,           \
	    "Messages confirmed to publishers")                                                   \
	TRAFFIC(X, channel_messages_unroutable_returned_total, channel_exchange_metrics,          \
	    return_unroutable, "Mandatory messages returned because no queue took them")          \
	TRAFFIC(X, channel_messages_unroutable_dropped_total, channel_exchange_metrics,           \
	    drop_unroutable, "Messages dropped because no queue took them")                       \
	TRAFFIC(X, channel_get_ack_total, channel_queue_metrics, get,                             \
	    "Messages got with basic.get, to be acknowledged")                                    \
	TRAFFIC(X, channel_get_total, channel_queue_metrics, get_no_ack,                          \
	    "Messages got with basic.get without acknowledgement")                                \
	TRAFFIC(X, channel_messages_delivered_ack_total, channel_queue_metrics, deliver,          \
	    "Messages delivered to consumers that acknowledge")                                   \
	TRAFFIC(X, channel_messages_delivered_total, channel_queue_metrics, deliver_no_ack,       \
	    "Messages delivered to consumers that do not acknowledge")                            \
	TRAFFIC(X, channel_messages_redelivered_total, channel_queue_metrics, redeliver,          \
	    "Messages delivered again")                                                           \
	TRAFFIC(                                                                                  \
	    X, channel_messages_acked_total, channel_queue_metrics, ack, "Messages acknowledged") \
	TRAFFIC(X, channel_get_empty_total, channel_queue_metrics, get_empty,                     \
	    "basic.get on an empty queue")

static const struct object_metric traffic_rows[] = { CHANNEL_TRAFFIC(ROW) };

static bool
traffic_labels(
    const struct mgmt *m UNUSED, const void *object, unsigned row UNUSED, struct metric_text *t)
{
	const struct session *s = object;
	char name[CHANNEL_NAME];

	metric_label(t, "channel", span_str(channel_name(s, name)));
	metric_put(t, ",", 1);
	metric_label(t, "vhost", span_str(s->client->vhost->name));
	return true;
}

static void
traffic_values(const struct mgmt *m UNUSED, void *object, unsigned row UNUSED, double *to)
{
	const struct session *s = object;

	CHANNEL_TRAFFIC(VALUE)
}

static void
traffic_totals(const struct mgmt *m, double *v)
{
	const struct broker *b = m->broker;

	CHANNEL_TRAFFIC(TOTAL)
}

#define CHANNEL_EXCHANGE(X)                                                       \
	X(channel_messages_published_total, COUNTER, F(channel_exchange_metrics), \
	    published_count(s, row), b->stats.publish, "Messages published")

static const struct object_metric share_rows[] = { CHANNEL_EXCHANGE(ROW) };

static unsigned
share_count(const void *object)
{
	return ((const struct session *)object)->published.count;
}

static bool
share_labels(const struct mgmt *m, const void *object, unsigned row, struct metric_text *t)
{
	const struct session *s = object;
	const struct series *of = series_find(&m->broker->series, s->published.item[row].series);
	const struct exchange *x = of != NULL ? series_object(of) : NULL;

	/* none yet: what is in a transaction that is open */
	if (x == NULL || x->is_deleted || published_count(s, row) == 0)
		return false;
	(void)traffic_labels(m, s, row, t);
	metric_put(t, ",", 1);
	metric_label(t, "exchange", span_of(x->name, x->name_len));
	return true;
}

static void
share_values(const struct mgmt *m UNUSED, void *object, unsigned row, double *to)
{
	const struct session *s = object;

	CHANNEL_EXCHANGE(VALUE)
}

static void
share_totals(const struct mgmt *m, double *v)
{
	const struct broker *b = m->broker;

	CHANNEL_EXCHANGE(TOTAL)
}

/* ---- connections ---- */

#define CONNECTION_METRICS(X)                                                                     \
	X(connection_incoming_bytes_total, COUNTER, F(connection_coarse_metrics), s.recv_oct,     \
	    m->loop->bytes_in, "Bytes received")                                                  \
	X(connection_outgoing_bytes_total, COUNTER, F(connection_coarse_metrics), s.send_oct,     \
	    m->loop->bytes_out, "Bytes sent")                                                     \
	X(connection_incoming_packets_total, COUNTER, F(connection_metrics), s.recv_cnt,          \
	    m->loop->recv_calls, "Reads from sockets")                                            \
	X(connection_outgoing_packets_total, COUNTER, F(connection_metrics), s.send_cnt,          \
	    m->loop->writev_calls, "Writes to sockets")                                           \
	X(connection_pending_packets, GAUGE, F(connection_metrics), pending, SUM,                 \
	    "Bytes that wait to be sent")                                                         \
	X(connection_channels, GAUGE, F(connection_metrics), channels, m->broker->stats.channels, \
	    "Channels of connections")

static const struct object_metric connection_rows[] = { CONNECTION_METRICS(ROW) };

static bool
connection_is_shown(void *object, struct span *vhost UNUSED)
{
	return client_is_shown(object);
}

static bool
connection_labels(
    const struct mgmt *m UNUSED, const void *object, unsigned row UNUSED, struct metric_text *t)
{
	char name[CLIENT_NAME];

	metric_label(t, "channel", span_str(client_name(object, name)));
	return true;
}

static void
connection_values(const struct mgmt *m UNUSED, void *object, unsigned row UNUSED, double *to)
{
	struct client *c = object;
	const struct session *k;
	struct traffic_stats s;
	uint64_t pending, channels = 0;

	client_traffic(c, &s, &pending);
	LIST_FOREACH (k, &c->sessions, link)
		channels++;
	CONNECTION_METRICS(VALUE)
}

static void
connection_totals(const struct mgmt *m, double *v)
{
	CONNECTION_METRICS(TOTAL)
}

/* ---- exchanges, vhosts ---- */

#define EXCHANGE_METRICS(X)                                                               \
	X(cluster_exchange_name, GAUGE, F(exchange_names), 1, NONE, "An exchange")        \
	X(cluster_exchange_bindings, GAUGE, F(exchange_bindings), x->binding_count, NONE, \
	    "Bindings from an exchange")
#define VHOST_METRICS(X) \
	X(cluster_vhost_status, GAUGE, F(vhost_status), !vh->is_deleted, NONE, "1: the vhost is up")

static const struct object_metric exchange_rows[] = { EXCHANGE_METRICS(ROW) };
static const struct object_metric vhost_rows[] = { VHOST_METRICS(ROW) };

/* The default exchange, whose bindings nobody made, is none of RabbitMQ's rows. */
static bool
exchange_is_shown(void *object, struct span *vhost)
{
	const struct exchange *x = object;

	if (x->is_deleted || x->name_len == 0 || x->vhost->is_deleted)
		return false;
	*vhost = span_str(x->vhost->name);
	return true;
}

static bool
exchange_labels(
    const struct mgmt *m UNUSED, const void *object, unsigned row UNUSED, struct metric_text *t)
{
	const struct exchange *x = object;

	put_names(t, x->vhost, "exchange", span_of(x->name, x->name_len));
	metric_put(t, ",", 1);
	metric_label(t, "type", span_str(exchange_type_name(x->type)));
	return true;
}

static void
exchange_values(const struct mgmt *m UNUSED, void *object, unsigned row UNUSED, double *to)
{
	const struct exchange *x = object;

	EXCHANGE_METRICS(VALUE)
}

static bool
vhost_is_shown(void *object, struct span *vhost)
{
	const struct vhost *vh = object;

	*vhost = span_str(vh->name);
	return !vh->is_deleted;
}

static bool
vhost_labels(
    const struct mgmt *m UNUSED, const void *object, unsigned row UNUSED, struct metric_text *t)
{
	metric_label(t, "vhost", span_str(((const struct vhost *)object)->name));
	return true;
}

static void
vhost_values(const struct mgmt *m UNUSED, void *object, unsigned row UNUSED, double *to)
{
	const struct vhost *vh = object;

	VHOST_METRICS(VALUE)
}

/* ---- all of them ---- */

#define ROWS(of) .metric = of##_rows, .count = COUNT_OF(of##_rows), .values = of##_values
const struct object_metrics object_metrics[] = {
	{ .kind = SERIES_QUEUE,
	    ROWS(queue),
	    .is_shown = queue_is_shown,
	    .labels = queue_labels,
	    .totals = queue_totals,
	    .has_sums = true },
	{ .kind = SERIES_CHANNEL,
	    ROWS(channel),
	    .is_shown = channel_is_shown,
	    .labels = channel_labels,
	    .totals = channel_totals,
	    .has_sums = true },
	{ .kind = SERIES_CHANNEL,
	    ROWS(share),
	    .is_shown = channel_is_shown,
	    .rows = share_count,
	    .labels = share_labels,
	    .totals = share_totals },
	{ .kind = SERIES_CHANNEL,
	    ROWS(traffic),
	    .is_shown = channel_is_shown,
	    .labels = traffic_labels,
	    .totals = traffic_totals },
	{ .kind = SERIES_CONNECTION,
	    ROWS(connection),
	    .is_shown = connection_is_shown,
	    .labels = connection_labels,
	    .totals = connection_totals,
	    .has_sums = true },
	{ .kind = SERIES_EXCHANGE,
	    ROWS(exchange),
	    .is_shown = exchange_is_shown,
	    .labels = exchange_labels },
	{ .kind = SERIES_VHOST, ROWS(vhost), .is_shown = vhost_is_shown, .labels = vhost_labels },
};
const unsigned object_metrics_count = COUNT_OF(object_metrics);
static_assert(COUNT_OF(queue_rows) <= OBJECT_METRICS_MAX, "the most");
