/* SPDX-License-Identifier: Apache-2.0
 * The start: objects that the store has become vhosts, exchanges, queues and bindings again. What does not fit together
 * (a journal that was damaged) is said in the log and taken out of the store, so that it does not come back by chance. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "broker/binding.h"
#include "broker/dedup.h"
#include "broker/definition.h"
#include "broker/delay.h"
#include "broker/exchange.h"
#include "broker/persist.h"
#include "broker/persist_access.h"
#include "broker/policy.h"
#include "broker/queue_priv.h"
#include "broker/quorum.h"
#include "broker/table.h"
#include "broker/transfer.h"
#include "broker/user.h"
#include "broker/vhost.h"

/* Whoever names a vhost proves that there was one: where its own record was damaged it is made again, for all that lies
 * in it would go with it. */
static struct vhost *
vhost_of(struct broker *b, struct span state, uint64_t id)
{
	struct span name;
	struct vhost *vh;
	char *text;

	if (!definition_name(state, DEF_VHOST, &name))
		return NULL;
	if (name.n == 0)
		return vhost_own(b);
	vh = vhost_of_object(b, name, id);
	if (vh != NULL || vhost_find(b, name) != NULL)
		return vh;
	text = xstrndup((const char *)name.p, name.n);
	vh = vhost_add(b, text);
	if (vh != NULL) {
		vh->since = 0;
		persist_vhost(vh);
		log_error(
		    "vhost '%s' is made again: its own record is lost, but others name it", text);
		users_admit_administrators(b, vh);
	}
	free(text);
	return vh;
}

/* *out: owned; NULL: none. False: they have not the form of a table. */
static bool
arguments_of(struct span state, struct table **out)
{
	struct span raw;

	*out = NULL;
	if (!definition_find(state, DEF_ARGUMENTS, &raw))
		return true;
	if (table_check(raw, TABLE_DEPTH_MAX) != 0)
		return false;
	*out = table_from_raw(raw);
	return true;
}

static const char *
link_policy(struct broker *b, uint64_t id, struct span state)
{
	struct vhost *vh = vhost_of(b, state, id);

	if (vh == NULL || policy_restore(vh, id, state) == NULL)
		return "it cannot be read, or there is a newer one of this name";
	return NULL;
}

static const char *
link_exchange(struct broker *b, uint64_t id, struct span state)
{
	struct vhost *vh = vhost_of(b, state, id);
	uint64_t flags = definition_number(state, DEF_FLAGS);
	struct exchange_spec spec = { .durable = true,
		.auto_delete = (flags & DEF_AUTO_DELETE) != 0,
		.internal = (flags & DEF_INTERNAL) != 0 };
	struct table *arguments;
	const struct exchange *x;

	if (vh == NULL || !definition_short(state, DEF_NAME, &spec.name) ||
	    !definition_name(state, DEF_TYPE, &spec.type) || !arguments_of(state, &arguments))
		return "it cannot be read, or has no vhost";
	spec.arguments = arguments;
	x = exchange_restore(vh, &spec, id);
	table_free(&arguments);
	return x != NULL ? NULL : "its type is not known, or there is a newer one of this name";
}

static const char *
link_queue(struct broker *b, uint64_t id, struct span state)
{
	struct vhost *vh = vhost_of(b, state, id);
	uint64_t flags = definition_number(state, DEF_FLAGS);
	struct queue_spec spec = { .durable = true, .auto_delete = (flags & DEF_AUTO_DELETE) != 0 };
	struct span past = { NULL, 0 };
	struct table *arguments;
	struct queue *q;

	if (vh == NULL || !definition_short(state, DEF_NAME, &spec.name) ||
	    !arguments_of(state, &arguments))
		return "it cannot be read, or has no vhost";
	spec.arguments = arguments;
	(void)definition_find(state, DEF_TTL, &past);
	q = queue_restore(vh, &spec, id);
	table_free(&arguments);
	if (q == NULL)
		return "there is a newer one of this name";
	queue_ttl_restore(q, past);
	if (flags & DEF_PAUSED)
		queue_restore_pause(q);
	return NULL;
}

/* By name; it has to be the same one, not a later one that was given the name. */
static struct exchange *
exchange_of(
    const struct vhost *vh, struct span state, enum definition_tag name, enum definition_tag id)
{
	struct exchange *x;
	struct span text;

	if (!definition_short(state, name, &text) || (x = exchange_find(vh, text)) == NULL)
		return NULL;
	if (exchange_is_predeclared(x))
		return x;
	return x->id == definition_number(state, id) ? x : NULL;
}

static struct queue *
queue_of(const struct vhost *vh, struct span state)
{
	struct queue *q;
	struct span text;

	if (!definition_short(state, DEF_QUEUE, &text) || (q = queue_find(vh, text)) == NULL)
		return NULL;
	return q->id == definition_number(state, DEF_QUEUE_ID) ? q : NULL;
}

static const char *
link_binding(struct broker *b, uint64_t id, struct span state)
{
	struct vhost *vh = vhost_of(b, state, id);
	struct exchange *source = NULL, *x = NULL;
	struct queue *q = NULL;
	struct span key = { NULL, 0 };
	const struct error *e;
	struct table *arguments;

	if (vh != NULL) {
		source = exchange_of(vh, state, DEF_SOURCE, DEF_SOURCE_ID);
		q = queue_of(vh, state);
		x = q == NULL ? exchange_of(vh, state, DEF_EXCHANGE, DEF_EXCHANGE_ID) : NULL;
	}
	if (source == NULL || (q == NULL) == (x == NULL) ||
	    !definition_find(state, DEF_KEY, &key) || key.n > 255 ||
	    !arguments_of(state, &arguments))
		return "one of its ends is not there";
	e = binding_restore(source, q, x, key, arguments, id);
	table_free(&arguments);
	return e != NULL ? e->text : NULL;
}

static void
link_delay_lane(void *arg, uint64_t exchange, uint32_t number)
{
	delay_restore_lane(arg, exchange, number);
}

void
persist_unlink(struct broker *b)
{
	struct queue *q;

	while (quorum_run(b))
		continue;
	transfers_stop(b);
	TAILQ_FOREACH (q, &b->queues, all_link) {
		for (struct strand *s = &q->strand; s != NULL; s = queue_next_strand(q, s)) {
			if (s->lane != NULL)
				lane_set_share(s->lane, NULL);
			s->lane = NULL;
		}
	}
	delays_unlink(b);
	dedups_close(b);
	b->store = NULL;
}

void
persist_link(struct broker *b)
{
	persist_link_vhosts(b);
	persist_link_access(b);
	persist_link_kind(b, OBJECT_POLICY, "policy", link_policy);
	persist_link_kind(b, OBJECT_EXCHANGE, "exchange", link_exchange);
	store_each_lane(b->store, DELAY_LANE_FIRST, link_delay_lane, b);
	persist_link_kind(b, OBJECT_QUEUE, "queue", link_queue);
	persist_link_kind(b, OBJECT_BINDING, "binding", link_binding);
	store_linked(b->store);
	vhost_empty_own(b);
	while (policies_run(b))
		continue;
}
