/* SPDX-License-Identifier: Apache-2.0
 * The open transaction of a channel: publishes that wait with the queues they were routed to, and
 * settlements. */
#ifndef AMQP_TX_H
#define AMQP_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "broker/error.h"
#include "broker/msg.h"
#include "broker/route.h"
#include "broker/session.h"
#include "store/store.h"

struct channel;
struct tx;

enum { TX_OPERATIONS_MAX = 65535, TX_BYTES_MAX = 64 << 20 };

struct tx *tx_new(void);
/* Rolls back what is open: publishes are dropped, settlements put back. */
void tx_rollback(struct channel *ch);
void tx_free(struct channel *ch); /* rolls back first; ch->tx may be NULL */

/* Takes over m. 406 when the transaction grows too large, 506 without memory. */
const struct error *tx_publish(struct channel *ch, struct msg *m, const struct route *route,
    uint64_t due_ms, bool mandatory) MUSTUSE;
const struct error *tx_settle(
    struct channel *ch, uint64_t tag, bool multiple, enum settle how) MUSTUSE;
/* What a commit would publish and settle. */
uint32_t tx_publishes(const struct tx *tx);
uint32_t tx_settlements(const struct tx *tx);
/* What commit-ok has to wait for. */
struct store_wait tx_commit(struct channel *ch) MUSTUSE;

#endif
