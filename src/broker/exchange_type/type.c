/* SPDX-License-Identifier: Apache-2.0
 * The exchange types by number and by name. */
#include "broker/exchange_type/type.h"

static const struct exchange_type_ops *const types[EXCHANGE_TYPES] = {
	[EXCHANGE_DIRECT] = &exchange_direct,
	[EXCHANGE_FANOUT] = &exchange_fanout,
	[EXCHANGE_TOPIC] = &exchange_topic,
	[EXCHANGE_HEADERS] = &exchange_headers,
	[EXCHANGE_CONSISTENT_HASH] = &exchange_consistent_hash,
	[EXCHANGE_DELAYED] = &exchange_delayed,
};

const struct exchange_type_ops *
exchange_type_ops(enum exchange_type type)
{
	return types[type];
}

enum exchange_type
exchange_type_find(struct span name)
{
	unsigned i;

	for (i = 0; i < EXCHANGE_TYPES; i++) {
		if (span_is(name, types[i]->name))
			break;
	}
	return (enum exchange_type)i;
}

const char *
exchange_type_name(enum exchange_type type)
{
	return types[type]->name;
}
