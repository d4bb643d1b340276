/* SPDX-License-Identifier: Apache-2.0
 * /api/policies and /api/operator-policies. */
#include <stdio.h>
#include <stdlib.h>

#include "broker/broker.h"
#include "broker/policy.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/access_json.h"
#include "mgmt/access_lists.h"
#include "mgmt/json_table.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/policies.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

/* ---- asked for ---- */

static void
get_one(struct request *r, enum policy_kind kind)
{
	struct policy *p = policy_find(r->vhost, kind, request_arg(r, 1));

	if (p == NULL)
		reply_not_found(r);
	else
		reply_document(r, &policy_lists[kind], p);
}

/* In r->vhost, or in all. */
static void
list(struct request *r, enum policy_kind kind)
{
	const struct vhost *vh = r->vhost;

	listing_reply(r, &policy_lists[kind], vh, vh != NULL ? &vh->series : NULL);
}

/* ---- changed ---- */

/* Answers wait until the queues and exchanges that are there have learnt of the change, and the store has what they keep
 * of it: after a kill they are as they were when it was answered. */
struct policy_change {
	struct request *r; /* borrowed */
	int status;
	uint64_t change; /* as broker->policy_changes counts */
	TAILQ_ENTRY(policy_change) link;
};

static void
reply_when_applied(struct request *r, int status)
{
	struct mgmt *m = r->m;
	struct policy_change *c;

	(void)policies_run(m->broker);
	if (policies_pending(m->broker) > m->broker->policy_changes) {
		reply_done(r, status);
		return;
	}
	c = xcalloc(1, sizeof *c);
	c->r = r;
	c->status = status;
	c->change = m->broker->policy_changes;
	TAILQ_INSERT_TAIL(&m->policy_changes, c, link);
	request_defer(r);
}

/* The next one before `pending`. */
static struct policy_change *
next_change(struct mgmt *m, uint64_t pending)
{
	struct policy_change *c = TAILQ_FIRST(&m->policy_changes);

	if (c == NULL || c->change >= pending)
		return NULL;
	TAILQ_REMOVE(&m->policy_changes, c, link);
	return c;
}

void
policy_changes_run(struct mgmt *m)
{
	struct policy_change *c;
	uint64_t pending;

	if (likely(TAILQ_EMPTY(&m->policy_changes)))
		return;
	pending = policies_pending(m->broker);
	while ((c = next_change(m, pending)) != NULL) {
		reply_done(c->r, c->status);
		free(c);
	}
}

void
policy_changes_stop(struct mgmt *m)
{
	struct policy_change *c;

	while ((c = next_change(m, UINT64_MAX)) != NULL)
		free(c);
}

const char *
policy_set_json(struct vhost *vh, enum policy_kind kind, struct span name, const json_t *body,
    bool *is_new, char *buf, size_t n)
{
	const json_t *pattern = json_object_get(body, "pattern"),
	             *definition = json_object_get(body, "definition"),
	             *priority = json_object_get(body, "priority"),
	             *apply_to = json_object_get(body, "apply-to");
	struct policy_spec spec = { .name = name, .pattern = json_span(pattern) };
	struct table *table;
	const struct error *e;
	const char *wrong;

	if (pattern == NULL || definition == NULL) {
		const char *missing = definition == NULL ? "definition" : "pattern";

		(void)snprintf(
		    buf, n, "[{key_missing,%s}]: a policy has to have '%s'", missing, missing);
		return buf;
	}
	if (!json_is_string(pattern))
		return "Validation failed\n\npattern should be a string\n";
	if (priority != NULL && !json_is_integer(priority)) {
		char *term = json_term(priority);

		(void)snprintf(buf, n,
		    "Validation failed\n\npriority should be a number, actually was %.60s%s\n",
		    term != NULL ? term : "another value",
		    json_is_real(priority) ? ": only integers are taken" : "");
		free(term);
		return buf;
	}
	if (apply_to != NULL && !json_is_string(apply_to))
		return "Validation failed\n\napply-to should be a string\n";
	if ((wrong = json_to_table(definition, &table)) != NULL) {
		(void)snprintf(buf, n, "Validation failed\n\ndefinition: %s\n", wrong);
		return buf;
	}
	spec.definition = table;
	spec.priority = json_integer_value(priority);
	if (apply_to != NULL)
		spec.apply_to =
		    json_string_length(apply_to) > 0 ? json_span(apply_to) : SPAN_LIT("''");
	e = policy_set(vh, kind, &spec, is_new);
	table_free(&table);
	if (e == NULL)
		return NULL;
	(void)snprintf(buf, n, "%s", refusal_text(e));
	return buf;
}

static void
put_one(struct request *r, enum policy_kind kind)
{
	char buf[POLICY_REASON_MAX];
	bool is_new;
	const char *wrong =
	    policy_set_json(r->vhost, kind, request_arg(r, 1), r->body, &is_new, buf, sizeof buf);

	if (wrong != NULL) {
		reply_bad(r, "%s", wrong);
	} else {
		note_policy(r, policy_find(r->vhost, kind, request_arg(r, 1)), false);
		reply_when_applied(r, is_new ? 201 : 204);
	}
}

static void
delete_one(struct request *r, enum policy_kind kind)
{
	const struct policy *p = policy_find(r->vhost, kind, request_arg(r, 1));

	if (p != NULL)
		note_policy(r, p, true);
	if (policy_clear(r->vhost, kind, request_arg(r, 1)))
		reply_when_applied(r, 204);
	else
		reply_not_found(r);
}

/* ---- routes ---- */

#define HANDLERS(name, kind)                          \
	void route_##name(struct request *r)          \
	{                                             \
		list(r, kind);                        \
	}                                             \
	void route_##name##_vhost(struct request *r)  \
	{                                             \
		list(r, kind);                        \
	}                                             \
	void route_##name##_get(struct request *r)    \
	{                                             \
		get_one(r, kind);                     \
	}                                             \
	void route_##name##_put(struct request *r)    \
	{                                             \
		put_one(r, kind);                     \
	}                                             \
	void route_##name##_delete(struct request *r) \
	{                                             \
		delete_one(r, kind);                  \
	}

HANDLERS(policies, POLICY_USER)
HANDLERS(operator_policies, POLICY_OPERATOR)
