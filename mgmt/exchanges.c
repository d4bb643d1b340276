/* SPDX-License-Identifier: Apache-2.0
 * /api/exchanges: lists, one exchange, its bindings. Publishing is publish.c's. */
#include "broker/alternate.h"
#include "broker/binding.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/table.h"
#include "broker/vhost.h"
#include "mgmt/acting.h"
#include "mgmt/binding_doc.h"
#include "mgmt/exchange_doc.h"
#include "mgmt/mgmt_priv.h"
#include "mgmt/request.h"

void
route_exchanges(struct request *r)
{
	listing_reply(r, &exchange_list, r->vhost, NULL);
}

/* NULL: it was answered. */
static struct exchange *
take_exchange(struct request *r)
{
	struct exchange *x = exchange_find(r->vhost, exchange_arg(r, 1));

	if (x == NULL)
		reply_not_found(r);
	return x;
}

void
route_exchange(struct request *r)
{
	struct exchange *x = take_exchange(r);

	if (x != NULL)
		reply_document(r, &exchange_list, x);
}

void
route_exchange_source(struct request *r)
{
	struct exchange *x = take_exchange(r);

	if (x == NULL)
		return;
	if (x == r->vhost->default_exchange)
		listing_reply(r, &default_binding_list, r->vhost, NULL);
	else
		listing_reply(r, &source_binding_list, r->vhost, &x->series);
}

void
route_exchange_destination(struct request *r)
{
	struct exchange *x = take_exchange(r);

	if (x != NULL)
		listing_reply(r, &destination_binding_list, r->vhost, &x->series);
}

/* ---- changes ---- */

static const struct error *
declare(struct request *r, const struct exchange_spec *spec, struct exchange **x)
{
	const struct error *e = NULL;
	struct client client;

	acting_client(&client, r);
	/* reserved names are refused by themselves, where they are not what is there already */
	if (spec->name.n > 0 && !span_starts(spec->name, "amq.")) {
		e = permission_check(&client, PERM_CONFIGURE, "exchange", spec->name);
		if (e == NULL)
			e = alternate_check_rights(&client, spec->name, spec->arguments);
	}
	return e != NULL ? e : exchange_declare(r->vhost, spec, x);
}

static void
put_exchange(struct request *r, struct exchange_spec *spec)
{
	bool was_there = exchange_find(r->vhost, spec->name) != NULL;
	const struct error *e;
	struct exchange *x;

	e = declare(r, spec, &x);
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_changed(r, was_there ? 204 : 201, x->durable);
}

void
route_exchange_put(struct request *r)
{
	struct exchange_spec spec = { .name = exchange_arg(r, 1), .type = SPAN_LIT("direct") };
	json_t *type = json_object_get(r->body, "type");
	struct table *arguments = NULL;

	if (spec.name.n > 255) {
		reply_bad(
		    r, "exchange should be less than 255 bytes, actually was %zu", spec.name.n);
		return;
	}
	if (type != NULL && !json_is_string(type)) {
		reply_bad(r, "the type of an exchange is a string");
		return;
	}
	if (type != NULL)
		spec.type = json_span(type);
	if (!body_flag(r, "durable", false, &spec.durable) ||
	    !body_flag(r, "auto_delete", false, &spec.auto_delete) ||
	    !body_flag(r, "internal", false, &spec.internal) ||
	    !body_table(r, "arguments", &arguments))
		return;
	spec.arguments = arguments;
	put_exchange(r, &spec);
	table_free(&arguments);
}

void
route_exchange_delete(struct request *r)
{
	struct exchange *x = take_exchange(r);
	const struct error *e = NULL;
	struct client client;
	struct span name;
	bool durable;

	if (x == NULL)
		return;
	name = exchange_arg(r, 1);
	durable = x->durable;
	acting_client(&client, r);
	if (name.n > 0 && !span_starts(name, "amq.")) {
		e = permission_check(&client, PERM_CONFIGURE, "exchange", name);
		if (e == NULL && !query_true(r, "if-unused") && bindings_thin_exchange(x)) {
			request_again(r);
			return;
		}
	}
	if (e == NULL)
		e = exchange_delete(r->vhost, name, query_true(r, "if-unused"));
	if (e != NULL)
		reply_refused(r, e);
	else
		reply_changed(r, 204, durable);
}
