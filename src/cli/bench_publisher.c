/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/bench_client.h"

enum { FILL_MAX = 128 << 10, RING_MIN = 1024 };

int64_t
bench_due_ns(const struct bench_run *run, uint64_t k)
{
	uint64_t rate = run->o->rate;

	return run->start_ns + (int64_t)(k / rate * 1000000000 + k % rate * 1000000000 / rate);
}

uint64_t
bench_in_flight(const struct bench_run *run)
{
	uint64_t sent = (run->published - run->refused) * bench_copies(run->o);
	uint64_t came = run->delivered - run->r->duplicates - run->r->damaged;

	return sent > came ? sent - came : 0;
}

static int64_t
due(const struct bench_client *p)
{
	return bench_due_ns(p->run, p->seq * p->run->o->publishers + p->index);
}

static bool
is_finished(const struct bench_client *p)
{
	return p->run->stopped || p->seq >= p->quota;
}

static bool
window_is_open(const struct bench_client *p)
{
	return p->sent == NULL ||
	       (p->outstanding < p->run->o->confirms && p->seq + 1 - p->low <= p->mask);
}

static bool
flight_is_full(struct bench_run *run)
{
	if (run->o->in_flight == 0 || bench_in_flight(run) < run->o->in_flight)
		return false;
	run->full = true;
	return true;
}

static bool
may_publish(struct bench_client *p, int64_t now)
{
	if (is_finished(p))
		return false;
	if (p->run->o->rate > 0 && due(p) > now) {
		p->held = false;
		return false;
	}
	if (!p->c->blocked && window_is_open(p) && !flight_is_full(p->run))
		return true;
	p->held = true;
	return false;
}

/* With a rate a message counts from when it was due: who stalls does not hide the messages that had to wait. */
static bool
publish(struct bench_client *p, int64_t now)
{
	struct bench_run *run = p->run;
	const struct bench_stamp stamp = {
		.sent_ns = run->o->rate > 0 ? due(p) : now, .publisher = p->index, .seq = p->seq
	};

	if (!bench_messages_put(run->messages, p->c, p->index % run->o->queues, &stamp))
		return false;
	p->seq++;
	if (run->o->rate > 0 && !p->held)
		bench_histogram_add(&run->r->lag, now - stamp.sent_ns);
	if (p->sent != NULL) {
		p->sent[p->seq & p->mask] = stamp.sent_ns;
		p->outstanding++;
	}
	run->published++;
	run->last_publish = now;
	return true;
}

bool
bench_publisher_work(struct bench_client *p)
{
	int64_t now;

	if (!bench_conn_flush(p->c)) {
		p->held = true;
		return false;
	}
	now = bench_now();
	while (p->c->pending < FILL_MAX && may_publish(p, now))
		if (!publish(p, now))
			break;
	return bench_conn_flush(p->c) && may_publish(p, now);
}

/* Without confirms nothing tells that the broker has taken the messages in. The answer to a method behind them does. */
static void
send_barrier(struct bench_client *p)
{
	struct wire_out w = bench_conn_begin(p->c, BENCH_CHANNEL, AMQP_BASIC_QOS_METHOD);

	wire_put32(&w, 0);
	wire_put16(&w, 0);
	wire_put8(&w, 0);
	if (bench_conn_commit(p->c, &w)) {
		p->barrier_sent = true;
		(void)bench_conn_flush(p->c);
	}
}

bool
bench_publisher_done(struct bench_client *p)
{
	if (!is_finished(p) || !bench_conn_flush(p->c))
		return false;
	if (p->sent != NULL)
		return p->outstanding == 0;
	if (!p->barrier_sent)
		send_barrier(p);
	return p->barrier_back;
}

static void
settle_one(struct bench_client *p, uint64_t tag, bool taken)
{
	int64_t *sent = &p->sent[tag & p->mask];
	struct bench_run *run = p->run;

	bench_histogram_add(&run->r->confirm, run->now - *sent);
	*sent = 0;
	p->outstanding--;
	if (taken) {
		run->r->confirmed++;
	} else {
		run->r->refused++;
		run->refused++;
	}
}

static void
settle(struct bench_client *p, uint64_t tag, bool multiple, bool taken)
{
	uint64_t first = multiple ? p->low : tag;

	if (tag == 0 && multiple)
		tag = p->seq;
	if (tag < p->low || tag > p->seq || (!multiple && p->sent[tag & p->mask] == 0)) {
		bench_conn_fail(p->c->broker, p->c,
		    "the broker confirms message %" PRIu64 ", which is not unconfirmed", tag);
		return;
	}
	for (; first <= tag; first++)
		if (p->sent[first & p->mask] != 0)
			settle_one(p, first, taken);
	while (p->low <= p->seq && p->sent[p->low & p->mask] == 0)
		p->low++;
	p->run->last_confirm = p->run->progress = p->run->now;
}

static void
on_method(struct bench_conn *c, uint32_t method, const uint8_t *args, size_t n)
{
	struct bench_client *p = c->owner;

	if ((method == AMQP_BASIC_ACK_METHOD || method == AMQP_BASIC_NACK_METHOD) && n >= 9 &&
	    p->sent != NULL) {
		settle(p, get_be64(args), (args[8] & 1) != 0, method == AMQP_BASIC_ACK_METHOD);
	} else if (method == AMQP_BASIC_QOS_OK_METHOD) {
		p->barrier_back = true;
		p->run->last_publish = p->run->progress = p->run->now;
	} else {
		bench_conn_fail(
		    c->broker, c, "a publisher got method %u.%u", method >> 16, method & 0xffff);
	}
}

static const struct bench_conn_ops ops = { .on_method = on_method };

bool
bench_publisher_init(struct bench_client *p)
{
	uint64_t ring = RING_MIN;
	struct wire_out w;

	p->c->owner = p;
	p->c->ops = &ops;
	if (p->run->o->confirms == 0)
		return true;
	/* room for confirms that come out of order */
	while (ring < 4 * p->run->o->confirms)
		ring *= 2;
	p->mask = ring - 1;
	p->low = 1;
	p->sent = xcalloc(ring, sizeof *p->sent);
	w = bench_conn_begin(p->c, BENCH_CHANNEL, AMQP_CONFIRM_SELECT_METHOD);
	wire_put8(&w, 0);
	return bench_conn_call(p->c, &w, AMQP_CONFIRM_SELECT_OK_METHOD);
}
