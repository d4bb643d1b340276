/* SPDX-License-Identifier: Apache-2.0
 * Rows in the order of numbers, or of names, for listing_add(). */
#ifndef MGMT_LIST_ORDER_H
#define MGMT_LIST_ORDER_H

#include "base/bytes.h"

enum { LIST_ORDER = 16, LIST_ORDER_NAME = 2 * 256 };

/* By a, then by b. */
static inline struct span
list_order(char buf[LIST_ORDER], uint64_t a, uint64_t b)
{
	put_be64((uint8_t *)buf, a);
	put_be64((uint8_t *)buf + 8, b);
	return span_of(buf, LIST_ORDER);
}

/* By vhost, then by name; both have at most 255 bytes. */
static inline struct span
list_order_name(char buf[LIST_ORDER_NAME], const char *vhost, struct span name)
{
	size_t n = strlen(vhost) + 1;

	memcpy(buf, vhost, n);
	memcpy(buf + n, name.p, name.n);
	return span_of(buf, n + name.n);
}

#endif
