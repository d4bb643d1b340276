/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/publisher.h"

#include <stdlib.h>

#include "base/mem.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/memory.h"
#include "broker/persist.h"
#include "broker/props.h"
#include "broker/publish.h"
#include "broker/session.h"
#include "broker/table.h"

struct publisher {
	struct session session;
	struct publish_memo memo;
	struct store_wait wait;
};

struct publisher *
publisher_new(struct client *client)
{
	static const struct session_ops none = { NULL, NULL, NULL };
	struct publisher *p = xcalloc(1, sizeof *p);

	session_init(&p->session, client, &none);
	return p;
}

void
publisher_free(struct publisher **pp)
{
	session_fini(&(*pp)->session);
	free(*pp);
	*pp = NULL;
}

struct store_wait
publisher_wait(const struct publisher *p)
{
	return p->wait;
}

const char *
publisher_hold(const struct broker *b)
{
	return memory_short(&b->memory) ? "memory is short" : persist_hold(b);
}

/* BCC is seen by nobody. NULL: no memory; m stays. */
static struct msg *
without_bcc(const struct msg *m, const struct props *pr)
{
	struct span headers = pr->headers;
	uint8_t *cut = route_without_bcc(pr->headers, &headers.n), *raw = NULL;
	struct msg *to = NULL;
	int n;

	headers.p = cut;
	n = cut != NULL ? props_rewrite(msg_props(m), pr, &headers, NULL, &raw) : -1;
	if (n >= 0)
		to = msg_try_with_props(m, span_of(raw, (size_t)n));
	free(cut);
	free(raw);
	return to;
}

static const struct error *
check_special(struct msg **m, const struct props *pr)
{
	const struct error *e = NULL;
	bool cc, bcc = false;
	struct msg *to;

	if (pr->reply_to.p != NULL && span_is(pr->reply_to, "amq.rabbitmq.reply-to"))
		return error_make(E_PRECONDITION_FAILED, "fast reply consumer does not exist");
	if (pr->has_cc)
		e = route_check_cc(pr->headers, &cc, &bcc);
	if (e != NULL || !bcc)
		return e;
	to = without_bcc(*m, pr);
	if (to == NULL)
		return error_make(E_RESOURCE_ERROR, "no memory for the message");
	msg_unref(m);
	*m = to;
	return NULL;
}

static enum published
hand_on(struct publisher *p, struct msg *m, const struct route *route, uint64_t due_ms)
{
	bool routed = route->count + route->delays > 0;
	enum publish_outcome outcome;
	struct store_wait wait;

	if (unlikely(p->session.broker->watched > 0))
		publish_show(&p->session, p->memo.exchange, m, route, true);
	publish_count(&p->session, p->memo.exchange, route->count);
	if (!routed) {
		SESSION_COUNT(&p->session, return_unroutable, 1);
		p->session.broker->stats.return_unroutable++;
	}
	outcome = publish_deliver(p->session.broker, m, route, due_ms, &wait);
	if (wait.lsn > p->wait.lsn)
		p->wait.lsn = wait.lsn;
	p->wait.durable |= wait.durable;
	if (outcome == PUBLISH_REFUSED)
		return PUBLISHED_REFUSED;
	SESSION_COUNT(&p->session, confirm, 1);
	p->session.broker->stats.publish_confirm++;
	p->session.broker->stats.confirm++;
	return routed ? PUBLISHED_ROUTED : PUBLISHED_UNROUTED;
}

const struct error *
publisher_publish(struct publisher *p, struct msg *m, enum published *out)
{
	const struct error *e = NULL;
	const struct route *route;
	uint64_t due_ms;
	struct props pr;
	uint8_t mode, prio;

	if (props_scan(msg_props(m), &pr) != 0)
		e = error_make(E_SYNTAX_ERROR, "the properties are not in order");
	if (e == NULL)
		e = publish_route(&p->session, &p->memo, m, &pr, &route, &due_ms);
	mode = pr.delivery_mode;
	prio = pr.priority;
	if (e == NULL)
		e = check_special(&m, &pr);
	if (e != NULL) {
		msg_unref(&m);
		return e;
	}
	m->flags = mode == 2 ? MSG_PERSISTENT : 0;
	m->prio = prio;
	*out = hand_on(p, m, route, due_ms);
	return NULL;
}
