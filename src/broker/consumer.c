/* SPDX-License-Identifier: Apache-2.0
 * Consumers: from consume to cancel. */
#include <assert.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/client.h"
#include "broker/consumer_timeout.h"
#include "broker/hash.h"
#include "broker/queue.h"
#include "broker/quorum.h"
#include "broker/session.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum {
	TAG_AT = 12, /* in the prefix: 7 frame head, 4 method id, 1 length of the tag */
	TAGS_LISTED =
	    16 /* up to so many consumers of a session the list is searched; a power of two */
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

/* ---- by tag ---- */

static struct consumer **
tag_slot(const struct session *s, struct span tag)
{
	return &s->by_tag[hash_span(tag) & (s->tag_slots - 1)];
}

static void
tag_link(struct session *s, struct consumer *k)
{
	struct consumer **slot = tag_slot(s, consumer_tag(k));

	k->tag_next = *slot;
	*slot = k;
}

/* k is in the list already. */
static void
tag_add(struct session *s, struct consumer *k)
{
	s->tags++;
	if (s->by_tag != NULL && s->tags <= 2 * s->tag_slots) {
		tag_link(s, k);
	} else if (s->tags > TAGS_LISTED) {
		free(s->by_tag);
		s->tag_slots = s->tag_slots > 0 ? s->tag_slots * 2 : 2 * TAGS_LISTED;
		s->by_tag = xcalloc(s->tag_slots, sizeof(struct consumer *));
		TAILQ_FOREACH (k, &s->consumers, session_link)
			tag_link(s, k);
	}
}

static void
tag_remove(struct session *s, struct consumer *k)
{
	struct consumer **kp;

	s->tags--;
	if (s->by_tag == NULL)
		return;
	for (kp = tag_slot(s, consumer_tag(k)); *kp != k;)
		kp = &(*kp)->tag_next;
	*kp = k->tag_next;
	if (s->tags > 0)
		return;
	free(s->by_tag);
	s->by_tag = NULL;
	s->tag_slots = 0;
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
	k->limit = s->prefetch;
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
	*out = k;
	return NULL;
}

static bool
has_tag(const struct consumer *k, struct span tag)
{
	return !k->is_cancelled && span_eq(consumer_tag(k), tag);
}

struct consumer *
session_find(const struct session *s, struct span tag)
{
	struct consumer *k;

	if (s->by_tag != NULL) {
		k = *tag_slot(s, tag);
		while (k != NULL && !has_tag(k, tag))
			k = k->tag_next;
		return k;
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
