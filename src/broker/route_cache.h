/* SPDX-License-Identifier: Apache-2.0
 * What an exchange remembers of its routes: key -> queues, valid for one generation of it. At most 4,096 keys and 4 MiB
 * an exchange, 64 MiB in all; beyond that an entry takes the place of another. */
#ifndef BROKER_ROUTE_CACHE_H
#define BROKER_ROUTE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "broker/exchange.h"
#include "broker/route.h"

/* NULL: not there, or of an older generation. Good until the next route_cache_put. */
const struct route *route_cache_find(const struct exchange *x, struct span key);

/* Copies the route. any_key: it holds for every key. What is too large is not kept. */
void route_cache_put(struct exchange *x, struct span key, bool any_key, const struct route *r);

size_t route_cache_bytes(void); /* of all exchanges */

#endif
