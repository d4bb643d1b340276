/* SPDX-License-Identifier: Apache-2.0
 * x-delayed-message: which type it routes as once a message's delay is over. What waits: broker/delay.h. */
#ifndef BROKER_EXCHANGE_TYPE_DELAYED_H
#define BROKER_EXCHANGE_TYPE_DELAYED_H

#include "broker/exchange.h"

extern const char DELAYED_TYPE[]; /* the argument that names it */

/* EXCHANGE_TYPES: it is not there, or names none that this can be. */
enum exchange_type delayed_type(const struct table *arguments);

#endif
