/* SPDX-License-Identifier: Apache-2.0 */
#include "base/net_range.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MAPPED = 96 }; /* bits in front of an IPv4 address in IPv6 */

static void
map_v4(const void *v4, uint8_t out[16])
{
	memset(out, 0, 10);
	out[10] = out[11] = 0xff;
	memcpy(out + 12, v4, 4);
}

static bool
same_bits(const uint8_t *a, const uint8_t *b, unsigned n)
{
	unsigned whole = n / 8, rest = n % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) & (0xff << (8 - rest) & 0xff)) == 0;
}

bool
net_range_parse(const char *text, struct net_range *out)
{
	static const uint8_t zero[16];
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	char address[INET6_ADDRSTRLEN];
	struct net_range r = { .bits = 128 };
	unsigned before = 0, rest;
	struct in_addr v4;

	if (n >= sizeof address)
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, &v4) == 1) {
		map_v4(&v4, r.base);
		before = MAPPED;
	} else if (inet_pton(AF_INET6, address, r.base) != 1) {
		return false;
	}
	if (slash != NULL) {
		unsigned long bits = strtoul(slash + 1, NULL, 10);

		n = strspn(slash + 1, "0123456789");
		if (n == 0 || n > 3 || slash[1 + n] != '\0' || bits > 128 - before)
			return false;
		r.bits = (uint8_t)(before + bits);
	}
	/* what stands behind the length is zero: else somebody meant another one */
	rest = r.bits / 8;
	if (r.bits % 8 != 0 && (r.base[rest++] & (0xff >> r.bits % 8)) != 0)
		return false;
	if (memcmp(r.base + rest, zero, 16 - rest) != 0)
		return false;
	*out = r;
	return true;
}

bool
net_range_has(const struct net_range *r, const struct sockaddr_storage *a)
{
	uint8_t address[16];

	if (a->ss_family == AF_INET)
		map_v4(&((const struct sockaddr_in *)(const void *)a)->sin_addr, address);
	else if (a->ss_family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		    sizeof address);
	else
		return false;
	return same_bits(r->base, address, r->bits);
}
