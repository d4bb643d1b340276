/* SPDX-License-Identifier: Apache-2.0
 * The arguments of an x-delayed-message exchange. Bindings and routes are those of the type that it routes as
 * (exchange->routes_as); so nobody asks this table for them. */
#include "broker/exchange_type/delayed.h"

#include "broker/exchange_type/type.h"
#include "broker/table.h"

const char DELAYED_TYPE[] = "x-delayed-type";

enum exchange_type
delayed_type(const struct table *arguments)
{
	enum exchange_type type = EXCHANGE_TYPES;
	struct field f;

	if (table_find(table_span(arguments), DELAYED_TYPE, &f) && f.kind == 'S')
		type = exchange_type_find(f.bytes);
	return type == EXCHANGE_DELAYED ? EXCHANGE_TYPES : type;
}

static const struct error *
check_exchange(const struct table *arguments)
{
	enum exchange_type type = delayed_type(arguments);
	const struct exchange_type_ops *ops;
	struct field f;

	if (type == EXCHANGE_TYPES && table_find(table_span(arguments), DELAYED_TYPE, &f) &&
	    f.kind == 'S' && span_is(f.bytes, exchange_delayed.name))
		return error_make(E_PRECONDITION_FAILED,
		    "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'");
	if (type == EXCHANGE_TYPES)
		return error_make(E_PRECONDITION_FAILED,
		    "Invalid argument, 'x-delayed-type' must be an existing exchange type");
	ops = exchange_type_ops(type);
	return ops->check != NULL ? ops->check(arguments) : NULL;
}

const struct exchange_type_ops exchange_delayed = {
	.name = "x-delayed-message",
	.check = check_exchange,
};
