/* SPDX-License-Identifier: Apache-2.0
 * Many users that are deleted by one request. */
#ifndef MGMT_USERS_BULK_H
#define MGMT_USERS_BULK_H

#include <stdbool.h>

struct mgmt;

enum { BULK_DELETE_MAX = 512 }; /* users of a turn */

/* For mgmt.c. True: there is more to do. */
bool bulk_deletes_run(struct mgmt *m);
void bulk_deletes_stop(struct mgmt *m);

#endif
