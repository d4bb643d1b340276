/* SPDX-License-Identifier: Apache-2.0
 * Maintenance (broker/drain.h) as JSON. */
#ifndef MGMT_MAINTENANCE_H
#define MGMT_MAINTENANCE_H

#include <jansson.h>

struct broker;

/* {"draining": false}, or how far it is. Owned by the caller. */
json_t *maintenance_doc(const struct broker *b);

#endif
