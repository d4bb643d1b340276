/* SPDX-License-Identifier: Apache-2.0
 * Nanoseconds per publish_route: the last place again (memo), one of 1,000 keys in turn (cache), keys that no cache has
 * (topic trie with 10,000 patterns), one default-exchange queue of 100 in turn; and bindings made and dropped. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/config.h"
#include "base/config_keys.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/permission.h"
#include "broker/publish.h"
#include "broker/queue.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "tests/unit/user_world.h"

enum { MESSAGES = 1000, ROUNDS = 2000, BINDINGS = 10000 };

static struct broker *b;
static struct vhost *vh;
static struct session session;
static struct publish_memo memo;
static const struct session_ops no_ops;

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void
fine(const struct error *e)
{
	if (e != NULL) {
		fprintf(stderr, "%s\n", e->text);
		exit(1);
	}
}

static struct msg *
make(const char *exchange, const char *key)
{
	size_t x = strlen(exchange), k = strlen(key), names = x + k + 3, meta = names + 22;
	struct msg *m = msg_try_new(meta);

	if (m == NULL)
		exit(1);
	memset(m->wire, 0, meta);
	m->wire[0] = (uint8_t)x;
	memcpy(m->wire + 1, exchange, x);
	m->wire[1 + x] = (uint8_t)k;
	memcpy(m->wire + 2 + x, key, k);
	m->names_len = (uint16_t)names;
	m->meta_len = (uint32_t)meta;
	return m;
}

static void
run(const char *what, struct msg **m, unsigned messages, unsigned rounds)
{
	const struct route *r;
	uint64_t due, queues = 0, misses = b->stats.route_cache_misses;
	struct props pr;
	double t;
	unsigned i, k;

	for (i = 0; i < messages; i++) {
		if (props_scan(msg_props(m[i]), &pr) != 0)
			exit(1);
		fine(publish_route(&session, &memo, m[i], &pr, &r, &due));
	}
	t = now_ns();
	for (k = 0; k < rounds; k++) {
		for (i = 0; i < messages; i++) {
			fine(publish_route(&session, &memo, m[i], &pr, &r, &due));
			queues += r->count;
		}
	}
	t = (now_ns() - t) / ((double)rounds * messages);
	printf("%-40s %7.1f ns, %.2f queues, %.3f misses\n", what, t,
	    (double)queues / ((double)rounds * messages),
	    (double)(b->stats.route_cache_misses - misses) / ((double)rounds * messages));
}

static struct queue *
queue(const char *name)
{
	struct queue_spec spec = { .name = span_str(name) };
	struct queue *q;

	fine(queue_declare(vh, &spec, NULL, &q));
	return q;
}

static struct exchange *
exchange(const char *name, const char *type)
{
	struct exchange_spec spec = { .name = span_str(name), .type = span_str(type) };
	struct exchange *x;

	fine(exchange_declare(vh, &spec, &x));
	return x;
}

static void
bindings(struct exchange *x, const char *what)
{
	struct queue *q = queue("many");
	char key[40];
	double t = now_ns(), u;
	int i;

	for (i = 0; i < BINDINGS; i++) {
		snprintf(key, sizeof key, "a%d.*.b.#.%d", i % 100, i);
		fine(binding_add(x, q, NULL, span_str(key), NULL));
	}
	u = now_ns();
	printf("%-40s %7.1f ns to make", what, (u - t) / BINDINGS);
	queue_remove(q);
	printf(", %.1f ns to drop\n", (now_ns() - u) / BINDINGS);
}

int
main(void)
{
	static struct config cfg;
	static struct client client;
	static struct msg *m[MESSAGES];
	struct exchange *x;
	struct queue *q;
	char key[60];
	int i;

	mem_init();
	log_set_level(LOG_WARNING);
	config_init(&cfg);
	config_complete(&cfg);
	b = broker_new(&cfg, wheel_new(1000), 1000);
	vh = vhost_add(b, "bench");
	client_init(&client, b);
	client_set_user(&client, user_add(b, "bench", "bench", "", false));
	client_set_vhost(&client, vh);
	fine(permission_set(client.user, vh, ".*", ".*", ".*"));
	session_init(&session, &client, &no_ops);
	q = queue("q");
	x = exchange("x", "topic");
	fine(binding_add(x, q, NULL, SPAN_LIT("k.#"), NULL));
	for (i = 0; i < BINDINGS; i++) {
		snprintf(key, sizeof key, "a%d.*.b.#.%d", i % 100, i);
		fine(binding_add(x, q, NULL, span_str(key), NULL));
	}
	m[0] = make("x", "k.a.b.0");
	run("memo", m, 1, ROUNDS * MESSAGES);
	for (i = 0; i < MESSAGES; i++) {
		snprintf(key, sizeof key, "k.a.b.%d", i);
		m[i] = make("x", key);
	}
	run("cache, 1,000 keys", m, MESSAGES, ROUNDS);
	for (i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "q%d", i);
		(void)queue(key);
		m[i] = make("", key);
	}
	run("default exchange, 100 queues", m, 100, ROUNDS * 10);
	bindings(exchange("t", "topic"), "bindings, topic");
	bindings(exchange("d", "direct"), "bindings, direct");
	bindings(exchange("h", "headers"), "bindings, headers");
	for (i = 0; i < MESSAGES; i++)
		m[i] = NULL;
	for (i = 0; i < 20; i++) {
		double t = now_ns();
		const struct route *r = NULL;
		int k;

		for (k = 0; k < MESSAGES; k++) {
			snprintf(key, sizeof key, "a%d.x.b.y.%d.%d", k % 100, i, k);
			r = route_find(x, span_str(key), span_of(NULL, 0));
		}
		if (i == 19)
			printf("%-40s %7.1f ns, %u queues\n", "miss, 10,001 patterns",
			    (now_ns() - t) / MESSAGES, r->count);
	}
	return 0;
}
