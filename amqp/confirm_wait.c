/* SPDX-License-Identifier: Apache-2.0
 * Runs of tags that wait for the store: see the header.
 *
 * There is one list for those that wait for the durable position and one for those that wait for the written one. In
 * each they stand as they came, which is the order of their positions, but that a run which grows takes on the position
 * of its last message: all of one turn, so nobody behind it waits for more than what came with it. */
#include "amqp/confirm_wait.h"

#include <assert.h>
#include <stdlib.h>

#include "amqp/amqp.h"
#include "amqp/channel.h"
#include "base/clock.h"
#include "base/mem.h"
#include "broker/broker.h"

enum { SPARES_MAX = 256 };

static struct confirm_run *
run_new(struct amqp *a)
{
	struct confirm_run *r = TAILQ_FIRST(&a->spare_runs);

	if (r != NULL) {
		TAILQ_REMOVE(&a->spare_runs, r, link);
		a->spare_run_count--;
		return r;
	}
	mem_add(MEM_ENTRIES, sizeof *r);
	return xmalloc(sizeof *r);
}

static void
run_free(struct amqp *a, struct confirm_run *r)
{
	TAILQ_REMOVE(&a->confirm_runs[r->wait.durable], r, link);
	LIST_REMOVE(r, channel_link);
	if (a->spare_run_count < SPARES_MAX) {
		TAILQ_INSERT_HEAD(&a->spare_runs, r, link);
		a->spare_run_count++;
		return;
	}
	mem_sub(MEM_ENTRIES, sizeof *r);
	free(r);
}

void
confirm_wait_add(struct channel *ch, uint64_t tag, struct store_wait wait)
{
	struct amqp *a = ch->conn->amqp;
	struct confirm_run *r = LIST_FIRST(&ch->confirm_runs);

	if (r != NULL && r->turn == a->turn && r->last + 1 == tag &&
	    r->wait.durable == wait.durable) {
		r->last = tag;
		/* A duplicate waits for what it repeats, which may stand before others of the run. */
		if (wait.lsn > r->wait.lsn)
			r->wait = wait;
		return;
	}
	r = run_new(a);
	*r = (struct confirm_run){
		.ch = ch,
		.first = tag,
		.last = tag,
		.wait = wait,
		.turn = a->turn,
		.since_us = clock_mono_us(),
	};
	TAILQ_INSERT_TAIL(&a->confirm_runs[wait.durable], r, link);
	LIST_INSERT_HEAD(&ch->confirm_runs, r, channel_link);
}

static void
settle(struct amqp *a, struct confirm_run *r, uint64_t now_us)
{
	struct broker_stats *stats = &a->broker->stats;
	uint64_t count = r->last - r->first + 1;

	stats->confirm_waited += count;
	stats->confirm_wait_us += (now_us - r->since_us) * count;
	histogram_add(&a->broker->confirm_waits, histogram_us, now_us - r->since_us, count);
	confirm_settle_range(&r->ch->confirms, r->first, r->last, true);
	channel_mark_confirming(r->ch);
	run_free(a, r);
}

void
confirm_wait_run(struct amqp *a)
{
	struct confirm_run *r;
	uint64_t now_us = 0;

	for (unsigned durable = 0; durable < COUNT_OF(a->confirm_runs); durable++) {
		while ((r = TAILQ_FIRST(&a->confirm_runs[durable])) != NULL &&
		       store_reached(a->broker->store, r->wait)) {
			if (now_us == 0)
				now_us = clock_mono_us();
			settle(a, r, now_us);
		}
	}
}

void
confirm_wait_drop(struct channel *ch)
{
	struct confirm_run *r;

	while ((r = LIST_FIRST(&ch->confirm_runs)) != NULL)
		run_free(ch->conn->amqp, r);
}

void
confirm_wait_fini(struct amqp *a)
{
	struct confirm_run *r;

	assert(TAILQ_EMPTY(&a->confirm_runs[false]) && TAILQ_EMPTY(&a->confirm_runs[true]));
	while ((r = TAILQ_FIRST(&a->spare_runs)) != NULL) {
		TAILQ_REMOVE(&a->spare_runs, r, link);
		mem_sub(MEM_ENTRIES, sizeof *r);
		free(r);
	}
	a->spare_run_count = 0;
}
