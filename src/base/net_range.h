/* SPDX-License-Identifier: Apache-2.0
 * A network as settings name it: "10.0.0.0/8", "2001:db8::/32", or one address. */
#ifndef BASE_NET_RANGE_H
#define BASE_NET_RANGE_H

#include <stdbool.h>
#include <stdint.h>

struct sockaddr_storage;

struct net_range {
	uint8_t base[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint8_t bits;     /* of these 128 */
};

/* False: it is none, or has bits behind its length ("10.0.0.1/8"). */
bool net_range_parse(const char *text, struct net_range *out);
/* IPv4 in IPv6 (::ffff:10.0.0.1) is IPv4. Other families are in no network. */
bool net_range_has(const struct net_range *r, const struct sockaddr_storage *a);

#endif
