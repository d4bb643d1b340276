/* SPDX-License-Identifier: Apache-2.0
 * What a node uses of its machine: gauges, and how fast they move. */
#ifndef MGMT_NODES_H
#define MGMT_NODES_H

#include <stdbool.h>
#include <stdint.h>

struct mgmt;
struct span;

/* Names as RabbitMQ has them. Processes are Erlang's way to count; here each connection, channel and queue is one. */
#define NODE_GAUGES(X) X(mem_used) X(fd_used) X(sockets_used) X(proc_used) X(disk_free)

struct node_gauges {
#define X(name) uint64_t name;
	NODE_GAUGES(X)
#undef X
};

/* The one before the last look at the gauges, and the last, which is at least NODE_SAMPLE_MS older than the next. */
enum { NODE_SAMPLE_MS = 5000 };
struct node_samples {
	struct node_gauges sample[2];
	uint64_t at_ms[2];
};

void node_gauges(const struct mgmt *m, struct node_gauges *out);

/* How far they may go; disk_free: the least. */
struct node_limits {
	uint64_t fd, sockets, proc, mem, disk_free;
};
void node_limits(const struct mgmt *m, struct node_limits *out);
/* Is it the name of this node? rabbit@HOST is one, too: checks are written that know of no other (check_rabbitmq_server
 * of Nagios). */
bool node_is(const struct mgmt *m, struct span name);

#endif
