/* SPDX-License-Identifier: Apache-2.0
 * Messages that come in over HTTP. */
#ifndef MGMT_PUBLISH_H
#define MGMT_PUBLISH_H

#include <stdbool.h>

struct mgmt;

/* Batches that have not been published whole go on. Each turn; true: there is more. */
bool batches_run(struct mgmt *m);
void batches_stop(struct mgmt *m);

#endif
