/* SPDX-License-Identifier: Apache-2.0
 * Consumers as documents, and the list of them. */
#ifndef MGMT_CONSUMER_DOC_H
#define MGMT_CONSUMER_DOC_H

#include "mgmt/listing.h"

struct consumer;

extern const struct listing_source consumer_list;

void consumer_write(const struct doc *d, const struct consumer *k);

#endif
