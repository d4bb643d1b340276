/* SPDX-License-Identifier: Apache-2.0
 * Lists of policies and of parameters: parts of a vhost, or of the node. A row has a name, and an id that one of that name
 * which is made later has not. */
#include "mgmt/access_lists.h"

#include <string.h>

#include "base/attr.h"
#include "broker/broker.h"
#include "broker/limits.h"
#include "broker/parameter.h"
#include "broker/vhost.h"
#include "mgmt/access_out.h"
#include "mgmt/list_order.h"

/* Row_id.a: the kind of policy, or one of these; b: its id. */
enum { IS_LIMITS = POLICY_KINDS, IS_PARAMETER };

static const char *const component_of[] = { [POLICY_USER] = "policy",
	[POLICY_OPERATOR] = "operator_policy",
	[IS_LIMITS] = "vhost-limits" };

static void
add(struct listing *l, const struct vhost *vh, uint64_t what, uint64_t id, struct span text,
    struct span name, void *item)
{
	struct row_id row = { .a = what, .b = id, .text = text };
	char order[LIST_ORDER];

	row.object = series_ref(listing_series(l), &vh->series);
	listing_add(l, &row, name, list_order(order, vh->id, what << 60 | id), item);
}

static const void *
first_policy(const struct series *s, enum policy_kind kind)
{
	const struct vhost *vh = series_object(s);

	return WALK_LINK(vh->policies[kind], hh);
}

static const void *
first_of_user(const struct series *s)
{
	return first_policy(s, POLICY_USER);
}

static const void *
first_of_operator(const struct series *s)
{
	return first_policy(s, POLICY_OPERATOR);
}

static struct policy *
policy_of_row(const struct scope *scope, void *object, const struct row_id *id)
{
	const struct vhost *vh = object;
	struct policy *p = NULL;

	if (scope_sees(scope, vh))
		p = policy_find(vh, (enum policy_kind)id->a, id->text);
	return p != NULL && p->id == id->b ? p : NULL;
}

/* ---- policies ---- */

static void *
find_policy(const struct scope *scope, void *object, const struct row_id *id)
{
	return policy_of_row(scope, object, id);
}

static const void *
add_policy(struct listing *l, const struct scope *scope, const void *at)
{
	struct policy *p = WALK_AT(at, policy, hh);

	if (scope_sees(scope, p->vhost))
		add(l, p->vhost, p->kind, p->id, span_str(p->name), span_str(p->name), p);
	return WALK_LINK((struct policy *)p->hh.next, hh);
}

static void
write_policy(const struct doc *d, void *item)
{
	out_policy(d->out, item, true);
}

#define POLICIES(first_one)                                                                      \
	{                                                                                        \
		.kinds = { SERIES_VHOST, SERIES_VHOST }, .parts = { { first_one, add_policy } }, \
		.find = find_policy, .write = write_policy                                       \
	}
const struct listing_source policy_lists[POLICY_KINDS] = {
	[POLICY_USER] = POLICIES(first_of_user),
	[POLICY_OPERATOR] = POLICIES(first_of_operator),
};

/* ---- parameters, and what RabbitMQ keeps as such ---- */

/* One of them. */
struct parameter_view {
	const struct vhost *limits;
	const struct policy *policy;
	const struct parameter *parameter;
};
static struct parameter_view found; /* core thread only: good until the next one */

static void *
view(struct parameter_view v)
{
	found = v;
	return v.limits != NULL || v.policy != NULL || v.parameter != NULL ? &found : NULL;
}

/* Policies have a list of their own: among all others only those of operators are shown. */
static bool
is_wanted(const struct scope *s, const char *component)
{
	return s->owner != NULL ? strcmp(s->owner, component) == 0
	                        : component != component_of[POLICY_USER];
}

static struct parameter *
parameter_of_row(const struct broker *b, const struct vhost *vh, const struct row_id *id)
{
	size_t n = strlen((const char *)id->text.p) + 1; /* component, NUL, name, as its key */
	struct parameter *p = parameter_find(
	    b, vh, span_of(id->text.p, n - 1), span_of(id->text.p + n, id->text.n - n));

	return p != NULL && p->id == id->b ? p : NULL;
}

static struct span
key_of(const struct parameter *p)
{
	return span_of(p->key, strlen(p->component) + 1 + strlen(p->name));
}

static void *
find_parameter(const struct scope *scope, void *object, const struct row_id *id)
{
	const struct vhost *vh = object;

	if (!scope_sees(scope, vh))
		return NULL;
	if (id->a < POLICY_KINDS)
		return view((struct parameter_view){ .policy = policy_of_row(scope, object, id) });
	if (id->a == IS_LIMITS)
		return view((struct parameter_view){ .limits = vhost_has_limits(vh) ? vh : NULL });
	return view((struct parameter_view){ .parameter = parameter_of_row(vh->broker, vh, id) });
}

static void
collect_limits(struct listing *l, const struct scope *scope, void *object, struct row_id id UNUSED)
{
	const struct vhost *vh = object;

	if (scope_sees(scope, vh) && is_wanted(scope, component_of[IS_LIMITS]) &&
	    vhost_has_limits(vh))
		add(l, vh, IS_LIMITS, 0, SPAN_LIT(""), SPAN_LIT("limits"),
		    view((struct parameter_view){ .limits = vh }));
}

static const void *
add_policy_parameter(struct listing *l, const struct scope *scope, const void *at)
{
	struct policy *p = WALK_AT(at, policy, hh);

	if (scope_sees(scope, p->vhost) && is_wanted(scope, component_of[p->kind]))
		add(l, p->vhost, p->kind, p->id, span_str(p->name), span_str(p->name),
		    view((struct parameter_view){ .policy = p }));
	return WALK_LINK((struct policy *)p->hh.next, hh);
}

static const void *
first_parameter(const struct series *s)
{
	const struct vhost *vh = series_object(s);

	return WALK_LINK(vh->parameters, hh);
}

static const void *
add_parameter(struct listing *l, const struct scope *scope, const void *at)
{
	struct parameter *p = WALK_AT(at, parameter, hh);

	if (scope_sees(scope, p->vhost) && is_wanted(scope, p->component))
		add(l, p->vhost, IS_PARAMETER, p->id, key_of(p), span_str(p->name),
		    view((struct parameter_view){ .parameter = p }));
	return WALK_LINK((struct parameter *)p->hh.next, hh);
}

static void
write_parameter(const struct doc *d, void *item)
{
	const struct parameter_view *v = item;

	if (v->limits != NULL)
		out_limits_parameter(d->out, v->limits);
	else if (v->policy != NULL)
		out_policy_parameter(d->out, v->policy);
	else
		out_parameter(d->out, v->parameter);
}

const struct listing_source parameter_list = {
	.kinds = { SERIES_VHOST, SERIES_VHOST },
	.is_heavy = true,
	.collect = collect_limits,
	.parts = { { first_of_user, add_policy_parameter },
	    { first_of_operator, add_policy_parameter }, { first_parameter, add_parameter } },
	.find = find_parameter,
	.write = write_parameter,
};

void *
parameter_item(const struct vhost *vh, struct span component, struct span name)
{
	for (int kind = 0; kind < POLICY_KINDS; kind++)
		if (span_is(component, component_of[kind]))
			return view((struct parameter_view){
			    .policy = policy_find(vh, (enum policy_kind)kind, name) });
	if (span_is(component, component_of[IS_LIMITS]) && span_is(name, "limits"))
		return view((struct parameter_view){ .limits = vhost_has_limits(vh) ? vh : NULL });
	return view((struct parameter_view){
	    .parameter = parameter_find(vh->broker, vh, component, name) });
}

/* ---- global ones ---- */

static const void *
first_global(const struct series *s)
{
	const struct broker *b = series_object(s);

	return WALK_LINK(b->parameters, hh);
}

static const void *
add_global(struct listing *l, const struct scope *scope, const void *at)
{
	struct parameter *p = WALK_AT(at, parameter, hh);
	struct row_id id = { .b = p->id, .text = key_of(p) };
	char order[LIST_ORDER];

	id.object = series_ref(listing_series(l), &p->broker->node);
	if (scope->user != NULL)
		listing_add(l, &id, span_str(p->name), list_order(order, p->id, 0), p);
	return WALK_LINK((struct parameter *)p->hh.next, hh);
}

static void *
find_global(const struct scope *scope, void *object, const struct row_id *id)
{
	return scope->user != NULL ? parameter_of_row(object, NULL, id) : NULL;
}

static void
write_global(const struct doc *d, void *item)
{
	out_parameter(d->out, item);
}

const struct listing_source global_parameter_list = {
	.kinds = { SERIES_NODE, SERIES_NODE },
	.is_heavy = true,
	.parts = { { first_global, add_global } },
	.find = find_global,
	.write = write_global,
};
