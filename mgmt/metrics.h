/* SPDX-License-Identifier: Apache-2.0
 * Metrics for Prometheus. The handlers are in routes.def. */
#ifndef MGMT_METRICS_H
#define MGMT_METRICS_H

struct mgmt;

/* All scrapes that are being made are forgotten. */
void scrapes_stop(struct mgmt *m);

#endif
