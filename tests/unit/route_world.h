/* SPDX-License-Identifier: Apache-2.0
 * A broker with one vhost, for tests of tables, exchanges and routes; short hands for tables. */
#ifndef TESTS_ROUTE_WORLD_H
#define TESTS_ROUTE_WORLD_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/config_keys.h"
#include "base/mem.h"
#include "base/wheel.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/table.h"
#include "broker/vhost.h"

struct world {
	struct config cfg;
	struct wheel *wheel;
	struct broker *b;
	struct vhost *vh;
};

static inline void
world_init(struct world *w)
{
	memset(w, 0, sizeof *w);
	config_init(&w->cfg);
	config_complete(&w->cfg);
	w->wheel = wheel_new(1000000);
	w->b = broker_new(&w->cfg, w->wheel, 1000000);
	w->vh = vhost_add(w->b, "test");
	ck_assert_ptr_nonnull(w->vh);
}

static inline void
world_fini(struct world *w)
{
	broker_free(&w->b);
	wheel_free(&w->wheel);
	config_fini(&w->cfg);
}

static inline struct exchange *
world_exchange(
    struct world *w, const char *name, const char *type, bool auto_delete, const char *alternate)
{
	struct exchange_spec spec = {
		.name = span_str(name), .type = span_str(type), .auto_delete = auto_delete
	};
	struct table_writer t;
	struct table *arguments = NULL;
	struct exchange *x = NULL;

	table_writer_init(&t, 1000);
	if (alternate != NULL)
		table_put_string(&t, "alternate-exchange", alternate);
	spec.arguments = arguments = table_from_raw(span_of(t.p, t.n));
	ck_assert_ptr_null(exchange_declare(w->vh, &spec, &x));
	table_free(&arguments);
	table_writer_fini(&t);
	return x;
}

static inline struct queue *
world_queue(struct world *w, const char *name)
{
	struct queue_spec spec = { .name = span_str(name) };
	struct queue *q = NULL;

	ck_assert_ptr_null(queue_declare(w->vh, &spec, NULL, &q));
	return q;
}

static inline void
world_bind(struct exchange *source, struct queue *q, struct exchange *x, const char *key)
{
	ck_assert_ptr_null(binding_add(source, q, x, span_str(key), NULL));
}

/* A message without body. props: from the flags on. */
static inline struct msg *
world_message(const char *exchange, const char *key, struct span props)
{
	size_t x = strlen(exchange), k = strlen(key), names = x + k + 3,
	       meta = names + 7 + 12 + props.n + 1;
	struct msg *m = msg_try_new(meta);
	uint8_t *p = m->wire;

	ck_assert_ptr_nonnull(m);
	memset(p, 0, meta);
	*p++ = (uint8_t)x;
	memcpy(p, exchange, x);
	p += x;
	*p++ = (uint8_t)k;
	memcpy(p, key, k);
	p[k] = 0xce;
	memcpy(m->wire + names + 19, props.p, props.n);
	m->wire[meta - 1] = 0xce;
	m->names_len = (uint16_t)names;
	m->meta_len = (uint32_t)meta;
	return m;
}

static inline bool
route_has(const struct route *r, const struct queue *q)
{
	for (uint32_t i = 0; i < r->count; i++) {
		if (r->queue[i] == q)
			return true;
	}
	return false;
}

static uint64_t world_seed = 88172645463325252u;

static inline uint32_t
world_random(uint32_t below)
{
	world_seed ^= world_seed << 13;
	world_seed ^= world_seed >> 7;
	world_seed ^= world_seed << 17;
	return (uint32_t)(world_seed >> 16) % below;
}

static inline int
run_suite(Suite *s)
{
	SRunner *r = srunner_create(s);
	int failed;

	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}

#endif
