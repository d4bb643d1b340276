/* SPDX-License-Identifier: Apache-2.0
 * What hermes bench was asked for. */
#ifndef CLI_BENCH_OPTIONS_H
#define CLI_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "cli/cli.h"

enum {
	BENCH_SIZES_MAX = 16,
	BENCH_CLIENTS_MAX = 5000, /* publishers, consumers; a publisher's number travels in 16 bits */
	BENCH_QUEUES_MAX = 5000,
	BENCH_BODY_MAX = 16 << 20,
	BENCH_NAME_SIZE = 64
};

struct bench_options {
	uint64_t publishers, consumers, queues;
	uint64_t size[BENCH_SIZES_MAX]; /* of bodies, used in turn */
	size_t sizes;
	uint64_t confirms;  /* unconfirmed messages of a publisher, at most; 0: no confirms */
	uint64_t prefetch;  /* 0: no limit */
	uint64_t ack;       /* acknowledge every n messages; 0: the node does not wait for it */
	uint64_t rate;      /* messages a second of all publishers; 0: as fast as it goes */
	uint64_t count;     /* messages of all publishers; 0: by time */
	uint64_t in_flight; /* published and not delivered, at most; 0: any */
	uint64_t duration_ms, warmup_ms, drain_ms; /* duration_ms 0: by count */
	const char *queue_type, *exchange_type;    /* NULL: none said; the default exchange */
	bool persistent, durable, verify, json;
	bool backlog;               /* consumers begin when all is published */
	bool to_all;                /* each message goes to each queue */
	char name[BENCH_NAME_SIZE]; /* what the names of queues and exchange begin with: nobody else has it */
};

/* CLI_OK or CLI_USAGE, and it was said. */
int bench_options_read(struct bench_options *o, struct cli *c) MUSTUSE;

/* "NAME.3": the name of a queue, and the key that leads to it. */
void bench_queue_name(const struct bench_options *o, uint64_t queue, char out[BENCH_NAME_SIZE]);

/* How many queues a message reaches. */
static inline uint64_t
bench_copies(const struct bench_options *o)
{
	return o->to_all ? o->queues : 1;
}

/* The body of a publisher's message with this number has so many bytes. */
static inline uint64_t
bench_size(const struct bench_options *o, uint64_t seq)
{
	return o->size[o->sizes == 1 ? 0 : seq % o->sizes];
}

#endif
