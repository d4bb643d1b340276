/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/bench_client.h"

enum { LARGE = 16 << 10, NO_ACK = 2 };

/* Is it a message that one of our publishers has sent to this queue? */
static bool
is_ours(const struct bench_client *k)
{
	const struct bench_options *o = k->run->o;
	const struct bench_stamp *s = &k->stamp;

	return s->publisher < o->publishers && s->seq < k->run->client[s->publisher].seq &&
	       (o->to_all || s->publisher % o->queues == k->queue) &&
	       k->c->body_size == bench_size(o, s->seq);
}

static void
verify(struct bench_client *k, bool ours)
{
	struct bench_report *r = k->run->r;
	const struct bench_stamp *s = &k->stamp;

	if (!ours || k->damaged) {
		r->damaged++;
	} else if (!bench_verify_arrived(k->run->verify, k->queue, s->publisher, s->seq)) {
		r->duplicates++;
	} else if (s->seq < k->next[s->publisher]) {
		r->out_of_order++;
	} else {
		k->next[s->publisher] = s->seq + 1;
	}
}

static void
on_content(struct bench_conn *c)
{
	struct bench_client *k = c->owner;
	struct bench_run *run = k->run;
	bool ours = k->stamped && is_ours(k);

	run->delivered++;
	run->r->delivered++;
	run->r->delivered_bytes += c->body_size;
	if (ours)
		bench_histogram_add(&run->r->latency, run->now - k->stamp.sent_ns);
	if (run->verify != NULL)
		verify(k, ours);
	run->last_delivery = run->progress = run->now;
	if (run->o->ack > 0 && ++k->unacked >= run->o->ack)
		bench_consumer_ack(k, false);
}

static void
on_header(struct bench_conn *c, const uint8_t *properties, size_t n)
{
	struct bench_client *k = c->owner;

	k->damaged = false;
	k->stamped = !bench_messages_stamp_in_body(k->run->messages) &&
	             bench_stamp_of_properties(&k->stamp, properties, n);
}

static void
on_body(struct bench_conn *c, const uint8_t *p, size_t n)
{
	struct bench_client *k = c->owner;

	if (c->body_at == 0 && n >= BENCH_STAMP_SIZE &&
	    bench_messages_stamp_in_body(k->run->messages)) {
		bench_stamp_of_body(&k->stamp, p);
		k->stamped = true;
	}
	if (k->run->verify != NULL && !bench_messages_intact(k->run->messages, p, n, c->body_at))
		k->damaged = true;
}

static void
on_deliver(struct bench_client *k, const uint8_t *args, size_t n)
{
	size_t at = n > 0 ? 1u + args[0] : 0; /* behind the consumer's tag */

	if (at == 0 || n < at + 9 || get_be64(args + at) != k->tag + 1) {
		bench_conn_fail(k->c->broker, k->c,
		    "what answers breaks the protocol: basic.deliver after %" PRIu64, k->tag);
		return;
	}
	k->tag++;
	k->run->r->redelivered += args[at + 8] & 1;
}

static void
on_method(struct bench_conn *c, uint32_t method, const uint8_t *args, size_t n)
{
	struct bench_client *k = c->owner;

	if (method == AMQP_BASIC_DELIVER_METHOD)
		on_deliver(k, args, n);
	else if (method == AMQP_BASIC_CONSUME_OK_METHOD && k->run->o->backlog && k->tag == 0)
		k->run->progress = k->run->now;
	else if (method == AMQP_BASIC_CANCEL_METHOD)
		bench_conn_fail(c->broker, c, "the broker ended a consumer: its queue is gone");
	else
		bench_conn_fail(
		    c->broker, c, "a consumer got method %u.%u", method >> 16, method & 0xffff);
}

static const struct bench_conn_ops ops = {
	.on_method = on_method,
	.on_header = on_header,
	.on_body = on_body,
	.on_content = on_content,
};

void
bench_consumer_ack(struct bench_client *k, bool all)
{
	struct wire_out w;

	if (k->unacked == 0 || (!all && k->unacked < k->run->o->ack))
		return;
	w = bench_conn_begin(k->c, BENCH_CHANNEL, AMQP_BASIC_ACK_METHOD);
	wire_put64(&w, k->tag);
	wire_put8(&w, 1);
	/* where it does not fit, the next one stands for it */
	if (bench_conn_commit(k->c, &w))
		k->unacked = 0;
}

static bool
set_prefetch(struct bench_client *k)
{
	struct wire_out w = bench_conn_begin(k->c, BENCH_CHANNEL, AMQP_BASIC_QOS_METHOD);

	wire_put32(&w, 0);
	wire_put16(&w, (uint16_t)k->run->o->prefetch);
	wire_put8(&w, 0);
	return bench_conn_call(k->c, &w, AMQP_BASIC_QOS_OK_METHOD);
}

static struct wire_out
consume(struct bench_client *k)
{
	struct wire_out w = bench_conn_begin(k->c, BENCH_CHANNEL, AMQP_BASIC_CONSUME_METHOD);
	char name[BENCH_NAME_SIZE];

	bench_queue_name(k->run->o, k->queue, name);
	wire_put16(&w, 0);
	wire_put_short(&w, name);
	wire_put_short(&w, "");
	wire_put8(&w, k->run->o->ack == 0 ? NO_ACK : 0);
	wire_table_end(&w, wire_table_begin(&w));
	return w;
}

static bool
begin(struct bench_client *k)
{
	struct wire_out w = consume(k);

	return bench_conn_call(k->c, &w, AMQP_BASIC_CONSUME_OK_METHOD);
}

void
bench_consumer_begin(struct bench_client *k)
{
	struct wire_out w = consume(k);

	/* nothing else went out yet but a heartbeat, at most: it fits */
	if (!bench_conn_commit(k->c, &w))
		abort();
	(void)bench_conn_flush(k->c);
}

/* Where bodies are large and nobody looks at them, the kernel need not hand them over. */
static bool
all_large(const struct bench_options *o)
{
	for (size_t i = 0; i < o->sizes; i++)
		if (o->size[i] < LARGE)
			return false;
	return true;
}

bool
bench_consumer_init(struct bench_client *k)
{
	const struct bench_options *o = k->run->o;

	k->c->owner = k;
	k->c->ops = &ops;
	k->queue = k->index % (uint32_t)o->queues;
	k->c->discards = !o->verify && all_large(o);
	if (o->verify)
		k->next = xcalloc(o->publishers, sizeof *k->next);
	return (o->ack == 0 || o->prefetch == 0 || set_prefetch(k)) && (o->backlog || begin(k));
}

void
bench_client_fini(struct bench_client *k)
{
	bench_conn_close(&k->c);
	free(k->sent);
	free(k->next);
}
