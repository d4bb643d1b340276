/* SPDX-License-Identifier: Apache-2.0
 * Charts: broker/history.h has the samples, here are the routes to them. */
#ifndef MGMT_HISTORY_H
#define MGMT_HISTORY_H

struct mgmt;

void histories_start(struct mgmt *m);
void histories_stop(struct mgmt *m);

#endif
