/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/probe.h"

#include <inttypes.h>
#include <stdio.h>

#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/msg.h"
#include "broker/notice.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/queue.h"
#include "broker/route.h"
#include "broker/vhost.h"

static void
on_deliver(struct consumer *k, const struct entry *e UNUSED, uint64_t tag)
{
	struct probe *p = container_of(k->session, struct probe, session);

	p->is_delivered = true;
	p->tag = tag;
}

static void
on_cancelled(struct consumer *k UNUSED)
{
	/* with its queue only, which goes after it */
}

static const struct session_ops ops = { on_deliver, on_cancelled, NULL };

static const struct error *
declare(struct probe *p)
{
	struct queue_spec spec = { .durable = true };
	char name[32];

	(void)snprintf(name, sizeof name, "probe-%" PRIu64, p->client.broker->next_id);
	spec.name = span_str(name);
	return queue_declare(p->client.vhost, &spec, NULL, &p->queue);
}

static const char *
publish(struct probe *p, enum probe_step *step)
{
	struct exchange *x = p->client.vhost->default_exchange;
	struct broker *b = p->client.broker;
	struct msg *m = notice_message(&(struct notice_spec){ .exchange = "",
	    .key = span_of(p->queue->name, p->queue->name_len),
	    .time_s = b->now_ms / 1000 + 1 });
	const struct route *to = NULL;
	struct props pr;

	*step = PROBE_EXCHANGE;
	if (m == NULL)
		return "no memory for a message";
	if (props_scan(msg_props(m), &pr) == 0)
		to = route_find_msg(x, m, &pr);
	if (to == NULL || to->count != 1 || to->queue[0] != p->queue) {
		msg_unref(&m);
		return "the message was not routed to its queue";
	}
	*step = PROBE_QUEUE;
	return publish_deliver(b, m, to, 0, &p->wait) == PUBLISH_ROUTED
	           ? NULL
	           : "the queue did not take the message";
}

static const struct error *
consume(struct probe *p)
{
	enum { BEFORE_TAG = 12 };
	static const uint8_t prefix[BEFORE_TAG]; /* of an empty tag */
	const struct consumer_spec spec = {
		.prefix = span_of(prefix, sizeof prefix), .tag = SPAN_LIT(""), .has_timeout = true
	};
	struct consumer *k;

	p->session.prefetch = 1;
	return session_consume(&p->session, p->queue, &spec, &k);
}

/* What it has is counted nowhere, as nobody can look at it; but when it comes and goes. */
static void
count(const struct probe *p, uint64_t n)
{
	struct broker_stats *s = &p->client.broker->stats;

	s->channels += n;
	s->consumers += p->session.consumer_count * n;
	if (p->queue != NULL)
		s->queues += n;
}

static const char *
begin(struct probe *p, enum probe_step *step)
{
	const struct error *e;
	const char *why;

	*step = PROBE_QUEUE;
	e = declare(p);
	if (e != NULL)
		return e->text;
	why = publish(p, step);
	if (why != NULL)
		return why;
	*step = PROBE_CONSUMER;
	e = consume(p);
	return e != NULL ? e->text : NULL;
}

const char *
probe_begin(struct probe *p, struct broker *b, enum probe_step *step)
{
	const char *why;

	*p = (struct probe){ .client.broker = b, .client.vhost = vhost_own(b) };
	LIST_INIT(&p->client.sessions);
	LIST_INIT(&p->client.exclusive);
	session_init(&p->session, &p->client, &ops);
	why = begin(p, step);
	count(p, (uint64_t)-1);
	return why;
}

bool
probe_is_confirmed(const struct probe *p)
{
	return !persist_must_wait(p->client.broker, p->wait);
}

bool
probe_ack(struct probe *p)
{
	return session_settle(&p->session, p->tag, false, SETTLE_ACK) == NULL;
}

void
probe_end(struct probe *p)
{
	count(p, 1);
	session_fini(&p->session);
	if (p->queue != NULL)
		queue_remove(p->queue);
	p->queue = NULL;
}
