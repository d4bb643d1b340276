/* SPDX-License-Identifier: Apache-2.0
 * GET /api/health/checks/chain: the node proves by a message of its own (broker/probe.h) that messages go through it, all the
 * way to a consumer and safe on disk, within a bound. */
#ifndef MGMT_CHAIN_H
#define MGMT_CHAIN_H

#include <stdbool.h>

struct mgmt;

bool chains_run(struct mgmt *m); /* each turn. True: another one is wanted */
void chains_stop(struct mgmt *m);

#endif
