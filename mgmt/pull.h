/* SPDX-License-Identifier: Apache-2.0
 * POST /api/queues/:vhost/:queue/get: messages out of a queue, looked at or taken. */
#ifndef MGMT_PULL_H
#define MGMT_PULL_H

struct mgmt;

/* Those that wait for messages from disk, or have many to write, go on. Called each turn. */
void pulls_run(struct mgmt *m);
/* What they hold goes back. */
void pulls_stop(struct mgmt *m);

#endif
