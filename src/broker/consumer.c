/* SPDX-License-Identifier: Apache-2.0
 * Consumers: from consume to cancel. */
#include <assert.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/client.h"
#include "broker/queue.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum { TAG_AT = 12 }; /* in the prefix: 7 frame head, 4 method id, 1 length of the tag */

static const struct error *
check_consume(const struct session *s, const struct queue *q, const struct consumer_spec *spec)
{
	const struct config *cfg = s->broker->cfg;

	if (q->exclusive_consumer != NULL || (spec->exclusive && q->consumer_count > 0))
		return error_make(E_ACCESS_REFUSED, "queue '%.*s' in vhost '%s' in exclusive use",
		    (int)q->name_len, q->name, q->vhost->name);
	if (cfg->consumers != 0 && s->broker->stats.consumers >= cfg->consumers)
		return error_make(E_PRECONDITION_FAILED,
		    "cannot consume from queue '%.*s' in vhost '%s': the limit limits.consumers "
		    "(%u) is reached",
		    (int)q->name_len, q->name, q->vhost->name, cfg->consumers);
	return memory_check_topology(&s->broker->memory, "consume from queue",
	    span_of(q->name, q->name_len), q->vhost->name);
}

/* Bytes of a consumer, counted as MEM_TOPOLOGY. */
static size_t
consumer_size(const struct consumer *k)
{
	return sizeof *k + k->prefix_len + table_size(k->arguments);
}

const struct error *
session_consume(
    struct session *s, struct queue *q, const struct consumer_spec *spec, struct consumer **out)
{
	const struct error *e = check_consume(s, q, spec);
	struct consumer *k;

	if (e != NULL)
		return e;
	assert(spec->tag.n <= UINT8_MAX && spec->prefix.n == TAG_AT + spec->tag.n);
	k = xmalloc(sizeof *k + spec->prefix.n);
	*k = (struct consumer){ .session = s,
		.queue = q,
		.priority = spec->priority,
		.no_ack = spec->no_ack,
		.exclusive = spec->exclusive,
		.tag_len = (uint8_t)spec->tag.n,
		.prefix_len = (uint16_t)spec->prefix.n };
	memcpy(k->prefix, spec->prefix.p, spec->prefix.n);
	k->limit = s->prefetch;
	if (k->limit == 0 && !k->no_ack) {
		k->limit = s->broker->cfg->unacknowledged;
		k->is_own_limit = true;
	}
	k->arguments = table_from_raw(table_span(spec->arguments));
	mem_add(MEM_TOPOLOGY, consumer_size(k));
	TAILQ_INSERT_TAIL(&s->consumers, k, session_link);
	s->consumer_count++;
	queue_add_consumer(q, k);
	*out = k;
	return NULL;
}

struct consumer *
session_find(const struct session *s, struct span tag)
{
	struct consumer *k;

	TAILQ_FOREACH (k, &s->consumers, session_link) {
		if (!k->is_cancelled && span_eq(consumer_tag(k), tag))
			return k;
	}
	return NULL;
}

void
consumer_free(struct consumer *k)
{
	assert(k->session == NULL && k->queue == NULL && k->unacked == 0 && !k->is_ready);
	mem_sub(MEM_TOPOLOGY, consumer_size(k));
	table_free(&k->arguments);
	free(k);
}

void
consumer_release(struct consumer *k)
{
	assert(k->is_cancelled && k->queue == NULL);
	TAILQ_REMOVE(&k->session->consumers, k, session_link);
	k->session = NULL;
	if (k->unacked == 0)
		consumer_free(k);
}

void
session_cancel(struct session *s, struct consumer *k)
{
	assert(k->session == s && !k->is_cancelled);
	queue_remove_consumer(k->queue, k);
	s->consumer_count--;
	consumer_release(k);
}
