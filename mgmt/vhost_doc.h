/* SPDX-License-Identifier: Apache-2.0
 * A vhost as a document, with its statistics, and the list of vhosts. */
#ifndef MGMT_VHOST_DOC_H
#define MGMT_VHOST_DOC_H

#include "mgmt/listing.h"

extern const struct listing_source vhost_list;

#endif
