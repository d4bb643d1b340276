/* SPDX-License-Identifier: Apache-2.0
 * What the broker floor takes for a message, in nanoseconds of the core thread, without protocol and kernel:
 *	tests/bench/bench_queue [MESSAGES]
 * A delivery copies the message's bytes, as the endpoint does. Each figure is the best of five rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/attr.h"
#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/slab.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/msg.h"
#include "broker/publish.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"

enum {
	ROUNDS = 5,
	META = 40,
	BACKLOG = 100000,
	BACKLOG_LEVELS = 2560000,
	HELD = 65535,
	FAN_OUT = 10
};

static struct config cfg = { .unacknowledged = 1000000 };
static struct broker *broker;
static struct vhost *vhost;
static struct client client;
static struct session session;
static uint64_t last_tag;
static uint8_t priority; /* of the messages that are made */
static uint8_t output[64 << 10];
static size_t output_at;

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void
on_deliver(struct consumer *k, const struct entry *e, uint64_t tag)
{
	size_t n = msg_wire_size(e->m->meta_len, e->m->body_size);

	if (output_at + k->prefix_len + n > sizeof output)
		output_at = 0;
	memcpy(output + output_at, k->prefix, k->prefix_len);
	memcpy(output + output_at + k->prefix_len, e->m->wire, n);
	output_at += k->prefix_len + n;
	last_tag = tag;
}

static void
on_cancelled(struct consumer *k)
{
	(void)k;
}

static struct msg *
make(uint32_t body)
{
	static uint8_t input[16 << 10];
	size_t n = msg_wire_size(META, body);
	struct msg *m = msg_try_new(n);

	if (m == NULL)
		abort();
	memcpy(m->wire, input, n);
	m->names_len = 4;
	m->meta_len = META;
	m->prio = priority;
	m->body_size = body;
	return m;
}

static struct queue *
declare(const char *name)
{
	struct queue_spec spec = { .name = span_str(name) };
	struct queue *q;

	if (queue_declare(vhost, &spec, NULL, &q) != NULL)
		abort();
	return q;
}

static struct queue *
declare_with_priorities(const char *name, uint8_t max)
{
	struct field f = { .name = SPAN_LIT("x-max-priority"), .kind = 'I', .integer = max };
	struct queue_spec spec = { .name = span_str(name) };
	struct table_writer w;
	struct table *t;
	struct queue *q;

	table_writer_init(&w, 100);
	table_put_field(&w, &f);
	spec.arguments = t = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
	if (queue_declare(vhost, &spec, NULL, &q) != NULL)
		abort();
	table_free(&t);
	return q;
}

static struct consumer *
consume(struct queue *q, bool no_ack)
{
	static const uint8_t prefix[13] = { [11] = 1, [12] = 't' };
	struct consumer_spec spec = { .prefix = span_of(prefix, sizeof prefix),
		.tag = span_of(prefix + 12, 1),
		.no_ack = no_ack };
	struct consumer *k;

	if (session_consume(&session, q, &spec, &k) != NULL)
		abort();
	return k;
}

static void
give(struct queue *q, uint32_t n_queues, uint32_t body)
{
	static struct queue *to[FAN_OUT];
	struct route route = { .count = n_queues, .queue = to };
	struct store_wait wait;

	to[0] = q;
	(void)publish_deliver(broker, make(body), &route, 0, &wait);
}

static void
must(const struct error *e)
{
	if (e != NULL) {
		fprintf(stderr, "%s\n", e->text);
		exit(1);
	}
}

static void
settle_all(enum settle how)
{
	must(session_settle(&session, 0, true, how));
}

static void
turns(void)
{
	while (broker_run(broker))
		continue;
	broker_reap(broker);
}

/* ---- the cases: each returns nanoseconds a message ---- */

static double
at_once(unsigned n, uint32_t body, unsigned ack_every)
{
	struct queue *q = declare("at-once");
	double t;

	(void)consume(q, ack_every == 0);
	t = now_ns();
	for (unsigned i = 1; i <= n; i++) {
		give(q, 1, body);
		if (ack_every != 0 && i % ack_every == 0)
			must(session_settle(&session, last_tag, true, SETTLE_ACK));
		if (i % 64 == 0)
			(void)broker_run(broker);
	}
	t = (now_ns() - t) / n;
	settle_all(SETTLE_ACK);
	queue_remove(q);
	turns();
	return t;
}

static double
each_acked(unsigned n, uint32_t body, unsigned prefetch)
{
	struct queue *q = declare("each");
	uint64_t acked;
	double t;

	session.prefetch = prefetch;
	(void)consume(q, false);
	acked = last_tag = session.next_tag - 1;
	t = now_ns();
	for (unsigned i = 1; i <= n; i++) {
		give(q, 1, body);
		if (i % 64 == 0) {
			while (acked < last_tag)
				must(session_settle(&session, ++acked, false, SETTLE_ACK));
			(void)broker_run(broker);
		}
	}
	t = (now_ns() - t) / n;
	session.prefetch = 0;
	settle_all(SETTLE_ACK);
	queue_remove(q);
	turns();
	return t;
}

/* Of so many priorities, each message of another one than that before it; 1: none. */
static void
backlog(unsigned n, uint32_t body, uint32_t levels, double *fill, double *drain)
{
	struct queue *q = levels > 1 ? declare_with_priorities("backlog", (uint8_t)(levels - 1))
	                             : declare("backlog");
	double t = now_ns();

	for (unsigned i = 0; i < n; i++) {
		priority = (uint8_t)(i % levels);
		give(q, 1, body);
	}
	priority = 0;
	*fill = (now_ns() - t) / n;
	t = now_ns();
	(void)consume(q, true);
	turns();
	*drain = (now_ns() - t) / n;
	if (q->ready != 0)
		abort();
	queue_remove(q);
	turns();
}

static double
fan_out(unsigned n, uint32_t body)
{
	struct queue *q[FAN_OUT];
	struct route route = { .count = FAN_OUT, .queue = q };
	struct store_wait wait;
	char name[32];
	double t;

	for (int i = 0; i < FAN_OUT; i++) {
		snprintf(name, sizeof name, "fan-%d", i);
		q[i] = declare(name);
		(void)consume(q[i], true);
	}
	t = now_ns();
	for (unsigned i = 0; i < n / FAN_OUT; i++)
		(void)publish_deliver(broker, make(body), &route, 0, &wait);
	t = (now_ns() - t) / n;
	for (int i = 0; i < FAN_OUT; i++)
		queue_remove(q[i]);
	turns();
	return t;
}

/* Milliseconds for giving HELD unacknowledged messages back in one go, and for delivering all of them again. */
static void
give_back(unsigned consumers, double *back, double *again)
{
	struct queue *q = declare("back");
	double t;

	for (unsigned i = 0; i < consumers; i++)
		(void)consume(q, false);
	for (unsigned i = 0; i < HELD; i++)
		give(q, 1, 16);
	client.output_full = true; /* nobody takes them at once */
	t = now_ns();
	session_recover(&session);
	*back = (now_ns() - t) / 1e6;
	t = now_ns();
	client_output_room(&client);
	turns();
	*again = (now_ns() - t) / 1e6;
	if (q->unacked != HELD)
		abort();
	settle_all(SETTLE_ACK);
	queue_remove(q);
	turns();
}

static double
least(double a, double b)
{
	return a == 0 || b < a ? b : a;
}

int
main(int argc, char **argv)
{
	static const struct session_ops ops = { on_deliver, on_cancelled, NULL };
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000000;
	double r[16] = { 0 };
	struct wheel *wheel;

	mem_init();
	log_set_level(LOG_WARNING);
	wheel = wheel_new(1000);
	broker = broker_new(&cfg, wheel, 1000);
	vhost = vhost_find(broker, SPAN_LIT("/"));
	client_init(&client, broker);
	session_init(&session, &client, &ops);
	for (int i = 0; i < ROUNDS; i++) {
		double a, b;

		r[0] = least(r[0], at_once(n, 16, 0));
		r[1] = least(r[1], at_once(n, 256, 0));
		r[2] = least(r[2], at_once(n, 16, 100));
		r[3] = least(r[3], at_once(n, 256, 100));
		r[4] = least(r[4], each_acked(n, 16, 1000));
		r[5] = least(r[5], fan_out(n, 16));
		backlog(BACKLOG, 256, 1, &a, &b);
		r[6] = least(r[6], a);
		r[7] = least(r[7], b);
		backlog(BACKLOG, 256, 10, &a, &b);
		r[12] = least(r[12], a);
		r[13] = least(r[13], b);
		backlog(BACKLOG_LEVELS, 16, 256, &a, &b);
		r[14] = least(r[14], a);
		r[15] = least(r[15], b);
		give_back(1, &a, &b);
		r[8] = least(r[8], a);
		r[9] = least(r[9], b);
		give_back(7, &a, &b);
		r[10] = least(r[10], a);
		r[11] = least(r[11], b);
	}
	printf("publish -> deliver, no ack, 16 B          %6.1f ns\n", r[0]);
	printf("publish -> deliver, no ack, 256 B         %6.1f ns\n", r[1]);
	printf("publish -> deliver -> ack 100, 16 B       %6.1f ns\n", r[2]);
	printf("publish -> deliver -> ack 100, 256 B      %6.1f ns\n", r[3]);
	printf("publish -> deliver -> ack each, 16 B      %6.1f ns\n", r[4]);
	printf("fan-out to 10, 16 B, a delivery           %6.1f ns\n", r[5]);
	printf("backlog of 100,000 of 256 B: fill         %6.1f ns\n", r[6]);
	printf("backlog of 100,000 of 256 B: drain        %6.1f ns\n", r[7]);
	printf("  of 10 priorities: fill                  %6.1f ns\n", r[12]);
	printf("  of 10 priorities: drain                 %6.1f ns\n", r[13]);
	printf("256 priorities of 10,000 of 16 B: fill    %6.1f ns\n", r[14]);
	printf("256 priorities of 10,000 of 16 B: drain   %6.1f ns\n", r[15]);
	printf("65,535 given back in one go               %6.2f ms\n", r[8]);
	printf("  and delivered again                     %6.2f ms\n", r[9]);
	printf("65,535 of 7 consumers given back          %6.2f ms\n", r[10]);
	printf("  and delivered again                     %6.2f ms\n", r[11]);
	session_fini(&session);
	client_fini(&client);
	broker_free(&broker);
	wheel_free(&wheel);
	return 0;
}
