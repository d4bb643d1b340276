/* SPDX-License-Identifier: Apache-2.0
 * Vhosts by name, made with the exchanges that every one has, and their end.
 *
 * One that is deleted cannot be found from then on, and its name is free for another. It stays on broker->gone_vhosts
 * until its clients have been told and have gone, and its queues and exchanges were deleted, some in each turn. Until then
 * the store has its record, marked, so that a restart goes on with it; what is in it names it by name alone, and belongs
 * to it by being older than its successor (`since`). */
#include "broker/vhost.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bound.h"
#include "base/config.h"
#include "base/mem.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/dead_letter.h"
#include "broker/event.h"
#include "broker/exchange.h"
#include "broker/history.h"
#include "broker/name.h"
#include "broker/notice.h"
#include "broker/parameter.h"
#include "broker/permission.h"
#include "broker/policy_apply.h"
#include "broker/persist_access.h"
#include "broker/queue.h"
#include "broker/topic_permission.h"
#include "broker/trace.h"

/* Of a turn, in bindings, permissions, policies, dead letters, ... of a vhost that goes. */
enum { DROP_STEPS = 512, QUEUE_STEPS = 8, VHOST_STEPS = 16 };

static const struct {
	const char *name;
	enum exchange_type type;
	bool internal;
} predeclared[] = {
	{ "", EXCHANGE_DIRECT, false },
	{ "amq.direct", EXCHANGE_DIRECT, false },
	{ "amq.fanout", EXCHANGE_FANOUT, false },
	{ "amq.topic", EXCHANGE_TOPIC, false },
	{ "amq.headers", EXCHANGE_HEADERS, false },
	{ "amq.match", EXCHANGE_HEADERS, false },
	{ "amq.rabbitmq.trace", EXCHANGE_TOPIC, true },
};

/* Of all vhosts it has the exchange of events. */
static bool
is_default(const struct broker *b, struct span name)
{
	return span_is(name, b->cfg->default_vhost != NULL ? b->cfg->default_vhost : "/");
}

static struct vhost *
make(struct broker *b, struct span name, uint64_t id)
{
	struct vhost *vh = xcalloc(1, sizeof *vh);
	size_t i;

	vh->broker = b;
	TAILQ_INIT(&vh->queues);
	for (i = 0; i < POLICY_KINDS; i++)
		TAILQ_INIT(&vh->policy_order[i]);
	vh->name = xstrndup(SPAN_CHARS(name), name.n);
	vh->id = vh->since = id != 0 ? id : ++b->next_id;
	vh->description = xstrdup("");
	for (i = 0; i < (name.n > 0 ? COUNT_OF(predeclared) : 1); i++)
		exchange_predeclare(
		    vh, predeclared[i].name, predeclared[i].type, predeclared[i].internal);
	if (b->events == NULL && is_default(b, name))
		b->events = exchange_predeclare(vh, event_exchange, EXCHANGE_TOPIC, true);
	series_init(&b->series, &vh->series, SERIES_VHOST, b->now_ms);
	if (vhost_is_own(vh))
		series_hide(&b->series, &vh->series);
	else
		history_watch(b, &vh->series);
	series_is_old(&vh->series);
	vh->default_exchange = exchange_find(vh, SPAN_LIT(""));
	assert(vh->default_exchange != NULL);
	return vh;
}

static struct vhost *
add(struct broker *b, struct span name, uint64_t id)
{
	struct vhost *vh;

	if (name.n == 0 || name.n > NAME_BYTES_MAX || vhost_find(b, name) != NULL)
		return NULL;
	vh = make(b, name, id);
	HASH_ADD_KEYPTR(hh, b->vhosts, vh->name, name.n, vh);
	return vh;
}

struct vhost *
vhost_add(struct broker *b, const char *name)
{
	struct vhost *vh = add(b, span_str(name), 0);

	if (vh != NULL)
		persist_vhost(vh);
	return vh;
}

struct vhost *
vhost_restore(struct broker *b, const char *name, uint64_t id)
{
	return add(b, span_str(name), id);
}

struct vhost *
vhost_restore_gone(struct broker *b, const char *name, uint64_t id)
{
	struct vhost *vh = make(b, span_str(name), id);

	series_fini(&b->series, &vh->series);
	vh->is_deleted = true;
	TAILQ_INSERT_TAIL(&b->gone_vhosts, vh, gone_link);
	return vh;
}

struct vhost *
vhost_find(const struct broker *b, struct span name)
{
	struct vhost *vh;

	HASH_FIND(hh, b->vhosts, SPAN_CHARS(name), name.n, vh);
	return vh;
}

struct vhost *
vhost_own(struct broker *b)
{
	if (b->own == NULL) {
		b->own = make(b, SPAN_LIT(""), 0);
		b->stats.exchanges--; /* it is shown to nobody */
	}
	return b->own;
}

void
vhost_empty_own(struct broker *b)
{
	struct queue *q;

	while (b->own != NULL && (q = TAILQ_FIRST(&b->own->queues)) != NULL)
		queue_remove(q);
}

struct vhost *
vhost_of_object(const struct broker *b, struct span name, uint64_t id)
{
	struct vhost *vh = vhost_find(b, name), *old;

	if (vh != NULL && id >= vh->since)
		return vh;
	vh = NULL;
	TAILQ_FOREACH (old, &b->gone_vhosts, gone_link)
		if (span_is(name, old->name) && id >= old->since &&
		    (vh == NULL || old->since > vh->since))
			vh = old;
	return vh;
}

/* ---- what operators say ---- */

static const struct error *
check_queue_type(struct span type)
{
	if (type.n == 0 || span_is(type, "undefined") || span_is(type, "classic") ||
	    span_is(type, "quorum") || span_is(type, "stream"))
		return NULL;
	return error_make(
	    E_PRECONDITION_FAILED, "unknown default queue type '%.*s'", SPAN_FMT(type));
}

static const struct error *
check_spec(const struct broker *b, struct span name, const struct vhost_spec *spec)
{
	const struct error *e = name_check("a vhost's name", name);

	if (e == NULL && name.n == 0)
		e = error_make(E_PRECONDITION_FAILED, "a vhost's name must not be empty");
	if (e == NULL)
		e = name_check("a vhost's description", spec->description);
	if (e == NULL && vhost_find(b, name) == NULL && HASH_COUNT(b->vhosts) >= VHOSTS_MAX) {
		bound_reached(BOUND_vhosts);
		e = error_make(
		    E_PRECONDITION_FAILED, "there are %d vhosts, more are not allowed", VHOSTS_MAX);
	}
	return e != NULL ? e : check_queue_type(spec->default_queue_type);
}

const struct error *
vhost_fill(struct vhost *vh, const struct vhost_spec *spec)
{
	struct span type = spec->default_queue_type;
	const struct error *e = NULL;

	if (spec->tag != NULL && (e = tags_set(&vh->tags, spec->tag, spec->tag_count)) != NULL)
		return e;
	if (spec->description.p != NULL) {
		free(vh->description);
		vh->description = xstrndup(SPAN_CHARS(spec->description), spec->description.n);
	}
	if (type.p != NULL) {
		free(vh->default_queue_type);
		vh->default_queue_type = type.n == 0 || span_is(type, "undefined")
		                             ? NULL
		                             : xstrndup(SPAN_CHARS(type), type.n);
	}
	if (spec->tracing >= 0)
		trace_switch(vh, spec->tracing != 0);
	return NULL;
}

const struct error *
vhost_set(struct broker *b, struct span name, const struct vhost_spec *spec, struct vhost **out,
    bool *created)
{
	struct vhost *vh = vhost_find(b, name);
	const struct error *e = check_spec(b, name, spec);
	bool is_new = vh == NULL;

	if (e != NULL)
		return e;
	if (is_new)
		vh = add(b, name, 0);
	e = vhost_fill(vh, spec);
	if (e != NULL) {
		if (is_new)
			vhost_drop(vh);
		return e;
	}
	persist_vhost(vh);
	event_vhost(vh, is_new ? EVENT_MADE : EVENT_CHANGED);
	if (out != NULL)
		*out = vh;
	if (created != NULL)
		*created = is_new;
	return NULL;
}

/* ---- the end ---- */

static void
vhost_free(struct vhost *vh)
{
	bool has_series = !vh->is_deleted;
	unsigned all = UINT_MAX;
	struct queue *q;

	vh->is_deleted = true;
	trace_switch(vh, false);
	notices_forget(vh);
	policies_forget_vhost(vh);
	while ((q = TAILQ_FIRST(&vh->queues)) != NULL)
		queue_remove(q);
	while (dead_letters_forget_some(vh, &all) || exchanges_free_some(vh, &all) ||
	       permissions_drop_some(vh, &all) || topic_permissions_drop_some(vh, &all))
		all = UINT_MAX;
	policies_free(vh);
	assert(vh->alternates == NULL && vh->unbound == NULL);
	parameters_free(&vh->parameters);
	tags_fini(&vh->tags);
	free(vh->description);
	free(vh->default_queue_type);
	free(vh->gone_by);
	if (has_series)
		series_fini(&vh->broker->series, &vh->series);
	free(vh->name);
	free(vh);
}

/* Nobody was told that it is there, nor of its exchanges. */
void
vhost_drop(struct vhost *vh)
{
	struct broker *b = vh->broker;
	bool was_silent = b->is_silent;

	HASH_DEL(b->vhosts, vh);
	b->is_silent = true;
	vhost_free(vh);
	b->is_silent = was_silent;
}

/* Its clients are to be closed. True: there are more. */
static bool
tell_some(struct vhost *vh, unsigned *left)
{
	struct client *c;
	char why[NAME_BYTES_MAX + 32];

	snprintf(why, sizeof why, "vhost '%s' is deleted", vh->name);
	for (; *left > 0 && (c = LIST_FIRST(&vh->clients)) != NULL; --*left) {
		LIST_REMOVE(c, vhost_link);
		LIST_INSERT_HEAD(&vh->told, c, vhost_link);
		client_force_close(c, why);
	}
	return !LIST_EMPTY(&vh->clients);
}

static bool
remove_some_queues(struct vhost *vh, unsigned *left)
{
	struct queue *q;

	while (*left > 0 && (q = TAILQ_FIRST(&vh->queues)) != NULL &&
	       !bindings_drop_some(q, left) && *left > 0) {
		queue_remove(q);
		*left -= *left < QUEUE_STEPS ? *left : QUEUE_STEPS;
	}
	return !TAILQ_EMPTY(&vh->queues);
}

/* Rights, and what nobody can look at any more. True: there is more. */
static bool
forget_some(struct vhost *vh, unsigned *left)
{
	return permissions_drop_some(vh, left) || topic_permissions_drop_some(vh, left) ||
	       tell_some(vh, left) || parameters_drop_some(vh, left) ||
	       policies_drop_some(vh, left);
}

/* Exchanges go when no client is left who could still name one. True: more can be done now. */
static bool
empty_some(struct vhost *vh, unsigned *left)
{
	if (forget_some(vh, left) || remove_some_queues(vh, left))
		return true;
	if (vh->connections > 0)
		return false;
	return dead_letters_forget_some(vh, left) || exchanges_free_some(vh, left);
}

void
vhost_clear(struct vhost *vh)
{
	struct broker *b = vh->broker;
	unsigned left = DROP_STEPS;

	event_vhost(vh, EVENT_GOES);
	if (b->actor != NULL && b->actor->user != NULL)
		vh->gone_by = xstrdup(b->actor->user);
	if (b->events != NULL && b->events->vhost == vh)
		b->events = NULL; /* the next one of its name has it */
	HASH_DEL(b->vhosts, vh);
	series_fini(&b->series, &vh->series); /* no list shows it any more */
	vh->is_deleted = true;
	policies_forget_vhost(vh);
	persist_vhost(vh);
	b->permission_epoch++;
	TAILQ_INSERT_TAIL(&b->gone_vhosts, vh, gone_link);
	(void)forget_some(vh, &left);
}

/* Shares its steps with clients that end, whose queues go in the same turn. */
bool
vhosts_run(struct broker *b)
{
	unsigned left = DROP_STEPS;
	struct vhost *vh, *next;
	bool more = false;

	for (vh = TAILQ_FIRST(&b->gone_vhosts); vh != NULL && !more; vh = next) {
		const struct log_who by = { .user = vh->gone_by };

		next = TAILQ_NEXT(vh, gone_link);
		b->actor = &by; /* what is in it goes by his hand, though later */
		more = empty_some(vh, &left) || (left == 0 && vh->connections == 0);
		b->actor = NULL;
		if (more || vh->connections > 0)
			continue;
		TAILQ_REMOVE(&b->gone_vhosts, vh, gone_link);
		persist_vhost_gone(vh);
		vhost_free(vh);
		left -= left < VHOST_STEPS ? left : VHOST_STEPS;
		more = left == 0 && next != NULL;
	}
	b->ended += (DROP_STEPS - left) * BROKER_END_QUEUE / QUEUE_STEPS;
	return more;
}

void
vhosts_free(struct broker *b)
{
	struct vhost *vh;

	while ((vh = b->vhosts) != NULL)
		vhost_drop(vh);
	if (b->own != NULL) {
		b->stats.exchanges++;
		vhost_free(b->own);
		b->own = NULL;
	}
	while ((vh = TAILQ_FIRST(&b->gone_vhosts)) != NULL) {
		TAILQ_REMOVE(&b->gone_vhosts, vh, gone_link);
		vhost_free(vh);
	}
}
