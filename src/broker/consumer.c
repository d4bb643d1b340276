/* SPDX-License-Identifier: Apache-2.0
 * Consumers: from consume to cancel. */
#include <assert.h>
#include <stdlib.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/client.h"
#include "broker/consumer_timeout.h"
#include "broker/event.h"
#include "broker/hash.h"
#include "broker/queue.h"
#include "broker/quorum.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum {
	TAG_AT = 12,     /* in the prefix: 7 frame head, 4 method id, 1 length of the tag */
	TAGS_LISTED = 16 /* up to so many consumers of a session the list is searched */
};

static const struct error *
check_consume(const struct session *s, const struct queue *q, const struct consumer_spec *spec)
{
	const struct config *cfg = s->broker->cfg;
	const struct error *e = q->quorum != NULL ? quorum_check_consume(q, s) : NULL;

	if (e != NULL)
		return e;
	if (q->exclusive_consumer != NULL || (spec->exclusive && q->quorum == NULL &&
	                                         (q->consumer_count > 0 || q->set.single_active)))
		return error_make(E_ACCESS_REFUSED, "queue '%.*s' in vhost '%s' in exclusive use",
		    (int)q->name_len, q->name, q->vhost->name);
	if (cfg->consumers != 0 && s->broker->stats.consumers >= cfg->consumers &&
	    !vhost_is_own(q->vhost)) {
		bound_reached(BOUND_consumers);
		return error_make(E_PRECONDITION_FAILED,
		    "cannot consume from queue '%.*s' in vhost '%s': the limit limits.consumers "
		    "(%u) is reached",
		    (int)q->name_len, q->name, q->vhost->name, cfg->consumers);
	}
	return memory_check_topology(&s->broker->memory, "consume from queue",
	    span_of(q->name, q->name_len), q->vhost->name);
}

/* Bytes of a consumer, counted as MEM_TOPOLOGY. */
static size_t
consumer_size(const struct consumer *k)
{
	return sizeof *k + k->prefix_len + table_size(k->arguments);
}

/* ---- by tag ---- */

static void
tag_link(struct session *s, struct consumer *k)
{
	buckets_add(&s->by_tag, &k->by_tag, hash_span(consumer_tag(k)));
}

/* k is in the list already. */
static void
tag_add(struct session *s, struct consumer *k)
{
	s->tags++;
	if (s->by_tag.count > 0) {
		tag_link(s, k);
	} else if (s->tags > TAGS_LISTED) {
		TAILQ_FOREACH (k, &s->consumers, session_link)
			tag_link(s, k);
	}
}

static void
tag_remove(struct session *s, struct consumer *k)
{
	s->tags--;
	if (s->by_tag.count > 0)
		buckets_remove(&s->by_tag, &k->by_tag);
}

/* ---- from consume to cancel ---- */

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
		.exclusive = spec->exclusive && q->quorum == NULL,
		.is_unlimited = spec->no_ack || q->quorum != NULL,
		.tag_len = (uint8_t)spec->tag.n,
		.prefix_len = (uint16_t)spec->prefix.n };
	memcpy(k->prefix, spec->prefix.p, spec->prefix.n);
	k->timeout_ms = spec->has_timeout ? spec->timeout_ms : consumer_timeout_of(q);
	k->limit = k->prefetch = s->prefetch;
	if (k->limit == 0 && !k->no_ack) {
		k->limit = s->broker->cfg->unacknowledged;
		k->is_own_limit = true;
	}
	k->arguments = table_from_raw(table_span(spec->arguments));
	mem_add(MEM_TOPOLOGY, consumer_size(k));
	TAILQ_INSERT_TAIL(&s->consumers, k, session_link);
	s->consumer_count++;
	tag_add(s, k);
	queue_add_consumer(q, k);
	event_consumer(k, true);
	*out = k;
	return NULL;
}

static bool
has_tag(const struct consumer *k, struct span tag)
{
	return !k->is_cancelled && !k->queue->is_deleted && span_eq(consumer_tag(k), tag);
}

struct consumer *
session_find(const struct session *s, struct span tag)
{
	struct consumer *k;

	if (s->by_tag.count > 0) {
		struct bucket_node *n = buckets_first(&s->by_tag, hash_span(tag));

		for (; n != NULL; n = buckets_next(n)) {
			k = container_of(n, struct consumer, by_tag);
			if (has_tag(k, tag))
				return k;
		}
		return NULL;
	}
	TAILQ_FOREACH (k, &s->consumers, session_link) {
		if (has_tag(k, tag))
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
	event_consumer(k, false);
	tag_remove(k->session, k);
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
