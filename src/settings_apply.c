/* SPDX-License-Identifier: Apache-2.0
 * The walk over the lists of the settings, in an order in which each entry finds what it names; queues, exchanges and
 * bindings. */
#include "settings_apply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/policy.h"
#include "broker/queue.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "settings.h"

/* Passwords that are on their way to workers beside each other. */
enum { HASHES_AHEAD = 8 };

struct settings_apply {
	struct broker *broker; /* borrowed, as the next two */
	const struct settings *settings;
	struct problems *problems;
	uint64_t first_id; /* what has a lower id was there before */
	unsigned stage;
	uint32_t item;
	/* Of users: number i is in place i % HASHES_AHEAD; those before `begun` were begun. */
	struct password_work *work[HASHES_AHEAD]; /* owned */
	uint32_t begun;
	bool waits;
};

/* ---- queues, exchanges, bindings ---- */

static void
refused(const struct settings_item *t, const char *what, const char *name, const struct error *e,
    struct problems *p)
{
	problem(p, t->at, "%s '%.100s': %s", what, name, e->text);
}

/* What the store had is there already, and stays: then the settings have to agree with it. */
static void
not_declared(const struct settings_item *t, const char *what, bool was_there, const struct error *e,
    struct problems *p)
{
	if (was_there)
		problem(p, t->at,
		    "%s '%.100s': %s. It was there already; delete it, or change its entry", what,
		    t->name, e->text);
	else
		refused(t, what, t->name, e, p);
}

static void
declare_exchange(struct settings_apply *a, const struct settings_item *t)
{
	struct vhost *vh = settings_vhost_of(a->broker, t, t->vhost, a->problems);
	const struct exchange_spec spec = { .name = span_str(t->name),
		.type = span_str(t->type),
		.durable = t->durable,
		.auto_delete = t->auto_delete,
		.internal = t->internal,
		.arguments = t->arguments };
	const struct error *e;
	struct exchange *x;

	if (vh == NULL || (e = exchange_declare(vh, &spec, &x)) == NULL)
		return;
	x = exchange_find(vh, spec.name);
	not_declared(t, "exchange", x != NULL && x->id < a->first_id && !exchange_is_predeclared(x),
	    e, a->problems);
}

static void
declare_queue(struct settings_apply *a, const struct settings_item *t)
{
	struct vhost *vh = settings_vhost_of(a->broker, t, t->vhost, a->problems);
	const struct queue_spec spec = { .name = span_str(t->name),
		.durable = t->durable,
		.auto_delete = t->auto_delete,
		.arguments = t->arguments };
	const struct error *e;
	struct queue *q;

	if (vh == NULL || (e = queue_declare(vh, &spec, NULL, &q)) == NULL)
		return;
	q = queue_find(vh, spec.name);
	not_declared(t, "queue", q != NULL && q->id < a->first_id, e, a->problems);
}

static void
declare_binding(struct settings_apply *a, const struct settings_item *t)
{
	struct vhost *vh = settings_vhost_of(a->broker, t, t->vhost, a->problems);
	bool to_exchange = strcmp(t->destination_type, "exchange") == 0;
	struct exchange *source, *x = NULL;
	struct queue *q = NULL;
	const struct error *e;

	if (vh == NULL)
		return;
	if (!to_exchange && strcmp(t->destination_type, "queue") != 0) {
		problem(a->problems, t->at,
		    "binding from '%.100s': destination_type must be queue or exchange", t->source);
		return;
	}
	e = exchange_lookup(vh, span_str(t->source), &source);
	if (e == NULL && to_exchange)
		e = exchange_lookup(vh, span_str(t->destination), &x);
	else if (e == NULL)
		e = queue_lookup(vh, span_str(t->destination), NULL, &q);
	if (e == NULL)
		e = binding_add(source, q, x, span_str(t->routing_key), t->arguments);
	if (e != NULL && !(e->id == E_NOT_FOUND && a->problems->is_partial))
		refused(t, "binding from", t->source, e, a->problems);
}

/* ---- the rest ---- */

static void
apply_vhost(struct settings_apply *a, const struct settings_item *t)
{
	settings_apply_vhost(a->broker, t, a->problems);
}

static void
apply_policy(struct settings_apply *a, const struct settings_item *t)
{
	settings_apply_policy(a->broker, POLICY_USER, t, a->problems);
}

static void
apply_operator_policy(struct settings_apply *a, const struct settings_item *t)
{
	settings_apply_policy(a->broker, POLICY_OPERATOR, t, a->problems);
}

/* The passwords of some of the next users are begun, too. */
static void
apply_user(struct settings_apply *a, const struct settings_item *t)
{
	const struct settings_list *l = &a->settings->users;
	struct password_work **w = &a->work[a->item % HASHES_AHEAD];

	for (; a->begun < l->count && a->begun < a->item + HASHES_AHEAD; a->begun++)
		if (!l->item[a->begun].is_broken)
			a->work[a->begun % HASHES_AHEAD] =
			    password_work_begin(a->broker, &l->item[a->begun]);
	a->waits = !password_work_is_done(*w);
	if (a->waits)
		return;
	settings_apply_user(a->broker, t, *w, a->problems);
	password_work_end(w);
}

/* Policies come before the queues that they are about. */
static const struct stage {
	size_t offset; /* of the list in struct settings */
	void (*apply)(struct settings_apply *a, const struct settings_item *t);
	bool others_name_it;
} stages[] = {
	{ offsetof(struct settings, vhosts), apply_vhost, true },
	{ offsetof(struct settings, users), apply_user, false },
	{ offsetof(struct settings, policies), apply_policy, false },
	{ offsetof(struct settings, operator_policies), apply_operator_policy, false },
	{ offsetof(struct settings, exchanges), declare_exchange, true },
	{ offsetof(struct settings, queues), declare_queue, true },
	{ offsetof(struct settings, bindings), declare_binding, false },
};

/* Of a trial: made with what is right in it, or else with its name only, so that others find it. */
static void
apply_broken(struct settings_apply *a, const struct stage *stage, const struct settings_item *t)
{
	struct problems unsaid = { .file = "" }, *p = a->problems;
	const struct settings_item plain = {
		.name = t->name, .vhost = t->vhost, .type = (char *)"direct", .durable = true
	};

	if (!stage->others_name_it || t->name == NULL)
		return;
	a->problems = &unsaid;
	stage->apply(a, t);
	if (unsaid.count > 0)
		stage->apply(a, &plain);
	problems_fini(&unsaid);
	a->problems = p;
}

static const struct settings_list *
list_of(const struct settings *s, const struct stage *stage)
{
	return (const struct settings_list *)(const void *)((const char *)s + stage->offset);
}

/* ---- the walk ---- */

struct settings_apply *
settings_apply_new(struct broker *b, const struct settings *s, struct problems *p)
{
	struct settings_apply *a = xcalloc(1, sizeof *a);

	a->broker = b;
	a->settings = s;
	a->problems = p;
	a->first_id = b->next_id + 1;
	b->settings_read++;
	p->file = s->file != NULL ? s->file : "settings";
	return a;
}

/* A step. False: there is none left. */
static bool
step(struct settings_apply *a)
{
	const struct settings *s = a->settings;

	if (a->stage < COUNT_OF(stages)) {
		const struct settings_list *l = list_of(s, &stages[a->stage]);

		if (a->item < l->count) {
			const struct settings_item *t = &l->item[a->item];

			if (unlikely(t->is_broken))
				apply_broken(a, &stages[a->stage], t);
			else
				stages[a->stage].apply(a, t);
			a->item += !a->waits;
		} else {
			a->stage++;
			a->item = 0;
		}
		return true;
	}
	if (settings_drop_some(a->broker, s))
		return true;
	if (s->users.count > 0)
		users_drop_defaults(a->broker, "the settings have users");
	else if (a->broker->users == NULL)
		users_begin(a->broker);
	return false;
}

bool
settings_apply_run(struct settings_apply *a, uint64_t budget_us)
{
	uint64_t end_us = clock_mono_us() + budget_us;
	bool more;

	a->waits = false;
	do
		more = step(a);
	while (more && !a->waits && clock_mono_us() < end_us);
	return !more;
}

bool
settings_apply_waits(const struct settings_apply *a)
{
	return a->waits;
}

void
settings_apply_free(struct settings_apply **ap)
{
	struct settings_apply *a = *ap;

	*ap = NULL;
	if (a == NULL)
		return;
	for (unsigned i = 0; i < HASHES_AHEAD; i++)
		password_work_end(&a->work[i]);
	free(a);
}

void
settings_declare(const struct settings *s, struct broker *b, struct problems *p)
{
	struct settings_apply *a = settings_apply_new(b, s, p);

	assert(b->hashers == NULL);
	while (!settings_apply_run(a, 1000000))
		continue;
	settings_apply_free(&a);
}
