/* SPDX-License-Identifier: Apache-2.0
 * GET .../browse and /api/hermes/dead-letters/:vhost/:queue: messages looked at, and left where they are. */
#ifndef MGMT_BROWSE_H
#define MGMT_BROWSE_H

#include <stdbool.h>

struct mgmt;

/* Those that wait for messages from disk go on. Called each turn. True: there is more to do at once. */
bool browses_run(struct mgmt *m);
void browses_stop(struct mgmt *m);

#endif
