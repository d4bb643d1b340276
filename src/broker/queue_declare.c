/* SPDX-License-Identifier: Apache-2.0
 * Queues by name: look-up, the exclusive lock, and declaring. The order of the checks and their texts are those of
 * RabbitMQ 3.10. */
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/mem.h"
#include "base/random.h"
#include "broker/dedup.h"
#include "broker/event.h"
#include "broker/exchange.h"
#include "broker/hash.h"
#include "broker/lease.h"
#include "broker/limits.h"
#include "broker/permission.h"
#include "broker/persist.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/single_active.h"
#include "broker/table.h"
#include "broker/vhost.h"

enum { ARGUMENTS_MAX = 2 << 20 };

struct queue *
queue_find(const struct vhost *vh, struct span name)
{
	struct bucket_node *n = buckets_first(&vh->queues_by_name, hash_span(name));

	for (; n != NULL; n = buckets_next(n)) {
		struct queue *q = container_of(n, struct queue, by_name);

		if (likely(span_eq(span_of(q->name, q->name_len), name)))
			return q;
	}
	return NULL;
}

struct queue *
queue_find_id(const struct vhost *vh, uint64_t id)
{
	struct bucket_node *n = buckets_first(&vh->queues_by_id, hash_mix(id));

	for (; n != NULL; n = buckets_next(n)) {
		struct queue *q = container_of(n, struct queue, by_id);

		if (q->id == id)
			return q;
	}
	return NULL;
}

/* By name; one whose client leaves is gone, though its turn has not come. */
static struct queue *
find(const struct vhost *vh, struct span name)
{
	struct queue *q = queue_find(vh, name);

	if (q != NULL && unlikely(q->owner != NULL && q->owner->is_leaving)) {
		queue_remove(q);
		q = NULL;
	}
	return q;
}

static const struct error *
locked(const struct vhost *vh, struct span name)
{
	return error_make(E_RESOURCE_LOCKED,
	    "cannot obtain exclusive access to locked queue '%.*s' in vhost '%s'. It could be "
	    "originally declared "
	    "on another connection or the exclusive property value does not match that of the "
	    "original declaration.",
	    SPAN_FMT(name), vh->name);
}

const struct error *
queue_lookup(struct vhost *vh, struct span name, const struct client *client, struct queue **out)
{
	struct queue *q = find(vh, name);

	if (q == NULL)
		return error_make(
		    E_NOT_FOUND, "no queue '%.*s' in vhost '%s'", SPAN_FMT(name), vh->name);
	if (q->exclusive && q->owner != client)
		return locked(vh, name);
	*out = q;
	return NULL;
}

static const struct error *
differs(const struct queue *q, const char *what, bool received)
{
	return error_make(E_PRECONDITION_FAILED,
	    "inequivalent arg '%s' for queue '%.*s' in vhost '%s': received '%s' but current is "
	    "'%s'",
	    what, (int)q->name_len, q->name, q->vhost->name, received ? "true" : "false",
	    received ? "false" : "true");
}

/* The queue is there: is it the one that is meant? */
static const struct error *
compare(const struct queue *q, const struct queue_spec *spec, const struct client *client)
{
	if (q->exclusive != spec->exclusive || (q->exclusive && q->owner != client))
		return locked(q->vhost, span_of(q->name, q->name_len));
	if (q->durable != spec->durable)
		return differs(q, "durable", spec->durable);
	if (q->auto_delete != spec->auto_delete)
		return differs(q, "auto_delete", spec->auto_delete);
	return queue_compare_arguments(q, spec);
}

static struct queue *
make(struct vhost *vh, const struct queue_spec *spec, struct client *client, uint64_t id)
{
	struct broker *b = vh->broker;
	struct policy *old[POLICY_KINDS]; /* none */
	struct queue *q = xcalloc(1, sizeof *q);

	q->broker = b;
	q->vhost = vh;
	q->name = xstrndup((const char *)spec->name.p, spec->name.n);
	q->name_len = (uint16_t)spec->name.n;
	q->id = id;
	q->strand.queue = q;
	q->strand.next_seq = 1; /* no message has 0: the store means "before all" by it */
	q->durable = spec->durable;
	q->auto_delete = spec->auto_delete;
	q->exclusive = spec->exclusive;
	q->arguments = table_from_raw(table_span(spec->arguments));
	queue_read_arguments(q);
	if (policy_choose_queue(q, old))
		queue_read_arguments(q);
	queue_priorities_init(q);
	if (q->set.type == QUEUE_QUORUM)
		q->quorum = quorum_new(q);
	queue_count_limits(q);
	mem_add(MEM_TOPOLOGY, queue_size(q));
	q->expiry.fire = queue_on_expiry;
	TAILQ_INIT(&q->consumers);
	takers_init(&q->takers);
	single_active_init(q);
	lease_init(q);
	LIST_INIT(&q->bindings);
	if (q->exclusive && client != NULL) {
		q->owner = client;
		LIST_INSERT_HEAD(&client->exclusive, q, owner_link);
	}
	q->dedup = dedup_new(b, id,
	    &(struct dedup_settings){ q->set.dedup, q->set.cache_size, q->set.cache_ttl_ms },
	    q->durable, false);
	q->depth = &vh->depth;
	series_init(&b->series, &q->series, SERIES_QUEUE, b->now_ms);
	if (vhost_is_own(vh))
		series_hide(&b->series, &q->series);
	TAILQ_INSERT_TAIL(&vh->queues, q, vhost_link);
	buckets_add(&vh->queues_by_name, &q->by_name, hash_span(spec->name));
	buckets_add(&vh->queues_by_id, &q->by_id, hash_mix(id));
	TAILQ_INSERT_TAIL(&b->queues, q, all_link);
	b->stats.queues++;
	exchange_changed(vh->default_exchange);
	return q;
}

struct queue *
queue_restore(struct vhost *vh, const struct queue_spec *spec, uint64_t id)
{
	struct queue *q;

	if (queue_find(vh, spec->name) != NULL || queue_find_id(vh, id) != NULL)
		return NULL;
	q = make(vh, spec, NULL, id);
	persist_queue_lanes(q);
	for (struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s))
		strand_take_lane(s);
	series_is_old(&q->series);
	/* What was out of it, unacknowledged or as a dead letter, is in it again: it may hold too much. */
	if (q->is_limited)
		queue_tidy_later(q);
	return q;
}

/* A dead letter exchange needs read on the queue and write on the exchange. */
static const struct error *
check_dead_letter(const struct client *client, const struct queue_spec *spec)
{
	const struct error *e;
	struct field f;

	if (!table_find(table_span(spec->arguments), "x-dead-letter-exchange", &f) || f.kind != 'S')
		return NULL;
	e = permission_check(client, PERM_READ, "queue", spec->name);
	return e != NULL ? e : permission_check(client, PERM_WRITE, "exchange", f.bytes);
}

/* A new name: may it be made? */
static const struct error *
check_new(const struct vhost *vh, const struct queue_spec *spec, const struct client *client)
{
	const struct broker *b = vh->broker;
	const struct error *e = limits_check_queue(vh, spec->name);

	if (e == NULL && client != NULL)
		e = check_dead_letter(client, spec);
	if (e == NULL)
		e = memory_check_topology(&b->memory, "declare queue", spec->name, vh->name);
	if (e != NULL)
		return e;
	if (b->cfg->queues != 0 && b->stats.queues >= b->cfg->queues && !vhost_is_own(vh)) {
		bound_reached(BOUND_queues);
		return error_make(E_PRECONDITION_FAILED,
		    "cannot declare queue '%.*s' in vhost '%s': the limit limits.queues (%u) is "
		    "reached",
		    SPAN_FMT(spec->name), vh->name, b->cfg->queues);
	}
	return queue_check_arguments(vh, spec);
}

/* What a declare without a type means where the vhost has a default one: of a queue that is there, its own, so that clients
 * which declare it again are not refused after the default was changed. False: nothing. */
static bool
default_type(const struct vhost *vh, const struct queue_spec *spec, struct field *type)
{
	const struct queue *q = queue_find(vh, spec->name);

	if (q != NULL)
		return table_find(table_span(q->arguments), "x-queue-type", type);
	*type = (struct field){ .name = SPAN_LIT("x-queue-type"),
		.kind = 'S',
		.bytes = span_str(vh->default_queue_type) };
	return strcmp(vh->default_queue_type, "classic") == 0 ||
	       (spec->durable && !spec->exclusive && !spec->auto_delete);
}

/* The arguments with that type; owned. NULL: they stay as they are. */
static struct table *
with_default_type(const struct vhost *vh, const struct queue_spec *spec)
{
	struct table_writer w;
	struct table *t = NULL;
	struct field f;

	if (likely(vh->default_queue_type == NULL) ||
	    table_find(table_span(spec->arguments), "x-queue-type", &f) ||
	    !default_type(vh, spec, &f))
		return NULL;
	table_writer_init(&w, ARGUMENTS_MAX);
	table_put_raw(&w, table_span(spec->arguments));
	table_put_field(&w, &f);
	if (!w.failed)
		t = table_from_raw(span_of(w.p, w.n));
	table_writer_fini(&w);
	return t;
}

static const struct error *
declare(struct vhost *vh, const struct queue_spec *given, struct client *client, struct queue **out)
{
	char made[8 + RANDOM_NAME_SIZE] = "amq.gen-";
	struct queue_spec spec = *given;
	const struct error *e;
	struct queue *q;

	spec.durable = given->durable && !given->exclusive;
	if (spec.name.n == 0) {
		if ((e = quorum_check_nameless(given)) != NULL)
			return e;
		random_name(made + 8);
		spec.name = span_str(made);
	} else if (span_starts(spec.name, "amq.")) {
		return error_make(E_ACCESS_REFUSED,
		    "queue name '%.*s' contains reserved prefix 'amq.*'", SPAN_FMT(spec.name));
	}
	if (client != NULL &&
	    (e = permission_check(client, PERM_CONFIGURE, "queue", spec.name)) != NULL)
		return e;
	q = find(vh, spec.name);
	if (q != NULL) {
		e = compare(q, &spec, client);
		if (e == NULL)
			lease_renew(q);
	} else {
		e = check_new(vh, &spec, client);
		if (e == NULL) {
			q = make(vh, &spec, client, ++vh->broker->next_id);
			q->broker->stats.queues_created++;
			persist_queue(q);
			event_queue(q, true);
		}
	}
	if (e != NULL)
		return e;
	q->broker->stats.queues_declared++;
	*out = q;
	return NULL;
}

const struct error *
queue_declare(
    struct vhost *vh, const struct queue_spec *given, struct client *client, struct queue **out)
{
	struct queue_spec spec = *given;
	struct table *typed = with_default_type(vh, given);
	const struct error *e;

	if (unlikely(typed != NULL))
		spec.arguments = typed;
	e = declare(vh, &spec, client, out);
	table_free(&typed);
	return e;
}
