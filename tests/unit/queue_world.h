/* SPDX-License-Identifier: Apache-2.0
 * A broker without sockets for tests and measurements: clients, sessions, and consumers whose deliveries are kept. */
#ifndef TESTS_QUEUE_WORLD_H
#define TESTS_QUEUE_WORLD_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/msg.h"
#include "broker/permission.h"
#include "broker/queue_priv.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/user.h"
#include "broker/vhost.h"

struct world {
	struct config cfg;
	struct wheel *wheel;
	struct broker *broker;
	struct vhost *vhost;
};

struct delivery {
	uint64_t tag, number; /* number: what the message was made with */
	bool redelivered;
	struct consumer *consumer;
};

/* A session that keeps what it gets. */
struct peer {
	struct session session; /* first */
	struct delivery *got;
	size_t count, cap;
	unsigned cancelled;
};

static inline void
world_init(struct world *w)
{
	*w = (struct world){ .cfg = { .unacknowledged = 65535 } };
	w->wheel = wheel_new(1000);
	w->broker = broker_new(&w->cfg, w->wheel, 1000);
	w->vhost = vhost_find(w->broker, SPAN_LIT("/"));
}

static inline void
world_fini(struct world *w)
{
	broker_free(&w->broker);
	wheel_free(&w->wheel);
}

/* Time passes; what is due fires. */
static inline void
world_at(struct world *w, uint64_t now_ms)
{
	w->broker->now_ms = now_ms;
	while (wheel_run(w->wheel, now_ms, 100) == 100)
		continue;
	while (queues_tidy(w->broker))
		continue;
}

static inline void
world_turn(struct world *w)
{
	while (broker_run(w->broker))
		continue;
	broker_reap(w->broker);
}

static inline void
world_client(struct world *w, struct client *c)
{
	memset(c, 0, sizeof *c);
	client_init(c, w->broker);
	client_set_user(c, user_find(w->broker, SPAN_LIT("guest")));
	client_set_vhost(c, w->vhost);
}

/* Body: the number, then zeros up to body_size (at least 8). */
static inline struct msg *
world_msg(uint64_t number, uint32_t body_size)
{
	static const uint8_t meta[] = { 0, 1, 'k', 0xCE, 2, 0, 0, 0, 0, 0, 14, 0, 60, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0xCE };
	size_t n = msg_wire_size(sizeof meta, body_size);
	struct msg *m = msg_try_new(n);

	assert(m != NULL && body_size >= 8);
	memcpy(m->wire, meta, sizeof meta);
	memset(m->wire + sizeof meta, 0, n - sizeof meta);
	memcpy(m->wire + sizeof meta + 7, &number, sizeof number);
	m->names_len = 4;
	m->meta_len = sizeof meta;
	m->body_size = body_size;
	return m;
}

static inline uint64_t
msg_number(const struct msg *m)
{
	uint64_t n;

	memcpy(&n, msg_body(m), sizeof n);
	return n;
}

static inline void
peer_deliver(struct consumer *k, const struct entry *e, uint64_t tag)
{
	struct peer *p = (struct peer *)(void *)k->session;

	if (p->count == p->cap) {
		p->cap = p->cap > 0 ? p->cap * 2 : 64;
		p->got = xrealloc(p->got, p->cap * sizeof *p->got);
	}
	p->got[p->count++] =
	    (struct delivery){ tag, msg_number(e->m), (e->seq_flags & ENTRY_REDELIVERED) != 0, k };
}

static inline void
peer_cancelled(struct consumer *k)
{
	((struct peer *)(void *)k->session)->cancelled++;
}

static inline void
peer_init(struct peer *p, struct client *c)
{
	static const struct session_ops ops = { peer_deliver, peer_cancelled, NULL };

	*p = (struct peer){ 0 };
	session_init(&p->session, c, &ops);
}

static inline void
peer_fini(struct peer *p)
{
	session_fini(&p->session);
	free(p->got);
	p->got = NULL;
	p->count = p->cap = 0;
}

static inline struct queue *
world_queue(struct world *w, const char *name)
{
	struct queue_spec spec = { .name = span_str(name) };
	struct queue *q = NULL;
	const struct error *e = queue_declare(w->vhost, &spec, NULL, &q);

	assert(e == NULL);
	(void)e;
	return q;
}

/* x-max-priority 0: the argument is left out. */
static inline struct queue *
world_priority_queue(struct world *w, const char *name, bool durable, uint8_t max)
{
	struct table_writer tw;
	struct table *t;
	struct queue_spec spec = { .name = span_str(name), .durable = durable };
	struct field f = { .name = SPAN_LIT("x-max-priority"), .kind = 'I', .integer = max };
	struct queue *q = NULL;

	table_writer_init(&tw, 4096);
	if (max > 0)
		table_put_field(&tw, &f);
	spec.arguments = t = table_from_raw(span_of(tw.p, tw.n));
	table_writer_fini(&tw);
	if (queue_declare(w->vhost, &spec, NULL, &q) != NULL)
		abort();
	table_free(&t);
	return q;
}

static inline struct msg *
world_priority_msg(uint64_t number, uint32_t body_size, uint8_t priority)
{
	struct msg *m = world_msg(number, body_size);

	m->prio = priority;
	return m;
}

static inline const struct error *
peer_try_consume(struct peer *p, struct queue *q, const char *tag, bool no_ack, bool exclusive,
    int32_t priority, struct consumer **out)
{
	uint8_t prefix[12 + 255] = { 1 };
	struct consumer_spec spec = {
		.tag = span_str(tag), .no_ack = no_ack, .exclusive = exclusive, .priority = priority
	};

	prefix[11] = (uint8_t)spec.tag.n;
	memcpy(prefix + 12, spec.tag.p, spec.tag.n);
	spec.prefix = span_of(prefix, 12 + spec.tag.n);
	return session_consume(&p->session, q, &spec, out);
}

static inline struct consumer *
peer_consume(struct peer *p, struct queue *q, const char *tag, bool no_ack)
{
	struct consumer *k = NULL;
	const struct error *e = peer_try_consume(p, q, tag, no_ack, false, 0, &k);

	assert(e == NULL);
	(void)e;
	return k;
}

#endif
