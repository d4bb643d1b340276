/* SPDX-License-Identifier: Apache-2.0
 * An exchange as a document, and the list of exchanges. */
#ifndef MGMT_EXCHANGE_DOC_H
#define MGMT_EXCHANGE_DOC_H

#include "mgmt/listing.h"

extern const struct listing_source exchange_list;

#endif
