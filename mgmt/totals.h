/* SPDX-License-Identifier: Apache-2.0
 * The sums of an overview: over the node for those who may see all of it, else over the vhosts, connections and channels
 * that the user sees. */
#ifndef MGMT_TOTALS_H
#define MGMT_TOTALS_H

#include <jansson.h>

#include "base/attr.h"

struct request;

/* {message_stats, queue_totals, object_totals, churn_rates}, owned; NULL: it was answered, for the query is wrong. */
json_t *totals_of(struct request *r) MUSTUSE;

#endif
