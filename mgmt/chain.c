/* SPDX-License-Identifier: Apache-2.0 */
#include "mgmt/chain.h"

#include <stdlib.h>

#include "base/bound.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/probe.h"
#include "broker/publisher.h"
#include "mgmt/acting.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "net/loop.h"

enum { CHAINS_MAX = 16, WITHIN_MS = 5000, WITHIN_MOST_MS = 60000 };

struct chain {
	TAILQ_ENTRY(chain) link;
	struct request *r; /* borrowed: deferred, or we are within its handler */
	struct probe probe;
	uint64_t until_ms, began_us;
	uint64_t journal_us, consumer_us; /* how long they took; 0: not there yet */
};

static const char *const step_names[] = { [PROBE_QUEUE] = "queue",
	[PROBE_EXCHANGE] = "exchange",
	[PROBE_JOURNAL] = "journal",
	[PROBE_CONSUMER] = "consumer" };

/* ---- the answer ---- */

static void
chain_free(struct chain *c)
{
	struct mgmt *m = c->r->m;

	TAILQ_REMOVE(&m->chains.all, c, link);
	m->chains.count--;
	probe_end(&c->probe);
	free(c);
}

static void
answer_failed(struct request *r, const char *step, const char *why)
{
	static struct log_limit lines = { .burst = 5 };

	if (log_allowed(&lines))
		log_line(LOG_WARNING,
		    &(struct log_who){ .peer = r->peer.host, .user = r->user_name },
		    "health check: a message of the node's own did not come through (%s): %s", step,
		    why);
	reply_json(
	    r, 503, json_pack("{s:s, s:s, s:s}", "status", "failed", "step", step, "reason", why));
}

static void
end_failed(struct chain *c, enum probe_step step, const char *why)
{
	struct request *r = c->r;

	chain_free(c);
	answer_failed(r, step_names[step], why);
}

static void
end_well(struct chain *c)
{
	json_t *body = json_pack("{s:s, s:I, s:I}", "status", "ok", "journal_us",
	    (json_int_t)c->journal_us, "consumer_us", (json_int_t)c->consumer_us);
	struct request *r = c->r;

	chain_free(c);
	reply_json(r, 200, body);
}

/* ---- the wait ---- */

static void
note(const struct chain *c, bool is_there, uint64_t *us)
{
	if (is_there && *us == 0)
		*us = clock_mono_us() - c->began_us + 1;
}

static void
look_after(struct chain *c, uint64_t now_ms)
{
	note(c, c->probe.is_delivered, &c->consumer_us);
	note(c, probe_is_confirmed(&c->probe), &c->journal_us);
	if (c->journal_us != 0 && c->consumer_us != 0) {
		if (probe_ack(&c->probe))
			end_well(c);
		else
			end_failed(c, PROBE_CONSUMER, "the message could not be acknowledged");
	} else if (now_ms >= c->until_ms) {
		if (c->journal_us == 0)
			end_failed(c, PROBE_JOURNAL, "the message was not safe on disk in time");
		else
			end_failed(c, PROBE_CONSUMER, "the message was not delivered in time");
	}
}

/* So that the loop has a turn for them. */
static void
on_timer(struct wheel_node *node UNUSED, uint64_t now_ms UNUSED)
{
}

static void
arm(struct mgmt *m)
{
	const struct chain *c;
	uint64_t due_ms = UINT64_MAX;

	TAILQ_FOREACH (c, &m->chains.all, link)
		due_ms = c->until_ms < due_ms ? c->until_ms : due_ms;
	m->chains.timer.fire = on_timer;
	wheel_arm(m->loop->wheel, &m->chains.timer, due_ms);
}

bool
chains_run(struct mgmt *m)
{
	struct chain *c, *next;

	for (c = TAILQ_FIRST(&m->chains.all); c != NULL; c = next) {
		next = TAILQ_NEXT(c, link);
		look_after(c, m->loop->now_ms);
	}
	if (m->chains.count > 0 && !wheel_armed(&m->chains.timer))
		arm(m);
	return m->chains.count > 0 && !TAILQ_EMPTY(&m->broker->runnable);
}

void
chains_stop(struct mgmt *m)
{
	struct chain *c;

	wheel_disarm(m->loop->wheel, &m->chains.timer);
	while ((c = TAILQ_FIRST(&m->chains.all)) != NULL)
		chain_free(c);
}

/* ---- the route ---- */

static void
check(struct request *r, uint64_t within_ms)
{
	struct mgmt *m = r->m;
	struct chain *c = xcalloc(1, sizeof *c);
	enum probe_step step;
	const char *why;

	c->r = r;
	c->began_us = clock_mono_us();
	c->until_ms = m->loop->now_ms + within_ms;
	TAILQ_INSERT_TAIL(&m->chains.all, c, link);
	m->chains.count++;
	why = probe_begin(&c->probe, m->broker, &step);
	if (why != NULL) {
		end_failed(c, step, why);
		return;
	}
	request_defer(r);
	arm(m);
}

/* What would keep a client's message from being taken; NULL: nothing. */
static const char *
held(const struct mgmt *m)
{
	if (m->broker->closing)
		return "the node is stopping";
	if (m->chains.count >= CHAINS_MAX) {
		bound_reached(BOUND_chains);
		return "too many of these checks are under way";
	}
	return publisher_hold(m->broker);
}

void
route_health_chain(struct request *r)
{
	const char *hold = held(r->m);
	uint64_t within_ms;

	if (!query_number(r, "within_ms", WITHIN_MS, WITHIN_MOST_MS, &within_ms))
		return;
	if (hold != NULL)
		answer_failed(r, "publisher", hold);
	else
		check(r, within_ms);
}
