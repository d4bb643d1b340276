/* SPDX-License-Identifier: Apache-2.0
 * The methods of the exchange class. The order of checks is RabbitMQ's: what the name alone
 * refuses, rights, then what exists. */
#include "amqp/channel.h"
#include "amqp/codec.h"
#include "amqp/method.h"
#include "amqp/names.h"
#include "amqp/park.h"
#include "broker/alternate.h"
#include "broker/binding.h"
#include "broker/exchange.h"
#include "broker/permission.h"
#include "broker/table.h"
#include "broker/topic_permission.h"

static const struct error *
declare(const struct client *client, const struct exchange_spec *spec, struct exchange **x)
{
	const struct error *err;

	/* a bad type or an empty name is refused before rights are asked for */
	if (spec->name.n > 0 && exchange_type_find(spec->type) != EXCHANGE_TYPES) {
		err = permission_check(client, PERM_CONFIGURE, "exchange", spec->name);
		if (err == NULL)
			err = alternate_check_rights(client, spec->name, spec->arguments);
		if (err != NULL)
			return err;
	}
	return exchange_declare(client->vhost, spec, x);
}

static const struct error *
declare_passive(const struct client *client, struct span name, struct exchange **x)
{
	const struct error *err = name_not_default(name);

	return err != NULL ? err : exchange_lookup(client->vhost, name, x);
}

const struct error *
exchange_on_declare(const struct method_call *call)
{
	const amqp_exchange_declare_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	const struct error *err;
	struct table *arguments = NULL;
	struct exchange *x;
	uint8_t buf[255];
	struct exchange_spec spec = {
		.name = name_clean(args->exchange, buf),
		.type = codec_span(args->type),
		.durable = args->durable,
		.auto_delete = args->auto_delete,
		.internal = args->internal,
	};

	if (args->passive) {
		err = declare_passive(client, spec.name, &x);
	} else {
		err = name_table(&args->arguments, &arguments);
		spec.arguments = arguments;
		if (err == NULL)
			err = declare(client, &spec, &x);
		table_free(&arguments);
	}
	if (err == NULL && !args->nowait)
		park_object_answer(call, x->durable, AMQP_EXCHANGE_DECLARE_OK_METHOD, NULL);
	return err;
}

const struct error *
exchange_on_delete(const struct method_call *call)
{
	const amqp_exchange_delete_t *args = call->decoded;
	const struct client *client = &call->conn->client;
	const struct error *err = NULL;
	uint8_t buf[255];
	struct span name = name_clean(args->exchange, buf);
	struct exchange *x = exchange_find(client->vhost, name);
	bool survives = x == NULL || x->durable,
	     is_system = name.n == 0 || span_starts(name, "amq.");

	/* system exchanges are refused by their name, to everybody alike */
	if (!is_system)
		err = permission_check(client, PERM_CONFIGURE, "exchange", name);
	if (err == NULL && x != NULL && !is_system && !args->if_unused &&
	    bindings_thin_exchange(x)) {
		park_for_turn(call);
		return NULL;
	}
	if (err == NULL)
		err = exchange_delete(client->vhost, name, args->if_unused);
	if (err == NULL && !args->nowait)
		park_object_answer(call, survives, AMQP_EXCHANGE_DELETE_OK_METHOD, NULL);
	return err;
}

/* *survives: whether the binding does. */
typedef const struct error *change_fn(const struct client *client, struct span source,
    struct span destination, struct span key, const struct table *arguments, bool *survives);

static const struct error *
add(const struct client *client, struct span source, struct span destination, struct span key,
    const struct table *arguments, bool *survives)
{
	struct exchange *from, *to;
	const struct error *err = exchange_lookup(client->vhost, source, &from);

	if (err == NULL)
		err = exchange_lookup(client->vhost, destination, &to);
	if (err == NULL)
		err = binding_add(from, NULL, to, key, arguments);
	*survives = err == NULL && from->durable && to->durable;
	return err;
}

/* What is not there is unbound already. */
static const struct error *
take(const struct client *client, struct span source, struct span destination, struct span key,
    const struct table *arguments, bool *survives)
{
	struct exchange *from = exchange_find(client->vhost, source);
	struct exchange *to = exchange_find(client->vhost, destination);

	*survives = (from == NULL || from->durable) && (to == NULL || to->durable);
	if (from == NULL || to == NULL)
		return NULL;
	return binding_remove(from, NULL, to, key, arguments);
}

/* What bind and unbind share: names and rights. */
static const struct error *
change_binding(const struct method_call *call, const amqp_exchange_bind_t *args, change_fn *change,
    bool *survives)
{
	const struct client *client = &call->conn->client;
	uint8_t source_buf[255], destination_buf[255];
	struct span source = name_clean(args->source, source_buf);
	struct span destination = name_clean(args->destination, destination_buf);
	struct table *arguments = NULL;
	const struct error *err = permission_check(client, PERM_WRITE, "exchange", destination);

	if (err == NULL)
		err = name_not_default(destination);
	if (err == NULL)
		err = name_not_default(source);
	if (err == NULL)
		err = permission_check(client, PERM_READ, "exchange", source);
	if (err == NULL)
		err = topic_permission_check_name(
		    client, TOPIC_READ, source, codec_span(args->routing_key));
	if (err == NULL)
		err = name_table(&args->arguments, &arguments);
	if (err == NULL)
		err = change(client, source, destination, codec_span(args->routing_key), arguments,
		    survives);
	table_free(&arguments);
	return err;
}

const struct error *
exchange_on_bind(const struct method_call *call)
{
	const amqp_exchange_bind_t *args = call->decoded;
	bool survives;
	const struct error *err = change_binding(call, args, add, &survives);

	if (err == NULL && !args->nowait)
		park_object_answer(call, survives, AMQP_EXCHANGE_BIND_OK_METHOD, NULL);
	return err;
}

const struct error *
exchange_on_unbind(const struct method_call *call)
{
	const amqp_exchange_unbind_t *args = call->decoded;
	const amqp_exchange_bind_t same = {
		.destination = args->destination,
		.source = args->source,
		.routing_key = args->routing_key,
		.arguments = args->arguments,
	};
	bool survives;
	const struct error *err = change_binding(call, &same, take, &survives);

	if (err == NULL && !args->nowait)
		park_object_answer(call, survives, AMQP_EXCHANGE_UNBIND_OK_METHOD, NULL);
	return err;
}
