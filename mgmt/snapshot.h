/* SPDX-License-Identifier: Apache-2.0
 * POST /api/hermes/snapshot: the node's data as of now, as a folder that `hermes restore` takes. Answered when it is
 * done; meanwhile the node goes on. */
#ifndef MGMT_SNAPSHOT_H
#define MGMT_SNAPSHOT_H

struct mgmt;

/* One that is under way ends; before the HTTP server goes. */
void snapshot_stop(struct mgmt *m);

#endif
