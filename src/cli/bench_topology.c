/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bench_topology.h"

#include <string.h>

#include "cli/bench_stop.h"

/* Nobody deletes the queues of a command that was killed: they go by themselves, an hour after it, and the exchange with
 * the last of them. */
enum { OUT_ROOM = 16 << 10, EXPIRES_MS = 3600 * 1000, DURABLE = 2, AUTO_DELETE = 4 };

/* Brokers take no more than 32 bits. */
static int64_t
expires_ms(const struct bench_options *o)
{
	uint64_t ms = EXPIRES_MS + o->warmup_ms + o->duration_ms;

	return ms < UINT32_MAX ? (int64_t)ms : UINT32_MAX;
}

static bool
declare_exchange(struct bench_conn *c, const struct bench_options *o)
{
	struct wire_out w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_EXCHANGE_DECLARE_METHOD);

	wire_put16(&w, 0);
	wire_put_short(&w, o->name);
	wire_put_short(&w, o->exchange_type);
	wire_put8(&w, (uint8_t)(AUTO_DELETE | (o->durable ? DURABLE : 0)));
	wire_table_end(&w, wire_table_begin(&w));
	return bench_conn_call(c, &w, AMQP_EXCHANGE_DECLARE_OK_METHOD);
}

static bool
declare_queue(struct bench_conn *c, const struct bench_options *o, const char *name)
{
	struct wire_out w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_QUEUE_DECLARE_METHOD);
	size_t table;

	wire_put16(&w, 0);
	wire_put_short(&w, name);
	wire_put8(&w, o->durable ? DURABLE : 0);
	table = wire_table_begin(&w);
	if (o->queue_type != NULL)
		wire_entry_text(&w, "x-queue-type", o->queue_type);
	if (o->queue_type == NULL || strcmp(o->queue_type, "stream") != 0)
		wire_entry_number(&w, "x-expires", expires_ms(o));
	wire_table_end(&w, table);
	return bench_conn_call(c, &w, AMQP_QUEUE_DECLARE_OK_METHOD);
}

static bool
bind_queue(struct bench_conn *c, const struct bench_options *o, const char *name)
{
	struct wire_out w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_QUEUE_BIND_METHOD);

	wire_put16(&w, 0);
	wire_put_short(&w, name);
	wire_put_short(&w, o->name);
	wire_put_short(&w, name);
	wire_put8(&w, 0);
	wire_table_end(&w, wire_table_begin(&w));
	return bench_conn_call(c, &w, AMQP_QUEUE_BIND_OK_METHOD);
}

bool
bench_topology_make(struct bench_broker *b, const struct bench_options *o)
{
	struct bench_conn *c = bench_conn_open(b, OUT_ROOM);
	bool fine = c != NULL && (o->exchange_type == NULL || declare_exchange(c, o));

	for (uint64_t i = 0; i < o->queues && fine && !bench_stop_asked(); i++) {
		char name[BENCH_NAME_SIZE];

		bench_queue_name(o, i, name);
		fine = declare_queue(c, o, name) &&
		       (o->exchange_type == NULL || bind_queue(c, o, name));
	}
	bench_conn_close(&c);
	return fine;
}

static bool
delete_queue(struct bench_conn *c, const char *name)
{
	struct wire_out w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_QUEUE_DELETE_METHOD);

	wire_put16(&w, 0);
	wire_put_short(&w, name);
	wire_put8(&w, 0);
	return bench_conn_call(c, &w, AMQP_QUEUE_DELETE_OK_METHOD);
}

static bool
delete_exchange(struct bench_conn *c, const char *name)
{
	struct wire_out w = bench_conn_begin(c, BENCH_CHANNEL, AMQP_EXCHANGE_DELETE_METHOD);

	wire_put16(&w, 0);
	wire_put_short(&w, name);
	wire_put8(&w, 0);
	return bench_conn_call(c, &w, AMQP_EXCHANGE_DELETE_OK_METHOD);
}

bool
bench_topology_remove(struct bench_broker *b, const struct bench_options *o)
{
	struct bench_conn *c = bench_conn_open(b, OUT_ROOM);
	bool fine = c != NULL && (o->exchange_type == NULL || delete_exchange(c, o->name));

	for (uint64_t i = 0; i < o->queues && fine; i++) {
		char name[BENCH_NAME_SIZE];

		bench_queue_name(o, i, name);
		fine = delete_queue(c, name);
	}
	bench_conn_close(&c);
	return fine;
}
