/* SPDX-License-Identifier: Apache-2.0
 * The ends of very much: what the longest turn takes of the core thread, and all of it, for half as many and for all:
 *	tests/bench/bench_ends [QUEUES [CONSUMERS]]
 * A turn here is what the node does of it: a step of the end, the work that follows, what is freed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/msg.h"
#include "broker/queue.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "net/loop.h"

static struct config cfg = { .unacknowledged = 65535 };
static struct wheel *wheel;
static struct broker *broker;
static struct vhost *vhost;
static struct client client;
static struct session session;
static double longest, sum;
static unsigned turns;

static double
cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void
on_deliver(struct consumer *k, const struct entry *e, uint64_t tag)
{
	(void)k;
	(void)e;
	(void)tag;
}

static void
on_cancelled(struct consumer *k)
{
	(void)k;
}

/* Calls `step` once a turn until it says that all is done. */
static void
run(const char *what, unsigned n, bool (*step)(void))
{
	bool done;

	longest = sum = 0;
	turns = 0;
	do {
		double from = cpu_ms(), took;

		done = step();
		while (done && broker_run(broker))
			continue;
		if (!done)
			(void)broker_run(broker);
		broker_reap(broker);
		took = cpu_ms() - from;
		sum += took;
		longest = took > longest ? took : longest;
		turns++;
	} while (!done);
	printf("%-44s %8u: longest turn %7.2f ms, %6u turns, %8.1f ms in all\n", what, n, longest,
	    turns, sum);
}

static void
queues(unsigned n, bool exclusive, const struct table *arguments, bool with_message)
{
	for (unsigned i = 0; i < n; i++) {
		char name[32];
		struct queue *q;
		struct queue_spec spec = { .exclusive = exclusive, .arguments = arguments };

		snprintf(name, sizeof name, "queue-%u", i);
		spec.name = span_str(name);
		if (queue_declare(vhost, &spec, exclusive ? &client : NULL, &q) != NULL)
			abort();
		if (with_message) {
			struct msg *m = msg_try_new(msg_wire_size(40, 16));

			memset(m->wire, 0, msg_wire_size(40, 16));
			m->names_len = 4;
			m->meta_len = 40;
			m->body_size = 16;
			queue_publish(q, m, 0);
		}
	}
}

static bool
leave(void)
{
	return client_leave(&client);
}

static void
exclusive_queues(unsigned n, bool with_message)
{
	queues(n, true, NULL, with_message);
	run(with_message ? "exclusive queues with a message each" : "exclusive queues", n, leave);
	client.is_leaving = false;
}

static bool
expire(void)
{
	(void)wheel_run(wheel, broker->now_ms, LOOP_TIMERS);
	return broker->stats.queues == 0;
}

static void
expiring_queues(unsigned n)
{
	struct table_writer tw;
	struct field f = { .name = SPAN_LIT("x-expires"), .kind = 'I', .integer = 60000 };
	struct table *arguments;

	table_writer_init(&tw, 4096);
	table_put_field(&tw, &f);
	arguments = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	queues(n, false, arguments, false);
	table_free(&arguments);
	broker->now_ms += 60000;
	run("queues that expire in one millisecond", n, expire);
}

static bool
end_session(void)
{
	return session_end(&session);
}

static void
consumers(unsigned n, unsigned of_queues)
{
	static const struct session_ops ops = { on_deliver, on_cancelled, NULL };
	uint8_t prefix[12 + 8] = { 1 };

	session_init(&session, &client, &ops);
	queues(of_queues, false, NULL, false);
	for (unsigned i = 0; i < n; i++) {
		char tag[16], name[32];
		struct consumer_spec spec = { 0 };
		struct consumer *k;

		snprintf(tag, sizeof tag, "%08u", i);
		snprintf(name, sizeof name, "queue-%u", i % of_queues);
		memcpy(prefix + 12, tag, 8);
		prefix[11] = 8;
		spec.tag = span_of(prefix + 12, 8);
		spec.prefix = span_of(prefix, sizeof prefix);
		if (session_consume(&session, queue_find(vhost, span_str(name)), &spec, &k) != NULL)
			abort();
	}
	run(of_queues == 1 ? "consumers of one queue" : "consumers of a thousand queues", n,
	    end_session);
	for (unsigned i = 0; i < of_queues; i++) {
		char name[32];

		snprintf(name, sizeof name, "queue-%u", i);
		queue_remove(queue_find(vhost, span_str(name)));
	}
	broker_reap(broker);
}

int
main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	unsigned k = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 675000;

	mem_init();
	log_set_level(LOG_WARNING);
	wheel = wheel_new(1000);
	broker = broker_new(&cfg, wheel, 1000);
	vhost = vhost_find(broker, SPAN_LIT("/"));
	client_init(&client, broker);
	client_set_user(&client, user_find(broker, SPAN_LIT("guest")));
	client_set_vhost(&client, vhost);
	for (unsigned part = 2; part > 0; part--) {
		exclusive_queues(n / part, false);
		exclusive_queues(n / part, true);
		expiring_queues(n / part);
		consumers(k / part, 1);
		consumers(k / part, 1000);
	}
	client_fini(&client);
	broker_free(&broker);
	wheel_free(&wheel);
	return 0;
}
