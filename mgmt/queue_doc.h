/* SPDX-License-Identifier: Apache-2.0
 * A queue as a document, and the list of queues. */
#ifndef MGMT_QUEUE_DOC_H
#define MGMT_QUEUE_DOC_H

#include "mgmt/listing.h"

extern const struct listing_source queue_list;

#endif
