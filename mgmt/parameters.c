/* SPDX-License-Identifier: Apache-2.0
 * /api/parameters and /api/global-parameters. RabbitMQ keeps policies and limits as parameters, so they are shown among
 * them, but for policies in the list of all. Components that could be set this way (shovels, federation) are not here yet. */
#include "broker/parameter.h"

#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/mem.h"
#include "broker/broker.h"
#include "broker/limits.h"
#include "broker/policy.h"
#include "broker/user.h"
#include "broker/vhost.h"
#include "mgmt/about.h"
#include "mgmt/access_json.h"
#include "mgmt/access_lists.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"
#include "mgmt/settings_note.h"

void
route_parameters(struct request *r)
{
	listing_reply(r, &parameter_list, NULL, NULL);
}

void
route_parameters_component(struct request *r)
{
	listing_reply_owner(r, &parameter_list, request_arg(r, 0));
}

void
route_parameters_vhost(struct request *r)
{
	listing_reply_owner(r, &parameter_list, request_arg(r, 0));
}

void
route_parameter(struct request *r)
{
	void *item = parameter_item(r->vhost, request_arg(r, 0), request_arg(r, 2));

	if (item == NULL)
		reply_not_found(r);
	else
		reply_document(r, &parameter_list, item);
}

/* /api/parameters/vhost-limits/:vhost/limits, which is what limits of a vhost are in RabbitMQ */
static bool
names_limits(const struct request *r)
{
	return span_is(request_arg(r, 0), "vhost-limits") && span_is(request_arg(r, 2), "limits");
}

static void
clear_limits(struct request *r)
{
	bool had = false;

	if ((r->user->tags & TAG_ADMINISTRATOR) == 0) {
		reply_not_authorised(r, "Not administrator user"); /* as at /api/vhost-limits */
		return;
	}
	for (unsigned i = 0; i < VHOST_LIMITS; i++) {
		had |= r->vhost->limit[i].is_set;
		vhost_limit_clear(r->vhost, (enum vhost_limit)i);
	}
	if (had) {
		note_vhost_limits(r, r->vhost);
		reply_done(r, 204);
	} else {
		reply_not_found(r);
	}
}

void
route_parameter_put(struct request *r)
{
	struct span component = request_arg(r, 0);
	const json_t *value = json_object_get(r->body, "value");
	char why[ACCESS_REASON_MAX];

	if (value == NULL)
		reply_bad(r, "[{key_missing,value}]: the body has to have 'value'");
	else if (span_is(component, "policy") || span_is(component, "operator_policy"))
		reply_bad(r, "policies may not be set using this method");
	else if (!names_limits(r))
		reply_bad(
		    r, "Validation failed\n\ncomponent %.*s not found\n", SPAN_FMT(component));
	else if ((r->user->tags & TAG_ADMINISTRATOR) == 0)
		reply_not_authorised(r, "Not administrator user"); /* as at /api/vhost-limits */
	else if (!limits_replace_json(r->vhost, value, why, sizeof why))
		reply_bad(r, "%s", why);
	else {
		note_vhost_limits(r, r->vhost);
		reply_done(r, 204);
	}
}

void
route_parameter_delete(struct request *r)
{
	struct parameter *p =
	    parameter_find(r->m->broker, r->vhost, request_arg(r, 0), request_arg(r, 2));

	if (p != NULL) {
		parameter_clear(p);
		reply_done(r, 204);
	} else if (names_limits(r)) {
		clear_limits(r);
	} else {
		reply_not_found(r);
	}
}

/* --- global ones --------------------------------------------------------------------------- */

static struct parameter *
global(const struct mgmt *m, struct span name)
{
	return parameter_find(m->broker, NULL, span_of(NULL, 0), name);
}

struct value_text {
	size_t n;
	char p[PARAMETER_VALUE_MAX + 2];
};

/* Stops at one byte more than a value may have, with which it is refused. */
static int
add_text(const char *p, size_t n, void *arg)
{
	struct value_text *t = arg;
	size_t room = PARAMETER_VALUE_MAX + 1 - t->n, take = n < room ? n : room;

	memcpy(t->p + t->n, p, take);
	t->n += take;
	return t->n > PARAMETER_VALUE_MAX ? -1 : 0;
}

static const struct error *
set_global(struct mgmt *m, struct span name, const json_t *value, bool *is_new)
{
	struct value_text *t = xmalloc(sizeof *t);
	const struct error *e;

	t->n = 0;
	if (json_dump_callback(value, add_text, t, JSON_ENCODE_ANY | JSON_COMPACT) < 0 &&
	    t->n <= PARAMETER_VALUE_MAX)
		mem_exhausted(0, __builtin_return_address(0));
	e = parameter_set(m->broker, NULL, span_of(NULL, 0), name, span_of(t->p, t->n), is_new);
	free(t);
	return e;
}

void
route_global_parameters(struct request *r)
{
	listing_reply(r, &global_parameter_list, NULL, NULL);
}

void
route_global_parameter(struct request *r)
{
	struct parameter *p = global(r->m, request_arg(r, 0));

	if (p == NULL)
		reply_not_found(r);
	else
		reply_document(r, &global_parameter_list, p);
}

void
route_global_parameter_put(struct request *r)
{
	const json_t *value = json_object_get(r->body, "value");
	const struct error *e;
	bool is_new;

	if (value == NULL) {
		reply_bad(r, "[{key_missing,value}]: the body has to have 'value'");
		return;
	}
	e = set_global(r->m, request_arg(r, 0), value, &is_new);
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_done(r, is_new ? 201 : 204);
}

void
route_global_parameter_delete(struct request *r)
{
	struct parameter *p = global(r->m, request_arg(r, 0));

	if (p == NULL) {
		reply_not_found(r);
		return;
	}
	parameter_clear(p);
	reply_done(r, 204);
}

/* --- the name of the cluster, which is one of them ------------------------------------------- */

json_t *
about_cluster_name(const struct mgmt *m)
{
	const struct parameter *p = global(m, SPAN_LIT("cluster_name"));
	json_t *name = p != NULL ? json_loads(p->value, JSON_DECODE_ANY, NULL) : NULL;

	if (json_is_string(name))
		return name;
	json_decref(name);
	return json_string(m->cfg->node_name);
}

void
route_cluster_name_put(struct request *r)
{
	const json_t *name = json_object_get(r->body, "name");
	const struct error *e;

	if (name == NULL)
		reply_bad(r, "[{key_missing,name}]: the body has to have 'name'");
	else if (!json_is_string(name) || json_string_length(name) == 0)
		reply_bad(r, "the name is no text");
	else if ((e = set_global(r->m, SPAN_LIT("cluster_name"), name, NULL)) != NULL)
		reply_refused(r, e);
	else
		reply_done(r, 204);
}
