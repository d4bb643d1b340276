/* SPDX-License-Identifier: Apache-2.0
 * Rows in the order of numbers, for listing_add(). */
#ifndef MGMT_LIST_ORDER_H
#define MGMT_LIST_ORDER_H

#include "base/bytes.h"

enum { LIST_ORDER = 16 };

/* By a, then by b. */
static inline struct span
list_order(char buf[LIST_ORDER], uint64_t a, uint64_t b)
{
	put_be64((uint8_t *)buf, a);
	put_be64((uint8_t *)buf + 8, b);
	return span_of(buf, LIST_ORDER);
}

#endif
