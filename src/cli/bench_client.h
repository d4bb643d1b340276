/* SPDX-License-Identifier: Apache-2.0
 * The two sides of a run of hermes bench, and what they share: they do the work that one connection asks for; when it is
 * done is the business of bench_load. */
#ifndef CLI_BENCH_CLIENT_H
#define CLI_BENCH_CLIENT_H

#include "cli/bench_conn.h"
#include "cli/bench_message.h"
#include "cli/bench_options.h"
#include "cli/bench_report.h"
#include "cli/bench_verify.h"

struct bench_client;

/* Of a run, warm-up and all. */
struct bench_run {
	const struct bench_options *o;   /* borrowed */
	struct bench_report *r;          /* borrowed: what is measured */
	struct bench_messages *messages; /* owned */
	struct bench_verify *verify;     /* owned; NULL: nothing is verified */
	struct bench_client *client;     /* owned: publishers, then consumers */
	int64_t start_ns;                /* message k is due at start_ns + k / rate */
	int64_t now;                     /* after the latest read */
	bool stopped;                    /* nothing more is published */
	bool full;                       /* a publisher waits for --in-flight */
	uint64_t published, delivered, refused;
	int64_t last_publish, last_confirm, last_delivery; /* ns */
	int64_t progress;                                  /* the latest of confirm and delivery */
};

struct bench_client {
	struct bench_conn *c;  /* owned */
	struct bench_run *run; /* borrowed */
	bool is_publisher;
	uint32_t index;

	/* publisher */
	uint64_t seq;         /* of the next message */
	uint64_t quota;       /* how many in all; UINT64_MAX: any */
	uint64_t low;         /* oldest delivery tag that is not settled; tags are seq + 1 */
	uint64_t outstanding; /* unconfirmed */
	int64_t *sent;        /* owned ring of times, 0: settled; NULL: no confirms */
	uint64_t mask;        /* places of the ring - 1 */
	bool barrier_sent, barrier_back;
	bool held; /* the broker made messages late, not we */

	/* consumer */
	uint32_t queue;
	uint64_t tag; /* the latest */
	uint64_t unacked;
	struct bench_stamp stamp; /* of the message that comes in */
	bool stamped, damaged;
	uint64_t *next; /* owned: by publisher, the lowest number that is in order; NULL: not verified */
};

/* Makes them ready on their connection, waiting for the broker. False: it failed, and was said. */
bool bench_publisher_init(struct bench_client *p) MUSTUSE;
bool bench_consumer_init(struct bench_client *k) MUSTUSE;
/* Of a backlog: now messages may come. Does not wait for the broker. */
void bench_consumer_begin(struct bench_client *k);
void bench_client_fini(struct bench_client *k);

/* Publishes what may be published now. True: more could follow at once. */
bool bench_publisher_work(struct bench_client *p);
/* Is everything sent and confirmed, or, without confirms, taken in by the broker? */
bool bench_publisher_done(struct bench_client *p);

/* Acknowledges; with all, also less than --ack messages. */
void bench_consumer_ack(struct bench_client *k, bool all);

/* Published, not refused, and not delivered. */
uint64_t bench_in_flight(const struct bench_run *run);
/* When message k of all publishers is due, with a rate. */
int64_t bench_due_ns(const struct bench_run *run, uint64_t k);

#endif
